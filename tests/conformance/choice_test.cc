// choose_tokens and attention that sees the choice, over a paged cache with the keys of an indexer
// beside keys and values, against the reference, and bit for bit however the same tokens are cut
// into steps.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/steps.h"
#include "tests/conformance/taken_rows.h"

namespace tgi {
namespace {

struct ChoiceSetup {
  std::string name;
  int32_t num_heads = 4;
  int32_t num_kv_heads = 2;
  int32_t head_dim = 16;
  int32_t indexer_heads = 6;
  int32_t indexer_dim = 20;
  bool weighs = true;
  ChoiceRule rule{.top_k = 11};
  int32_t first_head = 0;  // of a rank, of twice as many heads
  DType dtype = DType::kF32;
  int32_t block_size = 16;
  int32_t window = 0;
  int32_t latent_dim = 0;  // keys hold the values
  std::vector<int32_t> lengths = {70, 5, 130};

  int32_t num_choices() const { return weighs ? 1 : indexer_heads; }
  int32_t qkv_width() const {
    return (num_heads + (latent_dim > 0 ? 1 : 2) * num_kv_heads) * head_dim;
  }
  int32_t value_cols() const { return latent_dim > 0 ? latent_dim : head_dim; }
  int32_t indexer_width() const { return (indexer_heads + 1) * indexer_dim; }
  int32_t model_heads() const { return first_head > 0 ? 2 * num_heads : num_heads; }
  int32_t total_tokens() const {
    int32_t total = 0;
    for (const int32_t length : lengths) total += length;
    return total;
  }
};

std::vector<ChoiceSetup> choice_setups() {
  std::vector<ChoiceSetup> out = {
      {.name = "tokens"},
      {.name = "more than there are", .rule = {.top_k = 200}},
      {.name = "one token", .rule = {.top_k = 1}},
      {.name = "tokens, f16 cache", .dtype = DType::kF16},
      {.name = "tokens, bf16 cache", .indexer_dim = 64, .dtype = DType::kBF16, .block_size = 32},
      {.name = "tokens, int8 cache", .indexer_dim = 32, .dtype = DType::kInt8},
      {.name = "tokens, f8e4m3 cache", .dtype = DType::kF8E4M3, .block_size = 48},
      {.name = "tokens, window", .rule = {.top_k = 40}, .window = 33},
      {.name = "blocks by head",
       .indexer_heads = 2,
       .weighs = false,
       .rule = {.top_k = 3, .block_size = 8, .local_blocks = 1}},
      {.name = "blocks of 5 by four heads, of half of the model",
       .num_kv_heads = 4,
       .indexer_heads = 8,
       .indexer_dim = 7,
       .weighs = false,
       .rule = {.top_k = 4, .block_size = 5, .local_blocks = 2},
       .first_head = 4},
      {.name = "one choice for two KV heads, many local blocks",
       .indexer_heads = 1,
       .weighs = false,
       .rule = {.top_k = 3, .block_size = 16, .local_blocks = 9},
       .dtype = DType::kBF16},
      {.name = "64 heads of 128", .indexer_heads = 64, .indexer_dim = 128, .dtype = DType::kBF16},
      {.name = "latents", .num_heads = 9, .num_kv_heads = 1, .head_dim = 22, .latent_dim = 17},
      {.name = "latents, bf16, 70 heads",
       .num_heads = 70,
       .num_kv_heads = 1,
       .head_dim = 40,
       .rule = {.top_k = 67},
       .dtype = DType::kBF16,
       .latent_dim = 32},
      {.name = "latents, f16, half of the heads",
       .num_heads = 4,
       .num_kv_heads = 1,
       .rule = {.top_k = 16},
       .first_head = 4,
       .dtype = DType::kF16,
       .block_size = 32,
       .latent_dim = 16},
      {.name = "latents, int8",
       .num_kv_heads = 1,
       .head_dim = 32,
       .dtype = DType::kInt8,
       .latent_dim = 16},
      {.name = "latents, blocks by head",
       .num_kv_heads = 1,
       .indexer_heads = 2,
       .weighs = false,
       .rule = {.top_k = 3, .block_size = 8},
       .latent_dim = 16},
      // A context of several spans, of which threads score one each.
      {.name = "long",
       .num_heads = 1,
       .num_kv_heads = 1,
       .indexer_heads = 2,
       .rule = {.top_k = 300},
       .lengths = {2500}},
  };
  return out;
}

class ChoiceRun {
 public:
  ChoiceRun(Device& device, const ChoiceSetup& setup) : device_(device), setup_(setup) {
    Random random(11);
    // Not in steps, so that no two scores are the same.
    const auto values = [&](int64_t cols) {
      Floats out = random.values(setup.total_tokens() * cols);
      for (float& x : out) x += random.value() * 0x1p-9F;
      return out;
    };
    qkv_ = values(setup.qkv_width());
    indexer_ = values(setup.indexer_width());
    weights_ = values(setup.indexer_heads);
    int32_t longest = 0;
    for (const int32_t length : setup.lengths) longest = std::max(longest, length);
    const auto num_slots = static_cast<int32_t>(setup.lengths.size());
    const int32_t blocks_per_slot = longest / setup.block_size + 1;
    const KvHeads of_attention = {.num_kv_heads = setup.num_kv_heads,
                                  .head_dim = setup.head_dim,
                                  .keys_only = setup.latent_dim > 0};
    const KvHeads of_indexer = {
        .num_kv_heads = 1, .head_dim = setup.indexer_dim, .keys_only = true};
    const int32_t most_dim = std::max(setup.head_dim, setup.indexer_dim);
    device.allocate_state({.num_layers = 2,
                           .num_kv_heads = setup.num_kv_heads,
                           .head_dim = most_dim,
                           .block_size = setup.block_size,
                           .num_blocks = num_slots * blocks_per_slot,
                           .dtype = setup.dtype,
                           .latent_dim = setup.latent_dim,
                           .groups = {{of_attention, of_indexer}}},
                          {.num_slots = num_slots,
                           .max_blocks_per_slot = blocks_per_slot,
                           .max_batch_tokens = 512,
                           .vocab_size = 32,
                           .block_size = setup.block_size,
                           .num_heads = setup.num_heads,
                           .num_kv_heads = setup.num_kv_heads,
                           .head_dim = most_dim,
                           .latent_dim = setup.latent_dim,
                           .unlike_heads = {of_attention, of_indexer},
                           .num_choices = setup.num_choices(),
                           .choice_block_size = setup.rule.block_size});
    for (int32_t i = 0; i < num_slots * blocks_per_slot; ++i) free_blocks_.push_back(i);
    random.shuffle(free_blocks_);
    output_.resize(static_cast<size_t>(setup.total_tokens() * out_width()));
    done_.resize(setup.lengths.size());
  }

