// How the matrices of a model are to be held on its device: settled from config and options alone,
// so that what is planned is what is loaded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/model/model_weights.h"
#include "engine/model/tensor_table.h"

namespace tgi {

struct MatrixPart {
  std::span<const TensorEntry* const> entries;
  MatrixStorage storage;
};

// References what it is made of.
class StoragePlan {
 public:
  // `keeps`: of the device.
  StoragePlan(const LoadedConfig& model,
              const LoadWeightsOptions& options,
              const MatrixForms& keeps,
              const TensorTable& table);

  // How a matrix of `entries`, one below the other, is held; `cols` are this rank's. Where the
  // checkpoint stores them in different ways and the device stacks matrices, those that follow each
  // other and are alike are a part. A device that does not, and one of experts, holds all in one
  // way that fits them, else decoded. Throws kInvalidArgument for a group size that does not divide
  // the columns, and for a matrix that is to be quantised and is already.
  std::vector<MatrixPart> parts(std::span<const TensorEntry* const> entries,
                                Role role,
                                Range cols) const;

  // How the matrices of heads are held that latent attention multiplies q and its results with, or
  // that a state's gates are made with: by head and some of them transposed, so that a checkpoint's
  // own integers are decoded. Every score, or every state, goes through them: when the layers are
  // quantised they are int8 at least, in groups of the default size, or plain where the device has
  // no kernels for such heads.
  MatrixStorage of_heads() const;

  bool is_quantised(const TensorEntry& entry) const;

 private:
  MatrixStorage rounded(std::span<const TensorEntry* const> entries, Role role, Range cols) const;
  StoredForm form(const TensorEntry& entry) const;
  std::string on_each_rank(const TensorEntry& entry, int64_t cols) const;
  void check_plain(const TensorEntry& entry) const;

  const LoadedConfig& model_;
  const LoadWeightsOptions& options_;
  const MatrixForms keeps_;
  const bool is_head_apart_;
};

}  // namespace tgi
