#include "cmd/bench/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tgi::bench {

Table::Table(std::vector<std::string> heads, size_t num_text_columns)
    : num_text_columns_(num_text_columns) {
  rows_.push_back(std::move(heads));
}

void Table::add(std::vector<std::string> cells) {
  TGI_CHECK(cells.size() == rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size(), 3);  // of "---"
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i) {
      out += i < num_text_columns_ ? fmt::format("| {:<{}} ", rows_[r][i], widths[i])
                                   : fmt::format("| {:>{}} ", rows_[r][i], widths[i]);
    }
    out += "|\n";
    if (r > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string line(widths[i], '-');
      out += i < num_text_columns_ ? fmt::format("|-{}-", line) : fmt::format("|-{}:", line);
    }
    out += "|\n";
  }
  return out;
}

std::string format_number(std::optional<double> value, int num_decimals) {
  return value ? fmt::format("{:.{}f}", *value, num_decimals) : std::string("-");
}

std::vector<std::string> summary_heads(std::vector<std::string> front) {
  for (const std::string_view head : kSummaryHeads) front.emplace_back(head);
  return front;
}

std::vector<std::string> summary_cells(std::vector<std::string> front,
                                       const std::optional<Summary>& summary) {
  if (!summary) {
    front.resize(front.size() + std::size(kSummaryHeads), "-");
    return front;
  }
  for (const double value : {summary->average, summary->lowest, summary->highest, summary->p50,
                             summary->p90, summary->p99}) {
    front.push_back(format_number(value));
  }
  return front;
}

}  // namespace tgi::bench
