// Text cut into sentences, for whatever takes meaning from one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace modeld {

/// Sentences, or lines where there are none: each without spaces at its ends and of at least `shortest` bytes where its
/// neighbours allow it (a heading or "}" joins what follows), at most 400 (a longer one is cut between words). Nothing
/// but white space is left out.
std::vector<std::string> sentences_of(std::string_view text, std::size_t shortest = 24);

}  // namespace modeld
