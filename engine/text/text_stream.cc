#include "engine/text/text_stream.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace tgi {

TextStream::TextStream(const Tokenizer& tokenizer,
                       std::span<const std::string> stop,
                       bool include_stop_text,
                       TextFilter* filter)
    : tokenizer_(&tokenizer),
      running_text_(tokenizer.running_text(false)),
      stop_(stop),
      include_stop_text_(include_stop_text),
      filter_(filter) {}

// From raw_ to text_.
void TextStream::take_characters(bool at_end) {
  if (filter_ == nullptr) return drain_utf8(raw_, at_end, text_);
  std::string characters;
  drain_utf8(raw_, at_end, characters);
  if (!characters.empty()) filter_->push(characters, false, text_);
}

// Something else stands behind what was written.
void TextStream::end_characters() {
  if (running_text_ != nullptr) running_text_->finish(raw_);
  take_characters(true);
}

bool TextStream::push(int32_t token_id, std::string& released) {
  if (tokenizer_->is_special(token_id)) {
    if (filter_ == nullptr) return false;
    end_characters();
    std::string name;
    tokenizer_->append_bytes(token_id, false, name);
    filter_->push(name, true, text_);
  } else {
    // Never at the start of a text: a prompt came before, if only its first special token.
    if (running_text_ != nullptr) {
      running_text_->push(token_id, raw_);
    } else {
      tokenizer_->append_bytes(token_id, false, raw_);
    }
    take_characters(false);
  }
  if (find_stop(released)) return true;
  const size_t num_free = text_.size() - num_held_bytes();
  // A stop string that stays in the text need not be held back, only remembered.
  const size_t end = include_stop_text_ ? text_.size() : num_free;
  released.append(text_, num_released_, end - num_released_);
  text_.erase(0, num_free);
  num_released_ = end - num_free;
  return false;
}

void TextStream::finish(std::string& released) {
  if (matched_stop_ != nullptr) return;
  end_characters();
  if (filter_ != nullptr) filter_->finish(text_);
  if (find_stop(released)) return;
  released.append(text_, num_released_);
  text_.clear();
}

// The match that ends first; of those the longest, as a reader of the plain stream would have seen
// it.
bool TextStream::find_stop(std::string& released) {
  size_t best_end = std::string::npos;
  for (const std::string& stop : stop_) {
    const size_t at = text_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (end < best_end || (end == best_end && stop.size() > matched_stop_->size())) {
      best_end = end;
      matched_stop_ = &stop;
    }
  }
  if (matched_stop_ == nullptr) return false;
  const size_t end = include_stop_text_ ? best_end : best_end - matched_stop_->size();
  released.append(text_, num_released_, end - num_released_);
  text_.clear();
  raw_.clear();
  return true;
}

// The longest tail of the text with which a stop string could begin.
size_t TextStream::num_held_bytes() const {
  size_t held = 0;
  for (const std::string& stop : stop_) {
    for (size_t length = std::min(stop.size() - 1, text_.size()); length > held; --length) {
      if (std::string_view(text_).substr(text_.size() - length) ==
          std::string_view(stop).substr(0, length)) {
        held = length;
      }
    }
  }
  return held;
}

}  // namespace tgi
