// The ops of layers that carry a state: on sequences that begin, go on in chunks and one token at a
// time, leave their slot to another, and share a step.
#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi::state_test {
namespace {

// A sequence's rows in a step.
struct Part {
  int32_t slot;
  int32_t first;  // of its tokens
  int32_t count;
};
using Steps = std::vector<std::vector<Part>>;

// Three sequences that share steps, and a fourth in the slot of the first.
const Steps kChunked = {{{0, 0, 5}, {1, 0, 17}, {2, 0, 1}},
                        {{2, 1, 1}, {0, 5, 1}, {1, 17, 1}},
                        {{0, 6, 1}, {2, 2, 7}, {1, 18, 25}},
                        {{0, 0, 3}, {2, 9, 2}},
                        {{0, 3, 1}}};
// The same tokens, each sequence by itself and at once.
const Steps kWhole = {{{0, 0, 7}}, {{2, 0, 11}}, {{1, 0, 43}}, {{0, 0, 4}}};

Batch batch_of(const std::vector<Part>& parts) {
  Batch batch;
  batch.clear();
  for (const Part& part : parts) {
    for (int32_t i = 0; i < part.count; ++i) {
      batch.token_ids.push_back(0);
      batch.positions.push_back(part.first + i);
    }
    batch.slots.push_back(part.slot);
    batch.cu_seqlens_q.push_back(batch.num_tokens());
    batch.context_lens.push_back(part.first + part.count);
    if (part.first != 0) continue;
    batch.slot_starts.emplace_back();
    batch.slot_starts.back().slot = part.slot;
  }
  return batch;
}

// What an op reads of a token depends on the sequence and the token alone.
Floats rows_of(const std::vector<Part>& parts,
               const std::vector<int>& lives,
               int64_t cols,
               int what) {
  Floats out;
  for (const Part& part : parts) {
    for (int32_t i = 0; i < part.count; ++i) {
      const int life = lives[static_cast<size_t>(part.slot)];
      Random random(
          static_cast<uint32_t>(1 + what + 16 * (part.first + i + 64 * (part.slot + 4 * life))));
      const Floats row = random.values(cols);
      out.insert(out.end(), row.begin(), row.end());
    }
  }
  return out;
}

using RunOp =
    std::function<Floats(Device&, const Batch&, const std::function<Floats(int64_t, int)>& rows)>;

// Of each sequence, in the order of its tokens: (slot, life) -> outputs.
using Outputs = std::map<std::pair<int32_t, int>, Floats>;

Outputs run_steps(Device& device, const Steps& steps, const RunOp& run) {
  Outputs out;
  std::vector<int> lives(4, 0);
  for (const std::vector<Part>& parts : steps) {
    for (const Part& part : parts) {
      if (part.first == 0) ++lives[static_cast<size_t>(part.slot)];
    }
    const Batch batch = batch_of(parts);
    const Floats got = run(
        device, batch, [&](int64_t cols, int what) { return rows_of(parts, lives, cols, what); });
    const auto cols = static_cast<int64_t>(got.size()) / batch.num_tokens();
    auto from = got.begin();
    for (const Part& part : parts) {
      Floats& to = out[{part.slot, lives[static_cast<size_t>(part.slot)]}];
      to.insert(to.end(), from, from + part.count * cols);
      from += part.count * cols;
    }
  }
  return out;
}

void allocate_states(Device& device, const StateLayout& state) {
  device.allocate_state({.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .block_size = 16,
                         .num_blocks = 4,
                         .dtype = device.info().activation_dtype},
                        {.num_slots = 4,
                         .max_blocks_per_slot = 4,
                         .max_batch_tokens = 64,
                         .vocab_size = 64,
                         .block_size = 16,
                         .max_matmul_cols = 4096,
                         .state = state});
}

void conform(const std::string& what, const StateLayout& state, const RunOp& run) {
  const auto reference = make_reference_device();
  allocate_states(*reference, state);
  const Outputs wanted = run_steps(*reference, kChunked, run);
  std::map<std::string, Outputs> by_group;
  for (const DeviceCase& device_case : device_cases()) {
    for (const Steps& steps : {kChunked, kWhole}) {
      const auto device = device_case.make();
      allocate_states(*device, state);
      const Outputs got = run_steps(*device, steps, run);
      REQUIRE(got.size() == 4);
      // Here bits depend on neither chunks nor the batch, also where a device does not promise it.
      const std::string& group =
          device_case.bit_group.empty() ? device_case.name : device_case.bit_group;
      const auto& same = by_group.try_emplace(group, got).first->second;
      const double rounding = roundoff(device->info().activation_dtype);
      for (const auto& [key, values] : wanted) {
        INFO(device_case.name << ": " << what << ", slot " << key.first << ", life " << key.second);
        CHECK(worst_error(got.at(key), values, 2e-5, 2e-5 + rounding) <= 1.0);
        CHECK(same_bits(got.at(key), same.at(key)));
      }
    }
  }
}

// Decays are negative.
Floats negative(Floats values) {
  for (float& value : values) value = -0.1F - std::abs(value);
  return values;
}

DeviceTensor table(Device& device, int64_t rows, int64_t cols, const Floats& values) {
  DeviceTensor out(device, rows, cols, DType::kF32);
  out.write(values);
  return out;
}

}  // namespace