  // All that the indexer has of a token.
  void spoil(int64_t token, float value) {
    const auto begin = indexer_.begin() + token * setup_.indexer_width();
    std::fill_n(begin, setup_.indexer_width(), value);
  }

  Floats run(const Steps& steps) {
    for (const std::vector<int32_t>& step : steps) run_one(step);
    return output_;
  }

 private:
  int64_t out_width() const { return int64_t{setup_.num_heads} * setup_.value_cols(); }

  void run_one(const std::vector<int32_t>& step) {
    const TakenRows taken = take_rows(step, setup_.lengths, setup_.block_size, done_, free_blocks_);
    if (taken.rows.empty()) return;
    put_rows(run_rows(taken.batch, taken.rows), taken.rows, out_width(), output_);
  }

  Floats run_rows(const Batch& batch, const std::vector<int64_t>& rows) {
    const auto tensor = [&](const Floats& values, int64_t width) {
      return tensor_of_rows(device_, values, width, rows);
    };
    const DeviceTensor qkv = tensor(qkv_, setup_.qkv_width());
    const DeviceTensor indexer = tensor(indexer_, setup_.indexer_width());
    const DeviceTensor weights = tensor(weights_, setup_.indexer_heads);
    const DeviceTensor out(device_, std::ssize(rows), out_width(), device_.info().activation_dtype);
    const int32_t queries = setup_.indexer_heads * setup_.indexer_dim;
    run_step(device_, batch, [&] {
      device_.qk_norm_rope_store_kv({.place = {.group = 0, .layer = 1},
                                     .num_heads = setup_.indexer_heads,
                                     .num_kv_heads = 1,
                                     .head_dim = setup_.indexer_dim,
                                     .keys_only = true,
                                     .qkv = indexer.view()});
      device_.choose_tokens({.place = {.group = 0, .layer = 1},
                             .rule = setup_.rule,
                             .num_heads = setup_.indexer_heads,
                             .head_dim = setup_.indexer_dim,
                             .q = indexer.view().columns(0, queries),
                             .weights = setup_.weighs ? weights.view() : Tensor{}});
      device_.qk_norm_rope_store_kv({.place = {.group = 0, .layer = 0},
                                     .num_heads = setup_.num_heads,
                                     .num_kv_heads = setup_.num_kv_heads,
                                     .head_dim = setup_.head_dim,
                                     .keys_only = setup_.latent_dim > 0,
                                     .qkv = qkv.view()});
      device_.attention({.place = {.group = 0, .layer = 0},
                         .num_heads = setup_.num_heads,
                         .num_kv_heads = setup_.num_kv_heads,
                         .head_dim = setup_.head_dim,
                         .scale = 0.3F,
                         .sliding_window = setup_.window,
                         .latent_dim = setup_.latent_dim,
                         .seen = {.heads_per_choice = setup_.model_heads() / setup_.num_choices(),
                                  .first_head = setup_.first_head},
                         .q = qkv.view().columns(0, setup_.num_heads * setup_.head_dim),
                         .out = out.view()});
    });
    return out.read();
  }

