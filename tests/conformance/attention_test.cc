// qk_norm_rope_store_kv and attention together, over a paged cache with shuffled block tables:
// against the reference, and bit for bit however the same tokens are cut into steps.
#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/attention_setups.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

// Where layers differ another one lies before the one that is looked at, and the other group's
// block is larger.
std::vector<std::vector<KvHeads>> groups_of(const AttentionSetup& setup) {
  if (!setup.unlike) return {};
  const KvHeads own = {
      .num_kv_heads = setup.num_kv_heads, .head_dim = setup.head_dim, .value_dim = setup.value_dim};
  const KvHeads other = {.num_kv_heads = own.num_kv_heads + 1,
                         .head_dim = own.head_dim + 20,
                         .value_dim = setup.value_dim};
  return {{other, other, other}, {own, other, own}};
}

// Of the layers that are computed.
std::vector<KvHeads> kinds_of(const std::vector<std::vector<KvHeads>>& groups) {
  if (groups.empty()) return {};
  return {groups[1].front()};
}

bool for_encoders(const AttentionSetup& setup) {
  return !setup.causal || setup.bias_reach >= 0;
}

// One step: how many tokens of each sequence it takes on, from where the last one stopped.
using Plan = std::vector<std::vector<int32_t>>;

Plan whole(const AttentionSetup& setup) {
  return {setup.lengths};
}

// Two sequences one after the other and those that are left together: where queries see what is
// after them, a step has the whole of a sequence.
Plan whole_sequences(const AttentionSetup& setup) {
  const std::vector<int32_t>& lengths = setup.lengths;
  Plan plan(std::min<size_t>(lengths.size(), 3), std::vector<int32_t>(lengths.size(), 0));
  for (size_t i = 0; i < lengths.size(); ++i) plan[std::min(i, plan.size() - 1)][i] = lengths[i];
  return plan;
}

Plan token_by_token(const AttentionSetup& setup) {
  if (!setup.causal) return whole_sequences(setup);
  Plan plan;
  const int32_t longest = *std::max_element(setup.lengths.begin(), setup.lengths.end());
  for (int32_t i = 0; i < longest; ++i) {
    std::vector<int32_t> step;
    for (const int32_t length : setup.lengths) step.push_back(i < length ? 1 : 0);
    plan.push_back(step);
  }
  return plan;
}

Plan random_chunks(const AttentionSetup& setup, uint32_t seed) {
  if (!setup.causal) return whole_sequences(setup);
  Random random(seed);
  std::vector<int32_t> left = setup.lengths;
  Plan plan;
  while (*std::max_element(left.begin(), left.end()) > 0) {
    std::vector<int32_t> step;
    for (int32_t& remaining : left) {
      const int32_t most = random.integer(0, 2) == 0 ? 1 : random.integer(0, 50);
      step.push_back(std::min(remaining, most));
      remaining -= step.back();
    }
    plan.push_back(step);
  }
  return plan;
}

