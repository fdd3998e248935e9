// See stacked_matrix.h.
#include "engine/cpu/stacked_matrix.h"

#include <utility>

#include "base/error.h"

namespace tgi {

StackedMatrix::StackedMatrix(std::vector<std::unique_ptr<Matrix>> parts)
    : parts_(std::move(parts)) {
  TGI_CHECK(!parts_.empty());
  cols = parts_.front()->cols;
  for (const auto& part : parts_) {
    TGI_CHECK(part->cols == cols);
    rows += part->rows;
    size_bytes += part->size_bytes;
  }
}

}  // namespace tgi
