#include "engine/llama/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "model/kv_rows.h"

namespace modeld {
namespace {

static_assert(std::endian::native == std::endian::little, "payloads are written in the machine's byte order");

constexpr std::uint64_t kMagic = 0x4d414c4c564b444dULL;  // "MDKVLLAM"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kBlobMagic = 0xaf143cd8;  // llama.cpp's io_magic
constexpr std::size_t kCellBytes = 12;            // place, number of sequences, sequence

struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t kv_type = 0;
  std::int32_t first = 0;
  std::int32_t tokens = 0;
  std::uint64_t geometry_high = 0;
  std::uint64_t geometry_low = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t check_high = 0;
  std::uint64_t check_low = 0;
};
static_assert(std::has_unique_object_representations_v<Header> && sizeof(Header) == 64);

struct PieceHead {
  std::int32_t first = 0;
  std::int32_t tokens = 0;
  std::uint64_t bytes = 0;
};
static_assert(std::has_unique_object_representations_v<PieceHead>);

/// ggml's type numbers, as blobs carry them.
std::int32_t ggml_type_number(KvType type) {
  switch (type) {
    case KvType::f16:
      return 1;
    case KvType::q4_0:
      return 2;
    case KvType::q8_0:
      return 8;
  }
  return -1;
}

/// Reads values off the front of a span; a short span makes it fail for good.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> data) : data_(data) {}
  template <typename T>
  T read() {
    T value{};
    if (data_.size() < sizeof(T)) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, data_.data(), sizeof(T));
    data_ = data_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > data_.size()) {
      failed_ = true;
      return {};
    }
    const auto out = data_.first(bytes);
    data_ = data_.subspan(bytes);
    return out;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return !failed_ && data_.empty(); }

 private:
  std::span<const std::byte> data_;
  bool failed_ = false;
};

Digest128 checksum(Header header, std::span<const std::byte> body) {
  header.check_high = 0;
  header.check_low = 0;
  return Hasher().bytes(std::as_bytes(std::span(&header, 1))).bytes(body).finish();
}

/// Both formats of a layout in one number; the upper half is 0 where nothing is packed.
std::uint32_t type_mark(const BlobLayout& layout) {
  const auto number = [](KvType type) { return static_cast<std::uint32_t>(ggml_type_number(type)); };
  const std::optional<KvType> packed = layout.packed();
  return number(layout.kv_type()) | (packed ? number(*packed) << 16U : 0U);
}

tl::unexpected<Error> invalid(std::string_view what) {
  return fail(ErrorCode::payload_invalid,
              fmt::format("The KV payload is not usable: {}. Compute its tokens again.", what));
}

}  // namespace

BlobLayout::BlobLayout(const ModelGeometry& geometry, KvType kv_type, std::optional<KvType> packed)
    : kv_type_(kv_type), packed_(packed) {
  const KvType rows = packed.value_or(kv_type);
  const bool windows = std::ranges::any_of(geometry.layers, [](const LayerGeometry& l) { return l.window > 0; });
  caches_.resize(windows ? 2 : 1);
  Hasher hash;
  hash.text(geometry.architecture).number(geometry.layers.size());
  for (const LayerGeometry& layer : geometry.layers) {
    Cache& cache = caches_[layer.window > 0 ? 1 : 0];
    const auto keys = std::int64_t{layer.kv_heads} * layer.key_dim;
    const auto values = std::int64_t{layer.kv_heads} * layer.value_dim;
    cache.key_rows.push_back(static_cast<std::uint64_t>(kv_bytes(rows, keys)));
    cache.value_rows.push_back(static_cast<std::uint64_t>(kv_bytes(rows, values)));
    window_ = std::max(window_, layer.window);
    for (const std::int32_t n : {layer.kv_heads, layer.key_dim, layer.value_dim, layer.window, layer.rope.dims})
      hash.number(static_cast<std::uint64_t>(n));
    hash.number(std::bit_cast<std::uint64_t>(layer.rope.freq_base));
    hash.number(std::bit_cast<std::uint64_t>(layer.rope.freq_scale));
  }
  digest_ = hash.finish();
}

