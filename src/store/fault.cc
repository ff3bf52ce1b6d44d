#include "store/fault.h"

#include <utility>

namespace modeld {
namespace {

FaultHook& hook() {
  static FaultHook installed;
  return installed;
}

}  // namespace

void set_fault_hook(FaultHook wanted) { hook() = std::move(wanted); }

int fault_at(FaultPoint point) { return hook() ? hook()(point) : 0; }

}  // namespace modeld
