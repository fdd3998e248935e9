// Sums over ranks in host memory: the bits of one order on every rank, and no rank that waits for
// ever.
#include "engine/cpu/host_communicator.h"

#include <time.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "base/error.h"
#include "engine/tensor/half.h"
#include "tests/catch.h"

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;

// Runs fn(rank) on a thread for each rank; what each threw, or "".
std::vector<std::string> run_ranks(int world_size, const std::function<void(int)>& fn) {
  std::vector<std::string> errors(static_cast<size_t>(world_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        fn(rank);
      } catch (const Error& error) {
        std::string& message = errors[static_cast<size_t>(rank)];
        message = error.what();
        if (error.code() != Code::kDeviceLost) message += " (of another code)";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

float load(const std::vector<std::byte>& bytes, DType dtype, size_t index) {
  if (dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, bytes.data() + index * 4, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * 2, 2);
  return dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

void store(std::vector<std::byte>& bytes, DType dtype, size_t index, float value) {
  if (dtype == DType::kF32) {
    std::memcpy(bytes.data() + index * 4, &value, 4);
    return;
  }
  const uint16_t bits = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(bytes.data() + index * 2, &bits, 2);
}

// A tensor for each rank: numbers of very different sizes, so that the order of a sum shows in its
// bits.
std::vector<std::vector<std::byte>> random_tensors(int world_size, DType dtype, size_t size) {
  std::mt19937 random(static_cast<uint32_t>(size) * 31 + static_cast<uint32_t>(world_size));
  std::vector<std::vector<std::byte>> out;
  for (int rank = 0; rank < world_size; ++rank) {
    auto& bytes = out.emplace_back(size * dtype_size(dtype));
    for (size_t i = 0; i < size; ++i) {
      const float sign = random() % 2 == 0 ? 1.0F : -1.0F;
      const auto fraction = static_cast<float>(random() % 65536) / 65536.0F;
      store(bytes, dtype, i,
            std::ldexp(sign * (1 + fraction), static_cast<int>(random() % 16) - 8));
    }
  }
  return out;
}

std::vector<std::byte> serial_sum(const std::vector<std::vector<std::byte>>& tensors,
                                  DType dtype,
                                  size_t size) {
  std::vector<std::byte> out(tensors.front().size());
  for (size_t i = 0; i < size; ++i) {
    float sum = load(tensors[0], dtype, i);
    for (size_t rank = 1; rank < tensors.size(); ++rank) sum += load(tensors[rank], dtype, i);
    store(out, dtype, i, sum);
  }
  return out;
}

Tensor view(std::vector<std::byte>& bytes, DType dtype, int64_t rows, int64_t cols) {
  return {bytes.data(), dtype, rows, cols, cols};
}

void check_sum(int world_size, DType dtype, int64_t rows, int64_t cols) {
  INFO(world_size << " ranks, (" << rows << ", " << cols << ") of " << dtype_name(dtype));
  const auto size = static_cast<size_t>(rows * cols);
  auto tensors = random_tensors(world_size, dtype, size);
  const auto expected = serial_sum(tensors, dtype, size);
  const auto communicators = make_host_communicators(world_size);
  const auto errors = run_ranks(world_size, [&](int rank) {
    const auto index = static_cast<size_t>(rank);
    communicators[index]->all_reduce_sum(view(tensors[index], dtype, rows, cols));
  });
  CHECK(errors == std::vector<std::string>(static_cast<size_t>(world_size)));
  for (const auto& tensor : tensors) CHECK((tensor == expected));
}

}  // namespace

TEST_CASE("a sum over ranks has the bits of adding them in order, on every rank") {
  for (const int world_size : {1, 2, 4, 7}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const int64_t cols : {1, 36, 64, 449, 2048}) {
        check_sum(world_size, dtype, 1, cols);
        check_sum(world_size, dtype, 5, cols);
      }
    }
  }
}

TEST_CASE("thousands of sums in a row keep the ranks together") {
  constexpr int kRanks = 4;
  const auto communicators = make_host_communicators(kRanks);
  const auto errors = run_ranks(kRanks, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<size_t>(rank)];
    if (communicator.rank() != rank || communicator.world_size() != kRanks)
      throw Error(Code::kInternal, "wrong place");
    std::vector<float> values(130);
    for (int round = 0; round < 1000; ++round) {
      std::fill(values.begin(), values.end(), static_cast<float>(rank + round));
      communicator.all_reduce_sum({values.data(), DType::kF32, 1, 130, 130});
      for (const float value : values) {
        if (value != static_cast<float>(6 + 4 * round)) throw Error(Code::kInternal, "wrong sum");
      }
      // Ranks that are late in turn.
      if (round % 250 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  CHECK(errors == std::vector<std::string>(kRanks));
}

TEST_CASE("ranks that do not come are named when the time is up") {
  const auto communicators = make_host_communicators(4, std::chrono::milliseconds(500));
  std::vector<float> values(4 * 8);
  const auto reduce = [&](int rank) {
    const auto index = static_cast<size_t>(rank);
    communicators[index]->all_reduce_sum({values.data() + index * 8, DType::kF32, 1, 8, 8});
  };
  const auto errors = run_ranks(4, [&](int rank) {
    if (rank % 2 == 0) reduce(rank);
  });
  for (const size_t rank : {0U, 2U}) {
    CHECK(errors[rank] == "ranks 1, 3 of 4 did not come to a reduction within 0.5 s");
  }
  // Those that come later find out, and nobody waits again.
  const auto started = Clock::now();
  for (const std::string& error : run_ranks(4, reduce)) {
    CHECK(error == "ranks 1, 3 of 4 did not come to a reduction within 0.5 s");
  }
  CHECK(Clock::now() - started < std::chrono::milliseconds(400));
}

TEST_CASE("an abort wakes all who wait and says whose fault it is") {
  const auto communicators = make_host_communicators(3);
  const auto started = Clock::now();
  std::vector<float> values(3 * 8);
  const auto errors = run_ranks(3, [&](int rank) {
    const auto index = static_cast<size_t>(rank);
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      communicators[1]->abort(1, "out of ideas");
      communicators[1]->abort(2, "too late to be told");
    }
    communicators[index]->all_reduce_sum({values.data() + index * 8, DType::kF32, 1, 8, 8});
  });
  for (const std::string& error : errors) CHECK(error == "rank 1 of 3 failed: out of ideas");
  CHECK(Clock::now() - started < std::chrono::seconds(20));
}

TEST_CASE("ranks that reduce different shapes are told so instead of adding them up") {
  const auto communicators = make_host_communicators(2);
  std::vector<float> values(64);
  const auto errors = run_ranks(2, [&](int rank) {
    communicators[static_cast<size_t>(rank)]->all_reduce_sum(
        {values.data() + rank * 32, DType::kF32, 1 + rank, 16, 16});
  });
  CHECK(errors[0] == "ranks are out of step: rank 0 reduces (1, 16) of f32, rank 1 (2, 16) of f32");
  CHECK(errors[1] == "ranks are out of step: rank 1 reduces (2, 16) of f32, rank 0 (1, 16) of f32");
}

TEST_CASE("a rank that waits takes next to no processor time") {
  const auto communicators = make_host_communicators(2);
  double waited_seconds = 0;
  float values[2] = {1, 2};
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    communicators[static_cast<size_t>(rank)]->all_reduce_sum({&values[rank], DType::kF32, 1, 1, 1});
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    if (rank == 0) waited_seconds = static_cast<double>(time.tv_nsec) * 1e-9;
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(values[0] == 3);
  CHECK(waited_seconds < 0.05);
}

}  // namespace tgi
