// Matrices of as many columns, one below the other, each in panels of its own kind.
#pragma once

#include <memory>
#include <vector>

#include "engine/cpu/panel_matrix.h"
#include "engine/tensor/weight.h"

namespace tgi {

class StackedMatrix final : public Matrix {
 public:
  // REQUIRES: parts of PanelMatrix, at least one.
  explicit StackedMatrix(std::vector<std::unique_ptr<Matrix>> parts);

  const PanelMatrix& part(size_t index) const {
    return static_cast<const PanelMatrix&>(*parts_[index]);
  }
  size_t num_parts() const { return parts_.size(); }

 private:
  std::vector<std::unique_ptr<Matrix>> parts_;
};

}  // namespace tgi
