// See sampler.h.
#include "engine/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sample/candidates.h"

namespace tgi {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// log_softmax of a row. A NaN, which the search for the highest passes over, shows in the sum: no
// pass of its own looks for it.
struct Distribution {
  float highest = -kInfinity;
  double log_total = std::numeric_limits<double>::quiet_NaN();

  Distribution(const float* logits, int32_t vocab_size, const SamplerMath& math)
      : highest(math.max_value(logits, vocab_size)) {
    if (std::isinf(highest)) return;
    log_total = std::log(static_cast<double>(math.sum_exp(logits, vocab_size, highest)));
  }

  bool is_finite() const { return !std::isnan(log_total); }

  float logprob(float x) const {
    if (!is_finite()) return std::numeric_limits<float>::quiet_NaN();
    if (!(x > -kInfinity)) return -kInfinity;
    const double distance =
        x == highest ? 0.0 : static_cast<double>(x) - static_cast<double>(highest);
    return static_cast<float>(distance - log_total);
  }
};

bool is_allowed(const SamplerRow& row, int32_t id) {
  const auto bit = static_cast<uint32_t>(id);
  return row.allowed == nullptr || ((row.allowed[bit / 32] >> (bit % 32)) & 1U) != 0;
}

int32_t lowest_allowed(const SamplerRow& row) {
  for (int32_t id = 0; id < row.vocab_size; ++id) {
    if (is_allowed(row, id)) return id;
  }
  return 0;  // a mask that allows nothing is a mistake of whoever made it
}

// The lowest id of the highest logit.
int32_t argmax(const SamplerRow& row, const float* logits, const SamplerMath& math) {
  const float highest = math.max_value(logits, row.vocab_size);
  if (highest == -kInfinity) return lowest_allowed(row);
  return static_cast<int32_t>(std::find(logits, logits + row.vocab_size, highest) - logits);
}

void apply_watermark(const SamplerRow& row, std::vector<float>& logits) {
  for (int32_t id = 0; id < row.vocab_size; ++id) {
    if (is_green(row.previous_id, id)) logits[static_cast<size_t>(id)] += kWatermarkDelta;
  }
}

void penalise(const SamplingParams& params, int32_t id, int32_t output_count, float* logits) {
  float& x = logits[id];
  x = x < 0.0F ? x * params.repetition_penalty : x / params.repetition_penalty;
  if (output_count == 0) return;
  x -= params.frequency_penalty * static_cast<float>(output_count);
  x -= params.presence_penalty;
}

void apply_penalties(const SamplerRow& row, float* logits) {
  const std::span<const int32_t> drafts = row.drafts;
  const auto drafted = [&](int32_t id) {
    return static_cast<int32_t>(std::count(drafts.begin(), drafts.end(), id));
  };
  for (const TokenCount& seen : row.history) {
    penalise(*row.params, seen.id, seen.output_count + drafted(seen.id), logits);
  }
  for (auto draft = drafts.begin(); draft != drafts.end(); ++draft) {
    const auto is_draft = [&](const TokenCount& seen) { return seen.id == *draft; };
    if (std::find(drafts.begin(), draft, *draft) != draft) continue;
    if (std::ranges::any_of(row.history, is_draft)) continue;
    penalise(*row.params, *draft, drafted(*draft), logits);
  }
}

void apply_bias(const SamplingParams& params, std::vector<float>& logits) {
  for (const LogitBias& each : params.logit_bias) logits[static_cast<size_t>(each.id)] += each.bias;
}

void apply_mask(const SamplerRow& row, std::vector<float>& logits) {
  for (int32_t id = 0; id < row.vocab_size; ++id) {
    if (!is_allowed(row, id)) logits[static_cast<size_t>(id)] = -kInfinity;
  }
}

bool has_filters(const SamplingParams& params) {
  return params.top_k > 0 || params.top_p < 1.0F || params.typical_p < 1.0F || params.min_p > 0.0F;
}

// The place of what is drawn.
int32_t draw_by(const SamplerMath& math,
                const float* values,
                const int32_t* draw_ids,
                int64_t count,
                float highest,
                const DrawKey& key) {
  const int32_t drawn = math.draw(values, draw_ids, count, highest, key);
  if (draw_ids == nullptr || drawn < 0) return drawn;
  return static_cast<int32_t>(std::find(draw_ids, draw_ids + count, drawn) - draw_ids);
}

// `logits` may be those of the scratch.
int32_t draw(const SamplerRow& row,
             const float* logits,
             const SamplerMath& math,
             SamplerScratch& scratch) {
  const SamplingParams& params = *row.params;
  math.temper(logits, scratch.logits.data(), row.vocab_size, params.temperature);
  const float highest = math.max_value(scratch.logits.data(), row.vocab_size);
  if (highest == -kInfinity) return lowest_allowed(row);
  const DrawKey key{.seed = params.seed,
                    .position = static_cast<uint32_t>(row.position),
                    .sequence_index = params.sequence_index};
  if (!has_filters(params)) {
    return draw_by(math, scratch.logits.data(), row.draw_ids, row.vocab_size, highest, key);
  }
  Candidates candidates(params, highest, math, scratch);
  if (params.top_p < 1.0F) candidates.keep_top_p(params.top_p);
  if (params.typical_p < 1.0F) candidates.keep_typical(params.typical_p);
  if (params.min_p > 0.0F) candidates.keep_min_p(params.min_p);
  const int32_t* const ids = candidates.ids();
  if (row.draw_ids == nullptr) {
    return math.draw(candidates.values(), ids, candidates.count(), candidates.highest(), key);
  }
  int32_t* const draw_ids = scratch.order.data();
  std::transform(ids, ids + candidates.count(), draw_ids,
                 [&](int32_t id) { return row.draw_ids[id]; });
  const int32_t index =
      draw_by(math, candidates.values(), draw_ids, candidates.count(), candidates.highest(), key);
  return index < 0 ? index : ids[index];
}

int32_t pick(const SamplerRow& row, const SamplerMath& math, SamplerScratch& scratch) {
  const SamplingParams& params = *row.params;
  const bool penalised = params.has_penalties() && !(row.history.empty() && row.drafts.empty());
  const bool watermarked = params.watermark && row.previous_id >= 0;
  const float* logits = row.logits;
  const bool biased = !params.logit_bias.empty();
  if (penalised || watermarked || biased || row.allowed != nullptr) {
    std::copy_n(row.logits, row.vocab_size, scratch.logits.begin());
    if (watermarked) apply_watermark(row, scratch.logits);
    if (penalised) apply_penalties(row, scratch.logits.data());
    if (biased) apply_bias(params, scratch.logits);
    if (row.allowed != nullptr) apply_mask(row, scratch.logits);
    logits = scratch.logits.data();
  }
  return params.do_sample ? draw(row, logits, math, scratch) : argmax(row, logits, math);
}

// All logits that are not below the n-th highest.
void list_top(std::span<const float> logits,
              int32_t num_top,
              const Distribution& distribution,
              SamplerScratch& scratch,
              std::vector<TokenScore>& out) {
  out.clear();
  const auto vocab_size = static_cast<int32_t>(logits.size());
  const auto wanted = static_cast<size_t>(std::clamp(num_top, 0, vocab_size));
  if (wanted == 0) return;
  // A heap of the highest so far, the lowest of them in front.
  float* const heap = scratch.keys.data();
  size_t size = 0;
  for (const float x : logits) {
    if (!(x > (size < wanted ? -kInfinity : heap[0]))) continue;
    if (size == wanted) std::pop_heap(heap, heap + size--, std::greater<>());
    heap[size++] = x;
    std::push_heap(heap, heap + size, std::greater<>());
  }
  if (size == 0) return;
  const float lowest = heap[0];
  // The value waits in the place of the log-probability until the order is made.
  for (int32_t id = 0; id < vocab_size; ++id) {
    const float x = logits[static_cast<size_t>(id)];
    if (x >= lowest) out.push_back({.id = id, .logprob = x});
  }
  std::sort(out.begin(), out.end(), [](const TokenScore& a, const TokenScore& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  });
  for (TokenScore& token : out) token.logprob = distribution.logprob(token.logprob);
}

}  // namespace

