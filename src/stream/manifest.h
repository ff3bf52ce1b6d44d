// Identity: under what KV was made. Manifest: identity + the segment list. Block key: the content address of KV.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "stream/segment.h"
#include "stream/tokens.h"

namespace modeld {

/// Everything that must be equal for KV made once to be used again. Any difference is a miss with a stated reason.
struct Identity {
  /// "llama.cpp 0c1e57098" — engine and its version.
  std::string engine;
  /// SHA-256 of the model file, hex.
  std::string model;
  /// Of the tokenizer's tables and the chat template; both are inside a GGUF, so the model digest covers them there.
  std::string tokenizer;
  std::string chat_template;
  bool adds_bos = false;
  /// Adapters with their scales, in order.
  std::vector<std::pair<std::string, float>> adapters;
  /// "f16", "q8_0"...
  std::string kv_type;
  /// Frequency base, scale and type, as text.
  std::string rope;
  /// Of the calibration, for the recall index only; empty until calibrated.
  std::string calibration;

  friend bool operator==(const Identity&, const Identity&) = default;
  /// What KV is made under: all but the calibration.
  [[nodiscard]] Identity of_payloads() const;
  [[nodiscard]] Digest128 digest() const;
};

/// The first field in which two identities differ, as a sentence ("The KV was made with model …, this is …."); empty if
/// none does.
std::string difference(const Identity& stored, const Identity& current);

struct Manifest {
  Identity identity;
  std::vector<Segment> segments;
  /// Of identity and every segment's kind, class, token range and hash.
  [[nodiscard]] Digest128 digest() const;
};

Digest128 hash_tokens(std::span<const Token> tokens);

/// How a block's KV came to be.
enum class KvOrigin : std::uint8_t {
  /// Computed behind the sinks and a run-up that was dropped: a function of (identity, sinks, run-up, tokens) alone.
  isolated,
  /// Computed in the stream, behind what was resident then.
  streamed,
};
std::string_view to_text(KvOrigin origin);

using BlockKey = Digest128;

/// Key of an isolated block. `run_up` are the tokens computed before it and dropped.
BlockKey isolated_key(const Digest128& identity, const Digest128& sinks, std::span<const Token> run_up,
                      std::span<const Token> tokens);
/// Key of a streamed block: `chain` is the key of the block before it in the stream (the zero digest for the first),
/// `window_tokens` the width that was visible while it was computed.
BlockKey streamed_key(const Digest128& identity, const Digest128& sinks, std::int32_t window_tokens,
                      const BlockKey& chain, std::span<const Token> tokens);

}  // namespace modeld
