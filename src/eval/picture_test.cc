#include "eval/picture.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "source/encoding.h"

namespace modeld {
namespace {

CellScores cell(std::string task, std::string mode, double right, std::int64_t asked) {
  CellScores scores;
  scores.task = std::move(task);
  scores.mode = std::move(mode);
  scores.forced = share_of(right, asked);
  return scores;
}

/// What is wrong with `text` as XML, nothing if it is well-formed: tags are closed in turn, attributes are quoted, an
/// ampersand begins one of the five entities, no character is one that XML has not.
std::string xml_fault(const std::string& text) {
  if (first_invalid_utf8(text)) return "not UTF-8";
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return "a control character";
  static const std::regex tag(R"(^<(/?)([a-z]+)((?:\s+[a-zA-Z0-9:-]+="[^"<]*")*)\s*(/?)>)");
  static const std::regex entity("^&(amp|lt|gt|quot|apos);");
  std::vector<std::string> open;
  bool root_closed = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string rest = text.substr(at, 2000);
    std::smatch found;
    if (rest[0] == '<') {
      if (!std::regex_search(rest, found, tag)) return "no tag: " + rest.substr(0, 60);
      if (root_closed) return "a second root";
      if (found[1].length() > 0) {
        if (open.empty() || open.back() != found[2].str()) return "closed out of turn: " + rest.substr(0, 60);
        open.pop_back();
      } else if (found[4].length() == 0) {
        open.push_back(found[2].str());
      }
      root_closed = open.empty();
      const std::string attributes = found[3].str();
      for (std::size_t i = attributes.find('&'); i != std::string::npos; i = attributes.find('&', i + 1))
        if (!std::regex_search(attributes.substr(i), entity)) return "a bare ampersand";
      at += static_cast<std::size_t>(found[0].length());
    } else if (rest[0] == '&' && !std::regex_search(rest, entity)) {
      return "a bare ampersand";
    } else if (open.empty() && rest[0] != '\n') {
      return "text outside of the root";
    } else {
      ++at;
    }
  }
  return root_closed ? "" : "not closed";
}

struct Point {
  double low = 0.0;
  double high = 0.0;
  double x = 0.0;
  double y = 0.0;
  std::string colour;
  std::string marker;
};

std::vector<Point> points_of(const std::string& picture) {
  static const std::regex point(
      R"re(<g class="point"><title>[^<]*</title><line x1="([0-9.]+)" y1="[0-9.]+" x2="([0-9.]+)" [^>]*/>)re"
      R"re(<path class="marker" transform="translate\(([0-9.]+) ([0-9.]+)\)" d="([^"]*)" fill="([^"]*)"/>)re");
  std::vector<Point> points;
  for (std::sregex_iterator i(picture.begin(), picture.end(), point), end; i != end; ++i)
    points.push_back({.low = std::stod((*i)[1]),
                      .high = std::stod((*i)[2]),
                      .x = std::stod((*i)[3]),
                      .y = std::stod((*i)[4]),
                      .colour = (*i)[6],
                      .marker = (*i)[5]});
  return points;
}

double height_of(const std::string& picture) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(picture, found, std::regex("height=\"([0-9]+)\"")));
  return std::stod(found[1]);
}

TEST(Picture, IsWellFormedWithAPointForEachCellWithResults) {
  const std::vector<CellScores> scores = {cell("prose.single", "fresh", 6, 10), cell("prose.single", "ours", 8, 10),
                                          cell("prose.update", "ours", 0, 10),
                                          cell("prose.update", "dense-12288", 0, 0)};
  const std::string picture = eval_picture(scores, "tiny: 4096 tokens, hot set 1024");
  EXPECT_EQ(xml_fault(picture), "") << picture;
  EXPECT_EQ(points_of(picture).size(), 3U);
  for (const char* text : {"tiny: 4096 tokens, hot set 1024", ">prose.single<", ">prose.update<", ">ours<"})
    EXPECT_NE(picture.find(text), std::string::npos) << text;
  // What has no point has no place in the legend.
  EXPECT_EQ(picture.find("dense-12288"), std::string::npos);
}

TEST(Picture, PointsStandFartherRightTheHigherTheScoreAndWithinTheirIntervals) {
  std::vector<CellScores> scores;
  for (int right = 0; right <= 20; ++right) scores.push_back(cell("t" + std::to_string(right), "ours", right, 20));
  const std::vector<Point> points = points_of(eval_picture(scores, "t"));
  ASSERT_EQ(points.size(), 21U);
  const double width = points.back().x - points.front().x;
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(points[i].x, points.front().x + width * static_cast<double>(i) / 20.0, 0.1);
    EXPECT_LE(points[i].low, points[i].x);
    EXPECT_GE(points[i].high, points[i].x);
    EXPECT_NEAR(points[i].low, points.front().x + width * wilson(static_cast<double>(i), 20).low, 0.1);
    EXPECT_TRUE(i == 0 || points[i].y > points[i - 1].y);
  }
}

TEST(Picture, NamesAreEscaped) {
  const std::vector<CellScores> scores = {cell("a&b<c>.\"x\"", "m<&>'s", 1, 2), cell("\xff\x01", "ours", 1, 2)};
  const std::string picture = eval_picture(scores, "R&D <model>\n\xc3");
  EXPECT_EQ(xml_fault(picture), "") << picture;
  EXPECT_NE(picture.find("R&amp;D &lt;model&gt;?\?<"), std::string::npos);
  EXPECT_NE(picture.find(">a&amp;b&lt;c&gt;.&quot;x&quot;<"), std::string::npos);
  EXPECT_NE(picture.find(">m&lt;&amp;&gt;&apos;s<"), std::string::npos);
  EXPECT_EQ(points_of(picture).size(), 2U);
}

TEST(Picture, AModeLooksTheSameInEveryPictureAndLikeNoOther) {
  std::vector<CellScores> scores = {cell("t", "ours", 1, 2)};
  const Point alone = points_of(eval_picture(scores, "t")).at(0);
  scores.clear();
  for (const char* mode :
       {"fresh", "dense-9", "sinks+recent", "dense-10", "ours", "truncated", "oracle", "map", "dense-11"})
    scores.push_back(cell("t", mode, 1, 2));
  const std::vector<Point> all = points_of(eval_picture(scores, "t"));
  EXPECT_EQ(all.at(4).colour, alone.colour);
  EXPECT_EQ(all.at(4).marker, alone.marker);
  std::set<std::string> looks;
  for (const Point& point : all) looks.insert(point.colour + point.marker);
  EXPECT_EQ(looks.size(), all.size());
}

TEST(Picture, GrowsWithItsTasksAndHoldsNoneToo) {
  std::vector<CellScores> scores;
  double height = height_of(eval_picture(scores, "t"));
  EXPECT_EQ(xml_fault(eval_picture(scores, "t")), "");
  for (int task = 0; task < 5; ++task) {
    scores.push_back(cell("t" + std::to_string(task), "ours", 1, 2));
    const std::string picture = eval_picture(scores, "t");
    EXPECT_GT(height_of(picture), height);
    height = height_of(picture);
    for (const Point& point : points_of(picture)) EXPECT_LT(point.y, height);
  }
}

}  // namespace
}  // namespace modeld
