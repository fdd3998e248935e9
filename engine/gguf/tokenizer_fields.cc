#include "engine/gguf/tokenizer_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/pre_tokenizer_names.h"
#include "engine/gguf/sentencepiece_pieces.h"
#include "engine/gguf/tokenizer_files.h"
#include "engine/gguf/tokenizer_probes.h"
#include "engine/text/tokenizer_parts.h"

namespace tgi::gguf {
namespace {

// A token of the list that is written.
struct Listed {
  std::string text;
  TokenType type = TokenType::kUnused;
  float score = 0.0F;
};

class TokenList {
 public:
  explicit TokenList(int64_t size) : tokens_(static_cast<size_t>(size)) {
    for (size_t id = 0; id < tokens_.size(); ++id) tokens_[id].text = fmt::format("[PAD{}]", id);
  }

  void set(int64_t id, Listed token) {
    if (id < 0 || id >= static_cast<int64_t>(tokens_.size())) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("the tokenizer has a token {} (\"{}\"), but the model has rows for {}", id,
                      token.text, tokens_.size()));
    }
    tokens_[static_cast<size_t>(id)] = std::move(token);
  }

  void put(GgufFields& fields, bool with_scores) const {
    std::vector<std::string> texts;
    std::vector<int32_t> types;
    std::vector<float> scores;
    for (const Listed& token : tokens_) {
      texts.push_back(token.text);
      types.push_back(static_cast<int32_t>(token.type));
      scores.push_back(token.score);
    }
    fields.put_texts("tokenizer.ggml.tokens", texts);
    fields.put_integers("tokenizer.ggml.token_type", types);
    if (with_scores) fields.put_numbers("tokenizer.ggml.scores", scores);
  }

  Listed& at(int64_t id) { return tokens_[static_cast<size_t>(id)]; }

 private:
  std::vector<Listed> tokens_;
};

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.back() == '>';
}

std::string type_of(const Json& tree, const char* part) {
  const auto it = tree.find(part);
  if (it == tree.end() || !it->is_object()) return "";
  return it->value("type", "");
}

[[noreturn]] void unsupported(const std::string& why) {
  throw Error(Code::kUnsupported, "the tokenizer can't be written to a GGUF file: " + why);
}

void add_added_tokens(const TokenizerParts& parts, TokenList& list) {
  for (const NamedToken& token : parts.added) {
    list.set(token.id, {.text = token.text,
                        .type = token.is_special ? TokenType::kControl : TokenType::kUserDefined});
  }
}

// Byte-level BPE.
void put_gpt2(const TokenizerParts& parts, TokenList& list, GgufFields& fields) {
  const std::string pre = pre_tokenizer_name(parts.tree);
  for (const NamedToken& token : parts.vocabulary) {
    list.set(token.id, {.text = token.text, .type = TokenType::kNormal});
  }
  std::vector<std::string> merges;
  for (const auto& [left, right] : parts.merges) merges.push_back(left + " " + right);
  fields.put_text("tokenizer.ggml.model", "gpt2");
  fields.put_text("tokenizer.ggml.pre", pre);
  fields.put_texts("tokenizer.ggml.merges", merges);
}

// BPE on text with U+2581 for spaces, as tokenizer.json has what was a SentencePiece model: there
// the pieces' scores are their order among the merges.
void put_llama_of_merges(const TokenizerParts& parts, TokenList& list, GgufFields& fields) {
  const Json unknown = parts.tree.at("model").value("unk_token", Json());
  const auto lowest = -static_cast<float>(parts.merges.size()) - 1.0F;
  std::unordered_map<std::string_view, int32_t> ids;
  for (const NamedToken& token : parts.vocabulary) {
    const TokenType type = unknown == token.text       ? TokenType::kUnknown
                           : is_byte_token(token.text) ? TokenType::kByte
                                                       : TokenType::kNormal;
    list.set(token.id, {.text = token.text, .type = type, .score = lowest});
    ids.emplace(token.text, token.id);
  }
  for (size_t rank = parts.merges.size(); rank-- > 0;) {
    const auto& [left, right] = parts.merges[rank];
    const std::string joined = left + right;
    if (const auto it = ids.find(joined); it != ids.end()) {
      list.at(it->second).score = -static_cast<float>(rank);
    }
  }
  fields.put_text("tokenizer.ggml.model", "llama");
  fields.put_text("tokenizer.ggml.pre", "default");
}

