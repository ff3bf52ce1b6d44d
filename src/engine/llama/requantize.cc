#include "engine/llama/requantize.h"

#include <fmt/format.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

#include "engine/llama/backend.h"
#include "engine/llama/describe.h"

namespace modeld {
namespace {

struct Format {
  std::string_view name;
  llama_ftype type;
};
constexpr std::array kFormats = {Format{"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0}, Format{"q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},
                                 Format{"bf16", LLAMA_FTYPE_MOSTLY_BF16}, Format{"f16", LLAMA_FTYPE_MOSTLY_F16}};

const Format* find_format(std::string_view name) {
  const auto* it = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return f.name == name; });
  return it == kFormats.end() ? nullptr : it;
}

}  // namespace

bool is_weight_format(std::string_view format) { return find_format(format) != nullptr; }

Status requantize_llama(const std::filesystem::path& from, const std::filesystem::path& to, std::string_view format) {
  const Format* wanted = find_format(format);
  if (wanted == nullptr) {
    return fail(ErrorCode::bad_argument,
                fmt::format("There is no weight format {}; there are q8_0, q4_0, bf16 and f16.", format));
  }
  if (auto described = describe_llama(from); !described) return tl::unexpected(std::move(described).error());
  std::error_code ignored;
  if (std::filesystem::equivalent(from, to, ignored)) {
    return fail(ErrorCode::bad_argument, "The copy must be another file than the model; name another one.");
  }
  start_llama_backend();
  std::filesystem::path beside = to;
  beside += ".unfinished";
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.ftype = wanted->type;
  params.allow_requantize = true;
  std::string trouble;
  try {
    if (llama_model_quantize(from.c_str(), beside.c_str(), &params) != 0) trouble = last_llama_error();
  } catch (const std::exception& e) {
    trouble = e.what();
  }
  if (trouble.empty() && !describe_llama(beside)) trouble = "the copy is not whole";
  if (trouble.empty()) {
    std::error_code renamed;
    std::filesystem::rename(beside, to, renamed);
    if (!renamed) return {};
    trouble = renamed.message();
  }
  std::filesystem::remove(beside, ignored);
  const std::filesystem::space_info space =
      std::filesystem::space(to.has_parent_path() ? to.parent_path() : ".", ignored);
  const auto free_bytes = static_cast<std::int64_t>(space.available);
  const bool full = !ignored && free_bytes < (std::int64_t{16} << 20U);
  return fail(full ? ErrorCode::disk_full : ErrorCode::io_failed,
              fmt::format("The copy {} could not be written ({}). Check that its folder can be written and has room.",
                          to.string(), trouble),
              {{"free_bytes", free_bytes}});
}

}  // namespace modeld
