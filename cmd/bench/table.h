// Markdown tables with aligned columns: the first `num_text_columns` to the left, numbers to the
// right. Columns are as wide as their widest cell; a cell is taken for ASCII.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/bench/stats.h"

namespace tgi::bench {

class Table {
 public:
  explicit Table(std::vector<std::string> heads, size_t num_text_columns = 1);

  // REQUIRES: as many cells as there are heads.
  void add(std::vector<std::string> cells);

  std::string text() const;

 private:
  size_t num_text_columns_;
  std::vector<std::vector<std::string>> rows_;  // the heads first
};

// "12.34"; "-" for nothing.
std::string format_number(std::optional<double> value, int num_decimals = 2);

// Average, lowest, highest, p50, p90, p99 after `front`; six times "-" without a summary.
inline constexpr std::string_view kSummaryHeads[] = {"Average", "Lowest", "Highest",
                                                     "p50",     "p90",    "p99"};
std::vector<std::string> summary_heads(std::vector<std::string> front);
std::vector<std::string> summary_cells(std::vector<std::string> front,
                                       const std::optional<Summary>& summary);

}  // namespace tgi::bench
