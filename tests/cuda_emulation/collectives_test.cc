// Barriers, shuffles, votes, reductions and atomics, each against what a plain loop gives; the bits
// and the arithmetic of single threads.
#include <numeric>
#include <random>

#include "tests/catch.h"
#include "tests/cuda_emulation/test_support.h"

using namespace tgi::cuda_emulation_tests;

namespace {

constexpr unsigned kFull = 0xffffffffu;
constexpr int kShuffles = 4;

template <typename T>
__global__ void shuffle_kernel(T* out, const T* in, int width, int by) {
  const int lane = static_cast<int>(threadIdx.x);
  const T mine = in[lane];
  out[lane] = __shfl_sync(kFull, mine, by, width);
  out[32 + lane] = __shfl_xor_sync(kFull, mine, by, width);
  out[64 + lane] = __shfl_down_sync(kFull, mine, static_cast<unsigned>(by), width);
  out[96 + lane] = __shfl_up_sync(kFull, mine, static_cast<unsigned>(by), width);
}

template <typename T>
void check_shuffles() {
  std::mt19937 random(3);
  std::vector<T> in(32);
  for (T& value : in) value = static_cast<T>(static_cast<int>(random() % 251));
  const DeviceArray<T> from(in), to(32 * kShuffles);
  for (int width = 1; width <= 32; width *= 2) {
    for (int by = 0; by < 32; ++by) {
      launch({}, shuffle_kernel<T>, to.data(), from.data(), width, by);
      const std::vector<T> out = to.values();
      for (int lane = 0; lane < 32; ++lane) {
        const int first = lane / width * width;
        const int last = first + width - 1;
        const auto at = [&](int i) { return in[static_cast<size_t>(i)]; };
        const auto got = [&](int i) { return out[static_cast<size_t>(i * 32 + lane)]; };
        REQUIRE(got(0) == at(first + by % width));
        REQUIRE(got(1) == at((lane ^ by) <= last ? lane ^ by : lane));
        REQUIRE(got(2) == at(lane + by <= last ? lane + by : lane));
        REQUIRE(got(3) == at(lane - by >= first ? lane - by : lane));
      }
    }
  }
}

struct Votes {
  unsigned ballot;
  int any, all;
  unsigned sum, least, most;
  int signed_sum, signed_least, signed_most;
};

__global__ void vote_kernel(Votes* out, const int* in) {
  const unsigned i = threadIdx.x;
  const int mine = in[i];
  out[i].ballot = __ballot_sync(kFull, mine > 0);
  out[i].any = __any_sync(kFull, mine > 90);
  out[i].all = __all_sync(kFull, mine > -90);
  const auto bits = static_cast<unsigned>(mine);
  out[i].sum = __reduce_add_sync(kFull, bits);
  out[i].least = __reduce_min_sync(kFull, bits);
  out[i].most = __reduce_max_sync(kFull, bits);
  out[i].signed_sum = __reduce_add_sync(kFull, mine);
  out[i].signed_least = __reduce_min_sync(kFull, mine);
  out[i].signed_most = __reduce_max_sync(kFull, mine);
}

__global__ void block_votes_kernel(int* out, const int* in) {
  const unsigned i = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[3 * i] = __syncthreads_or(in[i] > 8);
  out[3 * i + 1] = __syncthreads_and(in[i] > 1);
  out[3 * i + 2] = __syncthreads_count(in[i] % 2);
}

__global__ void atomics_kernel(int* ints,
                               unsigned* unsigneds,
                               unsigned long long* longs,
                               float* sum) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&ints[0], static_cast<int>(i) - 50);
  atomicMax(&ints[1], static_cast<int>(i) - 50);
  atomicMin(&ints[2], static_cast<int>(i) - 50);
  unsigneds[8 + i] = atomicAdd(&unsigneds[0], 1u);
  atomicOr(&unsigneds[1], 1u << i % 20);
  atomicInc(&unsigneds[2], 9u);
  atomicMax(&longs[0], 0x100000000ull + i);
  for (unsigned long long old = longs[1], seen;; old = seen) {
    seen = atomicCAS(&longs[1], old, old + i);
    if (seen == old) break;
  }
  atomicExch(&longs[2], 7ull);
  atomicAdd(sum, 0.5f);
}

__global__ void position_kernel(unsigned* out) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  __syncthreads();
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = threadIdx.x | threadIdx.y << 4 |
                                                               threadIdx.z << 8 | blockIdx.x << 12 |
                                                               blockIdx.y << 16 | blockIdx.z << 20;
}

}  // namespace

TEST_CASE("shuffles of every width and type") {
  check_shuffles<int>();
  check_shuffles<unsigned short>();
  check_shuffles<float>();
  check_shuffles<double>();
  check_shuffles<long long>();
}

