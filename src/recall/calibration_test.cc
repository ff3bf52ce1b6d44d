#include "recall/calibration.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "recall/replace_file.h"

namespace modeld {
namespace {

/// Like SmolLM2-135M: 30 layers of 9 heads on 3 KV heads, 23,040 bytes of f16 KV a token; 3 % of it are 691.
ModelGeometry small_model(std::int32_t layers = 30) {
  ModelGeometry geometry;
  geometry.name = "test";
  LayerGeometry layer;
  layer.heads = 9;
  layer.kv_heads = 3;
  layer.key_dim = layer.value_dim = 64;
  geometry.layers.assign(static_cast<std::size_t>(layers), layer);
  return geometry;
}

std::vector<HeadRef> refs(const std::vector<HeadMass>& heads) {
  std::vector<HeadRef> out;
  for (const HeadMass& h : heads) out.push_back(h.head);
  return out;
}

TEST(ChooseHeads, TakesTheStrongestFirstUntilTheirNumberIsReached) {
  const auto chosen =
      choose_heads(small_model(), {{{1, 0}, 0.2}, {{2, 0}, 0.6}, {{3, 0}, 0.4}, {{0, 5}, 0.4}}, 0.03, 3);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(refs(*chosen), (std::vector<HeadRef>{{2, 0}, {0, 5}, {3, 0}}));
}

TEST(ChooseHeads, LeavesOutWhatIsWeakerThanAnEighthOfTheStrongest) {
  const auto chosen = choose_heads(small_model(), {{{1, 0}, 0.8}, {{2, 0}, 0.1}, {{3, 0}, 0.099}});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(refs(*chosen), (std::vector<HeadRef>{{1, 0}, {2, 0}}));
}

TEST(ChooseHeads, GoesOnWithHeadsWhoseKvHeadIsInWhenNoOtherFits) {
  // A share of two KV heads: 132 of 23,040 bytes.
  const std::vector<HeadMass> all = {{{1, 0}, 0.9}, {{2, 0}, 0.8}, {{3, 0}, 0.7},
                                     {{1, 2}, 0.6}, {{4, 0}, 0.5}, {{2, 1}, 0.4}};
  const auto chosen = choose_heads(small_model(), all, 132.5 / 23040.0);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(refs(*chosen), (std::vector<HeadRef>{{1, 0}, {2, 0}, {1, 2}, {2, 1}}));
  EXPECT_EQ(index_heads(small_model(), *chosen), (std::vector<KvHeadRef>{{1, 0}, {2, 0}}));
}

TEST(ChooseHeads, PassesOverHeadsOfAnotherWidth) {
  ModelGeometry geometry = small_model();
  geometry.layers[5].key_dim = 128;
  const auto chosen = choose_heads(geometry, {{{1, 0}, 0.5}, {{5, 0}, 0.4}, {{6, 0}, 0.3}});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(refs(*chosen), (std::vector<HeadRef>{{1, 0}, {6, 0}}));
}

TEST(ChooseHeads, RefusesAModelWithoutRetrievalHeads) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& all : {std::vector<HeadMass>{}, {{{1, 0}, 0.0199}}, {{{1, 0}, nan}}}) {
    const auto chosen = choose_heads(small_model(), all);
    ASSERT_FALSE(chosen.has_value());
    EXPECT_EQ(chosen.error().code, ErrorCode::calibration_failed);
  }
  const auto unfit = choose_heads(small_model(1), {{{0, 0}, 0.5}});
  ASSERT_FALSE(unfit.has_value());
  EXPECT_EQ(unfit.error().code, ErrorCode::calibration_failed);
}

RC_GTEST_PROP(ChooseHeads, TheIndexStaysWithinItsShare, ()) {
  const ModelGeometry geometry = small_model();
  std::vector<HeadMass> all;
  for (std::int32_t layer = 0; layer < 30; ++layer) {
    for (std::int32_t head = 0; head < 9; ++head) all.push_back({{layer, head}, *rc::gen::inRange(0, 1000) / 1000.0});
  }
  all.push_back({{0, 0}, 0.9});
  all.erase(all.begin());
  const double share = *rc::gen::inRange(3, 80) / 1000.0;
  const auto chosen = choose_heads(geometry, all, share);
  RC_ASSERT(chosen.has_value());
  RC_ASSERT(!chosen->empty());
  RC_ASSERT(chosen->size() <= 16U);
  RC_ASSERT(static_cast<double>(index_heads(geometry, *chosen).size() * 66) <= share * 23040.0);
  RC_ASSERT(std::is_sorted(chosen->begin(), chosen->end(), [](auto& a, auto& b) { return a.mass > b.mass; }));
}

ReadingPolicy any_policy() {
  const auto tokens = [] { return *rc::gen::inRange(0, 1 << 20); };
  return {*rc::gen::element(KvOrigin::isolated, KvOrigin::streamed),
          tokens(),
          tokens(),
          tokens(),
          *rc::gen::element(BlockOrder::best_last, BlockOrder::best_first, BlockOrder::stream_order),
          tokens(),
          tokens()};
}

