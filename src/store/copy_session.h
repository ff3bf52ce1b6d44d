// A session from one state directory into another: export and import are this, in either direction.
#pragma once

#include <string_view>

#include "base/cancel.h"
#include "base/error.h"
#include "base/progress.h"
#include "store/state.h"

namespace modeld {

/// Copies a session with its text, index and payloads, as `name`. What `from` has given up of it is not copied, nor
/// what it was before its last edit. After an error or cancel `to` has no session of that name. Errors: session_exists,
/// those of reading and writing; cancelled.
Status copy_session(State& from, const SessionRow& session, State& to, std::string_view name,
                    const ProgressSink& progress = {}, const CancelFlag* cancel = nullptr);

}  // namespace modeld
