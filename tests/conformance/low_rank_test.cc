// add_low_rank, and what adapters add to logits: the reference is agreed with, a row's bits depend
// on nothing but the row and its adapter, and rows without one keep theirs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi::low_rank_test {
namespace {

constexpr size_t kNumSlots = 6;  // a sequence of a setup each
constexpr int32_t kMaxTokens = 160;
constexpr int32_t kVocab = 90;

// One product of an adapter with a site.
struct PartSetup {
  int32_t site = 0;
  int64_t rank = 4;
  int64_t first_output = 0;
  int64_t num_outputs = 8;
  float scale = 1.0F;
  bool has_gain = false;
  bool has_offset = false;
};

struct AdapterSetup {
  std::vector<PartSetup> parts;
};

struct LowRankSetup {
  std::string name;
  int64_t cols = 40;
  int64_t outputs = 70;
  std::vector<AdapterSetup> adapters;
  // Of each sequence: its adapter, 0 for none, and its rows.
  std::vector<std::pair<int32_t, int32_t>> sequences;
};

std::vector<LowRankSetup> low_rank_setups() {
  return {
      {.name = "one row", .adapters = {{{{.num_outputs = 70}}}}, .sequences = {{1, 1}}},
      {.name = "rank 1, some of the outputs",
       .adapters = {{{{.rank = 1, .first_output = 3, .num_outputs = 41, .scale = 0.5F}}}},
       .sequences = {{1, 5}}},
      {.name = "base rows between two adapters of different ranks",
       .adapters = {{{{.rank = 3, .num_outputs = 70, .scale = 2.0F}}},
                    {{{.rank = 16, .num_outputs = 70}}}},
       .sequences = {{1, 3}, {0, 4}, {2, 1}, {0, 1}, {1, 2}}},
      {.name = "three products with the same x, as q, k and v",
       .cols = 65,
       .outputs = 100,
       .adapters = {{{{.rank = 8, .num_outputs = 50},
                      {.rank = 2, .first_output = 50, .num_outputs = 25, .scale = 1.5F},
                      {.rank = 8, .first_output = 75, .num_outputs = 25}}},
                    {{{.rank = 5, .first_output = 75, .num_outputs = 25}}}},
       .sequences = {{2, 2}, {1, 9}, {2, 1}, {0, 2}}},
      {.name = "an adapter without anything at the site",
       .adapters = {{{{.site = 1, .num_outputs = 70}}}, {{{.num_outputs = 70}}}},
       .sequences = {{1, 2}, {2, 2}}},
      {.name = "rank 256, more rows than a task has",
       .cols = 300,
       .outputs = 130,
       .adapters = {{{{.rank = 256, .num_outputs = 130, .scale = 0.125F}}},
                    {{{.rank = 33, .num_outputs = 130}}}},
       .sequences = {{1, 77}, {2, 40}, {0, 20}, {1, 1}}},
      {.name = "gains and offsets, each with and without the other",
       .outputs = 150,
       .adapters =
           {{{{.rank = 3, .num_outputs = 70, .scale = 2.0F, .has_gain = true, .has_offset = true},
              {.rank = 5, .first_output = 70, .num_outputs = 67, .has_gain = true}}},
            {{{.rank = 16, .first_output = 1, .num_outputs = 149, .has_offset = true}}},
            {{{.num_outputs = 150}}}},
       .sequences = {{1, 3}, {0, 4}, {2, 1}, {3, 2}, {1, 40}, {2, 2}}},
      {.name = "offsets without products, alone and beside some",
       .adapters = {{{{.rank = 0, .first_output = 2, .num_outputs = 35, .has_offset = true}}},
                    {{{.rank = 0, .num_outputs = 33, .has_offset = true},
                      {.rank = 4, .first_output = 33, .num_outputs = 37, .has_gain = true}}}},
       .sequences = {{1, 2}, {0, 1}, {2, 35}, {1, 1}}},
      {.name = "nobody has one", .adapters = {{{{.num_outputs = 70}}}}, .sequences = {{0, 4}}},
  };
}

// The numbers of a setup, rounded to what the device holds.
class LowRankProblem {
 public:
  LowRankProblem(const LowRankSetup& setup, DType dtype) : setup_(setup) {
    Random random(static_cast<uint32_t>(setup.cols * 131 + setup.outputs));
    for (const AdapterSetup& adapter : setup.adapters) {
      std::vector<LowRankPart>& parts = parts_.emplace_back();
      for (const PartSetup& part : adapter.parts) {
        LowRankPart& out = parts.emplace_back();
        out.site = part.site;
        out.first_output = part.first_output;
        out.scale = part.scale;
        if (part.has_gain) out.gain = random.values(part.num_outputs);
        if (part.has_offset) out.offset = random.values(part.num_outputs);
        if (part.rank == 0) continue;
        out.a = store(random, part.rank, setup.cols, dtype);
        // In two pieces, as rows of a fused matrix come.
        const int64_t half = part.num_outputs / 2;
        out.b = {store(random, part.num_outputs - half, part.rank, dtype)};
        if (half > 0) out.b.push_back(store(random, half, part.rank, dtype));
      }
    }
    x = random.values(num_rows() * setup.cols);
    out = random.values(num_rows() * setup.outputs);
  }

