// Which GPUs a build is for: the list of CMake, and GPUs that are refused by name.
#include "cuda/architectures.h"

#include <cuda_emulation.h>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"

namespace tgi::cuda {
namespace {

bool any_runs_on(std::string_view list, int major, int minor) {
  for (const Architecture& built : parse_architectures(list)) {
    if (runs_on(built, major, minor)) return true;
  }
  return false;
}

class CapabilityGuard {
 public:
  CapabilityGuard(int major, int minor) { cuda_emulation::set_compute_capability(major, minor); }
  ~CapabilityGuard() { cuda_emulation::set_compute_capability(9, 0); }
  CapabilityGuard(const CapabilityGuard&) = delete;
  CapabilityGuard& operator=(const CapabilityGuard&) = delete;
};

}  // namespace

TEST_CASE("machine code runs on later GPUs of its major number, PTX on all later ones") {
  CHECK(any_runs_on("80-real", 8, 0));
  CHECK(any_runs_on("80-real", 8, 6));
  CHECK_FALSE(any_runs_on("86-real", 8, 0));
  CHECK_FALSE(any_runs_on("80-real", 9, 0));
  CHECK(any_runs_on("90a-real", 9, 0));
  CHECK_FALSE(any_runs_on("100a-real", 10, 3));
  CHECK(any_runs_on("100f-real", 10, 3));
  CHECK(any_runs_on("100-real", 10, 3));
  CHECK_FALSE(any_runs_on("100-real", 11, 0));
  CHECK_FALSE(any_runs_on("100-real;120-real", 11, 0));
  CHECK(any_runs_on("80-real,120-real", 12, 1));
  CHECK(any_runs_on("90", 12, 0));
  CHECK(any_runs_on("90-virtual", 12, 0));
  CHECK_FALSE(any_runs_on("90a-virtual", 12, 0));
  CHECK_FALSE(any_runs_on("", 9, 0));
}

TEST_CASE("a list of architectures that are no numbers is refused by name") {
  for (const std::string_view list : {"native", "all-major", "80-real;sm_90", "9-real", "-real"}) {
    INFO(list);
    CHECK_THROWS_WITH(parse_architectures(list), Catch::Contains("expected numbers like 90-real"));
  }
}

TEST_CASE("a GPU that nothing was built for is refused with its name and what there is") {
  const auto make = [] { return emulated_backend().make_device({}); };
  for (const auto& [major, minor] :
       {std::pair(8, 0), std::pair(8, 6), std::pair(8, 9), std::pair(9, 0)}) {
    const CapabilityGuard guard(major, minor);
    INFO(major << "." << minor);
    CHECK_NOTHROW(make());
  }
  for (const auto& [major, minor] : {std::pair(7, 5), std::pair(10, 0), std::pair(12, 0)}) {
    const CapabilityGuard guard(major, minor);
    const std::string capability = std::to_string(major) + "." + std::to_string(minor);
    CHECK_THROWS_WITH(make(), Catch::Contains("Emulated GPU") && Catch::Contains(capability) &&
                                  Catch::Contains("sm_80, sm_89, sm_90a") &&
                                  Catch::Contains("--backend cpu"));
  }
}

}  // namespace tgi::cuda
