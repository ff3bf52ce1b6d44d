// Several hops: from the passages that a question finds to those that they lead to. "VAR B = A" shares no word with
// "which variables are 17?", but the passage that says "VAR A = 17" names A. Such a link is a word of the sentence that
// answered, which few other blocks hold.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recall/lexical.h"

namespace modeld {

/// A word leads on if it is held by at most this many blocks, its own among them.
inline constexpr std::size_t kLinkHolders = 4;

/// The blocks that `found` leads to, at most `max`, in the order in which they are come upon, none of them of `found`.
/// It begins at those of `found` that the retrieval heads are drawn to about as much as to the best of them: `drawn` is
/// the heads' score of every block. (A wordy question shares rare words with blocks that have nothing to do with it.)
/// Hop by hop: of each block's sentences those that hold most of what is known (by squared idf; known are the
/// question's words and those that led here) name new words, unless another block of the hop holds far more; new words
/// that 2 … kLinkHolders blocks hold, the rarest first, lead to all of these, from which the next hop goes on. `text`
/// gives the text of a block of the index. REQUIRES an entry of `drawn` for each block.
std::vector<std::size_t> follow_links(const LexicalIndex& index, const std::function<std::string(std::size_t)>& text,
                                      std::string_view question, std::span<const std::size_t> found,
                                      std::span<const double> drawn, std::size_t max);

}  // namespace modeld
