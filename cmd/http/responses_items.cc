#include "cmd/http/responses_items.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/base64.h"
#include "base/bounded_json.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/random_id.h"

namespace tgi::http {
namespace {

// Reasoning for clients that keep nothing but what they call encrypted. It is not: it is theirs.
constexpr std::string_view kPlainMark = "plain.";

std::string encoded_reasoning(const std::string& text) {
  return std::string(kPlainMark) + encode_base64(std::as_bytes(std::span(text)));
}

std::string decoded_reasoning(const std::string& text, const std::string& path) {
  try {
    if (text.starts_with(kPlainMark)) return decode_base64(text.substr(kPlainMark.size()));
  } catch (const Error&) {
    // As what does not begin so.
  }
  fail_body(path, "this server did not write it and can't read it: leave the item out");
}

// Members that say nothing to a model.
constexpr std::array kItemExtras = {
    ExtraField{"status", kAnything, "an item that is given is complete"},
    ExtraField{"phase", kAnything, "a label of OpenAI's models"},
    ExtraField{"parsed", kAnything, "what a client read from the text"},
    ExtraField{"parsed_arguments", kAnything, "what a client read from the arguments"},
    ExtraField{"annotations", kAnything, "models read the text"},
    ExtraField{"logprobs", kAnything, "models read the text"},
    ExtraField{"prompt_cache_breakpoint", kAnything, "every prompt is looked up in the cache"},
    ExtraField{"caller", R"([{"type":"direct"}])", "calls are made by the model alone"},
    ExtraField{"async", "[false]", "calls are answered before the model goes on"},
};

void check_members(const OrderedJson& item,
                   const std::string& path,
                   std::span<const std::string_view> known) {
  for (const auto& each : item.items()) {
    if (std::ranges::find(known, each.key()) != known.end()) continue;
    check_extra_field(path + "." + each.key(), each.key(), each.value(), kItemExtras, known);
  }
}

std::string id_of(const OrderedJson& item, const std::string& path, std::string_view prefix) {
  return member_of(item, "id") == nullptr ? random_id(prefix) : text_member(item, "id", path);
}

[[noreturn]] void refuse_part(const std::string& type, const std::string& path) {
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: `{}`: {} is not supported, this server takes "
                             "text alone",
                             path, type),
                 "unsupported_feature", path);
}

// The text of one part of a content: what it is called says who wrote it, which the role says too.
std::string text_of_part(const OrderedJson& part, const std::string& path) {
  static constexpr std::array<std::string_view, 3> kKnown = {"type", "text", "refusal"};
  if (!part.is_object()) fail_body_type(path, "an object with type and text", part);
  const std::string type = text_member(part, "type", path);
  if (type.ends_with("_image") || type.ends_with("_file") || type.ends_with("_audio")) {
    refuse_part(type, path);
  }
  const bool is_refusal = type == "refusal";
  if (!is_refusal && type != "input_text" && type != "output_text") {
    fail_body(path + ".type", fmt::format("unknown kind of content `{}`, expected input_text, "
                                          "output_text or refusal",
                                          type.substr(0, 100)));
  }
  check_members(part, path, kKnown);
  return text_member(part, is_refusal ? "refusal" : "text", path);
}

// As parts of `type`.
OrderedJson read_parts(const OrderedJson& content, const std::string& path, std::string_view type) {
  OrderedJson out = OrderedJson::array();
  const auto add = [&](std::string text) {
    OrderedJson part = {{"type", type}, {"text", std::move(text)}};
    if (type == "output_text") {
      part["annotations"] = OrderedJson::array();
      part["logprobs"] = OrderedJson::array();
    }
    out.push_back(std::move(part));
  };
  if (content.is_string()) {
    add(content.get<std::string>());
  } else if (content.is_array()) {
    for (size_t i = 0; i < content.size(); ++i) {
      add(text_of_part(content[i], fmt::format("{}[{}]", path, i)));
    }
  } else {
    fail_body_type(path, "a string or an array of parts", content);
  }
  return out;
}

