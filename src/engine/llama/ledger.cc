#include "engine/llama/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/check.h"

namespace modeld {
namespace {

tl::unexpected<Error> misuse(std::string message, std::vector<ErrorNumber> numbers = {}) {
  return fail(ErrorCode::engine_misuse, std::move(message), std::move(numbers));
}

}  // namespace

Ledger::Ledger(std::int32_t sequences, std::int32_t cells)
    : cells_(cells), held_(static_cast<std::size_t>(sequences)), table_(static_cast<std::size_t>(cells)) {
  MODELD_CHECK(sequences >= 1 && cells >= 1);
  free_.reserve(table_.size());
  for (std::int32_t i = cells; i-- > 0;) free_.push_back(i);
}

Status Ledger::check_sequence(SeqId seq) const {
  if (seq >= 0 && seq < sequences()) return {};
  return misuse(fmt::format("Sequence {} does not exist: the context has {}.", seq, sequences()),
                {{"sequence", seq}, {"sequences", sequences()}});
}

Status Ledger::check_range(PlaceRange places) const {
  if (places.begin.get() >= 0 && !places.empty()) return {};
  return misuse(fmt::format("The places {} to {} are no range.", places.begin.get(), places.end.get()),
                {{"begin_place", places.begin.get()}, {"end_place", places.end.get()}});
}

Status Ledger::check_room(std::int64_t tokens) const {
  if (tokens <= cells_ - used_) return {};
  return fail(
      ErrorCode::engine_no_cells,
      fmt::format("{} cells are needed and {} of {} are free. Evict something first.", tokens, cells_ - used_, cells_),
      {{"needed_cells", tokens}, {"free_cells", cells_ - used_}, {"cells", cells_}});
}

Status Ledger::check_resident(SeqId seq, PlaceRange places) const {
  const Held& held = of(seq);
  auto it = held.find(places.begin.get());
  for (std::int32_t place = places.begin.get(); place < places.end.get(); ++place) {
    if (it == held.end() || it->first != place)
      return misuse(fmt::format("Place {} of sequence {} is not resident.", place, seq),
                    {{"place", place}, {"sequence", seq}});
    ++it;
  }
  return {};
}

Status Ledger::check_free(SeqId seq, PlaceRange places) const {
  const auto it = of(seq).lower_bound(places.begin.get());
  if (it == of(seq).end() || it->first >= places.end.get()) return {};
  return misuse(fmt::format("Place {} of sequence {} is taken already.", it->first, seq),
                {{"place", it->first}, {"sequence", seq}});
}

Status Ledger::check_compute(std::span<const BatchToken> batch) const {
  if (batch.empty()) return misuse("An empty batch cannot be computed.");
  constexpr std::int64_t kUnset = -1;
  std::vector<std::int64_t> next(held_.size(), kUnset);
  for (const BatchToken& token : batch) {
    MODELD_TRY_VOID(check_sequence(token.seq));
    std::int64_t& expected = next[static_cast<std::size_t>(token.seq)];
    if (expected == kUnset) expected = of(token.seq).empty() ? token.place.get() : of(token.seq).rbegin()->first + 1;
    if (token.place.get() != expected || token.place.get() < 0 ||
        token.place.get() == std::numeric_limits<std::int32_t>::max())
      return misuse(fmt::format("A token of sequence {} stands at place {}, but the next one is {}.", token.seq,
                                token.place.get(), std::max<std::int64_t>(expected, 0)),
                    {{"sequence", token.seq}, {"place", token.place.get()}, {"next_place", expected}});
    ++expected;
  }
  return check_room(static_cast<std::int64_t>(batch.size()));
}

Status Ledger::check_export(SeqId seq, PlaceRange places) const {
  MODELD_TRY_VOID(check_sequence(seq));
  MODELD_TRY_VOID(check_range(places));
  MODELD_TRY_VOID(check_resident(seq, places));
  for (auto it = of(seq).find(places.begin.get()); it != of(seq).end() && it->first < places.end.get(); ++it)
    if (cell(it->second).moved)
      return misuse(fmt::format("Place {} of sequence {} was moved since it was computed; a copy must be pristine.",
                                it->first, seq),
                    {{"place", it->first}, {"sequence", seq}});
  return {};
}

Status Ledger::check_admit(SeqId seq, Place at, std::int32_t tokens) const {
  MODELD_TRY_VOID(check_sequence(seq));
  if (at.get() < 0 || tokens <= 0 || at.get() > std::numeric_limits<std::int32_t>::max() - tokens)
    return misuse(fmt::format("{} tokens cannot stand at place {}.", tokens, at.get()),
                  {{"place", at.get()}, {"tokens", tokens}});
  MODELD_TRY_VOID(check_free(seq, {at, at + tokens}));
  return check_room(tokens);
}

Status Ledger::check_rebase(SeqId seq, PlaceRange places, std::int32_t delta) const {
  MODELD_TRY_VOID(check_sequence(seq));
  MODELD_TRY_VOID(check_range(places));
  const Held& held = of(seq);
  const auto first = held.lower_bound(places.begin.get());
  if (first == held.end() || first->first >= places.end.get())
    return misuse(fmt::format("Sequence {} holds nothing in the places to move.", seq), {{"sequence", seq}});
  for (auto it = first; it != held.end() && it->first < places.end.get(); ++it) {
    const std::int64_t target = std::int64_t{it->first} + delta;
    if (target < 0 || target >= std::numeric_limits<std::int32_t>::max())
      return misuse(fmt::format("Place {} cannot be moved by {}.", it->first, delta),
                    {{"place", it->first}, {"delta", delta}});
    if (cell(it->second).holders > 1)
      return misuse(
          fmt::format("Place {} of sequence {} is shared with another sequence and cannot be moved.", it->first, seq),
          {{"place", it->first}, {"sequence", seq}});
    const bool inside = target >= places.begin.get() && target < places.end.get();
    if (!inside && held.contains(static_cast<std::int32_t>(target)))
      return misuse(fmt::format("Place {} of sequence {} is taken already.", target, seq),
                    {{"place", target}, {"sequence", seq}});
  }
  return {};
}

Status Ledger::check_share(SeqId from, SeqId to, PlaceRange places) const {
  MODELD_TRY_VOID(check_sequence(from));
  MODELD_TRY_VOID(check_sequence(to));
  MODELD_TRY_VOID(check_range(places));
  MODELD_TRY_VOID(check_resident(from, places));
  return check_free(to, places);
}

void Ledger::take(SeqId seq, Place place, bool moved) {
  MODELD_CHECK(!free_.empty());
  const std::int32_t index = free_.back();
  free_.pop_back();
  cell(index) = Cell{.holders = 1, .moved = moved};
  ++used_;
  const bool fresh = of(seq).emplace(place.get(), index).second;
  MODELD_CHECK(fresh);
}

void Ledger::enter_compute(std::span<const BatchToken> batch) {
  for (const BatchToken& token : batch) take(token.seq, token.place, false);
}

void Ledger::enter_admit(SeqId seq, Place at, std::int32_t tokens, bool moved) {
  for (std::int32_t i = 0; i < tokens; ++i) take(seq, at + i, moved);
}

void Ledger::enter_rebase(SeqId seq, PlaceRange places, std::int32_t delta) {
  if (delta == 0) return;
  Held& held = of(seq);
  std::vector<std::pair<std::int32_t, std::int32_t>> run;
  const auto first = held.lower_bound(places.begin.get());
  auto last = first;
  for (; last != held.end() && last->first < places.end.get(); ++last) run.emplace_back(*last);
  held.erase(first, last);
  for (const auto& [place, index] : run) {
    cell(index).moved = true;
    const bool fresh = held.emplace(place + delta, index).second;
    MODELD_CHECK(fresh);
  }
}

void Ledger::enter_share(SeqId from, SeqId to, PlaceRange places) {
  for (auto it = of(from).find(places.begin.get()); it != of(from).end() && it->first < places.end.get(); ++it) {
    ++cell(it->second).holders;
    const bool fresh = of(to).emplace(it->first, it->second).second;
    MODELD_CHECK(fresh);
  }
}

void Ledger::enter_evict(SeqId seq, PlaceRange places) {
  Held& held = of(seq);
  auto it = held.lower_bound(places.begin.get());
  while (it != held.end() && it->first < places.end.get()) {
    Cell& c = cell(it->second);
    if (--c.holders == 0) {
      free_.push_back(it->second);
      --used_;
    }
    it = held.erase(it);
  }
}

PlaceRange Ledger::extent(SeqId seq) const {
  if (seq < 0 || seq >= sequences() || of(seq).empty()) return {};
  return {Place(of(seq).begin()->first), Place(of(seq).rbegin()->first + 1)};
}

std::int32_t Ledger::held(SeqId seq) const { return static_cast<std::int32_t>(of(seq).size()); }

std::int32_t Ledger::held_within(SeqId seq, std::int32_t window) const {
  if (of(seq).empty()) return 0;
  const std::int32_t lowest = of(seq).rbegin()->first - window + 1;
  return static_cast<std::int32_t>(std::distance(of(seq).lower_bound(lowest), of(seq).end()));
}

bool Ledger::holds(SeqId seq, Place place) const { return of(seq).contains(place.get()); }

bool Ledger::any_moved() const {
  return std::ranges::any_of(table_, [](const Cell& c) { return c.holders > 0 && c.moved; });
}

std::string Ledger::check_integrity() const {
  std::vector<std::int32_t> counted(table_.size(), 0);
  for (const Held& held : held_)
    for (const auto& [place, index] : held) {
      if (index < 0 || index >= cells_) return fmt::format("place {} names cell {}", place, index);
      ++counted[static_cast<std::size_t>(index)];
    }
  std::int32_t used = 0;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (counted[i] != table_[i].holders)
      return fmt::format("cell {} has {} holders, {} are written down", i, counted[i], table_[i].holders);
    if (counted[i] > 0) ++used;
  }
  if (used != used_) return fmt::format("{} cells are used, {} are written down", used, used_);
  if (static_cast<std::int32_t>(free_.size()) != cells_ - used_)
    return fmt::format("{} cells are listed as free, {} should be", free_.size(), cells_ - used_);
  const std::set<std::int32_t> free(free_.begin(), free_.end());
  if (free.size() != free_.size()) return "a cell is listed as free twice";
  for (const std::int32_t index : free)
    if (counted[static_cast<std::size_t>(index)] != 0) return fmt::format("cell {} is used and listed as free", index);
  return {};
}

}  // namespace modeld