/// A number with all its digits in use.
double any_fraction() { return static_cast<double>(*rc::gen::arbitrary<std::uint64_t>()) / 0x1p64; }

Calibration any_calibration() {
  Calibration c;
  c.model = *rc::gen::container<std::string>(rc::gen::inRange(' ', '~'));
  c.engine = "llama.cpp \u00fc \"quoted\" \\ \n";
  for (auto n = *rc::gen::inRange(0, 20); n > 0; --n) {
    c.heads.push_back({{*rc::gen::inRange(0, 100), *rc::gen::inRange(0, 64)}, any_fraction()});
  }
  c.distance = *rc::gen::inRange(0, 100000);
  c.rule = *rc::gen::element(ScoreRule::sigmoid, ScoreRule::full);
  c.reading = any_policy();
  c.reading_measured = *rc::gen::arbitrary<bool>();
  for (auto n = *rc::gen::inRange(0, 5); n > 0; --n) {
    const int asked = *rc::gen::inRange(0, 1000);
    c.rows.push_back({any_policy(), *rc::gen::inRange(0, asked + 1), asked, any_fraction() * 1e4});
  }
  c.seconds = any_fraction() * 1e5;
  return c;
}

bool same(const Calibration& a, const Calibration& b) {
  const auto same_head = [](const HeadMass& x, const HeadMass& y) { return x.head == y.head && x.mass == y.mass; };
  const auto same_row = [](const Calibration::Row& x, const Calibration::Row& y) {
    return x.policy == y.policy && x.right == y.right && x.asked == y.asked && x.seconds == y.seconds;
  };
  return a.model == b.model && a.engine == b.engine && a.distance == b.distance && a.rule == b.rule &&
         a.reading == b.reading && a.reading_measured == b.reading_measured && a.seconds == b.seconds &&
         std::equal(a.heads.begin(), a.heads.end(), b.heads.begin(), b.heads.end(), same_head) &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), same_row);
}

Calibration example() {
  Calibration c;
  c.model = "0123abcd";
  c.engine = "llama.cpp 1";
  c.heads = {{{17, 3}, 0.65}, {{7, 7}, 0.6400000000000001}};
  c.rows = {{{}, 3, 4, 1.5}};
  return c;
}

RC_GTEST_PROP(CalibrationJson, ComesBackExactly, ()) {
  const Calibration c = any_calibration();
  const auto back = calibration_from_json(to_json(c));
  RC_ASSERT(back.has_value());
  RC_ASSERT(same(*back, c));
  RC_ASSERT(back->digest() == c.digest());
}

TEST(CalibrationJson, RefusesEveryTruncation) {
  const std::string json = to_json(example());
  for (std::size_t length = 0; length + 1 < json.size(); ++length) {
    const auto result = calibration_from_json(std::string_view(json).substr(0, length));
    ASSERT_FALSE(result.has_value()) << length;
    ASSERT_EQ(result.error().code, ErrorCode::payload_invalid);
  }
}

TEST(CalibrationJson, TakesEveryBitFlipWithoutHarm) {
  const std::string json = to_json(example());
  for (std::size_t i = 0; i < json.size() * 8; ++i) {
    std::string broken = json;
    broken[i / 8] = static_cast<char>(broken[i / 8] ^ (1 << (i % 8)));
    const auto result = calibration_from_json(broken);
    if (!result) {
      ASSERT_EQ(result.error().code, ErrorCode::payload_invalid) << i;
    } else {
      // A flip that still is a calibration (another digit, another letter of a name) reads as what it says.
      ASSERT_TRUE(same(*calibration_from_json(to_json(*result)), *result)) << i;
    }
  }
}

