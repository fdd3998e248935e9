// The "decoder" of tokenizer.json: turns tokens back into text. Immutable.
//
// A chain of steps on the list of all tokens, each of which may leave another list. Only chains
// that also work token by token, in a running text, are accepted; what else there could be is
// refused by name. There a few things differ from the whole text: Replace, Metaspace and Strip
// behind ByteFallback, and Replace behind ByteLevel, don't change what several tokens of bytes
// spell together; the last token of a text that BPEDecoder makes keeps the space behind its word.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer/decoder_steps.h"

namespace tgi {

class Decoder {
 public:
  Decoder() = default;  // tokens are words: joined with spaces

  // component: the object under "decoder". Throws kInvalidArgument or kUnsupported with its path.
  explicit Decoder(const JsonReader& component);

  // What `token` adds to the text, as bytes. at_start: it is the first of the text.
  void append(std::string_view token, bool at_start, std::string& out) const;

  // The text of all tokens, with U+FFFD where bytes don't make characters: one for each maximal
  // broken part with ByteLevel, one for each byte of a run of byte tokens that is not valid as a
  // whole with ByteFallback.
  std::string decode(const std::vector<std::string_view>& tokens) const;

 private:
  bool words_ = true;  // no decoder at all
  std::vector<std::unique_ptr<DecoderStep>> steps_;
};

}  // namespace tgi
