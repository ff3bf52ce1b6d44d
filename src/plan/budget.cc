#include "plan/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace modeld {
namespace {

std::int64_t share_of(std::int64_t bytes, double share) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * share);
}

std::string size_text(std::int64_t bytes) {
  constexpr double kMib = 1024.0 * 1024.0;
  const double mib = static_cast<double>(bytes) / kMib;
  return mib >= 1024.0 ? fmt::format("{:.2f} GiB", mib / 1024.0) : fmt::format("{:.1f} MiB", mib);
}

std::int32_t to_tokens(std::int64_t tokens) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(tokens, 0, std::int64_t{std::numeric_limits<std::int32_t>::max()}));
}

/// Everything that does not depend on the KV type.
struct Room {
  std::int64_t usable = 0;
  std::int64_t fixed = 0;
  [[nodiscard]] std::int64_t kv() const { return std::max<std::int64_t>(0, usable - fixed); }
};

Room room_of(const BudgetRequest& request, const BudgetShares& shares) {
  const DeviceMemory& device = request.device;
  Room room;
  room.usable =
      std::min(share_of(device.free_bytes, shares.resident), share_of(device.free_bytes, 1.0 - shares.headroom));
  if (device.accelerator) {
    room.usable = std::min(room.usable, device.free_bytes - share_of(device.total_bytes, shares.accelerator_reserve));
  }
  room.usable = std::max<std::int64_t>(0, room.usable);
  room.fixed = static_cast<std::int64_t>(request.geometry.weight_bytes) + request.compute_bytes;
  return room;
}

/// "f16: 1200 tokens, q8_0: 2300 tokens" — what the room for KV holds with each type that the model allows.
std::string by_type(const ModelGeometry& geometry, std::int64_t kv_bytes, std::vector<ErrorNumber>& numbers) {
  std::string text;
  for (const KvType type : kKvTypes) {
    if (!geometry.supports(type)) continue;
    const std::int32_t tokens = to_tokens(kv_bytes / geometry.kv_bytes_per_token(type));
    text += fmt::format("{}{}: {} tokens", text.empty() ? "" : ", ", to_text(type), tokens);
    numbers.emplace_back(fmt::format("fits_{}_tokens", to_text(type)), tokens);
  }
  return text.empty() ? "none" : text;
}

Status check_request(const BudgetRequest& request, const BudgetShares& shares) {
  for (const double share : {shares.headroom, shares.resident, shares.accelerator_reserve, shares.host_cold}) {
    const bool valid = share >= 0.0 && share <= 1.0;  // false for NaN
    if (!valid) {
      return fail(ErrorCode::bad_argument, "Shares of memory must be between 0 and 1.");
    }
  }
  if (request.device.free_bytes < 0 || request.device.total_bytes < 0 || request.host.free_bytes < 0 ||
      request.host.total_bytes < 0 || request.compute_bytes < 0 || request.cold_bytes.value_or(0) < 0) {
    return fail(ErrorCode::bad_argument, "A number of bytes cannot be negative.");
  }
  if (request.geometry.supports(request.kv_type)) return {};
  std::vector<ErrorNumber> numbers;
  const std::string types = by_type(request.geometry, room_of(request, shares).kv(), numbers);
  return fail(ErrorCode::unsupported_kv_type,
              fmt::format("KV type {} cannot be used with this model: the size of its heads is not a multiple of 32. "
                          "What fits with the types that can: {}.",
                          to_text(request.kv_type), types),
              numbers);
}

Status check_device(const BudgetRequest& request, const Room& room, std::int32_t device_tokens, std::int32_t min_hot) {
  if (room.fixed <= room.usable && device_tokens >= min_hot) return {};
  std::vector<ErrorNumber> numbers = {{"free_bytes", request.device.free_bytes},
                                      {"usable_bytes", room.usable},
                                      {"weight_bytes", static_cast<std::int64_t>(request.geometry.weight_bytes)},
                                      {"compute_bytes", request.compute_bytes},
                                      {"min_hot_tokens", min_hot}};
  const std::string start =
      fmt::format("{} has {} free, of which {} may be used; weights and compute buffers take {}", request.device.name,
                  size_text(request.device.free_bytes), size_text(room.usable), size_text(room.fixed));
  if (room.fixed > room.usable) {
    numbers.emplace_back("missing_bytes", room.fixed - room.usable);
    return fail(ErrorCode::device_budget_exceeded,
                fmt::format("{}. Free {} more or use a smaller model; no KV type helps.", start,
                            size_text(room.fixed - room.usable)),
                numbers);
  }
  const std::string types = by_type(request.geometry, room.kv(), numbers);
  return fail(ErrorCode::device_budget_exceeded,
              fmt::format("{}, which leaves {} for KV: too little for {} tokens of KV type {}. What fits: {}. Free "
                          "memory, or choose a KV type or model that fits.",
                          start, size_text(room.kv()), min_hot, to_text(request.kv_type), types),
              numbers);
}