RC_GTEST_PROP(CalibrationJson, RefusesAnyBytes, (const std::string& bytes)) {
  RC_ASSERT(!calibration_from_json(bytes).has_value());
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

TEST(CalibrationJson, RefusesOtherVersionsTypesAndRanges) {
  const std::string json = to_json(example());
  ASSERT_TRUE(calibration_from_json(json).has_value());
  const std::vector<std::pair<const char*, const char*>> changes = {
      {"\"version\": 2", "\"version\": 3"},
      {"\"version\": 2", "\"version\": \"2\""},
      {"\"version\": 2", "\"version\": 2.0"},
      {"modeld calibration", "another thing"},
      {"\"layer\": 17", "\"layer\": -1"},
      {"\"layer\": 17", "\"layer\": 18446744073709551615"},
      {"\"layer\": 17", "\"layer\": 1e3"},
      {"\"mass\": 0.65", "\"mass\": 1e400"},
      {"\"mass\": 0.65", "\"mass\": -0.1"},
      {"\"mass\": 0.65", "\"mass\": null"},
      {"\"rule\": \"full\"", "\"rule\": \"other\""},
      {"\"distance\": 512", "\"distance\": 4294967296"},
      {"\"distance\": 512", "\"distant\": 512"},
      {"\"origin\": \"isolated\"", "\"origin\": 0"},
      {"\"right\": 3", "\"right\": 5"},
      {"\"reading_measured\": false", "\"reading_measured\": 0"},
  };
  for (const auto& [what, with] : changes) {
    const auto result = calibration_from_json(replaced(json, what, with));
    ASSERT_FALSE(result.has_value()) << with;
    EXPECT_EQ(result.error().code, ErrorCode::payload_invalid);
  }
  for (const char* other : {"null", "[]", "{}", "1", "\"modeld calibration\""}) {
    EXPECT_FALSE(calibration_from_json(other).has_value()) << other;
  }
  EXPECT_FALSE(calibration_from_json(std::string(1000000, '[')).has_value());
}

TEST(CalibrationDigest, DependsOnTheIndexAndNotOnTheMeasurements) {
  const Calibration c = example();
  Calibration measured = c;
  measured.reading.blocks = 2;
  measured.reading_measured = true;
  measured.rows.clear();
  measured.seconds = 99.0;
  EXPECT_EQ(measured.digest(), c.digest());
  std::set<std::string> digests{c.digest()};
  std::vector<Calibration> others(5, c);
  others[0].heads[0].head.head = 4;
  others[1].model = "other";
  others[2].engine = "other";
  others[3].distance = 1500;
  others[4].rule = ScoreRule::sigmoid;
  for (const Calibration& other : others) EXPECT_TRUE(digests.insert(other.digest()).second);
}

class CalibrationFile : public testing::Test {
 protected:
  CalibrationFile() {
    std::string name = (std::filesystem::temp_directory_path() / "modeld_calibration_XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~CalibrationFile() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string content() const {
    std::ostringstream out;
    out << std::ifstream(path()).rdbuf();
    return out.str();
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_ / "deep" / "er" / "c.json"; }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path().parent_path()), {});
  }
  std::filesystem::path directory_;
};

TEST_F(CalibrationFile, IsSavedReplacedAndLoaded) {
  Calibration c = example();
  ASSERT_TRUE(save_calibration(path(), c).has_value());
  c.distance = 1500;
  ASSERT_TRUE(save_calibration(path(), c).has_value());
  const auto back = load_calibration(path());
  ASSERT_TRUE(back.has_value());
  EXPECT_TRUE(same(*back, c));
  EXPECT_EQ(files(), 1);
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(CalibrationFile, AFullDiskLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(save_calibration(path(), example()).has_value());
  const std::string before = content();
  // The kernel's own full disk, after a first piece that still fitted.
  bool first = true;
  const auto full = [&](int fd, const void* data, std::size_t size) -> ssize_t {
    if (std::exchange(first, false)) return ::write(fd, data, std::min<std::size_t>(size, 10));
    const int device = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    const ssize_t written = ::write(device, data, size);
    const int error = errno;
    ::close(device);
    errno = error;
    return written;
  };
  const Status status = replace_file(path(), "something new", full);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::disk_full);
  EXPECT_EQ(content(), before);
  EXPECT_EQ(files(), 1);
}

TEST_F(CalibrationFile, InterruptedAndPartialWritesAreContinued) {
  int calls = 0;
  const auto slow = [&](int fd, const void* data, std::size_t size) -> ssize_t {
    if (++calls % 2 == 1) {
      errno = EINTR;
      return -1;
    }
    return ::write(fd, data, std::min<std::size_t>(size, 3));
  };
  ASSERT_TRUE(replace_file(path(), "twelve bytes", slow).has_value());
  EXPECT_EQ(content(), "twelve bytes");
}

TEST_F(CalibrationFile, FailuresSayWhichKind) {
  const auto missing = load_calibration(directory_ / "none");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::file_missing);
  const auto directory = load_calibration(directory_);
  ASSERT_FALSE(directory.has_value());
  EXPECT_EQ(directory.error().code, ErrorCode::io_failed);
  std::ofstream(directory_ / "file") << "not JSON";
  const auto garbage = load_calibration(directory_ / "file");
  ASSERT_FALSE(garbage.has_value());
  EXPECT_EQ(garbage.error().code, ErrorCode::payload_invalid);
  const Status under_a_file = save_calibration(directory_ / "file" / "c.json", example());
  ASSERT_FALSE(under_a_file.has_value());
  EXPECT_EQ(under_a_file.error().code, ErrorCode::io_failed);
  const Status over_a_directory = save_calibration(directory_, example());
  ASSERT_FALSE(over_a_directory.has_value());
  EXPECT_EQ(over_a_directory.error().code, ErrorCode::io_failed);
}

}  // namespace
}  // namespace modeld
