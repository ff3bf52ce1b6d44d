#include "plan/retention.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace modeld {
namespace {

std::vector<RetainedBlock> any_blocks() {
  return *rc::gen::container<std::vector<RetainedBlock>>(rc::gen::build<RetainedBlock>(
      rc::gen::set(&RetainedBlock::cls,
                   rc::gen::element(CacheClass::task_pinned, CacheClass::repo_map, CacheClass::volatile_)),
      rc::gen::set(&RetainedBlock::last_use, rc::gen::inRange<std::uint64_t>(0, 4)),
      rc::gen::set(&RetainedBlock::fetches, rc::gen::inRange<std::uint32_t>(0, 3)),
      rc::gen::set(&RetainedBlock::payload_bytes, rc::gen::inRange<std::int64_t>(0, 1000)),
      rc::gen::set(&RetainedBlock::held, rc::gen::map(rc::gen::inRange(0, 4), [](int n) { return n == 0; }))));
}

std::int64_t droppable(const std::vector<RetainedBlock>& blocks) {
  std::int64_t bytes = 0;
  for (const RetainedBlock& block : blocks) bytes += block.held ? 0 : block.payload_bytes;
  return bytes;
}
std::int64_t bytes_of(const std::vector<RetainedBlock>& blocks, const std::vector<std::size_t>& drops) {
  return std::accumulate(drops.begin(), drops.end(), std::int64_t{0},
                         [&](std::int64_t sum, std::size_t i) { return sum + blocks[i].payload_bytes; });
}

RC_GTEST_PROP(Retention, FreesEnoughOrDropsNothing, ()) {
  const auto blocks = any_blocks();
  const std::int64_t needed = *rc::gen::inRange<std::int64_t>(1, 20000);
  const auto drops = choose_drops(blocks, needed);
  RC_ASSERT(drops.empty() == (droppable(blocks) < needed));
  if (drops.empty()) return;
  RC_ASSERT(bytes_of(blocks, drops) >= needed);
  // The last one was needed too.
  RC_ASSERT(bytes_of(blocks, drops) - blocks[drops.back()].payload_bytes < needed);
}

RC_GTEST_PROP(Retention, NeverDropsWhatIsHeldNorTwiceNorWhatFreesNothing, ()) {
  const auto blocks = any_blocks();
  const auto drops = choose_drops(blocks, *rc::gen::inRange<std::int64_t>(1, 5000));
  RC_ASSERT(std::set<std::size_t>(drops.begin(), drops.end()).size() == drops.size());
  for (const std::size_t i : drops) {
    RC_ASSERT(!blocks.at(i).held);
    RC_ASSERT(blocks[i].payload_bytes > 0);
  }
}

RC_GTEST_PROP(Retention, DropsVolatileFirstThenByFetchesThenByUse, ()) {
  const auto blocks = any_blocks();
  const auto drops = choose_drops(blocks, *rc::gen::inRange<std::int64_t>(1, 5000));
  const auto precious = [&](std::size_t i) {
    const int cls = blocks[i].cls == CacheClass::volatile_ ? 0 : blocks[i].cls == CacheClass::repo_map ? 1 : 2;
    return std::tuple(cls, blocks[i].fetches, blocks[i].last_use, i);
  };
  for (std::size_t n = 1; n < drops.size(); ++n) RC_ASSERT(precious(drops[n - 1]) < precious(drops[n]));
  if (drops.empty()) return;
  // What is kept is worth more than all that is dropped.
  const std::set<std::size_t> dropped(drops.begin(), drops.end());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].held || blocks[i].payload_bytes == 0 || dropped.contains(i)) continue;
    RC_ASSERT(precious(drops.back()) < precious(i));
  }
}

TEST(Retention, NothingNeededDropsNothing) {
  const std::vector<RetainedBlock> blocks(3, RetainedBlock{CacheClass::volatile_, 0, 0, 100, false});
  EXPECT_TRUE(choose_drops(blocks, 0).empty());
  EXPECT_TRUE(choose_drops(blocks, -5).empty());
  EXPECT_TRUE(choose_drops({}, 10).empty());
  EXPECT_EQ(choose_drops(blocks, 101), (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace modeld
