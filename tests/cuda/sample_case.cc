// See sample_case.h.
#include "tests/cuda/sample_case.h"

#include <cmath>

#include "cuda/device_memory.h"
#include "cuda/launch.h"
#include "cuda/step_buffer.h"
#include "tests/catch.h"

namespace tgi {
namespace {

using cuda::check;

// An array on the GPU.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& host)
      : count_(host.size()),
        memory_(cuda::allocate_device(std::max<size_t>(host.size(), 1) * sizeof(T), "a test")) {
    check(cudaMemcpy(memory_.data(), host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
          "copying");
  }
  T* data() const { return static_cast<T*>(memory_.data()); }
  std::vector<T> fetch() const {
    std::vector<T> host(count_);
    check(cudaMemcpy(host.data(), memory_.data(), count_ * sizeof(T), cudaMemcpyDeviceToHost),
          "copying");
    return host;
  }

 private:
  size_t count_;
  Buffer memory_;
};

constexpr int32_t kMaxBias = 40;

// What differs by rounding alone when a share or a least probability is moved by this factor.
constexpr float kNudge = 4e-6F;

// The weight over the noise of an id, whose logit is as it is drawn from.
double log_speed(const SampleCase& each, const SamplerScratch& scratch, int32_t id) {
  const DrawKey key{.seed = each.params.seed,
                    .position = static_cast<uint32_t>(each.position),
                    .sequence_index = each.params.sequence_index};
  const double u = (draw_bits(key, id) + 0.5) * 0x1p-32;
  return static_cast<double>(scratch.logits[static_cast<size_t>(id)]) - std::log(-std::log1p(-u));
}

SampledToken sample_with(const SampleCase& each,
                         const SamplingParams& params,
                         SamplerScratch& scratch) {
  SampledToken out;
  sample_row({.logits = each.logits.data(),
              .vocab_size = static_cast<int32_t>(each.logits.size()),
              .params = &params,
              .history = params.has_penalties() ? std::span<const TokenCount>(each.history)
                                                : std::span<const TokenCount>(),
              .previous_id = each.previous_id,
              .position = each.position,
              .allowed = each.allowed.empty() ? nullptr : each.allowed.data()},
             plain_sampler_math(), scratch, out);
  return out;
}

// Whether rounding may make `id` win instead of `best`.
bool is_near_tie(const SampleCase& each, int32_t best, int32_t id) {
  SamplerScratch scratch(static_cast<int32_t>(each.logits.size()));
  for (int which = 0; which < 6; ++which) {
    SamplingParams params = each.params;
    const float factor = which % 2 == 0 ? 1.0F + kNudge : 1.0F - kNudge;
    float& moved = which < 2 ? params.top_p : which < 4 ? params.typical_p : params.min_p;
    moved *= factor;
    if (sample_with(each, params, scratch).token.id == id) return true;
  }
  return std::abs(log_speed(each, scratch, best) - log_speed(each, scratch, id)) < 1e-5;
}

bool is_close(float got, float wanted) {
  return got == wanted || std::abs(got - wanted) <= 1e-5F ||
         (std::isnan(got) && std::isnan(wanted));
}

}  // namespace

uint16_t packed_count(const TokenCount& count) {
  return static_cast<uint16_t>(cuda::kSeenToken |
                               std::min<int32_t>(count.output_count, cuda::kOutputCountMask));
}

std::vector<SampleOutcome> run_kernels(const std::vector<SampleCase>& cases, int32_t stride) {
  const auto num_rows = cases.size();
  const auto vocab_size = static_cast<int32_t>(cases[0].logits.size());
  const auto vocab = static_cast<size_t>(vocab_size);
  const size_t num_words = (vocab + 31) / 32;
  std::vector<cuda::LogitRow> rows(num_rows);
  std::vector<cuda::SlotSampling> sampling(num_rows + 1);
  std::vector<int32_t> last_tokens(num_rows + 1, kUntouched);
  std::vector<cuda::TokenBiasEntry> bias(num_rows * kMaxBias, {.id = 1, .bias = 1e9F});
  std::vector<uint16_t> counts(num_rows * vocab);
  Floats logits(num_rows * static_cast<size_t>(stride), 1e30F);  // what is past a row is not of it
  std::vector<uint32_t> allowed(num_rows * num_words, ~0U);
  for (size_t i = 0; i < num_rows; ++i) {
    const SampleCase& each = cases[i];
    const size_t slot = each.is_padding ? num_rows : num_rows - 1 - i;
    rows[i] = {.row = 0,
               .slot = each.target_id >= 0 ? -1 : static_cast<int32_t>(slot),
               .position = each.position,
               .target_id = std::max(each.target_id, 0),
               .num_top = each.target_id >= 0 ? each.params.top_n_tokens : 0,
               .mask = each.allowed.empty() ? -1 : static_cast<int32_t>(i)};
    std::copy(each.logits.begin(), each.logits.end(),
              logits.begin() + static_cast<std::ptrdiff_t>(i) * stride);
    if (!each.allowed.empty()) {
      std::copy(each.allowed.begin(), each.allowed.end(),
                allowed.begin() + static_cast<std::ptrdiff_t>(i * num_words));
    }
    last_tokens[slot] = each.is_padding ? kUntouched : each.previous_id;
    if (each.is_padding) continue;
    sampling[slot] = cuda::slot_sampling(each.params);
    for (size_t k = 0; k < each.params.logit_bias.size(); ++k) {
      const LogitBias& entry = each.params.logit_bias[k];
      bias.at(slot * kMaxBias + k) = {.id = entry.id, .bias = entry.bias};
    }
    for (const TokenCount& count : each.history) {
      counts[slot * vocab + static_cast<size_t>(count.id)] = packed_count(count);
    }
  }
  cuda::SampledRow untouched{};
  untouched.id = kUntouched;
  const OnDevice device_rows(rows);
  const OnDevice device_sampling(sampling);
  const OnDevice device_last(last_tokens);
  const OnDevice device_bias(bias);
  const OnDevice device_counts(counts);
  const OnDevice device_logits(logits);
  const OnDevice device_allowed(allowed);
  const OnDevice device_out(std::vector<cuda::SampledRow>(num_rows, untouched));
  // Full of rubbish, as an earlier launch of another shape leaves it.
  const OnDevice workspace(std::vector<uint8_t>(
      static_cast<size_t>(cuda::sample_workspace_bytes(static_cast<int32_t>(num_rows), vocab_size)),
      0xa5));
  cuda::launch_sample(nullptr, {.slots = {.num_slots = static_cast<int32_t>(num_rows),
                                          .vocab_size = vocab_size,
                                          .max_bias = kMaxBias,
                                          .last_tokens = device_last.data(),
                                          .sampling = device_sampling.data(),
                                          .bias = device_bias.data(),
                                          .token_counts = device_counts.data()},
                                .rows = device_rows.data(),
                                .num_rows = static_cast<int32_t>(num_rows),
                                .logits = device_logits.data(),
                                .stride = stride,
                                .masks = device_allowed.data(),
                                .workspace = workspace.data(),
                                .out = device_out.data()});
  const auto out_rows = device_out.fetch();
  const auto out_last = device_last.fetch();
  const auto out_counts = device_counts.fetch();
  std::vector<SampleOutcome> out(num_rows);
  for (size_t i = 0; i < num_rows; ++i) {
    const size_t slot = cases[i].is_padding ? num_rows : num_rows - 1 - i;
    out[i] = {.row = out_rows[i], .last_token = out_last[slot], .token_counts = {}};
    if (cases[i].is_padding) continue;
    const auto begin = out_counts.begin() + static_cast<std::ptrdiff_t>(slot * vocab);
    out[i].token_counts.assign(begin, begin + vocab_size);
  }
  return out;
}

std::vector<SampleOutcome> run_kernels(const std::vector<SampleCase>& cases) {
  return run_kernels(cases, static_cast<int32_t>((cases[0].logits.size() + 7) / 8 * 8));
}

SampledToken wanted(const SampleCase& each) {
  const auto vocab_size = static_cast<int32_t>(each.logits.size());
  SamplerScratch scratch(vocab_size);
  if (each.target_id >= 0) {
    SampledToken out{.token = {.id = each.target_id}, .top_tokens = {}};
    out.token.logprob =
        score_row(each.logits.data(), vocab_size,
                  {.target_id = each.target_id, .num_top = each.params.top_n_tokens},
                  plain_sampler_math(), scratch, out.top_tokens);
    return out;
  }
  return sample_with(each, each.params, scratch);
}

bool check_row(const SampleCase& each, const SampleOutcome& got) {
  if (each.is_padding) {
    CHECK(got.row.id == kUntouched);
    return true;
  }
  const SampledToken want = wanted(each);
  const bool is_same = got.row.id == want.token.id;
  if (!is_same) {
    REQUIRE(each.params.do_sample);  // the logits of greedy rows are the same bit for bit
    INFO("got " << got.row.id << " wanted " << want.token.id);
    CHECK(is_near_tie(each, want.token.id, got.row.id));
  } else if (!is_close(got.row.logprob, want.token.logprob)) {
    CHECK(got.row.logprob == want.token.logprob);
  }
  const auto num_top = std::min(want.top_tokens.size(), static_cast<size_t>(cuda::kMaxTopTokens));
  REQUIRE(got.row.num_top == static_cast<int32_t>(num_top));
  for (size_t i = 0; i < num_top; ++i) {
    REQUIRE(got.row.top_ids[i] == want.top_tokens[i].id);
    if (!is_close(got.row.top_logprobs[i], want.top_tokens[i].logprob)) {
      CHECK(got.row.top_logprobs[i] == want.top_tokens[i].logprob);
    }
  }
  const bool draws = each.target_id < 0;
  CHECK(got.last_token == (draws ? got.row.id : each.previous_id));
  std::vector<uint16_t> counts(each.logits.size());
  for (const TokenCount& count : each.history) {
    counts[static_cast<size_t>(count.id)] = packed_count(count);
  }
  if (draws && each.params.has_penalties()) {
    uint16_t& count = counts[static_cast<size_t>(got.row.id)];
    count = packed_count({.id = 0, .output_count = (count & cuda::kOutputCountMask) + 1});
  }
  REQUIRE(got.token_counts == counts);
  return is_same;
}

}  // namespace tgi
