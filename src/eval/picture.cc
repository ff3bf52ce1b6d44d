#include "eval/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "eval/modes.h"
#include "source/encoding.h"

namespace modeld {
namespace {

// All in user units, which are pixels where nobody scales.
constexpr double kWidth = 900.0;
constexpr double kMargin = 20.0;
constexpr double kPlotLeft = 210.0;
constexpr double kPlotRight = 780.0;
/// A point's height in its task's band, and the band's above and below them.
constexpr double kLane = 16.0;
constexpr double kPadding = 7.0;
constexpr double kLegendTop = 62.0;
constexpr double kLegendLine = 20.0;
/// Wider than a letter of any sans serif at the legend's size is on average.
constexpr double kLetter = 7.5;

/// Apart for colour-blind eyes and dark enough on white (after Okabe and Ito 2008, their yellow left out).
constexpr std::array<std::string_view, 7> kColours = {"#d55e00", "#0072b2", "#008c66", "#b0508a",
                                                      "#111111", "#b07900", "#3a9bd6"};
/// Drawn around 0, 0: disc, diamond, triangle, square, triangle downwards, cross, plus, hourglass.
constexpr std::array<std::string_view, 8> kMarkers = {"M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
                                                      "M0 -6.5L6.5 0L0 6.5L-6.5 0z",
                                                      "M0 -6L6 5L-6 5z",
                                                      "M-4.5 -4.5H4.5V4.5H-4.5z",
                                                      "M0 6L6 -5L-6 -5z",
                                                      "M-5.5 -3.5L-3.5 -5.5L0 -2L3.5 -5.5L5.5 -3.5L2 0L5.5 3.5L3.5 "
                                                      "5.5L0 2L-3.5 5.5L-5.5 3.5L-2 0z",
                                                      "M-1.5 -6H1.5V-1.5H6V1.5H1.5V6H-1.5V1.5H-6V-1.5H-1.5z",
                                                      "M-5 -6H5L-5 6H5z"};

struct Look {
  std::string_view colour;
  std::string_view marker;
};

double x_of(double score) { return kPlotLeft + score * (kPlotRight - kPlotLeft); }

/// `text` as XML may hold it: bytes that are no UTF-8 and characters that XML has not become a question mark.
std::string escaped(std::string_view text) {
  std::string valid(text);
  while (const auto wrong = first_invalid_utf8(valid)) valid[*wrong] = '?';
  std::string out;
  for (const char c : valid) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

/// Names in the order in which they first come, of what has results.
std::vector<std::string> names(const std::vector<CellScores>& scores, std::string CellScores::* name) {
  std::vector<std::string> found;
  for (const CellScores& cell : scores)
    if (std::find(found.begin(), found.end(), cell.*name) == found.end()) found.push_back(cell.*name);
  return found;
}

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// A look for each of `modes`: one mode has the same in every picture, but for the lengths of dense that come later.
/// Seven and eight have no common divisor: 56 looks differ in one of both at least.
std::vector<Look> looks_of(const std::vector<std::string>& modes) {
  const std::vector<std::string_view> known = eval_modes();
  const auto place = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(known.begin(), known.end(), name) - known.begin());
  };
  std::vector<Look> looks;
  std::size_t next = place(kDense);
  for (const std::string& mode : modes) {
    std::size_t at = place(mode);
    if (at == known.size()) {
      at = next;
      next = std::max(next + 1, known.size());
    }
    looks.push_back({kColours[at % kColours.size()], kMarkers[at % kMarkers.size()]});
  }
  return looks;
}

std::string marker(const Look& look, double x, double y) {
  return fmt::format(R"svg(<path class="marker" transform="translate({:.1f} {:.1f})" d="{}" fill="{}"/>)svg", x, y,
                     look.marker, look.colour);
}

class Drawing {
 public:
  Drawing(std::vector<CellScores> scores, std::string_view title)
      : scores_(std::move(scores)),
        title_(escaped(title)),
        tasks_(names(scores_, &CellScores::task)),
        modes_(names(scores_, &CellScores::mode)),
        looks_(looks_of(modes_)) {}

