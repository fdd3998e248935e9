// Where the tokens of a piece stand in it (declared in bpe_model.h). Tokens follow each other
// without gaps, so the size of each is enough.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "engine/text/tokenizer/bpe_model.h"
#include "engine/text/tokenizer/byte_level.h"
#include "engine/text/tokenizer/decoder.h"

namespace tgi {

// The bytes at the start of `rest` that a token stands for.
size_t BpeModel::size_of_token(std::string_view rest,
                               int32_t id,
                               bool is_first,
                               bool is_last) const {
  if (rest.empty()) return 0;
  std::string_view token = vocabulary_.token_of(id);
  // As a character is looked up before anything is merged: with what marks its place in the piece.
  const auto is_known = [&](size_t at) {
    std::string symbol(rest.substr(at, utf8_size(rest[at])));
    if (byte_fallback_ && byte_token_[static_cast<unsigned char>(symbol[0])] >= 0) return true;
    const bool ends_piece = at + symbol.size() == rest.size();
    if (!is_first || at > 0) symbol.insert(0, prefix_);
    if (ends_piece) symbol += suffix_;
    return vocabulary_.find(symbol) >= 0;
  };
  if (id == unk_id_ && !is_known(0)) {
    size_t size = utf8_size(rest[0]);
    while (fuse_unk_ && size < rest.size() && !is_known(size)) size += utf8_size(rest[size]);
    return size;
  }
  // They stand in the vocabulary, not in the text.
  if (!is_first && !prefix_.empty() && token.starts_with(prefix_)) {
    token.remove_prefix(prefix_.size());
  }
  if (is_last && !suffix_.empty() && token.ends_with(suffix_)) token.remove_suffix(suffix_.size());
  if (rest.starts_with(token)) return token.size();
  if (byte_fallback_ && byte_of_token(token)) return 1;
  return std::min(token.size(), rest.size());
}

void BpeModel::append_places(std::string_view piece,
                             bool raw_bytes,
                             std::span<const int32_t> ids,
                             std::vector<TextRange>& out) const {
  const std::string mapped = raw_bytes ? to_byte_level(piece) : std::string();
  const std::string_view text = raw_bytes ? std::string_view(mapped) : piece;
  size_t at = 0;     // in text
  size_t place = 0;  // in piece
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string_view rest = text.substr(at);
    const size_t size = size_of_token(rest, ids[i], i == 0, i + 1 == ids.size());
    // A byte of the piece is a character of the text that it was mapped to.
    const auto width = static_cast<size_t>(raw_bytes ? count_utf8_characters(rest.substr(0, size))
                                                     : static_cast<int64_t>(size));
    out.push_back({place, place + width});
    at += size;
    place += width;
  }
}

}  // namespace tgi
