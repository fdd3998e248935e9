// The "decoder" of tokenizer.json: turns tokens back into text. Immutable.
//
// Only chains that also work token by token, in a stream, are accepted: steps on single tokens
// (Replace, Strip, Metaspace), then what makes bytes of them (ByteFallback or ByteLevel), then
// Fuse, then at most a Strip that takes one character from the start of the text. Replace and
// Metaspace may also stand right behind ByteFallback: they change tokens that are no bytes (the
// library changes the text of bytes, too, if they happen to spell what is replaced).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

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

  class Step {
   public:
    virtual ~Step() = default;
    virtual void apply(std::string& token, bool at_start) const = 0;
  };

 private:
  void add(const JsonReader& component, const std::string& type);
  void add_strip(const JsonReader& component);
  void require_before_fuse(const JsonReader& component, const std::string& type) const;
  void add_step(const JsonReader& component, const std::string& type, std::unique_ptr<Step> step);
  std::string prepared(std::string_view token, bool at_start) const;
  void finish_token(std::string& token, bool at_start) const;
  void strip_start(std::string& text) const;

  bool words_ = true;  // no decoder at all
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<std::unique_ptr<Step>> steps_behind_bytes_;
  bool byte_fallback_ = false;
  bool byte_level_ = false;
  bool fused_ = false;
  std::string stripped_;  // the character that the text loses at its start, or ""
};

// The byte that a token like <0x0A> stands for.
std::optional<unsigned char> byte_of_token(std::string_view token);

}  // namespace tgi
