// The arguments of calls that write them as entries: name:value,... up to a "}".
#include <string>
#include <string_view>

#include "engine/dialect/call_reader.h"
#include "engine/dialect/marked_text.h"

namespace tgi::dialect {
namespace {

constexpr size_t kMaxEntryNameBytes = 256;

}  // namespace

CallReader::Step CallReader::read_entries(const ReadPart& part) {
  for (;;) {
    if (!in_value_) {
      if (!skip_space()) return more();
      if (text_[at_] == '}') {
        end_arguments();
        return Step::kNext;
      }
      const Step step = read_entry_name(part);
      if (step != Step::kNext) return step;
      if (!in_value_) continue;
    }
    if (value_types_ == kStringBit) {
      const Step step = read_parameter_value(part);
      if (step != Step::kNext) return step;
      continue;
    }
    num_searched_ += entry_.feed(rest().substr(num_searched_), part.close);
    if (!entry_.is_done()) return more();
    const std::string json = json_of_entry(rest().substr(0, num_searched_), part.close);
    if (json.empty()) return Step::kMalformed;
    begin_argument(key_);
    arguments_ += json;
    at_ += num_searched_;
    in_value_ = false;
  }
}

// The comma, the name and the colon, and of a text the mark before it.
CallReader::Step CallReader::read_entry_name(const ReadPart& part) {
  std::string_view here = rest();
  const auto skip = [&here] {
    while (!here.empty() && is_json_space(here.front())) here.remove_prefix(1);
  };
  if (has_arguments_) {
    if (here.front() != ',') return Step::kMalformed;
    here.remove_prefix(1);
    skip();
    if (here.empty()) return more();
    if (here.front() == '}') {  // a comma behind the last
      at_ = text_.size() - here.size();
      return Step::kNext;
    }
  }
  const size_t colon = here.find(':');
  if (colon == std::string_view::npos) {
    return here.size() > kMaxEntryNameBytes ? Step::kMalformed : more();
  }
  std::string name = unmarked(here.substr(0, colon));
  while (!name.empty() && is_json_space(name.back())) name.pop_back();
  if (name.empty() || name.find_first_of("()[]{},\"'") != std::string::npos) {
    return Step::kMalformed;
  }
  here.remove_prefix(colon + 1);
  skip();
  const std::string_view quote = part.close;
  if (here.empty() || (here.size() < quote.size() && quote.starts_with(here))) return more();
  const bool is_text = here.starts_with(quote);
  if (is_text) here.remove_prefix(quote.size());
  key_ = std::move(name);
  at_ = text_.size() - here.size();
  in_value_ = true;
  num_searched_ = num_streamed_ = 0;
  value_types_ = is_text ? kStringBit : kAllBits;
  entry_ = {};
  if (is_text) begin_argument(key_);
  return Step::kNext;
}

}  // namespace tgi::dialect
