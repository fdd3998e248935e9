#include "engine/gguf/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/bpe_document.h"
#include "engine/gguf/gguf_vocabulary.h"
#include "engine/gguf/pre_tokenizers.h"
#include "engine/gguf/sentencepiece_proto.h"
#include "engine/gguf/special_ids.h"
#include "engine/gguf/tokenizer_document.h"
#include "engine/gguf/unigram_document.h"
#include "engine/gguf/word_piece_document.h"

namespace tgi::gguf {
namespace {

constexpr std::string_view kPrefix = "tokenizer.";

// What is read in this room, and what need not be.
constexpr std::string_view kKnownKeys[] = {
    "ggml.model",
    "ggml.pre",
    "ggml.tokens",
    "ggml.token_type",
    "ggml.scores",
    "ggml.merges",
    "ggml.bos_token_id",
    "ggml.eos_token_id",
    "ggml.eos_token_ids",  // all of them, in ollama's files
    "ggml.eot_token_id",
    "ggml.eom_token_id",
    "ggml.unknown_token_id",
    "ggml.seperator_token_id",
    "ggml.cls_token_id",
    "ggml.mask_token_id",
    "ggml.add_bos_token",
    "ggml.add_eos_token",
    "ggml.add_sep_token",
    "ggml.add_space_prefix",
    "ggml.remove_extra_whitespaces",
    "ggml.precompiled_charsmap",
    "ggml.normalizer.lowercase",
    "ggml.normalizer.strip_accents",
    "ggml.padding_token_id",
    "ggml.fim_pad_token_id",
    "ggml.fim_rep_token_id",
    "ggml.fim_sep_token_id",
    "ggml.token_type_count",  // of segments, which the embeddings' tensor counts
    "chat_template",
    "chat_templates",    // the names of those below
    "huggingface.json",  // says the same once more
    // For filling in the middle, whose prompts are written out by whoever asks.
    "ggml.fim_pre_token_id",
    "ggml.fim_suf_token_id",
    "ggml.fim_mid_token_id",
    "ggml.prefix_token_id",
    "ggml.suffix_token_id",
    "ggml.middle_token_id",
    // Whether there is one: nothing is put around a text by them.
    "ggml.add_cls_token",
    "ggml.add_mask_token",
    "ggml.add_padding_token",
    "ggml.add_unknown_token",
    "ggml.suppress_tokens",
    // Of images, which no text is answered with.
    "ggml.image_token_id",
    "ggml.start_header_id",
    "ggml.end_header_id",
};

void check_keys(const GgufMetadata& metadata) {
  for (std::string_view key : metadata.keys()) {
    if (!key.starts_with(kPrefix)) continue;
    const std::string_view name = key.substr(kPrefix.size());
    const bool is_known = std::ranges::find(kKnownKeys, name) != std::end(kKnownKeys) ||
                          name.starts_with("chat_template.");
    if (is_known) continue;
    throw Error(Code::kUnsupported, fmt::format("{}: this build does not know what it means", key));
  }
}

// The text of a template may be under its own name too.
Json chat_templates(const GgufMetadata& metadata) {
  constexpr std::string_view kDefault = "tokenizer.chat_template";
  Json named = Json::array();
  for (const std::string_view key : metadata.keys()) {
    if (!key.starts_with("tokenizer.chat_template.")) continue;
    named.push_back({{"name", key.substr(kDefault.size() + 1)}, {"template", metadata.text(key)}});
  }
  const auto own = metadata.find_text(kDefault);
  if (named.empty()) return own ? Json(*own) : Json(nullptr);
  if (own) named.push_back({{"name", "default"}, {"template", *own}});
  return named;
}

// defaults: where the file does not say.
AddedEnds read_ends(const GgufMetadata& metadata, const AddedEnds& defaults) {
  const auto flag = [&](const char* key, bool fallback) {
    return metadata.find_boolean(key).value_or(fallback);
  };
  return {.bos = flag("tokenizer.ggml.add_bos_token", defaults.bos),
          .eos = flag("tokenizer.ggml.add_eos_token", defaults.eos),
          .separator = flag("tokenizer.ggml.add_sep_token", defaults.separator)};
}

// What a kind of tokenizer makes of the metadata.
struct Made {
  std::string name;  // of the file
  std::string text;
  AddedEnds ends{};
  bool lists_added_tokens = false;  // whether tokenizer_config.json has to
};

struct Context {
  const GgufMetadata& metadata;
  const GgufVocabulary& vocabulary;
  const SpecialIds& ids;
};

Made make_bpe(const Context& context, std::string_view pre_name, bool always_bos) {
  const PreTokenizer& pre = find_pre_tokenizer(pre_name);
  AddedEnds ends =
      read_ends(context.metadata, {.bos = pre.adds_bos, .separator = pre.adds_separator});
  if (always_bos) ends.bos = true;
  return {.name = "tokenizer.json",
          .text = bpe_document(context.vocabulary, context.metadata, pre, context.ids, ends),
          .ends = ends};
}

// Files without a name for how texts are cut: of the first weeks of Llama 3, and ollama's, whose
// converter knows few. What a token is called at its place tells whose vocabulary it is.
struct KnownVocabulary {
  int64_t id;
  std::string_view token;
  std::string_view pre;
};
constexpr KnownVocabulary kKnownVocabularies[] = {{128009, "<|eot_id|>", "llama-bpe"},
                                                  {151644, "<|im_start|>", "qwen2"},
                                                  {200012, "<|call|>", "gpt-4o"}};

std::string_view pre_of_vocabulary(const GgufVocabulary& vocabulary) {
  for (const KnownVocabulary& one : kKnownVocabularies) {
    if (one.id < vocabulary.size() && vocabulary.token(one.id) == one.token) return one.pre;
  }
  return "default";
}

Made make_gpt2(const Context& context) {
  const std::string_view pre = context.metadata.find_text("tokenizer.ggml.pre").value_or("");
  const bool is_unknown = pre.empty() || pre == "default";
  return make_bpe(context, is_unknown ? pre_of_vocabulary(context.vocabulary) : pre, false);
}

// Files of this kind exist that say add_bos_token is false, which the model can't do without.
Made make_gemma4(const Context& context) {
  return make_bpe(context, "gemma4", true);
}

Made make_whitespace(const Context& context) {
  return make_bpe(context, "whitespace", false);
}

Made make_llama(const Context& context) {
  return {.name = "tokenizer.model",
          .text = sentencepiece_proto(context.vocabulary, context.metadata),
          .ends = read_ends(context.metadata, {.bos = true}),
          .lists_added_tokens = true};
}

Made make_t5(const Context& context) {
  const AddedEnds ends = read_ends(context.metadata, {.eos = true});
  return {.name = "tokenizer.json",
          .text = unigram_document(context.vocabulary, context.metadata, context.ids, ends),
          .ends = ends};
}

// The tokens around a text are always the same.
Made make_bert(const Context& context) {
  return {.name = "tokenizer.json",
          .text = word_piece_document(context.vocabulary, context.metadata, context.ids)};
}

struct Kind {
  std::string_view name;
  Made (*make)(const Context& context);
};
constexpr Kind kKinds[] = {{"bert", make_bert}, {"gemma4", make_gemma4},
                           {"gpt2", make_gpt2}, {"llama", make_llama},
                           {"t5", make_t5},     {"whitespace", make_whitespace}};

const Kind& find_kind(std::string_view name) {
  std::string known;
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
  }
  const bool has_none = name == "none" || name == "no_vocab";
  throw Error(
      Code::kUnsupported,
      has_none
          ? std::string("tokenizer.ggml.model: this file has no tokenizer; convert the model again "
                        "from a folder that has one")
          : fmt::format("tokenizer.ggml.model: '{}' is not supported; known are {}", name, known));
}

Json tokenizer_config(const Context& context, const Made& made) {
  const SpecialIds& ids = context.ids;
  Json config = {{"add_bos_token", made.ends.bos && ids.bos.has_value()},
                 {"add_eos_token", made.ends.eos && ids.eos.has_value()}};
  const std::pair<const char*, std::optional<int64_t>> kNamed[] = {
      {"bos_token", ids.bos},       {"eos_token", ids.eos},     {"unk_token", ids.unknown},
      {"sep_token", ids.separator}, {"pad_token", ids.padding}, {"cls_token", ids.cls},
      {"mask_token", ids.mask}};
  for (const auto& [name, id] : kNamed) {
    if (id) config[name] = context.vocabulary.text(*id);
  }
  if (made.lists_added_tokens) {
    // {"32000": {...}}: what SentencePiece's own tables don't say.
    Json list = Json::object();
    for (Json token : added_tokens(context.vocabulary, context.metadata)) {
      const std::string id = token.at("id").dump();
      token.erase("id");
      list[id] = std::move(token);
    }
    config["added_tokens_decoder"] = std::move(list);
  }
  if (Json templates = chat_templates(context.metadata); !templates.is_null()) {
    config["chat_template"] = std::move(templates);
  }
  return config;
}

Json generation_config(const Context& context) {
  Json config = Json::object();
  if (context.ids.bos) config["bos_token_id"] = *context.ids.bos;
  const std::vector<int64_t> ends = find_end_ids(context.vocabulary, context.metadata, context.ids);
  if (!ends.empty()) config["eos_token_id"] = ends;
  constexpr const char* kSuppressed = "tokenizer.ggml.suppress_tokens";
  if (context.metadata.has(kSuppressed)) {
    config["suppress_tokens"] = context.metadata.integers(kSuppressed);
  }
  return config;
}

}  // namespace

std::map<std::string, std::string> tokenizer_files(const GgufMetadata& metadata) {
  check_keys(metadata);
  const Kind& kind = find_kind(metadata.find_text("tokenizer.ggml.model").value_or("none"));
  const GgufVocabulary vocabulary(metadata);
  const SpecialIds ids = read_special_ids(vocabulary, metadata, kind.name);
  const Context context{metadata, vocabulary, ids};
  Made made = kind.make(context);
  std::map<std::string, std::string> files;
  files["tokenizer_config.json"] = tokenizer_config(context, made).dump();
  files["generation_config.json"] = generation_config(context).dump();
  files[made.name] = std::move(made.text);
  return files;
}

}  // namespace tgi::gguf
