#include "session/durable.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace modeld {

BlockForm form_of(const ReadingPolicy& policy, std::string_view embedder) {
  return {policy.origin, policy.sinks, policy.run_up, policy.stream_window, std::string(embedder)};
}

std::string to_json(const BlockForm& form) {
  const nlohmann::json json = {{"origin", to_text(form.origin)},
                               {"sinks", form.sinks},
                               {"run_up", form.run_up},
                               {"stream_window", form.stream_window},
                               {"embedder", form.embedder}};
  return json.dump();
}

Result<BlockForm> form_from_json(std::string_view json) {
  const auto damaged = [] {
    return fail(ErrorCode::state_damaged, "How the session's blocks are made cannot be read from the books.");
  };
  const nlohmann::json read = nlohmann::json::parse(json, nullptr, false);
  if (!read.is_object()) return damaged();
  BlockForm form;
  const auto number = [&](const char* field, std::int32_t& into) {
    if (!read.contains(field) || !read[field].is_number_integer()) return false;
    const auto value = read[field].get<std::int64_t>();
    into = static_cast<std::int32_t>(value);
    return value >= 0 && value == into;
  };
  if (!number("sinks", form.sinks) || !number("run_up", form.run_up) || !number("stream_window", form.stream_window))
    return damaged();
  if (read.value("origin", nlohmann::json()) == to_text(KvOrigin::streamed)) {
    form.origin = KvOrigin::streamed;
  } else if (read.value("origin", nlohmann::json()) != to_text(KvOrigin::isolated)) {
    return damaged();
  }
  if (!read.contains("embedder") || !read["embedder"].is_string()) return damaged();
  form.embedder = read["embedder"].get<std::string>();
  return form;
}

Result<std::unique_ptr<Durable>> Durable::open(State& state, std::string_view name, const Identity& identity,
                                               const BlockForm& form) {
  Result<SessionRow> found = state.books().session(name);
  if (!found && found.error().code == ErrorCode::session_missing)
    found = state.add_session(name, identity, to_json(form));
  if (!found) return tl::unexpected(std::move(found).error());
  SessionRow row = std::move(*found);
  // What the calibration decides is the index alone: take_blocks() sees to it.
  Identity stored = row.identity;
  stored.calibration = identity.calibration;
  if (const std::string differs = difference(stored, identity); !differs.empty()) {
    return fail(ErrorCode::payload_invalid,
                fmt::format("Session \"{}\" cannot go on. {} Use what it was made with, or begin another session.",
                            name, differs));
  }
  MODELD_TRY(BlockForm made, form_from_json(row.form));
  if (made.embedder != form.embedder) {
    const auto named = [](const std::string& embedder) { return embedder.empty() ? "none" : embedder; };
    return fail(ErrorCode::bad_argument,
                fmt::format("Session \"{}\" was made with the embedder {}, this is {}. Give --embedder as then, or "
                            "begin another session.",
                            name, named(made.embedder), named(form.embedder)));
  }
  return std::unique_ptr<Durable>(new Durable(state, std::move(row), identity, std::move(made)));
}

Result<std::vector<PartRow>> Durable::take_parts() {
  MODELD_TRY(std::vector<PartRow> parts, state_.books().parts(row_.id));
  parts_ = parts.size();
  return parts;
}

Result<StoredBlocks> Durable::read_blocks(const SessionRow& row) const {
  StoredBlocks stored;
  stored.tokens = row.indexed;
  stored.sinks = row.sinks;
  if (row.indexed > 0 && row.identity.calibration != identity_.calibration)
    return fail(ErrorCode::state_damaged, "The recall index was made for other retrieval heads.");
  MODELD_TRY(stored.blocks, state_.books().blocks(row.id));
  std::int64_t end = row.sinks;
  for (const BlockRow& block : stored.blocks) {
    if (block.range.begin.get() != end || block.range.empty())
      return fail(ErrorCode::state_damaged, fmt::format("The blocks of session \"{}\" do not follow.", row_.name));
    end = block.range.end.get();
  }
  if (end != row.indexed || row.sinks > row.tokens || end > row.tokens)
    return fail(
        ErrorCode::state_damaged,
        fmt::format("The blocks of session \"{}\" end at token {}, its index at {}.", row_.name, end, row.indexed),
        {{"block_tokens", end}, {"index_tokens", row.indexed}});
  MODELD_TRY(stored.index, state_.read_index(row));
  return stored;
}

