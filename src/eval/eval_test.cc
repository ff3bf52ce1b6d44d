#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/scripted/open.h"
#include "eval/cells.h"
#include "eval/command.h"
#include "eval/dense.h"
#include "eval/tasks.h"
#include "needles/needles.h"
#include "session/session_fixture.h"

namespace modeld {
namespace {

namespace fs = std::filesystem;

using testing::scripted_calibration;

/// A folder that goes away with the test.
class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / ("modeld-eval-test-" + std::to_string(::getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

void write(const fs::path& path, const std::string& content) { std::ofstream(path) << content; }
std::string read(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::unique_ptr<Engine> small_engine() {
  ScriptedOptions options;
  options.trained_window = 2048;
  return open_scripted(std::move(options));
}

EvalOptions small_options(const Folder& folder) {
  write(folder / "prose.txt", filler_prose(80'000, 5));
  EvalOptions options;
  options.text = folder / "prose.txt";
  options.passkeys = 0;
  options.tokens = 8192;
  options.questions = 12;
  options.dense_questions = 9;
  options.dense_tokens = {4096};
  options.hot_tokens = 1400;
  options.output = folder / "out";
  return options;
}

Cell load(const EvalOptions& options, const std::string& name) {
  // By the file's own parameters: the folder gives a cell back only to who asks with the same ones.
  const std::string content = read(options.output / name);
  const std::string key = "\"parameters\": \"";
  const auto begin = content.find(key) + key.size();
  Cell wanted;
  wanted.parameters = content.substr(begin, content.find('"', begin) - begin);
  const auto first_dash = name.find('-', name.find('.'));
  const auto second_dash = name.find('-', first_dash + 1);
  wanted.task = name.substr(0, first_dash);
  wanted.tokens = std::stoll(name.substr(first_dash + 1, second_dash - first_dash - 1));
  wanted.mode = name.substr(second_dash + 1, name.size() - 5 - second_dash - 1);
  const auto cell = CellFolder(options.output).load(wanted);
  EXPECT_TRUE(cell) << name;
  return cell.value_or(Cell{});
}

/// The report's table of selectors; empty without one.
std::string selectors_of(const std::string& report) {
  const auto begin = report.find("## Selectors");
  return begin == std::string::npos ? "" : report.substr(begin);
}

double score(const Cell& cell) {
  return cell.results.empty() ? -1.0 : cell.forced_right() / static_cast<double>(cell.results.size());
}

TEST(Eval, OursAnswersWhereSinksAndWindowCannot) {
  const Folder folder;
  const EvalOptions options = small_options(folder);
  const auto engine = small_engine();
  std::string said;
  const Status status =
      run_eval(*engine, scripted_calibration(), options, [&said](std::string_view text) { said += text; });
  ASSERT_TRUE(status) << to_text(status.error());
  const Cell fresh = load(options, "prose-1.lookalike-8192-fresh.json");
  const Cell ours = load(options, "prose-1.lookalike-8192-ours.json");
  const Cell window = load(options, "prose-1.lookalike-8192-sinks+recent.json");
  const Cell oracle = load(options, "prose-1.lookalike-8192-oracle.json");
  EXPECT_EQ(ours.results.size(), 12U);
  EXPECT_GE(score(fresh), 0.9);
  EXPECT_GE(score(ours), 0.9);
  EXPECT_GE(score(oracle), 0.9);
  EXPECT_LE(score(window), 0.2);
  ASSERT_TRUE(ours.recall(4));
  EXPECT_GE(*ours.recall(4), 0.9);
  EXPECT_GE(*ours.recall(16), *ours.recall(1));
  // This model can only copy what followed the same words: it can answer few paraphrases, with any passage.
  EXPECT_LE(score(load(options, "prose-1.paraphrase-8192-oracle.json")), 0.5);
  // The text cut to the window holds an eighth of the facts, the first four thousand tokens all of those asked for.
  EXPECT_LE(score(load(options, "prose-1.lookalike-8192-truncated.json")), 0.5);
  const Cell dense = load(options, "prose-1.lookalike-8192-dense-4096.json");
  EXPECT_LE(dense.results.size(), 3U);
  EXPECT_GE(dense.results.size(), 1U);
  EXPECT_NE(said.find("prose-1.lookalike 8192 ours: "), std::string::npos);
  const std::string report = read(options.output / "report.md");
  EXPECT_NE(report.find("| prose.lookalike | 8192 | ours | 12 |"), std::string::npos) << report;
  EXPECT_NE(report.find("- Machine: "), std::string::npos);
  // Without an embedder there are five selectors beside ours, on the same twelve questions.
  EXPECT_EQ(ours.rivals(), (std::vector<std::string>{"heads", "bm25", "quest", "quest-16", "means"}));
  EXPECT_TRUE(oracle.rivals().empty());
  EXPECT_NE(report.find("## Selectors, same questions, same index"), std::string::npos);
  for (const char* selector : {"fused (ours)", "heads", "bm25", "quest", "quest-16", "means"}) {
    EXPECT_NE(report.find("| prose.lookalike | 8192 | " + std::string(selector) + " | 12 |"), std::string::npos)
        << selector << "\n"
        << report;
  }
  // The picture that the report shows at its top has a point for each row of its table.
  EXPECT_LT(report.find("](report.svg)"), report.find("- Machine: "));
  const std::string picture = read(options.output / "report.svg");
  EXPECT_NE(picture.find("8192 tokens, hot set 1400"), std::string::npos);
  EXPECT_EQ(count(picture, "class=\"point\""), count(report.substr(0, report.find("## Selectors")), "| prose."));
}

TEST(Eval, FinishedCellsAreTakenFromTheFolderAndOtherParametersAreNot) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.modes = {"ours", "fresh"};
  const auto engine = small_engine();
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}));
  const auto before = fs::last_write_time(options.output / "prose-1.single-8192-ours.json");
  const std::string selectors = selectors_of(read(options.output / "report.md"));
  EXPECT_NE(selectors.find("| prose.single | 8192 | quest | 12 |"), std::string::npos) << selectors;
  std::size_t questions = 0;
  const ProgressSink count = [&questions](const Progress& p) { questions += p.unit == "questions" ? 1 : 0; };
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}, count));
  EXPECT_EQ(questions, 0U);
  EXPECT_EQ(selectors_of(read(options.output / "report.md")), selectors);
  EXPECT_EQ(fs::last_write_time(options.output / "prose-1.single-8192-ours.json"), before);
  // A damaged cell is measured again, and nothing but it.
  write(options.output / "prose-1.single-8192-fresh.json", "{");
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}, count));
  EXPECT_EQ(questions, 12U);
  questions = 0;
  options.hot_tokens = 1300;
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}, count));
  EXPECT_EQ(questions, 36U);  // ours of three kinds; fresh does not depend on the hot set
}

