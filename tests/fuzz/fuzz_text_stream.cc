// Any bytes, cut into any tokens, with any stop strings: the stream releases whole UTF-8 only, and
// the same text as when it comes in one piece.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "engine/text/byte_tokenizer.h"
#include "engine/text/text_stream.h"

namespace {

// Token i is the i-th piece of the input.
class PieceTokenizer final : public tgi::Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  std::vector<int32_t> encode(std::string_view, bool) const override { return {}; }
  void append_bytes(int32_t id, bool, std::string& out) const override {
    out += pieces_[static_cast<size_t>(id)];
  }
  std::string decode(std::span<const int32_t>, bool) const override { return ""; }
  bool is_special(int32_t) const override { return false; }
  std::optional<int32_t> id_of(std::string_view) const override { return std::nullopt; }
  std::string token_of(int32_t) const override { return ""; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }

 private:
  std::vector<std::string> pieces_;
};

std::string run(const std::vector<std::string>& pieces, const std::vector<std::string>& stop) {
  const PieceTokenizer tokenizer(pieces);
  tgi::TextStream stream(tokenizer, stop, false);
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string released;
    const bool stopped = stream.push(static_cast<int32_t>(i), released);
    if (!tgi::is_valid_utf8(released)) std::abort();
    text += released;
    if (stopped) return text;
  }
  stream.finish(text);
  if (!tgi::is_valid_utf8(text)) std::abort();
  return text;
}

}  // namespace

// The first byte: the number of bytes of the stop string that follows; then the text, whose own
// bytes say where to cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t stop_size = std::min<size_t>(data[0] % 8, size - 1);
  const char* bytes = reinterpret_cast<const char*>(data + 1);
  std::vector<std::string> stop = {std::string(bytes, stop_size)};
  if (stop[0].empty() || !tgi::is_valid_utf8(stop[0])) stop.clear();
  const std::string text(bytes + stop_size, size - 1 - stop_size);
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t length = static_cast<unsigned char>(text[at]) % 5 + 1;
    pieces.push_back(text.substr(at, length));
    at += length;
  }
  if (run(pieces, stop) != run({text}, stop)) std::abort();
  return 0;
}