TEST_CASE("a causal convolution sees the tokens before, whatever step they were in") {
  for (const int32_t kernel : {1, 2, 4, 16}) {
    for (const bool gated : {false, true}) {
      const int32_t channels = 37;
      conform("convolution of " + std::to_string(kernel),
              {.num_layers = 3, .conv_channels = channels, .conv_kernel = kernel},
              [&](Device& device, const Batch& batch, const auto& rows) {
                Random random(static_cast<uint32_t>(kernel));
                const DeviceTensor weight =
                    table(device, kernel, channels, random.values(kernel * channels));
                const DeviceTensor bias = DeviceTensor::vector(device, random.values(channels));
                DeviceTensor x(device, batch.num_tokens(), channels, rows(channels, 0));
                DeviceTensor before(device, batch.num_tokens(), channels, rows(channels, 1));
                DeviceTensor after(device, batch.num_tokens(), channels, rows(channels, 2));
                DeviceTensor out(device, batch.num_tokens(), channels,
                                 device.info().activation_dtype, channels + 3);
                run_step(device, batch, [&] {
                  device.causal_conv({.layer = 1,
                                      .silu = !gated,
                                      .weight = &weight.view(),
                                      .bias = gated ? nullptr : &bias.view(),
                                      .x = x.view(),
                                      .x_gate = gated ? before.view() : Tensor{},
                                      .out_gate = gated ? after.view() : Tensor{},
                                      .out = out.view()});
                });
                return out.read();
              });
    }
  }
}

TEST_CASE("the scan of mamba goes on from step to step") {
  for (const int32_t channels : {5, 48, 83}) {
    for (const int32_t numbers : {1, 6, 16, 70}) {
      conform("scan of " + std::to_string(channels) + " channels",
              {.num_layers = 2,
               .conv_channels = channels,
               .conv_kernel = 4,
               .num_heads = 1,
               .head_dim = channels,
               .state_size = numbers},
              [&](Device& device, const Batch& batch, const auto& rows) {
                Random random(7);
                const int64_t count = batch.num_tokens();
                const DeviceTensor decay =
                    table(device, numbers, channels, negative(random.values(numbers * channels)));
                const DeviceTensor skip = DeviceTensor::vector(device, random.values(channels));
                DeviceTensor x(device, count, channels, rows(channels, 0));
                DeviceTensor dt(device, count, channels, rows(channels, 1));
                DeviceTensor b(device, count, numbers, rows(numbers, 2));
                DeviceTensor c(device, count, numbers, rows(numbers, 3));
                run_step(device, batch, [&] {
                  device.channel_scan({.layer = 1,
                                       .decay = &decay.view(),
                                       .skip = &skip.view(),
                                       .x = x.view(),
                                       .dt = dt.view(),
                                       .b = b.view(),
                                       .c = c.view(),
                                       .out = x.view()});
                });
                return x.read();
              });
    }
  }
}

