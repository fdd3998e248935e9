// The sample kernels on an emulated GPU where it is narrow: ties, infinities, NaN, empty masks,
// counts that saturate; and the kernel that counts a prompt.
#include <cmath>
#include <limits>

#include "cuda/device_memory.h"
#include "cuda/kernels/slot_start.h"
#include "cuda/launch.h"
#include "tests/catch.h"
#include "tests/cuda/sample_case.h"

namespace tgi {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kVocab = 301;
constexpr size_t kWords = (kVocab + 31) / 32;

Floats falling(float step) {
  Floats out(kVocab);
  for (size_t i = 0; i < out.size(); ++i) out[i] = -step * static_cast<float>((i * 37) % kVocab);
  return out;
}

std::vector<uint32_t> only(std::initializer_list<int32_t> ids) {
  std::vector<uint32_t> out(kWords);
  for (const int32_t id : ids) out[static_cast<size_t>(id / 32)] |= 1U << (id % 32);
  return out;
}

std::vector<SamplingParams> all_kinds() {
  return {{},
          {.top_n_tokens = 3},
          {.do_sample = true, .seed = 4},
          {.do_sample = true, .temperature = 0.5F, .seed = 5, .top_n_tokens = 64},
          {.do_sample = true, .top_k = 1, .seed = 6},
          {.do_sample = true, .top_k = 7, .top_p = 0.5F, .seed = 7},
          {.do_sample = true, .top_k = kVocab, .seed = 8},
          {.do_sample = true, .top_k = 100'000, .top_p = 0.9F, .seed = 9},
          {.do_sample = true, .top_p = 1e-7F, .seed = 10},
          {.do_sample = true, .top_p = 0.0F, .seed = 11},
          {.do_sample = true, .top_p = 0.99999F, .seed = 12},
          {.do_sample = true, .typical_p = 0.3F, .seed = 13},
          {.do_sample = true, .top_k = 20, .typical_p = 0.7F, .min_p = 0.1F, .seed = 14},
          {.do_sample = true, .min_p = 1.0F, .seed = 15},
          {.do_sample = true, .min_p = 1e-6F, .seed = 16},
          {.do_sample = true, .temperature = 1e-30F, .top_p = 0.7F, .seed = 17},
          {.do_sample = true, .temperature = 1e30F, .min_p = 0.2F, .seed = 18},
          {.repetition_penalty = 1.3F, .watermark = true}};
}

// Every kind of settings on these logits.
void check_kinds(const Floats& logits, const std::vector<uint32_t>& allowed = {}) {
  std::vector<SampleCase> cases;
  for (const SamplingParams& params : all_kinds()) {
    cases.push_back({.params = params,
                     .logits = logits,
                     .history = {{.id = 3, .output_count = 2}, {.id = 300, .output_count = 0}},
                     .previous_id = 7,
                     .position = static_cast<int32_t>(cases.size()),
                     .allowed = allowed});
  }
  for (const int32_t target : {0, 5, kVocab - 1}) {
    cases.push_back({.params = {}, .logits = logits, .previous_id = 1, .target_id = target});
  }
  const auto got = run_kernels(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i);
    CHECK(check_row(cases[i], got[i]));
  }
}

}  // namespace

TEST_CASE("sample kernels find a NaN or +infinity wherever it is, and in its row alone") {
  // Past two chunks of 4,096 ids, and with an end that fills none.
  constexpr int32_t kLong = 9001;
  std::vector<SampleCase> cases;
  for (const SamplingParams& params : all_kinds()) {
    for (const size_t at : {0, 255, 4095, 4096, 8999, 9000}) {
      Floats logits(kLong, -1.0F);
      logits[at] = cases.size() % 4 == 0 ? kNan : kInf;
      cases.push_back({.params = params, .logits = logits, .previous_id = 7});
      logits[at] = cases.size() % 4 == 1 ? 3.0F : -kInf;
      cases.push_back({.params = params, .logits = logits, .previous_id = 7});
    }
  }
  cases.push_back({.params = {}, .logits = cases[0].logits, .previous_id = 1, .target_id = 5});
  const auto got = run_kernels(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i);
    CHECK(std::isnan(got[i].row.logprob) == (i % 2 == 0));
    CHECK(check_row(cases[i], got[i]));
  }
}

TEST_CASE("sample kernels know what to do with infinities and NaN") {
  check_kinds(Floats(kVocab, -kInf));
  check_kinds(Floats(kVocab, kNan));
  check_kinds(Floats(kVocab, kInf));
  check_kinds(Floats(kVocab, std::numeric_limits<float>::max()));
  Floats mixed = falling(0.1F);
  mixed[0] = kNan;
  mixed[17] = -kInf;
  mixed[255] = kNan;
  check_kinds(mixed);
  mixed[200] = kInf;
  mixed[5] = kInf;
  check_kinds(mixed);
  Floats single(kVocab, -kInf);
  single[kVocab - 1] = -3.0F;
  check_kinds(single);
  single[0] = kNan;
  single[1] = -std::numeric_limits<float>::max();
  check_kinds(single);
}

