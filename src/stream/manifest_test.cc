#include "stream/manifest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <set>

namespace modeld {
namespace {

Identity base() {
  Identity identity;
  identity.engine = "llama.cpp 0c1e57098";
  identity.model = std::string(64, 'a');
  identity.tokenizer = "t";
  identity.chat_template = "c";
  identity.adapters = {{"one", 1.0F}, {"two", 0.5F}};
  identity.kv_type = "f16";
  identity.rope = "neox 10000";
  identity.calibration = "k";
  return identity;
}

struct Change {
  const char* field;
  std::function<void(Identity&)> apply;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"engine", [](Identity& i) { i.engine = "llama.cpp 1"; }},
      {"model", [](Identity& i) { i.model = std::string(64, 'b'); }},
      {"model", [](Identity& i) { i.model.back() = 'b'; }},
      {"tokenizer", [](Identity& i) { i.tokenizer = "u"; }},
      {"chat template", [](Identity& i) { i.chat_template = ""; }},
      {"BOS", [](Identity& i) { i.adds_bos = !i.adds_bos; }},
      {"adapters", [](Identity& i) { i.adapters[1].second = 0.25F; }},
      {"adapters", [](Identity& i) { i.adapters[0].first = "three"; }},
      {"adapters", [](Identity& i) { std::swap(i.adapters[0], i.adapters[1]); }},
      {"adapters", [](Identity& i) { i.adapters.clear(); }},
      {"KV type", [](Identity& i) { i.kv_type = "q8_0"; }},
      {"RoPE", [](Identity& i) { i.rope = "neox 100000"; }},
      {"calibration", [](Identity& i) { i.calibration = ""; }},
  };
  return all;
}

TEST(Identity, EveryFieldChangesTheDigest) {
  std::set<Digest128> digests = {base().digest()};
  for (const Change& change : changes()) {
    Identity identity = base();
    change.apply(identity);
    EXPECT_TRUE(digests.insert(identity.digest()).second) << change.field;
  }
  EXPECT_EQ(base().digest(), base().digest());
}

TEST(Identity, TextThatMovesBetweenFieldsChangesTheDigest) {
  Identity a;
  a.engine = "ab";
  Identity b;
  b.engine = "a";
  b.model = "b";
  EXPECT_NE(a.digest(), b.digest());
}

TEST(Identity, EqualScalesGiveEqualDigests) {
  Identity a = base();
  Identity b = base();
  a.adapters[0].second = 0.0F;
  b.adapters[0].second = -0.0F;
  ASSERT_EQ(a, b);
  EXPECT_EQ(a.digest(), b.digest());
}

TEST(Difference, NamesTheFieldAndBothValues) {
  EXPECT_EQ(difference(base(), base()), "");
  for (const Change& change : changes()) {
    Identity current = base();
    change.apply(current);
    const std::string text = difference(base(), current);
    EXPECT_NE(text.find(change.field), std::string::npos) << text;
    EXPECT_EQ(text.rfind("The KV was made with ", 0), 0U) << text;
    EXPECT_EQ(text.back(), '.') << text;
    // The two values must be told apart in what is shown.
    EXPECT_NE(text, difference(current, base())) << text;
  }
}

TEST(Difference, ReadsLikeASentence) {
  Identity current = base();
  current.kv_type = "q8_0";
  EXPECT_EQ(difference(base(), current), "The KV was made with KV type f16, this is q8_0.");
  current = base();
  current.model = "bcdefghijklmnopq" + std::string(48, '0');
  EXPECT_EQ(difference(base(), current), "The KV was made with model aaaaaaaaaaaa…, this is bcdefghijklm….");
  current = base();
  current.adapters.clear();
  EXPECT_EQ(difference(base(), current), "The KV was made with adapters one×1 + two×0.5, this is none.");
}

Manifest manifest() {
  Manifest m;
  m.identity = base();
  Segment segment;
  segment.kind = SegmentKind::system;
  segment.cls = CacheClass::task_pinned;
  segment.tokens = {StreamPos(0), StreamPos(10)};
  segment.source = "a.txt";
  segment.hash = {1, 2};
  m.segments = {segment};
  segment.tokens = {StreamPos(10), StreamPos(30)};
  m.segments.push_back(segment);
  return m;
}

