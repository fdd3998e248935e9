// Whether a chat template shows a mark to the model.
#pragma once

#include <string_view>

#include "engine/dialect/dialect.h"

namespace tgi::dialect {

inline bool shows(const ChatTemplate& chat_template, std::string_view text) {
  return chat_template.contains(text, /*has_tools=*/true);
}

}  // namespace tgi::dialect
