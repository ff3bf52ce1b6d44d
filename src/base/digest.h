// Digests: XXH3-128 for content addresses of blocks, SHA-256 for the identity of model files.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"

namespace modeld {

struct Digest128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Digest128&, const Digest128&) = default;
  /// 32 lower-case hex digits.
  [[nodiscard]] std::string hex() const;
};

/// Accumulates fields into one Digest128. Every variable-length field is preceded by its length, so that two different
/// lists of fields never give the same bytes.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  Hasher& bytes(std::span<const std::byte> data);
  Hasher& text(std::string_view s);
  Hasher& number(std::uint64_t n);
  Hasher& digest(const Digest128& d);
  template <typename T>
  Hasher& values(std::span<const T> v) {
    return bytes(std::as_bytes(v));
  }
  [[nodiscard]] Digest128 finish() const;

 private:
  void* state_;  // XXH3_state_t*
};

Digest128 digest_of(std::span<const std::byte> data);

struct Digest256 {
  std::array<std::uint8_t, 32> bytes{};
  friend auto operator<=>(const Digest256&, const Digest256&) = default;
  [[nodiscard]] std::string hex() const;
};

Digest256 sha256(std::span<const std::byte> data);
/// Of a whole file, read once in pieces. Errors: file_missing, io_failed, cancelled.
Result<Digest256> sha256_file(const std::filesystem::path& path, const ProgressSink& progress = {},
                              const CancelFlag* cancel = nullptr);

}  // namespace modeld

template <>
struct std::hash<modeld::Digest128> {
  std::size_t operator()(const modeld::Digest128& d) const noexcept { return d.low; }
};
