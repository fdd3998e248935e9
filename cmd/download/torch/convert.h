// A model with a torch checkpoint becomes one with safetensors: read by torch_file.h, which never
// runs anything, and written a piece at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files/safetensors_writer.h"

namespace tgi::download {

struct ConvertProgress {
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};

struct ConvertOptions {
  int64_t max_shard_bytes = kDefaultShardBytes;
  // Several times a second; what it throws ends the conversion and nothing is left. (optional)
  std::function<void(const ConvertProgress&)> on_progress{};
};

struct ConvertedModel {
  std::string folder;
  std::vector<std::string> files;  // of the weights
  int64_t bytes = 0;               // of the tensors
  int64_t num_tensors = 0;
  std::vector<std::string> dropped;  // tied to another tensor, as config.json says
};

// Makes `out_folder`: the weights of `folder` as safetensors, with copies of its config, tokenizer
// and licence. It is written beside and renamed at the end, so it is whole or not there; when
// another process has made it meanwhile, that one stays. What processes that died left beside it is
// removed.
//
// Tensors that are the same view of the same storage are written once where config.json ties the
// output head to the embedding, the head being left out; others keep both names. Strided views are
// written row-major. Throws kInvalidArgument and kUnsupported for checkpoints that can't be read
// (torch_file.h), kNotFound, and kOutOfMemory with the numbers when the disk has no room.
ConvertedModel convert_torch_checkpoint(const std::string& folder,
                                        const std::string& out_folder,
                                        const ConvertOptions& options = {});

}  // namespace tgi::download
