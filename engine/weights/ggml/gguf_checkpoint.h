// The tensors of GGUF files under the names that a Hugging Face folder has. Which those are, and
// what is to be undone, says an index, itself a file of the source:
//   {"files": ["model-1.gguf", ...],
//    "tensors": {"model.layers.0.self_attn.q_proj.weight":
//                  {"tensor": "blk.0.attn_q.weight", "shape": [64, 64],
//                   "order": "q",           (optional) row r is stored row orders["q"][r]
//                   "turn": "b",            (optional) of vectors: their numbers take turns with
//                   b's "expert": 3,            (optional) of the outermost dimension that element
//                   "change": "plus_one"},  (optional) of a vector's numbers: "plus_one",
//                   "minus_exp"
//                ...},
//    "orders": {"q": [0, 2, ...], ...},
//    "numbers": {"model.layers.0.mlp.act_fn.beta":    (optional) tensors of one number that files
//                  {"value": 0.5, "shape": []}, ...}}  have as fields
// A vector that is to be changed or put in order is decoded to F32 at once; a matrix keeps its
// blocks, and StoredTensor::row_order says where its rows lie.
#pragma once

#include <memory>

#include "engine/weights/checkpoint.h"

namespace tgi {

inline constexpr const char* kGgufIndexFile = "gguf.index.json";

// Throws kInvalidArgument naming file and tensor when the files are not what the index says, such
// as a tensor that has fewer numbers than its shape.
std::unique_ptr<Checkpoint> open_gguf_checkpoint(const FileSource& files);

}  // namespace tgi
