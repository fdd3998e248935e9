// The members by which llama.cpp and ollama say how tokens are drawn: the same names, with other
// values where nothing is said.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "cmd/http/body_table.h"
#include "cmd/http/openai_body.h"

namespace tgi::http {

struct LlamaSampling {
  std::optional<double> temperature;
  std::optional<int32_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> typical_p;
  std::optional<double> repeat_penalty;
  std::optional<int64_t> repeat_last_n;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int64_t> seed;
  std::optional<OrderedJson> stop;  // a text or a list of them
};

// Where nothing is said.
struct LlamaDefaults {
  double temperature;
  int32_t top_k;
  double top_p;
  double min_p;
};

// A body B that inherits from LlamaSampling.
template <typename B>
constexpr std::array<BodyField<B>, 11> llama_sampling_rows() {
  using S = LlamaSampling;
  constexpr double kAnyHigh = std::numeric_limits<double>::infinity();
  constexpr auto between = [](double low, double high, std::string_view rule) {
    return Range{.low = low, .high = high, .rule = rule};
  };
  constexpr auto above = [](double low, double high, std::string_view rule) {
    return Range{.low = low, .high = high, .above_low = true, .rule = rule};
  };
  return {{
      inherited_field<B, &S::temperature>(
          "temperature", {.description = "0: always the most likely token; default 0.8",
                          .range = between(0, kAnyHigh, "`temperature` must be >= 0")}),
      counting_field<B, &S::top_k>("top_k",
                                   {"the k most likely tokens; 0 or less: all; default 40"}),
      inherited_field<B, &S::top_p>("top_p",
                                    {.description = "nucleus sampling; 1: off",
                                     .range = between(0, 1, "`top_p` must be >= 0 and <= 1")}),
      inherited_field<B, &S::min_p>("min_p",
                                    {.description = "as a share of the most likely token; 0: off",
                                     .range = between(0, 1, "`min_p` must be >= 0 and <= 1")}),
      inherited_field<B, &S::typical_p>("typical_p",
                                        {.description = "typical decoding mass; 1: off",
                                         .range = above(0, 1, "`typical_p` must be > 0 and <= 1")}),
      inherited_field<B, &S::repeat_penalty>(
          "repeat_penalty", {.description = "1 is off, and the default",
                             .range = above(0, kAnyHigh, "`repeat_penalty` must be > 0")}),
      counting_field<B, &S::repeat_last_n>(
          "repeat_last_n",
          {.description = "0: no penalties; else repeat_penalty looks at all tokens of prompt and "
                          "answer, however many are asked for",
           .range = between(-1, kAnyHigh, "`repeat_last_n` must be >= -1")}),
      inherited_field<B, &S::presence_penalty>(
          "presence_penalty",
          {.description = "subtracted once for a token of the answer",
           .range = between(-2, 2, "`presence_penalty` must be >= -2 and <= 2")}),
      inherited_field<B, &S::frequency_penalty>(
          "frequency_penalty",
          {.description = "subtracted for each occurrence in the answer",
           .range = between(-2, 2, "`frequency_penalty` must be >= -2 and <= 2")}),
      counting_field<B, &S::seed>("seed", {"of the draws; -1: another one each time"}),
      inherited_field<B, &S::stop>("stop",
                                   {"a text or a list of texts that end the answer; cut off"}),
  }};
}

// The same in OpenAI's terms. `num_predict`: of the answer; below 0: all that fits. REQUIRES:
// check_ranges.
void to_openai(const LlamaSampling& from, const LlamaDefaults& defaults, OpenAiParameters& to);
void set_num_predict(int64_t num_predict, OpenAiParameters& to);

}  // namespace tgi::http
