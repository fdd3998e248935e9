// Finds the chat template among a model's files (declared in chat_template.h).
// Formats: huggingface.co/docs/transformers/chat_templating_writing and the tokenizer_config.json
// of models on the Hugging Face hub.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer/tokenizer_classes.h"

namespace tgi {
namespace {

constexpr std::array<std::string_view, 8> kTokenNames = {
    "bos_token", "eos_token", "unk_token",  "sep_token",
    "pad_token", "cls_token", "mask_token", "additional_special_tokens"};

// A file that is JSON, or nothing when it isn't there.
std::optional<Json> find_json(const FileSource& files, const std::string& name) {
  const std::optional<std::string_view> text = files.find_text(name);
  if (!text) return std::nullopt;
  try {
    Json json = parse_json(*text);
    if (json.is_object()) return json;
    throw Error(Code::kInvalidArgument,
                fmt::format("expected an object, got {}", json.type_name()));
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

// Special tokens are written as strings or as objects with the string in "content".
std::optional<OrderedJson> token_text(const Json& token) {
  if (token.is_string()) return OrderedJson(token.get<std::string>());
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return OrderedJson(token["content"].get<std::string>());
  }
  if (!token.is_array()) return std::nullopt;
  OrderedJson texts = OrderedJson::array();
  for (const Json& item : token) {
    if (std::optional<OrderedJson> text = token_text(item)) texts.push_back(std::move(*text));
  }
  return texts;
}

bool is_common_token(std::string_view name) {
  return std::ranges::find(kTokenNames, name) != kTokenNames.end();
}

// The special tokens that a file names, over those that are there; null: it says there is none.
// Beside those of every tokenizer a model may have some of its own, as members that end in _token
// or together in an object.
void collect_tokens(const Json& file, ChatTemplate::SpecialTokens& tokens) {
  for (const auto& [name, value] : file.items()) {
    const bool is_common = is_common_token(name);
    if (!is_common && !name.ends_with("_token")) continue;
    std::optional<OrderedJson> text = token_text(value);
    if (text && (is_common || text->is_string())) {
      tokens[name] = std::move(*text);
    } else if (is_common && value.is_null()) {
      tokens[name] = nullptr;
    }
  }
  const auto extra = file.find("extra_special_tokens");
  if (extra == file.end() || !extra->is_object()) return;
  for (const auto& [name, value] : extra->items()) {
    std::optional<OrderedJson> text = token_text(value);
    if (text && text->is_string()) tokens[name] = std::move(*text);
  }
}

// "": not said.
std::string string_member(const std::optional<Json>& file, const char* name) {
  if (!file || !file->contains(name) || !(*file)[name].is_string()) return "";
  return (*file)[name].get<std::string>();
}

// Those of the tokenizer's class that no file names. A class is at times named for its code alone,
// so that only what the folder's tokenizer knows is a token of it.
void add_tokens_of_class(const FileSource& files,
                         const std::optional<Json>& config,
                         ChatTemplate::SpecialTokens& tokens) {
  const std::optional<Json> model = find_json(files, "config.json");
  std::string name = string_member(config, "tokenizer_class");
  if (name.empty()) name = string_member(model, "tokenizer_class");
  const TokenizerClass* const row = find_tokenizer_class(name, string_member(model, "model_type"));
  if (row == nullptr) return;
  const auto document = files.find_text("tokenizer.json");
  const std::pair<const char*, std::string_view> known[] = {
      {"bos_token", row->bos},  {"eos_token", row->eos}, {"unk_token", row->unk},
      {"sep_token", row->sep},  {"pad_token", row->pad}, {"cls_token", row->cls},
      {"mask_token", row->mask}};
  for (const auto& [key, token] : known) {
    if (token.empty() || tokens.contains(key)) continue;
    if (document && document->find(Json(token).dump()) == std::string_view::npos) continue;
    tokens[key] = token;
  }
}

// As transformers reads them: special_tokens_map.json is of the time before tokenizer_config.json
// listed the tokens that were added. Where it does, the former is not read; else it has the last
// word.
ChatTemplate::SpecialTokens read_tokens(const FileSource& files,
                                        const std::optional<Json>& config) {
  ChatTemplate::SpecialTokens tokens;
  if (config) collect_tokens(*config, tokens);
  if (!config || !config->contains("added_tokens_decoder")) {
    if (const auto map = find_json(files, "special_tokens_map.json")) collect_tokens(*map, tokens);
  }
  add_tokens_of_class(files, config, tokens);
  std::erase_if(tokens, [](const auto& token) { return token.second.is_null(); });
  return tokens;
}

// The value of a member "chat_template": a string, or a list of {name, template}.
std::vector<ChatTemplate::Named> read_templates(const Json& value) {
  if (value.is_string()) return {{"default", value.get<std::string>()}};
  const auto refuse = [](const std::string& got) {
    throw Error(Code::kInvalidArgument,
                "chat_template: expected a string or a list of {name, template}, got " + got);
  };
  if (!value.is_array()) refuse(value.type_name());
  std::vector<ChatTemplate::Named> sources;
  for (const Json& entry : value) {
    const bool is_named = entry.is_object() && entry.contains("name") &&
                          entry["name"].is_string() && entry.contains("template") &&
                          entry["template"].is_string();
    if (!is_named) refuse("a list with something else in it");
    sources.push_back({entry["name"].get<std::string>(), entry["template"].get<std::string>()});
  }
  if (sources.empty()) refuse("an empty list");
  return sources;
}

struct Found {
  std::string file;
  std::vector<ChatTemplate::Named> sources;
};

std::optional<Found> find_templates(const FileSource& files, const std::optional<Json>& config) {
  constexpr const char* kJinjaFile = "chat_template.jinja";
  constexpr const char* kToolFile = "additional_chat_templates/tool_use.jinja";
  if (const auto text = files.find_text(kJinjaFile)) {
    Found found{kJinjaFile, {{"default", std::string(*text)}}};
    if (const auto more = files.find_text(kToolFile)) {
      found.sources.push_back({"tool_use", std::string(*more)});
    }
    return found;
  }
  constexpr const char* kJsonFile = "chat_template.json";
  constexpr const char* kConfigFile = "tokenizer_config.json";
  const std::optional<Json> template_json = find_json(files, kJsonFile);
  for (const auto& [name, json] : {std::pair{kJsonFile, &template_json}, {kConfigFile, &config}}) {
    if (!*json || !(*json)->contains("chat_template")) continue;
    const Json& value = (**json)["chat_template"];
    if (value.is_null()) continue;
    try {
      return Found{name, read_templates(value)};
    } catch (const Error& error) {
      throw error.in(files.describe(name));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChatTemplate> load_chat_template(const FileSource& files,
                                               const jinja::Limits& limits) {
  const std::optional<Json> config = find_json(files, "tokenizer_config.json");
  const std::optional<Found> found = find_templates(files, config);
  if (!found) return std::nullopt;
  ChatTemplate::SpecialTokens tokens = read_tokens(files, config);
  try {
    return ChatTemplate::parse(found->sources, std::move(tokens), limits);
  } catch (const Error& error) {
    throw error.in(files.describe(found->file));
  }
}

}  // namespace tgi
