#include "engine/text/tokenizer/decoder_steps.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/split.h"

namespace tgi {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr int64_t kMostStripped = 1024;

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

// A step that changes each token, or the one text that is left, for itself.
class TokenStep : public DecoderStep {
 public:
  explicit TokenStep(const DecoderState& state) : is_whole_(state.is_whole) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      change(tokens[i], i == 0, i + 1 == tokens.size());
    }
  }
  void stream(RunningToken& token) const override {
    if (is_whole_) {
      change_part(token);
    } else if (!token.is_byte) {
      change(token.text, token.at_start, false);
    }
  }

 protected:
  // is_first, is_last: of the tokens.
  virtual void change(std::string& token, bool is_first, bool is_last) const = 0;
  // A part of the one text that is left, which is its first and its last token.
  virtual void change_part(RunningToken& part) const { change(part.text, true, true); }

 private:
  bool is_whole_;
};

class ReplaceStep final : public TokenStep {
 public:
  ReplaceStep(const JsonReader& component, const DecoderState& state)
      : TokenStep(state), pattern_(component), content_(component.string("content")) {}

 protected:
  void change(std::string& token, bool /*is_first*/, bool /*is_last*/) const override {
    if (token.empty()) return;
    std::vector<TextRange> matches;
    pattern_.find_all(token, matches);
    if (matches.empty()) return;
    std::string replaced;
    size_t end = 0;
    for (const TextRange& match : matches) {
      replaced.append(token, end, match.begin - end);
      replaced += content_;
      end = match.end;
    }
    replaced.append(token, end);
    token = std::move(replaced);
  }

 private:
  const Pattern pattern_;
  const std::string content_;
};

// Takes `content` up to `start` times off the start of a token and `stop` times off its end.
class StripStep final : public TokenStep {
 public:
  StripStep(std::string content, int64_t start, int64_t stop, const DecoderState& state)
      : TokenStep(state), content_(std::move(content)), start_(start), stop_(stop) {}

 protected:
  void change(std::string& token, bool /*is_first*/, bool /*is_last*/) const override {
    std::string_view rest = token;
    for (int64_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
      rest.remove_prefix(content_.size());
    }
    for (int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
      rest.remove_suffix(content_.size());
    }
    token = std::string(rest);
  }
  void change_part(RunningToken& part) const override {
    if (part.at_start) change(part.text, true, true);
  }

 private:
  const std::string content_;
  const int64_t start_;
  const int64_t stop_;
};

class MetaspaceStep final : public TokenStep {
 public:
  MetaspaceStep(const JsonReader& component, const DecoderState& state)
      : TokenStep(state),
        replacement_(read_character(component, "replacement")),
        drops_first_(component.string_or("prepend_scheme", "always") != "never" &&
                     component.boolean_or("add_prefix_space", true)) {}

 protected:
  void change(std::string& token, bool is_first, bool /*is_last*/) const override {
    replace_all(token, replacement_, is_first && drops_first_ ? "" : " ");
  }

 private:
  const std::string replacement_;
  const bool drops_first_;
};

// Joins the parts of words; cleanup: takes the spaces away that tokens which stand alone put where
// English has none.
class WordPieceStep final : public TokenStep {
 public:
  WordPieceStep(const JsonReader& component, const DecoderState& state)
      : TokenStep(state),
        prefix_(component.string("prefix")),
        cleanup_(component.boolean("cleanup")) {}

  bool cleans_up() const { return cleanup_; }

 protected:
  void change(std::string& token, bool is_first, bool /*is_last*/) const override {
    if (!is_first) {
      if (token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    if (!cleanup_) return;
    for (const auto& [found, content] : kCleanups) replace_all(token, found, content);
  }

 private:
  // One after the other, each in what the ones before have left.
  static constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

  const std::string prefix_;
  const bool cleanup_;
};

// The end of a word is a space, except that of the last token.
class BpeStep final : public TokenStep {
 public:
  BpeStep(std::string suffix, const DecoderState& state)
      : TokenStep(state), suffix_(std::move(suffix)) {}

 protected:
  void change(std::string& token, bool /*is_first*/, bool is_last) const override {
    replace_all(token, suffix_, is_last ? "" : " ");
  }

 private:
  const std::string suffix_;
};

class FuseStep final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
  }
  void stream(RunningToken& /*token*/) const override {}
};

// A run of byte tokens becomes one text, or one U+FFFD for each when it is none.
class ByteFallbackStep final : public DecoderStep {
 public:
  explicit ByteFallbackStep(const DecoderState& state)
      : is_first_(!state.is_whole && !state.has_bytes) {}

  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;  // the pending run
    for (std::string& token : tokens) {
      if (const auto byte = byte_of_token(token)) {
        bytes += static_cast<char>(*byte);
        continue;
      }
      flush(bytes, out);
      out.push_back(std::move(token));
    }
    flush(bytes, out);
    tokens = std::move(out);
  }
  void stream(RunningToken& token) const override {
    // Nothing that spells a byte comes through another one or out of a whole text.
    if (!is_first_) return;
    if (const auto byte = byte_of_token(token.text)) {
      token.text.assign(1, static_cast<char>(*byte));
      token.is_byte = true;
    }
  }

 private:
  static void flush(std::string& bytes, std::vector<std::string>& out) {
    if (bytes.empty()) return;
    if (is_valid_utf8(bytes)) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string(kReplacement));
    }
    bytes.clear();
  }

  const bool is_first_;
};

