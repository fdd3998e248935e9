// sample and score against the reference: several sequences with different settings run some steps
// on a model that is only an embedding and a head, each token fed back from its slot.
#include <cmath>
#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

constexpr int32_t kVocab = 301;
constexpr int64_t kHidden = 24;
constexpr int32_t kSteps = 12;

std::vector<SamplingParams> settings() {
  return {
      {},
      {.top_n_tokens = 4},
      {.repetition_penalty = 1.7F, .frequency_penalty = 0.4F, .presence_penalty = 0.3F},
      {.do_sample = true, .seed = 1},
      {.do_sample = true, .temperature = 0.7F, .top_k = 20, .seed = 2, .top_n_tokens = 2},
      {.do_sample = true, .temperature = 1.3F, .top_p = 0.8F, .seed = 3, .sequence_index = 2},
      {.do_sample = true, .typical_p = 0.7F, .min_p = 0.02F, .seed = 4},
      {.do_sample = true,
       .top_k = 50,
       .top_p = 0.95F,
       .repetition_penalty = 1.3F,
       .frequency_penalty = 0.2F,
       .watermark = true,
       .seed = 5},
      {.watermark = true},
      {.logit_bias = {{.id = 300, .bias = 3}, {.id = 17, .bias = -4}}},
      {.do_sample = true,
       .frequency_penalty = 0.5F,
       .logit_bias = {{.id = 12, .bias = 5}, {.id = 90, .bias = 5.5F}, {.id = 7, .bias = -100}},
       .seed = 6},
  };
}

struct Outcome {
  std::vector<std::vector<int32_t>> ids;  // per sequence
  Floats logprobs;
  std::vector<int32_t> top_ids;
  Floats scores;
};

struct Model {
  std::unique_ptr<Matrix> table, head;
  std::optional<DeviceTensor> bias;
  Buffer draw_ids;

  // `broken_id`: whose embedding holds a NaN; -1: none. `order`: of each id the one whose numbers
  // and random bits it has; empty: its own.
  explicit Model(Device& device, int32_t broken_id = -1, const std::vector<int32_t>& order = {}) {
    Random random(77);
    // The numbers are the same in both 16-bit types.
    const DType activation = device.info().activation_dtype;
    const DType dtype = activation == DType::kF32 ? DType::kBF16 : activation;
    Floats embeddings = random.values(kVocab * kHidden);
    if (broken_id >= 0) embeddings[static_cast<size_t>(broken_id * kHidden + 5)] = std::nanf("");
    table = make_matrix(device, in_order(embeddings, order), kVocab, kHidden, dtype);
    const Floats head_rows = in_order(random.values(kVocab * kHidden), order);
    head = make_matrix(device, head_rows, kVocab, kHidden, dtype);
    bias.emplace(DeviceTensor::vector(device, in_order(random.values(kVocab), order)));
    if (order.empty()) return;
    draw_ids = device.allocate(order.size() * sizeof(int32_t), "a test's ids");
    device.copy_to_device(draw_ids.data(), order.data(), order.size() * sizeof(int32_t));
  }

  static Floats in_order(const Floats& rows, const std::vector<int32_t>& order) {
    if (order.empty()) return rows;
    const size_t cols = rows.size() / order.size();
    Floats out;
    for (const int32_t id : order) {
      const auto* const row = rows.data() + static_cast<size_t>(id) * cols;
      out.insert(out.end(), row, row + cols);
    }
    return out;
  }

  StepResult run(Device& device, const Batch& batch, const TokenMasks& masks = {}) const {
    const int64_t num_logit_rows = batch.num_logit_rows();
    DeviceTensor hidden(device, batch.num_tokens(), kHidden, device.info().activation_dtype);
    DeviceTensor rows(device, num_logit_rows, kHidden, device.info().activation_dtype);
    const auto pass = [&] {
      device.embed({.table = table.get(), .multiplier = 2.0F, .out = hidden.view()});
      device.gather_output_rows(hidden.view(), rows.view());
    };
    const auto sample = [&] {
      device.sample({.hidden = rows.view(),
                     .lm_head = head.get(),
                     .bias = &bias->view(),
                     .logit_scale = 0.8F,
                     .logit_softcap = 9.0F,
                     .draw_ids = static_cast<const int32_t*>(draw_ids.data())});
    };
    return run_step(device, batch, pass, sample, masks);
  }
};

