// Latent attention: rotate_and_store_latent and attention together, over a paged cache whose keys
// hold the values, against the reference and bit for bit however the same tokens are cut into
// steps; head_matmul against matmul.
#include <fmt/format.h>

#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/steps.h"

namespace tgi {
namespace {

struct LatentSetup {
  std::string name;
  int32_t num_heads = 3;
  int32_t kept_dim = 6;
  int32_t rotary_dim = 4;
  int32_t latent_dim = 16;
  bool interleaved = true;
  DType dtype = DType::kF32;
  int32_t block_size = 16;
  int32_t window = 0;
  int32_t chunk = 0;
  float softcap = 0.0F;
  PositionScale query_scale = {};
  bool sinks = false;
  std::vector<int32_t> lengths = {70, 5, 99};

  int32_t q_width() const { return num_heads * (kept_dim + rotary_dim); }
  int32_t key_width() const { return latent_dim + rotary_dim; }
  int64_t total_tokens() const {
    int64_t total = 0;
    for (const int32_t length : lengths) total += length;
    return total;
  }
};

std::vector<LatentSetup> latent_setups() {
  std::vector<LatentSetup> out = {
      {.name = "plain"},
      {.name = "f16 cache, halves", .interleaved = false, .dtype = DType::kF16},
      {.name = "bf16 cache", .dtype = DType::kBF16},
      {.name = "int8 cache", .dtype = DType::kInt8},
      {.name = "f8e4m3 cache, latent of 33",
       .rotary_dim = 10,
       .latent_dim = 33,
       .dtype = DType::kF8E4M3},
      {.name = "latent of 21, bf16", .latent_dim = 21, .dtype = DType::kBF16},
      {.name = "latent of 1, one head", .num_heads = 1, .kept_dim = 1, .latent_dim = 1},
      {.name = "latent of 33, f16, blocks of 48",
       .rotary_dim = 10,
       .latent_dim = 33,
       .dtype = DType::kF16,
       .block_size = 48},
      {.name = "more heads than rows of a task",
       .num_heads = 50,
       .latent_dim = 40,
       .dtype = DType::kBF16,
       .lengths = {33, 65}},
      {.name = "as DeepSeek V2 has it, two heads",
       .num_heads = 2,
       .kept_dim = 128,
       .rotary_dim = 64,
       .latent_dim = 512,
       .dtype = DType::kBF16,
       .lengths = {66, 3}},
      {.name = "window, softcap", .latent_dim = 24, .window = 20, .softcap = 3.0F},
      {.name = "chunks", .latent_dim = 24, .chunk = 30},
      {.name = "sinks, 19 heads", .num_heads = 19, .latent_dim = 24, .sinks = true},
      {.name = "sinks, window, bf16",
       .latent_dim = 24,
       .dtype = DType::kBF16,
       .window = 20,
       .sinks = true},
      {.name = "queries scaled by position",
       .query_scale = {.beta = 0.3F, .positions = 7, .offset = 1}},
      {.name = "nothing is rotated", .rotary_dim = 0},
      {.name = "nothing is rotated, bf16, latent of 33",
       .rotary_dim = 0,
       .latent_dim = 33,
       .dtype = DType::kBF16},
  };
  Random random(57);
  for (int i = 0; i < (kUnderSanitizers ? 1 : 3); ++i) {
    out.push_back({.name = fmt::format("random {}", i),
                   .num_heads = random.integer(1, 9),
                   .kept_dim = random.integer(1, 20),
                   .rotary_dim = 2 * random.integer(1, 10),
                   .latent_dim = random.integer(1, 90),
                   .interleaved = random.integer(0, 1) == 0,
                   .dtype = static_cast<DType>(random.integer(0, 2)),
                   .block_size = 16 * random.integer(1, 3),
                   .window = random.integer(0, 1) * random.integer(1, 100),
                   .lengths = {random.integer(1, 150), random.integer(1, 150), 1}});
  }
  return out;
}

class LatentRun {
 public:
  LatentRun(Device& device, const LatentSetup& setup) : device_(device), setup_(setup) {
    Random random(static_cast<uint32_t>(setup.q_width() + setup.key_width()));
    q_ = random.values(setup.total_tokens() * setup.q_width());
    keys_ = random.values(setup.total_tokens() * setup.key_width());
    // What head_matmul would have made of the kept columns, with room for the others.
    latent_q_ = random.values(setup.total_tokens() * latent_q_width());
    sinks_ = random.values(setup.num_heads);
    RopeSpec rope;
    rope.rotary_dim = setup.rotary_dim;
    rope.interleaved = setup.interleaved;
    for (int32_t i = 0; i < setup.rotary_dim / 2; ++i) {
      rope.inv_freq.push_back(1.0F / static_cast<float>(1 + 3 * i));
    }
    if (setup.rotary_dim > 0) rope_ = device.add_rope(rope);
    const auto num_slots = static_cast<int32_t>(setup.lengths.size()) + 1;
    const int32_t blocks_per_slot = 160 / setup.block_size + 1;
    const int32_t num_blocks = num_slots * blocks_per_slot + 1;
    device.allocate_state({.num_layers = 2,
                           .num_kv_heads = 1,
                           .head_dim = setup.key_width(),
                           .block_size = setup.block_size,
                           .num_blocks = num_blocks,
                           .dtype = setup.dtype,
                           .latent_dim = setup.latent_dim},
                          {.num_slots = num_slots,
                           .max_blocks_per_slot = blocks_per_slot,
                           .max_batch_tokens = 512,
                           .vocab_size = 32,
                           .block_size = setup.block_size,
                           .num_groups = 2,
                           .num_heads = setup.num_heads,
                           .num_kv_heads = 1,
                           .head_dim = setup.key_width(),
                           .latent_dim = setup.latent_dim});
    // The last one is nobody's: where a table names it, nothing may be read.
    for (int32_t i = 0; i < num_blocks; ++i) free_blocks_.push_back(i);
    foreign_block_ = free_blocks_.back();
    free_blocks_.pop_back();
    random.shuffle(free_blocks_);
    output_.resize(static_cast<size_t>(setup.total_tokens() * out_width()));
    done_.resize(setup.lengths.size());
  }

