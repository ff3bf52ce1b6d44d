// Where a planted sentence goes. Prose: after a sentence, found near the wanted depth; else after a line; else between
// two words. Source code, known by comment lines near the spot: a comment line of its own, indented as the line below
// it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "needles/needles.h"

namespace modeld {
namespace {

/// How far a sentence end is looked for before a mere line or word end is taken.
constexpr std::size_t kSearchBytes = 4000;
/// How much text around the spot decides whether it is source code.
constexpr std::size_t kCodeBytes = 6000;

struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;  // of its text, before the line end
};

Line line_at(std::string_view text, std::size_t begin) {
  const auto end = text.find('\n', begin);
  return {begin, end == std::string_view::npos ? text.size() : end};
}

std::string_view indent_of(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  return line.substr(0, first == std::string_view::npos ? line.size() : first);
}

/// "#" or "//" if comment lines near `at` begin so; the more frequent one; empty for prose. "# " alone counts, so that
/// neither "#include" nor "#!" does.
std::string_view comment_sign(std::string_view text, std::size_t at) {
  std::size_t begin = at > kCodeBytes ? at - kCodeBytes : 0;
  if (begin > 0) begin = std::min(text.size(), text.find('\n', begin)) + 1;
  const std::size_t stop = std::min(text.size(), at + kCodeBytes);
  std::size_t hashes = 0;
  std::size_t slashes = 0;
  while (begin < stop) {
    const Line line = line_at(text, begin);
    std::string_view body = text.substr(begin, line.end - begin);
    body.remove_prefix(indent_of(body).size());
    if (body == "#" || body.starts_with("# ")) ++hashes;
    if (body.starts_with("//")) ++slashes;
    begin = line.end + 1;
  }
  if (hashes == 0 && slashes == 0) return {};
  return hashes >= slashes ? "#" : "//";
}

/// Whether a sentence, with its closing quotes, ends directly before `at`.
bool sentence_ends(std::string_view text, std::size_t at) {
  while (at > 0 && (text[at - 1] == '"' || text[at - 1] == '\'' || text[at - 1] == ')')) --at;
  if (at == 0 || (text[at - 1] != '.' && text[at - 1] != '!' && text[at - 1] != '?')) return false;
  // An initial or a short abbreviation ("J. Smith", "Mr. Smith") is no sentence end.
  std::size_t word = at - 1;
  while (word > 0 && text[word - 1] != ' ' && text[word - 1] != '\n') --word;
  const std::size_t length = at - 1 - word;
  return text[at - 1] != '.' || length > 2 || length == 0 || (text[word] >= '0' && text[word] <= '9');
}

enum class Spot : unsigned char { none, word, line, sentence };

/// What kind of spot lies before byte `at`, where the next sentence, line or word would begin.
Spot spot_at(std::string_view text, std::size_t at) {
  if (at == 0) return Spot::sentence;
  const char before = text[at - 1];
  if (before == '\n') {
    if (at >= 2 && text[at - 2] == '\n') return Spot::sentence;
    return sentence_ends(text, at - 1) ? Spot::sentence : Spot::line;
  }
  if (before == ' ' && at < text.size() && text[at] != ' ' && text[at] != '\n')
    return sentence_ends(text, at - 1) ? Spot::sentence : Spot::word;
  return at == text.size() ? Spot::sentence : Spot::none;
}

/// The spot of at least `wanted` quality nearest to `target` within `reach`; text.size() + 1 if there is none.
std::size_t nearest(std::string_view text, std::size_t target, Spot wanted, std::size_t reach) {
  for (std::size_t d = 0; d <= reach; ++d) {
    if (target + d <= text.size() && spot_at(text, target + d) >= wanted) return target + d;
    if (d <= target && spot_at(text, target - d) >= wanted) return target - d;
    if (target + d > text.size() && d > target) break;
  }
  return text.size() + 1;
}

/// The line begin nearest to `target` where a comment line breaks nothing (not after a continued line).
std::size_t nearest_line(std::string_view text, std::size_t target) {
  const auto fits = [text](std::size_t at) {
    if (at == 0 || at == text.size()) return true;
    return text[at - 1] == '\n' && (at < 2 || text[at - 2] != '\\');
  };
  for (std::size_t d = 0; d <= text.size(); ++d) {
    if (target + d <= text.size() && fits(target + d)) return target + d;
    if (d <= target && fits(target - d)) return target - d;
  }
  return text.size();
}

struct Insertion {
  std::size_t at = 0;
  std::size_t needle = 0;
  std::string before;  // written before the sentence
  std::string after;
};

Insertion place_in_code(std::string_view text, std::size_t target, std::string_view sign) {
  Insertion result;
  result.at = nearest_line(text, target);
  const Line below = line_at(text, result.at);
  if (result.at > 0 && text[result.at - 1] != '\n') result.before = "\n";
  result.before += indent_of(text.substr(below.begin, below.end - below.begin));
  result.before += sign;
  result.before += ' ';
  result.after = "\n";
  return result;
}

Insertion place_in_prose(std::string_view text, std::size_t target) {
  Insertion result;
  result.at = nearest(text, target, Spot::sentence, kSearchBytes);
  if (result.at > text.size()) result.at = nearest(text, target, Spot::line, kSearchBytes);
  if (result.at > text.size()) result.at = nearest(text, target, Spot::word, kSearchBytes);
  if (result.at > text.size()) result.at = text.size();
  const bool own_line = result.at > 0 && text[result.at - 1] == '\n';
  if (result.at == text.size() && !own_line && !text.empty() && text.back() != ' ') result.before = " ";
  result.after = own_line ? "\n" : (result.at == text.size() ? "" : " ");
  return result;
}

}  // namespace

PlantedText plant(std::string_view text, std::span<const Needle> needles, std::span<const double> depths) {
  MODELD_CHECK(needles.size() == depths.size());
  std::vector<Insertion> insertions;
  for (std::size_t i = 0; i < needles.size(); ++i) {
    const double depth = std::clamp(depths[i], 0.0, 1.0);
    const auto target = static_cast<std::size_t>(std::llround(depth * static_cast<double>(text.size())));
    const std::string_view sign = comment_sign(text, target);
    Insertion insertion = sign.empty() ? place_in_prose(text, target) : place_in_code(text, target, sign);
    insertion.needle = i;
    insertions.push_back(std::move(insertion));
  }
  std::stable_sort(insertions.begin(), insertions.end(), [&](const Insertion& a, const Insertion& b) {
    return a.at != b.at ? a.at < b.at : depths[a.needle] < depths[b.needle];
  });
  PlantedText result;
  std::size_t copied = 0;
  for (const Insertion& insertion : insertions) {
    result.text.append(text.substr(copied, insertion.at - copied));
    copied = insertion.at;
    result.text.append(insertion.before);
    PlantedNeedle planted{.needle = needles[insertion.needle], .begin = result.text.size(), .end = 0};
    result.text.append(planted.needle.sentence);
    planted.end = result.text.size();
    result.text.append(insertion.after);
    result.needles.push_back(std::move(planted));
  }
  result.text.append(text.substr(copied));
  return result;
}

}  // namespace modeld
