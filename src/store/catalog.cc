#include "store/catalog.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "store/catalog_rows.h"
#include "store/fault.h"

namespace modeld {
namespace {

constexpr int kVersion = 1;

// Ranges are [first, past). A checksum is of the row's other columns but the session (and, of a block, its use): SQLite
// tells a broken page, not a bit of a text that flipped. `extra` are payloads that a session keeps beside its blocks,
// one a slot.
constexpr const char* kSchema = R"(
CREATE TABLE session(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, identity TEXT NOT NULL, form TEXT NOT NULL,
  created INTEGER NOT NULL, used INTEGER NOT NULL, sinks INTEGER NOT NULL DEFAULT 0,
  indexed INTEGER NOT NULL DEFAULT 0, turn INTEGER NOT NULL DEFAULT 0,
  former INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE part(
  session INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE, first INTEGER NOT NULL, past INTEGER NOT NULL,
  name TEXT NOT NULL, kind INTEGER NOT NULL, class INTEGER NOT NULL, header INTEGER NOT NULL, text BLOB NOT NULL,
  tokens BLOB NOT NULL, offsets BLOB NOT NULL, boundaries BLOB NOT NULL, checksum BLOB NOT NULL,
  PRIMARY KEY(session, first)) STRICT;
CREATE TABLE block(
  session INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE, first INTEGER NOT NULL, past INTEGER NOT NULL,
  segment INTEGER NOT NULL, class INTEGER NOT NULL, origin INTEGER NOT NULL, key BLOB NOT NULL,
  used INTEGER NOT NULL, fetches INTEGER NOT NULL, meaning BLOB NOT NULL, checksum BLOB NOT NULL,
  PRIMARY KEY(session, first)) STRICT;
CREATE INDEX block_of_key ON block(key);
CREATE TABLE piece(
  session INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE, piece INTEGER NOT NULL, bytes INTEGER NOT NULL,
  checksum BLOB NOT NULL,
  PRIMARY KEY(session, piece)) STRICT;
CREATE TABLE tail(
  session INTEGER NOT NULL PRIMARY KEY REFERENCES session(id) ON DELETE CASCADE, keys BLOB NOT NULL,
  checksum BLOB NOT NULL) STRICT;
CREATE TABLE extra(
  session INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE, slot INTEGER NOT NULL, key BLOB NOT NULL,
  PRIMARY KEY(session, slot)) STRICT;
CREATE INDEX extra_of_key ON extra(key);
CREATE TABLE payload(key BLOB NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
)";

constexpr const char* kSessionColumns =
    "SELECT id, coalesce(name, ''), identity, form, created, used, sinks, indexed, turn, former, "
    "(SELECT coalesce(max(past), 0) FROM part WHERE part.session = session.id) FROM session ";

tl::unexpected<Error> as_error(const SQLite::Exception& problem, const std::string& file) {
  const int code = problem.getErrorCode();
  const std::string what = problem.what();
  if (code == SQLITE_FULL) {
    return fail(ErrorCode::disk_full,
                fmt::format("Writing {} failed: {}. Free some room there, or give --state a directory on another disk.",
                            file, what));
  }
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
    return fail(ErrorCode::state_damaged, fmt::format("{} is damaged: {}.", file, what));
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return fail(ErrorCode::state_locked, fmt::format("{} is in use by another program: {}.", file, what));
  if (code == SQLITE_READONLY || code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_PERM)
    return fail(ErrorCode::io_failed, fmt::format("{} cannot be read or written: {}.", file, what));
  return fail(ErrorCode::internal, fmt::format("The books of {} do not take a statement: {}.", file, what));
}

}  // namespace

struct Catalog::Impl {
  explicit Impl(const std::filesystem::path& path)
      : file(path.string()), db(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, /*aBusyTimeoutMs=*/1000) {}

  std::string file;
  // Statements are prepared in const calls too.
  mutable SQLite::Database db;

