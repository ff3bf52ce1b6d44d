// A token, and the two kinds of position it has.
#pragma once

#include <cstdint>
#include <span>

#include "base/strong.h"

namespace modeld {

/// A token id of the model's vocabulary.
using Token = std::int32_t;

/// Index of a token in a session's token stream, from 0. Never changes while the text before it stays.
using StreamPos = Strong<struct StreamPosTag>;
using StreamRange = Range<StreamPos>;

/// The RoPE position that a token has in the engine *now*. Equal to the stream position in exact mode only.
using Place = Strong<struct PlaceTag, std::int32_t>;
using PlaceRange = Range<Place>;

}  // namespace modeld