std::size_t BlobLayout::bytes(std::int32_t global, std::int32_t windowed) const {
  std::size_t total = sizeof(std::uint32_t) + sizeof(std::int32_t);
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const auto cells = static_cast<std::size_t>(i == 0 ? global : windowed);
    total += 2 * sizeof(std::uint32_t);
    if (cells == 0) continue;
    total += cells * kCellBytes + 2 * sizeof(std::uint32_t);
    for (const auto* rows : {&caches_[i].key_rows, &caches_[i].value_rows})
      for (const std::uint64_t row : *rows) total += sizeof(std::int32_t) + sizeof(std::uint64_t) + cells * row;
  }
  return total;
}

std::string BlobLayout::check(std::span<const std::byte> blob, Place first, std::int32_t tokens) const {
  if (blob.size() != bytes(tokens, tokens))
    return fmt::format("a blob of {} tokens has {} bytes instead of {}", tokens, blob.size(), bytes(tokens, tokens));
  Cursor in(blob);
  if (in.read<std::uint32_t>() != kBlobMagic) return "a blob has a foreign beginning";
  in.read<std::int32_t>();  // the sequence it came from
  for (const Cache& cache : caches_) {
    if (in.read<std::uint32_t>() != 1) return "a blob is not of a unified cache";
    if (in.read<std::uint32_t>() != static_cast<std::uint32_t>(tokens)) return "a blob names another number of cells";
    std::vector<bool> seen(static_cast<std::size_t>(tokens), false);
    for (std::int32_t i = 0; i < tokens; ++i) {
      const std::int64_t index = std::int64_t{in.read<std::int32_t>()} - first.get();
      if (index < 0 || index >= tokens || seen[static_cast<std::size_t>(index)]) return "a blob holds a wrong place";
      seen[static_cast<std::size_t>(index)] = true;
      if (in.read<std::uint32_t>() != 1) return "a cell belongs to several sequences";
      in.read<std::int32_t>();
    }
    if (in.read<std::uint32_t>() != 0) return "its values are transposed";
    if (in.read<std::uint32_t>() != cache.key_rows.size()) return "a blob has another number of layers";
    for (const auto* rows : {&cache.key_rows, &cache.value_rows})
      for (const std::uint64_t row : *rows) {
        if (in.read<std::int32_t>() != ggml_type_number(packed_.value_or(kv_type_)))
          return "a layer has another KV type";
        if (in.read<std::uint64_t>() != row) return "a layer has rows of another length";
        in.take(row * static_cast<std::uint64_t>(tokens));
      }
  }
  return in.at_end() ? "" : "a blob is longer or shorter than its tables say";
}

void BlobLayout::convert(std::span<const std::byte> blob, std::int32_t tokens, const BlobLayout& to,
                         std::span<std::byte> out) const {
  const auto copy = [&](std::size_t bytes) {
    std::ranges::copy(blob.first(bytes), out.begin());
    blob = blob.subspan(bytes);
    out = out.subspan(bytes);
  };
  const auto put = [&](const auto& value) {
    std::memcpy(out.data(), &value, sizeof value);
    out = out.subspan(sizeof value);
    blob = blob.subspan(sizeof value);
  };
  const auto cells = static_cast<std::size_t>(tokens);
  const KvType rows = packed_.value_or(kv_type_);
  const KvType to_rows = to.packed_.value_or(to.kv_type_);
  copy(sizeof(std::uint32_t) + sizeof(std::int32_t));
  for (std::size_t c = 0; c < caches_.size(); ++c) {
    copy(2 * sizeof(std::uint32_t) + cells * kCellBytes + 2 * sizeof(std::uint32_t));
    for (const auto& [own, other] : {std::pair{&caches_[c].key_rows, &to.caches_[c].key_rows},
                                     std::pair{&caches_[c].value_rows, &to.caches_[c].value_rows}}) {
      for (std::size_t row = 0; row < own->size(); ++row) {
        put(ggml_type_number(to_rows));
        put((*other)[row]);
        const auto from_bytes = static_cast<std::size_t>((*own)[row]) * cells;
        const auto to_bytes = static_cast<std::size_t>((*other)[row]) * cells;
        convert_rows(rows, blob.first(from_bytes), to_rows, out.first(to_bytes));
        blob = blob.subspan(from_bytes);
        out = out.subspan(to_bytes);
      }
    }
  }
}