TEST(Eval, SeveralTextsOfACorpusAreOneRowAndOnlyTheFirstIsReadInEveryMode) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.texts = 2;
  options.modes = {"fresh", "ours", "truncated"};
  const auto engine = small_engine();
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}));
  EXPECT_TRUE(fs::exists(options.output / "prose-2.single-8192-ours.json"));
  EXPECT_FALSE(fs::exists(options.output / "prose-2.single-8192-truncated.json"));
  const std::string report = read(options.output / "report.md");
  EXPECT_NE(report.find("| prose.lookalike | 8192 | ours | 24 |"), std::string::npos) << report;
  EXPECT_NE(report.find("| prose.lookalike | 8192 | means | 24 |"), std::string::npos) << report;
  EXPECT_NE(report.find("| prose.lookalike | 8192 | truncated | 9 |"), std::string::npos) << report;
}

TEST(Eval, JsonIsOneObjectOfTasksAndModesWithWhatTheTableHolds) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.modes = {"fresh", "ours"};
  options.kinds = {"single", "lookalike"};
  options.json = true;
  const auto engine = small_engine();
  std::string said;
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, [&said](std::string_view text) { said += text; }));
  EXPECT_EQ(count(said, "\n"), 1U);
  const nlohmann::json object = nlohmann::json::parse(said);
  EXPECT_EQ(object.at("tokens"), 8192);
  EXPECT_EQ(object.at("hot_tokens"), 1400);
  EXPECT_TRUE(object.at("embedder").is_null());
  EXPECT_EQ(read(object.at("report").get<std::string>()).rfind("# Evaluation", 0), 0U);
  EXPECT_TRUE(fs::exists(object.at("picture").get<std::string>()));
  ASSERT_EQ(object.at("tasks").size(), 2U);
  for (const auto& [task, modes] : object.at("tasks").items()) {
    ASSERT_EQ(modes.size(), 2U) << task;
    for (const auto& [mode, scores] : modes.items()) {
      EXPECT_EQ(scores.at("n"), 12);
      EXPECT_EQ(scores.at("tokens"), 8192);
      EXPECT_LE(scores.at("interval").at(0), scores.at("score"));
      EXPECT_GE(scores.at("interval").at(1), scores.at("score"));
      EXPECT_EQ(scores.at("free").at("n"), 12);
      EXPECT_GT(scores.at("question_seconds"), 0.0);
      EXPECT_NE(scores.at("parameters").get<std::string>().find("seed=1"), std::string::npos);
      EXPECT_EQ(scores.at("prepare_seconds") > 0.0, mode == "ours");
      for (const char* ours_only : {"retention", "recall", "read"})
        EXPECT_EQ(scores.contains(ours_only), mode == "ours") << ours_only;
    }
    const auto& ours = modes.at("ours");
    EXPECT_EQ(ours.at("retention").at("interval").size(), 2U);
    for (const char* k : {"1", "4", "8", "16"}) EXPECT_LE(ours.at("recall").at(k), 1.0);
    EXPECT_EQ(ours.at("recall").size(), 4U);
  }
}

