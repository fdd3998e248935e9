// The tokens of a model as byte strings in a trie, as masks are made from it. Immutable: made once
// per model, shared by all matchers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {
class Tokenizer;
}

namespace tgi::guide {

class Vocabulary {
 public:
  // What every id stands for in the middle of a text; empty: never a part of a text (control
  // tokens, ids without a meaning). `special`: ids by the names that grammars may call them.
  struct Token {
    std::string bytes;
    std::string special_name;  // empty: none
  };
  Vocabulary(std::vector<Token> tokens, std::vector<int32_t> end_token_ids);

  // Throws kUnsupported when tokens of the tokenizer do not stand for the same bytes everywhere in
  // a text.
  static std::shared_ptr<const Vocabulary> from(const Tokenizer& tokenizer,
                                                int32_t vocab_size,
                                                std::vector<int32_t> end_token_ids);

  int32_t size() const;
  std::string_view bytes(int32_t id) const;
  std::optional<int32_t> special_id(std::string_view name) const;
  std::span<const int32_t> end_token_ids() const;
};

}  // namespace tgi::guide
