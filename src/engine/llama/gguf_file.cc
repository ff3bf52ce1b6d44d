#include "engine/llama/gguf_file.h"

#include <fmt/format.h>
#include <ggml.h>
#include <gguf.h>

#include <array>
#include <cstring>
#include <fstream>

#include "engine/llama/backend.h"

namespace modeld {
namespace {

std::size_t element_size(gguf_type type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
      return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
      return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32:
      return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

template <typename T>
std::int64_t load(const void* data, std::size_t index) {
  T value{};
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> load_integer(const void* data, gguf_type type, std::size_t index) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_BOOL:
      return load<std::uint8_t>(data, index);
    case GGUF_TYPE_INT8:
      return load<std::int8_t>(data, index);
    case GGUF_TYPE_UINT16:
      return load<std::uint16_t>(data, index);
    case GGUF_TYPE_INT16:
      return load<std::int16_t>(data, index);
    case GGUF_TYPE_UINT32:
      return load<std::uint32_t>(data, index);
    case GGUF_TYPE_INT32:
      return load<std::int32_t>(data, index);
    case GGUF_TYPE_UINT64:
      return load<std::uint64_t>(data, index);
    case GGUF_TYPE_INT64:
      return load<std::int64_t>(data, index);
    default:
      return std::nullopt;
  }
}

Status check_tensors_present(const gguf_context* context, const std::filesystem::path& path, std::uint64_t size) {
  const std::uint64_t data = gguf_get_data_offset(context);
  std::uint64_t needed = data;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(context); ++i) {
    const std::uint64_t end = data + gguf_get_tensor_offset(context, i) + gguf_get_tensor_size(context, i);
    needed = std::max(needed, end);
  }
  if (needed <= size) return {};
  return fail(ErrorCode::model_truncated,
              fmt::format("{} has {} bytes, but its own tables need {}. Download or copy it again.", path.string(),
                          size, needed),
              {{"file_bytes", static_cast<std::int64_t>(size)}, {"needed_bytes", static_cast<std::int64_t>(needed)}});
}

}  // namespace

void GgufFile::Free::operator()(gguf_context* context) const { gguf_free(context); }

GgufFile::GgufFile(std::filesystem::path path, gguf_context* context) : path_(std::move(path)), context_(context) {}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec))
    return fail(ErrorCode::file_missing, fmt::format("There is no model file at {}.", path.string()));
  if (!std::filesystem::is_regular_file(path, ec))
    return fail(ErrorCode::file_missing, fmt::format("{} is not a file. Name the .gguf file itself.", path.string()));
  const std::uint64_t size = std::filesystem::file_size(path, ec);
  std::ifstream in(path, std::ios::binary);
  if (ec || !in)
    return fail(ErrorCode::file_missing, fmt::format("{} cannot be read. Check its permissions.", path.string()));
  std::array<char, 4> magic{};
  in.read(magic.data(), magic.size());
  constexpr std::array<char, 4> kMagic = {'G', 'G', 'U', 'F'};
  if (in.gcount() != static_cast<std::streamsize>(magic.size()) || magic != kMagic)
    return fail(ErrorCode::model_not_gguf,
                fmt::format("{} is not a GGUF model: it does not start with the letters GGUF.", path.string()));
  in.close();

  start_llama_backend();
  gguf_context* context = gguf_init_from_file(path.c_str(), gguf_init_params{.no_alloc = true, .ctx = nullptr});
  if (context == nullptr)
    return fail(
        ErrorCode::model_truncated,
        fmt::format("The tables of {} cannot be read to their end ({}): it is cut short or damaged. Download or "
                    "copy it again.",
                    path.string(), last_llama_error()),
        {{"file_bytes", static_cast<std::int64_t>(size)}});
  GgufFile file(path, context);
  MODELD_TRY_VOID(check_tensors_present(context, path, size));
  return file;
}

std::int64_t GgufFile::find(const std::string& key) const { return gguf_find_key(context_.get(), key.c_str()); }

bool GgufFile::has(const std::string& key) const { return find(key) >= 0; }

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  const std::int64_t id = find(key);
  if (id < 0) return std::nullopt;
  const gguf_type type = gguf_get_kv_type(context_.get(), id);
  if (type == GGUF_TYPE_BOOL || element_size(type) == 0) return std::nullopt;
  return load_integer(gguf_get_val_data(context_.get(), id), type, 0);
}

std::optional<double> GgufFile::real(const std::string& key) const {
  const std::int64_t id = find(key);
  if (id < 0) return std::nullopt;
  switch (gguf_get_kv_type(context_.get(), id)) {
    case GGUF_TYPE_FLOAT32:
      return static_cast<double>(gguf_get_val_f32(context_.get(), id));
    case GGUF_TYPE_FLOAT64:
      return gguf_get_val_f64(context_.get(), id);
    default:
      return std::nullopt;
  }
}