// Everything that differs between steps, kept across them.
class Run {
 public:
  Run(Device& device, const AttentionSetup& setup) : device_(device), setup_(setup) {
    Random random(static_cast<uint32_t>(setup.width()));
    input_ = random.values(setup.total_tokens() * setup.width());
    for (float& x : input_) x *= 2.0F;
    const int32_t q_norms = setup.own_norms ? setup.num_heads : 1;
    const int32_t k_norms = setup.own_norms ? setup.num_kv_heads : 1;
    q_norm_.emplace(DeviceTensor::vector(device, random.values(q_norms * setup.head_dim)));
    k_norm_.emplace(DeviceTensor::vector(device, random.values(k_norms * setup.head_dim)));
    q_norm_bias_.emplace(DeviceTensor::vector(device, random.values(q_norms * setup.head_dim)));
    k_norm_bias_.emplace(DeviceTensor::vector(device, random.values(k_norms * setup.head_dim)));
    Floats slopes = random.values(setup.num_heads);
    for (float& slope : slopes) slope = std::abs(slope) / 16.0F;
    slopes_.emplace(DeviceTensor::vector(device, slopes));
    // From ones that take all of the softmax to ones that take nothing.
    Floats sinks = random.values(setup.num_heads);
    for (size_t i = 0; i < sinks.size(); ++i) sinks[i] *= i % 4 == 3 ? 120.0F : 4.0F;
    sinks_.emplace(DeviceTensor::vector(device, sinks));
    Floats head_scales = random.values(2 * setup.num_heads);
    for (float& scale : head_scales) scale *= 0.3F;
    head_scales_.emplace(device, 2, setup.num_heads, DType::kF32, setup.num_heads);
    head_scales_->write(head_scales);
    v_norm_.emplace(DeviceTensor::vector(device, random.values(setup.value_cols())));
    if (setup.bias_reach >= 0) {
      const int64_t width = 2 * int64_t{setup.bias_reach} + 1;
      Floats biases = random.values(setup.num_heads * width);
      for (float& bias : biases) bias *= 4.0F;
      distance_bias_.emplace(device, setup.num_heads, width, DType::kF32, width + 3);
      distance_bias_->write(biases);
    }
    if (setup.num_kinds > 0) make_products(random);
    if (setup.rope.rotary_dim > 0) rope_ = device.add_rope(setup.rope);
    const auto num_slots = static_cast<int32_t>(setup.lengths.size()) + 1;
    const int32_t blocks_per_slot = 160 / setup.block_size + 1;
    const int32_t num_blocks = num_slots * blocks_per_slot + 1;
    const std::vector<std::vector<KvHeads>> groups = groups_of(setup);
    device.allocate_state({.num_layers = 2,
                           .num_kv_heads = setup.num_kv_heads,
                           .head_dim = setup.head_dim,
                           .block_size = setup.block_size,
                           .num_blocks = num_blocks,
                           .dtype = setup.dtype,
                           .groups = groups},
                          {.num_slots = num_slots,
                           .max_blocks_per_slot = blocks_per_slot,
                           .max_batch_tokens = 512,
                           .vocab_size = 32,
                           .block_size = setup.block_size,
                           .num_groups = 2,
                           .num_heads = setup.num_heads,
                           .num_kv_heads = setup.num_kv_heads,
                           .head_dim = setup.head_dim,
                           .has_alibi = setup.alibi,
                           .norms_values = setup.value_norm,
                           .unlike_heads = kinds_of(groups)});
    // The last one is nobody's: where a table names it, nothing may be read.
    for (int32_t i = 0; i < num_blocks; ++i) free_blocks_.push_back(i);
    foreign_block_ = free_blocks_.back();
    free_blocks_.pop_back();
    random.shuffle(free_blocks_);
    output_.resize(static_cast<size_t>(setup.total_tokens() * output_width()));
    done_.resize(setup.lengths.size());
  }

  // Writes NaN to every block, as a sequence whose model went wrong would have left it.
  void poison() {
    const auto num_blocks = static_cast<int32_t>(free_blocks_.size()) + 1;
    const int32_t at_once = 64 / setup_.block_size;
    for (int32_t first = 0; first < num_blocks; first += at_once) {
      const int32_t count = std::min(at_once, num_blocks - first);
      const int32_t num_tokens = count * setup_.block_size;
      Batch batch = one_sequence(std::vector<int32_t>(static_cast<size_t>(num_tokens), 0));
      batch.block_appends.clear();
      for (int32_t i = 0; i < count; ++i) {
        batch.block_appends.push_back({.slot = 0, .index = i, .block = first + i, .group = 1});
      }
      const Floats nan(static_cast<size_t>(num_tokens * setup_.width()), std::nanf(""));
      const DeviceTensor qkv(device_, num_tokens, setup_.width(), nan);
      run_step(device_, batch, [&] { store(qkv); });
    }
  }

  Floats run(const Plan& plan) {
    for (const std::vector<int32_t>& step : plan) run_step_of(step);
    return output_;
  }

 private:
  int64_t product_cols() const { return int64_t{setup_.num_heads} * setup_.num_kinds; }
  void make_products(Random& random) {
    constexpr int32_t kReach = 200;  // more than the longest sequence
    for (int32_t distance = -kReach; distance <= kReach; ++distance) {
      const int32_t middle = setup_.num_kinds / 2;
      kinds_.push_back(std::clamp(middle - distance, 0, setup_.num_kinds - 1));
    }
    for (Floats& products : products_) {
      products = random.values(setup_.total_tokens() * product_cols());
      for (float& x : products) x *= 8.0F;
    }
  }

  int32_t looked_at() const { return setup_.unlike ? 2 : 1; }
  int64_t query_width() const { return int64_t{setup_.num_heads} * setup_.head_dim; }
  int64_t output_width() const { return int64_t{setup_.num_heads} * setup_.value_cols(); }
  int64_t first_row(size_t sequence) const {
    int64_t row = 0;
    for (size_t i = 0; i < sequence; ++i) row += setup_.lengths[i];
    return row;
  }

