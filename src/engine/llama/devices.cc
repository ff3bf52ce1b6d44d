#include "engine/llama/devices.h"

#include <ggml-backend.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "engine/llama/backend.h"

namespace modeld {
namespace {

std::optional<std::int64_t> read_number(const char* path) {
  std::ifstream in(path);
  std::int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

/// A container may be allowed less than the machine has. A control group without a limit says "max", which is no
/// number.
void bound_by_control_group(DeviceMemory& host) {
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return;
  host.total_bytes = std::min(host.total_bytes, *limit);
  host.free_bytes = std::min(host.free_bytes, std::max<std::int64_t>(0, *limit - *used));
}

Result<DeviceMemory> read_host() {
  std::ifstream in("/proc/meminfo");
  DeviceMemory host{.name = "host", .accelerator = false, .total_bytes = -1, .free_bytes = -1};
  std::string key;
  std::int64_t kilobytes = 0;
  std::string rest;
  while (in >> key >> kilobytes) {
    if (key == "MemTotal:") host.total_bytes = kilobytes * 1024;
    if (key == "MemAvailable:") host.free_bytes = kilobytes * 1024;
    std::getline(in, rest);
  }
  if (host.total_bytes < 0 || host.free_bytes < 0)
    return fail(ErrorCode::io_failed, "The host's memory cannot be read from /proc/meminfo. Is /proc mounted?");
  bound_by_control_group(host);
  return host;
}

}  // namespace

Result<std::vector<DeviceMemory>> llama_devices() {
  start_llama_backend();
  std::vector<DeviceMemory> devices;
  MODELD_TRY(auto host, read_host());
  devices.push_back(std::move(host));
  constexpr std::size_t kMax = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    // An integrated GPU uses host memory, which is counted already; a BLAS library is no place for KV at all.
    if (ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_GPU) continue;
    std::size_t free = 0;
    std::size_t total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    devices.push_back({.name = ggml_backend_dev_name(device),
                       .accelerator = true,
                       .total_bytes = static_cast<std::int64_t>(std::min(total, kMax)),
                       .free_bytes = static_cast<std::int64_t>(std::min(free, kMax))});
  }
  return devices;
}

}  // namespace modeld
