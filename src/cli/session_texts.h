// What the texts that were named now are to a session that has texts already.
#pragma once

#include <cstddef>
#include <vector>

#include "session/session.h"

namespace modeld {

struct TextUpdate {
  /// All texts that the session is to have, in order.
  std::vector<TextPart> parts;
  /// Of those that were named: there already, in place of one of the same name, and new.
  std::size_t same = 0;
  std::size_t changed = 0;
  std::size_t added = 0;
};

/// A text that is there stays where it is; one of the same name takes its place; all others follow. Pure.
TextUpdate update_texts(std::vector<TextPart> there, std::vector<TextPart> named);

}  // namespace modeld
