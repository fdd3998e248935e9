// The tokenizer of a tokenizer.model, on the sentencepiece library
// (github.com/google/sentencepiece).
//
// Around the library is what transformers' Python ("slow") LlamaTokenizer does: special tokens that
// are written in the text are found first, and what is between them is encoded bit by bit. With
// `legacy` (the default there too) each of these gets the space that the model puts before a text;
// without, only the one that the text begins with; none does where `add_prefix_space` is false.
// Special here are the model's control pieces and its unknown piece, and the tokens of
// tokenizer_config.json and added_tokens.json. BOS is added unless the configuration says
// otherwise, EOS is not.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"
#include "engine/text/tokenizer/added_tokens.h"
#include "engine/text/tokenizer/post_processor.h"
#include "engine/text/tokenizer/tokenizer_config.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace tgi {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  // model: the contents of tokenizer.model. Throws kInvalidArgument when it is malformed or does
  // not fit the configuration.
  SentencePieceTokenizer(std::string_view model, const TokenizerConfig& config);
  ~SentencePieceTokenizer() override;

  std::vector<int32_t> encode(std::string_view text, bool add_special) const override;
  void append_bytes(int32_t id, bool at_start, std::string& out) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override;
  bool is_special(int32_t id) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::string token_of(int32_t id) const override;
  int32_t vocab_size() const override;

 private:
  using Processor = sentencepiece::SentencePieceProcessor;

  void add_tokens(const TokenizerConfig& config);
  void add_tokens_of_chatglm();
  void learn_decoding();
  PostProcessor make_post_processor(const TokenizerConfig& config) const;

  const std::unique_ptr<Processor> processor_;
  std::unique_ptr<Processor> continuing_;  // puts no space before a text; null when legacy
  int32_t num_pieces_ = 0;
  AddedTokens added_;
  PostProcessor post_processor_;
  bool drops_space_ = false;   // that the first token of a text begins with
  bool drops_spaces_ = false;  // of all tokens, while the text is empty
};

}  // namespace tgi
