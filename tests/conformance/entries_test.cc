// compress, and attention that sees a window and entries behind it, all of them or those that are
// chosen, over a paged cache, against the reference, and bit for bit however the same tokens are
// cut into steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/steps.h"
#include "tests/conformance/taken_rows.h"

namespace tgi {
namespace {

struct EntriesSetup {
  std::string name;
  int32_t tokens_per_entry = 5;
  bool overlaps = false;
  int32_t num_heads = 4;
  int32_t head_dim = 16;
  int32_t rotated = 0;  // the last columns of an entry
  bool interleaved = true;
  int32_t window = 9;
  int32_t top_k = 0;  // of the entries; 0: all are seen
  int32_t indexer_heads = 6;
  int32_t indexer_dim = 20;
  DType dtype = DType::kF32;
  int32_t block_size = 16;
  std::vector<int32_t> lengths = {70, 4, 130};

  bool chooses() const { return top_k > 0; }
  int32_t row_width(int32_t size) const { return 2 * (overlaps ? 2 : 1) * size; }
  int32_t qkv_width() const { return (num_heads + 1) * head_dim; }
  int32_t queries_width() const { return indexer_heads * indexer_dim; }
  int32_t total_tokens() const {
    int32_t total = 0;
    for (const int32_t length : lengths) total += length;
    return total;
  }
};

std::vector<EntriesSetup> entries_setups() {
  return {
      {.name = "runs of 5"},
      {.name = "runs of 5 that overlap", .overlaps = true},
      {.name = "runs of 2", .tokens_per_entry = 2, .window = 3},
      {.name = "runs longer than a block, rotated halves",
       .tokens_per_entry = 37,
       .rotated = 6,
       .interleaved = false},
      {.name = "runs that overlap, rotated pairs, 70 heads",
       .tokens_per_entry = 4,
       .overlaps = true,
       .num_heads = 70,
       .head_dim = 40,
       .rotated = 8,
       .window = 33,
       .block_size = 32},
      {.name = "runs of 128, window of 1", .tokens_per_entry = 128, .window = 1},
      {.name = "f16 cache",
       .tokens_per_entry = 4,
       .overlaps = true,
       .rotated = 4,
       .dtype = DType::kF16},
      {.name = "bf16 cache",
       .tokens_per_entry = 3,
       .num_heads = 9,
       .head_dim = 64,
       .rotated = 16,
       .window = 20,
       .dtype = DType::kBF16,
       .block_size = 48},
      {.name = "chosen", .tokens_per_entry = 4, .overlaps = true, .rotated = 4, .top_k = 7},
      {.name = "chosen, one", .tokens_per_entry = 3, .top_k = 1, .indexer_heads = 1},
      {.name = "chosen, more than there are", .overlaps = true, .top_k = 200},
      {.name = "chosen, 64 heads of 128, 17 heads",
       .tokens_per_entry = 2,
       .overlaps = true,
       .num_heads = 17,
       .head_dim = 32,
       .window = 40,
       .top_k = 24,
       .indexer_heads = 64,
       .indexer_dim = 128,
       .block_size = 32},
  };
}

class EntriesRun {
 public:
  EntriesRun(Device& device, const EntriesSetup& setup) : device_(device), setup_(setup) {
    Random random(13);
    // Not in steps, so that no two scores are the same.
    const auto values = [&](int64_t count) {
      Floats out = random.values(count);
      for (float& x : out) x += random.value() * 0x1p-9F;
      return out;
    };
    const int64_t tokens = setup.total_tokens();
    qkv_ = values(tokens * setup.qkv_width());
    rows_ = values(tokens * setup.row_width(setup.head_dim));
    indexer_rows_ = values(tokens * setup.row_width(setup.indexer_dim));
    queries_ = values(tokens * setup.queries_width());
    weights_ = values(tokens * setup.indexer_heads);
    norm_ = values(std::max(setup.head_dim, setup.indexer_dim));
    for (float& x : norm_) x = 1.0F + 0.2F * x;
    bias_ = values(int64_t{setup.tokens_per_entry} *
                   setup.row_width(std::max(setup.head_dim, setup.indexer_dim)) / 2);
    allocate();
    if (setup.rotated > 0) {
      RopeSpec rope;
      rope.rotary_dim = setup.rotated;
      rope.interleaved = setup.interleaved;
      for (int32_t i = 0; i < setup.rotated / 2; ++i) {
        rope.inv_freq.push_back(
            std::pow(50.0F, -2.0F * static_cast<float>(i) / static_cast<float>(setup.rotated)));
      }
      rope_ = device.add_rope(rope);
    }
    random.shuffle(free_blocks_);
    output_.resize(static_cast<size_t>(tokens * out_width()));
    done_.resize(setup.lengths.size());
  }

