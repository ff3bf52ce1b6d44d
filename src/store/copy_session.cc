#include "store/copy_session.h"

#include <span>
#include <vector>

namespace modeld {
namespace {

Status copy_payloads(State& from, const std::vector<BlockRow>& blocks, State& to, const ProgressSink& progress,
                     const CancelFlag* cancel) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (cancel != nullptr && cancel->requested()) return fail(ErrorCode::cancelled, "Cancelled; nothing was copied.");
    if (from.holds(blocks[b].key) && !to.holds(blocks[b].key)) {
      MODELD_TRY(const KvPayload payload, from.read(blocks[b].key));
      MODELD_TRY_VOID(to.write(blocks[b].key, payload));
    }
    report(progress, "copying the session", b + 1, blocks.size(), "blocks");
  }
  return {};
}

Status copy_content(State& from, const SessionRow& session, State& to, const SessionRow& copy,
                    const ProgressSink& progress, const CancelFlag* cancel) {
  MODELD_TRY(const std::vector<PartRow> parts, from.books().parts(session.id));
  MODELD_TRY(const std::vector<BlockRow> blocks, from.books().blocks(session.id));
  MODELD_TRY(const std::vector<PieceRow> pieces, from.books().pieces(session.id));
  MODELD_TRY(const std::vector<std::byte> index, from.read_index(session));
  if (!parts.empty()) MODELD_TRY_VOID(to.add_parts(copy.id, parts));
  MODELD_TRY_VOID(copy_payloads(from, blocks, to, progress, cancel));
  State::Progress rows;
  rows.session = copy.id;
  rows.sinks = session.sinks;
  rows.indexed = session.indexed;
  rows.blocks = blocks;
  rows.piece_bytes = pieces.empty() ? 0 : pieces.front().bytes;
  const std::size_t whole = pieces.size() * static_cast<std::size_t>(rows.piece_bytes);
  rows.pieces = std::span(index).first(whole);
  rows.tail = std::span(index).subspan(whole);
  MODELD_TRY_VOID(to.commit(rows));
  MODELD_TRY(const auto extras, from.books().extras(session.id));
  for (const ExtraRow& extra : extras) {
    if (!from.holds(extra.key)) continue;
    MODELD_TRY(const KvPayload payload, from.read(extra.key));
    MODELD_TRY_VOID(to.keep_extra(copy.id, extra.slot, extra.key, payload));
  }
  return to.touch(copy.id, session.turn, {});
}

}  // namespace

Status copy_session(State& from, const SessionRow& session, State& to, std::string_view name,
                    const ProgressSink& progress, const CancelFlag* cancel) {
  const Digest128 identity = session.identity.of_payloads().digest();
  from.set_identity(identity);
  to.set_identity(identity);
  MODELD_TRY(const SessionRow copy, to.add_session(name, session.identity, session.form));
  Status copied = copy_content(from, session, to, copy, progress, cancel);
  if (!copied) static_cast<void>(to.remove_session(copy));
  return copied;
}

}  // namespace modeld