TEST(Eval, CancelKeepsFinishedCellsAndSaysSo) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.modes = {"fresh"};
  const auto engine = small_engine();
  CancelFlag cancel;
  const TextSink stop = [&cancel](std::string_view) { cancel.request(); };
  const Status status = run_eval(*engine, scripted_calibration(), options, stop, {}, &cancel);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::cancelled);
  EXPECT_EQ(std::distance(fs::directory_iterator(options.output), fs::directory_iterator()), 1);
}

TEST(Eval, PasskeyIsFoundAtEachPosition) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.text.clear();
  options.passkeys = 3;
  options.modes = {"ours"};
  const auto engine = small_engine();
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}));
  for (const char* name : {"passkey-1.passkey", "passkey-2.passkey", "passkey-3.passkey"})
    EXPECT_TRUE(fs::exists(options.output / (std::string(name) + "-8192-ours.json"))) << name;
  EXPECT_NE(read(options.output / "report.md").find("| passkey.passkey | 8192 | ours | 3 | 1.00"), std::string::npos)
      << read(options.output / "report.md");
}

TEST(Eval, OfManyKeysThatDifferInTheirNamesAloneTheRightBlockIsFound) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.text.clear();
  options.pairs = true;
  options.modes = {"ours"};
  const auto engine = small_engine();
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}));
  // The scripted engine copies what follows the same two words: it tells a UUID's block from all others, but neither
  // its value from the next one nor names that end alike.
  const Cell json = load(options, "json-1.uuid-8192-ours.json");
  EXPECT_EQ(json.results.size(), 12U);
  EXPECT_EQ(json.recall(1), 1.0);
  EXPECT_EQ(load(options, "lines-1.number-8192-ours.json").results.size(), 12U);
}

TEST(EvalTasks, PairsAreWholeLinesWithKeysOfTheirOwnSpreadOverTheText) {
  const auto engine = small_engine();
  for (const PairStyle style : {PairStyle::json, PairStyle::lines}) {
    const auto made = make_pairs_text(*engine, "pairs", style, 4096, 16, 3);
    ASSERT_TRUE(made);
    const EvalText& text = *made;
    EXPECT_LE(text.offsets.tokens.size(), 4096U + 4U);
    EXPECT_GE(text.offsets.tokens.size(), 3900U);
    ASSERT_EQ(text.items.size(), 16U);
    for (std::size_t i = 0; i < text.items.size(); ++i) {
      const EvalItem& item = text.items[i];
      EXPECT_NEAR(item.depth, (static_cast<double>(i) + 0.5) / 16, 0.05);
      ASSERT_EQ(item.evidence.size(), 1U);
      const Evidence& at = item.evidence.front();
      const std::string sentence = text.text.substr(at.byte_begin, at.byte_end - at.byte_begin);
      EXPECT_EQ(text.text.substr(at.answer_byte, item.answers.front().size()), item.answers.front());
      EXPECT_TRUE(at.byte_begin == 0 || text.text[at.byte_begin - 1] == '\n');
      EXPECT_EQ(text.text.find(sentence), text.text.rfind(sentence));
    }
    EXPECT_EQ(make_pairs_text(*engine, "pairs", style, 4096, 16, 3)->text, text.text);
    EXPECT_NE(make_pairs_text(*engine, "pairs", style, 4096, 16, 4)->text, text.text);
    EXPECT_EQ(text.text.ends_with("\"\n}\n"), style == PairStyle::json);
  }
}