TEST_CASE("the scan of mamba 2 goes on from step to step, in groups of heads") {
  struct Setup {
    int32_t heads, head_dim, groups, numbers;
    float max_step;
  };
  for (const Setup& setup :
       {Setup{6, 8, 2, 10, 1e30F}, Setup{4, 33, 4, 5, 0.7F}, Setup{3, 16, 1, 64, 1e30F},
        Setup{2, 24, 2, 128, 1e30F}, Setup{1, 9, 1, 256, 1e30F}, Setup{2, 5, 1, 257, 1e30F}}) {
    const int64_t channels = int64_t{setup.heads} * setup.head_dim;
    const int64_t keys = int64_t{setup.groups} * setup.numbers;
    conform("scan of " + std::to_string(setup.heads) + " heads",
            {.num_layers = 2,
             .num_heads = setup.heads,
             .head_dim = setup.head_dim,
             .state_size = setup.numbers},
            [&](Device& device, const Batch& batch, const auto& rows) {
              Random random(9);
              const int64_t count = batch.num_tokens();
              const DeviceTensor decay =
                  DeviceTensor::vector(device, negative(random.values(setup.heads)));
              const DeviceTensor skip = DeviceTensor::vector(device, random.values(setup.heads));
              const DeviceTensor bias = DeviceTensor::vector(device, random.values(setup.heads));
              DeviceTensor x(device, count, channels, rows(channels, 0));
              DeviceTensor dt(device, count, setup.heads, rows(setup.heads, 1));
              DeviceTensor b(device, count, keys, rows(keys, 2));
              DeviceTensor c(device, count, keys, rows(keys, 3));
              run_step(device, batch, [&] {
                device.head_scan({.layer = 0,
                                  .num_groups = setup.groups,
                                  .min_step = 0.01F,
                                  .max_step = setup.max_step,
                                  .dt_bias = &bias.view(),
                                  .decay = &decay.view(),
                                  .skip = &skip.view(),
                                  .x = x.view(),
                                  .dt = dt.view(),
                                  .b = b.view(),
                                  .c = c.view(),
                                  .out = x.view()});
              });
              return x.read();
            });
  }
}

