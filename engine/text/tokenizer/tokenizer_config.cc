#include "engine/text/tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/text/tokenizer/vocabulary.h"

namespace tgi {
namespace {

constexpr const char* kSpecialTokensFile = "special_tokens_map.json";

int32_t check_id(int64_t id, const std::string& path) {
  if (id >= 0 && id <= Vocabulary::kHighestId) return static_cast<int32_t>(id);
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected a token id from 0 to {}, got {}",
                                                  path, Vocabulary::kHighestId, id));
}

// A token is written as its text or as an object with its text.
std::string read_token(const JsonReader& config, std::string_view key) {
  if (!config.has(key)) return "";
  if (config.json().at(std::string(key)).is_object()) return config.object(key).string("content");
  return config.string(key);
}

// special_tokens_map.json has what tokenizer_config.json does not say.
void fill_token(const JsonReader& reader, std::string_view key, std::string& token) {
  if (token.empty()) token = read_token(reader, key);
}

void fill_tokens(const JsonReader& reader, TokenizerConfig& config) {
  fill_token(reader, "bos_token", config.bos_token);
  fill_token(reader, "eos_token", config.eos_token);
  fill_token(reader, "unk_token", config.unk_token);
}

// Those that encoders put around texts.
template <typename Config>
void fill_outer_tokens(const JsonReader& reader, Config& config) {
  fill_token(reader, "cls_token", config.cls_token);
  fill_token(reader, "sep_token", config.sep_token);
  fill_token(reader, "pad_token", config.pad_token);
  fill_token(reader, "mask_token", config.mask_token);
}

void read_flags(const JsonReader& member, AddedToken& token) {
  token.single_word = member.boolean_or("single_word", false);
  token.lstrip = member.boolean_or("lstrip", false);
  token.rstrip = member.boolean_or("rstrip", false);
  token.special = member.boolean_or("special", false);
}

std::optional<bool> optional_boolean(const JsonReader& config, std::string_view key) {
  if (!config.has(key)) return std::nullopt;
  return config.boolean(key);
}

// A list of tokens as texts, which then are special, or as objects. An object of them, by their
// use, adds none.
void read_extra_tokens(const JsonReader& reader,
                       const std::string& key,
                       std::vector<AddedToken>& out) {
  if (!reader.has(key) || !reader.json().at(key).is_array()) return;
  for (const Json& item : reader.json().at(key)) {
    AddedToken token;
    if (item.is_string()) {
      token.content = item.get<std::string>();
      token.special = true;
    } else {
      const JsonReader member(item, reader.path_of(key));
      token.content = member.string("content");
      read_flags(member, token);
      token.normalized = member.boolean_or("normalized", !token.special);
    }
    if (!token.content.empty()) out.push_back(std::move(token));
  }
}

// The newer name goes before the older one.
void read_extra_tokens(const JsonReader& reader, TokenizerConfig& config) {
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    if (config.extra_tokens.empty()) read_extra_tokens(reader, key, config.extra_tokens);
  }
}

// {"32000": {"content": "<|im_start|>", ...}}
void read_added_tokens_decoder(const JsonReader& decoder, TokenizerConfig& config) {
  for (const auto& [key, value] : decoder.json().items()) {
    const JsonReader member(value, decoder.path_of(key));
    int64_t id = -1;
    const auto [stopped, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || stopped != key.data() + key.size()) id = -1;
    AddedToken token;
    token.id = check_id(id, decoder.path_of(key));
    token.content = member.string("content");
    token.normalized_content = token.content;
    read_flags(member, token);
    config.added_tokens.push_back(std::move(token));
  }
}

// {"<|im_start|>": 32000}
void read_added_tokens(const JsonReader& tokens, TokenizerConfig& config) {
  for (const auto& [content, id] : tokens.json().items()) {
    if (!id.is_number_integer()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected a token id", tokens.path_of(content)));
    }
    const bool known =
        std::any_of(config.added_tokens.begin(), config.added_tokens.end(),
                    [&text = content](const AddedToken& token) { return token.content == text; });
    if (known) continue;
    AddedToken token;
    token.id = check_id(id.get<int64_t>(), tokens.path_of(content));
    token.content = content;
    token.normalized_content = content;
    config.added_tokens.push_back(std::move(token));
  }
}

void read_config(const JsonReader& reader, TokenizerConfig& config) {
  config.tokenizer_class = reader.string_or("tokenizer_class", "");
  config.add_bos_token = optional_boolean(reader, "add_bos_token");
  config.add_eos_token = optional_boolean(reader, "add_eos_token");
  fill_tokens(reader, config);
  config.legacy = reader.boolean_or("legacy", true);
  config.add_prefix_space = reader.boolean_or("add_prefix_space", true);
  if (reader.has("added_tokens_decoder")) {
    read_added_tokens_decoder(reader.object("added_tokens_decoder"), config);
  }
  read_extra_tokens(reader, config);
  config.split_special_tokens = reader.boolean_or("split_special_tokens", false);
}

