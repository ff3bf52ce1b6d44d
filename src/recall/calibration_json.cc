#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "recall/calibration.h"
#include "recall/replace_file.h"

// The calibration as a file. What is read may be anything: every field is looked at before it is used, and the first
// thing that does not fit ends the reading.

namespace modeld {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "modeld calibration";
constexpr std::size_t kListLimit = 65536;
constexpr std::size_t kFileLimitBytes = std::size_t{16} << 20U;
constexpr std::int32_t kTokensLimit = 1 << 30;

template <typename E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<ScoreRule, 2> kRules{{{ScoreRule::sigmoid, "sigmoid"}, {ScoreRule::full, "full"}}};
constexpr Names<KvOrigin, 2> kOrigins{{{KvOrigin::isolated, "isolated"}, {KvOrigin::streamed, "streamed"}}};
constexpr Names<BlockOrder, 3> kOrders{{{BlockOrder::best_last, "best_last"},
                                        {BlockOrder::best_first, "best_first"},
                                        {BlockOrder::stream_order, "stream_order"}}};

template <typename E, std::size_t N>
std::string_view name_of(const Names<E, N>& names, E value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  MODELD_CHECK(false);
  return {};
}

Json policy_json(const ReadingPolicy& policy) {
  return {{"origin", name_of(kOrigins, policy.origin)},
          {"stream_window", policy.stream_window},
          {"run_up", policy.run_up},
          {"blocks", policy.blocks},
          {"order", name_of(kOrders, policy.order)},
          {"sinks", policy.sinks},
          {"recent", policy.recent}};
}

/// Takes fields out of one object and remembers the first that is missing, of another type or out of range.
class Reader {
 public:
  Reader(const Json& object, std::string& wrong) : object_(object), wrong_(wrong) {
    if (!object_.is_object()) note("an object");
  }

  void text(const char* name, std::string& out) {
    if (const Json* field = find(name)) {
      field->is_string() ? void(out = field->get_ref<const std::string&>()) : note(name);
    }
  }
  void flag(const char* name, bool& out) {
    if (const Json* field = find(name)) field->is_boolean() ? void(out = field->get<bool>()) : note(name);
  }
  void integer(const char* name, std::int32_t low, std::int32_t high, std::int32_t& out) {
    const Json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_number_integer()) return note(name);
    if (field->is_number_unsigned() && field->get<std::uint64_t>() > std::uint64_t{0x7fffffff}) return note(name);
    const std::int64_t value = field->get<std::int64_t>();
    if (value < low || value > high) return note(name);
    out = static_cast<std::int32_t>(value);
  }
  void real(const char* name, double low, double high, double& out) {
    const Json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_number()) return note(name);
    const double value = field->get<double>();
    if (!(value >= low && value <= high)) return note(name);
    out = value;
  }
  template <typename E, std::size_t N>
  void named(const char* name, const Names<E, N>& names, E& out) {
    std::string value;
    text(name, value);
    if (!wrong_.empty()) return;
    for (const auto& [known, known_name] : names) {
      if (known_name == value) {
        out = known;
        return;
      }
    }
    note(name);
  }
  /// Calls `each(element)` for every element of a list.
  template <typename F>
  void list(const char* name, F&& each) {
    const Json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_array() || field->size() > kListLimit) return note(name);
    for (const Json& element : *field) {
      each(element);
      if (!wrong_.empty()) return;
    }
  }
  /// The field, or null when something was wrong before or it is missing.
  const Json* find(const char* name) {
    if (!wrong_.empty()) return nullptr;
    const auto it = object_.find(name);
    if (it == object_.end()) note(name);
    return it == object_.end() ? nullptr : &*it;
  }
  void note(std::string_view what) {
    if (wrong_.empty()) wrong_ = what;
  }

 private:
  const Json& object_;
  std::string& wrong_;
};

void read_policy(const Json& json, std::string& wrong, ReadingPolicy& policy) {
  Reader reader(json, wrong);
  reader.named("origin", kOrigins, policy.origin);
  reader.integer("stream_window", 0, kTokensLimit, policy.stream_window);
  reader.integer("run_up", 0, kTokensLimit, policy.run_up);
  reader.integer("blocks", 0, kTokensLimit, policy.blocks);
  reader.named("order", kOrders, policy.order);
  reader.integer("sinks", 0, kTokensLimit, policy.sinks);
  reader.integer("recent", 0, kTokensLimit, policy.recent);
}

HeadMass read_head(const Json& json, std::string& wrong) {
  HeadMass head;
  Reader reader(json, wrong);
  reader.integer("layer", 0, 65535, head.head.layer);
  reader.integer("head", 0, 65535, head.head.head);
  // A share of attention; sums of rounded shares may pass 1 by a hair.
  reader.real("mass", 0.0, 1.001, head.mass);
  return head;
}

