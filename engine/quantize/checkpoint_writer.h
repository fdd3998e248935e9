// Writes a quantised checkpoint: what will be in it is settled first, from names and shapes alone,
// then the arrays come in that order, a layer at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/new_folder.h"
#include "base/files/safetensors_writer.h"
#include "engine/quantize/layer_tensors.h"
#include "engine/quantize/source_model.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {

// Columns that share a scale, for a matrix of so many: 0 in the settings means a row.
inline int32_t group_size_for(int32_t setting, int64_t cols) {
  return setting == 0 ? static_cast<int32_t>(cols) : setting;
}

class CheckpointWriter {
 public:
  // All outlive it. Throws kInvalidArgument naming each matrix that the format can't store, and
  // kOutOfMemory when the disk has too little room.
  CheckpointWriter(const SourceModel& source,
                   const WeightEncoder& encoder,
                   const EncodedModel& settings,
                   const NewFolder& folder);

  int64_t total_bytes() const { return plan_.total_bytes; }  // of the arrays
  // What it would be without quantisation.
  int64_t source_bytes() const { return source_bytes_; }

  // All that is not of a layer: embeddings, the last norm, the head.
  void write_outer();
  // `matrices`: of every linear of the layer, by role, as they were encoded.
  void write_layer(int32_t layer,
                   LayerTensors& tensors,
                   const std::map<Role, std::vector<EncodedArray>>& matrices);

  // Weights, index, config.json and the other files of the model.
  void finish(const FileSource& files, const Json& quantization_config);

 private:
  void check_modules() const;
  void describe();
  void append(std::string_view name, std::span<const std::byte> bytes);
  void copy(const StoredTensor& tensor);

  const SourceModel& source_;
  const WeightEncoder& encoder_;
  const EncodedModel& settings_;
  const NewFolder& folder_;
  std::vector<const StoredTensor*> outer_;
  ShardPlan plan_;
  int64_t source_bytes_ = 0;
  size_t shard_ = 0;
  size_t entry_ = 0;  // the next one, of the shard
  std::unique_ptr<SafetensorsWriter> writer_;
};

}  // namespace tgi
