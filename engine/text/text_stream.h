// Tokens to text a reader may see: whole UTF-8 only, stop strings found across token borders and,
// when they are to be cut off, never leaked in part. What it releases, put together, is the text of
// the answer. Special tokens have no text here. What is no part of that text, though the model
// wrote it (its reasoning, calls of tools), a filter takes out first. Belongs to one sequence, on
// the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/text/tokenizer.h"

namespace tgi {

// Stands between what the model writes and the text of its answer.
class TextFilter {
 public:
  virtual ~TextFilter() = default;

  // Appends to `text` what is certain to be of the answer's text. `written` is whole UTF-8, or a
  // special token as it is spelled.
  virtual void push(std::string_view written, bool is_special, std::string& text) = 0;
  virtual void finish(std::string& text) = 0;  // nothing more comes
};

class TextStream {
 public:
  // `stop`, `tokenizer` and `filter` (optional) must outlive the stream. Stop strings are not empty
  // and valid UTF-8 (intake checks).
  TextStream(const Tokenizer& tokenizer,
             std::span<const std::string> stop,
             bool include_stop_text,
             TextFilter* filter = nullptr);

  // Appends to `released` what the token made certain. True: a stop string is complete; the stream
  // is over, with the stop string at its end or cut off.
  [[nodiscard]] bool push(int32_t token_id, std::string& released);

  // No more tokens: releases what was held back; bytes that never became a character turn into
  // U+FFFD.
  void finish(std::string& released);

  // The stop string that ended the stream, else null.
  const std::string* matched_stop() const { return matched_stop_; }

 private:
  void take_characters(bool at_end);
  void end_characters();
  bool find_stop(std::string& released);
  size_t num_held_bytes() const;

  const Tokenizer* tokenizer_;
  std::unique_ptr<RunningText> running_text_;  // or null
  std::span<const std::string> stop_;
  bool include_stop_text_;
  TextFilter* filter_;
  std::string raw_;          // bytes that are not a whole character yet
  std::string text_;         // whole characters that may be the beginning of a stop string
  size_t num_released_ = 0;  // bytes at the front of text_ that went out already
  const std::string* matched_stop_ = nullptr;
};

}  // namespace tgi