std::optional<bool> GgufFile::boolean(const std::string& key) const {
  const std::int64_t id = find(key);
  if (id < 0 || gguf_get_kv_type(context_.get(), id) != GGUF_TYPE_BOOL) return std::nullopt;
  return gguf_get_val_bool(context_.get(), id);
}

std::optional<std::string> GgufFile::text(const std::string& key) const {
  const std::int64_t id = find(key);
  if (id < 0 || gguf_get_kv_type(context_.get(), id) != GGUF_TYPE_STRING) return std::nullopt;
  return std::string(gguf_get_val_str(context_.get(), id));
}

std::vector<std::int64_t> GgufFile::integers(const std::string& key) const {
  std::vector<std::int64_t> values;
  const std::int64_t id = find(key);
  if (id < 0 || gguf_get_kv_type(context_.get(), id) != GGUF_TYPE_ARRAY) return values;
  const gguf_type type = gguf_get_arr_type(context_.get(), id);
  if (element_size(type) == 0) return values;
  const void* data = gguf_get_arr_data(context_.get(), id);
  for (std::size_t i = 0; i < gguf_get_arr_n(context_.get(), id); ++i) {
    const auto value = load_integer(data, type, i);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

std::size_t GgufFile::array_size(const std::string& key) const {
  const std::int64_t id = find(key);
  if (id < 0 || gguf_get_kv_type(context_.get(), id) != GGUF_TYPE_ARRAY) return 0;
  return gguf_get_arr_n(context_.get(), id);
}

bool GgufFile::any_key_starts_with(const std::string& prefix) const {
  for (std::int64_t i = 0; i < gguf_get_n_kv(context_.get()); ++i)
    if (std::string_view(gguf_get_key(context_.get(), i)).starts_with(prefix)) return true;
  return false;
}

std::uint64_t GgufFile::tensor_bytes() const {
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < gguf_get_n_tensors(context_.get()); ++i)
    bytes += gguf_get_tensor_size(context_.get(), i);
  return bytes;
}

bool GgufFile::has_tensor(const std::string& name) const { return gguf_find_tensor(context_.get(), name.c_str()) >= 0; }

Result<std::vector<float>> GgufFile::read_f32(const std::string& name) const {
  const std::int64_t id = gguf_find_tensor(context_.get(), name.c_str());
  if (id < 0 || gguf_get_tensor_type(context_.get(), id) != GGML_TYPE_F32)
    return fail(ErrorCode::model_load_failed,
                fmt::format("{} has no f32 tensor {}. The model file is unusual or damaged.", path_.string(), name));
  std::vector<float> values(gguf_get_tensor_size(context_.get(), id) / sizeof(float));
  std::ifstream in(path_, std::ios::binary);
  const std::uint64_t offset = gguf_get_data_offset(context_.get()) + gguf_get_tensor_offset(context_.get(), id);
  in.seekg(static_cast<std::streamoff>(offset));
  std::vector<char> raw(values.size() * sizeof(float));
  in.read(raw.data(), static_cast<std::streamsize>(raw.size()));
  if (in.gcount() != static_cast<std::streamsize>(raw.size()))
    return fail(ErrorCode::io_failed, fmt::format("Reading tensor {} of {} failed.", name, path_.string()));
  std::memcpy(values.data(), raw.data(), raw.size());
  return values;
}

Digest128 GgufFile::digest_of(const std::string& prefix) const {
  const gguf_context* context = context_.get();
  Hasher hash;
  for (std::int64_t i = 0; i < gguf_get_n_kv(context); ++i) {
    const std::string_view key = gguf_get_key(context, i);
    if (!key.starts_with(prefix)) continue;
    const gguf_type type = gguf_get_kv_type(context, i);
    hash.text(key).number(static_cast<std::uint64_t>(type));
    if (type == GGUF_TYPE_STRING) {
      hash.text(gguf_get_val_str(context, i));
    } else if (type != GGUF_TYPE_ARRAY) {
      hash.bytes({static_cast<const std::byte*>(gguf_get_val_data(context, i)), element_size(type)});
    } else if (gguf_get_arr_type(context, i) == GGUF_TYPE_STRING) {
      const std::size_t n = gguf_get_arr_n(context, i);
      hash.number(n);
      for (std::size_t k = 0; k < n; ++k) hash.text(gguf_get_arr_str(context, i, k));
    } else {
      const std::size_t bytes = gguf_get_arr_n(context, i) * element_size(gguf_get_arr_type(context, i));
      hash.bytes({static_cast<const std::byte*>(gguf_get_arr_data(context, i)), bytes});
    }
  }
  return hash.finish();
}

}  // namespace modeld
