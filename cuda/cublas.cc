#include "cuda/cublas.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "cuda/cublas_library.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

static_assert(sizeof(CublasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));

// Told before anything is launched; another algorithm may do.
bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ARCH_MISMATCH;
}

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(is_refusal(status) ? Code::kUnsupported : Code::kDeviceLost,
              fmt::format("cuBLASLt: {}: {}", what, cublas().get_status_string(status)));
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

// The descriptors of one call; made on the stack, microseconds.
class Problem {
 public:
  explicit Problem(const MatmulLaunch& args) {
    check_cublas(cublas().desc_create(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                 "describing a matmul");
    const cublasOperation_t transpose = CUBLAS_OP_T;
    check_cublas(cublas().desc_set_attribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                             sizeof transpose),
                 "describing a matmul");
    const auto cols = static_cast<uint64_t>(args.x.cols);
    const auto outputs = static_cast<uint64_t>(args.outputs);
    const auto rows = static_cast<uint64_t>(args.x.rows);
    const cudaDataType_t type = data_type(args.x.dtype);
    check_cublas(cublas().layout_create(&w, type, cols, outputs, args.w_stride), "describing w");
    check_cublas(cublas().layout_create(&x, type, cols, rows, args.x.stride), "describing x");
    check_cublas(
        cublas().layout_create(&out, data_type(args.out.dtype), outputs, rows, args.out.stride),
        "describing out");
  }
  ~Problem() {
    if (out != nullptr) cublas().layout_destroy(out);
    if (x != nullptr) cublas().layout_destroy(x);
    if (w != nullptr) cublas().layout_destroy(w);
    if (operation != nullptr) cublas().desc_destroy(operation);
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t w = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
};

// Bounds of what the library may propose.
class Preference {
 public:
  explicit Preference(const MatmulLaunch& args) {
    check_cublas(cublas().preference_create(&preference_), "asking for algorithms");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kCublasWorkspaceBytes});
    // Without these it counts on 256 bytes.
    const auto alignment = static_cast<uint32_t>(alignment_of(args));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  }
  ~Preference() { (void)cublas().preference_destroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check_cublas(cublas().preference_set_attribute(preference_, attribute, &value, sizeof value),
                 "asking for algorithms");
  }

  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

struct Cublas::State {
  cublasLtHandle_t handle = nullptr;
  ~State() {
    if (handle != nullptr) cublas().destroy(handle);
  }
};

Cublas::Cublas() : state_(std::make_unique<State>()) {
  const cublasStatus_t status = cublas().create(&state_->handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Error(Code::kUnsupported, fmt::format("cuBLASLt can't be used on this GPU: {}",
                                                cublas().get_status_string(status)));
  }
}

Cublas::~Cublas() = default;

std::string Cublas::version() const {
  return fmt::format("{}", cublas().get_version());
}

std::vector<CublasAlgorithm> Cublas::propose(const MatmulLaunch& args, int count) const {
  const Problem problem(args);
  const Preference preference(args);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(count));
  int num_found = 0;
  const cublasStatus_t status =
      cublas().get_heuristic(state_->handle, problem.operation, problem.w, problem.x, problem.out,
                             problem.out, preference.get(), count, results.data(), &num_found);
  if (is_refusal(status)) return {};
  check_cublas(status, "asking for algorithms");
  std::vector<CublasAlgorithm> out;
  for (int i = 0; i < num_found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    std::memcpy(&out.emplace_back(), &result.algo, sizeof result.algo);
  }
  return out;
}

bool Cublas::run(cudaStream_t stream,
                 const MatmulLaunch& args,
                 const CublasAlgorithm& algorithm,
                 void* workspace) const {
  const Problem problem(args);
  cublasLtMatmulAlgo_t algo;
  std::memcpy(&algo, &algorithm, sizeof algo);
  const float one = 1.0F;
  const float zero = 0.0F;
  const cublasStatus_t status =
      cublas().matmul(state_->handle, problem.operation, &one, args.w, problem.w, args.x.data,
                      problem.x, &zero, args.out.data, problem.out, args.out.data, problem.out,
                      &algo, workspace, kCublasWorkspaceBytes, stream);
  if (is_refusal(status)) return false;
  check_cublas(status, "a matmul");
  return true;
}

}  // namespace tgi::cuda
