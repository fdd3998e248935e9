// CpuDevice: matrices times rows, and experts' matrices times the rows that are sent to them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/cpu_device_rows.h"
#include "engine/cpu/matmul_tasks.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/cpu/stacked_matrix.h"

namespace tgi {

void CpuDevice::matmul(const MatmulArgs& args) {
  run_matmul(args);
}

void CpuDevice::run_matmul(const MatmulArgs& args) {
  const auto* const stack = dynamic_cast<const StackedMatrix*>(args.w);
  if (stack == nullptr) {
    run_matmul(static_cast<const PanelMatrix&>(*args.w), args);
    return;
  }
  int64_t first = 0;
  for (size_t i = 0; i < stack->num_parts(); ++i) {
    const PanelMatrix& w = stack->part(i);
    MatmulArgs part = args;
    part.out = args.out.columns(first, w.rows);
    Tensor bias;
    if (args.bias != nullptr) {
      bias = args.bias->columns(first, w.rows);
      part.bias = &bias;
    }
    run_matmul(w, part);
    first += w.rows;
  }
}

// Of threads that are about as fast each takes its turn, so what one works on next stands as many
// tasks behind as there are threads.
void CpuDevice::run_matmul(const PanelMatrix& w, const MatmulArgs& args) {
  const int num_threads = pool_.num_threads();
  MatmulTasks tasks(kernels_, w, args.x.rows, num_threads);
  if (tasks.take_plain(args.x)) {
    const auto* const plain = static_cast<const std::byte*>(args.x.data);
    pool_.parallel_for(tasks.num_tasks(), [&](int64_t task, int /*thread*/) {
      tasks.run(task, plain, data_or_null(args.bias), args.out,
                tasks.panels_of(task + num_threads));
    });
    return;
  }
  const int64_t stride = tasks.x_stride_bytes();
  TGI_CHECK(args.x.rows * stride <= static_cast<int64_t>(prepared_.size_bytes()));
  auto* const prepared = static_cast<std::byte*>(prepared_.data());
  for_rows(args.x.rows, args.x.cols,
           [&](int64_t row) { tasks.prepare(row_of(args.x, row), prepared + row * stride); });
  pool_.parallel_for(tasks.num_tasks(), [&](int64_t task, int /*thread*/) {
    tasks.run(task, prepared, data_or_null(args.bias), args.out,
              tasks.panels_of(task + num_threads));
  });
}

void CpuDevice::route(const RouteArgs& args) {
  TGI_CHECK(args.experts_by_token == nullptr ||
            (args.logits.rows == batch_->num_tokens() && !args.rule.scores_chosen()));
  routes_.begin(args.rule, args.logits.rows);
  const int64_t count = args.logits.cols;
  for_rows(args.logits.rows, count * 64, [&](int64_t token) {
    float* const scores = mutable_row_of(args.logits, token);
    if (args.rule.score == RouterScore::kSigmoid) {
      for (int64_t e = 0; e < count; ++e) scores[e] = sigmoid(scores[e]);
    } else if (args.rule.score == RouterScore::kSqrtSoftplus) {
      sqrt_softplus(scores, count);
    } else if (args.rule.score == RouterScore::kSoftmax) {
      softmax(scores, count);
    }
    if (args.experts_by_token != nullptr) {
      const int32_t id = slots_->resolve(batch_->token_ids[static_cast<size_t>(token)]);
      const int64_t row = id < args.num_ids ? id : 0;
      routes_.take(token, args.experts_by_token + row * args.rule.top_k, scores);
    } else {
      routes_.choose(token, scores, data_or_null(args.choice_bias), kernels_.math.exp);
    }
    if (args.expert_scale != nullptr) {
      routes_.scale(token, args.expert_scale->as<const float>());
    }
  });
  routes_.finish();
}

float CpuDevice::sigmoid(float x) const {
  float power = 0.0F;
  x = -x;
  kernels_.math.exp(&x, &power, 1);
  return 1.0F / (1.0F + power);
}

void CpuDevice::sqrt_softplus(float* x, int64_t count) const {
  kernels_.state.softplus(
      {.x = x, .min = 0.0F, .max = std::numeric_limits<float>::infinity(), .cols = count});
  for (int64_t i = 0; i < count; ++i) x[i] = std::sqrt(x[i]);
}

void CpuDevice::softmax(float* x, int64_t count) const {
  const float highest = *std::max_element(x, x + count);
  for (int64_t i = 0; i < count; ++i) x[i] -= highest;
  kernels_.math.exp(x, x, count);
  float sum = 0.0F;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  for (int64_t i = 0; i < count; ++i) x[i] /= sum;
}

// As many experts at once as the prepared rows have room for.
void CpuDevice::expert_matmul(const ExpertMatmulArgs& args) {
  const auto room = static_cast<int64_t>(prepared_.size_bytes());
  expert_tasks_.clear();
  int64_t used = 0;
  TGI_CHECK(std::ssize(args.experts) == routes_.num_matrices());
  int64_t num_used = 0;
  for (int32_t expert = 0; expert < routes_.num_matrices(); ++expert) {
    if (routes_.first_row(expert + 1) > routes_.first_row(expert)) ++num_used;
  }
  for (int32_t expert = 0; expert < routes_.num_matrices(); ++expert) {
    const auto& w = static_cast<const PanelMatrix&>(*args.experts[static_cast<size_t>(expert)].w);
    const int64_t end = routes_.first_row(expert + 1);
    int64_t num_rows = 0;
    for (int64_t row = routes_.first_row(expert); row < end; row += num_rows) {
      // There is room for a row of each token; but one may be sent to the same expert twice.
      num_rows = std::min<int64_t>(end - row, slot_layout_->max_batch_tokens);
      const MatmulTasks tasks(kernels_, w, num_rows, pool_.num_threads(), num_used);
      const int64_t size = (num_rows + kExtraPreparedRows) * tasks.x_stride_bytes();
      if (used + size > room) {
        run_expert_tasks(args);
        used = 0;
      }
      TGI_CHECK(size <= room);
      expert_tasks_.push_back({.tasks = tasks,
                               .expert = expert,
                               .first_row = row,
                               .num_rows = num_rows,
                               .prepared = used,
                               .first_task = 0});
      used += size - kExtraPreparedRows * tasks.x_stride_bytes();
    }
  }
  run_expert_tasks(args);
}

void CpuDevice::run_expert_tasks(const ExpertMatmulArgs& args) {
  if (expert_tasks_.empty()) return;
  auto* const prepared = static_cast<std::byte*>(prepared_.data());
  int64_t num_tasks = 0;
  for (ExpertTask& each : expert_tasks_) {
    each.first_task = num_tasks;
    num_tasks += each.tasks.num_tasks();
  }
  const int64_t first = expert_tasks_.front().first_row;
  const int64_t end = expert_tasks_.back().first_row + expert_tasks_.back().num_rows;
  for_rows(end - first, args.x.cols, [&](int64_t i) {
    const int64_t row = first + i;
    const ExpertTask& task =
        *(std::ranges::upper_bound(expert_tasks_, row, {}, &ExpertTask::first_row) - 1);
    const int64_t from = args.x_is_routed ? row : routes_.token_of(row);
    const int64_t offset = (row - task.first_row) * task.tasks.x_stride_bytes();
    task.tasks.prepare(row_of(args.x, from), prepared + task.prepared + offset);
  });
  const auto task_of = [&](int64_t index) -> const ExpertTask& {
    return *(std::ranges::upper_bound(expert_tasks_, index, {}, &ExpertTask::first_task) - 1);
  };
  pool_.parallel_for(num_tasks, [&](int64_t index, int /*thread*/) {
    const ExpertTask& task = task_of(index);
    const int64_t next_index = index + pool_.num_threads();
    const ExpertTask& next = task_of(next_index);
    const Tensor* const bias = args.experts[static_cast<size_t>(task.expert)].bias;
    Tensor out = args.out;
    out.data = mutable_row_of(args.out, task.first_row);
    task.tasks.run(index - task.first_task, prepared + task.prepared, data_or_null(bias), out,
                   next.tasks.panels_of(next_index - next.first_task));
  });
  expert_tasks_.clear();
}

void CpuDevice::weigh_experts(const WeighArgs& args) {
  for_rows(args.x.rows / routes_.top_k(), args.x.cols * routes_.top_k(), [&](int64_t token) {
    for (int32_t i = 0; i < routes_.top_k(); ++i) {
      const ExpertRoutes::Chosen chosen = routes_.chosen(token, i);
      kernels_.scale_and_cap(mutable_row_of(args.x, chosen.row), args.x.cols, chosen.weight, 0.0F);
    }
  });
}

void CpuDevice::combine_experts(const CombineArgs& args) {
  for_rows(args.out.rows, args.out.cols * routes_.top_k(), [&](int64_t token) {
    float* const out = mutable_row_of(args.out, token);
    std::fill(out, out + args.out.cols, 0.0F);
    for (int32_t i = 0; i < routes_.top_k(); ++i) {
      const ExpertRoutes::Chosen chosen = routes_.chosen(token, i);
      const float weight = args.is_weighted ? 1.0F : chosen.weight;
      const bool is_identity = routes_.is_identity(chosen.row);
      if (is_identity && args.given == nullptr) continue;
      const float* const row =
          is_identity ? row_of(*args.given, token) : row_of(args.x, chosen.row);
      kernels_.add(out, row, weight, out, args.out.cols);
    }
  });
}

}  // namespace tgi