TEST(EvalTasks, WordListsAreAsLongAsAskedForAndAboutTheWholeText) {
  const auto engine = small_engine();
  for (const WordStyle style : {WordStyle::common, WordStyle::frequent}) {
    const auto made = make_words_text(*engine, "w", style, 4096, 3);
    ASSERT_TRUE(made) << to_text(made.error());
    EXPECT_LE(made->offsets.tokens.size(), 4096U);
    EXPECT_GE(made->offsets.tokens.size(), 3900U);
    ASSERT_EQ(made->items.size(), 1U);
    EXPECT_TRUE(made->items[0].evidence.empty());
    for (const std::string& answer : made->items[0].answers) EXPECT_TRUE(answer_contains(made->text, answer));
    EXPECT_EQ(made->text, make_words_text(*engine, "w", style, 4096, 3)->text);
    EXPECT_EQ(make_words_text(*engine, "w", style, 64, 3).error().code, ErrorCode::bad_argument);
  }
}

TEST(Eval, AQuestionAboutTheWholeTextHasNoCellInModesThatReadOnePassage) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.text.clear();
  options.words = true;
  options.texts = 2;
  options.tokens = 4096;
  options.dense_tokens = {2048};
  const auto engine = small_engine();
  const Status status = run_eval(*engine, scripted_calibration(), options, {});
  ASSERT_TRUE(status) << to_text(status.error());
  const std::string report = read(options.output / "report.md");
  for (const char* task : {"common.words", "frequent.words"}) {
    for (const char* mode : {"ours", "map", "sinks+recent", "truncated", "dense-2048"})
      EXPECT_NE(report.find(fmt::format("| {} | 4096 | {} | 2 |", task, mode)), std::string::npos) << report;
    for (const char* mode : {"fresh", "oracle"})
      EXPECT_EQ(report.find(fmt::format("| {} | 4096 | {} |", task, mode)), std::string::npos) << report;
  }
}

TEST(Eval, AnUnknownModeIsAnsweredWithTheRightOnes) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.modes = {"ourz"};
  const Status status = run_eval(*small_engine(), scripted_calibration(), options, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::bad_argument);
  EXPECT_NE(status.error().message.find("sinks+recent"), std::string::npos);
}

TEST(Eval, AnUnknownKindOfFactsIsAnsweredWithTheRightOnes) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  for (const std::vector<std::string>& kinds :
       {std::vector<std::string>{"passkey"}, {"single", "single"}, {}, {"nonsense"}}) {
    options.kinds = kinds;
    const Status status = run_eval(*small_engine(), scripted_calibration(), options, {});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::bad_argument);
    EXPECT_NE(status.error().message.find("unrelated"), std::string::npos);
  }
}

TEST(Dense, AsksWithoutChangingTheTextAndForgetsOnReset) {
  const auto engine = small_engine();
  const auto needles = make_needles(NeedleKind::lookalike, 2, 3);
  const PlantedText planted = plant(filler_prose(3000, 2), needles, std::vector<double>{0.3, 0.7});
  const auto text = locate(*engine, "t", planted);
  ASSERT_TRUE(text);
  auto runner = DenseRunner::open(*engine, 2048, 0);
  ASSERT_TRUE(runner);
  ASSERT_TRUE(runner->extend(text->offsets.tokens));
  const std::int64_t held = runner->text_tokens();
  for (int round = 0; round < 2; ++round) {
    for (const EvalItem& item : text->items) {
      const auto question = forced_question(*engine, item);
      const auto answer = runner->ask(*question);
      ASSERT_TRUE(answer) << to_text(answer.error());
      EXPECT_EQ(share_right(item, answer->text), 1.0) << answer->text;
      EXPECT_EQ(runner->text_tokens(), held);
    }
  }
  ASSERT_TRUE(runner->reset());
  const auto question = forced_question(*engine, text->items[0]);
  EXPECT_EQ(share_right(text->items[0], runner->ask(*question)->text), 0.0);
}

