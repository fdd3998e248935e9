#include "engine/text/tokenizer/decoder_steps.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "engine/text/tokenizer/byte_steps.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/split.h"
#include "engine/text/tokenizer/token_step.h"
#include "engine/text/tokenizer/word_cleanup.h"

namespace tgi {
namespace {

constexpr int64_t kMostStripped = 1024;

class ReplaceStep final : public TokenStep {
 public:
  ReplaceStep(const JsonReader& component, const DecoderState& state)
      : TokenStep(state),
        pattern_(component),
        literal_(component.object("pattern").string_or("String", "")),
        content_(component.string("content")) {}

  const std::string& literal() const { return literal_; }  // "" of a regular expression

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
  std::unique_ptr<StepRun> run_whole(bool /*at_start*/) const override {
    return std::make_unique<ReplaceRun>(literal_, content_);
  }

 private:
  const Pattern pattern_;
  const std::string literal_;
  const std::string content_;
};

void add_cleanup_runs(std::vector<std::unique_ptr<StepRun>>& runs) {
  for (const auto& [found, content] : kCleanups) {
    runs.push_back(std::make_unique<ReplaceRun>(found, content));
  }
}

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
  std::unique_ptr<StepRun> run_whole(bool at_start) const override {
    return std::make_unique<StripRun>(content_, at_start ? start_ : 0, stop_);
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
    if (cleanup_) clean_up(token);
  }
  std::unique_ptr<StepRun> run_whole(bool /*at_start*/) const override {
    std::vector<std::unique_ptr<StepRun>> runs;
    if (cleanup_) add_cleanup_runs(runs);
    return std::make_unique<ChainRun>(std::move(runs));
  }

 private:
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
  bool looks_at_last() const override { return true; }
  std::unique_ptr<StepRun> run_whole(bool /*at_start*/) const override {
    return std::make_unique<ReplaceRun>(suffix_, "");
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
  std::unique_ptr<StepRun> run(bool /*at_start*/) const override {
    return std::make_unique<ChainRun>(std::vector<std::unique_ptr<StepRun>>());
  }
};

// Tokens of sounds: what is said several times in a row is one, the padding between is none.
class CtcStep final : public DecoderStep {
 public:
  CtcStep(const JsonReader& component, const DecoderState& state)
      : pad_(component.string("pad_token")),
        delimiter_(component.string("word_delimiter_token")),
        cleanup_(component.boolean("cleanup")),
        is_whole_(state.is_whole) {
    for (const auto& [key, text] :
         {std::pair("pad_token", &pad_), std::pair("word_delimiter_token", &delimiter_)}) {
      if (text->empty()) {
        throw Error(Code::kUnsupported,
                    fmt::format("{}: expected a token, got none", component.path_of(key)));
      }
    }
  }

  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    SoundRun run(*this);
    for (std::string& token : tokens) run.push(std::move(token), out);
    tokens = std::move(out);
  }
  void stream(RunningToken& token) const override { change(token.text); }
  std::unique_ptr<StepRun> run(bool /*at_start*/) const override {
    if (!is_whole_) return std::make_unique<SoundRun>(*this);
    std::vector<std::unique_ptr<StepRun>> runs;
    runs.push_back(std::make_unique<ReplaceRun>(pad_, ""));
    if (cleanup_) {
      add_cleanup_runs(runs);
      runs.push_back(std::make_unique<ReplaceRun>(delimiter_, " "));
    }
    return std::make_unique<ChainRun>(std::move(runs));
  }

 private:
  class SoundRun final : public StepRun {
   public:
    explicit SoundRun(const CtcStep& step) : step_(step) {}

    void push(std::string token, std::vector<std::string>& out) override {
      if (token == before_) return;
      before_ = token;
      step_.change(token);
      if (!token.empty()) out.push_back(std::move(token));
    }

   private:
    const CtcStep& step_;
    std::optional<std::string> before_;
  };