  // Of such adapters.
  LowRankProblem(const LowRankSetup& setup, std::vector<std::vector<LowRankPart>> parts)
      : setup_(setup), parts_(std::move(parts)) {}

  int64_t num_rows() const {
    int64_t count = 0;
    for (const auto& [adapter, rows] : setup_.sequences) count += rows;
    return count;
  }
  const LowRankSetup& setup() const { return setup_; }
  const std::vector<std::vector<LowRankPart>>& parts() const { return parts_; }

  Floats x;
  Floats out;

 private:
  HostWeight store(Random& random, int64_t rows, int64_t cols, DType dtype) {
    stored_.push_back(
        std::make_unique<StoredMatrix>(random.values(rows * cols), rows, cols, dtype));
    return stored_.back()->weight;
  }

  const LowRankSetup& setup_;
  std::vector<std::unique_ptr<StoredMatrix>> stored_;
  std::vector<std::vector<LowRankPart>> parts_;
};

void allocate(Device& device, int32_t max_adapters) {
  device.allocate_state({.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .block_size = 16,
                         .num_blocks = 6,
                         .dtype = device.info().activation_dtype},
                        {.num_slots = static_cast<int32_t>(kNumSlots),
                         .max_blocks_per_slot = 12,
                         .max_batch_tokens = kMaxTokens,
                         .vocab_size = kVocab,
                         .block_size = 16,
                         .max_matmul_cols = 512,
                         .max_adapters = max_adapters});
}

// Some of the setup's sequences as one step.
Batch batch_of(const LowRankSetup& setup, size_t first, size_t count) {
  REQUIRE(first + count <= kNumSlots);
  Batch batch;
  batch.clear();
  for (size_t i = first; i < first + count; ++i) {
    const auto [adapter, rows] = setup.sequences[i];
    const auto slot = static_cast<int32_t>(i);
    batch.slots.push_back(slot);
    for (int32_t row = 0; row < rows; ++row) {
      batch.token_ids.push_back((7 * row + 3 * static_cast<int32_t>(i)) % kVocab);
      batch.positions.push_back(row);
    }
    batch.cu_seqlens_q.push_back(batch.num_tokens());
    batch.context_lens.push_back(rows);
    batch.slot_starts.push_back(
        {.slot = slot, .sampling = {}, .token_ids = {}, .adapter = adapter});
  }
  REQUIRE(batch.num_tokens() <= kMaxTokens);
  return batch;
}

class AdaptersOnDevice {
 public:
  AdaptersOnDevice(Device& device, const LowRankProblem& problem) : device_(device) {
    const auto count = static_cast<int32_t>(problem.parts().size());
    allocate(device, count);
    for (int32_t i = 0; i < count; ++i) {
      const std::vector<LowRankPart>& parts = problem.parts()[static_cast<size_t>(i)];
      const DType dtype = device.info().activation_dtype;
      adapters_.push_back(device.make_adapter(parts, dtype));
      CHECK(adapters_.back()->size_bytes == device.adapter_bytes(parts, dtype));
      device.set_adapter(i + 1, adapters_.back().get());
    }
  }
  ~AdaptersOnDevice() {
    for (size_t i = 0; i < adapters_.size(); ++i) {
      device_.set_adapter(static_cast<int32_t>(i) + 1, nullptr);
    }
  }
  AdaptersOnDevice(const AdaptersOnDevice&) = delete;
  AdaptersOnDevice& operator=(const AdaptersOnDevice&) = delete;

