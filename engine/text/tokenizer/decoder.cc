#include "engine/text/tokenizer/decoder.h"

#include <charconv>
#include <utility>

#include "base/utf8.h"
#include "engine/text/tokenizer/byte_level.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/split.h"

namespace tgi {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr int64_t kMostStripped = 1024;

std::string read_character(const JsonReader& component, std::string_view key) {
  std::string character = component.string(key);
  if (character.empty() || utf8_size(character[0]) != character.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected one character", component.path_of(key)));
  }
  return character;
}

class ReplaceStep final : public Decoder::Step {
 public:
  explicit ReplaceStep(const JsonReader& component)
      : pattern_(component), content_(component.string("content")) {}

  void apply(std::string& token, bool /*at_start*/) const override {
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

// Strips every token of `content` up to `start` times at its start and `stop` times at its end.
class StripStep final : public Decoder::Step {
 public:
  StripStep(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void apply(std::string& token, bool /*at_start*/) const override {
    std::string_view rest = token;
    for (int64_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
      rest.remove_prefix(content_.size());
    }
    for (int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
      rest.remove_suffix(content_.size());
    }
    token = std::string(rest);
  }

 private:
  const std::string content_;
  const int64_t start_;
  const int64_t stop_;
};

class MetaspaceStep final : public Decoder::Step {
 public:
  explicit MetaspaceStep(const JsonReader& component)
      : replacement_(read_character(component, "replacement")),
        drops_first_(component.string_or("prepend_scheme", "always") != "never" &&
                     component.boolean_or("add_prefix_space", true)) {}

  void apply(std::string& token, bool at_start) const override {
    std::string text;
    for (size_t offset = 0; offset < token.size();) {
      const size_t begin = offset;
      offset += utf8_size(token[offset]);
      const std::string_view character = std::string_view(token).substr(begin, offset - begin);
      if (character != replacement_) {
        text += character;
      } else if (!(at_start && drops_first_)) {
        text += ' ';
      }
    }
    token = std::move(text);
  }

 private:
  const std::string replacement_;
  const bool drops_first_;
};

// Joins the parts of words; cleanup: takes the spaces away that tokens which stand alone put where
// English has none.
class WordPieceStep final : public Decoder::Step {
 public:
  explicit WordPieceStep(const JsonReader& component)
      : prefix_(component.string("prefix")), cleanup_(component.boolean("cleanup")) {}

  void apply(std::string& token, bool at_start) const override {
    if (!at_start) {
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

  static void replace_all(std::string& text, std::string_view found, std::string_view content) {
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

  const std::string prefix_;
  const bool cleanup_;
};

constexpr std::string_view kKnown =
    "Sequence, ByteLevel, Metaspace, WordPiece, Replace, ByteFallback, Fuse, Strip";

// A run of byte tokens becomes text as a whole or not at all.
void flush_bytes(std::string& bytes, std::string& out) {
  if (is_valid_utf8(bytes)) {
    out += bytes;
  } else {
    for (size_t i = 0; i < bytes.size(); ++i) out += kReplacement;
  }
  bytes.clear();
}

}  // namespace

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* end = token.data() + 5;
  const auto [stopped, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return byte;
}

Decoder::Decoder(const JsonReader& component) : words_(false) {
  for_each_component(component, "decoders",
                     [this](const JsonReader& each, const std::string& type) { add(each, type); });
}

void Decoder::require_before_fuse(const JsonReader& component, const std::string& type) const {
  if (!fused_ && !byte_fallback_ && !byte_level_) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: {} after Fuse, ByteFallback or ByteLevel can't be done in a stream",
                          component.path_of("type"), type));
}

void Decoder::add(const JsonReader& component, const std::string& type) {
  if (type == "Replace") {
    add_step(component, type, std::make_unique<ReplaceStep>(component));
  } else if (type == "Metaspace") {
    add_step(component, type, std::make_unique<MetaspaceStep>(component));
  } else if (type == "WordPiece") {
    add_step(component, type, std::make_unique<WordPieceStep>(component));
  } else if (type == "Strip") {
    add_strip(component);
  } else if (type == "ByteFallback") {
    require_before_fuse(component, type);
    byte_fallback_ = true;
  } else if (type == "ByteLevel") {
    require_before_fuse(component, type);
    byte_level_ = true;
    fused_ = true;  // it gives one text
  } else if (type == "Fuse") {
    fused_ = true;
  } else {
    fail_unknown_type(component, type, kKnown);
  }
}

void Decoder::add_step(const JsonReader& component,
                       const std::string& type,
                       std::unique_ptr<Step> step) {
  if (byte_fallback_ && !fused_) {
    steps_behind_bytes_.push_back(std::move(step));
    return;
  }
  require_before_fuse(component, type);
  steps_.push_back(std::move(step));
}

void Decoder::add_strip(const JsonReader& component) {
  const std::string content = read_character(component, "content");
  const int64_t start = component.integer("start");
  const int64_t stop = component.integer("stop");
  if (start < 0 || stop < 0 || start > kMostStripped || stop > kMostStripped) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: start and stop must be 0 to {}, got {} and {}",
                            component.path_of("start"), kMostStripped, start, stop));
  }
  if (!fused_) {
    require_before_fuse(component, "Strip");
    steps_.push_back(std::make_unique<StripStep>(content, start, stop));
    return;
  }
  if (start == 0 && stop == 0) return;
  if (start != 1 || stop != 0 || !stripped_.empty()) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: after Fuse only one Strip, of one character at the start, can be "
                            "done in a stream",
                            component.path_of("start")));
  }
  stripped_ = content;
}

