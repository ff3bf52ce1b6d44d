// R5: how many tokens may be hot, and how many bytes cold, derived from the model's geometry and free memory.
//
// Invariant: shares are fractions, never sizes. The same inputs give the same answer before and after a load: the
// caller
//            passes the memory that was free before the weights were loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/geometry.h"
#include "model/kv_type.h"

namespace modeld {

struct DeviceMemory {
  std::string name;
  /// A device of its own memory (GPU); false for host memory.
  bool accelerator = false;
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
};

/// The shares of design R5.
struct BudgetShares {
  /// Left free on every device for what cannot be foreseen, of its free bytes.
  double headroom = 0.10;
  /// Weights + KV + compute buffers, of a device's free bytes, at most.
  double resident = 0.80;
  /// An accelerator keeps at least this much of its total free for other programs.
  double accelerator_reserve = 0.10;
  /// Host memory for the cold tier, of the host's total; less where the headroom of the host's free memory would be
  /// touched. Where the device is the host itself, weights, buffers and hot KV come out of the same memory first.
  double host_cold = 0.25;
};

struct BudgetRequest {
  ModelGeometry geometry;
  KvType kv_type = KvType::f16;
  DeviceMemory device;
  DeviceMemory host;
  /// Compute buffers of the engine, as it reserves them for this model and batch size.
  std::int64_t compute_bytes = 0;
  /// Hot tokens asked for by the user; unset: as many as are useful, i.e. the trained window.
  std::optional<std::int32_t> hot_tokens;
  /// Bytes asked for by the user for the cold tier; unset: the share.
  std::optional<std::int64_t> cold_bytes;
};

struct Budget {
  KvType kv_type = KvType::f16;
  std::int64_t kv_bytes_per_token = 0;
  /// What may be used on the device in all, and what is left of it for KV.
  std::int64_t device_usable_bytes = 0;
  std::int64_t device_kv_bytes = 0;
  /// Tokens that fit the device, without regard to the trained window.
  std::int32_t device_tokens = 0;
  /// The hot budget: min(asked for, device_tokens, trained window).
  std::int32_t hot_tokens = 0;
  /// Prompt + reserve for the answer that fit in exact mode.
  std::int32_t exact_tokens = 0;
  std::int64_t cold_bytes = 0;
};

/// Errors: device_budget_exceeded (weights and buffers alone do not fit, or fewer than `min_hot` tokens do; says what
/// would fit with another KV type), hot_too_large, hot_too_small, unsupported_kv_type, host_budget_exceeded,
/// bad_argument for shares outside 0 … 1 and negative sizes.
Result<Budget> derive_budget(const BudgetRequest& request, const BudgetShares& shares = {}, std::int32_t min_hot = 256);

}  // namespace modeld