  // Sequence i sits in slot i + 1; slot 0 stays empty.
  void add_sequence(size_t sequence, int32_t count, Batch& batch, Floats& rows) {
    const auto slot = static_cast<int32_t>(sequence) + 1;
    if (done_[sequence] == 0) batch.slot_starts.emplace_back().slot = slot;
    if (setup_.causal)
      leave_window(slot, setup_.window > 0 ? setup_.window : setup_.chunk, done_[sequence],
                   setup_.block_size, foreign_block_, batch);
    for (int32_t i = 0; i < count; ++i) {
      const int32_t position = done_[sequence] + i;
      if (position % setup_.block_size == 0) {
        batch.block_appends.push_back({.slot = slot,
                                       .index = position / setup_.block_size,
                                       .block = free_blocks_.back(),
                                       .group = 1});
        free_blocks_.pop_back();
      }
      batch.token_ids.push_back(0);
      batch.positions.push_back(position);
      const auto begin = input_.begin() + (first_row(sequence) + position) * setup_.width();
      rows.insert(rows.end(), begin, begin + setup_.width());
      for (size_t k = 0; k < products_.size() && setup_.num_kinds > 0; ++k) {
        const auto of_token =
            products_[k].begin() + (first_row(sequence) + position) * product_cols();
        step_products_[k].insert(step_products_[k].end(), of_token, of_token + product_cols());
      }
    }
    batch.slots.push_back(slot);
    batch.cu_seqlens_q.push_back(batch.num_tokens());
    batch.context_lens.push_back(done_[sequence] + count);
  }

  void run_step_of(const std::vector<int32_t>& step) {
    Batch batch;
    batch.clear();
    Floats rows;
    for (Floats& products : step_products_) products.clear();
    // Backwards, so that the order in the batch is not that of the slots.
    for (size_t i = step.size(); i-- > 0;) {
      if (step[i] > 0) add_sequence(i, step[i], batch, rows);
    }
    if (batch.num_tokens() == 0) return;
    DeviceTensor qkv(device_, batch.num_tokens(), setup_.width(), rows);
    DeviceTensor out(device_, batch.num_tokens(), output_width(), device_.info().activation_dtype,
                     output_width() + 8);
    run_step(device_, batch, [&] { run_layers(qkv, out); });
    const Floats got = out.read();
    for (size_t i = 0; i < batch.slots.size(); ++i) {
      const auto sequence = static_cast<size_t>(batch.slots[i]) - 1;
      const int64_t to = (first_row(sequence) + done_[sequence]) * output_width();
      std::copy(got.begin() + batch.cu_seqlens_q[i] * output_width(),
                got.begin() + batch.cu_seqlens_q[i + 1] * output_width(), output_.begin() + to);
      done_[sequence] += step[sequence];
    }
  }

  // The same rows go to two layers; the second is what is looked at, so that a mix-up shows.
  void store(const DeviceTensor& qkv) {
    DeviceTensor copy(device_, qkv.view().rows, setup_.width(), qkv.read());
    for (const int32_t layer : {0, looked_at()}) {
      device_.qk_norm_rope_store_kv(
          {.place = {.group = 1, .layer = layer},
           .num_heads = setup_.num_heads,
           .num_kv_heads = setup_.num_kv_heads,
           .head_dim = setup_.head_dim,
           .value_dim = setup_.value_dim,
           .rope = rope_,
           .clip = setup_.clip,
           .query_scale = setup_.query_scale,
           .head_scales = setup_.head_scales ? &head_scales_->view() : nullptr,
           .norm_after_rope = setup_.norm_after_rope,
           .norm_kind = setup_.norm_kind,
           .q_norm = setup_.norms ? &q_norm_->view() : nullptr,
           .k_norm = setup_.norms ? &k_norm_->view() : nullptr,
           .v_norm = setup_.value_norm ? &v_norm_->view() : nullptr,
           .q_norm_bias = setup_.norm_biases ? &q_norm_bias_->view() : nullptr,
           .k_norm_bias = setup_.norm_biases ? &k_norm_bias_->view() : nullptr,
           .norm_eps = 1e-6F,
           .qkv = layer == 0 ? copy.view() : qkv.view()});
    }
  }

  void run_layers(const DeviceTensor& qkv, const DeviceTensor& out) {
    store(qkv);
    std::vector<DeviceTensor> products;
    for (const Floats& of_step : step_products_) {
      if (setup_.num_kinds == 0) break;
      products.emplace_back(device_, qkv.view().rows, product_cols(), DType::kF32,
                            product_cols() + 5);
      products.back().write(of_step);
    }
    DistanceProducts with_distances{.num_kinds = setup_.num_kinds, .kinds = kinds_};
    if (setup_.num_kinds > 0 && setup_.of_queries) with_distances.of_queries = products[0].view();
    if (setup_.num_kinds > 0 && setup_.of_keys) with_distances.of_keys = products[1].view();
    device_.attention({.place = {.group = 1, .layer = looked_at()},
                       .num_heads = setup_.num_heads,
                       .num_kv_heads = setup_.num_kv_heads,
                       .head_dim = setup_.head_dim,
                       .value_dim = setup_.value_dim,
                       .scale = 1.0F / std::sqrt(static_cast<float>(setup_.head_dim)),
                       .softcap = setup_.softcap,
                       .sliding_window = setup_.window,
                       .attention_chunk = setup_.chunk,
                       .alibi_slopes = setup_.alibi ? &slopes_->view() : nullptr,
                       .is_causal = setup_.causal,
                       .distance_bias = distance_bias_ ? &distance_bias_->view() : nullptr,
                       .distance_products = setup_.num_kinds > 0 ? &with_distances : nullptr,
                       .sinks = setup_.sinks ? &sinks_->view() : nullptr,
                       .q = qkv.view().columns(0, query_width()),
                       .out = out.view()});
  }