  Floats run(const Steps& steps) {
    for (const std::vector<int32_t>& step : steps) run_one(step);
    return output_;
  }

 private:
  static KvPlace place(int32_t layer) { return {.group = 0, .layer = layer}; }

  void allocate() {
    const auto keys = [](int32_t head_dim, int32_t tokens_per_row) {
      return KvHeads{.num_kv_heads = 1,
                     .head_dim = head_dim,
                     .keys_only = true,
                     .tokens_per_row = tokens_per_row};
    };
    const std::vector<KvHeads> all = {keys(setup_.head_dim, 1),
                                      keys(setup_.row_width(setup_.head_dim), 1),
                                      keys(setup_.head_dim, setup_.tokens_per_entry),
                                      keys(setup_.row_width(setup_.indexer_dim), 1),
                                      keys(setup_.indexer_dim, setup_.tokens_per_entry)};
    const auto num_slots = static_cast<int32_t>(setup_.lengths.size());
    const int32_t blocks_per_slot =
        *std::ranges::max_element(setup_.lengths) / setup_.block_size + 1;
    const int32_t most_dim = std::max(setup_.head_dim, setup_.indexer_dim);
    device_.allocate_state({.num_layers = static_cast<int32_t>(all.size()),
                            .num_kv_heads = 1,
                            .head_dim = most_dim,
                            .block_size = setup_.block_size,
                            .num_blocks = num_slots * blocks_per_slot,
                            .dtype = setup_.dtype,
                            .latent_dim = setup_.head_dim,
                            .groups = {all}},
                           {.num_slots = num_slots,
                            .max_blocks_per_slot = blocks_per_slot,
                            .max_batch_tokens = 512,
                            .vocab_size = 32,
                            .block_size = setup_.block_size,
                            .num_heads = setup_.num_heads,
                            .num_kv_heads = 1,
                            .head_dim = most_dim,
                            .latent_dim = setup_.head_dim,
                            .unlike_heads = all,
                            .num_choices = setup_.chooses() ? 1 : 0,
                            .choice_block_size = 1});
    for (int32_t i = 0; i < num_slots * blocks_per_slot; ++i) free_blocks_.push_back(i);
  }

  int64_t out_width() const { return int64_t{setup_.num_heads} * setup_.head_dim; }

  void run_one(const std::vector<int32_t>& step) {
    const TakenRows taken = take_rows(step, setup_.lengths, setup_.block_size, done_, free_blocks_);
    if (taken.rows.empty()) return;
    put_rows(run_rows(taken.batch, taken.rows), taken.rows, out_width(), output_);
  }

