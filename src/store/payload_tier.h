// A tier below RAM: where payloads are that have left it, or were never dear enough for it.
#pragma once

#include "base/error.h"
#include "engine/engine.h"
#include "stream/manifest.h"

namespace modeld {

class PayloadTier {
 public:
  PayloadTier() = default;
  PayloadTier(const PayloadTier&) = delete;
  PayloadTier& operator=(const PayloadTier&) = delete;
  virtual ~PayloadTier() = default;

  [[nodiscard]] virtual bool holds(const BlockKey& key) const = 0;
  /// Keeps a payload, after giving up less valuable ones if it must. Nothing to do for one that is held.
  /// Errors: disk_budget_exceeded, disk_full, io_failed; nothing is kept then.
  virtual Status write(const BlockKey& key, const KvPayload& payload) = 0;
  /// Exactly what was written. Errors: state_damaged, payload_invalid, io_failed: the tier then holds it no more.
  virtual Result<KvPayload> read(const BlockKey& key) = 0;
};

}  // namespace modeld
