// How rows of the books become values and back: binding, reading, checksums, the JSON of an identity. Throws
// SQLite::Exception, and Changed for a row that is not as it was written; catalog.cc converts both.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/catalog.h"

namespace modeld {

/// A row is not as it was written.
struct Changed {
  std::string_view what;
};
void require(bool as_written, std::string_view what);

/// Binds 1, 2, … in turn.
class Bind {
 public:
  explicit Bind(SQLite::Statement& statement) : statement_(statement) {
    statement_.reset();
    statement_.clearBindings();
  }
  Bind& number(std::int64_t value) {
    statement_.bind(++at_, value);
    return *this;
  }
  Bind& text(std::string_view value) {
    statement_.bind(++at_, std::string(value));
    return *this;
  }
  Bind& bytes(std::span<const std::byte> value) {
    // No bytes are a blob of length 0, not NULL.
    static constexpr std::byte kNone{};
    statement_.bindNoCopy(++at_, value.empty() ? &kNone : value.data(), static_cast<int>(value.size()));
    return *this;
  }

 private:
  SQLite::Statement& statement_;
  int at_ = 0;
};

using KeyBytes = std::array<std::byte, sizeof(Digest128)>;

template <typename T>
std::vector<T> values_in(const SQLite::Column& column) {
  const auto bytes = static_cast<std::size_t>(column.getBytes());
  std::vector<T> values(bytes / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), column.getBlob(), values.size() * sizeof(T));
  return values;
}

template <typename E>
E enum_in(const SQLite::Column& column) {
  return static_cast<E>(static_cast<std::uint8_t>(column.getInt()));
}

KeyBytes key_bytes(const Digest128& key);
Digest128 key_in(const SQLite::Column& column);
StreamRange range_in(SQLite::Statement& row, int first);
std::string to_json(const Identity& identity);
Identity identity_in(const std::string& text);
SessionRow session_in(SQLite::Statement& row);
Digest128 checksum_of(const PartRow& part);
Digest128 checksum_of(const BlockRow& block);
PayloadRow payload_in(SQLite::Statement& row);

}  // namespace modeld