// Where tokenizer_config.json lists the added tokens, special_tokens_map.json has no more of them.
void read_special_tokens_map(const JsonReader& reader, TokenizerConfig& config) {
  fill_tokens(reader, config);
  if (config.added_tokens.empty()) read_extra_tokens(reader, config);
}

void read_vocab_txt_members(const JsonReader& reader, VocabTxtConfig& config) {
  config.tokenizer_class = reader.string_or("tokenizer_class", "");
  fill_outer_tokens(reader, config);
  config.do_lower_case = reader.boolean_or("do_lower_case", true);
  config.tokenize_chinese_chars = reader.boolean_or("tokenize_chinese_chars", true);
  config.strip_accents = optional_boolean(reader, "strip_accents");
}

// "module.Class", alone or in a list that gives the slow class first.
std::string class_of_code(const JsonReader& reader) {
  if (!reader.has("auto_map") || !reader.json().at("auto_map").is_object()) return "";
  Json written = reader.json().at("auto_map").value("AutoTokenizer", Json());
  while (written.is_array() && !written.empty()) {
    Json first = written[0].is_null() && written.size() > 1 ? written[1] : written[0];
    written = std::move(first);
  }
  if (!written.is_string()) return "";
  const auto name = written.get<std::string>();
  return name.substr(name.rfind('.') + 1);
}

// A list of tokens, or an object of them by their use.
void read_special_tokens(const JsonReader& reader,
                         const std::string& key,
                         std::vector<std::string>& out) {
  if (!reader.has(key)) return;
  for (const Json& token : reader.json().at(key)) {
    if (token.is_object()) {
      out.push_back(JsonReader(token, reader.path_of(key)).string("content"));
    } else if (token.is_string()) {
      out.push_back(token.get<std::string>());
    } else {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected tokens, got {}", reader.path_of(key), token.dump()));
    }
  }
}

void read_tiktoken_members(const JsonReader& reader, TiktokenConfig& config) {
  config.tokenizer_class = reader.string_or("tokenizer_class", "");
  if (const std::string of_code = class_of_code(reader); !of_code.empty()) {
    config.tokenizer_class = of_code;
  }
  read_special_tokens(reader, "additional_special_tokens", config.extra_special_tokens);
  read_special_tokens(reader, "extra_special_tokens", config.extra_special_tokens);
}

void read_model_members(const JsonReader& reader, TiktokenConfig& config) {
  config.model_type = reader.string_or("model_type", "");
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    if (!reader.has(key) || !reader.json().at(key).is_object()) continue;
    const JsonReader rope = reader.object(key);
    config.rope_type = rope.string_or("rope_type", rope.string_or("type", ""));
  }
}

// Calls use(reader, config) when the file is there.
template <typename Use, typename Config>
void read_members(const FileSource& files,
                  const std::string& name,
                  const Use& use,
                  Config& config) {
  const auto text = files.find_text(name);
  if (!text) return;
  try {
    const Json document = parse_json(*text);
    use(JsonReader(document, ""), config);
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

}  // namespace

TokenizerConfig read_tokenizer_config(const FileSource& files) {
  TokenizerConfig config;
  read_members(files, "tokenizer_config.json", read_config, config);
  read_members(files, kSpecialTokensFile, read_special_tokens_map, config);
  read_members(files, "added_tokens.json", read_added_tokens, config);
  return config;
}

VocabMergesConfig read_vocab_merges_config(const FileSource& files) {
  VocabMergesConfig config;
  read_members(
      files, "tokenizer_config.json",
      [](const JsonReader& reader, VocabMergesConfig& out) {
        out.tokenizer_class = reader.string_or("tokenizer_class", "");
        fill_outer_tokens(reader, out);
        out.trim_offsets = reader.boolean_or("trim_offsets", true);
        out.add_prefix_space = reader.boolean_or("add_prefix_space", false);
      },
      config);
  read_members(files, kSpecialTokensFile, fill_outer_tokens<VocabMergesConfig>, config);
  read_members(
      files, "config.json",
      [](const JsonReader& reader, VocabMergesConfig& out) {
        out.model_type = reader.string_or("model_type", "");
      },
      config);
  return config;
}

TiktokenConfig read_tiktoken_config(const FileSource& files) {
  TiktokenConfig config;
  read_members(files, "tokenizer_config.json", read_tiktoken_members, config);
  read_members(files, "config.json", read_model_members, config);
  return config;
}

VocabTxtConfig read_vocab_txt_config(const FileSource& files) {
  VocabTxtConfig config;
  read_members(files, "tokenizer_config.json", read_vocab_txt_members, config);
  read_members(files, kSpecialTokensFile, fill_outer_tokens<VocabTxtConfig>, config);
  return config;
}

}  // namespace tgi
