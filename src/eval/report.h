// The table of an evaluation, as markdown for docs/results.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "eval/cells.h"
#include "eval/machine.h"
#include "eval/scores.h"

namespace modeld {

/// One line: task, mode, score with its interval.
std::string summary(const Cell& cell);

/// Cells in the order given, each with its scores; report.svg beside it is shown at its top. `notes`: lines of markdown
/// that stand under the stamp; without cells they are all. REQUIRES as many scores as cells.
std::string eval_report(std::span<const Cell> cells, std::span<const CellScores> scores, const MachineStamp& stamp,
                        std::string_view notes);

}  // namespace modeld