SamplerScratch::SamplerScratch(int32_t vocab_size)
    : logits(static_cast<size_t>(vocab_size)),
      ids(static_cast<size_t>(vocab_size)),
      values(static_cast<size_t>(vocab_size)),
      weights(static_cast<size_t>(vocab_size)),
      keys(static_cast<size_t>(vocab_size)),
      order(static_cast<size_t>(vocab_size)) {}

int64_t SamplerScratch::bytes(int32_t vocab_size) {
  return int64_t{vocab_size} * int64_t{4 * sizeof(float) + 2 * sizeof(int32_t)};
}

void sample_row(const SamplerRow& row,
                const SamplerMath& math,
                SamplerScratch& scratch,
                SampledToken& out) {
  const Distribution distribution(row.logits, row.vocab_size, math);
  if (!distribution.is_finite()) {
    out.token = {.id = lowest_allowed(row), .logprob = std::numeric_limits<float>::quiet_NaN()};
    out.top_tokens.clear();
    return;
  }
  out.token.id = pick(row, math, scratch);
  out.token.logprob = distribution.logprob(row.logits[out.token.id]);
  list_top({row.logits, static_cast<size_t>(row.vocab_size)}, row.params->top_n_tokens,
           distribution, scratch, out.top_tokens);
}

float score_row(const float* logits,
                int32_t vocab_size,
                const ScoreRow& asked,
                const SamplerMath& math,
                SamplerScratch& scratch,
                std::vector<TokenScore>& top_tokens) {
  const Distribution distribution(logits, vocab_size, math);
  if (!distribution.is_finite()) {
    top_tokens.clear();
    return std::numeric_limits<float>::quiet_NaN();
  }
  list_top({logits, static_cast<size_t>(vocab_size)}, asked.num_top, distribution, scratch,
           top_tokens);
  return distribution.logprob(logits[asked.target_id]);
}

}  // namespace tgi
