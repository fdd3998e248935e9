// cuBLASLt without cuBLASLt, and what it takes badly: steered by tests, counted for them.
//
// An algorithm is made for one number of rows and one alignment. For other rows it works unless the
// test refuses it; on matrices at addresses of less alignment it never does, as on the hardware.
#pragma once

#include <cstdint>
#include <functional>

namespace tgi::cuda {

struct StubMatmul {
  int64_t rows = 0;  // of this call
  int64_t outputs = 0;
  int64_t made_for_rows = 0;  // what the algorithm was proposed for
};

struct CublasStub {
  // Refuses a call before anything is launched. (optional)
  std::function<bool(const StubMatmul&)> refuses;
  // Proposes nothing for a shape: rows, outputs. (optional)
  std::function<bool(int64_t, int64_t)> knows_none;

  int64_t num_calls = 0;       // that ran
  int64_t num_refused = 0;     // by `refuses`
  int64_t num_misaligned = 0;  // refused: the algorithm counts on more alignment than there is
  int64_t num_loaded_in_capture = 0;  // first calls of an algorithm within a capture: not allowed
};

// The one stub of the process; for one thread.
CublasStub& cublas_stub();

}  // namespace tgi::cuda