TEST_CASE("votes and reductions of a warp, of a part of one too") {
  std::mt19937 random(4);
  for (const unsigned lanes : {32u, 20u, 1u}) {
    std::vector<int> in(lanes);
    for (int& value : in) value = static_cast<int>(random() % 200) - 100;
    const DeviceArray<int> from(in);
    const DeviceArray<Votes> to(lanes);
    launch({.block = lanes}, vote_kernel, to.data(), from.data());
    unsigned ballot = 0, sum = 0, least = ~0u, most = 0;
    for (unsigned i = 0; i < lanes; ++i) {
      const auto bits = static_cast<unsigned>(in[i]);
      if (in[i] > 0) ballot |= 1u << i;
      sum += bits;
      least = std::min(least, bits);
      most = std::max(most, bits);
    }
    const auto [low, high] = std::minmax_element(in.begin(), in.end());
    for (const Votes& votes : to.values()) {
      REQUIRE(votes.ballot == ballot);
      REQUIRE(votes.any == (*high > 90));
      REQUIRE(votes.all == (*low > -90));
      REQUIRE(votes.sum == sum);
      REQUIRE(votes.least == least);
      REQUIRE(votes.most == most);
      REQUIRE(votes.signed_sum == static_cast<int>(sum));
      REQUIRE(votes.signed_least == *low);
      REQUIRE(votes.signed_most == *high);
    }
  }
}

TEST_CASE("__syncthreads_or, _and and _count") {
  const std::vector<int> in = {5, 3, 2, 2, 9, 4, 3, 7, 2, 2, 2, 8, 6, 4, 2, 2, 2, 2, 2, 2,
                               2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2};
  const DeviceArray<int> from(in), to(3 * in.size());
  launch({.block = dim3(5, 2, 4)}, block_votes_kernel, to.data(), from.data());
  const std::vector<int> out = to.values();
  for (size_t i = 0; i < in.size(); ++i) {
    CHECK(out[3 * i] == 1);
    CHECK(out[3 * i + 1] == 1);
    CHECK(out[3 * i + 2] == 6);
  }
}

TEST_CASE("atomics of all blocks") {
  for (const Order order : kOrders) {
    const OrderGuard guard(order);
    const DeviceArray<int> ints({0, -1000, 1000});
    const DeviceArray<unsigned> unsigneds(std::vector<unsigned>(8 + 200));
    const DeviceArray<unsigned long long> longs({0, 0, 0});
    const DeviceArray<float> sum(std::vector<float>{1.0f});
    launch({.grid = 4, .block = 50}, atomics_kernel, ints.data(), unsigneds.data(), longs.data(),
           sum.data());
    CHECK(ints.values() == std::vector<int>{9900, 149, -50});
    std::vector<unsigned> got = unsigneds.values();
    CHECK((got[0] == 200 && got[1] == 0xfffffu && got[2] == 0));
    std::sort(got.begin() + 8, got.end());  // each old value was seen by one thread
    for (unsigned i = 0; i < 200; ++i) REQUIRE(got[8 + i] == i);
    CHECK(longs.values() == std::vector<unsigned long long>{0x1000000c7ull, 19900, 7});
    CHECK(sum.values()[0] == 101.0f);
  }
}

TEST_CASE("every thread of every block knows where it is") {
  const dim3 grid(3, 2, 4), block(5, 3, 7);
  for (const Order order : kOrders) {
    const OrderGuard guard(order, 9);
    const DeviceArray<unsigned> to(24 * 105);
    launch({.grid = grid, .block = block}, position_kernel, to.data());
    const std::vector<unsigned> out = to.values();
    for (unsigned i = 0; i < out.size(); ++i) {
      const unsigned thread = i % 105, which = i / 105;
      REQUIRE(out[i] == (thread % 5 | thread / 5 % 3 << 4 | thread / 15 << 8 | which % 3 << 12 |
                         which / 3 % 2 << 16 | which / 6 << 20));
    }
  }
}

TEST_CASE("bits, conversions and arithmetic of single threads") {
  CHECK(__popc(0xf0f0u) == 8);
  CHECK(__popcll(~0ull) == 64);
  CHECK((__clz(1) == 31 && __clz(0) == 32));
  CHECK((__ffs(0) == 0 && __ffs(8) == 4));
  CHECK((__brev(1u) == 0x80000000u && __brev(0x12345678u) == 0x1e6a2c48u));
  CHECK(__byte_perm(0x33221100u, 0x77665544u, 0x7250u) == 0x77225500u);
  CHECK(__byte_perm(0x00008000u, 0u, 0x0009u) == 0x000000ffu);
  CHECK(__funnelshift_l(0x80000000u, 1u, 1) == 3u);
  CHECK(__funnelshift_r(2u, 1u, 1) == 0x80000001u);
  CHECK((__float_as_uint(1.0f) == 0x3f800000u && __int_as_float(0x40000000) == 2.0f));
  CHECK(__umulhi(0x80000000u, 6u) == 3u);
  CHECK(__umul64hi(1ull << 63, 6ull) == 3ull);
  CHECK(__mulhi(-1, 1) == -1);
  CHECK((__float2int_rn(2.5f) == 2 && __float2int_rn(3.5f) == 4 && __float2int_rd(-0.5f) == -1));
  CHECK(__expf(1.0f) == Approx(2.7182818f));
  CHECK((rsqrtf(4.0f) == 0.5f && __frcp_rn(8.0f) == 0.125f && __saturatef(NAN) == 0.0f));
  CHECK((::max(3, 7u) == 7u && ::min(NAN, 2.0f) == 2.0f && ::min(3L, 2) == 2));
}
