// Values in the notation of Gemma's calls: {name:value,...} and [value,...] as in JSON, but names
// stand bare and texts between a mark, as they are, with nothing escaped.
// Source: the chat templates of Gemma 4 (<|"|>) and FunctionGemma (<escape>).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tgi::dialect {

// Finds the end of a value that comes in pieces: before a comma or a closing bracket that belongs
// to others. `quote`: the mark around texts, as it stands in marked text.
class EntryScanner {
 public:
  // How many bytes at the front of `text` belong to the value. What may be the beginning of a mark
  // is not among them yet: it has to be in front of the next text.
  size_t feed(std::string_view text, std::string_view quote);
  bool is_done() const { return is_done_; }

 private:
  int depth_ = 0;
  bool in_text_ = false;  // between marks
  bool in_json_ = false;  // of a string of JSON, which some write instead
  bool is_escaped_ = false;
  bool is_done_ = false;
};

// The value as JSON; empty when it is no such value.
std::string json_of_entry(std::string_view value, std::string_view quote);

}  // namespace tgi::dialect