void collect(const StepResult& result, Outcome& out) {
  for (size_t i = 0; i < result.sampled.size(); ++i) {
    const SampledToken& sampled = result.sampled[i];
    out.ids[i].push_back(sampled.token.id);
    out.logprobs.push_back(sampled.token.logprob);
    for (const TokenScore& top : sampled.top_tokens) {
      out.top_ids.push_back(top.id);
      out.logprobs.push_back(top.logprob);
    }
  }
  out.scores.insert(out.scores.end(), result.scores.begin(), result.scores.end());
  REQUIRE(result.score_tops.size() == result.scores.size());
  for (const auto& tops : result.score_tops) {
    out.top_ids.push_back(-1 - static_cast<int32_t>(tops.size()));  // where a list ends
    for (const TokenScore& top : tops) {
      out.top_ids.push_back(top.id);
      out.scores.push_back(top.logprob);
    }
  }
}

// Room for a prompt of a few tokens in each slot, and for all of them in one step.
void allocate_slots(Device& device, int32_t num_slots) {
  device.allocate_state({.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .block_size = 16,
                         .num_blocks = 1,
                         .dtype = device.info().activation_dtype},
                        {.num_slots = num_slots,
                         .max_blocks_per_slot = 4,
                         .max_batch_tokens = 128,
                         .vocab_size = kVocab,
                         .block_size = 16});
}

// The first step scores 40 rows too: more than any device holds logits for at a time.
Outcome run_model(Device& device,
                  const std::vector<SamplingParams>& params = settings(),
                  const std::vector<int32_t>& prompt = {7, 300, 7, 12, 90},
                  const std::vector<int32_t>& order = {}) {
  const auto num_slots = static_cast<int32_t>(params.size());
  allocate_slots(device, num_slots);
  const Model model(device, -1, order);
  Outcome out;
  out.ids.resize(params.size());
  for (int32_t step = 0; step < kSteps; ++step) {
    Batch batch;
    batch.clear();
    for (int32_t slot = 0; slot < num_slots; ++slot) {
      if (step == 0) {
        batch.slot_starts.push_back({.slot = slot,
                                     .sampling = params[static_cast<size_t>(slot)],
                                     .token_ids = prompt,
                                     .num_prompt_tokens = 4});  // the last one counts as output
      }
      batch.token_ids.push_back(step == 0 ? prompt.back() : -1 - slot);
      const int32_t position = step + 4;
      batch.positions.push_back(position);
      batch.slots.push_back(slot);
      batch.cu_seqlens_q.push_back(slot + 1);
      batch.context_lens.push_back(position + 1);
      batch.sample_rows.push_back({.row = slot, .slot = slot, .position = position + 1});
    }
    for (int32_t i = 0; step == 0 && i < 40; ++i) {
      batch.score_rows.push_back(
          {.row = i % num_slots, .target_id = i * 7, .num_top = i % 4 == 1 ? 0 : i % 4});
    }
    collect(model.run(device, batch), out);
  }
  return out;
}

}  // namespace

TEST_CASE("sampled ids, log-probabilities, alternatives and scores agree with the reference") {
  const Outcome wanted = run_model(*make_reference_device());
  // No setting may stand still, or little would be compared.
  for (const size_t i : {3, 4, 5, 6, 7, 10})
    CHECK(std::count(wanted.ids[i].begin(), wanted.ids[i].end(), wanted.ids[i][0]) < kSteps);
  std::map<std::string, Outcome> by_group;
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    const auto device = device_case.make();
    const Outcome got = run_model(*device);
    const double tolerance = 1e-5 + 32.0 * roundoff(device->info().activation_dtype);
    CHECK(got.ids == wanted.ids);
    CHECK(got.top_ids == wanted.top_ids);
    CHECK(worst_error(got.logprobs, wanted.logprobs, tolerance, 0.0) <= 1.0);
    CHECK(worst_error(got.scores, wanted.scores, tolerance, 0.0) <= 1.0);
    if (device_case.bit_group.empty()) continue;
    const Outcome& same = by_group.try_emplace(device_case.bit_group, got).first->second;
    CHECK(same_bits(got.logprobs, same.logprobs));
    CHECK(same_bits(got.scores, same.scores));
  }
}

