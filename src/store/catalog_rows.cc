#include "store/catalog_rows.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace modeld {

void require(bool as_written, std::string_view what) {
  if (!as_written) throw Changed{what};
}

KeyBytes key_bytes(const Digest128& key) {
  KeyBytes bytes;
  std::memcpy(bytes.data(), &key.high, sizeof key.high);
  std::memcpy(bytes.data() + sizeof key.high, &key.low, sizeof key.low);
  return bytes;
}

Digest128 key_in(const SQLite::Column& column) {
  Digest128 key;
  if (column.getBytes() != static_cast<int>(sizeof key)) return key;
  const auto* from = static_cast<const std::byte*>(column.getBlob());
  std::memcpy(&key.high, from, sizeof key.high);
  std::memcpy(&key.low, from + sizeof key.high, sizeof key.low);
  return key;
}

StreamRange range_in(SQLite::Statement& row, int first) {
  return {StreamPos(row.getColumn(first).getInt64()), StreamPos(row.getColumn(first + 1).getInt64())};
}

std::string to_json(const Identity& identity) {
  const nlohmann::json json = {{"engine", identity.engine},          {"model", identity.model},
                               {"tokenizer", identity.tokenizer},    {"chat_template", identity.chat_template},
                               {"adds_bos", identity.adds_bos},      {"adapters", identity.adapters},
                               {"kv_type", identity.kv_type},        {"rope", identity.rope},
                               {"calibration", identity.calibration}};
  return json.dump();
}

/// An identity that cannot be read is none, which equals no model's.
Identity identity_in(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  Identity identity;
  if (!json.is_object()) return identity;
  const auto read = [&](const char* field, std::string& into) {
    if (json.contains(field) && json[field].is_string()) into = json[field].get<std::string>();
  };
  read("engine", identity.engine);
  read("model", identity.model);
  read("tokenizer", identity.tokenizer);
  read("chat_template", identity.chat_template);
  read("kv_type", identity.kv_type);
  read("rope", identity.rope);
  read("calibration", identity.calibration);
  identity.adds_bos = json.value("adds_bos", nlohmann::json(false)) == true;
  for (const nlohmann::json& adapter : json.value("adapters", nlohmann::json::array())) {
    if (adapter.is_array() && adapter.size() == 2 && adapter[0].is_string() && adapter[1].is_number())
      identity.adapters.emplace_back(adapter[0].get<std::string>(), adapter[1].get<float>());
  }
  return identity;
}

SessionRow session_in(SQLite::Statement& row) {
  SessionRow session;
  session.id = row.getColumn(0).getInt64();
  session.name = row.getColumn(1).getString();
  session.identity = identity_in(row.getColumn(2).getString());
  session.form = row.getColumn(3).getString();
  session.created = row.getColumn(4).getInt64();
  session.used = row.getColumn(5).getInt64();
  session.sinks = row.getColumn(6).getInt64();
  session.indexed = row.getColumn(7).getInt64();
  session.turn = static_cast<std::uint64_t>(row.getColumn(8).getInt64());
  session.former = row.getColumn(9).getInt64();
  session.tokens = row.getColumn(10).getInt64();
  return session;
}

Digest128 checksum_of(const PartRow& part) {
  return Hasher()
      .number(static_cast<std::uint64_t>(part.range.begin.get()))
      .number(static_cast<std::uint64_t>(part.range.end.get()))
      .text(part.name)
      .number(static_cast<std::uint64_t>(part.kind))
      .number(static_cast<std::uint64_t>(part.cls))
      .number(part.header_bytes)
      .text(part.text)
      .values(std::span(part.tokens))
      .values(std::span(part.offsets))
      .values(std::span(part.boundaries))
      .finish();
}

Digest128 checksum_of(const BlockRow& block) {
  return Hasher()
      .number(static_cast<std::uint64_t>(block.range.begin.get()))
      .number(static_cast<std::uint64_t>(block.range.end.get()))
      .number(block.segment)
      .number(static_cast<std::uint64_t>(block.cls))
      .number(static_cast<std::uint64_t>(block.origin))
      .digest(block.key)
      .bytes(block.meaning)
      .finish();
}

PayloadRow payload_in(SQLite::Statement& row) { return {key_in(row.getColumn(0)), row.getColumn(1).getInt64()}; }

}  // namespace modeld