  std::string draw() {
    y_ = kLegendTop;
    draw_legend();
    const double top = y_;
    for (std::size_t task = 0; task < tasks_.size(); ++task) draw_task(task);
    draw_axis(top);
    const double height = y_ + 50.0;
    return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
                       R"(viewBox="0 0 {0:.0f} {1:.0f}" role="img" font-family="sans-serif" font-size="13">)"
                       "\n<title>{2}</title>\n"
                       R"(<rect width="100%" height="100%" fill="#ffffff"/>)"
                       "\n"
                       R"(<text x="{3:.0f}" y="32" font-size="17" fill="#111111">{2}</text>)"
                       "\n{4}{5}{6}</svg>\n",
                       kWidth, height, title_, kMargin, bands_, grid_, marks_);
  }

 private:
  void draw_legend() {
    double x = kMargin;
    for (std::size_t mode = 0; mode < modes_.size(); ++mode) {
      const double width = 36.0 + kLetter * static_cast<double>(modes_[mode].size());
      if (x > kMargin && x + width > kWidth - kMargin) {
        x = kMargin;
        y_ += kLegendLine;
      }
      marks_ += fmt::format(R"(<g class="legend">{}<text x="{:.1f}" y="{:.1f}" fill="#111111">{}</text></g>)",
                            marker(looks_[mode], x + 7.0, y_), x + 20.0, y_ + 4.5, escaped(modes_[mode]));
      marks_ += '\n';
      x += width;
    }
    y_ += kLegendLine;
  }

  void draw_task(std::size_t task) {
    std::vector<const CellScores*> points;
    for (const CellScores& cell : scores_)
      if (cell.task == tasks_[task]) points.push_back(&cell);
    const double height = kLane * static_cast<double>(points.size()) + 2.0 * kPadding;
    if (task % 2 == 0)
      bands_ +=
          fmt::format("<rect x=\"0\" y=\"{:.1f}\" width=\"100%\" height=\"{:.1f}\" fill=\"#f3f5f7\"/>\n", y_, height);
    marks_ += fmt::format("<text class=\"task\" x=\"{:.0f}\" y=\"{:.1f}\" fill=\"#111111\">{}</text>\n", kMargin,
                          y_ + height / 2.0 + 4.5, escaped(tasks_[task]));
    double y = y_ + kPadding + kLane / 2.0;
    for (const CellScores* cell : points) {
      draw_point(*cell, y);
      y += kLane;
    }
    y_ += height;
  }

  void draw_point(const CellScores& cell, double y) {
    const std::size_t mode = place_of(modes_, cell.mode);
    const Share& share = cell.forced;
    marks_ +=
        fmt::format(R"(<g class="point"><title>{} {}: {:.2f} [{:.2f}, {:.2f}], {} questions</title>)"
                    R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="2"/>{})"
                    R"(<text x="{:.0f}" y="{:.1f}" font-size="11" fill="#444444">{:.2f}, n {}</text></g>)"
                    "\n",
                    escaped(cell.task), escaped(cell.mode), share.value, share.interval.low, share.interval.high,
                    share.asked, x_of(share.interval.low), y, x_of(share.interval.high), y, looks_[mode].colour,
                    marker(looks_[mode], x_of(share.value), y), kPlotRight + 18.0, y + 4.0, share.value, share.asked);
  }

  /// Behind the marks, over the bands, from `top` to where the last task ends.
  void draw_axis(double top) {
    for (const double score : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      grid_ += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#c4c9ce\"/>\n",
                           x_of(score), top, y_);
      grid_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#444444\">{:g}</text>\n",
                           x_of(score), y_ + 17.0, score);
    }
    grid_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#444444\">score with its 95 % interval; at the "
        "right: the score, and n questions</text>\n",
        x_of(0.5), y_ + 36.0);
  }

  std::vector<CellScores> scores_;
  std::string title_;
  std::vector<std::string> tasks_;
  std::vector<std::string> modes_;
  std::vector<Look> looks_;
  /// Where the next thing goes, downwards.
  double y_ = 0.0;
  // What is drawn, from the back to the front.
  std::string bands_;
  std::string grid_;
  std::string marks_;
};

}  // namespace

std::string eval_picture(std::span<const CellScores> scores, std::string_view title) {
  std::vector<CellScores> drawn;
  for (const CellScores& cell : scores)
    if (cell.forced.asked > 0) drawn.push_back(cell);
  return Drawing(std::move(drawn), title).draw();
}

}  // namespace modeld