  /// Runs `body`, whose exceptions become errors.
  template <typename Body>
  auto guarded(Body body) const -> decltype(body()) {
    try {
      return body();
    } catch (const SQLite::Exception& problem) {
      return as_error(problem, file);
    } catch (const Changed& row) {
      return fail(ErrorCode::state_damaged,
                  fmt::format("The row of {} in {} has changed since it was written.", row.what, file));
    }
  }
  /// Runs `body` as one transaction.
  template <typename Body>
  Status atomically(Body body) {
    return guarded([&]() -> Status {
      SQLite::Transaction transaction(db);
      body();
      if (const int error = fault_at(FaultPoint::commit))
        return fail(error == ENOSPC ? ErrorCode::disk_full : ErrorCode::io_failed,
                    fmt::format("Writing {} failed.", file));
      transaction.commit();
      return {};
    });
  }
  template <typename Row, typename Read>
  Result<std::vector<Row>> all(const char* sql, std::optional<std::int64_t> session, Read read) const {
    return guarded([&]() -> Result<std::vector<Row>> {
      SQLite::Statement query(db, sql);
      if (session) query.bind(1, *session);
      std::vector<Row> rows;
      while (query.executeStep()) rows.push_back(read(query));
      return rows;
    });
  }
  void add_parts(std::int64_t session, std::span<const PartRow> parts);
  void add_block(SQLite::Statement& insert, std::int64_t session, const BlockRow& block) const;
  void add_payload(SQLite::Statement& insert, const PayloadRow& payload) const;
};

namespace {

constexpr const char* kAddPayload = "INSERT OR REPLACE INTO payload VALUES(?, ?)";

}  // namespace

void Catalog::Impl::add_block(SQLite::Statement& insert, std::int64_t session, const BlockRow& block) const {
  const KeyBytes key = key_bytes(block.key);
  const KeyBytes checksum = key_bytes(checksum_of(block));
  Bind(insert)
      .number(session)
      .number(block.range.begin.get())
      .number(block.range.end.get())
      .number(block.segment)
      .number(static_cast<int>(block.cls))
      .number(static_cast<int>(block.origin))
      .bytes(key)
      .number(static_cast<std::int64_t>(block.last_use))
      .number(block.fetches)
      .bytes(block.meaning)
      .bytes(checksum);
  insert.exec();
}

void Catalog::Impl::add_parts(std::int64_t session, std::span<const PartRow> parts) {
  SQLite::Statement insert(db, "INSERT INTO part VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const PartRow& part : parts) {
    const KeyBytes checksum = key_bytes(checksum_of(part));
    Bind(insert)
        .number(session)
        .number(part.range.begin.get())
        .number(part.range.end.get())
        .text(part.name)
        .number(static_cast<int>(part.kind))
        .number(static_cast<int>(part.cls))
        .number(part.header_bytes)
        .bytes(std::as_bytes(std::span(part.text)))
        .bytes(std::as_bytes(std::span(part.tokens)))
        .bytes(std::as_bytes(std::span(part.offsets)))
        .bytes(std::as_bytes(std::span(part.boundaries)))
        .bytes(checksum);
    insert.exec();
  }
}

void Catalog::Impl::add_payload(SQLite::Statement& insert, const PayloadRow& payload) const {
  const KeyBytes key = key_bytes(payload.key);
  Bind(insert).bytes(key).number(payload.bytes);
  insert.exec();
}

Catalog::Catalog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Catalog::~Catalog() = default;

Result<std::unique_ptr<Catalog>> Catalog::open(const std::filesystem::path& file) {
  try {
    auto impl = std::make_unique<Impl>(file);
    SQLite::Database& db = impl->db;
    db.exec("PRAGMA journal_mode=WAL");
    db.exec("PRAGMA synchronous=FULL");
    db.exec("PRAGMA secure_delete=ON");
    db.exec("PRAGMA foreign_keys=ON");
    const int version = db.execAndGet("PRAGMA user_version").getInt();
    if (version > kVersion) {
      return fail(ErrorCode::state_damaged,
                  fmt::format("{} was written by a later modeld (version {}; this one reads {}). Use that one.",
                              file.string(), version, kVersion),
                  {{"version", version}});
    }
    if (version == 0) {
      SQLite::Transaction transaction(db);
      db.exec(kSchema);
      db.exec(fmt::format("PRAGMA user_version={}", kVersion));
      transaction.commit();
    }
    return std::unique_ptr<Catalog>(new Catalog(std::move(impl)));
  } catch (const SQLite::Exception& problem) {
    return as_error(problem, file.string());
  }
}

Result<std::vector<SessionRow>> Catalog::sessions() const {
  const std::string sql = std::string(kSessionColumns) + "WHERE name IS NOT NULL ORDER BY used DESC, id DESC";
  return impl_->all<SessionRow>(sql.c_str(), std::nullopt, session_in);
}

Result<std::vector<SessionRow>> Catalog::all_sessions() const {
  return impl_->all<SessionRow>(kSessionColumns, std::nullopt, session_in);
}

Result<SessionRow> Catalog::session(std::string_view name) const {
  return impl_->guarded([&]() -> Result<SessionRow> {
    SQLite::Statement query(impl_->db, std::string(kSessionColumns) + "WHERE name = ?");
    query.bind(1, std::string(name));
    if (query.executeStep()) return session_in(query);
    return fail(ErrorCode::session_missing,
                fmt::format("There is no session \"{}\". \"modeld sessions list\" names those that there are.", name));
  });
}

Status Catalog::check_free(std::string_view name) const {
  const auto there = session(name);
  if (there) return fail(ErrorCode::session_exists, fmt::format("There is a session \"{}\" already.", name));
  if (there.error().code != ErrorCode::session_missing) return tl::unexpected(there.error());
  return {};
}

Result<SessionRow> Catalog::add_session(std::string_view name, const Identity& identity, std::string_view form,
                                        std::int64_t now) {
  MODELD_TRY_VOID(check_free(name));
  MODELD_TRY_VOID(impl_->atomically([&] {
    SQLite::Statement insert(impl_->db,
                             "INSERT INTO session(name, identity, form, created, used) VALUES(?, ?, ?, ?, ?)");
    Bind(insert).text(name).text(to_json(identity)).text(form).number(now).number(now);
    insert.exec();
  }));
  return session(name);
}

Result<SessionRow> Catalog::copy_session(const SessionRow& from, std::string_view name, std::int64_t now) {
  MODELD_TRY_VOID(check_free(name));
  MODELD_TRY_VOID(impl_->atomically([&] {
    SQLite::Statement insert(impl_->db,
                             "INSERT INTO session(name, identity, form, created, used, sinks, indexed, turn) "
                             "SELECT ?, identity, form, ?, ?, sinks, indexed, turn FROM session WHERE id = ?");
    Bind(insert).text(name).number(now).number(now).number(from.id);
    insert.exec();
    const std::int64_t copy = impl_->db.getLastInsertRowid();
    for (const char* sql :
         {"INSERT INTO part SELECT ?, first, past, name, kind, class, header, text, tokens, offsets, boundaries, "
          "checksum FROM part WHERE session = ?",
          "INSERT INTO block SELECT ?, first, past, segment, class, origin, key, used, fetches, meaning, "
          "checksum FROM block WHERE session = ?",
          "INSERT INTO piece SELECT ?, piece, bytes, checksum FROM piece WHERE session = ?",
          "INSERT INTO tail SELECT ?, keys, checksum FROM tail WHERE session = ?",
          "INSERT INTO extra SELECT ?, slot, key FROM extra WHERE session = ?"}) {
      SQLite::Statement copies(impl_->db, sql);
      Bind(copies).number(copy).number(from.id);
      copies.exec();
    }
  }));
  return session(name);
}

Status Catalog::remove_session(std::int64_t id) {
  return impl_->atomically([&] {
    SQLite::Statement remove(impl_->db, "DELETE FROM session WHERE id = ?");
    remove.bind(1, id);
    remove.exec();
  });
}

Result<SessionRow> Catalog::replace_session(const SessionRow& from, std::span<const PartRow> parts, std::int64_t now) {
  MODELD_TRY_VOID(impl_->atomically([&] {
    SQLite::Statement unname(impl_->db, "UPDATE session SET name = NULL WHERE id = ?");
    Bind(unname).number(from.id);
    unname.exec();
    SQLite::Statement insert(impl_->db,
                             "INSERT INTO session(name, identity, form, created, used, turn, former) "
                             "SELECT ?, identity, form, created, ?, turn, id FROM session WHERE id = ?");
    Bind(insert).text(from.name).number(now).number(from.id);
    insert.exec();
    impl_->add_parts(impl_->db.getLastInsertRowid(), parts);
  }));
  return session(from.name);
}

Status Catalog::forget_former(std::int64_t session) {
  return impl_->atomically([&] {
    SQLite::Statement forget(impl_->db, "UPDATE session SET former = 0 WHERE id = ?");
    Bind(forget).number(session);
    forget.exec();
  });
}

Status Catalog::add_parts(std::int64_t session, std::span<const PartRow> parts) {
  return impl_->atomically([&] { impl_->add_parts(session, parts); });
}

Result<std::vector<PartRow>> Catalog::parts(std::int64_t session) const {
  return impl_->all<PartRow>(
      "SELECT first, past, name, kind, class, header, text, tokens, offsets, boundaries, checksum FROM part WHERE "
      "session = ? "
      "ORDER BY first",
      session, [](SQLite::Statement& row) {
        PartRow part;
        part.range = range_in(row, 0);
        part.name = row.getColumn(2).getString();
        part.kind = enum_in<SegmentKind>(row.getColumn(3));
        part.cls = enum_in<CacheClass>(row.getColumn(4));
        part.header_bytes = row.getColumn(5).getUInt();
        const std::vector<char> text = values_in<char>(row.getColumn(6));
        part.text.assign(text.begin(), text.end());
        part.tokens = values_in<Token>(row.getColumn(7));
        part.offsets = values_in<std::uint32_t>(row.getColumn(8));
        part.boundaries = values_in<Boundary>(row.getColumn(9));
        require(key_in(row.getColumn(10)) == checksum_of(part), "a text");
        return part;
      });
}

Result<std::vector<BlockRow>> Catalog::blocks(std::int64_t session) const {
  return impl_->all<BlockRow>(
      "SELECT first, past, segment, class, origin, key, used, fetches, meaning, checksum FROM block WHERE session = ? "
      "ORDER BY first",
      session, [](SQLite::Statement& row) {
        BlockRow block;
        block.range = range_in(row, 0);
        block.segment = row.getColumn(2).getUInt();
        block.cls = enum_in<CacheClass>(row.getColumn(3));
        block.origin = enum_in<KvOrigin>(row.getColumn(4));
        block.key = key_in(row.getColumn(5));
        block.last_use = static_cast<std::uint64_t>(row.getColumn(6).getInt64());
        block.fetches = row.getColumn(7).getUInt();
        block.meaning = values_in<std::byte>(row.getColumn(8));
        require(key_in(row.getColumn(9)) == checksum_of(block), "a block");
        return block;
      });
}

Result<std::vector<PieceRow>> Catalog::pieces(std::int64_t session) const {
  return impl_->all<PieceRow>(
      "SELECT piece, bytes, checksum FROM piece WHERE session = ? ORDER BY piece", session, [](SQLite::Statement& row) {
        return PieceRow{row.getColumn(0).getInt64(), row.getColumn(1).getInt64(), key_in(row.getColumn(2))};
      });
}

Result<std::vector<std::byte>> Catalog::tail(std::int64_t session) const {
  using Tail = std::vector<std::byte>;
  MODELD_TRY(std::vector<Tail> tails,
             impl_->all<Tail>("SELECT keys, checksum FROM tail WHERE session = ?", session, [](SQLite::Statement& row) {
               Tail tail = values_in<std::byte>(row.getColumn(0));
               require(key_in(row.getColumn(1)) == digest_of(tail), "a recall index");
               return tail;
             }));
  return tails.empty() ? Tail() : std::move(tails.front());
}

Status Catalog::add_progress(const Progress& progress) {
  return impl_->atomically([&] {
    SQLite::Statement block(impl_->db, "INSERT INTO block VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const BlockRow& row : progress.blocks) impl_->add_block(block, progress.session, row);
    SQLite::Statement payload(impl_->db, kAddPayload);
    for (const PayloadRow& row : progress.payloads) impl_->add_payload(payload, row);
    SQLite::Statement piece(impl_->db, "INSERT OR REPLACE INTO piece VALUES(?, ?, ?, ?)");
    for (const PieceRow& row : progress.pieces) {
      const KeyBytes checksum = key_bytes(row.checksum);
      Bind(piece).number(progress.session).number(row.piece).number(row.bytes).bytes(checksum);
      piece.exec();
    }
    const KeyBytes checksum = key_bytes(digest_of(progress.tail));
    SQLite::Statement tail(impl_->db, "INSERT OR REPLACE INTO tail VALUES(?, ?, ?)");
    Bind(tail).number(progress.session).bytes(progress.tail).bytes(checksum);
    tail.exec();
    SQLite::Statement session(impl_->db, "UPDATE session SET sinks = ?, indexed = ? WHERE id = ?");
    Bind(session).number(progress.sinks).number(progress.indexed).number(progress.session);
    session.exec();
  });
}

Status Catalog::begin_again(std::int64_t session, const Identity& identity, std::string_view form) {
  return impl_->atomically([&] {
    for (const char* sql : {"DELETE FROM block WHERE session = ?", "DELETE FROM piece WHERE session = ?",
                            "DELETE FROM tail WHERE session = ?", "DELETE FROM extra WHERE session = ?"}) {
      SQLite::Statement statement(impl_->db, sql);
      statement.bind(1, session);
      statement.exec();
    }
    SQLite::Statement update(impl_->db,
                             "UPDATE session SET sinks = 0, indexed = 0, identity = ?, form = ? WHERE id = ?");
    Bind(update).text(to_json(identity)).text(form).number(session);
    update.exec();
  });
}

Status Catalog::touch(std::int64_t session, std::uint64_t turn, std::int64_t now, std::span<const StreamPos> fetched) {
  return impl_->atomically([&] {
    SQLite::Statement update(impl_->db,
                             "UPDATE block SET used = ?, fetches = fetches + 1 WHERE session = ? AND first = ?");
    for (const StreamPos begin : fetched) {
      Bind(update).number(static_cast<std::int64_t>(turn)).number(session).number(begin.get());
      update.exec();
    }
    SQLite::Statement used(impl_->db, "UPDATE session SET turn = ?, used = ? WHERE id = ?");
    Bind(used).number(static_cast<std::int64_t>(turn)).number(now).number(session);
    used.exec();
  });
}

Status Catalog::set_extra(std::int64_t session, std::int64_t slot, const PayloadRow& payload) {
  return impl_->atomically([&] {
    SQLite::Statement add(impl_->db, kAddPayload);
    impl_->add_payload(add, payload);
    SQLite::Statement insert(impl_->db, "INSERT OR REPLACE INTO extra VALUES(?, ?, ?)");
    const KeyBytes key = key_bytes(payload.key);
    Bind(insert).number(session).number(slot).bytes(key);
    insert.exec();
  });
}

Result<std::vector<ExtraRow>> Catalog::extras(std::int64_t session) const {
  return impl_->all<ExtraRow>(
      "SELECT slot, key FROM extra WHERE session = ? ORDER BY slot", session,
      [](SQLite::Statement& row) { return ExtraRow{row.getColumn(0).getInt64(), key_in(row.getColumn(1))}; });
}

Result<std::vector<PayloadRow>> Catalog::payloads() const {
  return impl_->all<PayloadRow>("SELECT key, bytes FROM payload", std::nullopt, payload_in);
}

Status Catalog::remove_payloads(std::span<const BlockKey> keys) {
  return impl_->atomically([&] {
    SQLite::Statement remove(impl_->db, "DELETE FROM payload WHERE key = ?");
    for (const BlockKey& key : keys) {
      const KeyBytes bytes = key_bytes(key);
      Bind(remove).bytes(bytes);
      remove.exec();
    }
  });
}

Result<std::vector<PayloadRow>> Catalog::orphans() const {
  return impl_->all<PayloadRow>(
      "SELECT key, bytes FROM payload WHERE NOT EXISTS (SELECT 1 FROM block WHERE block.key = payload.key) "
      "AND NOT EXISTS (SELECT 1 FROM extra WHERE extra.key = payload.key)",
      std::nullopt, payload_in);
}

Result<std::vector<PayloadRow>> Catalog::by_worth() const {
  return impl_->all<PayloadRow>(
      "SELECT payload.key, payload.bytes FROM payload LEFT JOIN block ON block.key = payload.key "
      "LEFT JOIN session ON session.id = block.session "
      "WHERE NOT EXISTS (SELECT 1 FROM extra WHERE extra.key = payload.key) GROUP BY payload.key "
      "ORDER BY coalesce(min(block.class), 255) DESC, coalesce(sum(block.fetches), 0), "
      "coalesce(max(session.used), 0), coalesce(max(block.used), 0), coalesce(max(block.first), 0) DESC",
      std::nullopt, payload_in);
}

Status Catalog::settle() {
  return impl_->guarded([&]() -> Status {
    impl_->db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    return {};
  });
}

Result<std::string> Catalog::check_integrity() const {
  return impl_->guarded([&]() -> Result<std::string> {
    const std::string found = impl_->db.execAndGet("PRAGMA integrity_check").getString();
    return found == "ok" ? std::string() : found;
  });
}

}  // namespace modeld