  // Writes NaN to every block, as a sequence whose model went wrong would have left it.
  void poison() {
    const auto num_blocks = static_cast<int32_t>(free_blocks_.size()) + 1;
    for (int32_t block = 0; block < num_blocks; ++block) {
      Batch batch = one_sequence(std::vector<int32_t>(static_cast<size_t>(setup_.block_size), 0));
      batch.block_appends = {{.slot = 0, .index = 0, .block = block, .group = 1}};
      run_rows(batch, Floats(static_cast<size_t>(setup_.block_size * setup_.q_width()), 0.0F),
               Floats(static_cast<size_t>(setup_.block_size * setup_.key_width()), std::nanf("")),
               Floats(static_cast<size_t>(setup_.block_size * latent_q_width()), 0.0F));
    }
  }

  Floats run(const Steps& steps) {
    for (const std::vector<int32_t>& step : steps) run_one(step);
    return output_;
  }

 private:
  int64_t latent_q_width() const { return int64_t{setup_.num_heads} * setup_.key_width(); }
  int64_t out_width() const { return int64_t{setup_.num_heads} * setup_.latent_dim; }
  int64_t first_row(size_t sequence) const {
    int64_t row = 0;
    for (size_t i = 0; i < sequence; ++i) row += setup_.lengths[i];
    return row;
  }

  // Sequence i sits in slot i + 1; slot 0 stays empty.
  void run_one(const std::vector<int32_t>& step) {
    Batch batch;
    batch.clear();
    std::array<Floats, 3> rows;
    const auto take = [&](const Floats& from, int64_t width, int64_t row, Floats& to) {
      to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
    };
    for (size_t i = step.size(); i-- > 0;) {
      if (step[i] == 0) continue;
      const auto slot = static_cast<int32_t>(i) + 1;
      if (done_[i] == 0) batch.slot_starts.emplace_back().slot = slot;
      leave_window(slot, setup_.window, done_[i], setup_.block_size, foreign_block_, batch);
      for (int32_t position = done_[i]; position < done_[i] + step[i]; ++position) {
        if (position % setup_.block_size == 0) {
          batch.block_appends.push_back({.slot = slot,
                                         .index = position / setup_.block_size,
                                         .block = free_blocks_.back(),
                                         .group = 1});
          free_blocks_.pop_back();
        }
        batch.token_ids.push_back(0);
        batch.positions.push_back(position);
        take(q_, setup_.q_width(), first_row(i) + position, rows[0]);
        take(keys_, setup_.key_width(), first_row(i) + position, rows[1]);
        take(latent_q_, latent_q_width(), first_row(i) + position, rows[2]);
      }
      batch.slots.push_back(slot);
      batch.cu_seqlens_q.push_back(batch.num_tokens());
      batch.context_lens.push_back(done_[i] + step[i]);
    }
    if (batch.num_tokens() == 0) return;
    const Floats got = run_rows(batch, rows[0], rows[1], rows[2]);
    for (size_t i = 0; i < batch.slots.size(); ++i) {
      const auto sequence = static_cast<size_t>(batch.slots[i]) - 1;
      std::copy(got.begin() + batch.cu_seqlens_q[i] * out_width(),
                got.begin() + batch.cu_seqlens_q[i + 1] * out_width(),
                output_.begin() + (first_row(sequence) + done_[sequence]) * out_width());
      done_[sequence] += step[sequence];
    }
  }

