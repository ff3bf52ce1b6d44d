#include "needles/needles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/check.h"
#include "needles/facts.h"
#include "needles/random.h"

namespace modeld {
namespace {

/// The first `count` of [0, n) in a seeded order.
std::vector<std::size_t> choose(SeededRandom& random, std::size_t n, std::size_t count) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(order);
  order.resize(count);
  return order;
}

/// A number of `digits` digits that was not given before.
std::string fresh_number(SeededRandom& random, std::set<std::size_t>& used, int digits) {
  std::size_t low = 1;
  for (int i = 1; i < digits; ++i) low *= 10;
  while (true) {
    const std::size_t value = low + random.below(low * 9);
    if (used.insert(value).second) return fmt::format("{}", value);
  }
}

std::string with_name(std::string_view pattern, std::string_view name) {
  std::string text(pattern);
  const auto at = text.find("{}");
  if (at != std::string::npos) text.replace(at, 2, name);
  return text;
}

std::string sentence_case(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// Deals each pool's words in a seeded order, all of them before any comes again.
class Dealer {
 public:
  explicit Dealer(SeededRandom& random) : random_(random) {}
  std::string_view deal(facts::Pool pool) {
    const auto words = facts::pool_words(pool);
    auto& left = left_[pool];
    if (left.empty()) left = choose(random_, words.size(), words.size());
    const std::string_view word = words[left.back()];
    left.pop_back();
    return word;
  }

 private:
  SeededRandom& random_;
  std::map<facts::Pool, std::vector<std::size_t>> left_;
};

std::vector<Needle> make_single(SeededRandom& random, std::size_t count) {
  const auto rows = facts::single_rows();
  std::set<std::size_t> numbers;
  Dealer dealer(random);
  std::vector<Needle> needles;
  for (const std::size_t i : choose(random, rows.size(), count)) {
    const facts::SingleRow& row = rows[i];
    const bool number = row.pool == facts::Pool::digits;
    const std::string value = number ? fresh_number(random, numbers, 4) : std::string(dealer.deal(row.pool));
    const std::string what = fmt::format("the {} of the {}", row.attribute, row.holder);
    const bool countable = row.pool == facts::Pool::animal || row.pool == facts::Pool::tool;
    const std::string_view is = countable ? "is the" : "is";
    needles.push_back({.kind = NeedleKind::single,
                       .sentence = sentence_case(fmt::format("{} {} {}.", what, is, value)),
                       .question = fmt::format("What is {}?", what),
                       .answer = value,
                       .answer_prefix = sentence_case(fmt::format("{} {}", what, is))});
  }
  return needles;
}

std::vector<Needle> make_lookalike(SeededRandom& random, std::size_t count) {
  const auto cities = facts::cities();
  std::set<std::size_t> numbers;
  std::vector<Needle> needles;
  for (const std::size_t i : choose(random, cities.size(), count)) {
    const std::string code = fresh_number(random, numbers, random.chance(0.5) ? 4 : 5);
    needles.push_back({.kind = NeedleKind::lookalike,
                       .sentence = fmt::format("The access code for {} is {}.", cities[i], code),
                       .question = fmt::format("What is the access code for {}?", cities[i]),
                       .answer = code,
                       .answer_prefix = fmt::format("The access code for {} is", cities[i])});
  }
  return needles;
}

std::vector<Needle> make_paraphrase(SeededRandom& random, std::size_t count) {
  const auto rows = facts::paraphrase_rows();
  const auto firsts = choose(random, facts::first_names().size(), count);
  const auto lasts = choose(random, facts::last_names().size(), count);
  std::vector<std::size_t> order = choose(random, rows.size(), rows.size());
  std::vector<std::vector<std::size_t>> answers(rows.size());
  std::vector<Needle> needles;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t r = order[i % rows.size()];
    const facts::ParaphraseRow& row = rows[r];
    if (answers[r].empty()) answers[r] = choose(random, row.answers.size(), row.answers.size());
    const std::string_view answer = row.answers[answers[r].back()];
    answers[r].pop_back();
    const std::string name = fmt::format("{} {}", facts::first_names()[firsts[i]], facts::last_names()[lasts[i]]);
    needles.push_back({.kind = NeedleKind::paraphrase,
                       .sentence = with_name(row.before, name) + std::string(answer) + std::string(row.after),
                       .question = with_name(row.question, name),
                       .answer = std::string(answer),
                       .answer_prefix = std::string(row.prefix)});
  }
  return needles;
}

std::vector<Needle> make_unrelated(SeededRandom& random, std::size_t count) {
  const auto rows = facts::unrelated_rows();
  Dealer dealer(random);
  std::vector<Needle> needles;
  for (const std::size_t i : choose(random, rows.size(), count)) {
    const facts::UnrelatedRow& row = rows[i];
    const std::string_view answer = dealer.deal(row.pool);
    needles.push_back({.kind = NeedleKind::unrelated,
                       .sentence = std::string(row.before) + std::string(answer) + std::string(row.after),
                       .question = std::string(row.question),
                       .answer = std::string(answer),
                       .answer_prefix = std::string(row.prefix)});
  }
  return needles;
}

}  // namespace

std::string_view to_text(NeedleKind kind) {
  switch (kind) {
    case NeedleKind::single:
      return "single";
    case NeedleKind::lookalike:
      return "lookalike";
    case NeedleKind::paraphrase:
      return "paraphrase";
    case NeedleKind::unrelated:
      return "unrelated";
    case NeedleKind::passkey:
      return "passkey";
  }
  return "unknown";
}

std::size_t needles_max(NeedleKind kind) {
  switch (kind) {
    case NeedleKind::single:
      return facts::single_rows().size();
    case NeedleKind::lookalike:
      return facts::cities().size();
    case NeedleKind::paraphrase:
      return std::min(facts::first_names().size(), facts::last_names().size());
    case NeedleKind::unrelated:
      return facts::unrelated_rows().size();
    case NeedleKind::passkey:
      return 1;  // a second key would answer the first one's question
  }
  return 0;
}

std::vector<Needle> make_needles(NeedleKind kind, std::size_t count, std::uint64_t seed) {
  MODELD_CHECK(count <= needles_max(kind));
  SeededRandom random(seed);
  switch (kind) {
    case NeedleKind::single:
      return make_single(random, count);
    case NeedleKind::lookalike:
      return make_lookalike(random, count);
    case NeedleKind::paraphrase:
      return make_paraphrase(random, count);
    case NeedleKind::unrelated:
      return make_unrelated(random, count);
    case NeedleKind::passkey:
      break;
  }
  if (count == 0) return {};
  std::set<std::size_t> none;
  const std::string key = fresh_number(random, none, 5);
  return {{.kind = NeedleKind::passkey,
           .sentence = fmt::format("The pass key is {0}. Remember it. {0} is the pass key.", key),
           // Without the second sentence, a small model now and then begins "a special number …" (docs/design.md §7).
           .question = "What is the pass key?\nAnswer with the exact words of the text.",
           .answer = key,
           .answer_prefix = "The pass key is"}};
}

}  // namespace modeld
