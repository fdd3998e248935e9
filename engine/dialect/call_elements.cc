// The arguments of calls that write them as elements (element_values.h).
#include <string>
#include <string_view>

#include "engine/dialect/call_reader.h"
#include "engine/dialect/marked_text.h"

namespace tgi::dialect {
namespace {

constexpr size_t kMaxElementNameBytes = 256;

}  // namespace

CallReader::Step CallReader::read_elements(const ReadPart& part) {
  for (;;) {
    if (!in_value_) {
      if (!skip_space()) return more();
      const std::string_view here = rest();
      const std::string_view mark = part.open;
      if (here.size() < mark.size() + 2 && (here.starts_with(mark) || mark.starts_with(here)) &&
          !at_end_) {
        return Step::kNeedsMore;
      }
      // What closes the call comes next, whatever it is.
      if (!here.starts_with(mark) || here.substr(mark.size()).starts_with("</")) {
        end_arguments();
        return Step::kNext;
      }
      const Step step = read_element_name(part);
      if (step != Step::kNext) return step;
    }
    const Step step =
        value_types_ == kStringBit ? read_element_text(part) : read_element_value(part);
    if (step != Step::kNext) return step;
  }
}

CallReader::Step CallReader::read_element_name(const ReadPart& part) {
  const std::string_view tag = rest().substr(part.open.size());
  if (!tag.starts_with('<')) return tag.empty() ? more() : Step::kMalformed;
  const size_t end = tag.find('>');
  if (end == std::string_view::npos) {
    return tag.size() > kMaxElementNameBytes ? Step::kMalformed : more();
  }
  key_ = unmarked(tag.substr(1, end - 1));
  if (key_.empty()) return Step::kMalformed;
  value_types_ = tool_->types_of_parameter(key_);
  if (value_types_ == kStringBit) begin_argument(key_);
  at_ = text_.size() - tag.size() + end + 1;
  in_value_ = true;
  num_streamed_ = num_searched_ = 0;
  elements_ = {};
  return Step::kNext;
}

// A text comes as it is written.
CallReader::Step CallReader::read_element_text(const ReadPart& part) {
  const size_t end = rest().find(part.open, num_searched_);
  const bool is_whole = end != std::string_view::npos;
  std::string_view value = rest().substr(0, end);
  if (!is_whole) {
    num_searched_ = value.size() - length_of_begun(value, part.open);
    add_parameter_text(value.substr(0, num_searched_), false);
    return more();
  }
  const std::string_view behind = rest().substr(end + part.open.size());
  const Step step = read_closing_tag(behind);
  if (step == Step::kNext) add_parameter_text(value, true);
  return step;
}

CallReader::Step CallReader::read_element_value(const ReadPart& part) {
  const size_t end = elements_.find_end(rest(), part.open);
  if (end == std::string_view::npos) return more();
  const std::string_view value = rest().substr(0, end);
  const Step step = read_closing_tag(rest().substr(end + part.open.size()));
  if (step != Step::kNext) return step;
  static const OrderedJson kAnything = true;
  const OrderedJson& schema = tool_->schema == nullptr ? kAnything : *tool_->schema;
  const std::string json =
      json_of_elements(value, part.open, schema_of_member(&schema, key_, schema), schema);
  if (json.empty()) return Step::kMalformed;
  begin_argument(key_);
  arguments_ += json;
  return Step::kNext;
}

// What follows the mark behind a value; the place is then behind the tag.
CallReader::Step CallReader::read_closing_tag(std::string_view tag) {
  const size_t end = tag.find('>');
  if (end == std::string_view::npos) {
    return tag.size() > kMaxElementNameBytes ? Step::kMalformed : more();
  }
  if (!tag.starts_with("</")) return Step::kMalformed;
  at_ = text_.size() - tag.size() + end + 1;
  in_value_ = false;
  return Step::kNext;
}

}  // namespace tgi::dialect
