// Cost of scoring a synthetic index: a question of 30 tokens against 12 retrieval heads on 9 KV heads of 64 dimensions
// (what calibration finds for SmolLM2-135M), blocks of 128 tokens. One thread.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <random>

#include "recall/score.h"

namespace modeld {
namespace {

constexpr std::int32_t kDim = 64;
constexpr std::size_t kHeads = 12;
constexpr std::size_t kKvHeads = 9;
constexpr std::size_t kQuestion = 30;
constexpr std::int64_t kBlock = 128;

std::vector<float> normal(std::mt19937& random, std::size_t count) {
  std::normal_distribution<float> distribution;
  std::vector<float> out(count);
  std::generate(out.begin(), out.end(), [&] { return distribution(random); });
  return out;
}

KeyIndex make_index(std::int64_t tokens) {
  std::vector<KvHeadRef> heads;
  for (std::size_t h = 0; h < kKvHeads; ++h) heads.push_back({static_cast<std::int32_t>(h), 0});
  KeyIndex index(heads, kDim);
  std::mt19937 random(1);
  constexpr std::int32_t kPiece = 4096;
  std::vector<std::vector<float>> keys;
  for (std::size_t h = 0; h < kKvHeads; ++h) keys.push_back(normal(random, std::size_t{kPiece} * kDim));
  while (index.tokens() < tokens) {
    // Every piece is the one before, turned by a dimension: other keys, made quickly.
    for (auto& k : keys) std::rotate(k.begin(), k.begin() + 1, k.end());
    index.append(keys, kPiece);
  }
  return index;
}

/// Kept: making the largest takes longer than measuring it.
const KeyIndex& index_of(std::int64_t tokens) {
  static std::map<std::int64_t, KeyIndex> made;
  if (!made.contains(tokens)) {
    made.clear();
    made.emplace(tokens, make_index(tokens));
  }
  return made.at(tokens);
}

std::vector<HeadQueries> make_queries() {
  std::mt19937 random(2);
  std::vector<HeadQueries> queries;
  for (std::size_t h = 0; h < kHeads; ++h) {
    queries.push_back({{static_cast<std::int32_t>(h), 0}, h % kKvHeads, normal(random, kQuestion * kDim), {}});
    queries.back().local_lse.assign(kQuestion, 6.0F);
  }
  return queries;
}

void score(benchmark::State& state, ScoreRule rule) {
  const std::int64_t tokens = state.range(0);
  const KeyIndex& index = index_of(tokens);
  const std::vector<HeadQueries> queries = make_queries();
  std::vector<StreamRange> blocks;
  for (std::int64_t at = 0; at < tokens; at += kBlock) blocks.push_back({StreamPos{at}, StreamPos{at + kBlock}});
  for (auto _ : state) benchmark::DoNotOptimize(score_blocks(index, queries, blocks, rule));
  state.SetItemsProcessed(state.iterations() * tokens);
  state.counters["index_bytes_per_token"] = static_cast<double>(index.bytes()) / static_cast<double>(tokens);
}

void sigmoid(benchmark::State& state) { score(state, ScoreRule::sigmoid); }
void full(benchmark::State& state) { score(state, ScoreRule::full); }

void log_sum_exp_of_a_probe(benchmark::State& state) {
  std::mt19937 random(3);
  const auto rows = static_cast<std::size_t>(state.range(0));
  const std::vector<float> keys = normal(random, rows * kDim);
  const std::vector<float> query = normal(random, kDim);
  for (auto _ : state) benchmark::DoNotOptimize(log_sum_exp(query, keys, rows));
}

constexpr std::int64_t k64k = 64 * 1024;
constexpr std::int64_t k256k = 256 * 1024;
constexpr std::int64_t k1M = 1024 * 1024;
BENCHMARK(sigmoid)->Arg(k64k)->Unit(benchmark::kMillisecond);
BENCHMARK(full)->Arg(k64k)->Unit(benchmark::kMillisecond);
BENCHMARK(sigmoid)->Arg(k256k)->Unit(benchmark::kMillisecond);
BENCHMARK(full)->Arg(k256k)->Unit(benchmark::kMillisecond);
BENCHMARK(sigmoid)->Arg(k1M)->Unit(benchmark::kMillisecond);
BENCHMARK(full)->Arg(k1M)->Unit(benchmark::kMillisecond);
BENCHMARK(log_sum_exp_of_a_probe)->Arg(2048)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace modeld
