#include "engine/dialect/call_reader.h"

#include <algorithm>
#include <utility>

#include "base/json_text.h"

namespace tgi::dialect {
namespace {

constexpr size_t kMaxNameBytes = 256;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

void append_string(std::string_view value, std::string& out) {
  JsonText(out).string(value);
}

// The text of a JSON string; nothing for what is none.
std::string text_of_json(const std::string& json) {
  const OrderedJson value = OrderedJson::parse(json, nullptr, false);
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
  return kAllBits;
}

std::vector<KnownTool> known_tools(const std::vector<Tool>& tools) {
  std::vector<KnownTool> out;
  for (const Tool& tool : tools) {
    KnownTool& known = out.emplace_back();
    known.name = tool.name;
    const auto properties = tool.parameters.find("properties");
    if (properties == tool.parameters.end() || !properties->is_object()) continue;
    for (const auto& item : properties->items()) {
      known.parameters.push_back(
          {.name = item.key(), .types = types_of(item.value(), tool.parameters)});
    }
  }
  return out;
}

CallReader::Outcome CallReader::read(std::string_view text, bool at_end) {
  text_ = text;
  at_end_ = at_end;
  for (; index_ < parts_->size(); ++index_) {
    const Step step = read_part((*parts_)[index_]);
    if (step == Step::kNeedsMore) return Outcome::kNeedsMore;
    if (step == Step::kMalformed) return Outcome::kMalformed;
  }
  return OrderedJson::accept(arguments_) ? Outcome::kDone : Outcome::kMalformed;
}

CallReader::Step CallReader::read_part(const ReadPart& part) {
  switch (part.part.kind) {
    case CallPart::Kind::kMark:
      return read_mark(part.marks);
    case CallPart::Kind::kGap: {
      const bool is_last = index_ + 1 == parts_->size();
      return skip_space() || is_last || at_end_ ? Step::kNext : Step::kNeedsMore;
    }
    case CallPart::Kind::kName:
      return read_name();
    case CallPart::Kind::kNumber:
      return read_number();
    case CallPart::Kind::kArguments:
      return read_arguments();
    case CallPart::Kind::kObject:
      return read_object(part.part);
    case CallPart::Kind::kParameters:
      return read_parameters(part);
    case CallPart::Kind::kKeywords:
      return read_keywords();
    case CallPart::Kind::kNone:
      break;
  }
  return Step::kNext;
}

bool CallReader::skip_space() {
  while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
  return at_ < text_.size();
}

CallReader::Step CallReader::read_mark(const std::vector<std::string>& marks) {
  size_t length = 0;
  bool may_be_longer = false;
  for (const std::string& mark : marks) {
    if (rest().starts_with(mark)) {
      length = std::max(length, mark.size());
    } else if (std::string_view(mark).starts_with(rest())) {
      may_be_longer = true;
    }
  }
  if (may_be_longer && !at_end_) return Step::kNeedsMore;
  if (length == 0) return Step::kMalformed;
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
  if (longest == nullptr) return Step::kMalformed;
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

CallReader::Step CallReader::read_arguments() {
  if (!has_arguments_) {
    if (!skip_space()) return more();
    if (text_[at_] != '{') return Step::kMalformed;
    has_arguments_ = is_committed_ = true;
  }
  const size_t length = scanner_.feed(rest());
  arguments_ += rest().substr(0, length);
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
        ++at_;
        if (c == ',') {
          place_ = Place::kKey;
        } else if (c == '}') {
          if (tool_ == nullptr) return Step::kMalformed;
          is_committed_ = true;
          if (!has_arguments_) arguments_ = "{}";
          return Step::kNext;
        } else {
          return Step::kMalformed;
        }
    }
  }
}

// A key or a value of the object, whichever is due.
CallReader::Step CallReader::read_member(const CallPart& part) {
  const bool is_key = place_ == Place::kKey;
  const size_t length = scanner_.feed(rest());
  const bool is_arguments = !is_key && is_arguments_key(key_, part);
  value_ += rest().substr(0, length);
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
    if (tool_ == nullptr && !is_key_of_call(key_, part)) return Step::kMalformed;
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
    has_arguments_ = true;
  }
  return Step::kNext;
}

