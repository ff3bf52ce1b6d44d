#include "engine/llama/payload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

namespace modeld {
namespace {

ModelGeometry geometry(bool windows) {
  ModelGeometry g;
  g.architecture = "test";
  for (int i = 0; i < 3; ++i) {
    LayerGeometry layer{.heads = 4, .kv_heads = 2, .key_dim = 32, .value_dim = 32, .window = 0, .rope = {}};
    layer.window = windows && i != 2 ? 16 : 0;
    g.layers.push_back(layer);
  }
  return g;
}

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// A blob as llama.cpp writes it, for cells in the order of `cells`.
std::vector<std::byte> blob_of(const ModelGeometry& g, KvType type, const std::vector<std::int32_t>& cells) {
  std::vector<std::byte> out;
  put<std::uint32_t>(out, 0xaf143cd8);
  put<std::int32_t>(out, 7);
  for (const bool windowed : {false, true}) {
    std::vector<const LayerGeometry*> layers;
    for (const auto& layer : g.layers)
      if ((layer.window > 0) == windowed) layers.push_back(&layer);
    if (layers.empty()) continue;
    put<std::uint32_t>(out, 1);
    put<std::uint32_t>(out, static_cast<std::uint32_t>(cells.size()));
    for (const std::int32_t place : cells) {
      put<std::int32_t>(out, place);
      put<std::uint32_t>(out, 1);
      put<std::int32_t>(out, 7);
    }
    put<std::uint32_t>(out, 0);
    put<std::uint32_t>(out, static_cast<std::uint32_t>(layers.size()));
    for (int part = 0; part < 2; ++part)
      for (const auto* layer : layers) {
        const auto row = static_cast<std::uint64_t>(kv_bytes(type, std::int64_t{layer->kv_heads} * layer->key_dim));
        put<std::int32_t>(out, type == KvType::f16 ? 1 : 8);
        put<std::uint64_t>(out, row);
        out.resize(out.size() + row * cells.size(), std::byte{0x5a});
      }
  }
  return out;
}

KvPayload payload_of(const BlobLayout& layout, std::int32_t first, std::span<const std::byte> blob,
                     std::int32_t tokens) {
  PayloadWriter writer(layout, {Place(first), Place(first + tokens)});
  const auto room = writer.add(Place(first), tokens, blob.size());
  std::memcpy(room.data(), blob.data(), blob.size());
  return writer.finish();
}

void expect_invalid(const BlobLayout& layout, const KvPayload& payload) {
  const auto read = read_payload(layout, payload);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::payload_invalid);
}

TEST(Payload, ComesBackAsItWasWrittenInAnyOrderOfCells) {
  for (const bool windows : {false, true})
    for (const KvType type : {KvType::f16, KvType::q8_0}) {
      const BlobLayout layout(geometry(windows), type);
      const auto blob = blob_of(geometry(windows), type, {102, 100, 101});
      EXPECT_EQ(blob.size(), layout.bytes(3, 3));
      const KvPayload payload = payload_of(layout, 100, blob, 3);
      const auto pieces = read_payload(layout, payload);
      ASSERT_TRUE(pieces) << to_text(pieces.error());
      ASSERT_EQ(pieces->size(), 1U);
      EXPECT_TRUE(std::ranges::equal((*pieces)[0].blob, blob));
    }
}

TEST(Payload, ForgedPlacesAreRefusedEvenUnderAValidChecksum) {
  const ModelGeometry g = geometry(false);
  const BlobLayout layout(g, KvType::f16);
  for (const auto& cells : std::vector<std::vector<std::int32_t>>{
           {100, 101, 103}, {100, 101, 101}, {-7, 101, 102}, {2147483647, 101, 102}, {99, 100, 101}})
    expect_invalid(layout, payload_of(layout, 100, blob_of(g, KvType::f16, cells), 3));
}

TEST(Payload, AnotherShapeOrTypeIsRefused) {
  const BlobLayout layout(geometry(false), KvType::f16);
  const KvPayload payload = payload_of(layout, 0, blob_of(geometry(false), KvType::f16, {0, 1}), 2);
  ASSERT_TRUE(read_payload(layout, payload));
  ModelGeometry other = geometry(false);
  other.layers[1].rope.freq_base = 5e5;
  expect_invalid(BlobLayout(other, KvType::f16), payload);
  expect_invalid(BlobLayout(geometry(false), KvType::q8_0), payload);
  KvPayload elsewhere = payload;
  elsewhere.places = {Place(5), Place(7)};
  expect_invalid(layout, elsewhere);
}

TEST(Payload, APieceThatLacksItsWindowedLayersIsRefused) {
  const BlobLayout layout(geometry(true), KvType::f16);
  expect_invalid(layout, payload_of(layout, 0, blob_of(geometry(false), KvType::f16, {0, 1}), 2));
}

RC_GTEST_PROP(PayloadProperty, AnyChangedCutOrAddedByteIsFound, ()) {
  static const BlobLayout layout(geometry(true), KvType::f16);
  static const KvPayload good = payload_of(layout, 40, blob_of(geometry(true), KvType::f16, {40, 41, 42, 43}), 4);
  RC_ASSERT(read_payload(layout, good).has_value());
  KvPayload bad = good;
  switch (*rc::gen::inRange(0, 3)) {
    case 0: {
      const auto at = *rc::gen::inRange<std::size_t>(0, bad.data.size());
      bad.data[at] ^= static_cast<std::byte>(*rc::gen::inRange(1, 256));
      break;
    }
    case 1:
      bad.data.resize(*rc::gen::inRange<std::size_t>(0, bad.data.size()));
      break;
    default:
      bad.data.resize(bad.data.size() + *rc::gen::inRange<std::size_t>(1, 100));
  }
  const auto read = read_payload(layout, bad);
  RC_ASSERT(!read.has_value());
  RC_ASSERT(read.error().code == ErrorCode::payload_invalid);
}

}  // namespace
}  // namespace modeld
