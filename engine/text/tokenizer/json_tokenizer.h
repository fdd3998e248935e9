// The tokenizer of a tokenizer.json (github.com/huggingface/tokenizers): the same ids, types of
// tokens and offsets as that library gives. Padding and truncation are not here: of what the file
// says about them only the side that is cut is read, as transformers reads it.
//
// Known differences from tokenizers 0.23: a special token whose normalised form differs from its
// spelling is skipped by decode when asked (there it is not); an added token that a normaliser
// turns into nothing is never found (there it is found between all characters); characters that a
// normaliser makes of the first one don't all count as the beginning of the text for Metaspace's
// prepend_scheme "first"; \X in a pattern is refused (PCRE2's graphemes are others).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/text/token_pairs.h"
#include "engine/text/token_spans.h"
#include "engine/text/tokenizer/added_tokens.h"
#include "engine/text/tokenizer/alignment.h"
#include "engine/text/tokenizer/decoder.h"
#include "engine/text/tokenizer/normalizer.h"
#include "engine/text/tokenizer/piece_model.h"
#include "engine/text/tokenizer/post_processor.h"
#include "engine/text/tokenizer/pre_tokenizer.h"
#include "engine/text/tokenizer/tokenizer_config.h"

namespace tgi {

struct TokenizerJson;

class JsonTokenizer final : public SpanTokenizer, public PairTokenizer {
 public:
  // json: the contents of tokenizer.json. Its post-processor alone decides about BOS and EOS: as in
  // transformers 5, add_bos_token and add_eos_token of config mean nothing beside it. Throws
  // kInvalidArgument or kUnsupported with the path of what is wrong.
  JsonTokenizer(std::string_view json, const TokenizerConfig& config);

  // parsed: what is already read, or made of files without a post-processor: add_bos_token and
  // add_eos_token of config hold where it says nothing. Its version isn't looked at.
  JsonTokenizer(TokenizerJson parsed, const TokenizerConfig& config);

  std::vector<int32_t> encode(std::string_view text, bool add_special) const override;
  TypedIds encode_typed(std::string_view text,
                        std::optional<std::string_view> pair,
                        bool add_special) const override;
  std::optional<CutSide> cut_side() const override { return cut_side_; }
  std::vector<TextSpan> spans(std::string_view text, bool add_special) const override;
  void append_bytes(int32_t id, bool at_start, std::string& out) const override;
  std::unique_ptr<RunningText> running_text(bool at_start) const override;
  bool has_token_bytes() const override { return decoder_.is_token_wise(); }
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override;
  bool is_special(int32_t id) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  std::string token_of(int32_t id) const override;
  int32_t vocab_size() const override;

 private:
  class DecodedText;
  class OpenText;

  void add_added_tokens(const TokenizerJson& parsed);
  void add_extra_tokens(const TokenizerConfig& config);
  void add(AddedToken token);
  void find_special_copies();
  void add_configured_ends(const TokenizerConfig& config);
  // Where tokens come from, when somebody asks: their places in the text, in bytes.
  using Places = std::vector<TextRange>;

  // Without what the post-processor adds, as encode_plain.
  std::vector<int32_t> encode_repaired(std::string_view text) const;
  // Without what the post-processor adds. places: of the ids, or null.
  std::vector<int32_t> encode_plain(std::string_view text, Places* places) const;
  // alignment: of `text`, or null.
  void encode_segment(std::string_view text,
                      bool at_start,
                      Alignment* alignment,
                      std::vector<int32_t>& ids,
                      Places* places) const;
  void encode_text(std::string_view text,
                   bool at_start,
                   Alignment* alignment,
                   std::vector<int32_t>& ids,
                   Places* places) const;
  std::optional<std::string_view> decoded_token(int32_t id) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<PieceModel> model_;
  AddedTokens added_;
  std::unordered_set<int32_t> special_copies_;  // other ids of special tokens
  PostProcessor post_processor_;
  std::optional<CutSide> cut_side_;
  Decoder decoder_;
};

}  // namespace tgi