TEST_CASE("ids that are drawn by the random bits of others draw what those draw on every device") {
  const std::vector<SamplingParams> params = {
      {.do_sample = true, .seed = 1},
      {.do_sample = true, .temperature = 2.0F, .seed = 7},
      {.do_sample = true, .temperature = 0.7F, .top_k = 20, .seed = 2, .top_n_tokens = 2},
      {.do_sample = true, .temperature = 1.3F, .top_p = 0.8F, .seed = 3, .sequence_index = 2},
      {.do_sample = true, .typical_p = 0.7F, .min_p = 0.02F, .seed = 4}};
  std::vector<int32_t> order;
  std::vector<int32_t> places(kVocab);
  for (int32_t i = 0; i < kVocab; ++i) {
    order.push_back(i * 97 % kVocab);
    places[static_cast<size_t>(order.back())] = i;
  }
  std::vector<int32_t> prompt = {7, 300, 7, 12, 90};
  const Outcome wanted = run_model(*make_reference_device(), params, prompt);
  for (int32_t& id : prompt) id = places[static_cast<size_t>(id)];
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    Outcome got = run_model(*device_case.make(), params, prompt, order);
    for (std::vector<int32_t>& ids : got.ids) {
      for (int32_t& id : ids) id = order[static_cast<size_t>(id)];
    }
    CHECK(got.ids == wanted.ids);
  }
}

// Each slot's next tokens by steps of drafts, of which so many are as they will be drawn and the
// others are not.
TEST_CASE(
    "rows that are verified draw what the same tokens draw one by one, and only those count") {
  constexpr int32_t kDrafts = 3;
  const std::vector<SamplingParams> params = settings();
  const auto num_slots = static_cast<int32_t>(params.size());
  const std::vector<int32_t> prompt = {7, 300, 7, 12, 90};
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    const Outcome wanted = run_model(*device_case.make());
    const auto device = device_case.make();
    allocate_slots(*device, num_slots);
    const Model model(*device);
    std::vector<std::vector<int32_t>> drawn(params.size());
    for (int32_t step = 0; step < 5; ++step) {
      Batch batch;
      batch.clear();
      for (int32_t slot = 0; slot < num_slots; ++slot) {
        const auto& known = drawn[static_cast<size_t>(slot)];
        const auto& coming = wanted.ids[static_cast<size_t>(slot)];
        if (step == 0) {
          batch.slot_starts.push_back({.slot = slot,
                                       .sampling = params[static_cast<size_t>(slot)],
                                       .token_ids = prompt,
                                       .num_prompt_tokens = 4});
        }
        // Of one slot in three there are none: its rows go as ever.
        const int32_t num_drafts = slot % 3 == 2 ? 0 : kDrafts;
        const int32_t num_right = (slot + step) % (kDrafts + 1);
        const auto first = static_cast<int32_t>(known.size()) + 4;
        for (int32_t i = 0; i <= num_drafts; ++i) {
          const size_t at = known.size() + static_cast<size_t>(i);
          int32_t id = known.empty() ? prompt.back() : -1 - slot;
          if (i > 0) id = (at <= coming.size() ? coming[at - 1] : 0) + (i > num_right ? 1 : 0);
          batch.sample_rows.push_back({.row = batch.num_tokens(),
                                       .slot = slot,
                                       .position = first + i + 1,
                                       .num_drafts = i});
          batch.token_ids.push_back(id % kVocab);
          batch.positions.push_back(first + i);
        }
        batch.slots.push_back(slot);
        batch.cu_seqlens_q.push_back(batch.num_tokens());
        batch.context_lens.push_back(first + num_drafts + 1);
      }
      const StepResult result = model.run(*device, batch);
      bool counts = true;
      for (size_t i = 0; i < batch.sample_rows.size(); ++i) {
        const SampleRow& row = batch.sample_rows[i];
        const int32_t input = batch.token_ids[static_cast<size_t>(row.row)];
        counts = row.num_drafts == 0 || (counts && result.sampled[i - 1].token.id == input);
        if (counts) drawn[static_cast<size_t>(row.slot)].push_back(result.sampled[i].token.id);
      }
    }
    size_t num_most = 0;
    for (size_t slot = 0; slot < params.size(); ++slot) {
      INFO("slot " << slot);
      num_most = std::max(num_most, drawn[slot].size());
      const size_t count = std::min(drawn[slot].size(), wanted.ids[slot].size());
      CHECK(std::equal(drawn[slot].begin(), drawn[slot].begin() + static_cast<ptrdiff_t>(count),
                       wanted.ids[slot].begin()));
      CHECK(drawn[slot].size() >= 5);
    }
    CHECK(num_most >= 10);
  }
}

