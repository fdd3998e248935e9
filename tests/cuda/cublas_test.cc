// Matmuls through cuBLASLt, which refuses what it likes: never the end of a step.
#include "base/error.h"
#include "tests/catch.h"
#include "tests/conformance/harness.h"
#include "tests/cuda/cublas_stub.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/temp_folder.h"

namespace tgi::cuda {
namespace {

constexpr int64_t kOutputs = 48;
constexpr int64_t kCols = 64;
constexpr int32_t kMaxRows = 256;

class StubGuard {
 public:
  StubGuard() { cublas_stub() = {}; }
  ~StubGuard() { cublas_stub() = {}; }
  StubGuard(const StubGuard&) = delete;
  StubGuard& operator=(const StubGuard&) = delete;
};

bool is_other_rows(const StubMatmul& call) {
  return call.rows != call.made_for_rows;
}

class Multiplier {
 public:
  explicit Multiplier(const DeviceOptions& options = {})
      : device_(emulated_backend().make_device(options)) {
    Random random(3);
    values_ = random.values(kOutputs * kCols);
    w_ = make_matrix(*device_, values_, kOutputs, kCols, DType::kBF16);
    device_->allocate_state({.num_layers = 1,
                             .num_kv_heads = 1,
                             .head_dim = 16,
                             .block_size = 16,
                             .num_blocks = 4,
                             .dtype = DType::kBF16},
                            {.num_slots = 4,
                             .max_blocks_per_slot = 4,
                             .max_batch_tokens = kMaxRows,
                             .vocab_size = 64,
                             .block_size = 16,
                             .max_matmul_cols = kCols});
  }

  // The worst error of a product of so many rows at addresses of this alignment; at most 1 is a
  // pass.
  double error_of(int64_t rows, int64_t alignment = 64) {
    Random random(static_cast<uint32_t>(rows));
    const Floats values = random.values(rows * kCols);
    const int64_t shift = alignment / 2;  // elements
    DeviceTensor x(*device_, 1, rows * kCols + shift, DType::kBF16);
    Floats shifted(static_cast<size_t>(shift), 0.0F);
    shifted.insert(shifted.end(), values.begin(), values.end());
    x.write(shifted);
    DeviceTensor out(*device_, rows, kOutputs, DType::kBF16);
    run_step(*device_, one_sequence({0}), [&] {
      device_->matmul({.x = {.data = x.view().as<uint16_t>() + shift,
                             .dtype = DType::kBF16,
                             .rows = rows,
                             .cols = kCols,
                             .stride = kCols},
                       .w = w_.get(),
                       .bias = nullptr,
                       .out = out.view()});
    });
    Floats wanted;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t output = 0; output < kOutputs; ++output) {
        double sum = 0.0;
        for (int64_t k = 0; k < kCols; ++k) {
          sum += static_cast<double>(values[static_cast<size_t>(row * kCols + k)]) *
                 static_cast<double>(values_[static_cast<size_t>(output * kCols + k)]);
        }
        wanted.push_back(static_cast<float>(sum));
      }
    }
    return worst_error(out.read(), wanted, 0.05, 0.02);
  }

 private:
  std::unique_ptr<Device> device_;
  Floats values_;
  std::unique_ptr<Matrix> w_;
};

}  // namespace

TEST_CASE("rows that an algorithm of their bucket is refused for get one of their own, once") {
  const StubGuard guard;
  CublasStub& stub = cublas_stub();
  stub.refuses = is_other_rows;
  Multiplier multiplier;
  CHECK(multiplier.error_of(112) <= 1.0);
  CHECK((stub.num_calls == 1 && stub.num_refused == 0));
  CHECK(multiplier.error_of(97) <= 1.0);  // of the bucket of 112 rows
  CHECK((stub.num_calls == 2 && stub.num_refused == 1));
  CHECK(multiplier.error_of(97) <= 1.0);
  CHECK((stub.num_calls == 3 && stub.num_refused == 1));
  CHECK(multiplier.error_of(112) <= 1.0);
  CHECK((stub.num_calls == 4 && stub.num_refused == 1));
}

TEST_CASE("rows that cuBLASLt has nothing for are multiplied by our own kernel") {
  const StubGuard guard;
  CublasStub& stub = cublas_stub();
  Multiplier multiplier;
  stub.refuses = [](const StubMatmul& call) { return call.rows == 100; };
  CHECK(multiplier.error_of(112) <= 1.0);
  CHECK(multiplier.error_of(100) <= 1.0);
  CHECK((stub.num_calls == 1 && stub.num_refused == 2));
  stub.knows_none = [](int64_t, int64_t) { return true; };
  CHECK(multiplier.error_of(200) <= 1.0);
  CHECK(stub.num_calls == 1);
}

TEST_CASE("an algorithm counts on no more alignment than the matrices have") {
  const StubGuard guard;
  Multiplier multiplier;
  for (const int64_t alignment : {64, 16, 32, 64, 16}) {
    CHECK(multiplier.error_of(128, alignment) <= 1.0);
  }
  CHECK(cublas_stub().num_misaligned == 0);
  CHECK(cublas_stub().num_calls == 5);
}

TEST_CASE("what was measured at load serves other rows and other alignments too") {
  const StubGuard guard;
  CublasStub& stub = cublas_stub();
  stub.refuses = is_other_rows;
  const TempFolder folder;
  DeviceOptions options;
  options.cache_dir = folder.path();
  for (int process = 0; process < 2; ++process) {  // the second reads the file of the first
    Multiplier multiplier(options);
    const int64_t num_before = stub.num_calls;
    for (const int64_t rows : {65, 112, 111, 256}) {
      for (const int64_t alignment : {64, 16}) CHECK(multiplier.error_of(rows, alignment) <= 1.0);
    }
    CHECK(stub.num_calls == num_before + 8);
  }
  CHECK(stub.num_misaligned == 0);
}

TEST_CASE("a shape whose every algorithm is refused while measuring does not end the load") {
  const StubGuard guard;
  cublas_stub().refuses = [](const StubMatmul&) { return true; };
  const TempFolder folder;
  DeviceOptions options;
  options.cache_dir = folder.path();
  Multiplier multiplier(options);
  CHECK(multiplier.error_of(200) <= 1.0);
  CHECK(cublas_stub().num_calls == 0);
}

}  // namespace tgi::cuda