  Floats add(const LowRankProblem& problem, size_t first, size_t count) {
    const DType dtype = device_.info().activation_dtype;
    const LowRankSetup& setup = problem.setup();
    const Batch batch = batch_of(setup, first, count);
    DeviceTensor x(device_, batch.num_tokens(), setup.cols, dtype, setup.cols + 8);
    x.write(rows_of(problem.x, setup, first, batch.num_tokens(), setup.cols));
    return changed(problem, first, batch, [&](const Tensor& out) {
      device_.add_low_rank({.site = 0, .x = x.view(), .out = out});
    });
  }

  // Of all sequences, at the rows that are drawn from and scored, in a tensor of them alone.
  Floats add_at(const LowRankProblem& problem, std::span<const int32_t> rows, size_t num_drawn) {
    const LowRankSetup& setup = problem.setup();
    Batch batch = batch_of(setup, 0, setup.sequences.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto after = std::ranges::upper_bound(batch.cu_seqlens_q, rows[i]);
      const auto slot = static_cast<int32_t>(after - batch.cu_seqlens_q.begin()) - 1;
      if (i < num_drawn) {
        batch.sample_rows.push_back({.row = rows[i], .slot = slot});
      } else {
        batch.score_rows.push_back({.row = rows[i], .target_id = 0});
      }
    }
    const auto count = static_cast<int64_t>(rows.size());
    const DType dtype = device_.info().activation_dtype;
    DeviceTensor x(device_, batch.num_tokens(), setup.cols, dtype, setup.cols + 8);
    x.write(rows_of(problem.x, setup, 0, batch.num_tokens(), setup.cols));
    DeviceTensor before(device_, batch.num_tokens(), setup.outputs, dtype, setup.outputs);
    before.write(rows_of(problem.out, setup, 0, batch.num_tokens(), setup.outputs));
    const DeviceTensor x_rows(device_, count, setup.cols, dtype, setup.cols);
    DeviceTensor out(device_, count, setup.outputs, dtype, setup.outputs + 10);
    run_step(device_, batch, [&] {
      device_.gather_output_rows(x.view(), x_rows.view());
      device_.gather_output_rows(before.view(), out.view());
      device_.add_low_rank(
          {.site = 0, .x = x_rows.view(), .out = out.view(), .of_output_rows = true});
    });
    return out.read();
  }

  // As heads whose columns lie side by side, of which all but some take part.
  Floats add_to_heads(const LowRankProblem& problem, const HeadLowRankArgs& heads) {
    const DType dtype = device_.info().activation_dtype;
    const LowRankSetup& setup = problem.setup();
    const Batch batch = batch_of(setup, 0, setup.sequences.size());
    const int64_t cols = heads.num_heads * heads.x_step;
    DeviceTensor x(device_, batch.num_tokens(), cols, dtype, cols + 8);
    DeviceTensor out(device_, batch.num_tokens(), heads.num_heads * heads.out_step, dtype,
                     heads.num_heads * heads.out_step);
    Random random(9);
    x.write(random.values(batch.num_tokens() * cols));
    out.write(random.values(batch.num_tokens() * heads.num_heads * heads.out_step));
    HeadLowRankArgs args = heads;
    args.x = x.view();
    args.out = out.view();
    run_step(device_, batch, [&] { device_.add_low_rank_to_heads(args); });
    return out.read();
  }

  Floats add_of_tokens(const LowRankProblem& problem, size_t first, size_t count) {
    return changed(problem, first, batch_of(problem.setup(), first, count), [&](const Tensor& out) {
      device_.add_low_rank_of_tokens({.site = 0, .out = out});
    });
  }

 private:
  // Those of the sequences from `first` on.
  static Floats rows_of(
      const Floats& all, const LowRankSetup& setup, size_t first, int64_t count, int64_t cols) {
    int64_t begin = 0;
    for (size_t i = 0; i < first; ++i) begin += setup.sequences[i].second;
    const auto from = all.begin() + begin * cols;
    return Floats(from, from + count * cols);
  }