TEST_CASE("a bias forces and bans a token in its slot alone, and is not in what is reported") {
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    const auto device = device_case.make();
    allocate_small_state(*device, kVocab);
    const Model model(*device);
    const std::vector<int32_t> seen = {5};
    const auto sample = [&](const std::vector<LogitBias>& bias) {
      Batch batch = one_sequence({5});
      batch.slot_starts[0] = {.slot = 0,
                              .sampling = {.logit_bias = bias, .top_n_tokens = 2},
                              .token_ids = seen,
                              .num_prompt_tokens = 1};
      batch.sample_rows = {{.row = 0, .slot = 0, .position = 1}};
      return model.run(*device, batch).sampled[0];
    };
    const SampledToken plain = sample({});
    const int32_t other = plain.token.id == 200 ? 201 : 200;
    const SampledToken forced = sample({{.id = other, .bias = 100}});
    CHECK(forced.token.id == other);
    CHECK(forced.token.logprob < plain.token.logprob);
    CHECK(forced.top_tokens[0].id == plain.token.id);
    CHECK(forced.top_tokens[0].logprob == plain.token.logprob);
    const SampledToken banned = sample({{.id = plain.token.id, .bias = -100}});
    CHECK(banned.token.id == plain.top_tokens[1].id);
    CHECK(banned.token.logprob == plain.top_tokens[1].logprob);
    CHECK(sample({}).token.id == plain.token.id);
  }
}

