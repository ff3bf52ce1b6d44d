#include "recall/block_index.h"

#include <utility>

#include "base/check.h"

namespace modeld {

BlockIndex::BlockIndex(std::vector<KvHeadRef> kv_heads, std::int32_t key_dim, std::int32_t meaning_dim)
    : keys_(std::move(kv_heads), key_dim) {
  if (meaning_dim > 0) meaning_.emplace(meaning_dim);
}

void BlockIndex::append_sinks(std::span<const std::vector<float>> keys, std::int32_t tokens) {
  MODELD_CHECK(keys_.tokens() == 0);
  keys_.append(keys, tokens);
  sinks_end_ = StreamPos(tokens);
}

void BlockIndex::append_sinks(const BlockIndex& from) {
  MODELD_CHECK(keys_.tokens() == 0);
  keys_.append_copy(from.keys_, {StreamPos(0), from.sinks_end_});
  sinks_end_ = from.sinks_end_;
}

void BlockIndex::take(const IndexedBlock& block) {
  MODELD_CHECK(block.range.begin == end() && !block.range.empty());
  words_.append(block.text);
  first_with_key_.emplace(block.key, ranges_.size());
  ranges_.push_back(block.range);
}

void BlockIndex::append(const IndexedBlock& block, std::span<const std::vector<float>> keys,
                        std::span<const std::vector<float>> meaning) {
  take(block);
  keys_.append(keys, static_cast<std::int32_t>(block.range.size()));
  if (meaning_) meaning_->append(meaning);
}

void BlockIndex::append_copy(const IndexedBlock& block, const BlockIndex& from, std::size_t same) {
  MODELD_CHECK(same < from.blocks() && from.ranges_[same].size() == block.range.size());
  const StreamRange keys = from.ranges_[same];
  keys_.append_copy(from.keys_, keys);
  if (meaning_) {
    MODELD_CHECK(from.meaning_.has_value());
    const bool taken = meaning_->append_bytes(from.meaning_->bytes_of(same));
    MODELD_CHECK(taken);
  }
  take(block);
}

bool BlockIndex::load_keys(std::span<const std::byte> keys, std::int64_t tokens, std::int64_t sinks) {
  MODELD_CHECK(keys_.tokens() == 0);
  if (sinks < 0 || sinks > tokens || !keys_.load(keys, tokens)) return false;
  sinks_end_ = StreamPos(sinks);
  return true;
}

bool BlockIndex::load_block(const IndexedBlock& block, std::span<const std::byte> meaning) {
  if (block.range.begin != end() || block.range.empty() || block.range.end.get() > keys_.tokens()) return false;
  if (meaning_ && !meaning_->append_bytes(meaning)) return false;
  take(block);
  return true;
}

std::optional<std::size_t> BlockIndex::find(const BlockKey& key) const {
  const auto first = first_with_key_.find(key);
  if (first == first_with_key_.end()) return std::nullopt;
  return first->second;
}

std::int64_t BlockIndex::bytes() const {
  constexpr std::size_t kContent = sizeof(BlockKey) + sizeof(std::size_t) + 4 * sizeof(void*);
  return keys_.bytes() + words_.bytes() + (meaning_ ? meaning_->bytes() : 0) +
         static_cast<std::int64_t>(ranges_.capacity() * sizeof(StreamRange) + first_with_key_.size() * kContent);
}

std::string BlockIndex::check_integrity() const {
  if (keys_.tokens() != end().get()) return "the keys are of another number of tokens than the blocks";
  if (words_.blocks() != blocks()) return "the words are of another number of blocks";
  if (meaning_ && meaning_->blocks() != blocks()) return "the meaning is of another number of blocks";
  return "";
}

}  // namespace modeld
