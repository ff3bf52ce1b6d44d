#include "recall/score_kernels.h"

#include <algorithm>
#include <cstring>

// Vectors of a length that is only known at run time could be longer than a step; such machines take the fixed-length
// version that they have as well (NEON, or plain code).
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "recall/score_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace modeld::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Ints = hn::CappedTag<std::int32_t, 16>;
using Floats = hn::RebindToFloat<Ints>;

#if HWY_TARGET == HWY_SCALAR

// The fallback has registers of one lane, which hold no pair of int16: plain loops.
void widen_tile_impl(const std::int8_t* tile, std::size_t pairs, std::size_t wide, std::int16_t* rows) {
  for (std::size_t p = 0; p < pairs; ++p) std::copy_n(tile + p * 32, 32, rows + p * wide * 2);
}

void score_chunk_impl(const Chunk& chunk, const std::int32_t* query_pairs, const float* query_scales,
                      std::size_t queries, float* scores) {
  for (std::size_t q = 0; q < queries; ++q) {
    const std::int32_t* query = query_pairs + q / kGroup * kGroup * chunk.pairs + q % kGroup;
    for (std::size_t j = 0; j < chunk.tokens; ++j) {
      std::int32_t dot = 0;
      for (std::size_t p = 0; p < chunk.pairs; ++p) {
        std::int16_t two[2];
        std::memcpy(two, query + p * kGroup, sizeof two);
        const std::int16_t* key = chunk.keys + (p * chunk.wide + j) * 2;
        dot += two[0] * key[0] + two[1] * key[1];
      }
      scores[q * chunk.wide + j] = static_cast<float>(dot) * query_scales[q] * chunk.scales[j] + chunk.bias[j];
    }
  }
}

#else

using Shorts = hn::Repartition<std::int16_t, Ints>;

void widen_tile_impl(const std::int8_t* tile, std::size_t pairs, std::size_t wide, std::int16_t* rows) {
  const Shorts shorts;
  const hn::Rebind<std::int8_t, Shorts> bytes;
  const std::size_t lanes = hn::Lanes(shorts);
  for (std::size_t p = 0; p < pairs; ++p) {
    for (std::size_t i = 0; i < 32; i += lanes) {
      hn::StoreU(hn::PromoteTo(shorts, hn::LoadU(bytes, tile + p * 32 + i)), shorts, rows + p * wide * 2 + i);
    }
  }
}

/// 2 registers of tokens × kGroup queries. The accumulators are named: an array of them would live in memory.
HWY_INLINE void score_step(const Chunk& chunk, std::size_t at, const std::int32_t* query, const float* query_scales,
                           float* scores) {
  const Ints ints;
  const Floats floats;
  const Shorts shorts;
  const std::size_t lanes = hn::Lanes(ints);
  using Sum = hn::Vec<Ints>;
  const Sum zero = hn::Zero(ints);
  Sum a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
  // Some instruction sets deliver the two halves of a pair apart.
  Sum odd_a0 = zero, odd_a1 = zero, odd_a2 = zero, odd_a3 = zero;
  Sum odd_b0 = zero, odd_b1 = zero, odd_b2 = zero, odd_b3 = zero;
  const std::int16_t* keys = chunk.keys + 2 * at;
  for (std::size_t p = 0; p < chunk.pairs; ++p, keys += 2 * chunk.wide, query += kGroup) {
    const auto ka = hn::LoadU(shorts, keys);
    const auto kb = hn::LoadU(shorts, keys + 2 * lanes);
    const auto q0 = hn::BitCast(shorts, hn::Set(ints, query[0]));
    a0 = hn::ReorderWidenMulAccumulate(ints, ka, q0, a0, odd_a0);
    b0 = hn::ReorderWidenMulAccumulate(ints, kb, q0, b0, odd_b0);
    const auto q1 = hn::BitCast(shorts, hn::Set(ints, query[1]));
    a1 = hn::ReorderWidenMulAccumulate(ints, ka, q1, a1, odd_a1);
    b1 = hn::ReorderWidenMulAccumulate(ints, kb, q1, b1, odd_b1);
    const auto q2 = hn::BitCast(shorts, hn::Set(ints, query[2]));
    a2 = hn::ReorderWidenMulAccumulate(ints, ka, q2, a2, odd_a2);
    b2 = hn::ReorderWidenMulAccumulate(ints, kb, q2, b2, odd_b2);
    const auto q3 = hn::BitCast(shorts, hn::Set(ints, query[3]));
    a3 = hn::ReorderWidenMulAccumulate(ints, ka, q3, a3, odd_a3);
    b3 = hn::ReorderWidenMulAccumulate(ints, kb, q3, b3, odd_b3);
  }
  const auto put = [&](std::size_t q, std::size_t j, Sum even, Sum odd) HWY_ATTR {
    const auto dot = hn::ConvertTo(floats, hn::RearrangeToOddPlusEven(even, odd));
    const auto scaled = hn::Mul(dot, hn::Set(floats, query_scales[q]));
    const auto score = hn::MulAdd(scaled, hn::LoadU(floats, chunk.scales + j), hn::LoadU(floats, chunk.bias + j));
    hn::StoreU(score, floats, scores + q * chunk.wide + j);
  };
  put(0, at, a0, odd_a0);
  put(1, at, a1, odd_a1);
  put(2, at, a2, odd_a2);
  put(3, at, a3, odd_a3);
  put(0, at + lanes, b0, odd_b0);
  put(1, at + lanes, b1, odd_b1);
  put(2, at + lanes, b2, odd_b2);
  put(3, at + lanes, b3, odd_b3);
}

