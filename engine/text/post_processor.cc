#include "engine/text/post_processor.h"

#include <limits>

#include "engine/text/component_list.h"

namespace tgi {
namespace {

int32_t read_id(const Json& value, const std::string& path) {
  if (value.is_number_integer()) {
    const auto id = value.get<int64_t>();
    if (id >= 0 && id <= std::numeric_limits<int32_t>::max()) return static_cast<int32_t>(id);
  }
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected a token id", path));
}

std::vector<int32_t> read_ids(const JsonReader& token) {
  const auto found = token.json().find("ids");
  if (found == token.json().end() || !found->is_array()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected an array of token ids", token.path_of("ids")));
  }
  std::vector<int32_t> ids;
  for (const Json& id : *found) ids.push_back(read_id(id, token.path_of("ids")));
  return ids;
}

// ["</s>", 2]
int32_t read_pair(const JsonReader& component, std::string_view key) {
  const auto found = component.json().find(std::string(key));
  if (found == component.json().end() || !found->is_array() || found->size() != 2) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected [token, id]", component.path_of(key)));
  }
  return read_id((*found)[1], component.path_of(key));
}

constexpr std::string_view kKnown =
    "Sequence, TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing";

}  // namespace

PostProcessor::PostProcessor(const JsonReader& component) {
  add(component, 0);
}

PostProcessor::PostProcessor(std::vector<int32_t> before, std::vector<int32_t> after) {
  templates_.push_back({{false, std::move(before)}, {true, {}}, {false, std::move(after)}});
}

void PostProcessor::add(const JsonReader& component, int depth) {
  check_component_depth(component, depth);
  const std::string type = component.string("type");
  if (type == "Sequence") {
    for (const JsonReader& member : component_list(component, "processors")) {
      add(member, depth + 1);
    }
  } else if (type == "TemplateProcessing") {
    add_template(component);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    add_sep_and_cls(component);
  } else if (type != "ByteLevel") {  // that one only corrects offsets
    fail_unknown_type(component, type, kKnown);
  }
}

void PostProcessor::add_template(const JsonReader& component) {
  Template parts;
  for (const JsonReader& piece : component_list(component, "single")) {
    if (piece.has("Sequence")) {
      const JsonReader sequence = piece.object("Sequence");
      if (sequence.string("id") != "A") {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: a single text is sequence \"A\", got \"{}\"",
                                sequence.path_of("id"), sequence.string("id")));
      }
      parts.push_back({true, {}});
      continue;
    }
    const JsonReader special = piece.object("SpecialToken");
    const std::string name = special.string("id");
    const JsonReader tokens = component.object("special_tokens");
    if (!tokens.has(name)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: \"{}\" is not in {}", special.path_of("id"), name,
                              component.path_of("special_tokens")));
    }
    parts.push_back({false, read_ids(tokens.object(name))});
  }
  templates_.push_back(std::move(parts));
}

void PostProcessor::add_sep_and_cls(const JsonReader& component) {
  const int32_t before = read_pair(component, "cls");
  const int32_t after = read_pair(component, "sep");
  templates_.push_back({{false, {before}}, {true, {}}, {false, {after}}});
}

void PostProcessor::apply(std::vector<int32_t>& ids, bool add_special) const {
  for (const Template& parts : templates_) {
    std::vector<int32_t> processed;
    for (const Part& part : parts) {
      const std::vector<int32_t>& added = part.is_text ? ids : part.ids;
      if (part.is_text || add_special)
        processed.insert(processed.end(), added.begin(), added.end());
    }
    ids = std::move(processed);
  }
}

}  // namespace tgi
