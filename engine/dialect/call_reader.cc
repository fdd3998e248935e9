#include "engine/dialect/call_reader.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/json_text.h"
#include "engine/dialect/json_check.h"

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

// What was written without quotes, as the parameter's type says, or else as a text.
std::string json_of_parameter(std::string_view value, uint8_t types) {
  const std::string_view bare = trimmed(value);
  std::string json(bare);
  OrderedJson parsed = OrderedJson::parse(json, nullptr, false);
  if (parsed.is_discarded()) {
    json = json_of_python(bare);  // True, None, {'a': 1}
    parsed = OrderedJson::parse(json, nullptr, false);
  }
  const bool takes_text = (types & kStringBit) != 0;
  const bool fits = (type_bit(parsed) & types & ~kStringBit) != 0;
  if (!parsed.is_discarded() && (fits || !takes_text)) return json;
  std::string out;
  append_string(value, out);
  return out;
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
  if (is_arguments && place_ == Place::kValue && has_whole_arguments_) return Step::kMalformed;
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
    if (!in_value_) {
      if (!skip_space()) return more();
      if (!rest().starts_with(part.open)) {
        if (std::string_view(part.open).starts_with(rest()) && !at_end_) return Step::kNeedsMore;
        end_arguments();
        return Step::kNext;
      }
      const Step step = read_parameter_name(part);
      if (step != Step::kNext) return step;
    }
    const Step step = read_parameter_value(part);
    if (step != Step::kNext) return step;
  }
}

// All up to the value.
CallReader::Step CallReader::read_parameter_name(const ReadPart& part) {
  const std::string_view behind = rest().substr(part.open.size());
  // Of the two that may be between name and value the one that comes first.
  const std::string* middle = &part.middle;
  size_t end = behind.find(part.middle);
  if (!part.middle_of_json.empty()) {
    const size_t other = behind.find(part.middle_of_json);
    if (other < end) {
      end = other;
      middle = &part.middle_of_json;
    }
  }
  if (end == std::string_view::npos) {
    const bool is_too_long = behind.size() > kMaxNameBytes + part.middle.size();
    return is_too_long ? Step::kMalformed : more();
  }
  std::string_view value = behind.substr(end + middle->size());
  if (!part.value_open.empty()) {
    while (!value.empty() && is_json_space(value.front())) value.remove_prefix(1);
    if (!value.starts_with(part.value_open)) {
      return std::string_view(part.value_open).starts_with(value) ? more() : Step::kMalformed;
    }
    value.remove_prefix(part.value_open.size());
  }
  key_ = unmarked(trimmed(behind.substr(0, end)));
  value_types_ = tool_->types_of_parameter(key_);
  if (middle == &part.middle_of_json) {
    value_types_ = kAllBits & ~kStringBit;
  } else if (!part.middle_of_json.empty()) {
    value_types_ = kStringBit;
  }
  begin_argument(key_);
  at_ = text_.size() - value.size();
  in_value_ = true;
  num_streamed_ = num_searched_ = 0;
  return Step::kNext;
}

// Texts come as they are written, other values when they are whole.
CallReader::Step CallReader::read_parameter_value(const ReadPart& part) {
  const size_t end = rest().find(part.close, num_searched_);
  const bool is_whole = end != std::string_view::npos;
  std::string_view value = rest().substr(0, end);
  if (!is_whole) {
    num_searched_ = value.size() - length_of_begun(value, part.close);
    value = value.substr(0, num_searched_);
  }
  if (part.part.on_lines && value.starts_with('\n')) value.remove_prefix(1);
  if (part.part.on_lines && value.ends_with('\n')) value.remove_suffix(1);
  if (value_types_ == kStringBit) {
    add_parameter_text(value, is_whole);
  } else if (is_whole) {
    arguments_ += json_of_parameter(unmarked(value), value_types_);
  }
  if (!is_whole) return more();
  at_ += end + part.close.size();
  in_value_ = false;
  return Step::kNext;
}

// What is new of a text.
void CallReader::add_parameter_text(std::string_view value, bool is_whole) {
  if (num_streamed_ == 0 && (is_whole || !value.empty())) arguments_ += '"';
  if (value.size() > num_streamed_) {
    std::string escaped;
    append_string(unmarked(value.substr(num_streamed_)), escaped);
    arguments_.append(escaped, 1, escaped.size() - 2);
    num_streamed_ = value.size();
  }
  if (is_whole) arguments_ += '"';
}

CallReader::Step CallReader::read_keywords() {
  for (;;) {
    if (!in_value_) {
      if (!skip_space()) return more();
      if (text_[at_] == ')') {
        end_arguments();
        return Step::kNext;
      }
      const Step step = read_keyword_name();
      if (step != Step::kNext) return step;
      if (!in_value_) continue;
    }
    const std::string_view here = rest();
    num_searched_ += python_.feed(here.substr(num_searched_));
    if (!python_.is_done()) return more();
    const std::string json = json_of_python(unmarked(here.substr(0, num_searched_)));
    if (json.empty()) return Step::kMalformed;
    begin_argument(key_);
    arguments_ += json;
    at_ += num_searched_;
    in_value_ = false;
  }
}

// The comma, the name and the equals sign.
CallReader::Step CallReader::read_keyword_name() {
  std::string_view here = rest();
  if (has_arguments_) {
    if (here.front() != ',') return Step::kMalformed;
    here.remove_prefix(1);
    while (!here.empty() && is_json_space(here.front())) here.remove_prefix(1);
    if (here.empty()) return more();
    if (here.front() == ')') {  // a comma behind the last
      at_ = text_.size() - here.size();
      return Step::kNext;
    }
  }
  const size_t equals = here.find('=');
  if (equals == std::string_view::npos) {
    return here.size() > kMaxNameBytes ? Step::kMalformed : more();
  }
  key_ = unmarked(trimmed(here.substr(0, equals)));
  if (key_.empty() || key_.find_first_of("()[]{},\"'") != std::string::npos) {
    return Step::kMalformed;
  }
  at_ = text_.size() - here.size() + equals + 1;
  in_value_ = true;
  num_searched_ = 0;
  python_ = {};
  return Step::kNext;
}

}  // namespace tgi::dialect
