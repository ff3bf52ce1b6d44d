// R6: when an answer goes back for another block. What the model has written is a better query than the question: a
// block that is not being read and draws the written tokens far more than all that is being read is worth a return.
//
// Invariants (property-tested):
//  - a block is never gone back for twice in one answer, so that returns end whatever the scores are;
//  - without a clear winner by both scores nothing happens: a set that is re-chosen on each token spoils exact strings.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace modeld {

struct RereadPolicy {
  /// Returns in one answer, at most. 0: never (the default until it is shown to win: docs/design.md).
  int returns = 0;
  /// Tokens written between two looks: as many are held back until it is sure that they stay.
  int look_tokens = 4;
  /// By how much a block must draw what was written more than any block that is being read.
  double margin = 1.5;
  friend bool operator==(const RereadPolicy&, const RereadPolicy&) = default;
};

struct RereadRequest {
  /// By candidate block: the fused score of question and written text together.
  std::span<const double> fused;
  /// By candidate block: how much it draws the written tokens alone.
  std::span<const double> written;
  /// Candidates that are being read, and those that were read before in this answer.
  std::span<const std::size_t> read;
  std::span<const std::size_t> given_up;
};

/// The candidate to go back for, if there is one: first by `fused` among all that were not given up, not being read,
/// and ahead of every block that is by `margin`. Scores that are not numbers count as 0. REQUIRES equal lengths, and
/// indices within them.
std::optional<std::size_t> block_to_go_back_for(const RereadRequest& request, double margin);

}  // namespace modeld
