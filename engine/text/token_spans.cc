#include "engine/text/token_spans.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace tgi {
namespace {

bool starts_with_at(std::string_view text, size_t at, std::string_view part) {
  return text.substr(at, part.size()) == part;
}

bool is_inside_character(std::string_view text, size_t at) {
  return at < text.size() && (text[at] & 0xC0) == 0x80;
}

// Walks through the text, token by token.
class Aligner {
 public:
  explicit Aligner(std::string_view text) : text_(text) {}

  // The bytes of the text that are those of a token, or (0, 0) for one that was added.
  std::pair<size_t, size_t> take(const std::string& bytes, bool special) {
    size_t begin = at_;
    size_t length = 0;
    if (find(bytes, begin, length)) {
      at_ = begin + length;
      return {begin, at_};
    }
    if (special) return {0, 0};
    for (int64_t left = count_utf8_characters(bytes); left > 0 && at_ < text_.size(); --left) {
      do {
        ++at_;
      } while (is_inside_character(text_, at_));
    }
    return {begin, at_};
  }

 private:
  bool find(std::string_view bytes, size_t& begin, size_t& length) const {
    // Added tokens may swallow the white space around them, formats may add a space in front.
    for (begin = at_;; ++begin) {
      if (starts_with_at(text_, begin, bytes)) {
        length = bytes.size();
        return true;
      }
      if (bytes.starts_with(' ') && starts_with_at(text_, begin, bytes.substr(1))) {
        length = bytes.size() - 1;
        return true;
      }
      if (begin >= text_.size() || text_[begin] != ' ') return false;
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<TextSpan> token_spans(const Tokenizer& tokenizer,
                                  std::string_view text,
                                  std::span<const int32_t> ids) {
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
