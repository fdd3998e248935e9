#include "engine/text/token_spans.h"

#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace tgi {
namespace {

constexpr std::string_view kBlock = "\u2581";  // how SentencePiece's formats write a space

// How many bytes of the text are those of a token; nothing: it does not stand there.
std::optional<size_t> match_at(std::string_view text, size_t at, std::string_view bytes) {
  size_t end = at;
  for (const char byte : bytes) {
    if (end < text.size() && text[end] == byte) {
      ++end;
    } else if (byte == ' ' && text.substr(end).starts_with(kBlock)) {
      end += kBlock.size();
    } else {
      return std::nullopt;
    }
  }
  return end - at;
}

bool is_inside_character(std::string_view text, size_t at) {
  return at < text.size() && !starts_character(text[at]);
}

// Walks through the text, token by token.
class Aligner {
 public:
  explicit Aligner(std::string_view text) : text_(text) {}

  // The bytes of the text that are those of a token, or (0, 0) for one that was added.
  std::pair<size_t, size_t> take(const std::string& bytes, bool special) {
    if (const auto found = find(bytes)) {
      at_ = found->second;
      // A space alone that a format put in front: it belongs to what comes next.
      if (found->first == at_ && !bytes.empty()) return {at_, character_after(at_)};
      return *found;
    }
    if (special) return {0, 0};
    const size_t begin = at_;
    for (int64_t left = count_utf8_characters(bytes); left > 0; --left) at_ = character_after(at_);
    return {begin, at_};
  }

 private:
  size_t character_after(size_t at) const {
    if (at >= text_.size()) return at;
    do {
      ++at;
    } while (is_inside_character(text_, at));
    return at;
  }

  std::optional<std::pair<size_t, size_t>> find(std::string_view bytes) const {
    // Added tokens may swallow the white space around them, formats may add a space in front.
    for (size_t begin = at_;; ++begin) {
      if (const auto length = match_at(text_, begin, bytes)) return {{begin, begin + *length}};
      if (bytes.starts_with(' ')) {
        const auto length = match_at(text_, begin, bytes.substr(1));
        if (length) return {{begin, begin + *length}};
      }
      if (begin >= text_.size() || text_[begin] != ' ') return std::nullopt;
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<TextSpan> token_spans(const Tokenizer& tokenizer,
                                  std::string_view text,
                                  std::span<const int32_t> ids,
                                  bool add_special) {
  if (const auto* tracking = dynamic_cast<const SpanTokenizer*>(&tokenizer)) {
    return tracking->spans(text, add_special);
  }
  // Characters that begin before each byte.
  std::vector<int64_t> num_before(text.size() + 1, 0);
  for (size_t i = 0; i < text.size(); ++i) {
    num_before[i + 1] = num_before[i] + (is_inside_character(text, i) ? 0 : 1);
  }
  Aligner aligner(text);
  std::vector<TextSpan> out;
  out.reserve(ids.size());
  std::string bytes;
  for (const int32_t id : ids) {
    bytes.clear();
    tokenizer.append_bytes(id, false, bytes);
    const auto [begin, end] = aligner.take(bytes, tokenizer.is_special(id));
    const bool cuts = begin < end && is_inside_character(text, begin);
    out.push_back({.start = num_before[begin] - (cuts ? 1 : 0), .stop = num_before[end]});
  }
  return out;
}

}  // namespace tgi