  Device& device_;
  const AttentionSetup& setup_;
  Floats input_, output_;
  std::optional<DeviceTensor> q_norm_, k_norm_, q_norm_bias_, k_norm_bias_, v_norm_, slopes_,
      sinks_, distance_bias_, head_scales_;
  std::vector<int32_t> kinds_;
  std::array<Floats, 2> products_, step_products_;  // of queries, of keys
  int32_t rope_ = -1;
  std::vector<int32_t> free_blocks_;
  int32_t foreign_block_ = 0;
  std::vector<int32_t> done_;
};

Floats run_plan(Device& device, const AttentionSetup& setup, const Plan& plan) {
  return Run(device, setup).run(plan);
}

// Without rope and norms the cache holds the very same numbers on both sides and only the sums
// differ: scores below 2 * 2 * sqrt(head_dim), softmax and means of values below 2. With them, keys
// differ by a rounding, and in a 16-bit cache now and then by a whole step of it.
double tolerance(const AttentionSetup& setup, DType activation) {
  double allowed = 2e-5;
  const bool changed = setup.norms || setup.value_norm || setup.rope.rotary_dim > 0 ||
                       setup.query_scale.is_on() || setup.head_scales;
  if (changed && setup.dtype != DType::kF32) allowed += 4.0 * roundoff(setup.dtype);
  // The softmax's weights are rounded too, and rotated queries; values are below 2.
  if (changed) allowed += 8.0 * roundoff(activation);
  if (setup.dtype == DType::kBF16 || is_cache_code(setup.dtype)) allowed += roundoff(DType::kBF16);
  return allowed + 8.0 * roundoff(activation);
}

bool can_run(const DeviceCase& device_case, const AttentionSetup& setup) {
  return device_case.can_cache(setup.dtype, setup.head_dim) &&
         (!for_encoders(setup) || device_case.takes_encoders);
}

}  // namespace

TEST_CASE("what lies in a block from before never shows", TGI_NOT_UNDER_SANITIZERS) {
  for (const AttentionSetup& setup : attention_setups()) {
    for (const DeviceCase& device_case : device_cases()) {
      if (!can_run(device_case, setup)) continue;
      INFO(device_case.name << ": " << setup.name);
      const Plan plan = random_chunks(setup, 3);
      const Floats clean = run_plan(*device_case.make(), setup, plan);
      const auto device = device_case.make();
      Run poisoned(*device, setup);
      poisoned.poison();
      CHECK(same_bits(poisoned.run(plan), clean));
    }
  }
}

TEST_CASE("attention over a paged cache agrees with the reference") {
  for (const AttentionSetup& setup : attention_setups()) {
    const Plan plan = random_chunks(setup, 5);
    const Floats wanted = run_plan(*make_reference_device(), setup, plan);
    for (const DeviceCase& device_case : device_cases()) {
      if (!can_run(device_case, setup)) continue;
      INFO(device_case.name << ": " << setup.name);
      const auto device = device_case.make();
      const Floats got = run_plan(*device, setup, plan);
      CHECK(worst_error(got, wanted, tolerance(setup, device->info().activation_dtype), 0.0) <=
            1.0);
    }
  }
}

TEST_CASE(
    "attention gives a token the same bits however the prompt was cut, on every device of its "
    "group") {
  for (const AttentionSetup& setup : attention_setups()) {
    std::map<std::string, Floats> by_group;
    for (const DeviceCase& device_case : device_cases()) {
      if (device_case.bit_group.empty() || !can_run(device_case, setup)) continue;
      std::vector<Plan> plans = {whole(setup)};
      if (!kUnderSanitizers) {  // the test above runs chunks of all sizes
        plans.push_back(token_by_token(setup));
        plans.push_back(random_chunks(setup, 1));
      }
      for (const Plan& plan : plans) {
        INFO(device_case.name << ": " << setup.name << ", " << plan.size() << " steps");
        const Floats got = run_plan(*device_case.make(), setup, plan);
        CHECK(same_bits(got, by_group.try_emplace(device_case.bit_group, got).first->second));
      }
    }
  }
}

}  // namespace tgi
