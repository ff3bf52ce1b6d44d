// The meaning of every sentence of the stream as a vector, by block: for questions that share no word with what
// answers them.
//
// Memory: int8 with one scale a sentence: dim + 4 bytes; a block also takes 4.
// Thread: const calls may run side by side; append needs exclusive use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace modeld {

class SentenceIndex {
 public:
  explicit SentenceIndex(std::int32_t dim) : dim_(static_cast<std::size_t>(dim)), begins_{0} {}

  /// Adds the next block by its sentences' vectors, each of dim numbers; none is allowed. Blocks are numbered from 0.
  void append(std::span<const std::vector<float>> sentences);
  /// A block as bytes, to be stored. REQUIRES block < blocks().
  [[nodiscard]] std::vector<std::byte> bytes_of(std::size_t block) const;
  /// Adds the next block by what bytes_of() gave. False, and nothing changed, for bytes of another length.
  [[nodiscard]] bool append_bytes(std::span<const std::byte> block);

  [[nodiscard]] std::size_t blocks() const { return begins_.size() - 1; }
  [[nodiscard]] std::size_t sentences() const { return scales_.size(); }
  [[nodiscard]] std::int64_t bytes() const;

  /// For each block the largest dot product of `question` with one of its sentences; 0 for a block without any.
  /// A mean over a block's sentences, or one vector for a whole block, finds half as much (docs/design.md §10).
  [[nodiscard]] std::vector<double> score(std::span<const float> question) const;

 private:
  std::size_t dim_;
  std::vector<std::int8_t> codes_;
  std::vector<float> scales_;
  std::vector<std::uint32_t> begins_;  // of each block, in sentences, and one past the last
};

}  // namespace modeld
