// What is told of an answer beside its calls: its text and its reasoning, without the white space
// around them.
#include <string>
#include <string_view>
#include <utility>

#include "engine/dialect/answer_reader.h"
#include "engine/dialect/json_scanner.h"
#include "engine/dialect/marked_text.h"

namespace tgi::dialect {
namespace {

size_t space_at_end(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && is_json_space(text[text.size() - 1 - count])) ++count;
  return count;
}

}  // namespace

void AnswerReader::tell(std::string_view part, std::string& text) {
  text += part;
  num_told_ += part.size();
}

void AnswerReader::release(std::string_view marked_part, std::string& text) {
  const std::string plain = unmarked(marked_part);
  std::string_view part = plain;
  if (skips_space_) {
    while (!part.empty() && is_json_space(part.front())) part.remove_prefix(1);
    if (!part.empty()) skips_space_ = false;
  }
  if (!reads_calls()) {
    tell(part, text);
    return;
  }
  const size_t num_space = space_at_end(part);
  if (num_space < part.size()) tell(std::exchange(held_space_, {}), text);
  tell(part.substr(0, part.size() - num_space), text);
  held_space_ += part.substr(part.size() - num_space);
}

void AnswerReader::reason(std::string_view part) {
  if (!has_reasoned_ || reasoning_space_.empty()) {
    while (!has_reasoned_ && !part.empty() && is_json_space(part.front())) part.remove_prefix(1);
  }
  const size_t num_space = space_at_end(part);
  const std::string words = unmarked(part.substr(0, part.size() - num_space));
  if (!words.empty()) {
    reasoning_ += std::exchange(reasoning_space_, {});
    reasoning_ += words;
    has_reasoned_ = true;
  }
  reasoning_space_ += part.substr(part.size() - num_space);
}

}  // namespace tgi::dialect
