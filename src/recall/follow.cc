#include "recall/follow.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"
#include "stream/sentences.h"

namespace modeld {
namespace {

/// A passage need be neither drawn to as much as the best one nor hold as much of what is known, but this share.
constexpr double kShare = 0.6;

/// What a block says of what is known: the words of its sentences that hold most of it.
struct Said {
  double weight = 0.0;
  std::set<std::string> words;
};

class Trail {
 public:
  Trail(const LexicalIndex& index, std::string_view question) : index_(index) {
    for (std::string& word : lexical_words(question)) known_.insert(std::move(word));
  }

  [[nodiscard]] Said said_by(const std::string& block) const {
    Said said;
    for (const std::string& sentence : sentences_of(block, 1)) {
      const std::vector<std::string> words = lexical_words(sentence);
      const double weight = weight_of({words.begin(), words.end()});
      if (weight < said.weight) continue;
      if (weight > said.weight) said.words.clear();
      said.weight = weight;
      said.words.insert(words.begin(), words.end());
    }
    return said;
  }

  /// The blocks that new words lead to, by the rarest first; the words are known from now on.
  std::vector<std::size_t> led_to(const Said& said) {
    std::vector<std::vector<std::size_t>> links;
    for (const std::string& word : said.words) {
      std::vector<std::size_t> holders = index_.holders(word);
      if (holders.size() < 2 || holders.size() > kLinkHolders || !known_.insert(word).second) continue;
      links.push_back(std::move(holders));
    }
    std::stable_sort(links.begin(), links.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<std::size_t> blocks;
    for (const std::vector<std::size_t>& holders : links) blocks.insert(blocks.end(), holders.begin(), holders.end());
    return blocks;
  }

 private:
  [[nodiscard]] double weight_of(const std::set<std::string>& words) const {
    double weight = 0.0;
    for (const std::string& word : words)
      if (known_.count(word) > 0) weight += index_.weight(index_.holders(word).size());
    return weight;
  }

  const LexicalIndex& index_;
  std::set<std::string> known_;
};

}  // namespace

std::vector<std::size_t> follow_links(const LexicalIndex& index, const std::function<std::string(std::size_t)>& text,
                                      std::string_view question, std::span<const std::size_t> found,
                                      std::span<const double> drawn, std::size_t max) {
  MODELD_CHECK(drawn.size() == index.blocks());
  Trail trail(index, question);
  std::vector<std::size_t> further;
  const auto among = [](std::span<const std::size_t> blocks, std::size_t block) {
    return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
  };
  std::vector<std::size_t> followed;
  std::vector<std::size_t> hop;
  double best = 0.0;
  for (const std::size_t block : found) best = std::max(best, drawn[block]);
  std::copy_if(found.begin(), found.end(), std::back_inserter(hop),
               [&](std::size_t block) { return drawn[block] >= kShare * best; });
  while (!hop.empty() && further.size() < max) {
    std::vector<Said> said;
    double most = 0.0;
    for (const std::size_t block : hop) most = std::max(most, said.emplace_back(trail.said_by(text(block))).weight);
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < hop.size(); ++i) {
      if (said[i].weight == 0.0 || said[i].weight < kShare * most) continue;
      followed.push_back(hop[i]);
      for (const std::size_t block : trail.led_to(said[i]))
        if (!among(followed, block) && !among(next, block)) next.push_back(block);
    }
    // A found block may be led to as well: what it says counts now, if it did not before.
    for (const std::size_t block : next)
      if (further.size() < max && !among(found, block) && !among(further, block)) further.push_back(block);
    hop = std::move(next);
  }
  return further;
}

}  // namespace modeld