Result<StoredBlocks> Durable::take_blocks() {
  MODELD_TRY(StoredBlocks stored, read_blocks(row_));
  blocks_ = stored.blocks.size();
  return stored;
}

Result<std::vector<StoredBlocks>> Durable::take_formers() {
  MODELD_TRY(const std::vector<SessionRow> rows, state_.formers(row_));
  std::vector<StoredBlocks> formers;
  for (const SessionRow& row : rows) {
    MODELD_TRY(StoredBlocks stored, read_blocks(row));
    formers.push_back(std::move(stored));
  }
  return formers;
}

void Durable::forget_formers() {
  // Those that are there are still needed where the stream that follows them could not be written.
  if (replaced_ || row_.former == 0) return;
  const Status forgotten = state_.forget_formers(row_);
  note(forgotten);
  if (forgotten) row_.former = 0;
}

void Durable::note(const Status& status) {
  if (!status) note(status.error());
}

Status Durable::begin_again() {
  MODELD_TRY_VOID(state_.begin_again(row_.id, identity_, to_json(form_)));
  blocks_ = 0;
  row_.sinks = 0;
  row_.indexed = 0;
  row_.identity = identity_;
  return {};
}

void Durable::replace() {
  replaced_ = true;
  parts_ = 0;
  blocks_ = 0;
}

void Durable::save(const DoneStream& done) { note(write(done)); }

Status Durable::write(const DoneStream& done) {
  since_written_ = Stopwatch();
  if (replaced_) {
    const std::vector<PartRow> rows = done.text.rows(0);
    MODELD_TRY(row_, state_.replace_session(row_, rows));
    parts_ = rows.size();
    replaced_ = false;
  }
  if (parts_ < done.text.part_count()) {
    const std::vector<PartRow> rows = done.text.rows(parts_);
    MODELD_TRY_VOID(state_.add_parts(row_.id, rows));
    parts_ += rows.size();
  }
  if (blocks_ == done.blocks.size() && row_.sinks == done.index.sinks_end().get()) return {};
  std::vector<BlockRow> rows;
  for (std::size_t b = blocks_; b < done.blocks.size(); ++b) {
    const std::optional<BlockRecord> record = done.store.record(done.id, done.blocks[b].range);
    if (!record) return fail(ErrorCode::internal, "A block that is to be saved is not in the store.");
    BlockRow row;
    row.range = record->range;
    row.segment = done.blocks[b].segment;
    row.cls = record->cls;
    row.origin = record->origin;
    row.key = record->key;
    row.last_use = record->last_use;
    row.fetches = record->fetches;
    if (done.index.meaning() != nullptr) row.meaning = done.index.meaning()->bytes_of(b);
    rows.push_back(std::move(row));
  }
  State::Progress progress;
  progress.session = row_.id;
  progress.sinks = done.index.sinks_end().get();
  const KeyIndex& keys = done.index.keys();
  progress.indexed = keys.tokens();
  progress.blocks = rows;
  progress.first_piece = row_.indexed / KeyIndex::kPieceTokens;
  progress.piece_bytes = keys.piece_bytes();
  const std::vector<std::byte> pieces = keys.pieces(progress.first_piece);
  const std::vector<std::byte> tail = keys.tail();
  progress.pieces = pieces;
  progress.tail = tail;
  MODELD_TRY_VOID(state_.commit(progress));
  blocks_ = done.blocks.size();
  row_.sinks = progress.sinks;
  row_.indexed = progress.indexed;
  return {};
}

void Durable::touch(std::uint64_t turn, std::span<const StreamPos> fetched) {
  note(state_.touch(row_.id, turn, fetched));
}

std::optional<KvPayload> Durable::kept(KeptSlot slot, const BlockKey& key) {
  Result<KvPayload> payload = state_.read(key);
  if (!payload) {
    note(std::move(payload).error());
    return std::nullopt;
  }
  const auto extras = state_.books().extras(row_.id);
  const bool own = extras && std::any_of(extras->begin(), extras->end(), [&](const ExtraRow& extra) {
                     return extra.slot == static_cast<std::int64_t>(slot) && extra.key == key;
                   });
  if (!own) keep(slot, key, *payload);
  return std::move(*payload);
}

void Durable::keep(KeptSlot slot, const BlockKey& key, const KvPayload& payload) {
  note(state_.keep_extra(row_.id, static_cast<std::int64_t>(slot), key, payload));
}

}  // namespace modeld