class ByteLevelStep final : public DecoderStep {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) {
      const auto bytes = from_byte_level(token);
      all += bytes ? *bytes : token;
    }
    if (!is_valid_utf8(all)) all = replace_invalid_utf8(all);
    tokens.assign(1, std::move(all));
  }
  void stream(RunningToken& token) const override {
    if (auto bytes = from_byte_level(token.text)) token.text = std::move(*bytes);
  }
};

[[noreturn]] void fail_stream(const JsonReader& component,
                              const std::string& what,
                              const std::string& why) {
  throw Error(Code::kUnsupported, fmt::format("{}: {} can't be done in a stream: {}",
                                              component.path_of("type"), what, why));
}

// Behind Fuse and ByteLevel a stream sees parts of the text: what is looked for may lie across two.
void require_within_parts(const JsonReader& component,
                          const std::string& type,
                          std::string_view looked_for,
                          const DecoderState& state) {
  if (!state.is_whole || is_character(looked_for)) return;
  fail_stream(component, type + " after Fuse or ByteLevel",
              "what it looks for may lie across two tokens; only one character can be looked for");
}

// What ByteFallback makes of several tokens is one for a step that counts tokens.
void require_no_bytes(const JsonReader& component,
                      const std::string& type,
                      const DecoderState& state) {
  if (!state.has_bytes || state.is_whole) return;
  fail_stream(component, type + " right behind ByteFallback",
              "how many tokens bytes make is unknown");
}

std::unique_ptr<DecoderStep> make_replace(const JsonReader& component, DecoderState& state) {
  // A regular expression counts as more than one character.
  const std::string looked_for = component.object("pattern").string_or("String", "");
  require_within_parts(component, "Replace", looked_for, state);
  return std::make_unique<ReplaceStep>(component, state);
}

std::unique_ptr<DecoderStep> make_metaspace(const JsonReader& component, DecoderState& state) {
  return std::make_unique<MetaspaceStep>(component, state);
}

std::unique_ptr<DecoderStep> make_word_piece(const JsonReader& component, DecoderState& state) {
  require_no_bytes(component, "WordPiece", state);
  auto step = std::make_unique<WordPieceStep>(component, state);
  if (step->cleans_up()) {
    require_within_parts(component, "WordPiece with cleanup", "", state);
  }
  return step;
}

std::unique_ptr<DecoderStep> make_bpe(const JsonReader& component, DecoderState& state) {
  std::string suffix = component.string("suffix");
  if (suffix.empty()) {
    throw Error(Code::kUnsupported, fmt::format("{}: expected the text that ends a word, got none",
                                                component.path_of("suffix")));
  }
  require_no_bytes(component, "BPEDecoder", state);
  require_within_parts(component, "BPEDecoder", suffix, state);
  return std::make_unique<BpeStep>(std::move(suffix), state);
}

std::unique_ptr<DecoderStep> make_strip(const JsonReader& component, DecoderState& state) {
  std::string content = read_character(component, "content");
  const int64_t start = component.integer("start");
  const int64_t stop = component.integer("stop");
  if (start < 0 || stop < 0 || start > kMostStripped || stop > kMostStripped) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: start and stop must be 0 to {}, got {} and {}",
                            component.path_of("start"), kMostStripped, start, stop));
  }
  if (state.is_whole && stop > 0) {
    fail_stream(component, "Strip at the end after Fuse or ByteLevel",
                "which token is the last is known too late");
  }
  return std::make_unique<StripStep>(std::move(content), start, stop, state);
}

std::unique_ptr<DecoderStep> make_fuse(const JsonReader& /*component*/, DecoderState& state) {
  state.is_whole = true;
  return std::make_unique<FuseStep>();
}

std::unique_ptr<DecoderStep> make_byte_fallback(const JsonReader& /*component*/,
                                                DecoderState& state) {
  auto step = std::make_unique<ByteFallbackStep>(state);
  state.has_bytes = true;
  return step;
}

std::unique_ptr<DecoderStep> make_byte_level(const JsonReader& component, DecoderState& state) {
  if (state.has_bytes || state.is_whole) {
    fail_stream(component, "ByteLevel after Fuse, ByteFallback or ByteLevel",
                "it takes the whole text for bytes or for none");
  }
  state.is_whole = true;
  return std::make_unique<ByteLevelStep>();
}

struct StepRow {
  std::string_view type;
  std::unique_ptr<DecoderStep> (*make)(const JsonReader& component, DecoderState& state);
};

constexpr StepRow kSteps[] = {
    {"ByteLevel", make_byte_level},
    {"Metaspace", make_metaspace},
    {"WordPiece", make_word_piece},
    {"BPEDecoder", make_bpe},
    {"Replace", make_replace},
    {"ByteFallback", make_byte_fallback},
    {"Fuse", make_fuse},
    {"Strip", make_strip},
};

constexpr std::string_view kKnown =
    "Sequence, ByteLevel, Metaspace, WordPiece, BPEDecoder, Replace, ByteFallback, Fuse, Strip";

}  // namespace

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* end = token.data() + 5;
  const auto [stopped, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return byte;
}

std::unique_ptr<DecoderStep> make_decoder_step(const JsonReader& component,
                                               const std::string& type,
                                               DecoderState& state) {
  for (const StepRow& row : kSteps) {
    if (row.type == type) return row.make(component, state);
  }
  fail_unknown_type(component, type, kKnown);
}

}  // namespace tgi
