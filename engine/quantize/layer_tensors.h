// The tensors of one layer while it is being quantised, as floats that may be changed.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "engine/model/weight_layout.h"
#include "engine/quantize/source_model.h"

namespace tgi {

class LayerTensors {
 public:
  // `source` outlives it. Vectors are read at once, matrices when asked for.
  LayerTensors(const SourceModel& source, int32_t layer);

  const TensorEntry* find(Role role) const { return source_.find(role, layer_); }
  // The roles of a linear's matrices that the layer has.
  std::vector<Role> roles_of(const LayerLinear& linear) const;

  // REQUIRES: find(role). Read the first time.
  FloatMatrix& matrix(Role role);
  void drop(Role role) { matrices_.erase(role); }
  std::vector<float>* vector(Role role);  // null: the layer has none
  bool is_changed(Role role) const { return changed_.contains(role); }

  // What a scale of the input of `linear` can be taken out of (multiplied by 1 / scales, all of
  // it), so that the layer does the same as before: the norm or the matrix that makes the input.
  // False: nothing there can; then nothing has changed. `scales` (cols of the linear) are changed
  // where the stored type of a norm can't hold the quotient, so that what was taken out is put in
  // again.
  bool take_out(const LayerLinear& linear, std::span<float> scales);

 private:
  bool take_out_of_norm(Role weight, Role bias, std::span<float> scales);
  bool take_out_of_rows(Role weight, Role bias, int64_t first_row, std::span<const float> scales);
  float stored(Role role, float value) const;

  const SourceModel& source_;
  const int32_t layer_;
  std::map<Role, FloatMatrix> matrices_;
  std::map<Role, std::vector<float>> vectors_;
  std::map<Role, bool> changed_;
};

}  // namespace tgi