  template <typename Op>
  Floats changed(const LowRankProblem& problem, size_t first, const Batch& batch, const Op& op) {
    const LowRankSetup& setup = problem.setup();
    DeviceTensor out(device_, batch.num_tokens(), setup.outputs, device_.info().activation_dtype,
                     setup.outputs + 10);
    out.write(rows_of(problem.out, setup, first, batch.num_tokens(), setup.outputs));
    run_step(device_, batch, [&] { op(out.view()); });
    return out.read();
  }

  Device& device_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

TEST_CASE("what adapters add agrees with the reference, whatever else is in the step") {
  for (const LowRankSetup& setup : low_rank_setups()) {
    std::map<std::string, Floats> of_group;
    for (const DeviceCase& device_case : device_cases()) {
      const auto device = device_case.make();
      if (!device->info().takes_adapters) continue;
      INFO(setup.name << " on " << device_case.name);
      const DType dtype = device->info().activation_dtype;
      const LowRankProblem problem(setup, dtype);
      const auto reference = make_reference_device();
      const Floats expected =
          AdaptersOnDevice(*reference, problem).add(problem, 0, setup.sequences.size());
      AdaptersOnDevice adapters(*device, problem);
      const Floats all = adapters.add(problem, 0, setup.sequences.size());
      // Two sums of products below 1, of cols and of rank; and the roundings of what is between.
      const auto cols = static_cast<double>(setup.cols);
      const double size = std::sqrt(cols * 256.0);
      CHECK(worst_error(all, expected, (cols * 0x1p-21 + 8.0 * roundoff(dtype)) * size,
                        8.0 * roundoff(dtype)) <= 1.0);

      Floats one_by_one;
      int64_t row = 0;
      for (size_t i = 0; i < setup.sequences.size(); ++i) {
        const Floats alone = adapters.add(problem, i, 1);
        one_by_one.insert(one_by_one.end(), alone.begin(), alone.end());
        const int64_t end = row + setup.sequences[i].second;
        const auto part = [&](const Floats& values) {
          return Floats(values.begin() + row * setup.outputs, values.begin() + end * setup.outputs);
        };
        const bool keeps = setup.sequences[i].first == 0;
        if (keeps) CHECK(same_bits(alone, part(problem.out)));
        row = end;
      }
      if (device_case.bit_group.empty()) continue;
      CHECK(same_bits(one_by_one, all));
      const auto [first, is_new] = of_group.try_emplace(device_case.bit_group, all);
      if (!is_new) CHECK(same_bits(first->second, all));
    }
  }
}

TEST_CASE("what adapters add to rows that are drawn from and scored is what they add to all") {
  const LowRankSetup setup{.name = "before the head",
                           .adapters = {{{{.rank = 6, .num_outputs = 70, .scale = 2.0F}}},
                                        {{{.rank = 20, .first_output = 9, .num_outputs = 40}}}},
                           .sequences = {{1, 2}, {0, 1}, {2, 3}, {1, 1}}};
  constexpr std::array<int32_t, 5> kRows = {1, 2, 5, 3, 6};
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    if (!device->info().takes_adapters) continue;
    INFO(device_case.name);
    const LowRankProblem problem(setup, device->info().activation_dtype);
    AdaptersOnDevice adapters(*device, problem);
    const Floats all = adapters.add(problem, 0, setup.sequences.size());
    Floats expected;
    for (const int32_t row : kRows) {
      const auto begin = all.begin() + row * setup.outputs;
      expected.insert(expected.end(), begin, begin + setup.outputs);
    }
    CHECK(same_bits(adapters.add_at(problem, kRows, 3), expected));
  }
}

TEST_CASE("what adapters add to heads is what they add to each head's columns") {
  const LowRankSetup setup{
      .name = "heads",
      .cols = 20,
      .outputs = 33,
      .adapters = {{{{.site = 3, .rank = 5, .num_outputs = 33},
                     {.site = 4, .rank = 5, .num_outputs = 33, .scale = 2.0F}}},
                   {{{.site = 4, .rank = 9, .num_outputs = 33}}}},
      .sequences = {{1, 2}, {0, 1}, {2, 3}, {1, 1}}};
  const HeadLowRankArgs heads{.first_site = 3,
                              .num_heads = 2,
                              .x_step = 24,
                              .out_step = 37,
                              .x_cols = setup.cols,
                              .out_cols = setup.outputs,
                              .x = {},
                              .out = {}};
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    if (!device->info().takes_adapters) continue;
    INFO(device_case.name);
    const DType dtype = device->info().activation_dtype;
    const LowRankProblem problem(setup, dtype);
    const auto reference = make_reference_device();
    const Floats expected = AdaptersOnDevice(*reference, problem).add_to_heads(problem, heads);
    const Floats got = AdaptersOnDevice(*device, problem).add_to_heads(problem, heads);
    CHECK(worst_error(got, expected, 512.0 * roundoff(dtype), 8.0 * roundoff(dtype)) <= 1.0);
    // Between the columns of heads nothing changes, nor in the row of the base model.
    Random random(9);
    random.values(problem.num_rows() * heads.num_heads * heads.x_step);
    const Floats before = random.values(problem.num_rows() * heads.num_heads * heads.out_step);
    int num_kept = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / (heads.num_heads * heads.out_step);
      const bool is_between = static_cast<int64_t>(i) % heads.out_step >= setup.outputs;
      if (is_between || row == 2) num_kept += same_bits(Floats{before[i]}, Floats{got[i]}) ? 1 : 0;
    }
    const int64_t num_between = problem.num_rows() * heads.num_heads * 4;
    CHECK(num_kept == num_between + heads.num_heads * setup.outputs);
  }
}

