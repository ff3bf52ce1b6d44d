// How large the named texts are, and what reading them will take, before anything is read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/error.h"
#include "model/geometry.h"
#include "plan/budget.h"

namespace modeld {

/// Bytes on disk of files and of all files below directories. Pipes and standard input ("-") count as 0: their size
/// shows only while they are read. Errors: those of source/walk.h.
Result<std::uint64_t> text_bytes(const std::vector<std::filesystem::path>& paths, const CancelFlag* cancel);

/// Time to read so many tokens on this machine's CPU, from the size of the weights: right within a factor of a few.
double rough_seconds(std::int64_t tokens, const ModelGeometry& geometry, std::int32_t threads);

/// What a text takes, from its size alone.
struct TextEstimate {
  std::uint64_t bytes = 0;
  /// At about four bytes a token.
  std::int64_t tokens = 0;
  std::int64_t kv_bytes = 0;
  /// Host memory that no eviction can save: the text, and tokens and index of as few tokens as it can have.
  std::int64_t least_host_bytes = 0;
  double rough_seconds = 0.0;
};
TextEstimate estimate_text(std::uint64_t bytes, const ModelGeometry& geometry, const Budget& budget,
                           std::int32_t threads);

/// The longest text whose least_host_bytes fit the budget.
std::uint64_t text_bytes_limit(const ModelGeometry& geometry, const Budget& budget);

/// One sentence for the person.
std::string estimate_text_line(const TextEstimate& estimate, const Budget& budget);

/// Errors: text_too_large, with the numbers.
Status check_text_fits(const TextEstimate& estimate, const Budget& budget);

}  // namespace modeld
