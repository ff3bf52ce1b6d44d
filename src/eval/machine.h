// The stamp that belongs to every published number: on what, when, from which source and by which command.
#pragma once

#include <cstdint>
#include <string>

namespace modeld {

struct MachineStamp {
  std::string cpu;
  int cores = 0;
  std::int64_t memory_bytes = 0;
  /// Of day, UTC: "2026-01-31 14:05".
  std::string date;
  std::string commit;
  std::string command;
};

/// Fills in all but what the caller gives. What cannot be found out is "unknown" or 0.
MachineStamp machine_stamp(std::string commit, std::string command);
/// A line of markdown for each fact.
std::string to_markdown(const MachineStamp& stamp);

/// The most memory that this process has held, in bytes; 0 if the system does not tell.
std::int64_t peak_resident_bytes();

}  // namespace modeld