  void change(std::string& token) const {
    replace_all(token, pad_, "");
    if (!cleanup_) return;
    clean_up(token);
    replace_all(token, delimiter_, " ");
  }

  const std::string pad_;
  const std::string delimiter_;
  const bool cleanup_;
  const bool is_whole_;
};

[[noreturn]] void fail_whole(const JsonReader& component,
                             const std::string& what,
                             const std::string& why) {
  throw Error(Code::kUnsupported,
              fmt::format("{}: {} after Fuse or ByteLevel can't be done before the text's end: {}",
                          component.path_of("type"), what, why));
}

// Behind Fuse and ByteLevel a running text comes in parts: what is looked for may lie across two.
void note_looked_for(std::string_view looked_for, DecoderState& state) {
  if (state.is_whole && !is_character(looked_for)) state.is_token_wise = false;
}

// How many tokens ByteFallback makes of several is known when the last of them is.
void note_counted_tokens(DecoderState& state) {
  if (state.has_bytes && !state.is_whole) state.is_token_wise = false;
}

std::unique_ptr<DecoderStep> make_replace(const JsonReader& component, DecoderState& state) {
  auto step = std::make_unique<ReplaceStep>(component, state);
  if (state.is_whole && step->literal().empty()) {
    fail_whole(component, "Replace of a regular expression", "a match may grow with what comes");
  }
  note_looked_for(step->literal(), state);
  return step;
}

std::unique_ptr<DecoderStep> make_metaspace(const JsonReader& component, DecoderState& state) {
  return std::make_unique<MetaspaceStep>(component, state);
}

std::unique_ptr<DecoderStep> make_word_piece(const JsonReader& component, DecoderState& state) {
  note_counted_tokens(state);
  auto step = std::make_unique<WordPieceStep>(component, state);
  if (step->cleans_up()) note_looked_for("", state);
  return step;
}

std::unique_ptr<DecoderStep> make_bpe(const JsonReader& component, DecoderState& state) {
  std::string suffix = component.string("suffix");
  if (suffix.empty()) {
    throw Error(Code::kUnsupported, fmt::format("{}: expected the text that ends a word, got none",
                                                component.path_of("suffix")));
  }
  note_counted_tokens(state);
  note_looked_for(suffix, state);
  if (!state.is_whole) state.ends_unlike = true;
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
  if (state.is_whole && stop > 0) state.is_token_wise = false;
  return std::make_unique<StripStep>(std::move(content), start, stop, state);
}

std::unique_ptr<DecoderStep> make_fuse(const JsonReader& /*component*/, DecoderState& state) {
  state.is_whole = true;
  return std::make_unique<FuseStep>();
}

std::unique_ptr<DecoderStep> make_byte_fallback(const JsonReader& /*component*/,
                                                DecoderState& state) {
  auto step = make_byte_fallback_step(state);
  state.has_bytes = true;
  return step;
}

std::unique_ptr<DecoderStep> make_byte_level(const JsonReader& component, DecoderState& state) {
  if (state.is_whole) {
    fail_whole(component, "ByteLevel", "it takes the whole text for bytes or for none");
  }
  if (state.has_bytes) state.is_token_wise = false;
  state.is_whole = true;
  return make_byte_level_step();
}

std::unique_ptr<DecoderStep> make_ctc(const JsonReader& component, DecoderState& state) {
  state.is_token_wise = false;
  return std::make_unique<CtcStep>(component, state);
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
    {"CTC", make_ctc},
};

constexpr std::string_view kKnown =
    "Sequence, ByteLevel, Metaspace, WordPiece, BPEDecoder, Replace, ByteFallback, Fuse, Strip, "
    "CTC";

}  // namespace

std::unique_ptr<DecoderStep> make_decoder_step(const JsonReader& component,
                                               const std::string& type,
                                               DecoderState& state) {
  for (const StepRow& row : kSteps) {
    if (row.type == type) return row.make(component, state);
  }
  fail_unknown_type(component, type, kKnown);
}

}  // namespace tgi
