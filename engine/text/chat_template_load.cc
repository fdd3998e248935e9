// Finds the chat template among a model's files (declared in chat_template.h).
// Formats: huggingface.co/docs/transformers/chat_templating_writing and the tokenizer_config.json
// of models on the Hugging Face hub.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/text/chat_template.h"

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

void collect_tokens(const Json& config, ChatTemplate::SpecialTokens& tokens) {
  for (const std::string_view name : kTokenNames) {
    const auto token = config.find(std::string(name));
    if (token == config.end()) continue;
    if (std::optional<OrderedJson> text = token_text(*token)) {
      tokens[std::string(name)] = std::move(*text);
    }
  }
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
  ChatTemplate::SpecialTokens tokens;
  if (const auto map = find_json(files, "special_tokens_map.json")) collect_tokens(*map, tokens);
  if (config) collect_tokens(*config, tokens);
  try {
    return ChatTemplate::parse(found->sources, std::move(tokens), limits);
  } catch (const Error& error) {
    throw error.in(files.describe(found->file));
  }
}

}  // namespace tgi
