// See kernel_checks.h.
#include "engine/cpu/kernel_checks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "engine/cpu/flush_denormals.h"
#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;  // of memory at a time

// The same bits; of NaN only that it is one.
bool agree(float expected, float got) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  return std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(got);
}

}  // namespace

KernelChecks::KernelChecks(const KernelTable& reference) : reference_(reference) {
  const FlushDenormals flush;
  add_matmul_checks(*this);
  add_attention_checks(*this);
  add_row_checks(*this);
  add_state_checks(*this);
  add_stream_checks(*this);
}

std::optional<KernelDifference> KernelChecks::run(int check, const KernelTable& kernels) const {
  const FlushDenormals flush;
  const Check& one = checks_[static_cast<size_t>(check)];
  const std::span<const float> got = one.run(kernels);
  for (size_t i = 0; i < got.size(); ++i) {
    if (agree(one.expected[i], got[i])) continue;
    return KernelDifference{
        .index = static_cast<int64_t>(i), .expected = one.expected[i], .got = got[i]};
  }
  return std::nullopt;
}

std::span<std::byte> KernelChecks::bytes(int64_t count) {
  const int64_t wanted = round_up(count, 64);
  if (memory_.empty() || used_ + static_cast<size_t>(wanted) > memory_.back().size_bytes()) {
    memory_.push_back(
        map_memory(static_cast<size_t>(std::max(wanted, kPieceBytes)), "kernel checks"));
    used_ = 0;
  }
  auto* const begin = static_cast<std::byte*>(memory_.back().data()) + used_;
  used_ += static_cast<size_t>(wanted);
  return {begin, static_cast<size_t>(count)};
}

std::span<float> KernelChecks::floats(int64_t count) {
  const std::span<std::byte> room = bytes(count * int64_t{sizeof(float)});
  return {reinterpret_cast<float*>(room.data()), static_cast<size_t>(count)};
}

std::span<float> KernelChecks::random_floats(int64_t count) {
  const std::span<float> out = floats(count);
  for (float& x : out) {
    random_ = random_ * 1664525U + 1013904223U;
    x = static_cast<float>(static_cast<int32_t>(random_)) * 0x1p-31F;
  }
  return out;
}

std::span<const float> KernelChecks::add(std::string name, Run run) {
  const std::span<const float> made = run(reference_);
  TGI_CHECK(!made.empty());
  const std::span<float> expected = floats(static_cast<int64_t>(made.size()));
  std::copy(made.begin(), made.end(), expected.begin());
  add(std::move(name), expected, std::move(run));
  return expected;
}

void KernelChecks::add(std::string name, std::span<const float> expected, Run run) {
  checks_.push_back({.name = std::move(name), .expected = expected, .run = std::move(run)});
}

}  // namespace tgi
