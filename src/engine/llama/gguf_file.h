// The metadata of a GGUF file, read without mapping or loading a tensor.
//
// Invariant: a file that opens here has every byte that its own tables speak of, so that mapping it later cannot run
//            past its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/error.h"

struct gguf_context;

namespace modeld {

class GgufFile {
 public:
  /// Errors: file_missing (absent, a directory, unreadable), model_not_gguf, model_truncated, model_load_failed.
  static Result<GgufFile> open(const std::filesystem::path& path);

  /// Scalars; empty if the key is absent or has another kind of type.
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key) const;
  [[nodiscard]] std::optional<double> real(const std::string& key) const;
  [[nodiscard]] std::optional<bool> boolean(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
  /// An array of integers or booleans; empty if the key is absent or a scalar.
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& key) const;
  /// Entries of an array; 0 if the key is absent.
  [[nodiscard]] std::size_t array_size(const std::string& key) const;
  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] bool any_key_starts_with(const std::string& prefix) const;

  /// Sum of all tensors' sizes.
  [[nodiscard]] std::uint64_t tensor_bytes() const;
  [[nodiscard]] bool has_tensor(const std::string& name) const;
  /// The values of an f32 tensor, read from the file. Errors: io_failed; model_load_failed if absent or not f32.
  [[nodiscard]] Result<std::vector<float>> read_f32(const std::string& name) const;
  /// Over all entries whose key starts with `prefix`, in file order, keys and values.
  [[nodiscard]] Digest128 digest_of(const std::string& prefix) const;

 private:
  struct Free {
    void operator()(gguf_context* context) const;
  };
  GgufFile(std::filesystem::path path, gguf_context* context);
  [[nodiscard]] std::int64_t find(const std::string& key) const;

  std::filesystem::path path_;
  std::unique_ptr<gguf_context, Free> context_;
};

}  // namespace modeld