TEST_CASE("what adapters add to logits is drawn and scored by") {
  LowRankSetup setup{.name = "head",
                     .cols = 48,
                     .outputs = kVocab,
                     .adapters = {{{{.rank = 6, .num_outputs = kVocab, .scale = 2.0F}}},
                                  {{{.rank = 20, .num_outputs = kVocab}}}},
                     .sequences = {{1, 2}, {0, 1}, {2, 3}, {1, 1}}};
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    if (!device->info().takes_adapters) continue;
    INFO(device_case.name);
    const DType dtype = device->info().activation_dtype;
    const LowRankProblem problem(setup, dtype);
    const auto scores = [&](Device& on, int32_t site) {
      AdaptersOnDevice adapters(on, problem);
      Random random(5);
      const auto head = make_matrix(on, random.values(kVocab * setup.cols), kVocab, setup.cols,
                                    MatrixStorage(dtype));
      const DeviceTensor x(on, problem.num_rows(), setup.cols, problem.x);
      const DeviceTensor hidden(on, problem.num_rows(), setup.cols, problem.x);
      Batch batch = batch_of(setup, 0, setup.sequences.size());
      batch.sample_rows = {{.row = 1, .slot = 0}, {.row = 2, .slot = 1}, {.row = 5, .slot = 2}};
      batch.score_rows = {{.row = 3, .target_id = 7}, {.row = 6, .target_id = 70}};
      const auto num_rows = static_cast<int64_t>(batch.num_logit_rows());
      const Tensor rows = hidden.view().first_rows(num_rows);
      const StepResult& result = run_step(
          on, batch, [&] { on.gather_output_rows(x.view(), rows); },
          [&] {
            on.sample({.hidden = rows, .lm_head = head.get(), .logit_scale = 0.25F, .site = site});
          });
      Floats out;
      for (const SampledToken& token : result.sampled) {
        out.push_back(static_cast<float>(token.token.id));
        out.push_back(token.token.logprob);
      }
      out.insert(out.end(), result.scores.begin(), result.scores.end());
      return out;
    };
    const auto reference = make_reference_device();
    const auto plain = make_reference_device();
    const Floats expected = scores(*reference, 0);
    CHECK(worst_error(scores(*device, 0), expected, 256.0 * roundoff(dtype), 0.0) <= 1.0);
    CHECK(worst_error(scores(*plain, -1), expected, 256.0 * roundoff(dtype), 0.0) > 1.0);
  }
}