std::string Decoder::prepared(std::string_view token, bool at_start) const {
  std::string text(token);
  for (const auto& step : steps_) step->apply(text, at_start);
  return text;
}

// Called for a token that is no byte.
void Decoder::finish_token(std::string& token, bool at_start) const {
  for (const auto& step : steps_behind_bytes_) step->apply(token, at_start);
}

void Decoder::strip_start(std::string& text) const {
  if (!stripped_.empty() && text.starts_with(stripped_)) text.erase(0, stripped_.size());
}

void Decoder::append(std::string_view token, bool at_start, std::string& out) const {
  if (words_) {
    if (!at_start) out += ' ';
    out += token;
    return;
  }
  std::string text = prepared(token, at_start);
  if (byte_fallback_) {
    if (const auto byte = byte_of_token(text)) {
      text.assign(1, static_cast<char>(*byte));
    } else {
      finish_token(text, at_start);
    }
  }
  if (byte_level_) {
    if (auto bytes = from_byte_level(text)) text = std::move(*bytes);
  }
  if (at_start) strip_start(text);
  out += text;
}

std::string Decoder::decode(const std::vector<std::string_view>& tokens) const {
  std::string text;
  std::string bytes;  // the pending run of byte tokens
  bool at_start = true;
  for (const std::string_view token : tokens) {
    if (byte_fallback_) {
      std::string prepared_token = prepared(token, at_start);
      if (const auto byte = byte_of_token(prepared_token)) {
        bytes += static_cast<char>(*byte);
      } else {
        flush_bytes(bytes, text);
        finish_token(prepared_token, at_start);
        text += prepared_token;
      }
    } else if (words_) {
      append(token, at_start, text);
    } else {
      const std::string prepared_token = prepared(token, at_start);
      const auto level = byte_level_ ? from_byte_level(prepared_token) : std::nullopt;
      text += level ? *level : prepared_token;
    }
    at_start = false;
  }
  flush_bytes(bytes, text);
  if (byte_level_ && !is_valid_utf8(text)) text = replace_invalid_utf8(text);
  strip_start(text);
  return text;
}

}  // namespace tgi
