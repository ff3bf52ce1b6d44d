// The mask is the selection: only what is resident can be answered from. And what sliding windows leave possible.
#include <algorithm>
#include <array>

#include "conformance/fixture.h"

namespace modeld {
namespace {

constexpr std::string_view kSecret = " The secret code of the lighthouse is 7341.";
constexpr std::string_view kQuestion =
    "\nQuestion: What is the secret code of the lighthouse?\nAnswer: The secret code of the lighthouse is";

/// Sentences that share no fact with the planted one.
std::string padding(int from, int count) {
  constexpr std::array kSubjects = {"The baker", "An old sailor", "Her neighbour", "The teacher", "A young farmer"};
  constexpr std::array kActs = {
      "carried two baskets of apples across", "waited a long time beside",  "told a funny story about",
      "painted a small picture of",           "often walked slowly around", "planted some flowers near"};
  constexpr std::array kThings = {"the market square",   "the wooden bridge", "the river",        "a quiet garden",
                                  "the railway station", "the school",        "the northern road"};
  std::string out;
  for (int i = from; i < from + count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    out += std::string(" ") + kSubjects[n % kSubjects.size()] + " " + kActs[n % kActs.size()] + " " +
           kThings[n % kThings.size()] + ".";
  }
  return out;
}

class Selection : public Conformance {
 protected:
  /// Feeds `[padding][secret][padding]`; the block of the secret with two sentences on each side is returned.
  PlaceRange plant() {
    const int half = GetParam().padding_sentences / 2;
    feed(engine().tokenize("Read this text." + padding(0, half), true, true).value());
    const std::int32_t begin = engine().extent(0).end.get();
    feed(tokens(padding(half, 2) + std::string(kSecret) + padding(half + 2, 2)));
    const std::int32_t end = engine().extent(0).end.get();
    feed(tokens(padding(half + 4, half)));
    return places(begin, end);
  }
  /// Asks behind what is resident and takes the question away again.
  std::string ask() {
    const std::int32_t end = engine().extent(0).end.get();
    std::string answer = continue_greedily(feed(tokens(kQuestion)), 0, 8);
    evict(0, end, engine().extent(0).end.get());
    return answer;
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, Selection, testing::ValuesIn(kv_cases()), case_name);

TEST_P(Selection, AnEvictedPassageCannotBeAnsweredAndAnAdmittedOneCan) {
  open(1024, 2, 128);
  const PlaceRange block = plant();
  RecordProperty("tokens", engine().extent(0).end.get());
  EXPECT_NE(ask().find("7341"), std::string::npos) << "with everything resident";
  const KvPayload payload = take_out(0, block.begin.get(), block.end.get());
  evict(0, block.begin.get(), block.end.get());
  EXPECT_EQ(ask().find("7341"), std::string::npos) << "without the passage";
  admit(0, payload, block.begin.get());
  EXPECT_NE(ask().find("7341"), std::string::npos) << "with the passage back in its place";
  evict(0, block.begin.get(), block.end.get());
  EXPECT_EQ(ask().find("7341"), std::string::npos) << "without the passage again";
  admit(0, payload, engine().extent(0).end.get());
  EXPECT_NE(ask().find("7341"), std::string::npos) << "with the passage directly before the question";
}

// Longer than the window of any windowed layer here. An engine either still has the old places' KV whole, and gives
// them out so that they can be admitted and answered from, or it refuses with the one code for that.
TEST_P(Selection, WhatASlidingWindowHasLostIsRefusedNotInvented) {
  std::int32_t window = 0;
  for (const auto& layer : engine().geometry().layers) window = std::max(window, layer.window);
  const std::int32_t length = window > 0 ? window + 100 : 200;
  open(length + 256, 3, 128);
  feed(story(static_cast<std::size_t>(length)));
  const auto early = engine().export_range(0, places(0, 40));
  if (!early) {
    EXPECT_GT(window, 0) << "a model without windows loses nothing";
    EXPECT_EQ(code_name(early.error().code), "unsupported_operation");
    return;
  }
  const auto tail = story(50);
  admit(1, *early, 0);
  const Logits late = feed(std::span(tail).subspan(40), 1);
  open(length + 256, 3, 128);
  feed(std::span(tail).first(40), 1);
  expect_near(feed(std::span(tail).subspan(40), 1), late, "exported after the window had passed");
}

TEST_P(Selection, EvictedAndAdmittedPlacesOutsideAWindowKeepTheBooksRight) {
  std::int32_t window = 0;
  for (const auto& layer : engine().geometry().layers) window = std::max(window, layer.window);
  if (window == 0) window = 100;
  open(window + 400, 2, 128);
  const auto text = story(static_cast<std::size_t>(window) + 160);
  feed(std::span(text).first(80));
  const KvPayload payload = take_out(0, 20, 60);
  feed(std::span(text).subspan(80));
  EXPECT_EQ(engine().cells_used(), window + 160) << "cells a window back are still counted as held";
  evict(0, 20, 60);
  EXPECT_EQ(engine().cells_used(), window + 120);
  const Status back = engine().admit(0, payload, Place(20));
  if (!back) {
    EXPECT_EQ(code_name(back.error().code), "unsupported_operation");
    EXPECT_EQ(engine().cells_used(), window + 120);
    return;
  }
  EXPECT_EQ(engine().cells_used(), window + 160);
  EXPECT_EQ(take_out(0, 20, 60).data, payload.data);
  feed(std::span(text).first(4));
}

}  // namespace
}  // namespace modeld
