// A payload is admitted whole and under its own identity, or not at all.
#include "conformance/fixture.h"
#include "engine/scripted/open.h"

namespace modeld {
namespace {

constexpr auto kInvalid = ErrorCode::payload_invalid;

class Payloads : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    feed(story(24));
    payload_ = take_out(0, 0, 24);
  }
  void refuse(std::string_view what, const KvPayload& bad) {
    must_refuse(kInvalid, what, [&] { return engine().admit(1, bad, Place(0)); });
  }
  /// After all refusals the good one is still taken, and its sequence says what the first one says.
  void finish() {
    admit(1, payload_, 0);
    const auto text = story(30);
    const auto tail = std::span(text).subspan(24);
    expect_near(feed(tail), feed(tail, 1), "after refused payloads");
  }
  KvPayload payload_;
};

INSTANTIATE_TEST_SUITE_P(Engine, Payloads, testing::ValuesIn(rule_cases()), case_name);

TEST_P(Payloads, CutShortAnywhereIsInvalid) {
  for (std::size_t part = 0; part < 20; ++part) {
    KvPayload cut = payload_;
    cut.data.resize(payload_.data.size() * part / 20);
    refuse("cut at " + std::to_string(part) + "/20", cut);
  }
  KvPayload cut = payload_;
  cut.data.pop_back();
  refuse("cut by one byte", cut);
  finish();
}

TEST_P(Payloads, BytesBehindTheEndAreInvalid) {
  KvPayload longer = payload_;
  longer.data.push_back(std::byte{0});
  refuse("one byte more", longer);
  longer.data.resize(payload_.data.size() + 4096);
  refuse("4 KiB more", longer);
  finish();
}

TEST_P(Payloads, OneFlippedBitAnywhereIsInvalid) {
  for (std::size_t i = 0; i < 64; ++i) {
    KvPayload flipped = payload_;
    // The first bytes one by one, where headers are, then spread over all.
    const std::size_t at = i < 40 ? i * 3 : payload_.data.size() * (i - 40) / 24;
    flipped.data[at] ^= static_cast<std::byte>(1U << (i % 8));
    refuse("bit flipped in byte " + std::to_string(at), flipped);
  }
  finish();
}

TEST_P(Payloads, AnotherKvTypeIsInvalid) {
  const KvType own = GetParam().kv_type;
  const KvType other = own == KvType::q8_0 ? KvType::f16 : KvType::q8_0;
  KvPayload renamed = payload_;
  renamed.kv_type = other;
  refuse("a payload that names another KV type", renamed);
  must(engine().open_context({512, 4, other, 64, 2}));
  feed(story(24));
  auto foreign = engine().export_range(0, places(0, 24));
  ASSERT_TRUE(foreign);
  must_refuse(kInvalid, "a payload of the old type", [&] { return engine().admit(1, payload_, Place(0)); });
  open();
  feed(story(24));
  refuse("a payload of another KV type", *foreign);
  foreign->kv_type = own;
  refuse("a payload of another KV type under a false name", *foreign);
  finish();
}

TEST_P(Payloads, AnotherEnginesPayloadIsInvalid) {
  const auto other = open_scripted({.seed = 77});
  ASSERT_TRUE(other->open_context({.cells = 64, .sequences = 1, .kv_type = GetParam().kv_type}));
  const auto words = other->tokenize(" a few words that some other engine has read before", false, false).value();
  ASSERT_TRUE(other->compute(batch_of(words, 0, 0)));
  const auto foreign = other->export_range(0, places(0, 8));
  ASSERT_TRUE(foreign);
  refuse("another engine's payload", *foreign);
  KvPayload noise = payload_;
  for (std::size_t i = 0; i < noise.data.size(); ++i) noise.data[i] = static_cast<std::byte>(i * 167 + 13);
  refuse("noise of the right length", noise);
  KvPayload empty = payload_;
  empty.data.clear();
  refuse("no data", empty);
  finish();
}

TEST_P(Payloads, FalsePlacesAreInvalid) {
  KvPayload false_places = payload_;
  false_places.places = places(1, 25);
  refuse("places moved by one", false_places);
  false_places.places = places(0, 23);
  refuse("fewer places than tokens", false_places);
  false_places.places = places(0, 25);
  refuse("more places than tokens", false_places);
  false_places.places = places(0, 0);
  refuse("no places", false_places);
  false_places.places = places(-3, 21);
  refuse("negative places", false_places);
  finish();
}

}  // namespace
}  // namespace modeld
