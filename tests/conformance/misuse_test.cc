// Every guarded misuse is an error value and changes nothing.
#include <limits>

#include "conformance/fixture.h"

namespace modeld {
namespace {

constexpr auto kMisuse = ErrorCode::engine_misuse;
constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();

TEST_P(Rules, MisusedComputeChangesNothing) {
  const auto prompt = story(50);
  feed(std::span(prompt).first(40));
  const auto refuse = [&](std::string_view what, const std::vector<BatchToken>& batch) {
    must_refuse(kMisuse, what, [&] { return engine().compute(batch); });
  };
  const Token token = prompt[40];
  refuse("an empty batch", {});
  refuse("a gap", {{token, Place(41), 0, true}});
  refuse("a gap inside the batch", {{token, Place(40), 0, false}, {token, Place(42), 0, true}});
  refuse("a place that is taken", {{token, Place(39), 0, true}});
  refuse("a place twice in the batch", {{token, Place(40), 0, false}, {token, Place(40), 0, true}});
  refuse("a negative place", {{token, Place(-1), 1, true}});
  refuse("a place out of range", {{token, Place(kLast), 1, true}});
  refuse("a negative sequence", {{token, Place(40), -1, true}});
  refuse("a sequence beyond the context's", {{token, Place(0), engine().context().sequences, true}});
  refuse("a good token before a bad sequence", {{token, Place(40), 0, false}, {token, Place(0), 99, true}});
  refuse("a negative token", {{-1, Place(40), 0, true}});
  refuse("a token beyond the vocabulary", {{engine().geometry().vocabulary, Place(40), 0, true}});
  const Logits after = feed(std::span(prompt).subspan(40));
  open();
  feed(std::span(prompt).first(40));
  EXPECT_EQ(feed(std::span(prompt).subspan(40)), after) << "refused calls must leave no trace";
}

TEST_P(Rules, MisusedSurgeryChangesNothing) {
  const auto prompt = story(60);
  feed(std::span(prompt).first(50));
  evict(0, 20, 30);
  const KvPayload payload = take_out(0, 0, 20);
  Engine& e = engine();
  const SeqId bad = e.context().sequences;
  const auto refuse = [&](std::string_view what, auto call) { must_refuse(kMisuse, what, call); };

  refuse("export over a hole", [&] { return e.export_range(0, places(10, 40)); });
  refuse("export beyond the end", [&] { return e.export_range(0, places(40, 51)); });
  refuse("export from an empty sequence", [&] { return e.export_range(1, places(0, 10)); });
  refuse("export of nothing", [&] { return e.export_range(0, places(5, 5)); });
  refuse("export of a reversed range", [&] { return e.export_range(0, places(10, 5)); });
  refuse("export of negative places", [&] { return e.export_range(0, places(-5, 5)); });
  refuse("export from no sequence", [&] { return e.export_range(bad, places(0, 5)); });

  refuse("evict from no sequence", [&] { return e.evict(-1, places(0, 5)); });
  refuse("evict of a reversed range", [&] { return e.evict(0, places(10, 5)); });
  refuse("evict of negative places", [&] { return e.evict(0, places(-5, 5)); });
  must(e.evict(0, places(5, 5)));
  must(e.evict(0, places(20, 30)));
  refuse("evict from a sequence too many", [&] { return e.evict(bad, places(0, 5)); });

  refuse("admit over taken places", [&] { return e.admit(0, payload, Place(0)); });
  refuse("admit half over taken places", [&] { return e.admit(0, payload, Place(15)); });
  refuse("admit into a hole that is too small", [&] { return e.admit(0, payload, Place(20)); });
  refuse("admit at a negative place", [&] { return e.admit(1, payload, Place(-3)); });
  refuse("admit beyond all places", [&] { return e.admit(1, payload, Place(kLast - 5)); });
  refuse("admit into no sequence", [&] { return e.admit(bad, payload, Place(0)); });

  refuse("move onto taken places", [&] { return e.rebase(0, places(30, 50), -15); });
  refuse("move below place 0", [&] { return e.rebase(0, places(0, 20), -1); });
  refuse("move beyond all places", [&] { return e.rebase(0, places(30, 50), kLast - 40); });
  refuse("move of a reversed range", [&] { return e.rebase(0, places(50, 30), 5); });
  refuse("move in no sequence", [&] { return e.rebase(bad, places(0, 20), 5); });

  refuse("share into no sequence", [&] { return e.share(0, bad, places(0, 20)); });
  refuse("share from no sequence", [&] { return e.share(-1, 1, places(0, 20)); });
  refuse("share of a reversed range", [&] { return e.share(0, 1, places(20, 0)); });
  refuse("share with itself", [&] { return e.share(0, 0, places(0, 20)); });
  must(e.share(0, 1, places(0, 20)));
  refuse("share onto taken places", [&] { return e.share(0, 1, places(10, 20)); });
  refuse("move of shared cells", [&] { return e.rebase(0, places(0, 20), 1000); });
  refuse("move of a run with shared cells", [&] { return e.rebase(1, places(0, 20), 1000); });
  evict(1, 0, 20);

  const Logits after = feed(std::span(prompt).subspan(50));
  open();
  feed(std::span(prompt).first(50));
  evict(0, 20, 30);
  expect_near(feed(std::span(prompt).subspan(50)), after, "after refused calls");
}

TEST_P(Rules, WithoutAContextEveryCallIsMisuse) {
  feed(story(10));
  const KvPayload payload = take_out(0, 0, 10);
  Engine& e = engine();
  e.close_context();
  const auto refuse = [&](std::string_view what, auto call) { must_refuse(kMisuse, what, call); };
  refuse("compute", [&] { return e.compute(batch_of(story(5), 0, 0)); });
  refuse("export", [&] { return e.export_range(0, places(0, 5)); });
  refuse("evict", [&] { return e.evict(0, places(0, 5)); });
  refuse("admit", [&] { return e.admit(0, payload, Place(0)); });
  refuse("rebase", [&] { return e.rebase(0, places(0, 5), 1); });
  refuse("share", [&] { return e.share(0, 1, places(0, 5)); });
  EXPECT_EQ(e.cells_used(), 0);
  EXPECT_TRUE(e.extent(0).empty());
  EXPECT_TRUE(e.logits(0).empty());
  e.close_context();
}

TEST_P(Rules, ABadSpecIsRefusedAndTheOpenContextStays) {
  const auto prompt = story(12);
  feed(std::span(prompt).first(10));
  const auto refuse = [&](std::string_view what, const ContextSpec& spec) {
    must_refuse(ErrorCode::bad_argument, what, [&] { return engine().open_context(spec); });
  };
  refuse("no cells", {.cells = 0});
  refuse("negative cells", {.cells = -5});
  refuse("no sequences", {.cells = 256, .sequences = 0});
  refuse("a negative batch", {.cells = 256, .sequences = 1, .kv_type = KvType::f16, .batch = -1});
  refuse("negative threads", {.cells = 256, .sequences = 1, .kv_type = KvType::f16, .batch = 64, .threads = -1});
  expect_extent(0, 0, 10);
  feed(std::span(prompt).subspan(10));
}

TEST_P(Rules, ZeroesInASpecAreResolved) {
  must(engine().open_context({.cells = 256, .sequences = 1, .kv_type = KvType::f16, .batch = 0, .threads = 0}));
  EXPECT_GT(engine().context().batch, 0);
  EXPECT_GT(engine().context().threads, 0);
  feed(story(40));
}

}  // namespace
}  // namespace modeld
