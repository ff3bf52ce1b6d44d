// The scores of an evaluation as a picture (SVG 1.1), for a browser or a page of markdown: a band a task, in it a point
// and its 95 % interval for each mode.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "eval/scores.h"

namespace modeld {

/// Pure. Tasks and modes stand in the order in which they first come; a cell without results has no point. Names and
/// title may hold any bytes.
std::string eval_picture(std::span<const CellScores> scores, std::string_view title);

}  // namespace modeld
