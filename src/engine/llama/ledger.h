// The book of what each sequence holds: which places, in which cells, moved or not.
//
// What:      llama.cpp trusts its caller: a wrong sequence id aborts the process, an occupied target place gives two
// cells
//            for one place. Every call of the engine is checked against this book first and entered into it afterwards.
// Invariant: pure. It knows neither llama.cpp nor tensors; two runs of the same calls give the same book.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace modeld {

class Ledger {
 public:
  /// REQUIRES sequences ≥ 1, cells ≥ 1.
  Ledger(std::int32_t sequences, std::int32_t cells);

  // ── checks: change nothing ───────────────────────────────────────────────────────────────────────────────────────

  /// Errors: engine_misuse (unknown sequence, a place that is not one past the highest), engine_no_cells.
  [[nodiscard]] Status check_compute(std::span<const BatchToken> batch) const;
  /// Errors: engine_misuse if a place is not resident, or was moved.
  [[nodiscard]] Status check_export(SeqId seq, PlaceRange places) const;
  [[nodiscard]] Status check_sequence(SeqId seq) const;
  [[nodiscard]] Status check_range(PlaceRange places) const;
  /// Errors: engine_misuse if a target place is taken; engine_no_cells.
  [[nodiscard]] Status check_admit(SeqId seq, Place at, std::int32_t tokens) const;
  /// Errors: engine_misuse if nothing is resident, a target is taken or negative, or a cell is shared.
  [[nodiscard]] Status check_rebase(SeqId seq, PlaceRange places, std::int32_t delta) const;
  /// Errors: engine_misuse if a place is not resident in `from`, or is taken in `to`.
  [[nodiscard]] Status check_share(SeqId from, SeqId to, PlaceRange places) const;

  // ── entries: REQUIRE that the check before them succeeded ────────────────────────────────────────────────────────

  void enter_compute(std::span<const BatchToken> batch);
  void enter_admit(SeqId seq, Place at, std::int32_t tokens, bool moved);
  void enter_rebase(SeqId seq, PlaceRange places, std::int32_t delta);
  void enter_share(SeqId from, SeqId to, PlaceRange places);
  void enter_evict(SeqId seq, PlaceRange places);

  // ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────

  [[nodiscard]] std::int32_t sequences() const { return static_cast<std::int32_t>(held_.size()); }
  [[nodiscard]] std::int32_t cells() const { return cells_; }
  [[nodiscard]] std::int32_t cells_used() const { return used_; }
  /// Lowest place and one past the highest; empty if the sequence holds nothing (or does not exist).
  [[nodiscard]] PlaceRange extent(SeqId seq) const;
  /// Places held by a sequence, and those of them within `window` of its highest.
  [[nodiscard]] std::int32_t held(SeqId seq) const;
  [[nodiscard]] std::int32_t held_within(SeqId seq, std::int32_t window) const;
  [[nodiscard]] bool holds(SeqId seq, Place place) const;
  /// Whether any resident cell was moved.
  [[nodiscard]] bool any_moved() const;
  /// Empty if counts and references agree with each other.
  [[nodiscard]] std::string check_integrity() const;

 private:
  struct Cell {
    std::int32_t holders = 0;
    bool moved = false;
  };
  using Held = std::map<std::int32_t, std::int32_t>;  // place → cell

  [[nodiscard]] const Held& of(SeqId seq) const { return held_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] Held& of(SeqId seq) { return held_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] const Cell& cell(std::int32_t index) const { return table_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] Cell& cell(std::int32_t index) { return table_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] Status check_resident(SeqId seq, PlaceRange places) const;
  [[nodiscard]] Status check_free(SeqId seq, PlaceRange places) const;
  [[nodiscard]] Status check_room(std::int64_t tokens) const;
  void take(SeqId seq, Place place, bool moved);

  std::int32_t cells_;
  std::int32_t used_ = 0;
  std::vector<Held> held_;
  std::vector<Cell> table_;
  std::vector<std::int32_t> free_;
};

}  // namespace modeld