Status check_hot(const BudgetRequest& request, const Room& room, std::int32_t device_tokens, std::int32_t min_hot) {
  const std::int32_t window = request.geometry.trained_window;
  if (window < min_hot) {
    return fail(
        ErrorCode::hot_too_small,
        fmt::format("The model was trained with a window of {} tokens, and a hot set needs {}. Use another model.",
                    window, min_hot),
        {{"trained_window_tokens", window}, {"min_hot_tokens", min_hot}});
  }
  if (!request.hot_tokens) return {};
  const std::int32_t asked = *request.hot_tokens;
  if (asked < min_hot) {
    return fail(ErrorCode::hot_too_small,
                fmt::format("A hot set of {} tokens is too small: at least {} are needed, and up to {} fit.", asked,
                            min_hot, std::min(window, device_tokens)),
                {{"hot_tokens", asked}, {"min_hot_tokens", min_hot}, {"fits_tokens", std::min(window, device_tokens)}});
  }
  if (asked > window) {
    return fail(ErrorCode::hot_too_large,
                fmt::format("A hot set of {} tokens is larger than the window of {} that the model was trained with. "
                            "Ask for at most {}.",
                            asked, window, std::min(window, device_tokens)),
                {{"hot_tokens", asked}, {"trained_window_tokens", window}});
  }
  if (asked > device_tokens) {
    std::vector<ErrorNumber> numbers = {{"hot_tokens", asked},
                                        {"usable_bytes", room.usable},
                                        {"kv_bytes", room.kv()},
                                        {"device_tokens", device_tokens}};
    const std::string types = by_type(request.geometry, room.kv(), numbers);
    return fail(ErrorCode::hot_too_large,
                fmt::format("A hot set of {} tokens of KV type {} does not fit: {} has {} for KV. What fits: {}.",
                            asked, to_text(request.kv_type), request.device.name, size_text(room.kv()), types),
                numbers);
  }
  return {};
}

/// What the cold tier could have at most. Where the device is the host itself, weights, buffers and hot KV come out of
/// the same memory.
std::int64_t cold_room(const BudgetRequest& request, const BudgetShares& shares, const Room& room,
                       std::int64_t hot_bytes) {
  if (request.device.accelerator) return share_of(request.host.free_bytes, 1.0 - shares.headroom);
  const std::int64_t free = std::min(request.host.free_bytes, request.device.free_bytes);
  return std::max<std::int64_t>(0, share_of(free, 1.0 - shares.headroom) - room.fixed - hot_bytes);
}

}  // namespace

Result<Budget> derive_budget(const BudgetRequest& request, const BudgetShares& shares, std::int32_t min_hot) {
  MODELD_TRY_VOID(check_request(request, shares));
  const Room room = room_of(request, shares);
  Budget budget;
  budget.kv_type = request.kv_type;
  budget.kv_bytes_per_token = request.geometry.kv_bytes_per_token(request.kv_type);
  budget.device_usable_bytes = room.usable;
  budget.device_kv_bytes = room.kv();
  budget.device_tokens = to_tokens(room.kv() / budget.kv_bytes_per_token);
  MODELD_TRY_VOID(check_device(request, room, budget.device_tokens, min_hot));
  MODELD_TRY_VOID(check_hot(request, room, budget.device_tokens, min_hot));
  const std::int32_t wished = request.hot_tokens.value_or(request.geometry.trained_window);
  budget.hot_tokens = std::min({wished, budget.device_tokens, request.geometry.trained_window});
  budget.exact_tokens = budget.hot_tokens;

  const std::int64_t hot_bytes = budget.hot_tokens * budget.kv_bytes_per_token;
  const std::int64_t cold_max = cold_room(request, shares, room, hot_bytes);
  if (request.cold_bytes && *request.cold_bytes > cold_max) {
    return fail(ErrorCode::host_budget_exceeded,
                fmt::format("A cold tier of {} does not fit: {} of host memory are free, and {} can be had beside the "
                            "rest. Ask for less or free memory.",
                            size_text(*request.cold_bytes), size_text(request.host.free_bytes), size_text(cold_max)),
                {{"cold_bytes", *request.cold_bytes},
                 {"host_free_bytes", request.host.free_bytes},
                 {"cold_bytes_max", cold_max}});
  }
  budget.cold_bytes =
      request.cold_bytes.value_or(std::min(share_of(request.host.total_bytes, shares.host_cold), cold_max));
  return budget;
}

}  // namespace modeld