// Whether the model puts a space before a text, which it says in one of three ways.
bool puts_space_before(const Json& tree) {
  const std::string text = tree.value("normalizer", Json()).dump();
  if (text.find("\"Prepend\"") != std::string::npos) return true;
  const std::string cuts = tree.value("pre_tokenizer", Json()).dump();
  if (cuts.find("\"Metaspace\"") == std::string::npos) return false;
  if (cuts.find("\"prepend_scheme\":\"never\"") != std::string::npos) return false;
  return cuts.find("\"add_prefix_space\":false") == std::string::npos;
}

void put_pieces(std::string_view proto, TokenList& list, GgufFields& fields) {
  const SentencePieceModel model = read_sentencepiece(proto);
  if (model.type != SentencePieceModel::kBpe) {
    unsupported("tokenizer.model is not of merged pairs (BPE), but Unigram");
  }
  int64_t id = 0;
  for (const SentencePiece& piece : model.pieces) {
    list.set(id++, {.text = piece.text, .type = piece.type, .score = piece.score});
  }
  fields.put_text("tokenizer.ggml.model", "llama");
  fields.put_text("tokenizer.ggml.pre", "default");
  fields.put_boolean("tokenizer.ggml.add_space_prefix", model.adds_space_before);
  if (model.removes_extra_spaces) {
    fields.put_boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  }
}

void put_json(const TokenizerParts& parts, TokenList& list, GgufFields& fields) {
  const Json& tree = parts.tree;
  const std::string kind = type_of(tree, "model");
  if (kind != "BPE") {
    unsupported(fmt::format("tokenizer.json has a model of type \"{}\"; BPE can be", kind));
  }
  const bool is_byte_level =
      tree.value("pre_tokenizer", Json()).dump().find("ByteLevel") != std::string::npos;
  if (is_byte_level) {
    put_gpt2(parts, list, fields);
  } else {
    put_llama_of_merges(parts, list, fields);
    fields.put_boolean("tokenizer.ggml.add_space_prefix", puts_space_before(tree));
  }
  add_added_tokens(parts, list);
}

// The tokens that are put around a text.
void put_ends(const TokenizerSource& source, const TokenizerParts& parts, GgufFields& fields) {
  const std::vector<int32_t> plain = source.tokenizer.encode("a", false);
  const std::vector<int32_t> all = source.tokenizer.encode("a", true);
  const auto found = std::ranges::search(all, plain);
  const auto before = static_cast<size_t>(found.begin() - all.begin());
  const size_t after = all.size() - before - plain.size();
  if (found.empty() || before > 1 || after > 1) {
    unsupported(fmt::format("it puts {} tokens around a text; one on each side can be",
                            all.size() - plain.size()));
  }
  const auto id_of = [&](const std::string& text) -> std::optional<int64_t> {
    if (text.empty()) return std::nullopt;
    return source.tokenizer.id_of(text);
  };
  std::optional<int64_t> bos = id_of(parts.bos);
  std::optional<int64_t> eos = id_of(parts.eos);
  if (before == 1) bos = all.front();
  if (after == 1) {
    eos = all.back();
  } else if (!source.end_ids.empty() &&
             (!eos || std::ranges::find(source.end_ids, *eos) == source.end_ids.end())) {
    eos = source.end_ids.front();
  }
  if (bos) fields.put_integer("tokenizer.ggml.bos_token_id", *bos);
  if (eos) fields.put_integer("tokenizer.ggml.eos_token_id", *eos);
  if (const auto unknown = id_of(parts.unknown)) {
    fields.put_integer("tokenizer.ggml.unknown_token_id", *unknown);
  }
  fields.put_boolean("tokenizer.ggml.add_bos_token", before == 1);
  fields.put_boolean("tokenizer.ggml.add_eos_token", after == 1);
  static constexpr const char* kOthers[] = {"tokenizer.ggml.eot_token_id",
                                            "tokenizer.ggml.eom_token_id"};
  size_t others = 0;
  for (const int32_t id : source.end_ids) {
    if (eos && id == *eos) continue;
    if (others == std::size(kOthers)) break;  // what is missing is found by reading back
    fields.put_integer(kOthers[others++], id);
  }
}