PayloadWriter::PayloadWriter(const BlobLayout& layout, PlaceRange places) : layout_(layout) {
  payload_.places = places;
  payload_.kv_type = layout.kv_type();
  payload_.packed = layout.packed();
  payload_.data.resize(sizeof(Header));
}

std::span<std::byte> PayloadWriter::add(Place first, std::int32_t tokens, std::size_t bytes) {
  const PieceHead head{.first = first.get(), .tokens = tokens, .bytes = bytes};
  const std::size_t at = payload_.data.size();
  payload_.data.resize(at + sizeof head + bytes);
  std::memcpy(payload_.data.data() + at, &head, sizeof head);
  return std::span(payload_.data).subspan(at + sizeof head, bytes);
}

KvPayload PayloadWriter::finish() {
  const auto body = std::span<const std::byte>(payload_.data).subspan(sizeof(Header));
  Header header;
  header.kv_type = type_mark(layout_);
  header.first = payload_.places.begin.get();
  header.tokens = payload_.places.size();
  header.geometry_high = layout_.geometry_digest().high;
  header.geometry_low = layout_.geometry_digest().low;
  header.body_bytes = body.size();
  const Digest128 check = checksum(header, body);
  header.check_high = check.high;
  header.check_low = check.low;
  std::memcpy(payload_.data.data(), &header, sizeof header);
  return std::move(payload_);
}

Result<std::vector<PayloadPiece>> read_payload(const BlobLayout& layout, const KvPayload& payload) {
  if (payload.data.size() < sizeof(Header)) return invalid("it is shorter than its header");
  Header header;
  std::memcpy(&header, payload.data.data(), sizeof header);
  const auto body = std::span<const std::byte>(payload.data).subspan(sizeof header);
  if (header.magic != kMagic) return invalid("it was not made by this engine");
  if (header.version != kVersion) return invalid(fmt::format("its version is {}", header.version));
  if (payload.kv_type != layout.kv_type() || payload.packed != layout.packed() || header.kv_type != type_mark(layout))
    return invalid("it has another KV type than the context");
  if (Digest128{header.geometry_high, header.geometry_low} != layout.geometry_digest())
    return invalid("it was made with a model of another shape");
  if (header.body_bytes != body.size()) return invalid("it is cut short, or bytes were added");
  if (Digest128{header.check_high, header.check_low} != checksum(header, body)) return invalid("its checksum is wrong");
  if (header.tokens <= 0 || header.first < 0 || header.first != payload.places.begin.get() ||
      std::int64_t{header.first} + header.tokens != payload.places.end.get())
    return invalid("its places differ from those it is said to have");

  std::vector<PayloadPiece> pieces;
  Cursor in(body);
  Place next(header.first);
  while (!in.at_end()) {
    const auto head = in.read<PieceHead>();
    const auto blob = in.take(head.bytes);
    if (in.failed() || head.first != next.get() || head.tokens <= 0 || head.tokens > payload.places.end - next)
      return invalid("its pieces do not follow each other");
    if (const std::string fault = layout.check(blob, next, head.tokens); !fault.empty()) return invalid(fault);
    pieces.push_back({next, head.tokens, blob});
    next += head.tokens;
  }
  if (next != payload.places.end) return invalid("its pieces do not fill its places");
  return pieces;
}

Result<KvPayload> convert_payload(const BlobLayout& from, const BlobLayout& to, const KvPayload& payload) {
  MODELD_TRY(const std::vector<PayloadPiece> pieces, read_payload(from, payload));
  PayloadWriter writer(to, payload.places);
  for (const PayloadPiece& piece : pieces) {
    const auto room = writer.add(piece.first, piece.tokens, to.bytes(piece.tokens, piece.tokens));
    from.convert(piece.blob, piece.tokens, to, room);
  }
  return writer.finish();
}

}  // namespace modeld