TEST_CASE("masked rows draw what their mask allows, and the rows between them do not notice") {
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    const auto device = device_case.make();
    constexpr int32_t kRows = 5;
    allocate_slots(*device, kRows);
    const Model model(*device);
    const std::vector<int32_t> seen = {5};
    const auto run = [&](const std::vector<int32_t>& masked, const TokenMasks& masks) {
      Batch batch;
      batch.clear();
      for (int32_t slot = 0; slot < kRows; ++slot) {
        batch.slot_starts.push_back({.slot = slot,
                                     .sampling = {.top_n_tokens = 4},
                                     .token_ids = seen,
                                     .num_prompt_tokens = 1});
        batch.token_ids.push_back(5 + slot);
        batch.positions.push_back(0);
        batch.slots.push_back(slot);
        batch.cu_seqlens_q.push_back(slot + 1);
        batch.context_lens.push_back(1);
        const bool is_masked = std::find(masked.begin(), masked.end(), slot) != masked.end();
        batch.sample_rows.push_back(
            {.row = slot, .slot = slot, .position = 1, .is_masked = is_masked});
      }
      batch.score_rows = {{.row = 1, .target_id = 9}};
      return model.run(*device, batch, masks);
    };
    const StepResult free = run({}, {});
    const int32_t num_words = (kVocab + 31) / 32;
    TokenMasks masks{.words_per_row = num_words,
                     .bits = std::vector<uint32_t>(static_cast<size_t>(3 * num_words))};
    const auto allow = [&](int32_t mask, int32_t id) {
      masks.bits[static_cast<size_t>(mask * num_words + id / 32)] |= 1U << (id % 32);
    };
    // Rows 0, 3 and 4: the second best and a worse one; one token alone; all but the best.
    allow(0, free.sampled[0].top_tokens[1].id);
    allow(0, free.sampled[0].top_tokens[3].id);
    const int32_t lone = free.sampled[3].token.id == kVocab - 1 ? kVocab - 2 : kVocab - 1;
    allow(1, lone);
    for (int32_t id = 0; id < kVocab; ++id)
      if (id != free.sampled[4].token.id) allow(2, id);
    const StepResult masked = run({0, 3, 4}, masks);
    CHECK(masked.sampled[0].token.id == free.sampled[0].top_tokens[1].id);
    CHECK(masked.sampled[0].token.logprob == free.sampled[0].top_tokens[1].logprob);
    CHECK(masked.sampled[0].top_tokens[0].id == free.sampled[0].token.id);  // of the raw logits
    CHECK(masked.sampled[3].token.id == lone);
    CHECK(masked.sampled[4].token.id == free.sampled[4].top_tokens[1].id);
    for (const size_t row : {1, 2}) {
      CHECK(masked.sampled[row].token.id == free.sampled[row].token.id);
      CHECK(masked.sampled[row].token.logprob == free.sampled[row].token.logprob);
    }
    CHECK(masked.scores == free.scores);
    CHECK(run({}, {}).sampled[3].token.id == free.sampled[3].token.id);
  }
}

TEST_CASE("a row whose logits are not finite says so, and the rows beside it do not notice") {
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    const auto run = [&](int32_t broken_id) {
      const auto device = device_case.make();
      allocate_small_state(*device, kVocab);
      const Model model(*device, broken_id);
      Batch batch = one_sequence({5, 9, 7});
      const std::vector<int32_t> seen = {5, 9, 7};
      batch.slot_starts[0] = {
          .slot = 0, .sampling = {.top_n_tokens = 2}, .token_ids = seen, .num_prompt_tokens = 3};
      batch.sample_rows = {{.row = 2, .slot = 0, .position = 3}};
      batch.score_rows = {{.row = 0, .target_id = 9}, {.row = 1, .target_id = 7}};
      return model.run(*device, batch);
    };
    const StepResult clean = run(-1);
    CHECK(std::isfinite(clean.scores[1]));
    const StepResult scored = run(9);
    CHECK(std::isnan(scored.scores[1]));
    CHECK(scored.scores[0] == clean.scores[0]);
    CHECK(scored.sampled[0].token.id == clean.sampled[0].token.id);
    CHECK(scored.sampled[0].token.logprob == clean.sampled[0].token.logprob);
    const StepResult sampled = run(7);
    CHECK(std::isnan(sampled.sampled[0].token.logprob));
    CHECK(sampled.sampled[0].token.id == 0);
    CHECK(sampled.sampled[0].top_tokens.empty());
    CHECK(sampled.scores == clean.scores);
  }
}

TEST_CASE("a slot forgets what it held when another sequence starts in it") {
  for (const DeviceCase& device_case : device_cases()) {
    INFO(device_case.name);
    const auto device = device_case.make();
    allocate_small_state(*device, kVocab);
    const Model model(*device);
    const auto first_token = [&](const std::vector<int32_t>& seen) {
      Batch batch = one_sequence({5});
      batch.slot_starts[0] = {.slot = 0,
                              .sampling = {.repetition_penalty = 1.0F, .presence_penalty = 50.0F},
                              .token_ids = seen,
                              .num_prompt_tokens = 1};
      batch.sample_rows = {{.row = 0, .slot = 0, .position = 1}};
      return model.run(*device, batch).sampled[0].token.id;
    };
    const std::vector<int32_t> fresh = {5};
    const int32_t best = first_token(fresh);
    const std::vector<int32_t> with_best = {5, best};
    CHECK(first_token(with_best) != best);
    CHECK(first_token(fresh) == best);
  }
}

}  // namespace tgi
