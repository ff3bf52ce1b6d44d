// A copy of a model in another weight format: some formats have much faster kernels than others.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace modeld {

/// Weight formats that a copy can be made in: "q8_0", "q4_0", "bf16", "f16".
bool is_weight_format(std::string_view format);

/// Writes `to` from `from` by llama.cpp's own quantiser: beside it first, renamed when complete; an existing `to` is
/// replaced. Quantising what is quantised already loses a little each time (q8_0 next to nothing). Errors: those of
/// describe_llama() for `from`; bad_argument for the format, or when both are one file; disk_full, io_failed.
Status requantize_llama(const std::filesystem::path& from, const std::filesystem::path& to, std::string_view format);

}  // namespace modeld