TEST(Tasks, KindsAreSpreadOverFourDepthBandsAndLocatedByTokens) {
  const auto engine = small_engine();
  const auto text = make_eval_text(*engine, "prose", filler_prose(200'000, 9), 16'384, {.questions = 20, .seed = 4});
  ASSERT_TRUE(text) << to_text(text.error());
  EXPECT_EQ(text->items.size(), 60U);
  EXPECT_NEAR(static_cast<double>(text->offsets.tokens.size()), 16'384.0, 200.0);
  std::array<int, 4> bands{};
  for (const EvalItem& item : text->items) {
    ++bands[static_cast<std::size_t>(item.depth * 4.0)];
    std::string decoded;
    const Evidence& at = item.evidence.front();
    const std::string sentence = text->text.substr(at.byte_begin, at.byte_end - at.byte_begin);
    for (std::int64_t i = at.token_begin; i < at.token_end; ++i)
      decoded += engine->piece(text->offsets.tokens[static_cast<std::size_t>(i)]);
    EXPECT_NE(decoded.find(sentence), std::string::npos) << decoded;
    const std::string passage = passages_around(*text, item, 120);
    EXPECT_NE(passage.find(sentence), std::string::npos);
    EXPECT_LE(engine->tokenize(passage, false, false)->size(), 125U);
  }
  for (const int band : bands) EXPECT_NEAR(band, 15, 3);
}

TEST(Tasks, EvidenceOfSeveralSentencesStandsInOrderOnePartOfTheTextEach) {
  const auto engine = small_engine();
  const auto text = make_eval_text(*engine, "prose", filler_prose(200'000, 9), 16'384,
                                   {.kinds = {"values", "chain", "update"}, .questions = 6, .seed = 4});
  ASSERT_TRUE(text) << to_text(text.error());
  ASSERT_EQ(text->items.size(), 18U);
  for (const EvalItem& item : text->items) {
    EXPECT_EQ(item.evidence.size(), item.answers.size());
    for (std::size_t i = 0; i < item.evidence.size(); ++i) {
      const Evidence& at = item.evidence[i];
      EXPECT_EQ(text->text.substr(at.answer_byte, item.answers[i].size()), item.answers[i]);
      EXPECT_EQ(text->text.find(item.answers[i]) >= at.byte_begin, true);
      const auto parts = item.kind == "update" ? 3.0 : static_cast<double>(item.evidence.size());
      const double part = item.kind == "update" ? 2.0 : static_cast<double>(i);
      EXPECT_NEAR(static_cast<double>(at.byte_begin) / static_cast<double>(text->text.size()), (part + 0.5) / parts,
                  0.5 / parts + 0.05);
    }
    const std::string passages = passages_around(*text, item, 300);
    for (const std::string& answer : item.answers) EXPECT_NE(passages.find(answer), std::string::npos);
    EXPECT_LE(engine->tokenize(passages, false, false)->size(), 320U);
  }
}

TEST(Tasks, OfSeveralAnswersTheShareThatIsGivenCounts) {
  EvalItem item;
  item.answers = {"12", "34", "56", "78"};
  EXPECT_EQ(share_right(item, " 78, 12 and 345"), 0.5);
  EXPECT_EQ(share_right(item, " none"), 0.0);
  item.answers = {"12"};
  EXPECT_EQ(share_right(item, " '12', they said"), 1.0);
  EXPECT_EQ(share_right(item, " 34, 12"), 0.0);
}

TEST(Eval, FactsOfSeveralSentencesAreFoundBlockByBlock) {
  const Folder folder;
  EvalOptions options = small_options(folder);
  options.text.clear();
  options.noise = true;
  options.questions = 6;
  options.modes = {"ours", "fresh"};
  const auto engine = small_engine();
  ASSERT_TRUE(run_eval(*engine, scripted_calibration(), options, {}));
  const Cell number = load(options, "noise-1.number-8192-ours.json");
  EXPECT_EQ(number.results.size(), 6U);
  EXPECT_EQ(number.recall(4), 1.0);
  const Cell chain = load(options, "noise-1.chain-8192-ours.json");
  ASSERT_EQ(chain.results.size(), 6U);
  EXPECT_EQ(chain.results[0].ranks.size(), 5U);
  EXPECT_GE(*chain.recall(16), *chain.recall(1));
}

TEST(Cells, ComeBackFromTheFolderWithTheRanksOfEverySelector) {
  const Folder folder;
  Cell cell{.task = "prose-1.values", .mode = "ours", .tokens = 4096, .parameters = "p", .results = {}};
  cell.results.resize(3);
  cell.results[0].ranks = {1, 5};
  cell.results[0].rivals = {{"quest", {4, 0}}, {"bm25", {1, 2}}};
  cell.results[1].ranks = {2, 1};
  cell.results[1].rivals = {{"quest", {1, 1}}, {"bm25", {0, 0}}};
  const CellFolder cells(folder / "out");
  ASSERT_TRUE(cells.save(cell));
  const auto back = cells.load(cell);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rivals(), (std::vector<std::string>{"quest", "bm25"}));
  EXPECT_EQ(back->ranked(), 2);  // the third was not asked for
  EXPECT_EQ(back->recall(1), 0.5);
  EXPECT_EQ(back->recall(1, "quest"), 0.5);
  EXPECT_EQ(back->recall(4, "quest"), 0.75);
  EXPECT_EQ(back->recall(16, "bm25"), 0.5);
  EXPECT_EQ(back->recall(16, "none"), std::nullopt);
}

TEST(Corpus, ReadsADirectoryInOrderWithNamesAndPassesBinaryOver) {
  const Folder folder;
  write(folder / "b.py", "x = 1\n");
  write(folder / "a.py", "# first\n");
  write(folder / "c.py", std::string("\0\1\2", 3));
  write(folder / "d.bin", "no\n");
  const auto text = read_corpus(folder / "", 1000);
  ASSERT_TRUE(text) << to_text(text.error());
  EXPECT_EQ(*text, "# file: a.py\n# first\n# file: b.py\nx = 1\n");
  EXPECT_EQ(read_corpus(folder / "c.py", 100).error().code, ErrorCode::text_binary);
  EXPECT_EQ(read_corpus(folder / "none", 100).error().code, ErrorCode::file_missing);
}

TEST(Demo, TellsRightFromWrongAndModeldFindsTheFacts) {
  const Folder folder;
  write(folder / "prose.txt", filler_prose(80'000, 5));
  ScriptedOptions scripted;
  scripted.trained_window = 1280;
  const auto engine = open_scripted(std::move(scripted));
  DemoOptions options;
  options.text = folder / "prose.txt";
  options.tokens = 10'240;
  options.dense_tokens = 2048;
  options.hot_tokens = 1200;
  std::string said;
  std::string stages;
  const Status status = run_demo(
      *engine, scripted_calibration(), options, [&said](std::string_view text) { said += text; },
      [&stages](const Progress& p) { stages += p.stage; });
  ASSERT_TRUE(status) << to_text(status.error());
  EXPECT_NE(said.find("Seed   1 "), std::string::npos) << said;
  EXPECT_NE(said.find("read lines (score)"), std::string::npos);
  EXPECT_NE(said.find("0 of 6"), std::string::npos) << said;  // cut to the window: it holds no fact
  // Single and look-alike facts are found; paraphrases are beyond this model.
  EXPECT_NE(said.find("4 of 6"), std::string::npos) << said;
  for (const char* stage : {"1 of 3", "2 of 3", "3 of 3"}) EXPECT_NE(stages.find(stage), std::string::npos);
}

TEST(Demo, RefusesATextThatMakesNoPoint) {
  DemoOptions options;
  options.tokens = 4096;
  options.dense_tokens = 8192;
  const Status status = run_demo(*small_engine(), scripted_calibration(), options, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace modeld