  Device& device_;
  const ChoiceSetup& setup_;
  Floats qkv_, indexer_, weights_, output_;
  std::vector<int32_t> free_blocks_;
  std::vector<int32_t> done_;
};

bool is_tried(const DeviceCase& device_case, const ChoiceSetup& setup) {
  return device_case.make()->info().chooses_tokens &&
         device_case.can_cache(setup.dtype, setup.indexer_dim);
}

}  // namespace

TEST_CASE("attention sees what an indexer chooses, as the reference does") {
  for (const ChoiceSetup& setup : choice_setups()) {
    const Steps steps = cut_into(setup.lengths, 5, setup.lengths.size() == 1 ? 400 : 50);
    const auto reference = make_reference_device();
    const Floats wanted = ChoiceRun(*reference, setup).run(steps);
    for (const DeviceCase& device_case : device_cases()) {
      if (!is_tried(device_case, setup)) continue;
      INFO(device_case.name << ": " << setup.name);
      const auto device = device_case.make();
      const double of_cache = setup.dtype == DType::kF32 ? 0.0 : 6.0 * roundoff(setup.dtype);
      CHECK(worst_error(ChoiceRun(*device, setup).run(steps), wanted,
                        2e-5 + of_cache + 16.0 * roundoff(device->info().activation_dtype),
                        0.0) <= 1.0);
    }
  }
}

TEST_CASE(
    "what is chosen has the same bits however the prompt was cut, on every device of a group") {
  for (const ChoiceSetup& setup : choice_setups()) {
    std::map<std::string, Floats> by_group;
    for (const DeviceCase& device_case : device_cases()) {
      if (device_case.bit_group.empty() || !is_tried(device_case, setup)) continue;
      const bool is_long = setup.lengths.size() == 1;
      std::vector<Steps> plans = {cut_into(setup.lengths, 7, is_long ? 500 : 150)};
      if (!kUnderSanitizers && !is_long) {
        for (const int32_t most : {1, 30}) plans.push_back(cut_into(setup.lengths, 3, most));
      }
      for (const Steps& steps : plans) {
        INFO(device_case.name << ": " << setup.name << ", " << steps.size() << " steps");
        const auto device = device_case.make();
        const Floats got = ChoiceRun(*device, setup).run(steps);
        CHECK(same_bits(got, by_group.try_emplace(device_case.bit_group, got).first->second));
      }
    }
  }
}

TEST_CASE("a NaN among an indexer's queries or keys is no reason to fall over") {
  ChoiceSetup setup{.name = "NaN", .lengths = {40}};
  for (const DeviceCase& device_case : device_cases()) {
    if (!is_tried(device_case, setup)) continue;
    INFO(device_case.name);
    const auto device = device_case.make();
    ChoiceRun run(*device, setup);
    run.spoil(20, std::nanf(""));
    CHECK(run.run({{40}}).size() == 40 * 64);
  }
}

}  // namespace tgi
