// CpuDevice: what adapters change in rows. One task does both products of some rows of one adapter,
// so that nothing between them leaves the cache.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "engine/cpu/cpu_adapter.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"
#include "engine/cpu/matmul_tasks.h"

namespace tgi {

int64_t CpuDevice::adapter_bytes(std::span<const LowRankPart> parts, DType dtype) const {
  return CpuAdapter::bytes(parts, dtype, kernels_);
}

std::unique_ptr<Adapter> CpuDevice::make_adapter(std::span<const LowRankPart> parts, DType dtype) {
  return std::make_unique<CpuAdapter>(parts, dtype, kernels_);
}

void CpuDevice::set_adapter(int32_t index, const Adapter* adapter) {
  TGI_CHECK(index >= 1 && index <= slot_layout_->max_adapters);
  adapters_[static_cast<size_t>(index)] = static_cast<const CpuAdapter*>(adapter);
}

void CpuDevice::find_adapter_rows(const Batch& batch) {
  adapter_rows_.begin();
  output_adapters_.clear();
  if (slot_layout_->max_adapters == 0) return;
  const auto adapter_of = [this](int32_t slot) {
    return adapters_[static_cast<size_t>(slots_->adapter(slot))];
  };
  for (size_t i = 0; i < batch.slots.size(); ++i) {
    const int32_t begin = batch.cu_seqlens_q[i];
    adapter_rows_.add(adapter_of(batch.slots[i]), begin, batch.cu_seqlens_q[i + 1] - begin);
  }
  adapter_rows_.finish();
  if (adapter_rows_.segments().empty()) return;
  for (const SampleRow& row : batch.sample_rows) output_adapters_.push_back(adapter_of(row.slot));
  for (const ScoreRow& row : batch.score_rows) {
    const auto sequence = token_places_[static_cast<size_t>(row.row)].sequence;
    output_adapters_.push_back(adapter_of(batch.slots[static_cast<size_t>(sequence)]));
  }
}

void CpuDevice::add_low_rank(const LowRankArgs& args) {
  if (args.of_output_rows) return add_low_rank_to_outputs(args, 0);
  add_low_rank(args, adapter_rows_);
}

void CpuDevice::add_low_rank_of_tokens(const LowRankLookupArgs& args) {
  add_low_rank({.site = args.site, .x = {}, .out = args.out}, adapter_rows_);
}

// Of rows [first, first + args.x.rows) of those that are drawn from or scored.
void CpuDevice::add_low_rank_to_outputs(const LowRankArgs& args, int64_t first) {
  if (output_adapters_.empty()) return;
  output_adapter_rows_.begin();
  for (int64_t i = 0; i < args.x.rows; ++i) {
    output_adapter_rows_.add(output_adapters_[static_cast<size_t>(first + i)], i, 1);
  }
  output_adapter_rows_.finish();
  add_low_rank(args, output_adapter_rows_);
}

void CpuDevice::add_low_rank_to_experts(const ExpertLowRankArgs& args) {
  if (adapter_rows_.segments().empty()) return;
  expert_adapter_rows_.begin();
  for (int32_t expert = 0; expert < routes_.num_matrices(); ++expert) {
    const int32_t site = args.first_site + expert;
    for (int64_t row = routes_.first_row(expert); row < routes_.first_row(expert + 1); ++row) {
      const auto token = static_cast<size_t>(routes_.token_of(row));
      const auto sequence = static_cast<size_t>(token_places_[token].sequence);
      const CpuAdapter* const adapter =
          adapters_[static_cast<size_t>(slots_->adapter(batch_->slots[sequence]))];
      if (adapter == nullptr || adapter->at(site) == nullptr) continue;
      expert_adapter_rows_.add(adapter, row, 1, expert);
    }
  }
  expert_adapter_rows_.finish();
  add_low_rank({.site = args.first_site, .x = args.x, .out = args.out}, expert_adapter_rows_,
               args.x_is_routed ? nullptr : &routes_);
}

void CpuDevice::add_low_rank_to_heads(const HeadLowRankArgs& args) {
  if (adapter_rows_.segments().empty()) return;
  for (int32_t head = 0; head < args.num_heads; ++head) {
    add_low_rank({.site = args.first_site + head,
                  .x = args.x.columns(head * args.x_step, args.x_cols),
                  .out = args.out.columns(head * args.out_step, args.out_cols)});
  }
}

// As many rows at once as the prepared ones have room for.
void CpuDevice::add_low_rank(const LowRankArgs& args,
                             const AdapterRows& rows,
                             const ExpertRoutes* x_tokens) {
  low_rank_tasks_.clear();
  int64_t num_rows = 0;
  for (const AdapterRows::Segment& segment : rows.segments()) {
    if (segment.adapter->at(args.site + segment.expert) != nullptr) num_rows += segment.count;
  }
  if (num_rows == 0) return;
  // Few rows each where there are few of them, so that all threads have some.
  const int64_t even = (num_rows + pool_.num_threads() - 1) / pool_.num_threads();
  const int64_t rows_per_task = std::clamp<int64_t>(even, 1, kLowRankRows);
  const auto room = static_cast<int64_t>(prepared_.size_bytes());
  int64_t prepared_at = 0;
  for (const AdapterRows::Segment& segment : rows.segments()) {
    const CpuAdapter::Product* const product = segment.adapter->at(args.site + segment.expert);
    if (product == nullptr) continue;
    for (int64_t at = 0; at < segment.count; at += rows_per_task) {
      const int64_t count = std::min(rows_per_task, segment.count - at);
      std::optional<MatmulTasks> shrink;
      if (product->a != nullptr) shrink.emplace(kernels_, *product->a, count, 1);
      const int64_t stride = shrink ? shrink->x_stride_bytes() : 0;
      if (prepared_at + (count + kExtraPreparedRows) * stride > room) {
        run_low_rank_tasks(args, rows, x_tokens);
        prepared_at = 0;
      }
      TGI_CHECK(prepared_at + (count + kExtraPreparedRows) * stride <= room);
      low_rank_tasks_.push_back({.product = product,
                                 .shrink = shrink,
                                 .first_row = segment.first + at,
                                 .num_rows = count,
                                 .prepared = prepared_at});
      prepared_at += count * stride;
    }
  }
  run_low_rank_tasks(args, rows, x_tokens);
}

void CpuDevice::run_low_rank_tasks(const LowRankArgs& args,
                                   const AdapterRows& rows,
                                   const ExpertRoutes* x_tokens) {
  // All of them before the first product: kernels read some rows behind their own.
  const auto num_tasks = static_cast<int64_t>(low_rank_tasks_.size());
  int64_t num_rows = 0;
  for (const LowRankTask& task : low_rank_tasks_) num_rows += task.num_rows;
  for_rows(num_tasks, num_rows / std::max<int64_t>(num_tasks, 1) * args.x.cols, [&](int64_t index) {
    const LowRankTask& task = low_rank_tasks_[static_cast<size_t>(index)];
    if (!task.shrink) return;
    auto* out = static_cast<std::byte*>(prepared_.data()) + task.prepared;
    for (int64_t i = 0; i < task.num_rows; ++i, out += task.shrink->x_stride_bytes()) {
      const int64_t row = rows.row(task.first_row + i);
      const int64_t from = x_tokens == nullptr ? row : x_tokens->token_of(row);
      task.shrink->prepare(row_of(args.x, from), out);
    }
  });
  pool_.parallel_for(num_tasks, [&](int64_t index, int thread) {
    run_low_rank_task(low_rank_tasks_[static_cast<size_t>(index)], args, rows,
                      low_rank_scratch_[static_cast<size_t>(thread)]);
  });
  low_rank_tasks_.clear();
}

// Adds the product of `part` with the short rows, which are scaled in place.
template <typename OutRow>
void CpuDevice::add_product(const CpuAdapter::Part& part,
                            const Tensor& shrunk,
                            const LowRankScratch& scratch,
                            const OutRow& out_row) {
  const int64_t count = shrunk.rows;
  auto* const prepared = static_cast<std::byte*>(scratch.prepared.data());
  const Tensor product{.data = scratch.product.data(),
                       .dtype = DType::kF32,
                       .rows = count,
                       .cols = kLowRankOutputs,
                       .stride = kLowRankOutputs};
  const MatmulTasks expand(kernels_, *part.b, count, 1);
  for (int64_t i = 0; i < count; ++i) {
    float* const row = mutable_row_of(shrunk, i) + part.first_rank;
    kernels_.scale_and_cap(row, part.b->cols, part.scale, 0.0F);
    expand.prepare(row, prepared + i * expand.x_stride_bytes());
  }
  for (int64_t first = 0; first < part.b->rows; first += kLowRankOutputs) {
    const int64_t num_outputs = std::min(kLowRankOutputs, part.b->rows - first);
    expand.run_columns(prepared, first, num_outputs, product);
    for (int64_t i = 0; i < count; ++i) {
      float* const out = out_row(i) + first;
      kernels_.add(out, row_of(product, i), 1.0F, out, num_outputs);
    }
  }
}

void CpuDevice::run_low_rank_task(const LowRankTask& task,
                                  const LowRankArgs& args,
                                  const AdapterRows& rows,
                                  const LowRankScratch& scratch) {
  const int64_t count = task.num_rows;
  Tensor shrunk{.data = scratch.shrunk.data(),
                .dtype = DType::kF32,
                .rows = count,
                .stride = kMaxStackedRank};
  if (task.shrink) {
    const auto* const x = static_cast<const std::byte*>(prepared_.data()) + task.prepared;
    shrunk.cols = task.product->a->rows;
    for (int64_t i = 0; i < task.shrink->num_tasks(); ++i) {
      task.shrink->run(i, x, nullptr, shrunk, task.shrink->panels_of(i + 1));
    }
  }
  if (const PanelMatrix* table = task.product->table.get()) {
    shrunk.cols = table->cols;
    for (int64_t i = 0; i < count; ++i) {
      float* const row = mutable_row_of(shrunk, i);
      const auto token = static_cast<size_t>(rows.row(task.first_row + i));
      table->copy_row(slots_->resolve(batch_->token_ids[token]), row);
    }
  }
  for (const CpuAdapter::Part& part : task.product->parts) {
    const auto out_row = [&](int64_t i) {
      return mutable_row_of(args.out, rows.row(task.first_row + i)) + part.first_output;
    };
    if (part.b != nullptr) add_product(part, shrunk, scratch, out_row);
    for (int64_t i = 0; i < count; ++i) {
      float* const out = out_row(i);
      if (!part.gain.empty()) kernels_.state.multiply(out, part.gain.data(), part.num_outputs);
      if (!part.offset.empty()) {
        kernels_.add(out, part.offset.data(), 1.0F, out, part.num_outputs);
      }
    }
  }
}

}  // namespace tgi
