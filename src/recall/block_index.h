// What the blocks of a stream are found by: the keys that the retrieval heads see of them, their words, their meaning,
// and their content, so that what was computed once need not be computed again.
//
// Invariant: keys, words, meaning and content are of the same blocks; the keys also of the sinks before the first.
// Thread:    const calls may run side by side; all others need exclusive use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recall/key_index.h"
#include "recall/lexical.h"
#include "recall/sentence_index.h"
#include "stream/manifest.h"
#include "stream/tokens.h"

namespace modeld {

/// A block as the index takes it up.
struct IndexedBlock {
  BlockKey key;
  StreamRange range;
  std::string_view text;
};

class BlockIndex {
 public:
  /// `meaning_dim`: numbers of a sentence's vector; 0: nothing is known of meaning.
  BlockIndex(std::vector<KvHeadRef> kv_heads, std::int32_t key_dim, std::int32_t meaning_dim);

  /// Before any block: the first `tokens` tokens of the stream, as in KeyIndex::append().
  void append_sinks(std::span<const std::vector<float>> keys, std::int32_t tokens);
  /// The same as another index of the same heads has them.
  void append_sinks(const BlockIndex& from);
  /// The next block, where the one before it ended. `keys` as in KeyIndex::append(), `meaning` a vector a sentence.
  void append(const IndexedBlock& block, std::span<const std::vector<float>> keys,
              std::span<const std::vector<float>> meaning);
  /// The next block, whose keys and meaning are those of block `same` of `from`, an index of the same heads or this
  /// one. REQUIRES as many tokens.
  void append_copy(const IndexedBlock& block, const BlockIndex& from, std::size_t same);

  // What was stored, in this order. False, and to be thrown away, where the bytes have another length.
  [[nodiscard]] bool load_keys(std::span<const std::byte> keys, std::int64_t tokens, std::int64_t sinks);
  [[nodiscard]] bool load_block(const IndexedBlock& block, std::span<const std::byte> meaning);

  [[nodiscard]] std::size_t blocks() const { return ranges_.size(); }
  [[nodiscard]] StreamPos sinks_end() const { return sinks_end_; }
  /// Where the last block ends.
  [[nodiscard]] StreamPos end() const { return ranges_.empty() ? sinks_end_ : ranges_.back().end; }
  /// The first block of this content.
  [[nodiscard]] std::optional<std::size_t> find(const BlockKey& key) const;
  [[nodiscard]] const KeyIndex& keys() const { return keys_; }
  [[nodiscard]] const LexicalIndex& words() const { return words_; }
  /// Null where nothing is known of it.
  [[nodiscard]] const SentenceIndex* meaning() const { return meaning_ ? &*meaning_ : nullptr; }
  [[nodiscard]] std::int64_t bytes() const;
  /// Empty if the invariant holds.
  [[nodiscard]] std::string check_integrity() const;

 private:
  void take(const IndexedBlock& block);

  KeyIndex keys_;
  LexicalIndex words_;
  std::optional<SentenceIndex> meaning_;
  StreamPos sinks_end_;
  std::vector<StreamRange> ranges_;
  std::map<BlockKey, std::size_t> first_with_key_;
};

}  // namespace modeld
