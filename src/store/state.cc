#include "store/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "store/fault.h"
#include "store/kv_file.h"

namespace modeld {
namespace {

constexpr const char* kBooks = "books.sqlite";
/// More than any index's piece takes: a number that is beyond it was not written by us.
constexpr std::int64_t kLargestPiece = std::int64_t{1} << 30;
/// What a commit may add to the journal beside its rows: the pages that lead to them. Always kept free.
constexpr std::int64_t kJournalRoom = std::int64_t{64} << 10;
/// A journal of this size is written into the books.
constexpr std::int64_t kJournalLimit = std::int64_t{1} << 20;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The one owner of a directory holds its lock; the system lets go of it when the owner ends, however it ends.
Result<FileHandle> take_lock(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "lock";
  FileHandle lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) return file_error(path, "Opening", errno);
  if (::flock(lock.fd(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return file_error(path, "Locking", errno);
  return fail(ErrorCode::state_locked,
              fmt::format("Another modeld uses {}. End it, or give --state another directory.", directory.string()));
}

/// Files of a folder, whatever they are; none where it is missing.
Result<std::vector<std::filesystem::path>> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator it(folder, error);
  if (error == std::errc::no_such_file_or_directory) return files;
  for (; !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error))
    if (it->symlink_status(error).type() != std::filesystem::file_type::directory) files.push_back(it->path());
  if (error) return file_error(folder, "Reading", error.value());
  return files;
}

std::int64_t size_or_none(const std::filesystem::path& path) {
  const auto bytes = file_bytes(path);
  return bytes ? static_cast<std::int64_t>(*bytes) : 0;
}

std::int64_t file_bytes_of(const KvPayload& payload) {
  return static_cast<std::int64_t>(kKvHeaderBytes + payload.data.size());
}

std::int64_t bytes_of(const PartRow& part) {
  return static_cast<std::int64_t>(part.text.size() + part.tokens.size() * sizeof(Token) +
                                   part.offsets.size() * sizeof(std::uint32_t) + part.boundaries.size());
}

std::int64_t bytes_of(const BlockRow& block) {
  return static_cast<std::int64_t>(sizeof(BlockRow) + block.meaning.size());
}

}  // namespace

State::State(std::filesystem::path directory, FileHandle lock, std::unique_ptr<Catalog> catalog)
    : directory_(std::move(directory)), lock_(std::move(lock)), catalog_(std::move(catalog)) {}

State::~State() = default;

Result<std::unique_ptr<State>> State::open(const std::filesystem::path& directory, std::int64_t budget_bytes) {
  for (const std::filesystem::path& folder : {directory, directory / "kv", directory / "index"})
    MODELD_TRY_VOID(make_private_directory(folder));
  MODELD_TRY(FileHandle lock, take_lock(directory));
  {
    // Made here, so that it and what SQLite puts beside it are the owner's alone.
    const FileHandle books(::open((directory / kBooks).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!books.is_open()) return file_error(directory / kBooks, "Opening", errno);
  }
  MODELD_TRY(std::unique_ptr<Catalog> catalog, Catalog::open(directory / kBooks));
  std::unique_ptr<State> state(new State(directory, std::move(lock), std::move(catalog)));
  MODELD_TRY_VOID(state->take_stock(budget_bytes));
  // What an owner that was killed had begun to forget.
  MODELD_TRY_VOID(state->remove_orphans());
  return state;
}

Status State::take_stock(std::int64_t budget_bytes) {
  MODELD_TRY(const std::vector<PayloadRow> named, catalog_->payloads());
  std::set<std::filesystem::path> known;
  std::vector<BlockKey> lost;
  for (const PayloadRow& row : named) {
    const std::filesystem::path path = kv_path(row.key);
    if (size_or_none(path) != row.bytes) {
      lost.push_back(row.key);
      continue;
    }
    known.insert(path);
    payloads_.emplace(row.key, row.bytes);
    usage_.payload_bytes += row.bytes;
  }
  // What an owner that was killed had written and not named, and what is no payload any more.
  MODELD_TRY(const std::vector<std::filesystem::path> files, files_in(directory_ / "kv"));
  for (const std::filesystem::path& file : files)
    if (!known.contains(file)) MODELD_TRY_VOID(remove_file(file));
  if (!lost.empty()) MODELD_TRY_VOID(catalog_->remove_payloads(lost));
  MODELD_TRY(const std::vector<SessionRow> sessions, catalog_->all_sessions());
  std::set<std::filesystem::path> indexes;
  for (const SessionRow& session : sessions) indexes.insert(index_path(session.id));
  MODELD_TRY(const std::vector<std::filesystem::path> index_files, files_in(directory_ / "index"));
  for (const std::filesystem::path& file : index_files) {
    if (!indexes.contains(file)) {
      MODELD_TRY_VOID(remove_file(file));
      continue;
    }
    usage_.index_bytes += size_or_none(file);
  }
  count_books();
  if (budget_bytes == 0) {
    struct statvfs disk{};
    if (::statvfs(directory_.c_str(), &disk) != 0) return file_error(directory_, "Reading", errno);
    budget_bytes = usage_.used_bytes() + static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize / 2);
  }
  usage_.budget_bytes = budget_bytes;
  return make_room(0);
}

std::filesystem::path State::kv_path(const BlockKey& key) const {
  const std::string name = key.hex();
  return directory_ / "kv" / name.substr(0, 2) / (name + ".kv");
}

std::filesystem::path State::index_path(std::int64_t session) const {
  return directory_ / "index" / fmt::format("{}.keys", session);
}

void State::count_books() {
  usage_.book_bytes = 0;
  for (const char* suffix : {"", "-wal", "-shm"})
    usage_.book_bytes += size_or_none(directory_ / (std::string(kBooks) + suffix));
}

Status State::make_room(std::int64_t bytes) {
  const auto missing = [&] { return usage_.used_bytes() + bytes + kJournalRoom - usage_.budget_bytes; };
  if (missing() <= 0) return {};
  MODELD_TRY_VOID(catalog_->settle());
  count_books();
  const std::int64_t deficit = missing();
  if (deficit <= 0) return {};
  std::vector<PayloadRow> chosen;
  if (deficit <= usage_.payload_bytes) {
    MODELD_TRY(const std::vector<PayloadRow> worth, catalog_->by_worth());
    const std::int64_t wanted = std::max(deficit, usage_.budget_bytes / 100);
    std::int64_t freed = 0;
    for (std::size_t i = 0; i < worth.size() && freed < wanted; ++i) {
      if (!payloads_.contains(worth[i].key)) continue;
      chosen.push_back(worth[i]);
      freed += worth[i].bytes;
    }
    if (freed >= deficit) {
      usage_.drops += chosen.size();
      return forget_payloads(chosen);
    }
  }
  return fail(ErrorCode::disk_budget_exceeded,
              fmt::format("{} more bytes do not fit on disk: {} of {} are in use, and no more of them can be given up. "
                          "Give more with --disk-budget, or remove sessions (modeld sessions rm).",
                          bytes, usage_.used_bytes(), usage_.budget_bytes),
              {{"needed_bytes", bytes}, {"used_bytes", usage_.used_bytes()}, {"budget_bytes", usage_.budget_bytes}});
}

Status State::forget_payloads(std::span<const PayloadRow> payloads) {
  if (payloads.empty()) return {};
  std::vector<BlockKey> keys;
  keys.reserve(payloads.size());
  for (const PayloadRow& row : payloads) keys.push_back(row.key);
  MODELD_TRY_VOID(catalog_->remove_payloads(keys));
  for (const BlockKey& key : keys) {
    const auto known = payloads_.find(key);
    if (known == payloads_.end()) continue;
    usage_.payload_bytes -= known->second;
    payloads_.erase(known);
    std::erase_if(fresh_, [&](const PayloadRow& row) { return row.key == key; });
    // A file that stays is not named any more, and goes when the directory is opened again.
    static_cast<void>(remove_file(kv_path(key)));
  }
  return {};
}

Status State::write(const BlockKey& key, const KvPayload& payload) {
  if (holds(key)) return {};
  const std::int64_t bytes = file_bytes_of(payload);
  MODELD_TRY_VOID(make_room(bytes));
  const std::filesystem::path path = kv_path(key);
  MODELD_TRY_VOID(make_private_directory(path.parent_path()));
  const KvHeaderBytes head = encode(header_of(key, identity_, payload));
  const std::array<std::span<const std::byte>, 2> pieces = {head, payload.data};
  MODELD_TRY_VOID(write_file(path, pieces));
  payloads_.emplace(key, bytes);
  fresh_.push_back({key, bytes});
  usage_.payload_bytes += bytes;
  return {};
}

Result<KvPayload> State::read_payload(const BlockKey& key, const Digest128* identity) const {
  const std::filesystem::path path = kv_path(key);
  MODELD_TRY(const std::uint64_t bytes, file_bytes(path));
  KvHeaderBytes head{};
  MODELD_TRY_VOID(read_file(path, 0, head));
  MODELD_TRY(const KvFileHeader header, decode_kv_header(head, bytes));
  MODELD_TRY_VOID(check_expected(header, key, identity != nullptr ? *identity : header.identity));
  std::vector<std::byte> body(header.stored_bytes);
  MODELD_TRY_VOID(read_file(path, kKvHeaderBytes, body));
  return decode_kv_body(header, std::move(body));
}

Result<KvPayload> State::read(const BlockKey& key) {
  Result<KvPayload> payload = read_payload(key, &identity_);
  if (!payload && payload.error().code != ErrorCode::payload_invalid) {
    ++usage_.damaged;
    const std::array lost = {PayloadRow{key, 0}};
    // If the books cannot be written either, the file is tried again after the next start.
    static_cast<void>(forget_payloads(lost));
  }
  return payload;
}

Result<SessionRow> State::add_session(std::string_view name, const Identity& identity, std::string_view form) {
  MODELD_TRY_VOID(make_room(static_cast<std::int64_t>(name.size() + form.size())));
  auto added = catalog_->add_session(name, identity, form, now());
  count_books();
  return added;
}

Result<SessionRow> State::branch(const SessionRow& from, std::string_view name) {
  const std::filesystem::path index = index_path(from.id);
  const std::int64_t bytes = size_or_none(index);
  MODELD_TRY_VOID(make_room(bytes));
  MODELD_TRY(SessionRow copy, catalog_->copy_session(from, name, now()));
  count_books();
  if (bytes == 0) return copy;
  const std::filesystem::path target = index_path(copy.id);
  std::vector<std::byte> keys(static_cast<std::size_t>(bytes));
  Status status = read_file(index, 0, keys);
  const std::array<std::span<const std::byte>, 1> pieces = {keys};
  if (status) status = write_file(target, pieces);
  const std::array paths = {target};
  if (status) status = sync_files(paths);
  if (!status) {
    static_cast<void>(catalog_->remove_session(copy.id));
    return tl::unexpected(std::move(status).error());
  }
  usage_.index_bytes += bytes;
  return copy;
}

Status State::remove_orphans() {
  MODELD_TRY(const std::vector<PayloadRow> orphans, catalog_->orphans());
  MODELD_TRY_VOID(forget_payloads(orphans));
  MODELD_TRY_VOID(catalog_->settle());
  count_books();
  return {};
}

Status State::remove_rows(const SessionRow& session) {
  MODELD_TRY_VOID(catalog_->remove_session(session.id));
  const std::filesystem::path index = index_path(session.id);
  const std::int64_t bytes = size_or_none(index);
  MODELD_TRY_VOID(remove_file(index));
  usage_.index_bytes -= bytes;
  return {};
}

Status State::remove_session(const SessionRow& session) {
  MODELD_TRY_VOID(forget_formers(session));
  MODELD_TRY_VOID(remove_rows(session));
  return remove_orphans();
}

Result<SessionRow> State::replace_session(const SessionRow& from, std::span<const PartRow> parts) {
  MODELD_TRY_VOID(make_room_for(parts));
  MODELD_TRY(SessionRow row, catalog_->replace_session(from, parts, now()));
  MODELD_TRY_VOID(catalog_->settle());
  count_books();
  return row;
}

Result<std::vector<SessionRow>> State::formers(const SessionRow& session) const {
  std::vector<SessionRow> formers;
  if (session.former == 0) return formers;
  MODELD_TRY(const std::vector<SessionRow> all, catalog_->all_sessions());
  for (std::int64_t next = session.former; next != 0 && formers.size() < all.size();) {
    const auto row = std::find_if(all.begin(), all.end(), [&](const SessionRow& one) { return one.id == next; });
    if (row == all.end()) break;
    formers.push_back(*row);
    next = row->former;
  }
  return formers;
}

Status State::forget_formers(const SessionRow& session) {
  MODELD_TRY(const std::vector<SessionRow> rows, formers(session));
  if (session.former == 0) return {};
  // The oldest first: what is still named when this is cut short is still found.
  for (const SessionRow& row : std::views::reverse(rows)) MODELD_TRY_VOID(remove_rows(row));
  MODELD_TRY_VOID(catalog_->forget_former(session.id));
  return remove_orphans();
}

Status State::make_room_for(std::span<const PartRow> parts) {
  std::int64_t bytes = 0;
  for (const PartRow& part : parts) bytes += bytes_of(part);
  // In the journal first, then in the books.
  return make_room(2 * bytes);
}

Status State::add_parts(std::int64_t session, std::span<const PartRow> parts) {
  MODELD_TRY_VOID(make_room_for(parts));
  MODELD_TRY_VOID(catalog_->add_parts(session, parts));
  MODELD_TRY_VOID(catalog_->settle());
  count_books();
  return {};
}

Status State::commit(const Progress& progress) {
  const std::filesystem::path index = index_path(progress.session);
  std::vector<std::filesystem::path> paths;
  paths.reserve(fresh_.size() + 1);
  for (const PayloadRow& row : fresh_) paths.push_back(kv_path(row.key));
  std::vector<PieceRow> pieces;
  if (!progress.pieces.empty()) {
    const std::int64_t before = size_or_none(index);
    const std::int64_t offset = progress.first_piece * progress.piece_bytes;
    const std::int64_t grows = std::max<std::int64_t>(0, offset + std::ssize(progress.pieces) - before);
    MODELD_TRY_VOID(make_room(grows));
    MODELD_TRY_VOID(overwrite_file(index, static_cast<std::uint64_t>(offset), progress.pieces));
    usage_.index_bytes += size_or_none(index) - before;
    paths.push_back(index);
    for (std::int64_t at = 0; at < std::ssize(progress.pieces); at += progress.piece_bytes) {
      pieces.push_back({progress.first_piece + at / progress.piece_bytes, progress.piece_bytes,
                        digest_of(progress.pieces.subspan(static_cast<std::size_t>(at),
                                                          static_cast<std::size_t>(progress.piece_bytes)))});
    }
  }
  std::int64_t row_bytes = std::ssize(progress.tail);
  for (const BlockRow& row : progress.blocks) row_bytes += bytes_of(row);
  // In the journal first, then in the books.
  MODELD_TRY_VOID(make_room(2 * row_bytes));
  MODELD_TRY_VOID(sync_files(paths));
  Catalog::Progress rows;
  rows.session = progress.session;
  rows.sinks = progress.sinks;
  rows.indexed = progress.indexed;
  rows.blocks = progress.blocks;
  rows.pieces = pieces;
  rows.tail = progress.tail;
  rows.payloads = fresh_;
  MODELD_TRY_VOID(catalog_->add_progress(rows));
  fresh_.clear();
  if (size_or_none(directory_ / (std::string(kBooks) + "-wal")) > kJournalLimit) MODELD_TRY_VOID(catalog_->settle());
  count_books();
  return {};
}

Status State::keep_extra(std::int64_t session, std::int64_t slot, const BlockKey& key, const KvPayload& payload) {
  MODELD_TRY_VOID(write(key, payload));
  const std::array paths = {kv_path(key)};
  MODELD_TRY_VOID(sync_files(paths));
  MODELD_TRY_VOID(catalog_->set_extra(session, slot, {key, file_bytes_of(payload)}));
  std::erase_if(fresh_, [&](const PayloadRow& row) { return row.key == key; });
  return remove_orphans();
}

Status State::touch(std::int64_t session, std::uint64_t turn, std::span<const StreamPos> fetched) {
  MODELD_TRY_VOID(catalog_->touch(session, turn, now(), fetched));
  count_books();
  return {};
}

Status State::begin_again(std::int64_t session, const Identity& identity, std::string_view form) {
  MODELD_TRY_VOID(catalog_->begin_again(session, identity, form));
  return remove_orphans();
}

Result<std::vector<std::byte>> State::read_index(const SessionRow& session) const {
  MODELD_TRY(const std::vector<PieceRow> rows, catalog_->pieces(session.id));
  std::vector<std::byte> keys;
  const auto changed = [&](std::size_t piece) {
    return fail(ErrorCode::state_damaged,
                fmt::format("Piece {} of the recall index of session \"{}\" has changed since it was written.", piece,
                            session.name));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!std::cmp_equal(rows[i].piece, i) || rows[i].bytes <= 0 || rows[i].bytes > kLargestPiece) return changed(i);
    const std::size_t offset = keys.size();
    keys.resize(offset + static_cast<std::size_t>(rows[i].bytes));
    const auto piece = std::span(keys).subspan(offset);
    MODELD_TRY_VOID(read_file(index_path(session.id), offset, piece));
    if (rows[i].checksum != digest_of(piece)) return changed(i);
  }
  MODELD_TRY(const std::vector<std::byte> tail, catalog_->tail(session.id));
  keys.insert(keys.end(), tail.begin(), tail.end());
  return keys;
}

Result<std::vector<Damage>> State::verify() const {
  std::vector<Damage> damages;
  MODELD_TRY(const std::string books, catalog_->check_integrity());
  if (!books.empty()) damages.push_back({"", "The books are damaged: " + books});
  MODELD_TRY(const std::vector<SessionRow> sessions, catalog_->all_sessions());
  std::map<BlockKey, std::string> owners;
  for (const SessionRow& session : sessions) {
    const auto note = [&](const Error& error) { damages.push_back({session.name, error.message}); };
    if (const auto parts = catalog_->parts(session.id); !parts) note(parts.error());
    if (const auto blocks = catalog_->blocks(session.id); !blocks) {
      note(blocks.error());
    } else {
      for (const BlockRow& block : *blocks) owners.emplace(block.key, session.name);
    }
    if (const auto index = read_index(session); !index) note(index.error());
  }
  for (const auto& [key, bytes] : payloads_) {
    if (const auto payload = read_payload(key, nullptr); !payload) {
      const auto owner = owners.find(key);
      damages.push_back({owner == owners.end() ? "" : owner->second, payload.error().message});
    }
  }
  return damages;
}

DiskUsage State::usage() const { return usage_; }

}  // namespace modeld
