#include "engine/text/tokenizer_parts.h"

#include <memory>
#include <optional>
#include <utility>

#include "engine/text/tokenizer/byte_ranks.h"
#include "engine/text/tokenizer/pre_tokenizer.h"
#include "engine/text/tokenizer/rank_files.h"
#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {
namespace {

std::optional<TokenizerJson> json_of_folder(const FileSource& files,
                                            const TokenizerConfig& config) {
  if (const auto text = files.find_text("tokenizer.json")) return read_tokenizer_json(*text);
  if (const auto name = find_rank_file(files)) return read_rank_file(files, *name, config);
  return std::nullopt;
}

}  // namespace

TokenizerParts read_tokenizer_parts(const FileSource& files) {
  TokenizerParts out;
  const TokenizerConfig config = read_tokenizer_config(files);
  if (std::optional<TokenizerJson> found = json_of_folder(files, config)) {
    TokenizerJson& json = *found;
    for (size_t i = 0; i < json.vocabulary.size(); ++i) {
      out.vocabulary.push_back(
          {.text = std::string(json.vocabulary.token_at(i)), .id = json.vocabulary.id_at(i)});
    }
    for (TextPair& merge : json.merges) {
      out.merges.emplace_back(std::move(merge.left), std::move(merge.right));
    }
    if (json.is_ranked) out.merges = merges_of_ranks(json.vocabulary);
    out.tree = std::move(json.tree);
    for (const Json& token : out.tree.value("added_tokens", Json::array())) {
      out.added.push_back({.text = token.at("content").get<std::string>(),
                           .id = token.at("id").get<int32_t>(),
                           .is_special = token.value("special", false)});
    }
  }
  for (const AddedToken& token : config.added_tokens) {
    out.added.push_back({.text = token.content, .id = token.id, .is_special = token.special});
  }
  out.bos = config.bos_token;
  out.eos = config.eos_token;
  out.unknown = config.unk_token;
  return out;
}

class TextCutter::Impl {
 public:
  explicit Impl(const Json& json) : pre_tokenizer_(JsonReader(json, "pre_tokenizer")) {}
  Pieces apply(std::string_view text) const {
    return pre_tokenizer_.apply(std::string(text), true, false, nullptr);
  }

 private:
  PreTokenizer pre_tokenizer_;
};

TextCutter::TextCutter(const Json& pre_tokenizer) : impl_(std::make_unique<Impl>(pre_tokenizer)) {}
TextCutter::~TextCutter() = default;

std::vector<std::string> TextCutter::cut(std::string_view text) const {
  const Pieces pieces = impl_->apply(text);
  std::vector<std::string> out;
  for (const TextRange& range : pieces.ranges) {
    out.push_back(pieces.text.substr(range.begin, range.end - range.begin));
  }
  return out;
}

}  // namespace tgi