TEST_CASE("what an adapter does to an output is done in its order") {
  const StoredMatrix a({2.0F, -1.0F}, 1, 2, DType::kF32);
  const StoredMatrix b({3.0F, 5.0F}, 2, 1, DType::kF32);
  const LowRankPart both{.site = 0,
                         .first_output = 1,
                         .scale = 0.5F,
                         .a = a.weight,
                         .b = {b.weight},
                         .gain = {10.0F, -2.0F},
                         .offset = {100.0F, 0.25F}};
  LowRankPart alone{.site = 0, .first_output = 0, .a = {}, .b = {}, .offset = {7.0F}};
  CHECK(alone.num_outputs() == 1);
  const LowRankSetup setup{
      .name = "", .cols = 2, .outputs = 4, .adapters = {}, .sequences = {{1, 1}}};
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    INFO(device_case.name);
    LowRankProblem problem(setup, {{both, alone}});
    problem.x = {1.0F, 4.0F};
    problem.out = {1.0F, 2.0F, 3.0F, 4.0F};
    // a x is -2, half of it -1; b of that -3 and -5.
    CHECK(AdaptersOnDevice(*device, problem).add(problem, 0, 1) ==
          Floats{8.0F, 10.0F * (2.0F - 3.0F) + 100.0F, -2.0F * (3.0F - 5.0F) + 0.25F, 4.0F});
  }
}

TEST_CASE("what adapters add to embeddings is the row of each token") {
  for (const int64_t rank : {1, 8, 37}) {
    const LowRankSetup setup{.name = "embedding",
                             .cols = 1,
                             .outputs = 150,
                             .adapters = {},
                             .sequences = {{1, 2}, {0, 1}, {2, 40}, {1, 1}}};
    std::map<std::string, Floats> of_group;
    for (const DeviceCase& device_case : device_cases()) {
      const auto device = device_case.make();
      INFO(device_case.name << ", rank " << rank);
      const DType dtype = device->info().activation_dtype;
      Random random(static_cast<uint32_t>(rank));
      const StoredMatrix a(random.values(kVocab * rank), kVocab, rank, dtype);
      const StoredMatrix transposed(random.values(kVocab * rank), kVocab, rank, dtype, true);
      const StoredMatrix b(random.values(150 * rank), 150, rank, dtype);
      const auto part = [&](const HostWeight& table) {
        return LowRankPart{.site = 0,
                           .is_lookup = true,
                           .first_output = 0,
                           .scale = 1.5F,
                           .a = table,
                           .b = {b.weight}};
      };
      LowRankProblem problem(setup, {{part(a.weight)}, {part(transposed.weight)}});
      problem.out = random.values(problem.num_rows() * setup.outputs);
      const auto reference = make_reference_device();
      const auto count = setup.sequences.size();
      const Floats expected =
          AdaptersOnDevice(*reference, problem).add_of_tokens(problem, 0, count);
      AdaptersOnDevice adapters(*device, problem);
      const Floats all = adapters.add_of_tokens(problem, 0, count);
      const double size = std::sqrt(static_cast<double>(rank) * 256.0);
      CHECK(worst_error(all, expected, (0x1p-18 + 8.0 * roundoff(dtype)) * size,
                        8.0 * roundoff(dtype)) <= 1.0);
      CHECK(worst_error(all, problem.out, 0.05, 0.0) > 1.0);
      Floats one_by_one;
      for (size_t i = 0; i < count; ++i) {
        const Floats alone = adapters.add_of_tokens(problem, i, 1);
        one_by_one.insert(one_by_one.end(), alone.begin(), alone.end());
      }
      // The rows of the base model.
      const auto base = problem.out.begin() + 2 * setup.outputs;
      CHECK(same_bits(Floats(all.begin() + 2 * setup.outputs, all.begin() + 3 * setup.outputs),
                      Floats(base, base + setup.outputs)));
      if (device_case.bit_group.empty()) continue;
      CHECK(same_bits(one_by_one, all));
      const auto [first, is_new] = of_group.try_emplace(device_case.bit_group, all);
      if (!is_new) CHECK(same_bits(first->second, all));
    }
  }
}

TEST_CASE("a rank that there are no kernels for is refused by name") {
  const auto device = make_cpu_device({.num_threads = 1, .may_oversubscribe = true});
  Random random(3);
  const StoredMatrix a(random.values(257 * 4), 257, 4, DType::kF32);
  const StoredMatrix b(random.values(8 * 257), 8, 257, DType::kF32);
  const LowRankPart part{.site = 0, .first_output = 0, .a = a.weight, .b = {b.weight}};
  CHECK_THROWS_WITH(device->make_adapter(std::span(&part, 1), DType::kF32),
                    "test.weight: rank 257, where adapters of ranks up to 256 are supported");
}

}  // namespace
}  // namespace tgi::low_rank_test