void score_chunk_impl(const Chunk& chunk, const std::int32_t* query_pairs, const float* query_scales,
                      std::size_t queries, float* scores) {
  const std::size_t step = 2 * hn::Lanes(Ints());
  for (std::size_t q = 0; q < queries; q += kGroup) {
    for (std::size_t at = 0; at < chunk.tokens; at += step) {
      score_step(chunk, at, query_pairs + q * chunk.pairs, query_scales + q, scores + q * chunk.wide);
    }
  }
}

#endif

HWY_INLINE float row_max(const float* row, std::size_t tokens) {
  const Floats floats;
  const std::size_t lanes = hn::Lanes(floats);
  auto largest = hn::LoadU(floats, row);
  for (std::size_t j = lanes; j < tokens; j += lanes) largest = hn::Max(largest, hn::LoadU(floats, row + j));
  return hn::GetLane(hn::MaxOfLanes(floats, largest));
}

void fold_max_impl(const float* scores, std::size_t rows, std::size_t wide, std::size_t tokens, float* largest) {
  for (std::size_t q = 0; q < rows; ++q) largest[q] = std::max(largest[q], row_max(scores + q * wide, tokens));
}

/// 2^x for x <= 0, relative error 2e-7; what is below 2^-126 comes out as 2^-126. Taylor series of 2^f, |f| <= 1/2,
/// coefficients (ln 2)^k / k!.
template <class V>
HWY_INLINE V power_of_two(Floats floats, V x) {
  const Ints ints;
  x = hn::Max(x, hn::Set(floats, -126.0F));
  const auto whole = hn::NearestInt(x);
  const V f = hn::Sub(x, hn::ConvertTo(floats, whole));
  V p = hn::MulAdd(hn::Set(floats, 1.540353039e-4F), f, hn::Set(floats, 1.333355815e-3F));
  p = hn::MulAdd(p, f, hn::Set(floats, 9.618129108e-3F));
  p = hn::MulAdd(p, f, hn::Set(floats, 5.550410866e-2F));
  p = hn::MulAdd(p, f, hn::Set(floats, 2.402265070e-1F));
  p = hn::MulAdd(p, f, hn::Set(floats, 6.931471806e-1F));
  p = hn::MulAdd(p, f, hn::Set(floats, 1.0F));
  // The sum of the exponents is at least 0 (p >= 0.7, whole >= -126): the bits never wrap into the sign.
  return hn::BitCast(floats, hn::Add(hn::BitCast(ints, p), hn::ShiftLeft<23>(whole)));
}

void fold_max_and_sum_impl(const float* scores, std::size_t rows, std::size_t wide, std::size_t tokens, float* largest,
                           PowerSum* sums) {
  const Floats floats;
  const std::size_t lanes = hn::Lanes(floats);
  for (std::size_t q = 0; q < rows; ++q) {
    const float* row = scores + q * wide;
    const float top = row_max(row, tokens);
    largest[q] = std::max(largest[q], top);
    PowerSum& all = sums[q];
    if (top > all.largest) {
      all.sum *= hn::GetLane(power_of_two(floats, hn::Set(floats, all.largest - top)));
      all.largest = top;
    }
    const auto reference = hn::Set(floats, all.largest);
    auto sum = hn::Zero(floats);
    for (std::size_t j = 0; j < tokens; j += lanes) {
      sum = hn::Add(sum, power_of_two(floats, hn::Sub(hn::LoadU(floats, row + j), reference)));
    }
    all.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(floats, sum)));
  }
}

void dot_rows_impl(const float* query, const float* rows, std::size_t dim, std::size_t count, float* out) {
  const Floats floats;
  const std::size_t lanes = hn::Lanes(floats);
  const std::size_t whole = dim / lanes * lanes;
  for (std::size_t row = 0; row < count; ++row, rows += dim) {
    auto sum = hn::Zero(floats);
    for (std::size_t d = 0; d < whole; d += lanes) {
      sum = hn::MulAdd(hn::LoadU(floats, query + d), hn::LoadU(floats, rows + d), sum);
    }
    float total = hn::GetLane(hn::SumOfLanes(floats, sum));
    for (std::size_t d = whole; d < dim; ++d) total += query[d] * rows[d];
    out[row] = total;
  }
}

}  // namespace modeld::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::kernels {

HWY_EXPORT(widen_tile_impl);
HWY_EXPORT(score_chunk_impl);
HWY_EXPORT(fold_max_impl);
HWY_EXPORT(fold_max_and_sum_impl);
HWY_EXPORT(dot_rows_impl);

void widen_tile(const std::int8_t* tile, std::size_t pairs, std::size_t wide, std::int16_t* rows) {
  HWY_DYNAMIC_DISPATCH(widen_tile_impl)(tile, pairs, wide, rows);
}
void score_chunk(const Chunk& chunk, const std::int32_t* query_pairs, const float* query_scales, std::size_t queries,
                 float* scores) {
  HWY_DYNAMIC_DISPATCH(score_chunk_impl)(chunk, query_pairs, query_scales, queries, scores);
}
void fold_max(const float* scores, std::size_t rows, std::size_t wide, std::size_t tokens, float* largest) {
  HWY_DYNAMIC_DISPATCH(fold_max_impl)(scores, rows, wide, tokens, largest);
}
void fold_max_and_sum(const float* scores, std::size_t rows, std::size_t wide, std::size_t tokens, float* largest,
                      PowerSum* sums) {
  HWY_DYNAMIC_DISPATCH(fold_max_and_sum_impl)(scores, rows, wide, tokens, largest, sums);
}
void dot_rows(const float* query, const float* rows, std::size_t dim, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(dot_rows_impl)(query, rows, dim, count, out);
}

}  // namespace modeld::kernels
#endif
