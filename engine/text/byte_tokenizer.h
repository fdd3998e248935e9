// One token per byte, for a model that comes without a tokenizer: random weights from a config.json
// alone. Ids at and above 256 stand for their value's low byte, so that whatever such a model says
// can be shown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "engine/text/tokenizer.h"

namespace tgi {

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(int32_t vocab_size) : vocab_size_(vocab_size) {}

  std::vector<int32_t> encode(std::string_view text, bool /*add_special*/) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c) % vocab_size_);
    return ids;
  }
  void append_bytes(int32_t id, bool /*at_start*/, std::string& out) const override {
    if (id >= 0 && id < vocab_size_) out += static_cast<char>(id & 0xFF);
  }
  std::string decode(std::span<const int32_t> ids, bool /*skip_special*/) const override {
    std::string raw;
    std::string text;
    for (const int32_t id : ids) append_bytes(id, false, raw);
    drain_utf8(raw, true, text);
    return text;
  }
  bool is_special(int32_t /*id*/) const override { return false; }
  std::optional<int32_t> id_of(std::string_view token) const override {
    return token.size() == 1 ? std::optional<int32_t>(static_cast<unsigned char>(token[0]))
                             : std::nullopt;
  }
  std::string token_of(int32_t id) const override { return fmt::format("<0x{:02X}>", id & 0xFF); }
  int32_t vocab_size() const override { return vocab_size_; }

 private:
  const int32_t vocab_size_;
};

}  // namespace tgi
