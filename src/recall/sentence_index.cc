#include "recall/sentence_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace modeld {

void SentenceIndex::append(std::span<const std::vector<float>> sentences) {
  for (const std::vector<float>& vector : sentences) {
    MODELD_CHECK(vector.size() == dim_);
    float largest = 0.0F;
    for (const float x : vector) largest = std::max(largest, std::abs(x));
    const float scale = largest / 127.0F;
    scales_.push_back(scale);
    for (const float x : vector) codes_.push_back(static_cast<std::int8_t>(scale > 0.0F ? std::lround(x / scale) : 0));
  }
  begins_.push_back(static_cast<std::uint32_t>(scales_.size()));
}

std::vector<std::byte> SentenceIndex::bytes_of(std::size_t block) const {
  MODELD_CHECK(block < blocks());
  const std::size_t begin = begins_[block];
  const std::size_t count = begins_[block + 1] - begin;
  const auto scales = std::as_bytes(std::span(scales_).subspan(begin, count));
  const auto codes = std::as_bytes(std::span(codes_).subspan(begin * dim_, count * dim_));
  std::vector<std::byte> out(scales.begin(), scales.end());
  out.insert(out.end(), codes.begin(), codes.end());
  return out;
}

bool SentenceIndex::append_bytes(std::span<const std::byte> block) {
  const std::size_t one = sizeof(float) + dim_;
  if (block.size() % one != 0) return false;
  const std::size_t count = block.size() / one;
  const std::size_t before = scales_.size();
  scales_.resize(before + count);
  codes_.resize((before + count) * dim_);
  if (count > 0) {
    std::memcpy(scales_.data() + before, block.data(), count * sizeof(float));
    std::memcpy(codes_.data() + before * dim_, block.data() + count * sizeof(float), count * dim_);
  }
  begins_.push_back(static_cast<std::uint32_t>(scales_.size()));
  return true;
}

std::int64_t SentenceIndex::bytes() const {
  return static_cast<std::int64_t>(codes_.capacity() + scales_.capacity() * sizeof(float) +
                                   begins_.capacity() * sizeof(std::uint32_t));
}

std::vector<double> SentenceIndex::score(std::span<const float> question) const {
  MODELD_CHECK(question.size() == dim_);
  std::vector<double> best(blocks(), 0.0);
  for (std::size_t b = 0; b < best.size(); ++b) {
    for (std::size_t s = begins_[b]; s < begins_[b + 1]; ++s) {
      const std::int8_t* codes = codes_.data() + s * dim_;
      const float dot = std::inner_product(question.begin(), question.end(), codes, 0.0F);
      const double score = double{dot} * double{scales_[s]};
      best[b] = s == begins_[b] ? score : std::max(best[b], score);
    }
  }
  return best;
}

}  // namespace modeld
