// The choice of matmul kernels: buckets, what is kept between processes, and files that can't be
// trusted.
#include "cuda/matmul_tuner.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi::cuda {
namespace {

const MatmulShape kShape = {
    .rows = 8, .outputs = 96, .cols = 64, .dtype = DType::kBF16, .out_dtype = DType::kF32};
const CublasAlgorithm kSlow = {1, 2, 3};
const CublasAlgorithm kFast = {7, 0xffffffffffffffffULL};

// Times by candidate; the stream kernel takes 50.
double time_of(const std::optional<CublasAlgorithm>& candidate) {
  if (!candidate) return 50.0;
  return *candidate == kFast ? 10.0 : 80.0;
}

}  // namespace

TEST_CASE("buckets of rows are close above and repeat themselves") {
  for (int64_t rows = 1; rows < 5000; ++rows) {
    const int64_t bucket = row_bucket(rows);
    REQUIRE(bucket >= rows);
    REQUIRE(row_bucket(bucket) == bucket);
    if (rows > 8) REQUIRE(static_cast<double>(bucket) < 1.8 * static_cast<double>(rows));
  }
  const std::vector<int64_t> all = row_buckets(300);
  CHECK(all.front() == 1);
  CHECK(all.back() == row_bucket(300));
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i] > all[i - 1]);
}

TEST_CASE("parts of a packed matrix fit, are whole panels, and as equal as they can be") {
  PackedShape shape;
  for (const auto& [outputs, cols] :
       {std::pair{28672, 4096}, {4096, 14336}, {150, 1096}, {7, 64}}) {
    shape.outputs = outputs;
    shape.cols = cols;
    for (const size_t bytes : {size_t{64} << 20, size_t{1} << 20}) {
      INFO(outputs << " x " << cols << " in " << bytes);
      const int32_t part = unpacked_outputs(shape, bytes);
      CHECK(part % kPanelOutputs == 0);
      CHECK(static_cast<size_t>(part) * static_cast<size_t>(cols) * 2 <= bytes);
      const int32_t parts = (outputs + part - 1) / part;
      // Half as many would not do, and little of the last is missing.
      CHECK((parts == 1 || static_cast<size_t>(outputs) * static_cast<size_t>(cols) * 2 >
                               static_cast<size_t>(parts - 1) * bytes / 2));
      CHECK(parts * part - outputs < 128 * parts);
    }
  }
}

TEST_CASE("the fastest candidate is chosen, kept, and found by the next process") {
  const TempFolder folder;
  const std::string path = folder.file("deep/er/matmul.jsonl");
  {
    MatmulTuner tuner(path, "a GPU, driver 1");
    CHECK(tuner.find(kShape) == nullptr);
    const MatmulChoice& choice = tuner.choose(kShape, {std::nullopt, kSlow, kFast}, time_of);
    CHECK(choice.algorithm == kFast);
    CHECK(choice.microseconds == 10.0);
    MatmulShape other = kShape;
    other.rows = 1;
    CHECK_FALSE(tuner.choose(other, {std::nullopt, kSlow}, time_of).algorithm);
    tuner.adopt({.rows = 2, .outputs = 1, .cols = 1}, {});
    tuner.save();
  }
  const MatmulTuner next(path, "a GPU, driver 1");
  REQUIRE(next.find(kShape) != nullptr);
  CHECK(next.find(kShape)->algorithm == kFast);
  MatmulShape other = kShape;
  other.rows = 1;
  REQUIRE(next.find(other) != nullptr);
  CHECK_FALSE(next.find(other)->algorithm);
  CHECK(next.find({.rows = 2, .outputs = 1, .cols = 1}) == nullptr);  // adopted only

  const MatmulTuner another(path, "a GPU, driver 2");
  CHECK(another.find(kShape) == nullptr);
}

TEST_CASE("a file that can't be read counts as empty and is written anew") {
  const TempFolder folder;
  const std::string path = folder.file("matmul.jsonl");
  for (const std::string text :
       {"", "rubbish", "{\"combination\": 3}\n", "{\"combination\": \"c\"}\n{\"rows\": \"x\"}\n",
        "{\"combination\": \"c\"}\n{\"rows\": 8}\n"}) {
    std::ofstream(path) << text;
    MatmulTuner tuner(path, "c");
    CHECK(tuner.find(kShape) == nullptr);
    tuner.choose(kShape, {std::nullopt, kFast}, time_of);
    tuner.save();
    CHECK(MatmulTuner(path, "c").find(kShape) != nullptr);
  }
}

TEST_CASE(
    "a candidate that does not suit the shape is passed over; none left is an error with the "
    "shape") {
  MatmulTuner tuner("", "c");
  const auto run = [](const std::optional<CublasAlgorithm>& candidate) -> double {
    if (candidate == kFast) throw Error(Code::kUnsupported, "not for this shape");
    return time_of(candidate);
  };
  CHECK_FALSE(tuner.choose(kShape, {kFast, std::nullopt}, run).algorithm);
  CHECK_THROWS_WITH(tuner.choose(kShape, {kFast, kFast}, run), Catch::Contains("(96, 64)"));
  const auto lost = [](const std::optional<CublasAlgorithm>&) -> double {
    throw Error(Code::kDeviceLost, "gone");
  };
  CHECK_THROWS_AS(tuner.choose(kShape, {kFast, std::nullopt}, lost), Error);
}

TEST_CASE("a folder that can't be written costs nothing but the file") {
  MatmulTuner tuner("/proc/nowhere/matmul.jsonl", "c");
  tuner.choose(kShape, {std::nullopt, kFast}, time_of);
  tuner.save();
  CHECK(tuner.find(kShape) != nullptr);
}

}  // namespace tgi::cuda