Calibration::Row read_row(const Json& json, std::string& wrong) {
  Calibration::Row row;
  Reader reader(json, wrong);
  if (const Json* policy = reader.find("policy")) read_policy(*policy, wrong, row.policy);
  std::int32_t right = 0;
  std::int32_t asked = 0;
  reader.integer("asked", 0, std::numeric_limits<std::int32_t>::max(), asked);
  reader.integer("right", 0, asked, right);
  reader.real("seconds", 0.0, 1e12, row.seconds);
  row.right = right;
  row.asked = asked;
  return row;
}

tl::unexpected<Error> invalid(const std::string& what) {
  return fail(ErrorCode::payload_invalid,
              fmt::format("This is not a calibration of version {}: {}. Calibrate the model again.",
                          Calibration::kVersion, what));
}

Calibration read_calibration(const Json& json, std::string& wrong) {
  Calibration c;
  Reader reader(json, wrong);
  reader.text("model", c.model);
  reader.text("engine", c.engine);
  reader.list("heads", [&](const Json& element) { c.heads.push_back(read_head(element, wrong)); });
  reader.integer("distance", 0, kTokensLimit, c.distance);
  reader.named("rule", kRules, c.rule);
  if (const Json* policy = reader.find("reading")) read_policy(*policy, wrong, c.reading);
  reader.flag("reading_measured", c.reading_measured);
  reader.list("rows", [&](const Json& element) { c.rows.push_back(read_row(element, wrong)); });
  reader.real("seconds", 0.0, 1e12, c.seconds);
  return c;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::optional<std::string> read_whole(std::FILE* file) {
  std::string content;
  std::array<char, 65536> piece{};
  while (std::feof(file) == 0 && std::ferror(file) == 0 && content.size() <= kFileLimitBytes)
    content.append(piece.data(), std::fread(piece.data(), 1, piece.size(), file));
  if (std::ferror(file) != 0) return std::nullopt;
  return content;
}

}  // namespace

std::string to_json(const Calibration& calibration) {
  Json heads = Json::array();
  for (const HeadMass& h : calibration.heads) {
    heads.push_back({{"layer", h.head.layer}, {"head", h.head.head}, {"mass", h.mass}});
  }
  Json rows = Json::array();
  for (const Calibration::Row& row : calibration.rows) {
    rows.push_back(
        {{"policy", policy_json(row.policy)}, {"right", row.right}, {"asked", row.asked}, {"seconds", row.seconds}});
  }
  const Json json = {{"format", kFormat},
                     {"version", Calibration::kVersion},
                     {"model", calibration.model},
                     {"engine", calibration.engine},
                     {"heads", std::move(heads)},
                     {"distance", calibration.distance},
                     {"rule", name_of(kRules, calibration.rule)},
                     {"reading", policy_json(calibration.reading)},
                     {"reading_measured", calibration.reading_measured},
                     {"rows", std::move(rows)},
                     {"seconds", calibration.seconds}};
  // Numbers are written with as many digits as bring back the same number; a broken character becomes a replacement
  // mark.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Calibration> calibration_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return invalid("it is not JSON");
    std::string wrong;
    Reader reader(json, wrong);
    std::string format;
    std::int32_t version = 0;
    reader.text("format", format);
    if (wrong.empty() && format != kFormat) reader.note("format");
    reader.integer("version", Calibration::kVersion, Calibration::kVersion, version);
    Calibration calibration;
    if (wrong.empty()) calibration = read_calibration(json, wrong);
    if (!wrong.empty()) return invalid(fmt::format("\"{}\" is missing or not what it must be", wrong));
    return calibration;
  } catch (const Json::exception& e) {
    return invalid(e.what());
  }
}

Status save_calibration(const std::filesystem::path& path, const Calibration& calibration) {
  return replace_file(path, to_json(calibration));
}

Result<Calibration> load_calibration(const std::filesystem::path& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    const int error = errno;
    const auto code = error == ENOENT || error == ENOTDIR ? ErrorCode::file_missing : ErrorCode::io_failed;
    return fail(code, fmt::format("The calibration {} cannot be read: {}. Calibrate the model to make it.",
                                  path.string(), std::generic_category().message(error)));
  }
  const std::optional<std::string> content = read_whole(file.get());
  if (!content) {
    return fail(
        ErrorCode::io_failed,
        fmt::format("Reading the calibration {} failed. Remove it and calibrate the model again.", path.string()));
  }
  if (content->size() > kFileLimitBytes) return invalid("it is too large");
  return calibration_from_json(*content);
}

}  // namespace modeld
