// The "decoder" of tokenizer.json: turns tokens back into text. Immutable.
//
// A chain of steps on the list of all tokens, each of which may leave another list. Most chains
// also say of a token by itself what it adds to a running text. There a few things differ from the
// whole text: Replace, Metaspace and Strip behind ByteFallback, and Replace behind ByteLevel, don't
// change what several tokens of bytes spell together. The last token of a text that BPEDecoder
// makes has no space behind its word: that of a running text is held back. In the others (CTC,
// Strip at the end of the whole text, what looks for several characters in it) a token's text
// depends on those around it: there a running text goes through a DecoderRun, with nothing unlike.
// What can't be known before the text's end is refused by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer/decoder_steps.h"

namespace tgi {

// Tokens of one running text, which may be held back until others come.
class DecoderRun {
 public:
  explicit DecoderRun(std::vector<std::unique_ptr<StepRun>> steps) : chain_(std::move(steps)) {}

  // Append what is certain of the text: whole characters.
  void push(std::string_view token, std::string& out);
  void finish(std::string& out);  // no more tokens

 private:
  ChainRun chain_;
};

class Decoder {
 public:
  Decoder() = default;  // tokens are words: joined with spaces

  // component: the object under "decoder". Throws kInvalidArgument or kUnsupported with its path.
  explicit Decoder(const JsonReader& component);

  // Whether append tells what a token adds to a running text.
  bool is_token_wise() const { return is_token_wise_; }

  // Whether the last token of a text is written unlike one that others follow.
  bool ends_unlike() const { return ends_unlike_; }

  // Of any decoder of a file, which must outlive it. at_start: from the first token of a text on.
  // REQUIRES: a component was given.
  DecoderRun run(bool at_start) const;

  // What `token` adds to the text, as bytes. at_start: it is the first of the text.
  void append(std::string_view token, bool at_start, std::string& out) const;
  // The same of the text's last token. REQUIRES: is_token_wise().
  void append_last(std::string_view token, bool at_start, std::string& out) const;

  // The text of all tokens, with U+FFFD where bytes don't make characters: one for each maximal
  // broken part with ByteLevel, one for each byte of a run of byte tokens that is not valid as a
  // whole with ByteFallback.
  std::string decode(const std::vector<std::string_view>& tokens) const;

 private:
  void append(RunningToken running, std::string& out) const;

  bool words_ = true;  // no decoder at all
  bool is_token_wise_ = true;
  bool ends_unlike_ = false;
  std::vector<std::unique_ptr<DecoderStep>> steps_;
};

}  // namespace tgi
