// See cpu_adapter.h.
#include "engine/cpu/cpu_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/thread_pool.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

using PartsOfSite = std::map<int32_t, std::vector<const LowRankPart*>>;

PartsOfSite by_site(std::span<const LowRankPart> parts) {
  PartsOfSite out;
  for (const LowRankPart& part : parts) {
    require_rank(part);
    out[part.site].push_back(&part);
  }
  return out;
}

constexpr int64_t kPreparedRank = prepared_row_bytes(kMaxAdapterRank * 4);

// bf16 comes in blocks of columns that a short row leaves half empty, and the products of one row
// take the time that reading them takes: then b is f16, which has no blocks.
DType held_type(DType dtype, int64_t rank) {
  const bool fills_blocks = round_up(rank, kPairBlock) <= rank + rank / 4;
  return dtype == DType::kBF16 && !fills_blocks ? DType::kF16 : dtype;
}

int64_t matrix_bytes(DType dtype, const KernelTable& kernels, int64_t rows, int64_t cols) {
  return PanelMatrix::bytes(PanelMatrix::layout_for(MatrixStorage(dtype), kernels.pair_order, cols),
                            rows);
}

int64_t vector_bytes(std::span<const LowRankPart> parts) {
  size_t count = 0;
  for (const LowRankPart& part : parts) count += part.gain.size() + part.offset.size();
  return static_cast<int64_t>(count * sizeof(float));
}

// The pieces one below the other, times the power of two that brings the largest number near the
// largest of f16: then rounding to f16 keeps more of them than bf16 has.
struct Shifted {
  explicit Shifted(std::span<const HostWeight> pieces) {
    float largest = 0;
    for (const HostWeight& piece : pieces) {
      const WeightPart& part = dense_part(piece);
      for (int64_t row = 0; row < piece.rows; ++row) {
        for (int64_t col = 0; col < piece.cols; ++col) {
          values.push_back(weight_element(part, row, col));
          largest = std::max(largest, std::abs(values.back()));
        }
      }
      weight.rows += piece.rows;
    }
    if (largest > 0 && std::isfinite(largest)) exponent = 15 - std::ilogb(largest) - 1;
    // A power that is no number of f32 itself is not needed: so small, all are nothing.
    exponent = std::clamp(exponent, -120, 120);
    const float power = std::ldexp(1.0F, exponent);
    for (float& value : values) value *= power;
    weight.name = pieces.front().name;
    weight.format = "dense";
    weight.cols = pieces.front().cols;
    weight.parts.push_back({.role = "weight",
                            .data = reinterpret_cast<const std::byte*>(values.data()),
                            .dtype = DType::kF32,
                            .rows = weight.rows,
                            .cols = weight.cols,
                            .row_stride = weight.cols});
  }
  Shifted(const Shifted&) = delete;
  Shifted& operator=(const Shifted&) = delete;

  std::vector<float> values;
  HostWeight weight;
  int exponent = 0;
};

}  // namespace

CpuAdapter::CpuAdapter(std::span<const LowRankPart> parts,
                       DType dtype,
                       const KernelTable& kernels) {
  ThreadPool alone(1, false, 0);
  size_bytes = bytes(parts, dtype, kernels);
  const int64_t matrices = size_bytes - vector_bytes(parts);
  if (matrices > 0) memory_ = map_memory(static_cast<size_t>(matrices), "adapter");
  auto* memory = static_cast<std::byte*>(memory_.data());
  const auto make = [&](std::span<const HostWeight> pieces, DType type) {
    auto out = std::make_unique<PanelMatrix>(pieces, MatrixStorage(type), kernels, alone, memory);
    memory += out->size_bytes;
    return out;
  };
  for (const auto& [site, at_site] : by_site(parts)) {
    auto product = std::make_unique<Product>();
    std::vector<HostWeight> stacked;
    for (const LowRankPart* part : at_site) {
      if (part->is_lookup) {
        TGI_CHECK(at_site.size() == 1);
        product->table = make(std::span(&part->a, 1), dtype);
      } else if (part->rank() > 0) {
        stacked.push_back(part->a);
      }
    }
    if (!stacked.empty()) {
      product->a = make(stacked, dtype);
      TGI_CHECK(product->a->rows <= kMaxStackedRank);
    }
    int64_t rank = 0;
    for (const LowRankPart* part : at_site) {
      Part& made = product->parts.emplace_back();
      made.first_rank = rank;
      made.first_output = part->first_output;
      made.num_outputs = part->num_outputs();
      made.scale = part->scale;
      made.gain = part->gain;
      made.offset = part->offset;
      if (part->rank() == 0) continue;
      rank += part->rank();
      const DType type = held_type(dtype, part->rank());
      if (type == dtype) {
        made.b = make(part->b, dtype);
        continue;
      }
      const Shifted shifted(part->b);
      made.b = make(std::span(&shifted.weight, 1), type);
      made.scale = std::ldexp(made.scale, -shifted.exponent);
    }
    by_site_.resize(std::max(by_site_.size(), static_cast<size_t>(site) + 1));
    by_site_[static_cast<size_t>(site)] = std::move(product);
  }
}

int64_t CpuAdapter::bytes(std::span<const LowRankPart> parts,
                          DType dtype,
                          const KernelTable& kernels) {
  int64_t total = vector_bytes(parts);
  for (const auto& [site, at_site] : by_site(parts)) {
    int64_t rank = 0;
    int64_t cols = 0;
    for (const LowRankPart* part : at_site) {
      if (part->rank() == 0) continue;
      total +=
          matrix_bytes(held_type(dtype, part->rank()), kernels, part->num_outputs(), part->rank());
      if (part->is_lookup) {
        total += matrix_bytes(dtype, kernels, part->a.rows, part->a.cols);
        continue;
      }
      rank += part->rank();
      cols = part->a.cols;
    }
    if (rank > 0) total += matrix_bytes(dtype, kernels, rank, cols);
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

void AdapterRows::add(const CpuAdapter* adapter, int64_t first_row, int64_t count, int32_t expert) {
  if (adapter == nullptr) return;
  if (!runs_.empty()) {
    Run& last = runs_.back();
    const bool goes_on = last.adapter == adapter && last.expert == expert &&
                         last.first_row + last.count == first_row;
    if (goes_on) {
      last.count += count;
      return;
    }
  }
  runs_.push_back({adapter, expert, first_row, count});
}

void AdapterRows::finish() {
  std::ranges::sort(runs_, [](const Run& a, const Run& b) {
    if (a.adapter != b.adapter) return std::less<>()(a.adapter, b.adapter);
    return std::tie(a.expert, a.first_row) < std::tie(b.expert, b.first_row);
  });
  for (const Run& run : runs_) {
    const bool is_new = segments_.empty() || segments_.back().adapter != run.adapter ||
                        segments_.back().expert != run.expert;
    if (is_new) {
      segments_.push_back({.adapter = run.adapter,
                           .expert = run.expert,
                           .first = static_cast<int64_t>(rows_.size()),
                           .count = 0});
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
