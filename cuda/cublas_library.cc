#include "cuda/cublas_library.h"

#include <string>

#include "cuda/library_symbols.h"

namespace tgi::cuda {
namespace {

CublasLibrary load() {
  const std::string file = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  void* const library = load_library(file, "the CUDA toolkit's cuBLAS");
  CublasLibrary out;
  const auto find = [&](const char* name, auto& function) {
    find_symbol(library, file, name, function);
  };
  find("cublasLtCreate", out.create);
  find("cublasLtDestroy", out.destroy);
  find("cublasLtGetVersion", out.get_version);
  find("cublasLtGetStatusString", out.get_status_string);
  find("cublasLtMatmul", out.matmul);
  find("cublasLtMatmulAlgoGetHeuristic", out.get_heuristic);
  find("cublasLtMatmulDescCreate", out.desc_create);
  find("cublasLtMatmulDescDestroy", out.desc_destroy);
  find("cublasLtMatmulDescSetAttribute", out.desc_set_attribute);
  find("cublasLtMatrixLayoutCreate", out.layout_create);
  find("cublasLtMatrixLayoutDestroy", out.layout_destroy);
  find("cublasLtMatmulPreferenceCreate", out.preference_create);
  find("cublasLtMatmulPreferenceDestroy", out.preference_destroy);
  find("cublasLtMatmulPreferenceSetAttribute", out.preference_set_attribute);
  return out;
}

}  // namespace

const CublasLibrary& cublas() {
  static const CublasLibrary library = load();
  return library;
}

}  // namespace tgi::cuda
