#include "eval/machine.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <fstream>
#include <thread>

namespace modeld {
namespace {

/// The rest of the first line of a file that begins with `key`, without the separator and spaces.
std::string value_of(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const auto at = line.find_first_not_of(" \t:", key.size());
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

std::int64_t kilobytes(const std::string& text) {
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    value = value * 10 + (c - '0');
  }
  return value * 1024;
}

}  // namespace

MachineStamp machine_stamp(std::string commit, std::string command) {
  MachineStamp stamp;
  stamp.cpu = value_of("/proc/cpuinfo", "model name");
  if (stamp.cpu.empty()) stamp.cpu = "unknown";
  stamp.cores = static_cast<int>(std::thread::hardware_concurrency());
  stamp.memory_bytes = kilobytes(value_of("/proc/meminfo", "MemTotal"));
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::array<char, 32> text{};
  if (gmtime_r(&now, &utc) != nullptr && std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &utc) > 0) {
    stamp.date = text.data();
  }
  stamp.commit = commit.empty() ? "unknown" : std::move(commit);
  stamp.command = std::move(command);
  return stamp;
}

std::string to_markdown(const MachineStamp& stamp) {
  return fmt::format("- Machine: {}, {} cores, {:.1f} GiB\n- Date: {} UTC\n- Commit: {}\n- Command: `{}`\n", stamp.cpu,
                     stamp.cores, static_cast<double>(stamp.memory_bytes) / (1024.0 * 1024.0 * 1024.0), stamp.date,
                     stamp.commit, stamp.command);
}

std::int64_t peak_resident_bytes() { return kilobytes(value_of("/proc/self/status", "VmHWM")); }

}  // namespace modeld
