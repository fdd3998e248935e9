#include "cmd/http/llama_sampling.h"

#include <algorithm>

namespace tgi::http {

void to_openai(const LlamaSampling& from, const LlamaDefaults& defaults, OpenAiParameters& to) {
  to.temperature = from.temperature.value_or(defaults.temperature);
  const int32_t top_k = from.top_k.value_or(defaults.top_k);
  if (top_k > 0) to.top_k = top_k;
  const double top_p = from.top_p.value_or(defaults.top_p);
  top_p > 0 ? to.top_p = top_p : to.temperature = 0;  // 0 leaves the most likely token alone
  const double min_p = from.min_p.value_or(defaults.min_p);
  if (min_p > 0) to.min_p = min_p;
  to.typical_p = from.typical_p;
  if (from.repeat_last_n.value_or(-1) != 0) {
    to.repetition_penalty = from.repeat_penalty;
    to.presence_penalty = from.presence_penalty;
    to.frequency_penalty = from.frequency_penalty;
  }
  // llama.cpp has 32 bits, and this one of them is its random seed.
  const bool is_any = !from.seed || *from.seed == -1 || *from.seed == 0xFFFFFFFF;
  if (!is_any) to.seed = Seed{static_cast<uint64_t>(*from.seed)};
  to.stop = from.stop;
}

void set_num_predict(int64_t num_predict, OpenAiParameters& to) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (num_predict >= 0) to.max_tokens = static_cast<uint32_t>(std::min(num_predict, kMost));
}

}  // namespace tgi::http