TEST(Manifest, EveryFieldThatKvDependsOnChangesTheDigest) {
  const std::vector<std::function<void(Manifest&)>> edits = {
      [](Manifest& m) { m.identity.kv_type = "q4_0"; },
      [](Manifest& m) { m.segments[0].kind = SegmentKind::tools; },
      [](Manifest& m) { m.segments[0].cls = CacheClass::repo_map; },
      [](Manifest& m) { m.segments[1].tokens.begin = StreamPos(11); },
      [](Manifest& m) { m.segments[1].tokens.end = StreamPos(31); },
      [](Manifest& m) { m.segments[0].hash.low = 3; },
      [](Manifest& m) { m.segments[0].hash.high = 3; },
      [](Manifest& m) { m.segments.pop_back(); },
      [](Manifest& m) { std::swap(m.segments[0], m.segments[1]); },
  };
  std::set<Digest128> digests = {manifest().digest()};
  for (std::size_t i = 0; i < edits.size(); ++i) {
    Manifest changed = manifest();
    edits[i](changed);
    EXPECT_TRUE(digests.insert(changed.digest()).second) << i;
  }
}

TEST(Manifest, WhereTheTextLayDoesNotChangeTheDigest) {
  Manifest moved = manifest();
  moved.segments[0].source = "b.txt";
  moved.segments[0].byte_begin = 100;
  moved.segments[0].byte_end = 200;
  EXPECT_EQ(moved.digest(), manifest().digest());
}

RC_GTEST_PROP(BlockKey, OfIsolatedKvDependsOnAllItWasMadeFrom,
              (const std::vector<Token>& run_up, const std::vector<Token>& tokens)) {
  const Digest128 identity{1, 1};
  const Digest128 sinks{2, 2};
  const BlockKey key = isolated_key(identity, sinks, run_up, tokens);
  RC_ASSERT(key == isolated_key(identity, sinks, run_up, tokens));
  RC_ASSERT(key != isolated_key(sinks, identity, run_up, tokens));
  RC_ASSERT(key != isolated_key(identity, {2, 3}, run_up, tokens));
  std::vector<Token> other = tokens;
  other.push_back(1);
  RC_ASSERT(key != isolated_key(identity, sinks, run_up, other));
  // A token that moves from the run-up into the block makes another block.
  if (!run_up.empty()) {
    std::vector<Token> longer = {run_up.back()};
    longer.insert(longer.end(), tokens.begin(), tokens.end());
    RC_ASSERT(key != isolated_key(identity, sinks, std::span(run_up).first(run_up.size() - 1), longer));
  }
  RC_ASSERT(key != streamed_key(identity, sinks, 512, BlockKey{}, tokens));
}

TEST(BlockKey, OfStreamedKvDependsOnWindowAndChain) {
  const std::vector<Token> tokens = {1, 2, 3};
  const auto key = [&](std::int32_t window, BlockKey chain) {
    return streamed_key({1, 1}, {2, 2}, window, chain, tokens);
  };
  EXPECT_EQ(key(512, {}), key(512, {}));
  EXPECT_NE(key(512, {}), key(1024, {}));
  EXPECT_NE(key(512, {}), key(512, {0, 1}));
  EXPECT_NE(streamed_key({1, 1}, {2, 2}, 512, {}, {}), key(512, {}));
}

TEST(HashTokens, DependsOnEveryTokenAndTheirOrder) {
  const auto hash = [](std::vector<Token> tokens) { return hash_tokens(tokens); };
  EXPECT_EQ(hash({1, 2, 3}), hash({1, 2, 3}));
  EXPECT_NE(hash({1, 2, 3}), hash({1, 3, 2}));
  EXPECT_NE(hash({1, 2, 3}), hash({1, 2}));
  EXPECT_NE(hash({}), hash({0}));
}

TEST(KvOrigin, HasAName) {
  EXPECT_EQ(to_text(KvOrigin::isolated), "isolated");
  EXPECT_EQ(to_text(KvOrigin::streamed), "streamed");
}

}  // namespace
}  // namespace modeld
