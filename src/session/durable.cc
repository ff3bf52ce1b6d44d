#include "session/durable.h"

#include <fmt/format.h>

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

Result<Durable::Indexed> Durable::take_blocks() {
  Indexed indexed;
  indexed.tokens = row_.indexed;
  if (row_.indexed > 0 && row_.identity.calibration != identity_.calibration)
    return fail(ErrorCode::state_damaged, "The recall index was made for other retrieval heads.");
  MODELD_TRY(indexed.blocks, state_.books().blocks(row_.id));
  std::int64_t end = row_.sinks;
  for (const BlockRow& block : indexed.blocks) {
    if (block.range.begin.get() != end || block.range.empty())
      return fail(ErrorCode::state_damaged, fmt::format("The blocks of session \"{}\" do not follow.", row_.name));
    end = block.range.end.get();
  }
  if (end != row_.indexed || row_.sinks > row_.tokens || end > row_.tokens)
    return fail(
        ErrorCode::state_damaged,
        fmt::format("The blocks of session \"{}\" end at token {}, its index at {}.", row_.name, end, row_.indexed),
        {{"block_tokens", end}, {"index_tokens", row_.indexed}});
  MODELD_TRY(indexed.index, state_.read_index(row_));
  blocks_ = indexed.blocks.size();
  return indexed;
}

Status Durable::begin_again() {
  MODELD_TRY_VOID(state_.begin_again(row_.id, identity_, to_json(form_)));
  blocks_ = 0;
  row_.sinks = 0;
  row_.indexed = 0;
  row_.identity = identity_;
  return {};
}

Status Durable::save(const DoneStream& done) {
  if (parts_ < done.text.parts()) {
    const std::vector<PartRow> rows = done.text.rows(parts_);
    MODELD_TRY_VOID(state_.add_parts(row_.id, rows));
    parts_ += rows.size();
  }
  if (blocks_ == done.blocks.size() && row_.sinks == done.sinks_end.get()) return {};
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
    if (done.sentences != nullptr) row.meaning = done.sentences->bytes_of(b);
    rows.push_back(std::move(row));
  }
  State::Progress progress;
  progress.session = row_.id;
  progress.sinks = done.sinks_end.get();
  progress.indexed = done.index.tokens();
  progress.blocks = rows;
  progress.first_piece = row_.indexed / KeyIndex::kPieceTokens;
  progress.piece_bytes = done.index.piece_bytes();
  const std::vector<std::byte> pieces = done.index.pieces(progress.first_piece);
  const std::vector<std::byte> tail = done.index.tail();
  progress.pieces = pieces;
  progress.tail = tail;
  MODELD_TRY_VOID(state_.commit(progress));
  blocks_ = done.blocks.size();
  row_.sinks = progress.sinks;
  row_.indexed = progress.indexed;
  return {};
}

Status Durable::touch(std::uint64_t turn, std::span<const StreamPos> fetched) {
  return state_.touch(row_.id, turn, fetched);
}

Status Durable::keep(KeptSlot slot, const BlockKey& key, const KvPayload& payload) {
  return state_.keep_extra(row_.id, static_cast<std::int64_t>(slot), key, payload);
}

}  // namespace modeld