  // Other keys go to layer 0, so that a mix-up shows.
  Floats run_rows(const Batch& batch, const Floats& q, const Floats& keys, const Floats& latent_q) {
    const int64_t count = batch.num_tokens();
    const auto tensor = [&](const Floats& values, int64_t width) {
      DeviceTensor out(device_, count, width, device_.info().activation_dtype, width + 24);
      out.write(values);
      return out;
    };
    Floats doubled = keys;
    for (float& x : doubled) x *= 2.0F;
    const DeviceTensor q_rows = tensor(q, setup_.q_width());
    const DeviceTensor q_again = tensor(q, setup_.q_width());
    const DeviceTensor key_rows = tensor(keys, setup_.key_width());
    const DeviceTensor other_rows = tensor(doubled, setup_.key_width());
    const DeviceTensor latent_rows = tensor(latent_q, latent_q_width());
    const DeviceTensor sinks =
        DeviceTensor::vector(device_, Floats(sinks_.begin(), sinks_.begin() + setup_.num_heads));
    DeviceTensor out(device_, count, out_width(), device_.info().activation_dtype, out_width() + 8);
    run_step(device_, batch, [&] {
      for (const int32_t layer : {0, 1}) {
        device_.rotate_and_store_latent({.place = {.group = 1, .layer = layer},
                                         .num_heads = setup_.num_heads,
                                         .kept_dim = setup_.kept_dim,
                                         .latent_dim = setup_.latent_dim,
                                         .rope = rope_,
                                         .query_scale = setup_.query_scale,
                                         .q = (layer == 0 ? q_again : q_rows).view(),
                                         .key = (layer == 0 ? other_rows : key_rows).view(),
                                         .latent_q = latent_rows.view()});
      }
      device_.attention({.place = {.group = 1, .layer = 1},
                         .num_heads = setup_.num_heads,
                         .num_kv_heads = 1,
                         .head_dim = setup_.key_width(),
                         .scale = 1.0F / std::sqrt(static_cast<float>(setup_.key_width())),
                         .softcap = setup_.softcap,
                         .sliding_window = setup_.window,
                         .attention_chunk = setup_.chunk,
                         .sinks = setup_.sinks ? &sinks.view() : nullptr,
                         .latent_dim = setup_.latent_dim,
                         .q = latent_rows.view(),
                         .out = out.view()});
    });
    return out.read();
  }

