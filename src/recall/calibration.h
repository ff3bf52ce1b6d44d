// What calibration finds for a model, and how heads are chosen from measured attention. Cached as JSON by model digest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/geometry.h"
#include "plan/reading.h"
#include "recall/score.h"

namespace modeld {

struct HeadMass {
  HeadRef head;
  /// Mean over questions of the largest attention mass that a question's content token puts on the needle.
  double mass = 0.0;
};

struct Calibration {
  /// Format of the file; another one is a miss.
  static constexpr int kVersion = 2;
  std::string model;   // model digest
  std::string engine;  // engine and version
  /// The retrieval heads, strongest first.
  std::vector<HeadMass> heads;
  /// Virtual distance d.
  std::int32_t distance = 512;
  ScoreRule rule = ScoreRule::full;
  ReadingPolicy reading;
  /// Whether `reading` was measured or is the default.
  bool reading_measured = false;
  /// The measurements behind it, for `modeld calibrate --json` (one row a tried policy).
  struct Row {
    ReadingPolicy policy;
    int right = 0;
    int asked = 0;
    double seconds = 0.0;
  };
  std::vector<Row> rows;
  double seconds = 0.0;
  /// Measured while calibrating, at shallow depth; 0: not measured. The first guess of a turn's time.
  double prefill_tokens_per_second = 0.0;

  /// Of what the recall index and its scores depend on: model, engine, heads, distance, rule. Not of the reading
  /// policy, which may be measured later without making an index stale, nor of the measurements.
  [[nodiscard]] std::string digest() const;
};

/// The strongest heads whose KV heads' index stays within `index_share` (3 %) of the KV bytes per token at f16; at most
/// `max_heads`; none weaker than 1/8 of the strongest. A head whose KV head no longer fits is passed over; so is one
/// whose keys are not as wide as the strongest head's (an index has one width). REQUIRES heads of this geometry.
/// Errors: calibration_failed when no head has mass ≥ 0.02, or not even one KV head fits.
Result<std::vector<HeadMass>> choose_heads(const ModelGeometry& geometry, std::vector<HeadMass> all,
                                           double index_share = 0.03, std::size_t max_heads = 16);

/// KV heads of the retrieval heads, without repeats, ascending.
std::vector<KvHeadRef> index_heads(const ModelGeometry& geometry, std::span<const HeadMass> heads);

std::string to_json(const Calibration& calibration);
/// Errors: payload_invalid for anything that is not a calibration of this version.
Result<Calibration> calibration_from_json(std::string_view json);

/// Writes beside, syncs, renames. Errors: io_failed, disk_full.
Status save_calibration(const std::filesystem::path& path, const Calibration& calibration);
/// Errors: file_missing, io_failed, payload_invalid.
Result<Calibration> load_calibration(const std::filesystem::path& path);

}  // namespace modeld
