// An answer and its counted report: what was read for it, from where, and what that took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stream/manifest.h"
#include "stream/tokens.h"

namespace modeld {

struct Passage {
  StreamRange range;
  double score = 0.0;
  std::string source;
  /// Lines in the source, from 1, inclusive.
  std::int64_t line_begin = 0;
  std::int64_t line_end = 0;
  KvOrigin origin = KvOrigin::isolated;
  std::string text;
};

struct Seconds {
  double ingest = 0.0;
  double probe = 0.0;
  double scoring = 0.0;
  double admission = 0.0;
  double question = 0.0;
  double decode = 0.0;
  /// Part of decode: looking for better blocks while writing.
  double looking = 0.0;
  [[nodiscard]] double retrieval() const { return probe + scoring + admission + question; }
  [[nodiscard]] double total() const { return ingest + probe + scoring + admission + question + decode; }
};

/// What one part of the text gave for a question about the whole.
struct PartialAnswer {
  StreamRange range;
  std::string source;
  /// Lines in the source, from 1, inclusive.
  std::int64_t line_begin = 0;
  std::int64_t line_end = 0;
  /// With what the question began it with.
  std::string text;
};

/// A pass over the whole text: what was read, computed and written for it.
struct MapReport {
  std::vector<PartialAnswer> parts;  // in text order
  /// In which partial answers were read and written together.
  std::int32_t rounds = 0;
  /// Tokens of the text that were attended from their KV.
  std::int64_t read_tokens = 0;
  /// Questions and partial answers, each as often as it was computed; and all that was written.
  std::int64_t computed_tokens = 0;
  std::int64_t written_tokens = 0;
  /// Part of Seconds::decode: writing the partial answers.
  double partial_seconds = 0.0;
};

struct Answer {
  std::string text;
  std::vector<Token> tokens;
  bool exact = false;
  /// Ended by an end-of-generation token or line end, not by the limit.
  bool finished = false;

  // Counted, over the distinct tokens of stream + question: prompt = reused + computed; attended + cold + dropped =
  // prompt.
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;
  std::int64_t computed_tokens = 0;
  std::int64_t attended_tokens = 0;
  std::int64_t cold_tokens = 0;
  std::int64_t dropped_tokens = 0;
  /// Of the reused: those that stood in other text when they were computed, before the stream was edited.
  std::int64_t reused_after_edit_tokens = 0;
  /// Computed again beside those: probe pass, run-ups, dropped blocks.
  std::int64_t recomputed_tokens = 0;
  /// Pinned tokens that found no room in the hot set.
  std::int64_t pinned_cold_tokens = 0;

  std::vector<Passage> retrieved;  // best first
  /// Of a question about the whole text in extended mode: every token of the text was attended for it.
  std::optional<MapReport> map;
  /// How often the answer went back for another block while it was written.
  int returns = 0;
  Seconds seconds;
  double ttft_ms = 0.0;
  /// What the turn was predicted to take before it began (prefill and question, without decode); 0 if nothing was
  /// known.
  double predicted_seconds = 0.0;
  double prefill_tokens_per_second = 0.0;
  double decode_ms_per_token = 0.0;
  std::int64_t kv_bytes_device = 0;
  std::int64_t kv_bytes_host = 0;
  std::int64_t index_bytes = 0;
};

}  // namespace modeld
