// See cpu_adapter.h.
#include "engine/cpu/cpu_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/thread_pool.h"

namespace tgi {
namespace {

using PartsOfSite = std::map<int32_t, std::vector<const LowRankPart*>>;

PartsOfSite by_site(std::span<const LowRankPart> parts) {
  PartsOfSite out;
  for (const LowRankPart& part : parts) {
    if (part.a.rows > kMaxAdapterRank) {
      throw Error(Code::kUnsupported, fmt::format("{}: rank {}, where adapters of ranks up to {} "
                                                  "are supported",
                                                  part.a.name, part.a.rows, kMaxAdapterRank));
    }
    out[part.site].push_back(&part);
  }
  return out;
}

constexpr int64_t kPreparedRank = prepared_row_bytes(kMaxAdapterRank * 4);

}  // namespace

CpuAdapter::CpuAdapter(std::span<const LowRankPart> parts,
                       DType dtype,
                       const KernelTable& kernels) {
  ThreadPool alone(1, false, 0);
  const MatrixStorage storage(dtype);
  for (const auto& [site, at_site] : by_site(parts)) {
    auto product = std::make_unique<Product>();
    std::vector<HostWeight> stacked;
    int64_t rank = 0;
    for (const LowRankPart* part : at_site) {
      product->parts.push_back(
          {.b = std::make_unique<PanelMatrix>(part->b, storage, kernels, alone),
           .first_rank = rank,
           .first_output = part->first_output,
           .scale = part->scale});
      stacked.push_back(part->a);
      rank += part->a.rows;
      size_bytes += product->parts.back().b->size_bytes;
    }
    TGI_CHECK(rank <= kMaxStackedRank);
    product->a = std::make_unique<PanelMatrix>(stacked, storage, kernels, alone);
    size_bytes += product->a->size_bytes;
    by_site_.resize(std::max(by_site_.size(), static_cast<size_t>(site) + 1));
    by_site_[static_cast<size_t>(site)] = std::move(product);
  }
}

int64_t CpuAdapter::bytes(std::span<const LowRankPart> parts,
                          DType dtype,
                          const KernelTable& kernels) {
  int64_t total = 0;
  const auto matrix = [&](int64_t rows, int64_t cols) {
    total += PanelMatrix::bytes(
        PanelMatrix::layout_for(MatrixStorage(dtype), kernels.pair_order, cols), rows);
  };
  for (const auto& [site, at_site] : by_site(parts)) {
    int64_t rank = 0;
    for (const LowRankPart* part : at_site) {
      matrix(part->num_outputs(), part->a.rows);
      rank += part->a.rows;
    }
    matrix(rank, at_site.front()->a.cols);
  }
  return total;
}

void AdapterRows::reserve(int64_t max_rows) {
  const auto count = static_cast<size_t>(max_rows);
  runs_.reserve(count);
  segments_.reserve(count);
  rows_.reserve(count);
}

void AdapterRows::begin() {
  runs_.clear();
  segments_.clear();
  rows_.clear();
}

void AdapterRows::add(const CpuAdapter* adapter, int64_t first_row, int64_t count) {
  if (adapter != nullptr) runs_.push_back({adapter, first_row, count});
}

void AdapterRows::finish() {
  std::ranges::sort(runs_, [](const Run& a, const Run& b) {
    return a.adapter != b.adapter ? std::less<>()(a.adapter, b.adapter) : a.first_row < b.first_row;
  });
  for (const Run& run : runs_) {
    if (segments_.empty() || segments_.back().adapter != run.adapter) {
      segments_.push_back(
          {.adapter = run.adapter, .first = static_cast<int64_t>(rows_.size()), .count = 0});
    }
    segments_.back().count += run.count;
    for (int64_t i = 0; i < run.count; ++i) rows_.push_back(run.first_row + i);
  }
}

LowRankScratch::LowRankScratch()
    : shrunk(map_memory(static_cast<size_t>(kLowRankRows * kMaxStackedRank) * sizeof(float),
                        "adapter workspace")),
      prepared(map_memory(static_cast<size_t>((kLowRankRows + kExtraPreparedRows) * kPreparedRank),
                          "adapter workspace")),
      product(map_memory(static_cast<size_t>(kLowRankRows * kLowRankOutputs) * sizeof(float),
                         "adapter workspace")) {}

int64_t LowRankScratch::bytes() {
  return kLowRankRows * (kMaxStackedRank + kLowRankOutputs) * int64_t{sizeof(float)} +
         (kLowRankRows + kExtraPreparedRows) * kPreparedRank;
}

}  // namespace tgi
