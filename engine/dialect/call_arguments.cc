// The arguments of calls that write them one by one: between marks, or as keywords of Python.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

#include "base/bounded_json.h"
#include "base/json_text.h"
#include "engine/dialect/call_reader.h"
#include "engine/dialect/json_check.h"

namespace tgi::dialect {
namespace {

constexpr size_t kMaxArgumentNameBytes = 256;
constexpr size_t kMaxTypeBytes = 32;
constexpr std::string_view kNoListName = "()[]{},\"'";  // in one that is not known

// "integer" is no word of JSON's, but may be written.
uint8_t types_of_word(std::string_view word) {
  for (const TypeWord& type : kTypeWords) {
    if (type.word == word) return type.bit;
  }
  return kAllBits & ~kStringBit;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

void append_string(std::string_view value, std::string& out) {
  JsonText(out).string(value);
}

}  // namespace

std::string json_of_parameter(std::string_view value, uint8_t types) {
  const std::string_view bare = trimmed(value);
  std::string json(bare);
  const bool takes_text = (types & kStringBit) != 0;
  // Of any size: the library knows no number that no double holds.
  if (is_json_number(bare) && ((types & kNumberBit) != 0 || !takes_text)) return json;
  OrderedJson parsed = json_or_discarded(json);
  if (parsed.is_discarded()) {
    json = json_of_python(bare);  // True, None, {'a': 1}
    parsed = json_or_discarded(json);
  }
  const bool fits = (type_bit(parsed) & types & ~kStringBit) != 0;
  if (!parsed.is_discarded() && (fits || !takes_text)) return json;
  std::string out;
  append_string(value, out);
  return out;
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

// A name may hold what else ends it.
CallReader::Step CallReader::find_known_name(std::string_view text,
                                             std::initializer_list<const std::string*> marks,
                                             KnownName& to) const {
  for (const KnownTool::Parameter& each : tool_->parameters) {
    for (const std::string* const mark : marks) {
      if (mark->empty()) continue;
      const std::string written = each.name + *mark;
      if (!at_end_ && text.size() < written.size() && written.starts_with(text)) {
        return Step::kNeedsMore;
      }
      const bool is_longer = to.mark == nullptr || each.name.size() > to.length;
      if (is_longer && text.starts_with(written)) to = {.length = each.name.size(), .mark = mark};
    }
  }
  return Step::kNext;
}

// All up to the value.
CallReader::Step CallReader::read_parameter_name(const ReadPart& part) {
  const std::string_view behind = rest().substr(part.open.size());
  KnownName known;
  if (find_known_name(behind, {&part.middle, &part.middle_of_json}, known) == Step::kNeedsMore) {
    return Step::kNeedsMore;
  }
  // Of the two that may be between name and value the one that comes first.
  const std::string* middle = known.mark == nullptr ? &part.middle : known.mark;
  size_t end = known.mark == nullptr ? behind.find(part.middle) : known.length;
  if (known.mark == nullptr && !part.middle_of_json.empty()) {
    const size_t other = behind.find(part.middle_of_json);
    if (other < end) {
      end = other;
      middle = &part.middle_of_json;
    }
  }
  if (end == std::string_view::npos) {
    const bool is_too_long = behind.size() > kMaxArgumentNameBytes + part.middle.size();
    return is_too_long ? Step::kMalformed : more();
  }
  std::string_view value = behind.substr(end + middle->size());
  uint8_t told_types = 0;
  if (!part.type_close.empty()) {
    const size_t type_end = value.find(part.type_close);
    if (type_end == std::string_view::npos) {
      return value.size() > kMaxTypeBytes + part.type_close.size() ? Step::kMalformed : more();
    }
    told_types = types_of_word(value.substr(0, type_end));
    value.remove_prefix(type_end + part.type_close.size());
  }
  if (!part.value_open.empty()) {
    while (!value.empty() && is_json_space(value.front())) value.remove_prefix(1);
    if (!value.starts_with(part.value_open)) {
      return std::string_view(part.value_open).starts_with(value) ? more() : Step::kMalformed;
    }
    value.remove_prefix(part.value_open.size());
  }
  const std::string_view name = behind.substr(0, end);
  key_ = unmarked(known.mark == nullptr ? trimmed(name) : name);
  value_types_ = tool_->types_of_parameter(key_);
  if (told_types != 0) {
    value_types_ = told_types;
  } else if (middle == &part.middle_of_json) {
    value_types_ = kAllBits & ~kStringBit;
  } else if (!part.middle_of_json.empty()) {
    value_types_ = kStringBit;
  }
  begin_argument(key_);
  at_ = text_.size() - value.size();
  in_value_ = true;
  in_section_ = false;
  may_be_section_ = !part.section_open.empty();
  num_streamed_ = num_searched_ = 0;
  return Step::kNext;
}

// Texts come as they are written, other values when they are whole.
CallReader::Step CallReader::read_parameter_value(const ReadPart& part) {
  if (may_be_section_) {
    const std::string_view open = part.section_open;
    if (rest().size() < open.size() && open.starts_with(rest()) && !at_end_) {
      return Step::kNeedsMore;
    }
    in_section_ = rest().starts_with(open);
    may_be_section_ = false;
    if (in_section_) at_ += open.size();
    if (in_section_ && (value_types_ & kStringBit) != 0) value_types_ = kStringBit;
  }
  const std::string& close = in_section_ ? part.section_end : part.close;
  const size_t end = rest().find(close, num_searched_);
  const bool is_whole = end != std::string_view::npos;
  std::string_view value = rest().substr(0, end);
  if (!is_whole) {
    num_searched_ = value.size() - length_of_begun(value, close);
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
  at_ += end + close.size();
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

CallReader::Step CallReader::read_keyword_name() {
  ListName found;
  const Step step = read_list_name('=', ')', /*quote=*/"", found);
  if (step == Step::kNext && found.name) begin_value(std::move(*found.name), found.behind);
  return step;
}

CallReader::Step CallReader::read_list_name(char middle,
                                            char close,
                                            std::string_view quote,
                                            ListName& to) {
  std::string_view here = rest();
  if (has_arguments_) {
    if (here.front() != ',') return Step::kMalformed;
    here.remove_prefix(1);
    while (!here.empty() && is_json_space(here.front())) here.remove_prefix(1);
    if (here.empty()) return more();
    if (here.front() == close) {  // a comma behind the last
      at_ = text_.size() - here.size();
      return Step::kNext;
    }
  }
  KnownName known;
  const std::string mark(1, middle);
  if (find_known_name(here, {&mark}, known) == Step::kNeedsMore) return Step::kNeedsMore;
  if (known.mark != nullptr) {
    to.name = unmarked(here.substr(0, known.length));
    to.behind = here.substr(known.length + 1);
    return Step::kNext;
  }
  if (!quote.empty() && (here.starts_with(quote) || quote.starts_with(here))) {
    return read_quoted_name(here, middle, quote, to);
  }
  const size_t end = here.find(middle);
  if (end == std::string_view::npos) {
    return here.size() > kMaxArgumentNameBytes ? Step::kMalformed : more();
  }
  to.name = unmarked(trimmed(here.substr(0, end)));
  to.behind = here.substr(end + 1);
  const bool is_name =
      !to.name->empty() && to.name->find_first_of(kNoListName) == std::string::npos;
  return is_name ? Step::kNext : Step::kMalformed;
}

CallReader::Step CallReader::read_quoted_name(std::string_view here,
                                              char middle,
                                              std::string_view quote,
                                              ListName& to) {
  const size_t end = here.find(quote, quote.size());
  if (end == std::string_view::npos || end > kMaxArgumentNameBytes + quote.size()) {
    return here.size() > kMaxArgumentNameBytes + 2 * quote.size() ? Step::kMalformed : more();
  }
  to.name = unmarked(here.substr(quote.size(), end - quote.size()));
  to.behind = here.substr(end + quote.size());
  while (!to.behind.empty() && is_json_space(to.behind.front())) to.behind.remove_prefix(1);
  if (to.behind.empty()) return more();
  if (to.behind.front() != middle) return Step::kMalformed;
  to.behind.remove_prefix(1);
  return Step::kNext;
}

void CallReader::begin_value(std::string name, std::string_view behind) {
  key_ = std::move(name);
  at_ = text_.size() - behind.size();
  in_value_ = true;
  num_searched_ = num_streamed_ = 0;
  python_ = {};
  entry_ = {};
}

}  // namespace tgi::dialect
