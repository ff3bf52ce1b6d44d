// Several sequences: shared prefixes, and that none can hurt another.
#include "conformance/fixture.h"

namespace modeld {
namespace {

TEST_P(KvRules, ASharedPrefixGivesWhatASequenceAloneGives) {
  const auto prompt = story(100);
  const auto one = std::span(prompt).subspan(60, 12);
  const auto other = std::span(prompt).subspan(80, 12);
  feed(std::span(prompt).first(60));
  const Logits one_alone = feed(one);
  open();
  feed(std::span(prompt).first(60));
  const Logits other_alone = feed(other);
  open();
  feed(std::span(prompt).first(60));
  must(engine().share(0, 1, places(0, 60)));
  must(engine().share(0, 2, places(0, 60)));
  expect_extent(2, 0, 60);
  std::vector<BatchToken> batch;
  for (std::size_t i = 0; i < one.size(); ++i) {
    batch.push_back({one[i], Place(60 + static_cast<std::int32_t>(i)), 1, i + 1 == one.size()});
    batch.push_back({other[i], Place(60 + static_cast<std::int32_t>(i)), 2, i + 1 == one.size()});
  }
  must(engine().compute(batch));
  const auto row = [&](std::size_t i) { return Logits(engine().logits(i).begin(), engine().logits(i).end()); };
  expect_near(one_alone, row(batch.size() - 2), "first branch of a shared prefix");
  expect_near(other_alone, row(batch.size() - 1), "second branch of a shared prefix");
  EXPECT_EQ(engine().cells_used(), 60 + 24);
  expect_extent(0, 0, 60);
}

TEST_P(Rules, EvictingFromOneSequenceLeavesTheOtherIntact) {
  const auto prompt = story(80);
  const auto tail = std::span(prompt).subspan(60);
  feed(std::span(prompt).first(60));
  const Logits alone = feed(tail);
  open();
  feed(std::span(prompt).first(60));
  must(engine().share(0, 1, places(0, 60)));
  feed(std::span(prompt).subspan(5, 10), 1);
  evict(1, 0, 40);
  expect_extent(0, 0, 60);
  expect_extent(1, 40, 70);
  evict(1, 0, 70);
  expect_extent(1, 0, 0);
  EXPECT_EQ(engine().cells_used(), 60);
  expect_near(alone, feed(tail), "after the other sequence was evicted");
}

TEST_P(Rules, TheLastHolderKeepsASharedCellAlive) {
  const auto prompt = story(70);
  const auto tail = std::span(prompt).subspan(60);
  feed(std::span(prompt).first(60));
  must(engine().share(0, 1, places(0, 60)));
  const Logits here = feed(tail);
  evict(0, 0, 70);
  EXPECT_EQ(engine().cells_used(), 60);
  expect_near(here, feed(tail, 1), "the first holder gone");
  EXPECT_EQ(take_out(1, 0, 60).places, places(0, 60));
}

TEST_P(Rules, ForeignSequencesAreNotAttended) {
  const auto prompt = story(60);
  const Logits alone = feed(prompt);
  open();
  feed(std::span(prompt).subspan(20, 40), 1);
  feed(story(30), 2, 100);
  expect_near(alone, feed(prompt), "beside two other sequences");
}

TEST_P(Rules, APartOfASequenceCanBeShared) {
  const auto prompt = story(60);
  feed(prompt);
  must(engine().share(0, 1, places(10, 40)));
  expect_extent(1, 10, 40);
  EXPECT_EQ(engine().cells_used(), 60);
  feed(std::span(prompt).first(5), 1);
  expect_extent(1, 10, 45);
  EXPECT_EQ(engine().cells_used(), 65);
}

}  // namespace
}  // namespace modeld