  Floats run_rows(const Batch& batch, const std::vector<int64_t>& rows) {
    const auto tensor = [&](const Floats& values, int64_t width) {
      return tensor_of_rows(device_, values, width, rows);
    };
    const auto vector = [&](const Floats& values, int64_t count) {
      DeviceTensor out(device_, 1, count, DType::kF32);
      out.write(Floats(values.begin(), values.begin() + count));
      return out;
    };
    const DeviceTensor qkv = tensor(qkv_, setup_.qkv_width());
    const DeviceTensor entry_rows = tensor(rows_, setup_.row_width(setup_.head_dim));
    const DeviceTensor indexer_rows = tensor(indexer_rows_, setup_.row_width(setup_.indexer_dim));
    const DeviceTensor queries = tensor(queries_, setup_.queries_width());
    const DeviceTensor weights = tensor(weights_, setup_.indexer_heads);
    const DeviceTensor norm = vector(norm_, setup_.head_dim);
    const DeviceTensor indexer_norm = vector(norm_, setup_.indexer_dim);
    const auto bias_of = [&](int32_t size) {
      return vector(bias_, int64_t{setup_.tokens_per_entry} * setup_.row_width(size) / 2);
    };
    const DeviceTensor bias = bias_of(setup_.head_dim);
    const DeviceTensor indexer_bias = bias_of(setup_.indexer_dim);
    const DeviceTensor out(device_, std::ssize(rows), out_width(), device_.info().activation_dtype);
    const Tensor norm_view = norm.view();
    const Tensor indexer_norm_view = indexer_norm.view();
    const Tensor bias_view = bias.view();
    const Tensor indexer_bias_view = indexer_bias.view();
    run_step(device_, batch, [&] {
      device_.compress({.rows = place(1),
                        .entries = place(2),
                        .tokens_per_entry = setup_.tokens_per_entry,
                        .head_dim = setup_.head_dim,
                        .overlaps = setup_.overlaps,
                        .rope = rope_,
                        .first_rotated = setup_.head_dim - setup_.rotated,
                        .norm_eps = 1e-3F,
                        .norm = &norm_view,
                        .gate_bias = &bias_view,
                        .x = entry_rows.view()});
      if (setup_.chooses()) {
        device_.compress({.rows = place(3),
                          .entries = place(4),
                          .tokens_per_entry = setup_.tokens_per_entry,
                          .head_dim = setup_.indexer_dim,
                          .overlaps = setup_.overlaps,
                          .norm_eps = 1e-6F,
                          .norm = &indexer_norm_view,
                          .gate_bias = &indexer_bias_view,
                          .x = indexer_rows.view()});
        device_.choose_tokens({.place = place(4),
                               .tokens_per_entry = setup_.tokens_per_entry,
                               .rule = {.top_k = setup_.top_k},
                               .num_heads = setup_.indexer_heads,
                               .head_dim = setup_.indexer_dim,
                               .q = queries.view(),
                               .weights = weights.view()});
      }
      device_.qk_norm_rope_store_kv({.place = place(0),
                                     .num_heads = setup_.num_heads,
                                     .num_kv_heads = 1,
                                     .head_dim = setup_.head_dim,
                                     .keys_only = true,
                                     .qkv = qkv.view()});
      device_.attention(
          {.place = place(0),
           .num_heads = setup_.num_heads,
           .num_kv_heads = 1,
           .head_dim = setup_.head_dim,
           .scale = 0.3F,
           .sliding_window = setup_.window,
           .latent_dim = setup_.head_dim,
           .entries = {.place = place(2), .tokens_per_entry = setup_.tokens_per_entry},
           .seen = {.heads_per_choice = setup_.chooses() ? setup_.num_heads : 0},
           .q = qkv.view().columns(0, out_width()),
           .out = out.view()});
    });
    return out.read();
  }

  Device& device_;
  const EntriesSetup& setup_;
  int32_t rope_ = -1;
  Floats qkv_, rows_, indexer_rows_, queries_, weights_, norm_, bias_, output_;
  std::vector<int32_t> free_blocks_;
  std::vector<int32_t> done_;
};

bool is_tried(const DeviceCase& device_case, const EntriesSetup& setup) {
  return device_case.make()->info().compresses_tokens &&
         device_case.can_cache(setup.dtype, setup.head_dim);
}

}  // namespace

TEST_CASE("attention sees entries of several tokens, as the reference does") {
  for (const EntriesSetup& setup : entries_setups()) {
    const Steps steps = cut_into(setup.lengths, 5, 50);
    const auto reference = make_reference_device();
    const Floats wanted = EntriesRun(*reference, setup).run(steps);
    for (const DeviceCase& device_case : device_cases()) {
      if (!is_tried(device_case, setup)) continue;
      INFO(device_case.name << ": " << setup.name);
      const auto device = device_case.make();
      const double of_cache = setup.dtype == DType::kF32 ? 0.0 : 6.0 * roundoff(setup.dtype);
      CHECK(worst_error(EntriesRun(*device, setup).run(steps), wanted,
                        2e-5 + of_cache + 16.0 * roundoff(device->info().activation_dtype),
                        0.0) <= 1.0);
    }
  }
}

TEST_CASE("entries have the same bits however the prompt was cut, on every device of a group") {
  for (const EntriesSetup& setup : entries_setups()) {
    std::map<std::string, Floats> by_group;
    for (const DeviceCase& device_case : device_cases()) {
      if (device_case.bit_group.empty() || !is_tried(device_case, setup)) continue;
      std::vector<Steps> plans = {cut_into(setup.lengths, 7, 150)};
      if (!kUnderSanitizers) {
        for (const int32_t most : {1, 30}) plans.push_back(cut_into(setup.lengths, 3, most));
      }
      for (const Steps& steps : plans) {
        INFO(device_case.name << ": " << setup.name << ", " << steps.size() << " steps");
        const auto device = device_case.make();
        const Floats got = EntriesRun(*device, setup).run(steps);
        CHECK(same_bits(got, by_group.try_emplace(device_case.bit_group, got).first->second));
      }
    }
  }
}

}  // namespace tgi