OrderedJson read_message(const OrderedJson& item, const std::string& path) {
  static constexpr std::array<std::string_view, 4> kKnown = {"type", "id", "role", "content"};
  static constexpr std::array<std::string_view, 4> kRoles = {"user", "system", "developer",
                                                             "assistant"};
  check_members(item, path, kKnown);
  const std::string role = text_member(item, "role", path);
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    fail_body(path + ".role", fmt::format("unknown role `{}`, expected one of {}",
                                          role.substr(0, 100), fmt::join(kRoles, ", ")));
  }
  const OrderedJson* const content = member_of(item, "content");
  if (content == nullptr) fail_body(path + ".content", "missing field");
  const char* const type = role == "assistant" ? "output_text" : "input_text";
  return {{"id", id_of(item, path, "msg")},
          {"type", "message"},
          {"status", "completed"},
          {"role", role},
          {"content", read_parts(*content, path + ".content", type)}};
}

OrderedJson read_call(const OrderedJson& item, const std::string& path) {
  static constexpr std::array<std::string_view, 6> kKnown = {"type", "id",        "call_id",
                                                             "name", "arguments", "namespace"};
  check_members(item, path, kKnown);
  const std::string arguments = text_member(item, "arguments", path);
  if (!arguments.empty() && !json_or_discarded(arguments).is_object()) {
    fail_body(path + ".arguments", "expected the text of a JSON object");
  }
  OrderedJson out = {{"id", id_of(item, path, "fc")},
                     {"type", "function_call"},
                     {"status", "completed"},
                     {"arguments", arguments},
                     {"call_id", text_member(item, "call_id", path)},
                     {"name", text_member(item, "name", path)}};
  if (member_of(item, "namespace") != nullptr) {
    out["namespace"] = text_member(item, "namespace", path);
  }
  return out;
}

OrderedJson read_output(const OrderedJson& item, const std::string& path) {
  static constexpr std::array<std::string_view, 5> kKnown = {"type", "id", "call_id", "name",
                                                             "output"};
  check_members(item, path, kKnown);
  const OrderedJson* const output = member_of(item, "output");
  if (output == nullptr) fail_body(path + ".output", "missing field");
  OrderedJson parts = read_parts(*output, path + ".output", "input_text");
  return {{"id", id_of(item, path, "fco")},
          {"type", "function_call_output"},
          {"status", "completed"},
          {"call_id", text_member(item, "call_id", path)},
          {"output", output->is_string() ? *output : std::move(parts)}};
}

OrderedJson read_thoughts(const OrderedJson& item,
                          const char* name,
                          const std::string& path,
                          std::string_view type) {
  static constexpr std::array<std::string_view, 2> kKnown = {"type", "text"};
  OrderedJson out = OrderedJson::array();
  const OrderedJson* const list = member_of(item, name);
  if (list == nullptr) return out;
  const std::string where = path + "." + name;
  if (!list->is_array()) fail_body_type(where, "an array", *list);
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    const OrderedJson& part = (*list)[i];
    if (!part.is_object()) fail_body_type(at, "an object with type and text", part);
    check_members(part, at, kKnown);
    if (text_member(part, "type", at) != type) {
      fail_body(at + ".type", fmt::format("expected {}", type));
    }
    out.push_back({{"type", type}, {"text", text_member(part, "text", at)}});
  }
  return out;
}

OrderedJson read_reasoning(const OrderedJson& item, const std::string& path) {
  static constexpr std::array<std::string_view, 5> kKnown = {"type", "id", "summary", "content",
                                                             "encrypted_content"};
  check_members(item, path, kKnown);
  OrderedJson out = {{"id", id_of(item, path, "rs")},
                     {"type", "reasoning"},
                     {"status", "completed"},
                     {"summary", read_thoughts(item, "summary", path, "summary_text")},
                     {"content", read_thoughts(item, "content", path, "reasoning_text")}};
  if (member_of(item, "encrypted_content") != nullptr) {
    const std::string encrypted = text_member(item, "encrypted_content", path);
    if (out["content"].empty()) {
      out["content"].push_back(
          {{"type", "reasoning_text"},
           {"text", decoded_reasoning(encrypted, path + ".encrypted_content")}});
    }
    out["encrypted_content"] = encrypted;
  }
  return out;
}

