#include "engine/text/tokenizer/word_cleanup.h"

namespace tgi {

void replace_all(std::string& text, std::string_view found, std::string_view content) {
  size_t at = text.find(found);
  if (at == std::string::npos) return;
  std::string replaced;
  size_t end = 0;
  for (; at != std::string::npos; at = text.find(found, end)) {
    replaced.append(text, end, at - end);
    replaced += content;
    end = at + found.size();
  }
  replaced.append(text, end);
  text = std::move(replaced);
}

void clean_up(std::string& text) {
  for (const auto& [found, content] : kCleanups) replace_all(text, found, content);
}

}  // namespace tgi
