// The steps of decoder.h. Each says what it does to all tokens, as the library has it, and what to
// one token of a running text, of which the others are not seen; where that can't be
// said of one token by itself, the running text goes through runs (decoder_runs.h). Immutable.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer/decoder_runs.h"

namespace tgi {

// A token of a running text on its way through the steps.
struct RunningToken {
  std::string text;
  bool at_start = false;  // it is the first of the text after all
  bool is_byte = false;   // a byte, maybe inside a character
  bool is_last = false;   // no other follows
};

class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;  // valid UTF-8, before and after
  virtual void stream(RunningToken& token) const = 0;
  // This step on a text that runs on, with the same outcome as apply. at_start: from its first
  // token on; else other tokens came before. The step must outlive it.
  virtual std::unique_ptr<StepRun> run(bool at_start) const = 0;
};

// What the steps before one have made of the tokens.
struct DecoderState {
  bool has_bytes = false;  // ByteFallback
  bool is_whole = false;   // one text is left: Fuse or ByteLevel
  // What a token adds to the text can be said of it alone.
  bool is_token_wise = true;
  bool ends_unlike = false;  // of the last one that is something else
};

// The step that `component`, of this type, is behind others that made `state`, to which it adds
// what it makes. Throws kInvalidArgument or kUnsupported with the path of what is wrong, the latter
// also where a running text can't be decoded so.
std::unique_ptr<DecoderStep> make_decoder_step(const JsonReader& component,
                                               const std::string& type,
                                               DecoderState& state);

// The byte that a token like <0x0A> stands for.
std::optional<unsigned char> byte_of_token(std::string_view token);

}  // namespace tgi
