// add_low_rank_to_experts between route and combine_experts: the reference is agreed with, a
// token's bits depend on nothing but the token and its adapter, and those of tokens without one
// are what they are where the op isn't called.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi::expert_adapters_test {
namespace {

constexpr int32_t kNumSlots = 5;
constexpr int32_t kMaxTokens = 48;
constexpr int32_t kFirstSite = 3;

// Of an adapter: the experts that it changes, and by which rank.
struct AdapterSetup {
  std::vector<int32_t> experts;
  int64_t rank = 4;
};

struct Setup {
  std::string name;
  int32_t num_experts = 6;
  int32_t top_k = 2;
  int64_t cols = 40;
  int64_t outputs = 70;
  bool x_is_routed = false;
  std::vector<AdapterSetup> adapters;
  // Of each sequence: its adapter, 0 for none, and its tokens.
  std::vector<std::pair<int32_t, int32_t>> sequences;

  int32_t num_tokens() const {
    int32_t count = 0;
    for (const auto& [adapter, tokens] : sequences) count += tokens;
    return count;
  }
};

std::vector<Setup> setups() {
  return {
      {.name = "one token, all experts", .adapters = {{{0, 1, 2, 3, 4, 5}}}, .sequences = {{1, 1}}},
      {.name = "one of its experts",
       .top_k = 6,
       .adapters = {{{4}, 1}},
       .sequences = {{1, 3}, {0, 2}}},
      {.name = "two adapters of other experts and ranks, and none between",
       .adapters = {{{0, 1, 2, 3}, 16}, {{2, 3, 4, 5}, 3}},
       .sequences = {{1, 3}, {0, 4}, {2, 9}, {0, 1}, {1, 20}}},
      {.name = "rows of their own, whole blocks",
       .cols = 64,
       .outputs = 96,
       .x_is_routed = true,
       .adapters = {{{0, 1, 2, 3, 4, 5}, 32}, {{1, 5}, 8}},
       .sequences = {{2, 20}, {1, 13}, {0, 5}}},
      {.name = "more rows than are prepared at once",
       .num_experts = 5,
       .top_k = 5,
       .cols = 250,
       .outputs = 33,
       .adapters = {{{0, 1, 2, 3, 4}, 5}},
       .sequences = {{1, kMaxTokens}}},
      {.name = "an adapter of no expert", .adapters = {{{}}}, .sequences = {{1, 4}}},
  };
}

class Problem {
 public:
  Problem(const Setup& setup, DType dtype) {
    Random random(static_cast<uint32_t>(setup.cols * 31 + setup.outputs));
    for (const AdapterSetup& adapter : setup.adapters) {
      std::vector<LowRankPart>& to = parts.emplace_back();
      // One of another linear is before them and behind them, as sites are numbered in models.
      for (const int32_t site : {kFirstSite - 1, kFirstSite + setup.num_experts}) {
        to.push_back(part(random, setup, adapter.rank, site, dtype));
      }
      for (const int32_t expert : adapter.experts) {
        to.push_back(part(random, setup, adapter.rank, kFirstSite + expert, dtype));
      }
    }
    const int64_t tokens = setup.num_tokens();
    x = random.values(tokens * (setup.x_is_routed ? setup.top_k : 1) * setup.cols);
    out = random.values(tokens * setup.top_k * setup.outputs);
    // Far apart, so that no rounding changes a choice.
    for (int64_t token = 0; token < tokens; ++token) {
      std::vector<int32_t> order(static_cast<size_t>(setup.num_experts));
      std::iota(order.begin(), order.end(), 0);
      random.shuffle(order);
      for (const int32_t rank : order) logits.push_back(static_cast<float>(rank) * 0.5F - 1.0F);
    }
  }

  std::vector<std::vector<LowRankPart>> parts;
  Floats x;  // of each token, or of each of its choices
  Floats out;
  Floats logits;