void CallReader::begin_argument(std::string_view argument) {
  arguments_ += has_arguments_ ? ", " : "{";
  has_arguments_ = is_committed_ = true;
  append_string(argument, arguments_);
  arguments_ += ": ";
}

void CallReader::end_arguments() {
  arguments_ += has_arguments_ ? "}" : "{}";
  is_committed_ = true;
}

CallReader::Step CallReader::read_parameters(const ReadPart& part) {
  for (;;) {
    if (in_value_) {
      const Step step = read_parameter_value(part);
      if (step != Step::kNext) return step;
    }
    if (!skip_space()) return more();
    if (!rest().starts_with(part.open)) {
      if (std::string_view(part.open).starts_with(rest()) && !at_end_) return Step::kNeedsMore;
      end_arguments();
      return Step::kNext;
    }
    const std::string_view behind = rest().substr(part.open.size());
    const size_t end = behind.find(part.middle);
    if (end == std::string_view::npos) {
      return behind.size() > kMaxNameBytes + part.middle.size() ? Step::kMalformed : more();
    }
    key_ = trimmed(behind.substr(0, end));
    begin_argument(key_);
    at_ += part.open.size() + end + part.middle.size();
    in_value_ = true;
    num_streamed_ = 0;
  }
}

// Texts come as they are written, other values when they are whole.
CallReader::Step CallReader::read_parameter_value(const ReadPart& part) {
  const uint8_t types = tool_->types_of_parameter(key_);
  const size_t end = rest().find(part.close);
  const bool is_whole = end != std::string_view::npos;
  std::string_view value = rest().substr(0, end);
  if (part.part.on_lines && value.starts_with('\n')) value.remove_prefix(1);
  if (types == kStringBit) {
    if (!is_whole) {
      value.remove_suffix(length_of_begun(value, part.close));
      if (part.part.on_lines && value.ends_with('\n')) value.remove_suffix(1);
    } else if (part.part.on_lines && value.ends_with('\n')) {
      value.remove_suffix(1);
    }
    std::string escaped;
    append_string(value.substr(std::min(num_streamed_, value.size())), escaped);
    if (num_streamed_ == 0 && (is_whole || !value.empty())) arguments_ += '"';
    arguments_.append(escaped, 1, escaped.size() - 2);
    if (is_whole) arguments_ += '"';
    num_streamed_ = std::max(num_streamed_, value.size());
    if (!is_whole) return more();
  } else {
    if (!is_whole) return more();
    if (part.part.on_lines && value.ends_with('\n')) value.remove_suffix(1);
    const std::string_view bare = trimmed(value);
    const OrderedJson json = OrderedJson::parse(bare, nullptr, false);
    const bool is_json = !json.is_discarded();
    const bool fits = is_json && (type_bit(json) & types & ~kStringBit) != 0;
    if (fits || (is_json && (types & kStringBit) == 0)) {
      arguments_ += bare;
    } else if (const std::string literal = json_of_python(bare);
               !literal.empty() && (types & kStringBit) == 0) {
      arguments_ += literal;  // True, None
    } else {
      append_string(value, arguments_);
    }
  }
  at_ += end + part.close.size();
  in_value_ = false;
  return Step::kNext;
}

CallReader::Step CallReader::read_keywords() {
  for (;;) {
    if (!skip_space()) return more();
    if (text_[at_] == ')') {
      end_arguments();
      return Step::kNext;
    }
    std::string_view here = rest();
    if (has_arguments_) {
      if (here.front() != ',') return Step::kMalformed;
      here = trimmed(here.substr(1));
      if (here.empty()) return more();
      if (here.front() == ')') {  // a comma behind the last
        at_ = text_.find(')', at_);
        continue;
      }
    }
    const size_t equals = here.find('=');
    if (equals == std::string_view::npos) {
      return here.size() > kMaxNameBytes ? Step::kMalformed : more();
    }
    const std::string_view value = here.substr(equals + 1);
    const size_t end = end_of_python(value);
    if (end == std::string_view::npos) return more();
    const std::string json = json_of_python(value.substr(0, end));
    const std::string_view argument = trimmed(here.substr(0, equals));
    if (json.empty() || argument.empty()) return Step::kMalformed;
    begin_argument(argument);
    arguments_ += json;
    at_ = static_cast<size_t>(value.data() - text_.data()) + end;
  }
}

}  // namespace tgi::dialect
