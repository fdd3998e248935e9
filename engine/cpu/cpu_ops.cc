// The ops of CpuDevice but sampling: each cuts its rows or panels into tasks for the pool.
#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/cpu/rope_table.h"
#include "engine/tensor/pool_rows.h"

namespace tgi {
namespace {

constexpr int64_t kMinAttentionRows = 8;  // of a task: as many reuse what was fetched of the keys

// What is not a number stays so.
void clamp_values(float* values, int64_t count, float limit) {
  for (int64_t i = 0; i < count; ++i) values[i] = std::clamp(values[i], -limit, limit);
}

void add_distance_products(const DistanceProducts& products,
                           int64_t first_token,
                           int64_t head,
                           AttentionBlock& block) {
  const auto of = [&](const Tensor& all, const float*& out, int64_t& stride) {
    if (all.rows == 0) return;
    out = row_of(all, first_token) + head * products.num_kinds;
    stride = all.stride;
  };
  of(products.of_queries, block.query_products, block.query_products_stride);
  of(products.of_keys, block.key_products, block.key_products_stride);
  block.distance_kinds = products.kinds.data() + products.kinds.size() / 2;
}

}  // namespace

void CpuDevice::embed(const EmbedArgs& args) {
  const auto* table = static_cast<const PanelMatrix*>(args.table);
  const auto* positions = static_cast<const PanelMatrix*>(args.position_table);
  const auto* types = static_cast<const PanelMatrix*>(args.type_table);
  const int64_t cols = args.out.cols;
  for_rows(args.out.rows, cols * 4, [&](int64_t row) {
    const auto i = static_cast<size_t>(row);
    float* out = mutable_row_of(args.out, row);
    if (table == nullptr) return positions->add_row(batch_->positions[i], 1.0F, out);
    if (positions != nullptr) {
      positions->copy_row(batch_->positions[i], out);
    } else {
      std::fill(out, out + cols, 0.0F);
    }
    const int32_t id = slots_->resolve(batch_->token_ids[i]);
    table->add_row(id < table->rows ? id : 0, args.multiplier, out);
    if (types == nullptr) return;
    types->add_row(batch_->token_types.empty() ? 0 : batch_->token_types[i], 1.0F, out);
  });
}

void CpuDevice::norm(const NormArgs& args) {
  const auto run = args.kind == NormKind::kRms ? kernels_.rms_norm : kernels_.layer_norm;
  for_rows(args.x.rows, args.x.cols, [&](int64_t row) {
    run({.eps = args.eps,
         .weight = args.weight->as<const float>(),
         .bias = data_or_null(args.bias),
         .x = row_of(args.x, row),
         .residual = args.residual.data == nullptr ? nullptr : mutable_row_of(args.residual, row),
         .x_multiplier = args.x_multiplier,
         .out = mutable_row_of(args.out, row),
         .cols = args.x.cols});
  });
}

const float* CpuDevice::cos_sin(int32_t rope_index) {
  if (rope_index < 0) return nullptr;
  Rope& rope = ropes_[static_cast<size_t>(rope_index)];
  const int64_t dim = rope.spec.rotary_dim;
  float* const table = static_cast<float*>(cos_sin_.data()) +
                       int64_t{rope.first_column} * slot_layout_->max_batch_tokens;
  if (rope.filled_for != step_) {
    for_rows(batch_->num_tokens(), dim * 64, [&](int64_t token) {
      const int32_t position = batch_->positions[static_cast<size_t>(token)];
      fill_cos_sin(rope.spec, position, table + token * dim);
    });
    rope.filled_for = step_;
  }
  return table;
}

void CpuDevice::qk_norm_rope_store_kv(const QkvArgs& args) {
  const float* table = cos_sin(args.rope);
  for_rows(args.qkv.rows, args.qkv.cols * 4,
           [&](int64_t token) { store_token(args, table, token); });
}

void CpuDevice::store_token(const QkvArgs& args, const float* table, int64_t token) {
  float* const row = mutable_row_of(args.qkv, token);
  const int64_t head_dim = args.head_dim;
  const RopeSpec* rope = args.rope < 0 ? nullptr : &ropes_[static_cast<size_t>(args.rope)].spec;
  const int32_t num_rotated = args.num_heads + args.num_kv_heads;
  const auto run = args.norm_kind == NormKind::kRms ? kernels_.rms_norm : kernels_.layer_norm;
  const int64_t value_cols = args.value_cols();
  const auto norm = [&](float* head, const float* weight, const float* bias, int64_t cols) {
    if (weight == nullptr) return;
    run({.eps = args.norm_eps,
         .weight = weight,
         .bias = bias,
         .x = head,
         .out = head,
         .cols = cols});
  };
  if (args.clip > 0.0F) clamp_values(row, args.qkv.cols, args.clip);
  for (int32_t h = 0; h < num_rotated; ++h) {
    float* const head = row + h * head_dim;
    const float* const weight = head_norm_weight(args, h);
    if (!args.norm_after_rope) norm(head, weight, head_norm_bias(args, h), head_dim);
    if (rope != nullptr) {
      const auto rotate = rope->interleaved ? kernels_.rotate_interleaved : kernels_.rotate_half;
      rotate(head + args.first_rotated, table + token * rope->rotary_dim, rope->rotary_dim);
    }
    if (args.norm_after_rope) norm(head, weight, head_norm_bias(args, h), head_dim);
  }
  scale_queries(args, head_dim, batch_->positions[static_cast<size_t>(token)], row);
  const TokenPlace place = token_places_[static_cast<size_t>(token)];
  const int32_t* blocks =
      slots_->block_table(batch_->slots[static_cast<size_t>(place.sequence)], args.place.group);
  const int32_t block_size = kv_->layout().block_size;
  const float* const keys = row + args.num_heads * head_dim;
  float* const values = row + int64_t{num_rotated} * head_dim;
  for (int32_t h = 0; args.v_norm != nullptr && h < args.num_kv_heads; ++h) {
    norm(values + h * value_cols, args.v_norm->as<const float>(), nullptr, value_cols);
  }
  for (int32_t h = 0; h < args.num_kv_heads; ++h) {
    kv_->store(args.place, h, blocks[place.context_index / block_size],
               place.context_index % block_size, keys + h * head_dim,
               args.keys_only ? nullptr : values + h * value_cols);
  }
}

// Query rows that go over the keys together: bits don't depend on it. Fewer where many heads share
// the keys of few sequences, so that no thread is without work.
int64_t CpuDevice::attention_rows_per_task(const AttentionArgs& args, int64_t suitable_rows) const {
  const int64_t num_rows = int64_t{args.q.rows} * args.num_heads;
  const int64_t even = num_rows / pool_.num_threads();
  return std::clamp(even - even % kMinAttentionRows, kMinAttentionRows, suitable_rows);
}

// Of a KV head and the queries of a sequence in this step; which rows is for the caller to say.
AttentionBlock CpuDevice::attention_block(const AttentionArgs& args,
                                          size_t sequence,
                                          int32_t kv_head,
                                          int thread) const {
  const int32_t group_size = args.num_heads / args.num_kv_heads;
  const int64_t first_head = int64_t{kv_head} * group_size;
  const int64_t begin = batch_->cu_seqlens_q[sequence];
  AttentionBlock block;
  kv_->describe(args.place, kv_head, block);
  block.q = row_of(args.q, begin) + first_head * args.head_dim;
  block.q_stride = args.q.stride;
  block.out = mutable_row_of(args.out, begin) + first_head * args.value_cols();
  block.out_stride = args.out.stride;
  block.group_size = group_size;
  block.head_dim = args.head_dim;
  block.value_dim = args.value_cols();
  block.first_position = token_places_[static_cast<size_t>(begin)].context_index;
  block.block_table = slots_->block_table(batch_->slots[sequence], args.place.group);
  block.scale = args.scale;
  block.softcap = args.softcap;
  block.sliding_window = args.sliding_window;
  block.attention_chunk = args.attention_chunk;
  if (!args.is_causal) block.num_visible = batch_->context_lens[sequence];
  if (args.distance_bias != nullptr) {
    block.distance_bias =
        args.distance_bias->as<const float>() + first_head * args.distance_bias->stride;
    block.distance_bias_stride = args.distance_bias->stride;
    block.bias_reach = static_cast<int32_t>(args.distance_bias->cols / 2);
  }
  if (args.distance_products != nullptr) {
    add_distance_products(*args.distance_products, begin, first_head, block);
  }
  if (args.alibi_slopes != nullptr) {
    block.alibi_slopes = args.alibi_slopes->as<const float>() + first_head;
  }
  if (args.sinks != nullptr) block.sinks = args.sinks->as<const float>() + first_head;
  block.scratch = static_cast<std::byte*>(scratch_[static_cast<size_t>(thread)].attention.data());
  return block;
}

void CpuDevice::attention(const AttentionArgs& args) {
  if (gathers_keys(args)) return attend_gathered(args);
  const int32_t group_size = args.num_heads / args.num_kv_heads;
  const auto type = static_cast<size_t>(panel_type(kv_->layout().dtype));
  const auto kernel = kernels_.attention[type];
  const int64_t rows_per_task = attention_rows_per_task(args, kernels_.attention_rows[type]);
  const auto tasks_of = [&](size_t sequence) {
    const int64_t queries = batch_->cu_seqlens_q[sequence + 1] - batch_->cu_seqlens_q[sequence];
    return (queries * group_size + rows_per_task - 1) / rows_per_task;
  };
  run_attention_tasks(
      [&](size_t sequence) { return tasks_of(sequence) * args.num_kv_heads; },
      [&](size_t sequence, int64_t in_sequence, int thread) {
        const int64_t begin = batch_->cu_seqlens_q[sequence];
        const int64_t num_rows = (batch_->cu_seqlens_q[sequence + 1] - begin) * group_size;
        // One KV head after the other, so that keys and values are still in the caches; of a head
        // the last queries first: they see most, and a long task should not begin late.
        const int64_t num_tiles = tasks_of(sequence);
        const auto kv_head = static_cast<int32_t>(in_sequence / num_tiles);
        const int64_t tile = num_tiles - 1 - in_sequence % num_tiles;
        const int64_t first_row = tile * rows_per_task;
        AttentionBlock block = attention_block(args, sequence, kv_head, thread);
        block.first_row = static_cast<int32_t>(first_row);
        block.num_rows = static_cast<int32_t>(std::min(rows_per_task, num_rows - first_row));
        if (args.seen.heads_per_choice > 0) {
          block.chosen = choices_.of_query(begin);
          block.chosen_words = choices_.num_words();
          block.num_choices = choices_.num_choices();
          block.heads_per_choice = args.seen.heads_per_choice;
          block.first_head = args.seen.first_head + kv_head * group_size;
        }
        kernel(block);
      });
}

void CpuDevice::activation(const ActivationArgs& args) {
  const auto& kernels = args.gated ? kernels_.gated_activation : kernels_.activation;
  for_rows(args.out.rows, args.out.cols * 4, [&](int64_t row) {
    const float* const in = row_of(args.in, row);
    float* const out = mutable_row_of(args.out, row);
    if (args.limits.limit > 0.0F) {
      kernels_.limited_silu(in, out, args.out.cols, args.limits);
    } else if (args.kind == Activation::kXielu) {
      kernels_.xielu(in, out, args.out.cols, args.xielu);
    } else {
      kernels[static_cast<size_t>(args.kind)](in, out, args.out.cols);
    }
  });
}

void CpuDevice::gather_output_rows(const Tensor& x, const Tensor& out) {
  const auto bytes = static_cast<size_t>(x.cols) * sizeof(float);
  int64_t to = 0;
  rows_.visit_output_rows(
      [&](int32_t row) { std::memcpy(mutable_row_of(out, to++), row_of(x, row), bytes); });
}

void CpuDevice::add(const AddArgs& args) {
  for_rows(args.out.rows, args.out.cols, [&](int64_t row) {
    float multiplier = args.y_multiplier;
    if (args.y_gate != nullptr) multiplier *= sigmoid(*row_of(*args.y_gate, row));
    float* const out = mutable_row_of(args.out, row);
    if (args.x.data == nullptr) {
      std::memmove(out, row_of(args.y, row), static_cast<size_t>(args.out.cols) * sizeof(float));
      return kernels_.scale_and_cap(out, args.out.cols, multiplier, 0.0F);
    }
    kernels_.add(row_of(args.x, row), row_of(args.y, row), multiplier, out, args.out.cols);
  });
}

// The rows of logits are made a tile at a time, so that their workspace stays small however many
// are scored.
void CpuDevice::sample(const SampleArgs& args) {
  const int64_t num_rows = rows_.num_rows();
  for (int64_t begin = 0; begin < num_rows; begin += kLogitTileRows) {
    pick_rows(args, begin, std::min(kLogitTileRows, num_rows - begin));
  }
}

void CpuDevice::pool(const PoolArgs& args) {
  const auto count = static_cast<int64_t>(rows_.pooled_rows.size());
  pool_.parallel_for(count, [&](int64_t i, int /*thread*/) {
    const auto index = static_cast<size_t>(i);
    pool_rows(rows_.pooled_rows[index], args.hidden.as<const float>(), args.hidden.stride,
              args.hidden.cols, result_.pooled[index]);
  });
}

void CpuDevice::report_rows(const ReportArgs& args) {
  if (!batch_->reports_rows) return;
  const int64_t cols = slot_layout_->reported_cols;
  for_rows(args.x.rows, args.x.cols, [&](int64_t row) {
    std::memcpy(result_.reported.data() + row * cols + args.first_col, row_of(args.x, row),
                static_cast<size_t>(args.x.cols) * sizeof(float));
  });
}

void CpuDevice::pick_rows(const SampleArgs& args, int64_t begin, int64_t count) {
  const int64_t vocab_size = args.lm_head->rows;
  Tensor logits{.data = logits_.data(),
                .dtype = DType::kF32,
                .rows = count,
                .cols = vocab_size,
                .stride = round_up(vocab_size, 16)};
  Tensor hidden = args.hidden.first_rows(count);
  hidden.data = mutable_row_of(args.hidden, begin);
  run_matmul({.x = hidden, .w = args.lm_head, .bias = args.bias, .out = logits});
  if (args.site >= 0) {
    add_low_rank_to_outputs({.site = args.site, .x = hidden, .out = logits}, begin);
  }

  const bool adjusted = args.logit_scale != 1.0F || args.logit_softcap != 0.0F;
  const auto num_samples = static_cast<int64_t>(rows_.sample_rows.size());
  pool_.parallel_for(count, [&](int64_t i, int thread) {
    float* const row = mutable_row_of(logits, i);
    if (adjusted) kernels_.scale_and_cap(row, vocab_size, args.logit_scale, args.logit_softcap);
    const int64_t index = begin + i;
    if (index >= num_samples) {
      const auto score = static_cast<size_t>(index - num_samples);
      result_.scores[score] = score_row(
          row, static_cast<int32_t>(vocab_size), rows_.score_rows[score], kernels_.sampler_math,
          scratch_[static_cast<size_t>(thread)].sampler, result_.score_tops[score]);
      return;
    }
    const auto at = static_cast<size_t>(index);
    const SampleRow& sample = rows_.sample_rows[at];
    const std::span<const int32_t> drafts = rows_.drafts(at);
    sample_row({.logits = row,
                .vocab_size = static_cast<int32_t>(vocab_size),
                .params = &slots_->sampling(sample.slot),
                .history = slots_->history(sample.slot),
                .drafts = drafts,
                .previous_id = drafts.empty() ? slots_->last_token(sample.slot) : drafts.back(),
                .position = sample.position,
                .allowed = rows_.allowed(at),
                .draw_ids = args.draw_ids},
               kernels_.sampler_math, scratch_[static_cast<size_t>(thread)].sampler,
               result_.sampled[at]);
  });
}

}  // namespace tgi