TEST_CASE("the gated delta rule goes on from step to step, with heads that share keys") {
  struct Setup {
    int32_t key_heads, heads, key_dim, head_dim;
    bool decays_numbers = false;
    float strength = 1.0F;
    float floor = 0.0F;
  };
  for (const Setup& setup :
       {Setup{2, 4, 6, 8}, Setup{3, 3, 17, 33, false, 2.0F},
        Setup{1, 2, 64, 16, false, 1.0F, -3.0F}, Setup{2, 4, 128, 24}, Setup{1, 1, 200, 9},
        Setup{1, 2, 512, 5}, Setup{2, 4, 6, 8, true}, Setup{3, 3, 17, 33, true, 2.0F},
        Setup{2, 2, 64, 16, true, 1.0F, -5.0F}, Setup{2, 4, 128, 24, true, 1.5F, -0.5F},
        Setup{1, 1, 200, 9, true}}) {
    const int64_t num_steps =
        setup.decays_numbers ? int64_t{setup.heads} * setup.key_dim : setup.heads;
    const int64_t channels = int64_t{setup.heads} * setup.head_dim;
    const int64_t keys = int64_t{setup.key_heads} * setup.key_dim;
    conform("delta rule of " + std::to_string(setup.heads) + " heads",
            {.num_layers = 1,
             .num_heads = setup.heads,
             .head_dim = setup.head_dim,
             .state_size = setup.key_dim,
             .decays_numbers = setup.decays_numbers},
            [&](Device& device, const Batch& batch, const auto& rows) {
              Random random(13);
              const int64_t count = batch.num_tokens();
              const DeviceTensor decay =
                  DeviceTensor::vector(device, negative(random.values(setup.heads)));
              const DeviceTensor bias = DeviceTensor::vector(device, random.values(num_steps));
              DeviceTensor q(device, count, keys, rows(keys, 0));
              DeviceTensor k(device, count, keys, rows(keys, 1));
              DeviceTensor v(device, count, channels, rows(channels, 2));
              DeviceTensor beta(device, count, setup.heads, rows(setup.heads, 3));
              DeviceTensor dt(device, count, num_steps, rows(num_steps, 4));
              run_step(device, batch, [&] {
                device.delta_rule({.layer = 0,
                                   .num_key_heads = setup.key_heads,
                                   .strength = setup.strength,
                                   .floor = setup.floor,
                                   .dt_bias = &bias.view(),
                                   .decay = &decay.view(),
                                   .q = q.view(),
                                   .k = k.view(),
                                   .v = v.view(),
                                   .beta = beta.view(),
                                   .dt = dt.view(),
                                   .out = v.view()});
              });
              return v.read();
            });
  }
}

TEST_CASE("the real-gated linear recurrent unit goes on from step to step") {
  struct Setup {
    int32_t heads, head_dim;
    float decay = 1.0F;  // times those that are drawn
  };
  for (const Setup& setup :
       {Setup{1, 37}, Setup{3, 8}, Setup{2, 33, 1e-4F}, Setup{5, 64, 100.0F}, Setup{1, 160}}) {
    const int64_t channels = int64_t{setup.heads} * setup.head_dim;
    conform("unit of " + std::to_string(channels) + " channels",
            {.num_layers = 2,
             .conv_channels = static_cast<int32_t>(channels),
             .conv_kernel = 4,
             .num_heads = setup.heads,
             .head_dim = setup.head_dim,
             .state_size = 1},
            [&](Device& device, const Batch& batch, const auto& rows) {
              Random random(19);
              const int64_t count = batch.num_tokens();
              Floats decays = negative(random.values(channels));
              for (float& decay : decays) decay *= setup.decay;
              const DeviceTensor decay = DeviceTensor::vector(device, decays);
              const DeviceTensor input_bias = DeviceTensor::vector(device, random.values(channels));
              const DeviceTensor decay_bias = DeviceTensor::vector(device, random.values(channels));
              DeviceTensor x(device, count, channels, rows(channels, 0));
              DeviceTensor input_gate(device, count, channels, rows(channels, 1));
              DeviceTensor decay_gate(device, count, channels, rows(channels, 2));
              run_step(device, batch, [&] {
                device.rg_lru({.layer = 1,
                               .decay = &decay.view(),
                               .input_bias = &input_bias.view(),
                               .decay_bias = &decay_bias.view(),
                               .x = x.view(),
                               .input_gate = input_gate.view(),
                               .decay_gate = decay_gate.view(),
                               .out = x.view()});
              });
              return x.read();
            });
  }
}

