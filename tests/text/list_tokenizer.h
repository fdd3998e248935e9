// A tokenizer of which a test says what each token's bytes are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tgi {

// A token for each string of a list; "<s>" is special.
class ListTokenizer : public Tokenizer {
 public:
  explicit ListTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
  std::vector<int32_t> encode(std::string_view /*text*/, bool /*add_special*/) const override {
    return {};
  }
  void append_bytes(int32_t id, bool /*at_start*/, std::string& out) const override {
    out += pieces_[static_cast<size_t>(id)];
  }
  std::string decode(std::span<const int32_t> /*ids*/, bool /*skip_special*/) const override {
    return "";
  }
  bool is_special(int32_t id) const override { return pieces_[static_cast<size_t>(id)] == "<s>"; }
  std::optional<int32_t> id_of(std::string_view /*token*/) const override { return std::nullopt; }
  std::string token_of(int32_t /*id*/) const override { return ""; }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }

 private:
  std::vector<std::string> pieces_;
};

}  // namespace tgi