struct ItemType {
  std::string_view type;
  OrderedJson (*read)(const OrderedJson& item, const std::string& path);
};
constexpr std::array<ItemType, 4> kItemTypes = {{{"message", read_message},
                                                 {"function_call", read_call},
                                                 {"function_call_output", read_output},
                                                 {"reasoning", read_reasoning}}};

OrderedJson resolved(const OrderedJson& item, const std::string& path, const FindItem& find) {
  static constexpr std::array<std::string_view, 2> kKnown = {"type", "id"};
  check_members(item, path, kKnown);
  const std::string id = text_member(item, "id", path);
  std::optional<OrderedJson> found = find(id);
  if (!found) {
    throw ApiError(404, "not_found", fmt::format("Item with id '{}' not found.", id.substr(0, 100)),
                   "", path + ".id");
  }
  return std::move(*found);
}

OrderedJson read_item(const OrderedJson& item, const std::string& path, const FindItem& find) {
  if (!item.is_object()) fail_body_type(path, "an object", item);
  // Messages and references may leave their type out.
  const bool has_type = member_of(item, "type") != nullptr;
  const std::string type = has_type                             ? text_member(item, "type", path)
                           : member_of(item, "role") != nullptr ? "message"
                                                                : "item_reference";
  if (type == "item_reference") return resolved(item, path, find);
  for (const ItemType& each : kItemTypes) {
    if (each.type == type) return each.read(item, path);
  }
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: `{}`: items of type {} are not supported, "
                             "expected message, function_call, function_call_output, reasoning or "
                             "item_reference",
                             path, type.substr(0, 100)),
                 "unsupported_feature", path + ".type");
}

}  // namespace

OrderedJson read_items(const OrderedJson& input, const FindItem& find) {
  OrderedJson out = OrderedJson::array();
  if (input.is_string()) {
    out.push_back(read_message({{"role", "user"}, {"content", input}}, "input"));
  } else if (input.is_array()) {
    for (size_t i = 0; i < input.size(); ++i) {
      out.push_back(read_item(input[i], fmt::format("input[{}]", i), find));
    }
  } else {
    fail_body_type("input", "a string or an array of items", input);
  }
  return out;
}

std::string_view id_prefix(PartKind kind) {
  switch (kind) {
    case PartKind::kReasoning:
      return "rs";
    case PartKind::kCall:
      return "fc";
    case PartKind::kText:
      break;
  }
  return "msg";
}

OrderedJson content_of_part(const AnswerPart& part, int64_t num_top_logprobs) {
  if (part.kind == PartKind::kReasoning) return {{"type", "reasoning_text"}, {"text", part.text}};
  OrderedJson logprobs = OrderedJson::array();
  for (const PartToken& token : part.tokens) {
    logprobs.push_back(token_logprobs(token.token, token.top_tokens, num_top_logprobs));
  }
  return {{"type", "output_text"},
          {"annotations", OrderedJson::array()},
          {"logprobs", std::move(logprobs)},
          {"text", part.text}};
}

OrderedJson item_of_part(const AnswerPart& part,
                         const std::string& id,
                         std::string_view status,
                         int64_t num_top_logprobs,
                         bool tells_encrypted,
                         const ToolNames& tool_names) {
  const bool is_written = status != "in_progress";
  OrderedJson content = OrderedJson::array();
  if (is_written && part.kind != PartKind::kCall) {
    content.push_back(content_of_part(part, num_top_logprobs));
  }
  switch (part.kind) {
    case PartKind::kReasoning: {
      OrderedJson out = {{"id", id},
                         {"type", "reasoning"},
                         {"status", status},
                         {"summary", OrderedJson::array()},
                         {"content", std::move(content)}};
      if (tells_encrypted && is_written) out["encrypted_content"] = encoded_reasoning(part.text);
      return out;
    }
    case PartKind::kCall: {
      const NamespacedTool tool = told_tool(tool_names, part.name);
      OrderedJson out = {{"id", id},
                         {"type", "function_call"},
                         {"status", status},
                         {"arguments", is_written ? part.text : ""},
                         {"call_id", part.call_id},
                         {"name", tool.name}};
      if (tool.space) out["namespace"] = *tool.space;
      return out;
    }
    case PartKind::kText:
      break;
  }
  return {{"id", id},
          {"type", "message"},
          {"status", status},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

}  // namespace tgi::http
