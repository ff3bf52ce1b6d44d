#include "cli/session_texts.h"

#include <algorithm>
#include <utility>

namespace modeld {

TextUpdate update_texts(std::vector<TextPart> there, std::vector<TextPart> named) {
  TextUpdate update;
  update.parts = std::move(there);
  for (TextPart& part : named) {
    const auto same_name = [&](const TextPart& one) { return one.name == part.name && one.kind == part.kind; };
    const auto same = [&](const TextPart& one) { return same_name(one) && one.text == part.text; };
    if (std::any_of(update.parts.begin(), update.parts.end(), same)) {
      ++update.same;
    } else if (const auto old = std::find_if(update.parts.begin(), update.parts.end(), same_name);
               old != update.parts.end()) {
      ++update.changed;
      *old = std::move(part);
    } else {
      ++update.added;
      update.parts.push_back(std::move(part));
    }
  }
  return update;
}

}  // namespace modeld