void put_chat_templates(const FileSource& files, GgufFields& fields) {
  Json found;
  if (const auto text = files.find_text("chat_template.jinja")) {
    found = std::string(*text);
  } else if (const auto config = files.find_text("tokenizer_config.json")) {
    found = parse_json(*config).value("chat_template", Json());
  }
  if (found.is_string()) {
    fields.put_text("tokenizer.chat_template", found.get<std::string>());
    return;
  }
  if (!found.is_array()) return;
  std::vector<std::string> names;
  for (const Json& one : found) {
    const auto name = one.at("name").get<std::string>();
    const auto text = one.at("template").get<std::string>();
    if (name == "default") {
      fields.put_text("tokenizer.chat_template", text);
    } else {
      fields.put_text("tokenizer.chat_template." + name, text);
      names.push_back(name);
    }
  }
  if (!names.empty()) fields.put_texts("tokenizer.chat_templates", names);
}

// Whoever reads the file gets the same ids.
void check_read_back(const TokenizerSource& source, const GgufFields& fields) {
  const GgufMetadata metadata = fields.metadata();
  const std::map<std::string, std::string> texts = tokenizer_files(metadata);
  std::vector<EmbeddedFile> embedded;
  for (const auto& [name, text] : texts) {
    embedded.push_back({name, std::as_bytes(std::span(text))});
  }
  const auto files = open_embedded("the tokenizer of the file", std::move(embedded));
  const std::unique_ptr<Tokenizer> again = load_tokenizer(*files);
  for (const std::string& probe : tokenizer_probes()) {
    const std::vector<int32_t> expected = source.tokenizer.encode(probe, true);
    const std::vector<int32_t> got = again->encode(probe, true);
    if (got == expected) continue;
    constexpr size_t kMaxShown = 80;
    std::string shown = Json(probe).dump(-1, ' ', true);
    if (shown.size() > kMaxShown) shown = shown.substr(0, kMaxShown) + "...";
    unsupported(fmt::format(
        "of the text {} it makes {} tokens, and what the file would say of it {} or others; no "
        "kind of tokenizer of GGUF files fits",
        shown, expected.size(), got.size()));
  }
  const Json generation = parse_json(texts.at("generation_config.json"));
  const Json ends = generation.value("eos_token_id", Json::array());
  for (const int32_t id : source.end_ids) {
    if (std::ranges::find(ends, Json(id)) != ends.end()) continue;
    unsupported(fmt::format("its file has no place for all tokens that end an answer: {} (\"{}\")",
                            id, source.tokenizer.token_of(id)));
  }
}

}  // namespace

void put_tokenizer(const TokenizerSource& source, GgufFields& fields) {
  const TokenizerParts parts = read_tokenizer_parts(source.files);
  TokenList list(source.vocab_size);
  bool has_scores = true;
  if (!parts.tree.is_null()) {
    put_json(parts, list, fields);
    has_scores = !fields.has("tokenizer.ggml.merges");
  } else if (const auto proto = source.files.find_text("tokenizer.model")) {
    put_pieces(*proto, list, fields);
    add_added_tokens(parts, list);
  } else {
    unsupported("tokenizer.json and tokenizer.model can be, and neither is there");
  }
  list.put(fields, has_scores);
  put_ends(source, parts, fields);
  put_chat_templates(source.files, fields);
  check_read_back(source, fields);
}

}  // namespace tgi::gguf
