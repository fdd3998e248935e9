// Text to token ids and back. Implementations: json_tokenizer (tokenizer.json, and what is read as
// one would be), sentencepiece_tokenizer (tokenizer.model). Immutable after construction: every
// method may be called from any thread at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

// The text of tokens one after the other, each of which may say how those before it are written.
// What came out at any moment is whole characters and the beginning of the text of all. Belongs to
// one sequence.
class RunningText {
 public:
  virtual ~RunningText() = default;
  virtual void push(int32_t id, std::string& out) = 0;
  virtual void finish(std::string& out) = 0;  // no more tokens; others may begin a text again
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // add_special: run the post-processor (BOS and the like). Special tokens that are written out in
  // the text are recognised either way. Bytes that are not UTF-8 become U+FFFD first, as in the
  // libraries that define the formats.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special) const = 0;

  // Appends the bytes that `id` stands for in running text to `out`; they may be part of a UTF-8
  // character. A space that the format drops at the start of a text is dropped when `at_start`.
  // Special tokens are written out as they are spelled; whether to show them is the caller's
  // business. An id outside the vocabulary appends nothing.
  virtual void append_bytes(int32_t id, bool at_start, std::string& out) const = 0;

  // For tokenizers that write a token by those around it, or the last one unlike the others; null
  // for all whose texts are what append_bytes adds up to. It must not outlive the tokenizer.
  // at_start: as append_bytes has it.
  virtual std::unique_ptr<RunningText> running_text(bool /*at_start*/) const { return nullptr; }

  // Whether append_bytes says what a token adds to a text that goes on; else only how it looks
  // alone.
  virtual bool has_token_bytes() const { return running_text(false) == nullptr; }

  // The whole of `ids` as text, byte errors replaced by U+FFFD.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special) const = 0;

  virtual bool is_special(int32_t id) const = 0;
  virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  virtual std::string token_of(
      int32_t id) const = 0;               // as spelled in the vocabulary; "" when unknown
  virtual int32_t vocab_size() const = 0;  // highest id + 1, added tokens included
};

class FileSource;  // base/files/file_source.h: the files of a model, by name

// Whether there is one of the files that load_tokenizer reads.
bool has_tokenizer(const FileSource& files);

// tokenizer.json when it is there, else tekken.json, tokenizer.model (SentencePiece or tiktoken's
// ranks), tiktoken.model, a file .tiktoken, vocab.txt, or vocab.json with merges.txt, in this
// order. Throws kNotFound when none is, kInvalidArgument with the file and the place in it when one
// is malformed, kUnsupported naming a component that this build does not know.
std::unique_ptr<Tokenizer> load_tokenizer(const FileSource& files);

}  // namespace tgi
