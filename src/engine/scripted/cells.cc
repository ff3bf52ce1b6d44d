#include "engine/scripted/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "model/kv_rows.h"
#include "model/rope.h"

namespace modeld {
namespace {

constexpr std::size_t kKey = ScriptedWeights::kKeyDim;
constexpr std::size_t kRow = kKey + ScriptedWeights::kValueDim;
constexpr std::size_t kToken = kRow * ScriptedWeights::kLayers;

}  // namespace

ScriptedCells::ScriptedCells(std::int32_t cells, std::int32_t sequences, KvType type)
    : type_(type),
      key_bytes_(static_cast<std::size_t>(kv_bytes(type, kKey))),
      token_bytes_(ScriptedWeights::kLayers *
                   (key_bytes_ + static_cast<std::size_t>(kv_bytes(type, ScriptedWeights::kValueDim)))),
      sequences_(index(sequences)),
      holders_(index(cells)),
      moved_(index(cells)),
      stored_(index(cells) * token_bytes_),
      working_(index(cells) * kToken) {
  free_.reserve(index(cells));
  for (std::int32_t cell = cells - 1; cell >= 0; --cell) free_.push_back(cell);
}

std::int64_t ScriptedCells::token_values() { return static_cast<std::int64_t>(kToken); }

std::int64_t ScriptedCells::working_bytes() const { return working_bytes(static_cast<std::int32_t>(holders_.size())); }
std::int64_t ScriptedCells::working_bytes(std::int32_t cells) {
  return std::int64_t{cells} * static_cast<std::int64_t>(kToken * sizeof(float));
}

std::vector<ScriptedCells::Entry>::iterator ScriptedCells::at_or_after(SeqId seq, Place place) {
  return std::ranges::lower_bound(sequences_[index(seq)], place, {}, &Entry::place);
}

std::span<const ScriptedCells::Entry> ScriptedCells::entries(SeqId seq, PlaceRange places) const {
  const auto& all = sequences_[index(seq)];
  const auto first = std::ranges::lower_bound(all, places.begin, {}, &Entry::place);
  const auto last = std::lower_bound(first, all.end(), places.end, [](const Entry& e, Place p) { return e.place < p; });
  return {first, last};
}

PlaceRange ScriptedCells::extent(SeqId seq) const {
  const auto& all = sequences_[index(seq)];
  if (all.empty()) return {};
  return {all.front().place, all.back().place + 1};
}

std::int32_t ScriptedCells::take(SeqId seq, Place place) {
  MODELD_CHECK(!free_.empty());
  const std::int32_t cell = free_.back();
  free_.pop_back();
  holders_[index(cell)] = 1;
  moved_[index(cell)] = 0;
  sequences_[index(seq)].insert(at_or_after(seq, place), Entry{place, cell});
  return cell;
}

void ScriptedCells::drop(SeqId seq, PlaceRange places) {
  if (places.empty()) return;
  const auto first = at_or_after(seq, places.begin);
  const auto last = at_or_after(seq, places.end);
  // Backwards, so that cells are taken again in the order that they had.
  for (auto it = last; it != first;) {
    --it;
    if (--holders_[index(it->cell)] == 0) free_.push_back(it->cell);
  }
  sequences_[index(seq)].erase(first, last);
}

void ScriptedCells::share(SeqId from, SeqId to, PlaceRange places) {
  const auto run = entries(from, places);
  if (run.empty()) return;
  for (const Entry& entry : run) ++holders_[index(entry.cell)];
  const std::vector<Entry> copy(run.begin(), run.end());
  auto& target = sequences_[index(to)];
  target.insert(target.end(), copy.begin(), copy.end());
  std::ranges::sort(target, {}, &Entry::place);
}

void ScriptedCells::shift(SeqId seq, PlaceRange places, std::int32_t delta) {
  const auto first = at_or_after(seq, places.begin);
  const auto last = at_or_after(seq, places.end);
  for (auto it = first; it != last; ++it) it->place += delta;
  std::ranges::sort(sequences_[index(seq)], {}, &Entry::place);
}

std::span<std::byte> ScriptedCells::stored_layer(std::int32_t cell, int layer) {
  const std::size_t layer_bytes = token_bytes_ / ScriptedWeights::kLayers;
  return std::span(stored_).subspan(index(cell) * token_bytes_ + index(layer) * layer_bytes, layer_bytes);
}

void ScriptedCells::load(std::int32_t cell, int layer) {
  const auto bytes = stored_layer(cell, layer);
  const auto row = std::span(working_).subspan(index(cell) * kToken + index(layer) * kRow, kRow);
  decode_row(type_, bytes.first(key_bytes_), row.first(kKey));
  decode_row(type_, bytes.subspan(key_bytes_), row.subspan(kKey));
}

void ScriptedCells::store(std::int32_t cell, int layer, std::span<const float> key, std::span<const float> value) {
  const auto bytes = stored_layer(cell, layer);
  encode_row(type_, key, bytes.first(key_bytes_));
  encode_row(type_, value, bytes.subspan(key_bytes_));
  load(cell, layer);
}

std::span<const std::byte> ScriptedCells::stored(std::int32_t cell) const {
  return std::span(stored_).subspan(index(cell) * token_bytes_, token_bytes_);
}

void ScriptedCells::restore(std::int32_t cell, std::span<const std::byte> bytes) {
  MODELD_CHECK(bytes.size() == token_bytes_);
  std::ranges::copy(bytes, stored_.begin() + static_cast<std::ptrdiff_t>(index(cell) * token_bytes_));
  for (int layer = 0; layer < ScriptedWeights::kLayers; ++layer) load(cell, layer);
}

void ScriptedCells::turn(std::int32_t cell, const ScriptedWeights& weights, std::int32_t steps) {
  std::array<float, kKey> row{};
  for (int layer = 0; layer < ScriptedWeights::kLayers; ++layer) {
    const auto bytes = stored_layer(cell, layer).first(key_bytes_);
    decode_row(type_, bytes, row);
    rotate(row, weights.rope(), weights.frequencies(), steps);
    encode_row(type_, row, bytes);
    load(cell, layer);
  }
}

const float* ScriptedCells::key(int layer, std::int32_t cell) const {
  return working_.data() + index(cell) * kToken + index(layer) * kRow;
}
const float* ScriptedCells::value(int layer, std::int32_t cell) const { return key(layer, cell) + kKey; }

std::string ScriptedCells::check_integrity() const {
  std::vector<std::int32_t> counted(holders_.size());
  std::vector<Place> place_of(holders_.size());
  for (std::size_t seq = 0; seq < sequences_.size(); ++seq) {
    const auto& all = sequences_[seq];
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [place, cell] = all[i];
      if (cell < 0 || index(cell) >= holders_.size()) return fmt::format("sequence {} names cell {}", seq, cell);
      if (i > 0 && !(all[i - 1].place < place))
        return fmt::format("sequence {} is out of order at {}", seq, place.get());
      if (counted[index(cell)]++ > 0 && place_of[index(cell)] != place) {
        return fmt::format("cell {} stands at two places", cell);
      }
      place_of[index(cell)] = place;
    }
  }
  if (counted != holders_) return "the holders of a cell are miscounted";
  const auto free_cells = std::ranges::count(holders_, 0);
  if (free_cells != static_cast<std::ptrdiff_t>(free_.size())) return "the free list has the wrong length";
  for (const std::int32_t cell : free_) {
    if (holders_[index(cell)] != 0) return fmt::format("cell {} is held and free", cell);
  }
  return {};
}

}  // namespace modeld
