// The table of an evaluation, as markdown for docs/results.
#pragma once

#include <span>
#include <string>

#include "eval/cells.h"
#include "eval/machine.h"

namespace modeld {

/// One line: task, mode, score with its interval.
std::string summary(const Cell& cell);

/// Cells in the order given; those of one task and length are compared with its "fresh" cell; without any
/// there is the stamp alone. `notes`: lines of
/// markdown that stand under the stamp.
std::string eval_report(std::span<const Cell> cells, const MachineStamp& stamp, std::string_view notes,
                        std::uint64_t seed);

}  // namespace modeld
