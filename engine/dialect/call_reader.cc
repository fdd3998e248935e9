#include "engine/dialect/call_reader.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/bounded_json.h"
#include "base/json_text.h"
#include "engine/dialect/json_check.h"
#include "engine/dialect/listed_arguments.h"
#include "engine/dialect/tool_schema.h"

namespace tgi::dialect {
namespace {

constexpr size_t kMaxNameBytes = 256;

// The text of a JSON string; nothing for what is none.
std::string text_of_json(const std::string& json) {
  const OrderedJson value = json_or_discarded(json);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Models write either word, whichever they were shown.
bool is_arguments_key(std::string_view key, const CallPart& part) {
  return key == part.arguments_key || key == "arguments" || key == "parameters";
}

bool is_key_of_call(std::string_view key, const CallPart& part) {
  return key == part.name_key || is_arguments_key(key, part) || key == part.id_key || key == "id" ||
         key == "type";
}

}  // namespace

uint8_t KnownTool::types_of_parameter(std::string_view parameter) const {
  for (const Parameter& each : parameters) {
    if (each.name == parameter) return each.types;
  }
  return types_of_others;
}

std::vector<KnownTool> known_tools(const std::vector<Tool>& tools) {
  std::vector<KnownTool> out;
  for (const Tool& tool : tools) {
    KnownTool& known = out.emplace_back();
    known.name = tool.name;
    known.schema = std::make_shared<const OrderedJson>(with_listed_arguments(tool).parameters);
    const OrderedJson& schema = *known.schema;
    if (const auto others = schema.find("additionalProperties"); others != schema.end()) {
      known.types_of_others = types_of(*others, schema);
    }
    for (const ToolProperty& each : listed_properties(schema)) {
      known.parameters.push_back({.name = each.name, .types = types_of(*each.schema, schema)});
    }
  }
  return out;
}

CallReader::Outcome CallReader::read(std::string_view text, bool at_end) {
  if (is_malformed_) return Outcome::kMalformed;
  text_ = text;
  at_end_ = at_end;
  for (; index_ < parts_->size(); ++index_) {
    const Step step = read_part((*parts_)[index_]);
    if (step == Step::kNeedsMore) return Outcome::kNeedsMore;
    if (step == Step::kMalformed) {
      is_malformed_ = true;
      return Outcome::kMalformed;
    }
  }
  return is_json_object(arguments_) ? Outcome::kDone : Outcome::kMalformed;
}

CallReader::Step CallReader::read_part(const ReadPart& part) {
  switch (part.part.kind) {
    case CallPart::Kind::kMark:
      return read_mark(part);
    case CallPart::Kind::kGap: {
      const bool is_last = index_ + 1 == parts_->size();
      return skip_space() || is_last || at_end_ ? Step::kNext : Step::kNeedsMore;
    }
    case CallPart::Kind::kName:
      return read_name();
    case CallPart::Kind::kNumber:
      return read_number();
    case CallPart::Kind::kId:
      return read_id(part);
    case CallPart::Kind::kArguments:
      return read_arguments();
    case CallPart::Kind::kObject:
      return read_object(part.part);
    case CallPart::Kind::kParameters:
      return read_parameters(part);
    case CallPart::Kind::kKeywords:
      return read_keywords();
    case CallPart::Kind::kEntries:
      return read_entries(part);
    case CallPart::Kind::kElements:
      return read_elements(part);
    case CallPart::Kind::kNone:
      break;
  }
  return Step::kNext;
}

bool CallReader::skip_space() {
  while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
  return at_ < text_.size();
}

CallReader::Step CallReader::read_mark(const ReadPart& part) {
  size_t length = 0;
  bool may_be_longer = false;
  for (const std::string& mark : part.marks) {
    if (rest().starts_with(mark)) {
      length = std::max(length, mark.size());
    } else if (std::string_view(mark).starts_with(rest())) {
      may_be_longer = true;
    }
  }
  if (may_be_longer && !at_end_) return Step::kNeedsMore;
  if (length == 0 && !part.part.may_miss) return Step::kMalformed;
  at_ += length;
  return Step::kNext;
}

const KnownTool* CallReader::find_tool(std::string_view name) const {
  for (const KnownTool& tool : *tools_) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

bool CallReader::take_tool(std::string_view name) {
  tool_ = find_tool(name);
  return tool_ != nullptr;
}

// The longest tool's name that stands here.
CallReader::Step CallReader::read_name() {
  const KnownTool* longest = nullptr;
  for (const KnownTool& tool : *tools_) {
    if (rest().starts_with(tool.name)) {
      if (longest == nullptr || tool.name.size() > longest->name.size()) longest = &tool;
      if (rest().size() == tool.name.size() && !at_end_) return Step::kNeedsMore;
    } else if (std::string_view(tool.name).starts_with(rest()) && !at_end_) {
      return Step::kNeedsMore;
    }
  }
  // Some write the name twice.
  if (longest == nullptr || (tool_ != nullptr && tool_ != longest)) return Step::kMalformed;
  tool_ = longest;
  at_ += longest->name.size();
  return Step::kNext;
}

CallReader::Step CallReader::read_number() {
  const std::string_view here = rest();
  const auto* const end =
      std::find_if(here.begin(), here.end(), [](char c) { return c < '0' || c > '9'; });
  const auto length = static_cast<size_t>(end - here.begin());
  if (length == here.size() && !at_end_) return Step::kNeedsMore;
  if (length == 0) return Step::kMalformed;
  number_ = here.substr(0, length);
  at_ += length;
  return Step::kNext;
}

CallReader::Step CallReader::read_id(const ReadPart& part) {
  std::string_view here = rest();
  if (!part.marks.empty()) {
    const std::string_view mark = part.marks.front();
    if (mark.starts_with(here) && here.size() < mark.size() && !at_end_) return Step::kNeedsMore;
    if (!here.starts_with(mark)) return Step::kNext;
    here.remove_prefix(mark.size());
  }
  const auto* const end = std::find_if(here.begin(), here.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-';
  });
  const auto length = static_cast<size_t>(end - here.begin());
  if (length > kMaxNameBytes) return Step::kMalformed;
  if (length == here.size()) return more();
  at_ += rest().size() - here.size() + length;
  return Step::kNext;
}

CallReader::Step CallReader::read_arguments() {
  if (!has_arguments_) {
    if (!skip_space()) return more();
    if (text_[at_] != '{') return Step::kMalformed;
    has_arguments_ = is_committed_ = true;
  }
  const size_t length = scanner_.feed(rest());
  arguments_ += unmarked(rest().substr(0, length));
  at_ += length;
  return scanner_.is_done() ? Step::kNext : more();
}

CallReader::Step CallReader::read_object(const CallPart& part) {
  for (;;) {
    const bool is_inside = !value_.empty();  // of a key or a value
    if (!is_inside && !skip_space()) return more();
    const char c = is_inside ? '\0' : text_[at_];
    switch (place_) {
      case Place::kBegin:
        if (c != '{') return Step::kMalformed;
        ++at_;
        place_ = Place::kKey;
        break;
      case Place::kKey:
        if (!is_inside && c != '"') return Step::kMalformed;
        [[fallthrough]];
      case Place::kValue: {
        const Step step = read_member(part);
        if (step != Step::kNext) return step;
        break;
      }
      case Place::kColon:
        if (c != ':') return Step::kMalformed;
        ++at_;
        place_ = Place::kValue;
        break;
      case Place::kAfterValue:
        if (c != ',' && c != '}') return Step::kMalformed;
        ++at_;
        if (c == ',') {
          place_ = Place::kKey;
        } else {
          // Arguments under a name that is not understood are not none.
          if (tool_ == nullptr || (has_other_key_ && !has_arguments_)) return Step::kMalformed;
          is_committed_ = true;
          if (!has_arguments_) arguments_ = "{}";
          return Step::kNext;
        }
    }
  }
}

// A key or a value of the object, whichever is due.
CallReader::Step CallReader::read_member(const CallPart& part) {
  const bool is_key = place_ == Place::kKey;
  const size_t length = scanner_.feed(rest());
  const bool is_arguments = !is_key && is_arguments_key(key_, part);
  value_ += unmarked(rest().substr(0, length));
  at_ += length;
  // Once it is known whose they are, arguments are told as they come.
  if (is_arguments && tool_ != nullptr && value_.starts_with('{')) {
    is_committed_ = has_arguments_ = true;
    arguments_.append(value_, arguments_.size());
  }
  if (!scanner_.is_done()) return more();
  scanner_ = {};
  const std::string value = std::exchange(value_, {});
  if (is_key) {
    key_ = text_of_json(value);
    // A second name would be another call.
    has_other_key_ |= !is_key_of_call(key_, part);
    if (!is_key_of_call(key_, part) ? tool_ == nullptr
                                    : key_ == part.name_key && tool_ != nullptr) {
      return Step::kMalformed;
    }
    if (has_whole_arguments_ && is_arguments_key(key_, part)) return Step::kMalformed;
    place_ = Place::kColon;
    return Step::kNext;
  }
  place_ = Place::kAfterValue;
  if (key_ == part.name_key) {
    if (!take_tool(text_of_json(value))) return Step::kMalformed;
    if (has_arguments_) is_committed_ = true;
  } else if (is_arguments) {
    // Some write the object as a text that holds it.
    std::string inner = text_of_json(value);
    if (!is_committed_) arguments_ = inner.empty() ? value : std::move(inner);
    if (!arguments_.starts_with('{')) return Step::kMalformed;
    has_arguments_ = has_whole_arguments_ = true;
  }
  return Step::kNext;
}

}  // namespace tgi::dialect
