#include "cli/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace modeld {
namespace {

Answer example() {
  Answer answer;
  answer.text = "5520";
  answer.prompt_tokens = 64000;
  answer.computed_tokens = 64000;
  answer.attended_tokens = 2000;
  answer.cold_tokens = 62000;
  answer.retrieved.push_back({{StreamPos(700), StreamPos(810)}, 0.5, "a.txt", 12, 14, KvOrigin::isolated, "text"});
  answer.seconds.probe = 0.5;
  answer.seconds.scoring = 0.25;
  return answer;
}

TEST(AnswerJson, IsOneLineWithTheDocumentedFields) {
  const std::string line = answer_json(example(), "");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(line);
  for (const char* name :
       {"answer", "mode", "prompt_tokens", "reused_tokens", "computed_tokens", "attended_tokens", "cold_tokens",
        "dropped_tokens", "recomputed_tokens", "returns", "retrieved", "ttft_ms", "prefill_tokens_per_second",
        "decode_ms_per_token", "kv_bytes_device", "kv_bytes_host", "index_bytes", "seconds", "predicted_seconds"})
    EXPECT_TRUE(json.contains(name)) << name;
  EXPECT_FALSE(json.contains("question"));
  EXPECT_EQ(json["mode"], "extended");
  EXPECT_EQ(json["seconds"]["retrieval"], 0.75);
  const auto expected = nlohmann::json::parse(
      R"({"start":700,"end":810,"score":0.5,"source":"a.txt","lines":[12,14],"origin":"isolated"})");
  EXPECT_EQ(json["retrieved"][0], expected);
}

Answer map_example() {
  Answer answer = example();
  answer.retrieved.clear();
  MapReport& map = answer.map.emplace();
  map.parts.push_back({{StreamPos(64), StreamPos(1800)}, "a.txt", 1, 90, "The code is 5520\nand so on"});
  map.parts.push_back({{StreamPos(1800), StreamPos(3000)}, "a.txt", 90, 140, "There is none."});
  map.rounds = 1;
  map.read_tokens = 2936;
  return answer;
}

TEST(AnswerJson, HoldsThePassOverTheWholeTextOnlyWhereThereWasOne) {
  EXPECT_FALSE(nlohmann::json::parse(answer_json(example(), "")).contains("map"));
  const auto map = nlohmann::json::parse(answer_json(map_example(), ""))["map"];
  EXPECT_EQ(map["rounds"], 1);
  EXPECT_EQ(map["read_tokens"], 2936);
  ASSERT_EQ(map["parts"].size(), 2U);
  EXPECT_EQ(map["parts"][0], nlohmann::json::parse(R"({"start":64,"end":1800,"source":"a.txt","lines":[1,90],)"
                                                   R"("answer":"The code is 5520\nand so on"})"));
}

TEST(AnswerReport, GivesEachPartOfAPassOneLine) {
  const std::string report = answer_report(map_example());
  EXPECT_NE(report.find("  a.txt, lines 1-90: The code is 5520 …\n"), std::string::npos) << report;
  EXPECT_NE(report.find("  a.txt, lines 90-140: There is none.\n"), std::string::npos) << report;
  EXPECT_NE(report.find("read in 2 parts"), std::string::npos) << report;
}

TEST(AnswerJson, NamesTheQuestionWhereThereAreMany) {
  EXPECT_EQ(nlohmann::json::parse(answer_json(example(), "Why?"))["question"], "Why?");
}

TEST(AnswerJson, SurvivesFileNamesThatAreNoUtf8) {
  Answer answer = example();
  answer.retrieved[0].source = "caf\xe9.txt";
  EXPECT_TRUE(nlohmann::json::accept(answer_json(answer, "")));
}

TEST(AnswerReport, NamesFileLinesAndCounts) {
  const std::string report = answer_report(example());
  for (const char* part : {"a.txt, lines 12-14", "64,000 tokens", "62,000 cold"})
    EXPECT_NE(report.find(part), std::string::npos) << part << " is not in\n" << report;
}

TEST(ErrorJson, HoldsCodeMessageAndNumbers) {
  const auto json =
      nlohmann::json::parse(error_json({ErrorCode::hot_too_small, "Too small.", {{"needed_tokens", 900}}}));
  EXPECT_EQ(json, nlohmann::json::parse(
                      R"({"error":{"code":"hot_too_small","message":"Too small.","numbers":{"needed_tokens":900}}})"));
}

}  // namespace
}  // namespace modeld