TEST_CASE("sample kernels order ties by id, across a cut too") {
  check_kinds(Floats(kVocab, 0.0F));
  check_kinds(Floats(kVocab, -1.5F));
  Floats zeros(kVocab, 0.0F);
  for (size_t i = 0; i < zeros.size(); i += 3) zeros[i] = -0.0F;
  check_kinds(zeros);
  Floats steps(kVocab);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = -0.5F * static_cast<float>(i * 7 % 11);
  check_kinds(steps);
  check_kinds(falling(1.0F));
  check_kinds(falling(0.001F));
}

TEST_CASE("sample kernels keep to the mask") {
  const Floats logits = falling(0.05F);
  check_kinds(logits, only({299}));
  check_kinds(logits, only({0}));
  check_kinds(logits, only({31, 32, 100, 300}));
  check_kinds(logits, only({}));
  check_kinds(Floats(kVocab, -kInf), only({40, 299}));
  check_kinds(Floats(kVocab, kNan), only({300}));
  auto beyond = only({});
  beyond.back() = ~0U << (kVocab % 32);  // bits of ids that are none
  check_kinds(logits, beyond);
}

TEST_CASE("counts of tokens in the output saturate") {
  std::vector<SampleCase> cases;
  for (const int32_t count : {0x7ffe, 0x7fff}) {
    Floats logits(kVocab, 0.0F);
    logits[9] = 1e9F;
    cases.push_back({.params = {.presence_penalty = 1.0F},
                     .logits = logits,
                     .history = {{.id = 9, .output_count = count}}});
  }
  for (const SampleOutcome& got : run_kernels(cases)) {
    CHECK(got.row.id == 9);
    CHECK(got.token_counts[9] == (cuda::kSeenToken | cuda::kOutputCountMask));
  }
}

TEST_CASE("a slot that starts has the tokens of its prompt and output counted, and no others") {
  constexpr int32_t kSlots = 3;
  const Buffer counts_memory =
      cuda::allocate_device(size_t{kSlots} * kVocab * sizeof(uint16_t), "a test");
  auto* const counts = static_cast<uint16_t*>(counts_memory.data());
  cuda::check(cudaMemset(counts, 0xff, counts_memory.size_bytes()), "filling");
  const cuda::SlotTables slots = {
      .num_slots = kSlots, .vocab_size = kVocab, .token_counts = counts};
  std::vector<int32_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 97);
  const Buffer ids_memory = cuda::allocate_device(80'000 * sizeof(int32_t), "a test");
  auto* const device_ids = static_cast<int32_t*>(ids_memory.data());
  const auto count = [&](const std::vector<int32_t>& chunk, int32_t num_prompt, bool clear) {
    cuda::check(cudaMemcpy(device_ids, chunk.data(), chunk.size() * 4, cudaMemcpyHostToDevice),
                "copying");
    cuda::launch_count_tokens(nullptr, slots, 1, device_ids, static_cast<int32_t>(chunk.size()),
                              num_prompt, clear);
    std::vector<uint16_t> out(size_t{kSlots} * kVocab);
    cuda::check(cudaMemcpy(out.data(), counts, out.size() * 2, cudaMemcpyDeviceToHost), "copying");
    return out;
  };
  const auto first = count(ids, 600, true);
  const auto second = count(ids, 0, false);
  const auto flood = count(std::vector<int32_t>(40'000, 300), 0, false);
  std::vector<int32_t> once(kVocab), twice(kVocab);
  std::vector<bool> seen(kVocab);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    seen[id] = true;
    once[id] += i >= 600 ? 1 : 0;
    ++twice[id];
  }
  for (size_t id = 0; id < kVocab; ++id) {
    const auto at = [&](const std::vector<uint16_t>& all) { return all[kVocab + id]; };
    const int32_t mark = seen[id] ? cuda::kSeenToken : 0;
    REQUIRE(at(first) == mark + once[id]);
    REQUIRE(at(second) == mark + once[id] + twice[id]);
    REQUIRE(first[id] == 0xffff);
    REQUIRE(flood[2 * kVocab + id] == 0xffff);
  }
  CHECK(flood[kVocab + 300] == 0xffff);
  const auto cleared = count({}, 0, true);
  for (size_t id = 0; id < kVocab; ++id) REQUIRE(cleared[kVocab + id] == 0);
}

}  // namespace tgi
