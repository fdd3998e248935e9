// The arguments of calls that write them as entries: name:value,... up to a "}".
#include <string>
#include <string_view>
#include <utility>

#include "engine/dialect/call_reader.h"

namespace tgi::dialect {
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

// And of a text the mark before it.
CallReader::Step CallReader::read_entry_name(const ReadPart& part) {
  ListName found;
  const Step step = read_list_name(':', '}', part.close, found);
  if (step != Step::kNext || !found.name) return step;
  std::string_view behind = found.behind;
  while (!behind.empty() && is_json_space(behind.front())) behind.remove_prefix(1);
  const std::string_view quote = part.close;
  if (behind.size() < quote.size() && quote.starts_with(behind)) return more();
  const bool is_text = behind.starts_with(quote);
  if (is_text) behind.remove_prefix(quote.size());
  begin_value(std::move(*found.name), behind);
  value_types_ = is_text ? kStringBit : kAllBits;
  if (is_text) begin_argument(key_);
  return Step::kNext;
}

}  // namespace tgi::dialect
