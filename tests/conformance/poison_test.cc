// A context that failed half-way is never used again. Only an engine that can be made to fail takes part.
#include "conformance/fixture.h"
#include "engine/scripted/open.h"

namespace modeld {
namespace {

constexpr auto kPoisoned = ErrorCode::engine_poisoned;

class Poison : public Conformance {
 protected:
  void SetUp() override {
    failing_ = open_scripted({.fail_at_compute = 2});
    use(failing_.get());
    open();
  }
  std::unique_ptr<Engine> failing_;
};

INSTANTIATE_TEST_SUITE_P(Engine, Poison, testing::Values(rule_cases().front()), case_name);

TEST_P(Poison, EveryCallIsRefusedUntilTheContextIsOpenedAgain) {
  const auto prompt = story(20);
  feed(prompt);
  const KvPayload payload = take_out(0, 0, 20);
  Engine& e = engine();
  const Status failed = e.compute(batch_of(prompt, 0, 20));
  ASSERT_FALSE(failed);
  EXPECT_EQ(code_name(failed.error().code), "engine_failed");
  const auto refuse = [&](std::string_view what, auto call) { must_refuse(kPoisoned, what, call); };
  refuse("compute", [&] { return e.compute(batch_of(prompt, 1, 0)); });
  refuse("observe", [&] { return e.observe({}); });
  refuse("export", [&] { return e.export_range(0, places(0, 5)); });
  refuse("evict", [&] { return e.evict(0, places(0, 5)); });
  refuse("admit", [&] { return e.admit(1, payload, Place(0)); });
  refuse("rebase", [&] { return e.rebase(0, places(0, 5), 100); });
  refuse("share", [&] { return e.share(0, 1, places(0, 5)); });
  EXPECT_TRUE(e.logits(0).empty());
  open();
  expect_extent(0, 0, 0);
  EXPECT_EQ(e.cells_used(), 0);
  admit(0, payload, 0);
  const Logits after = feed(std::span(prompt).first(4));
  open();
  feed(prompt);
  EXPECT_EQ(feed(std::span(prompt).first(4)), after) << "payloads taken before the failure are still good";
}

}  // namespace
}  // namespace modeld
