// Matrices of 4 bits as bitsandbytes stores them. A code stands for one of 16 numbers of a table,
// which is multiplied with the scale of its block; blocks run over the whole matrix, row by row, so
// that one may end in the middle of a row.
//   X                      (elements / 2, 1)  bytes, or the same bytes as another type: two codes
//                          each, the first in the high half
//   X.quant_map            F32 (16)           the table
//   X.absmax               F32 (blocks)       scales; nested: U8, indices of nested_quant_map
//   X.nested_absmax        F32 (blocks of scales)
//   X.nested_quant_map     F32 (256)
//   X.quant_state.bitsandbytes__nf4           bitsandbytes_state.h; or __fp4
//
// Whether a matrix is stored so is up to its tensors: config.json doesn't say it in a way that all
// versions of transformers agree on.
#pragma once

#include <span>
#include <vector>

#include "engine/weights/weight_format.h"

namespace tgi {

// How matrices with the codes of one of the two tables are held.
constexpr Quantization table_kind(bool is_nf4) {
  return is_nf4 ? Quantization::kNf4 : Quantization::kFp4;
}

// Whether there is any of the tensors that stand beside a matrix of 4 bits.
bool is_stored_in_4bit(const Checkpoint& checkpoint, const MatrixSpec& spec);

// As WeightFormat::collect. Throws kInvalidArgument or kUnsupported naming the tensor when the
// quant_state makes no sense. `is_nf4`: the name under which a state that is not there is missed.
std::vector<const StoredTensor*> collect_4bit(const Checkpoint& checkpoint,
                                              const MatrixSpec& spec,
                                              bool is_nf4,
                                              WeightProblems& problems);

// Columns of a group where the codes are kept: the blocks that transformers writes are as large, or
// a multiple.
inline constexpr int64_t kKeptBlock = 64;

// Whether no block ends in the middle of a row, so that they are groups of its columns.
bool has_whole_blocks(const MatrixSpec& spec);

struct Block4Bit {
  Range rows;
  Range cols;
  const MatrixStorage& storage;
};

// As WeightFormat::slice. Throws kUnsupported for codes that are to be kept, and whose blocks are
// not of a multiple of kKeptBlock.
HostWeight slice_4bit(const Checkpoint& checkpoint,
                      const MatrixSpec& spec,
                      std::span<const StoredTensor* const> tensors,
                      const Block4Bit& wanted);

}  // namespace tgi