  Device& device_;
  const LatentSetup& setup_;
  Floats q_, keys_, latent_q_, sinks_, output_;
  int32_t rope_ = -1;
  std::vector<int32_t> free_blocks_;
  int32_t foreign_block_ = 0;
  std::vector<int32_t> done_;
};

// Keys and queries differ by a rounding where they were rotated, in a 16-bit cache by a whole step
// of it; softmax weights are rounded to its type. Values are below 2, so are means of them.
double latent_tolerance(const LatentSetup& setup, DType activation) {
  const double of_cache = setup.dtype == DType::kF32 ? 0.0 : 6.0 * roundoff(setup.dtype);
  return 2e-5 + of_cache + 16.0 * roundoff(activation);
}

}  // namespace

TEST_CASE("attention to latents agrees with the reference, whatever lies in a block from before") {
  for (const LatentSetup& setup : latent_setups()) {
    const Steps steps = cut_into(setup.lengths, 5, 50);
    const auto reference = make_reference_device();
    const Floats wanted = LatentRun(*reference, setup).run(steps);
    for (const DeviceCase& device_case : device_cases()) {
      if (!device_case.can_cache_latents(setup.dtype)) continue;
      INFO(device_case.name << ": " << setup.name);
      const auto device = device_case.make();
      LatentRun run(*device, setup);
      run.poison();
      CHECK(worst_error(run.run(steps), wanted,
                        latent_tolerance(setup, device->info().activation_dtype), 0.0) <= 1.0);
    }
  }
}

TEST_CASE(
    "attention to latents gives a token the same bits however the prompt was cut, on every device "
    "of its group") {
  for (const LatentSetup& setup : latent_setups()) {
    std::map<std::string, Floats> by_group;
    for (const DeviceCase& device_case : device_cases()) {
      if (device_case.bit_group.empty() || !device_case.can_cache_latents(setup.dtype)) continue;
      std::vector<Steps> plans = {{setup.lengths}};
      if (!kUnderSanitizers) {
        for (const int32_t most : {1, 30}) plans.push_back(cut_into(setup.lengths, 3, most));
      }
      for (const Steps& steps : plans) {
        INFO(device_case.name << ": " << setup.name << ", " << steps.size() << " steps");
        const auto device = device_case.make();
        const Floats got = LatentRun(*device, setup).run(steps);
        CHECK(same_bits(got, by_group.try_emplace(device_case.bit_group, got).first->second));
      }
    }
  }
}

TEST_CASE("queries of latent attention are scaled in place, with keys of their own or without") {
  constexpr int32_t kHeads = 5;
  constexpr int32_t kKept = 6;
  constexpr int32_t kLatent = 24;
  constexpr int64_t kTokens = 40;
  struct Case {
    int32_t rotary_dim = 0;
    PositionScale scale{};
    bool head_scales = false;
    bool has_key = true;
  };
  const Case cases[] = {
      {.rotary_dim = 4, .head_scales = true},
      {.rotary_dim = 4, .scale = {.positions = 8, .offset = 1, .power = 0.2F}},
      {.rotary_dim = 4,
       .scale = {.beta = 0.2F, .positions = 3},
       .head_scales = true,
       .has_key = false},
      {.head_scales = true},
      {.scale = {.positions = 8, .power = -0.5F}, .head_scales = true, .has_key = false},
  };
  for (const Case& each : cases) {
    const int32_t key_width = kLatent + each.rotary_dim;
    // q, then latent_q, after one step of one sequence.
    const auto run = [&](Device& device) {
      Random random(83);
      RopeSpec rope;
      rope.rotary_dim = each.rotary_dim;
      for (int32_t i = 0; i < each.rotary_dim / 2; ++i) rope.inv_freq.push_back(0.5F);
      const int32_t added = each.rotary_dim > 0 ? device.add_rope(rope) : -1;
      device.allocate_state({.num_layers = 1,
                             .num_kv_heads = 1,
                             .head_dim = key_width,
                             .num_blocks = 4,
                             .dtype = DType::kBF16,
                             .latent_dim = kLatent},
                            {.num_slots = 1,
                             .max_blocks_per_slot = 4,
                             .max_batch_tokens = 64,
                             .vocab_size = 32,
                             .num_heads = kHeads,
                             .num_kv_heads = 1,
                             .head_dim = key_width,
                             .latent_dim = kLatent});
      Batch batch = one_sequence(std::vector<int32_t>(kTokens, 0));
      for (int32_t block = 0; block < 3; ++block) {
        batch.block_appends.push_back({.slot = 0, .index = block, .block = block});
      }
      const auto tensor = [&](int64_t rows, int64_t width, DType dtype) {
        DeviceTensor out(device, rows, width, dtype, width);
        out.write(random.values(rows * width));
        return out;
      };
      const DType activation = device.info().activation_dtype;
      const DeviceTensor q = tensor(kTokens, kHeads * (kKept + each.rotary_dim), activation);
      const DeviceTensor key = tensor(kTokens, key_width, activation);
      const DeviceTensor latent_q = tensor(kTokens, kHeads * key_width, activation);
      const DeviceTensor scales = tensor(2, kHeads, DType::kF32);
      run_step(device, batch, [&] {
        device.rotate_and_store_latent({.place = {},
                                        .num_heads = kHeads,
                                        .kept_dim = kKept,
                                        .latent_dim = kLatent,
                                        .rope = added,
                                        .query_scale = each.scale,
                                        .head_scales = each.head_scales ? &scales.view() : nullptr,
                                        .q = q.view(),
                                        .key = each.has_key ? key.view() : Tensor{},
                                        .latent_q = latent_q.view()});
      });
      Floats out = q.read();
      const Floats more = latent_q.read();
      out.insert(out.end(), more.begin(), more.end());
      return out;
    };
    const auto reference = make_reference_device();
    const Floats wanted = run(*reference);
    for (const DeviceCase& device_case : device_cases()) {
      if (!device_case.can_cache_latents(DType::kBF16)) continue;
      INFO(device_case.name << ": " << each.rotary_dim << " columns are rotated");
      const auto device = device_case.make();
      const double rounded = roundoff(device->info().activation_dtype);
      CHECK(worst_error(run(*device), wanted, 1e-6 + 2.0 * rounded, 4.0 * rounded + 1e-6) <= 1.0);
    }
  }
}

TEST_CASE("a cache of latents takes half of one with values, and no more") {
  const auto device = make_reference_device();
  KvLayout layout{.num_layers = 3,
                  .num_kv_heads = 1,
                  .head_dim = 96,
                  .block_size = 16,
                  .num_blocks = 5,
                  .dtype = DType::kBF16};
  for (const DeviceCase& device_case : device_cases()) {
    if (!device_case.can_cache_latents(layout.dtype)) continue;
    const auto each = device_case.make();
    const int64_t with_values = each->kv_bytes(layout);
    layout.latent_dim = 64;
    CHECK(each->kv_bytes(layout) == 3 * 5 * 16 * 96 * 2);
    layout.latent_dim = 0;
    CHECK(with_values == 2 * 3 * 5 * 16 * 96 * 2);
  }
}

TEST_CASE("head_matmul is matmul, of each head's columns with its own matrix") {
  struct Case {
    int64_t num_heads, rows, cols, num_tokens, gap = 3;
  };
  const std::vector<MatrixStorage> storages = {DType::kF32,
                                               DType::kF16,
                                               DType::kBF16,
                                               {Quantization::kInt8, 32},
                                               {Quantization::kInt8, 128}};
  for (const Case& one : {Case{1, 1, 1, 1}, Case{5, 14, 6, 3}, Case{3, 33, 40, 1},
                          Case{4, 128, 130, 37}, Case{70, 20, 9, 64}, Case{3, 40, 136, 5, 8},
                          Case{2, 30, 24, 40, 16}, Case{3, 136, 72, 90, 8}}) {
    for (const MatrixStorage& storage : storages) {
      for (const DeviceCase& device_case : device_cases()) {
        if (!device_case.can_hold(storage)) continue;
        INFO(device_case.name << ", " << one.num_heads << " heads of " << one.rows << " x "
                              << one.cols << ", " << one.num_tokens << " tokens");
        const auto device = device_case.make();
        const bool is_integer = storage.quantization != Quantization::kNone;
        if (is_integer && !device->info().keeps.integer_heads) continue;
        allocate_small_state(*device);
        Random random(9);
        const int64_t x_step = one.cols + one.gap;
        const int64_t out_step = one.rows + 2;
        const Floats before = random.values(one.num_tokens * one.num_heads * out_step);
        const DeviceTensor x(*device, one.num_tokens, one.num_heads * x_step,
                             random.values(one.num_tokens * one.num_heads * x_step));
        const DeviceTensor out(*device, one.num_tokens, one.num_heads * out_step, before);
        const DeviceTensor wanted(*device, one.num_tokens, one.num_heads * out_step, before);
        std::vector<std::unique_ptr<Matrix>> matrices;
        std::vector<const Matrix*> views;
        for (int64_t h = 0; h < one.num_heads; ++h) {
          matrices.push_back(make_matrix(*device, random.values(one.rows * one.cols), one.rows,
                                         one.cols, storage));
          views.push_back(matrices.back().get());
        }
        run_step(*device, one_sequence(std::vector<int32_t>(static_cast<size_t>(one.num_tokens))),
                 [&] {
                   device->head_matmul({.heads = views,
                                        .x_step = x_step,
                                        .out_step = out_step,
                                        .x = x.view(),
                                        .out = out.view()});
                   for (int64_t h = 0; h < one.num_heads; ++h) {
                     device->matmul({.x = x.view().columns(h * x_step, one.cols),
                                     .w = views[static_cast<size_t>(h)],
                                     .out = wanted.view().columns(h * out_step, one.rows)});
                   }
                 });
        // In 16 bits the two may be multiplied by kernels that sum in another order.
        const DType activation = device->info().activation_dtype;
        if (activation == DType::kF32) {
          CHECK(same_bits(out.read(), wanted.read()));
        } else {
          CHECK(worst_error(out.read(), wanted.read(), 1e-3, 2.0 * roundoff(activation)) <= 1.0);
        }
      }
    }
  }
}

}  // namespace tgi
