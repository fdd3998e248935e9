// What a step reports of its token rows beside what it draws, for drafters that read more of a text
// than what its last token was drawn from.
#pragma once

#include <cstdint>
#include <vector>

namespace tgi {

// Of each token row of a step that reports them (Batch.reports_rows), side by side.
struct ReportedRows {
  std::vector<int32_t> before_layers{};  // the hidden states that these read, before their norm
  bool after_last_norm = false;          // what tokens are drawn from, last

  bool is_empty() const { return before_layers.empty() && !after_last_norm; }
  int32_t cols(int32_t hidden_size) const {
    return hidden_size * (static_cast<int32_t>(before_layers.size()) + (after_last_norm ? 1 : 0));
  }
};

}  // namespace tgi