 private:
  LowRankPart part(Random& random, const Setup& setup, int64_t rank, int32_t site, DType dtype) {
    return {.site = site,
            .first_output = 2,
            .scale = 1.5F,
            .a = store(random, rank, setup.cols, dtype),
            .b = {store(random, setup.outputs - 2, rank, dtype)}};
  }
  HostWeight store(Random& random, int64_t rows, int64_t cols, DType dtype) {
    stored_.push_back(
        std::make_unique<StoredMatrix>(random.values(rows * cols), rows, cols, dtype));
    return stored_.back()->weight;
  }

  std::vector<std::unique_ptr<StoredMatrix>> stored_;
};

class ExpertsOnDevice {
 public:
  ExpertsOnDevice(Device& device, const Setup& setup, const Problem& problem)
      : device_(device), setup_(setup), problem_(problem) {
    const DType dtype = device.info().activation_dtype;
    const auto count = static_cast<int32_t>(problem.parts.size());
    device.allocate_state({.num_layers = 1,
                           .num_kv_heads = 1,
                           .head_dim = 16,
                           .block_size = 16,
                           .num_blocks = 4,
                           .dtype = dtype},
                          {.num_slots = kNumSlots,
                           .max_blocks_per_slot = 8,
                           .max_batch_tokens = kMaxTokens,
                           .vocab_size = 64,
                           .block_size = 16,
                           .max_matmul_cols = 256,
                           .num_heads = 1,
                           .num_kv_heads = 1,
                           .head_dim = 16,
                           .num_experts = setup.num_experts,
                           .experts_per_token = setup.top_k,
                           .max_adapters = count});
    for (int32_t i = 0; i < count; ++i) {
      const auto& parts = problem.parts[static_cast<size_t>(i)];
      adapters_.push_back(device.make_adapter(parts, dtype));
      CHECK(adapters_.back()->size_bytes == device.adapter_bytes(parts, dtype));
      device.set_adapter(i + 1, adapters_.back().get());
    }
  }
  ~ExpertsOnDevice() {
    for (size_t i = 0; i < adapters_.size(); ++i) {
      device_.set_adapter(static_cast<int32_t>(i) + 1, nullptr);
    }
  }
  ExpertsOnDevice(const ExpertsOnDevice&) = delete;
  ExpertsOnDevice& operator=(const ExpertsOnDevice&) = delete;

  // What the tokens of some of the sequences become.
  Floats run(size_t first, size_t count, bool with_adapters = true) {
    const DType dtype = device_.info().activation_dtype;
    int64_t begin = 0;
    for (size_t i = 0; i < first; ++i) begin += setup_.sequences[i].second;
    const Batch batch = batch_of(first, count);
    const int64_t tokens = batch.num_tokens();
    const int64_t routed = tokens * setup_.top_k;
    const auto part = [&](const Floats& all, int64_t cols) {
      return Floats(all.begin() + begin * cols, all.begin() + (begin + tokens) * cols);
    };
    DeviceTensor logits(device_, tokens, setup_.num_experts,
                        part(problem_.logits, setup_.num_experts));
    DeviceTensor x(device_, setup_.x_is_routed ? routed : tokens, setup_.cols, dtype);
    DeviceTensor rows(device_, routed, setup_.outputs, dtype, setup_.outputs + 10);
    DeviceTensor out(device_, tokens, setup_.outputs, dtype);
    if (!setup_.x_is_routed) x.write(part(problem_.x, setup_.cols));
    rows.write(in_route_order(part(problem_.logits, setup_.num_experts),
                              part(problem_.out, setup_.top_k * setup_.outputs), setup_.outputs));
    if (setup_.x_is_routed) {
      x.write(in_route_order(part(problem_.logits, setup_.num_experts),
                             part(problem_.x, setup_.top_k * setup_.cols), setup_.cols));
    }
    run_step(device_, batch, [&] {
      device_.route({.rule = {.top_k = setup_.top_k}, .logits = logits.view()});
      if (with_adapters) {
        device_.add_low_rank_to_experts({.first_site = kFirstSite,
                                         .x_is_routed = setup_.x_is_routed,
                                         .x = x.view(),
                                         .out = rows.view()});
      }
      device_.combine_experts({.x = rows.view(), .out = out.view()});
    });
    return out.read();
  }

