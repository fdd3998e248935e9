// Which kernel multiplies a shape fastest: measured once on the GPU, kept in a file, looked up at
// each call.
//
// The file holds one line of JSON per shape, for one combination of device, driver and library; a
// file of another combination, or one that can't be read, counts as empty and is written anew (to a
// file beside it, then renamed).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuda/cublas.h"
#include "cuda/kernels/packed.h"

namespace tgi::cuda {

struct MatmulShape {
  int64_t rows = 0;  // of x; a bucket
  int64_t outputs = 0;
  int64_t cols = 0;
  int64_t alignment = kMaxAlignment;  // of the addresses: alignment_of
  DType dtype = DType::kBF16;
  DType out_dtype = DType::kBF16;
  uint32_t packed = 0;  // PackedShape::kind; 0: plain numbers
  auto operator<=>(const MatmulShape&) const = default;
};

MatmulShape shape_of(const MatmulLaunch& launch);  // with its own rows, no bucket
// Of a packed matrix, for the bucket of its rows. A choice with an algorithm, whatever it is: as
// plain numbers.
MatmulShape packed_matmul_shape(const PackedLaunch& launch);

// How many outputs of a packed matrix become plain numbers at a time: parts of 64 MiB, which the L2
// cache keeps half of, but of 4,096 outputs at least, or a product has too few tiles for all
// multiprocessors; never more than max_bytes. Parts are as equal as multiples of 128 are, of
// kPanelOutputs where there is room for no more.
inline constexpr size_t kMaxUnpackedBytes = size_t{256} << 20;
int32_t unpacked_outputs(const PackedShape& shape, size_t max_bytes = kMaxUnpackedBytes);
// What such a part takes.
int64_t unpacked_bytes(const PackedShape& shape);

// The bucket that stands for so many rows: 1, 2, 4, 8, 16, 24, 32, then in steps of a quarter of a
// power of two.
int64_t row_bucket(int64_t rows);
// All buckets up to the one of max_rows.
std::vector<int64_t> row_buckets(int64_t max_rows);

// No algorithm: matmul_stream.
struct MatmulChoice {
  std::optional<CublasAlgorithm> algorithm;
  double microseconds = 0.0;
};

class MatmulTuner {
 public:
  // `path` may be empty: nothing is kept. `combination` names device, driver and library.
  MatmulTuner(std::string path, std::string combination);

  // Null when the shape was neither measured nor adopted.
  const MatmulChoice* find(const MatmulShape& shape) const;

  // The fastest of the candidates by the median of several runs; keeps it. `run` executes a
  // candidate once and returns its time in microseconds; a candidate that throws kUnsupported is
  // passed over.
  const MatmulChoice& choose(
      const MatmulShape& shape,
      const std::vector<std::optional<CublasAlgorithm>>& candidates,
      const std::function<double(const std::optional<CublasAlgorithm>&)>& run);

  // Keeps a choice that nobody measured, for this process alone.
  void adopt(const MatmulShape& shape, const MatmulChoice& choice) { adopted_[shape] = choice; }

  // Writes what was measured since; a folder that can't be written costs a log line, no more.
  void save();

 private:
  void load();

  const std::string path_;
  const std::string combination_;
  std::map<MatmulShape, MatmulChoice> choices_;
  std::map<MatmulShape, MatmulChoice> adopted_;
  bool changed_ = false;
};

}  // namespace tgi::cuda
