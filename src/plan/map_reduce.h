// Map-reduce: a question about the whole text is asked of each part of it, and the answer is written from the partial
// answers. The plan says which blocks make a part, in how many rounds partial answers are folded into fewer, and what
// all of it costs, before anything is done.
//
// Invariants (property-tested):
//  - each block is in one part, parts are in text order, and no part with the question and its answer exceeds the hot
//    set; no fewer parts could do that;
//  - a round takes the partial answers of the one before, each once, in order; the last gives one, the answer;
//  - the costs are those of what is planned: a pass computes no more tokens and writes no more than they say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace modeld {

/// All in tokens.
struct MapReduceRequest {
  /// Of each block, in text order.
  std::span<const std::int32_t> blocks;
  std::int32_t hot = 0;
  /// What stands before each part.
  std::int32_t sinks = 0;
  /// The question with all that the template writes around it.
  std::int32_t question = 0;
  /// The longest partial answer, and the longest answer.
  std::int32_t partial_answer = 0;
  std::int32_t answer = 0;
  /// What stands before partial answers that are read, and beside each of them.
  std::int32_t head = 0;
  std::int32_t label = 0;
  /// What must be free while a part's blocks come in: room to compute one again whose KV was dropped.
  std::int32_t lane = 0;
};

/// A part of the text: consecutive blocks.
struct MapPart {
  std::size_t first = 0;
  std::size_t count = 0;
  std::int32_t tokens = 0;
};

struct MapReducePlan {
  std::vector<MapPart> parts;
  /// For each round, how many partial answers are read together, one entry for each that comes of it. One that is
  /// alone is passed on as it is. None where there is one part: its answer is the answer.
  std::vector<std::vector<std::int32_t>> rounds;
  /// Text tokens that are read from their KV and not computed.
  std::int64_t read_tokens = 0;
  /// At most: questions and partial answers that are computed, tokens that are written.
  std::int64_t computed_tokens = 0;
  std::int64_t written_tokens = 0;
};

/// Errors: hot_too_small where a block does not fit beside the question, or two partial answers do not; bad_argument
/// for sizes below 0 or an answer of none.
Result<MapReducePlan> plan_map_reduce(const MapReduceRequest& request);

}  // namespace modeld