TEST_CASE("a gate stands before or after the norm of its group, or alone") {
  for (const GateKind kind : {GateKind::kSilu, GateKind::kSigmoid, GateKind::kSoftplus}) {
    for (const int groups : {0, 1, 3}) {  // 0: no norm
      for (const bool norm_first : {false, true}) {
        for (const bool shared : {false, true}) {
          const int64_t cols = 51;
          conform("gate", {.num_layers = 1, .conv_channels = 1, .conv_kernel = 2},
                  [&](Device& device, const Batch& batch, const auto& rows) {
                    Random random(17);
                    const int64_t size = groups == 0 ? 0 : cols / groups;
                    const DeviceTensor weight =
                        DeviceTensor::vector(device, random.values(shared ? cols / 3 : cols));
                    DeviceTensor x(device, batch.num_tokens(), cols, rows(cols, 0));
                    DeviceTensor gate(device, batch.num_tokens(), cols, rows(cols, 1));
                    const bool has_norm = groups != 0 && (!shared || groups == 3);
                    run_step(device, batch, [&] {
                      device.gated_norm({.kind = kind,
                                         .norm_first = norm_first,
                                         .eps = 1e-5F,
                                         .weight = has_norm ? &weight.view() : nullptr,
                                         .group_size = size,
                                         .x = x.view(),
                                         .gate = gate.view()});
                    });
                    return x.read();
                  });
        }
      }
    }
  }
}

TEST_CASE("a gate may hold for a run of columns, as that of a head") {
  for (const GateKind kind : {GateKind::kSilu, GateKind::kSigmoid, GateKind::kSoftplus}) {
    for (const int64_t span : {int64_t{5}, int64_t{8}, int64_t{64}, int64_t{300}}) {
      const int64_t cols = 3 * span;
      conform("gate of runs", {.num_layers = 1, .conv_channels = 1, .conv_kernel = 2},
              [&](Device& device, const Batch& batch, const auto& rows) {
                DeviceTensor x(device, batch.num_tokens(), cols, rows(cols, 0));
                DeviceTensor gate(device, batch.num_tokens(), 3, rows(3, 1));
                run_step(device, batch, [&] {
                  device.gated_norm({.kind = kind, .x = x.view(), .gate = gate.view()});
                });
                return x.read();
              });
    }
  }
}

TEST_CASE("add without its first operand multiplies the second") {
  conform("add", {.num_layers = 1, .conv_channels = 1, .conv_kernel = 2},
          [&](Device& device, const Batch& batch, const auto& rows) {
            DeviceTensor y(device, batch.num_tokens(), 39, rows(39, 0));
            DeviceTensor out(device, batch.num_tokens(), 39, device.info().activation_dtype, 41);
            run_step(device, batch, [&] {
              device.add({.x = {}, .y = y.view(), .y_multiplier = 0.3F, .out = out.view()});
            });
            return out.read();
          });
}

TEST_CASE("a state that no kernel holds is refused before anything is allocated") {
  int num_refused = 0;
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    const auto bytes_of = [&](int32_t state_size, bool decays_numbers = false) {
      return device->slot_bytes({.num_slots = 3,
                                 .max_blocks_per_slot = 1,
                                 .max_batch_tokens = 1,
                                 .vocab_size = 8,
                                 .max_matmul_cols = 16,
                                 .num_heads = 1,
                                 .num_kv_heads = 1,
                                 .head_dim = 16,
                                 .state = {.num_layers = 2,
                                           .conv_channels = 8,
                                           .conv_kernel = 4,
                                           .num_heads = 2,
                                           .head_dim = 16,
                                           .state_size = state_size,
                                           .decays_numbers = decays_numbers}});
    };
    INFO(device_case.name);
    CHECK(bytes_of(256, true) == bytes_of(256));
    // What is planned holds the states of all slots and layers.
    CHECK(bytes_of(512) - bytes_of(256) >= int64_t{3} * 2 * 2 * 16 * 256 * 4);
    if (device->info().backend == "cpu") continue;
    ++num_refused;
    CHECK_THROWS_WITH(bytes_of(513), Catch::Contains("513") && Catch::Contains("--backend cpu"));
    CHECK_THROWS_WITH(bytes_of(257, true), Catch::Contains("256") && Catch::Contains("257"));
  }
#ifndef TGI_WITHOUT_EMULATED_GPU
  CHECK(num_refused > 0);
#endif
}

}  // namespace tgi::state_test
