// CpuDevice: what latent attention has of its own.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"
#include "engine/cpu/matmul_tasks.h"
#include "engine/cpu/panel_matrix.h"

namespace tgi {

void CpuDevice::rotate_and_store_latent(const LatentArgs& args) {
  const float* const table = args.rope < 0 ? nullptr : cos_sin(args.rope);
  for_rows(args.q.rows, args.q.cols * 4,
           [&](int64_t token) { rotate_and_store_token(args, table, token); });
}

void CpuDevice::rotate_and_store_token(const LatentArgs& args, const float* table, int64_t token) {
  float* const q = mutable_row_of(args.q, token);
  float* const key = args.key.data == nullptr ? nullptr : mutable_row_of(args.key, token);
  const RopeSpec* const rope =
      args.rope < 0 ? nullptr : &ropes_[static_cast<size_t>(args.rope)].spec;
  const int32_t rotary_dim = rope == nullptr ? 0 : rope->rotary_dim;
  scale_queries(args, args.kept_dim + rotary_dim, batch_->positions[static_cast<size_t>(token)], q);
  if (rope != nullptr) {
    const auto rotate = rope->interleaved ? kernels_.rotate_interleaved : kernels_.rotate_half;
    const float* const cos_sin = table + token * rotary_dim;
    for (int64_t h = 0; h < args.num_heads; ++h) {
      const float* const from = q + h * (args.kept_dim + rotary_dim) + args.kept_dim;
      float* const to = mutable_row_of(args.latent_q, token) + h * (args.latent_dim + rotary_dim) +
                        args.latent_dim;
      std::copy_n(from, rotary_dim, to);
      rotate(to, cos_sin, rotary_dim);
    }
    if (key != nullptr) rotate(key + args.latent_dim, cos_sin, rotary_dim);
  }
  if (key == nullptr) return;
  const TokenPlace place = token_places_[static_cast<size_t>(token)];
  const int32_t* blocks =
      slots_->block_table(batch_->slots[static_cast<size_t>(place.sequence)], args.place.group);
  const int32_t block_size = kv_->layout().block_size;
  kv_->store(args.place, 0, blocks[place.context_index / block_size],
             place.context_index % block_size, key, nullptr);
}

// As many heads at once as the prepared rows have room for.
void CpuDevice::head_matmul(const HeadMatmulArgs& args) {
  const auto& w = static_cast<const PanelMatrix&>(*args.heads.front());
  const MatmulTasks tasks(kernels_, w, args.x.rows, 1);
  const auto room = static_cast<int64_t>(prepared_.size_bytes());
  const int64_t at_once =
      (room / tasks.x_stride_bytes() - kExtraPreparedRows) / std::max<int64_t>(args.x.rows, 1);
  TGI_CHECK(at_once > 0);
  for (size_t first = 0; first < args.heads.size(); first += static_cast<size_t>(at_once)) {
    run_head_tasks(args, first, std::min(args.heads.size(), first + static_cast<size_t>(at_once)));
  }
}

void CpuDevice::run_head_tasks(const HeadMatmulArgs& args, size_t first, size_t end) {
  const auto tasks_of = [&](size_t head) {
    return MatmulTasks(kernels_, static_cast<const PanelMatrix&>(*args.heads[head]), args.x.rows,
                       1);
  };
  const MatmulTasks alike = tasks_of(first);
  const int64_t cols = args.heads[first]->cols;
  const int64_t rows = args.heads[first]->rows;
  const int64_t num_heads = static_cast<int64_t>(end - first);
  const int64_t stride = alike.x_stride_bytes();
  auto* const prepared = static_cast<std::byte*>(prepared_.data());
  for_rows(args.x.rows * num_heads, cols, [&](int64_t i) {
    const int64_t head = i / args.x.rows;
    const float* const x =
        row_of(args.x, i % args.x.rows) + (static_cast<int64_t>(first) + head) * args.x_step;
    alike.prepare(x, prepared + i * stride);
  });
  pool_.parallel_for(num_heads * alike.num_tasks(), [&](int64_t index, int /*thread*/) {
    const int64_t head = index / alike.num_tasks();
    const int64_t begin = (static_cast<int64_t>(first) + head) * args.out_step;
    tasks_of(first + static_cast<size_t>(head))
        .run(index % alike.num_tasks(), prepared + head * args.x.rows * stride, nullptr,
             args.out.columns(begin, rows));
  });
}

}  // namespace tgi
