#include "recall/key_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/half.h"

// Invariants: every head has ceil(tokens / tokens per piece) pieces, each whole; all that lies past the last token is
// zero, with scale zero, so that a scorer may read whole tiles.

namespace modeld {
namespace {

constexpr std::int64_t kTile = KeyIndex::kTile;

std::size_t as_size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Where dimension `dim` of a tile's token `lane` is: pairs of dimensions, token by token.
std::size_t place_in_tile(std::int64_t lane, std::int64_t dim) {
  return as_size((dim / 2) * (2 * kTile) + 2 * lane + dim % 2);
}

float largest_magnitude(const float* key, std::int64_t dim) {
  float largest = 0.0F;
  for (std::int64_t d = 0; d < dim; ++d) {
    // What is not a number compares false and drops out; an infinity would leave nothing of the others.
    if (const float magnitude = std::fabs(key[d]); std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

std::int8_t quantised(float value, float scale) {
  if (scale == 0.0F || std::isnan(value)) return 0;
  return static_cast<std::int8_t>(std::lrintf(std::clamp(value / scale, -127.0F, 127.0F)));
}

}  // namespace

KeyIndex::KeyIndex(std::vector<KvHeadRef> kv_heads, std::int32_t key_dim)
    : kv_heads_(std::move(kv_heads)), key_dim_(key_dim), pieces_(kv_heads_.size()) {
  MODELD_CHECK(key_dim_ > 0 && key_dim_ % 2 == 0);
}

std::int64_t KeyIndex::bytes_per_token() const {
  return static_cast<std::int64_t>(kv_heads_.size()) * (key_dim_ + std::int64_t{2});
}

std::int64_t KeyIndex::bytes() const { return (tokens_ + kTile - 1) / kTile * kTile * bytes_per_token(); }

const std::int8_t* KeyIndex::tile(std::size_t head, std::int64_t t) const {
  const Piece& piece = pieces_[head][as_size(t / kPieceTiles)];
  return piece.keys.data() + t % kPieceTiles * kTile * key_dim_;
}

const std::uint16_t* KeyIndex::tile_scales(std::size_t head, std::int64_t t) const {
  return pieces_[head][as_size(t / kPieceTiles)].scales.data() + t % kPieceTiles * kTile;
}

void KeyIndex::reserve(std::int64_t tokens) {
  for (auto& pieces : pieces_) {
    while (std::ssize(pieces) * kPieceTokens < tokens) {
      pieces.push_back({std::vector<std::int8_t>(as_size(kPieceTokens * key_dim_)),
                        std::vector<std::uint16_t>(as_size(kPieceTokens))});
    }
  }
}

void KeyIndex::put(std::size_t head, std::int64_t token, const float* key) {
  const std::int64_t t = token / kTile;
  const std::int64_t lane = token % kTile;
  Piece& piece = pieces_[head][as_size(t / kPieceTiles)];
  // The largest finite f16 bounds the scale, so that no key, however broken, makes it infinite.
  const float wanted = std::min(largest_magnitude(key, key_dim_) / 127.0F, 65504.0F);
  const std::uint16_t half = f16_from_f32(wanted);
  // Divided by the scale as it is stored: its rounding then costs nothing.
  const float scale = f32_from_f16(half);
  piece.scales[as_size(t % kPieceTiles * kTile + lane)] = half;
  std::int8_t* tile_keys = piece.keys.data() + t % kPieceTiles * kTile * key_dim_;
  for (std::int64_t d = 0; d < key_dim_; ++d) tile_keys[place_in_tile(lane, d)] = quantised(key[d], scale);
}

void KeyIndex::append(std::span<const std::vector<float>> keys, std::int32_t count) {
  MODELD_CHECK(count >= 0 && keys.size() == kv_heads_.size());
  reserve(tokens_ + count);
  for (std::size_t head = 0; head < keys.size(); ++head) {
    MODELD_CHECK(keys[head].size() == as_size(std::int64_t{count} * key_dim_));
    for (std::int64_t i = 0; i < count; ++i) put(head, tokens_ + i, keys[head].data() + i * key_dim_);
  }
  tokens_ += count;
}

void KeyIndex::append_copy(const KeyIndex& from, StreamRange range) {
  MODELD_CHECK(range.begin.get() >= 0 && range.begin <= range.end && range.end.get() <= from.tokens_);
  MODELD_CHECK(from.key_dim_ == key_dim_ && from.pieces_.size() == pieces_.size());
  reserve(tokens_ + range.size());
  for (std::size_t head = 0; head < pieces_.size(); ++head) {
    for (std::int64_t i = 0; i < range.size(); ++i) {
      const std::int64_t source_token = range.begin.get() + i;
      const std::int64_t target_token = tokens_ + i;
      const std::int64_t from_tile = source_token / kTile % kPieceTiles;
      const std::int64_t to_tile = target_token / kTile % kPieceTiles;
      const Piece& source = from.pieces_[head][as_size(source_token / kPieceTokens)];
      Piece& target = pieces_[head][as_size(target_token / kPieceTokens)];
      target.scales[as_size(to_tile * kTile + target_token % kTile)] =
          source.scales[as_size(from_tile * kTile + source_token % kTile)];
      for (std::int64_t d = 0; d < key_dim_; ++d) {
        target.keys[as_size(to_tile * kTile * key_dim_) + place_in_tile(target_token % kTile, d)] =
            source.keys[as_size(from_tile * kTile * key_dim_) + place_in_tile(source_token % kTile, d)];
      }
    }
  }
  tokens_ += range.size();
}

void KeyIndex::write_tiles(std::int64_t p, std::int64_t tiles, std::vector<std::byte>& out) const {
  const auto add = [&out](std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  for (const auto& pieces : pieces_) {
    const Piece& piece = pieces[as_size(p)];
    add(std::as_bytes(std::span(piece.keys).first(as_size(tiles * kTile * key_dim_))));
    add(std::as_bytes(std::span(piece.scales).first(as_size(tiles * kTile))));
  }
}

std::vector<std::byte> KeyIndex::pieces(std::int64_t first) const {
  std::vector<std::byte> out;
  for (std::int64_t p = first; (p + 1) * kPieceTokens <= tokens_; ++p) write_tiles(p, kPieceTiles, out);
  return out;
}

std::vector<std::byte> KeyIndex::tail() const {
  std::vector<std::byte> out;
  const std::int64_t left = tokens_ % kPieceTokens;
  if (left > 0) write_tiles(tokens_ / kPieceTokens, (left + kTile - 1) / kTile, out);
  return out;
}

bool KeyIndex::load(std::span<const std::byte> bytes, std::int64_t tokens) {
  if (tokens < 0) return false;
  const std::int64_t tiles = (tokens + kTile - 1) / kTile;
  if (std::ssize(bytes) != tiles * kTile * bytes_per_token()) return false;
  for (auto& pieces : pieces_) pieces.clear();
  tokens_ = tokens;
  reserve(tokens);
  const auto take = [&bytes](auto& values, std::int64_t count) {
    const std::size_t size = as_size(count) * sizeof values[0];
    std::memcpy(values.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
  };
  for (std::int64_t p = 0; p * kPieceTiles < tiles; ++p) {
    const std::int64_t in_piece = std::min(kPieceTiles, tiles - p * kPieceTiles);
    for (auto& pieces : pieces_) {
      take(pieces[as_size(p)].keys, in_piece * kTile * key_dim_);
      take(pieces[as_size(p)].scales, in_piece * kTile);
    }
  }
  return true;
}

std::vector<float> KeyIndex::keys(std::size_t head, StreamRange range) const {
  MODELD_CHECK(head < kv_heads_.size());
  MODELD_CHECK(range.begin.get() >= 0 && range.begin <= range.end && range.end.get() <= tokens_);
  std::vector<float> out;
  out.reserve(as_size(range.size() * key_dim_));
  for (std::int64_t token = range.begin.get(); token < range.end.get(); ++token) {
    const std::int8_t* tile_keys = tile(head, token / kTile);
    const float scale = f32_from_f16(tile_scales(head, token / kTile)[token % kTile]);
    for (std::int64_t d = 0; d < key_dim_; ++d) {
      out.push_back(static_cast<float>(tile_keys[place_in_tile(token % kTile, d)]) * scale);
    }
  }
  return out;
}

}  // namespace modeld
