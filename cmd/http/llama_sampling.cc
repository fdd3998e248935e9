#include "cmd/http/llama_sampling.h"

#include <algorithm>

namespace tgi::http {

void to_openai(const LlamaSampling& from, const LlamaDefaults& defaults, OpenAiParameters& to) {
  to.sampling_defaults = {.temperature = defaults.temperature,
                          .top_k = defaults.top_k,
                          .top_p = defaults.top_p,
                          .min_p = defaults.min_p};
  to.temperature = from.temperature;
  if (from.top_k) to.top_k = *from.top_k > 0 ? *from.top_k : int32_t{ipc::kAllTokens};
  to.top_p = from.top_p;
  if (from.top_p == 0.0) {  // it leaves the most likely token alone
    to.top_p.reset();
    to.temperature = 0;
  }
  to.min_p = from.min_p;
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
