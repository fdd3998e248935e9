// The tables of experts' matrices that captured steps read.
#include "cuda/expert_tables.h"

#include "cuda/cuda_matrix.h"
#include "tests/catch.h"

namespace tgi::cuda {
namespace {

std::vector<CudaMatrix> some_matrices(size_t count) {
  std::vector<CudaMatrix> out(count);
  for (CudaMatrix& each : out) each.memory = allocate_device(64, "a matrix");
  return out;
}

std::vector<const void*> read_table(const Stream& stream,
                                    const ExpertPointers* table,
                                    size_t count) {
  std::vector<ExpertPointers> got(count);
  stream.synchronize();
  REQUIRE(cudaMemcpy(got.data(), table, count * sizeof got[0], cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  std::vector<const void*> out;
  for (const ExpertPointers& each : got) {
    CHECK(each.bias == nullptr);
    out.push_back(each.w);
  }
  return out;
}

}  // namespace

TEST_CASE("a table of experts is made once, and anew for others at the same place") {
  const Stream stream;
  const std::vector<CudaMatrix> matrices = some_matrices(5);
  const auto address = [&](size_t i) -> const void* { return matrices[i].memory.data(); };
  for (const size_t room : {0, 2, 100}) {
    ExpertTables tables;
    tables.reset(room);
    std::vector<ExpertWeight> experts = {{.w = &matrices[0]}, {.w = &matrices[1]}};
    const std::vector<ExpertWeight> others = {{.w = &matrices[4]}};
    const ExpertPointers* const first = tables.table_of(stream.get(), experts);
    const ExpertPointers* const second = tables.table_of(stream.get(), others);
    CHECK(tables.table_of(stream.get(), experts) == first);
    CHECK(tables.table_of(stream.get(), others) == second);
    CHECK(read_table(stream, first, 2) == std::vector<const void*>{address(0), address(1)});
    CHECK(read_table(stream, second, 1) == std::vector<const void*>{address(4)});

    experts[1].w = &matrices[3];
    const ExpertPointers* const changed = tables.table_of(stream.get(), experts);
    CHECK(changed != first);
    CHECK(read_table(stream, changed, 2) == std::vector<const void*>{address(0), address(3)});
    // A step that is on its way may still read the one before.
    CHECK(read_table(stream, first, 2) == std::vector<const void*>{address(0), address(1)});
  }
}

}  // namespace tgi::cuda