 private:
  // Of (tokens, top_k, cols) the rows as they stand after route: by expert, then by token.
  Floats in_route_order(const Floats& logits, const Floats& values, int64_t cols) const {
    const auto num_experts = static_cast<size_t>(setup_.num_experts);
    const size_t tokens = logits.size() / num_experts;
    std::vector<std::vector<int32_t>> chosen(tokens);  // of each token, ascending
    for (size_t token = 0; token < tokens; ++token) {
      const float* const row = logits.data() + token * num_experts;
      for (int32_t e = 0; e < setup_.num_experts; ++e) {
        const auto better =
            std::count_if(row, row + num_experts, [&](float other) { return other > row[e]; });
        if (better < setup_.top_k) chosen[token].push_back(e);
      }
    }
    Floats out;
    for (int32_t e = 0; e < setup_.num_experts; ++e) {
      for (size_t token = 0; token < tokens; ++token) {
        const auto at = std::ranges::find(chosen[token], e);
        if (at == chosen[token].end()) continue;
        const auto choice =
            static_cast<int64_t>(token) * setup_.top_k + (at - chosen[token].begin());
        out.insert(out.end(), values.begin() + choice * cols, values.begin() + (choice + 1) * cols);
      }
    }
    return out;
  }

  Batch batch_of(size_t first, size_t count) const {
    Batch batch;
    batch.clear();
    for (size_t i = first; i < first + count; ++i) {
      const auto [adapter, tokens] = setup_.sequences[i];
      const auto slot = static_cast<int32_t>(i);
      batch.slots.push_back(slot);
      for (int32_t token = 0; token < tokens; ++token) {
        batch.token_ids.push_back(token % 64);
        batch.positions.push_back(token);
      }
      batch.cu_seqlens_q.push_back(batch.num_tokens());
      batch.context_lens.push_back(tokens);
      batch.slot_starts.push_back(
          {.slot = slot, .sampling = {}, .token_ids = {}, .adapter = adapter});
    }
    return batch;
  }

  Device& device_;
  const Setup& setup_;
  const Problem& problem_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
};

}  // namespace

TEST_CASE("what adapters add to experts agrees with the reference, whatever else is in the step") {
  for (const Setup& setup : setups()) {
    std::map<std::string, Floats> of_group;
    for (const DeviceCase& device_case : device_cases()) {
      const auto device = device_case.make();
      if (!device->info().takes_adapters) continue;
      INFO(setup.name << " on " << device_case.name);
      const DType dtype = device->info().activation_dtype;
      const Problem problem(setup, dtype);
      const size_t count = setup.sequences.size();
      const auto reference = make_reference_device();
      const Floats expected = ExpertsOnDevice(*reference, setup, problem).run(0, count);
      ExpertsOnDevice experts(*device, setup, problem);
      const Floats all = experts.run(0, count);
      const double size = std::sqrt(static_cast<double>(setup.cols) * 256.0);
      CHECK(worst_error(all, expected, (0x1p-15 + 8.0 * roundoff(dtype)) * size,
                        8.0 * roundoff(dtype)) <= 1.0);
      const Floats plain = experts.run(0, count, false);
      const bool changes = !setup.adapters.front().experts.empty();
      CHECK(same_bits(all, plain) == !changes);

      Floats one_by_one;
      for (size_t i = 0; i < count; ++i) {
        const auto begin = static_cast<int64_t>(one_by_one.size());
        const Floats alone = experts.run(i, 1);
        one_by_one.insert(one_by_one.end(), alone.begin(), alone.end());
        if (setup.sequences[i].first != 0) continue;
        const auto end = begin + static_cast<int64_t>(alone.size());
        CHECK(same_bits(Floats(all.begin() + begin, all.begin() + end),
                        Floats(plain.begin() + begin, plain.begin() + end)));
      }
      if (device_case.bit_group.empty()) continue;
      CHECK(same_bits(one_by_one, all));
      const auto [first, is_new] = of_group.try_emplace(device_case.bit_group, all);
      if (!is_new) CHECK(same_bits(first->second, all));
    }
  }
}

}  // namespace tgi::expert_adapters_test
