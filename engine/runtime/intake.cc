#include "engine/runtime/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/runtime/guide_compiler.h"
#include "engine/runtime/live_request.h"
#include "engine/text/token_spans.h"

namespace tgi {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

uint64_t random_seed() {
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) |
                                      std::random_device{}()};
  return random();
}

// NaN compares false with everything, so the conditions say what is wanted and are negated.
void check(bool holds, std::string_view name, std::string_view rule, double given) {
  if (!holds) refuse("`{}` must be {}. Given: {}", name, rule, given);
}

std::vector<LogitBias> resolve_bias(const std::vector<ipc::TokenBias>& asked,
                                    int32_t vocab_size,
                                    const Limits& limits) {
  const std::vector<int32_t>& suppressed = limits.suppressed_ids;
  const size_t max_entries = static_cast<size_t>(limits.max_logit_bias) - suppressed.size();
  if (asked.size() > max_entries) {
    refuse("`logit_bias` has {} entries, this device takes up to {}", asked.size(), max_entries);
  }
  std::vector<LogitBias> out;
  for (const int32_t id : suppressed) {
    out.push_back({.id = id, .bias = -std::numeric_limits<float>::infinity()});
  }
  for (const ipc::TokenBias& each : asked) {
    if (each.id < 0 || each.id >= vocab_size) {
      refuse("`logit_bias`: {} is not in the vocabulary of {} tokens", each.id, vocab_size);
    }
    const auto same = [&](const LogitBias& other) { return other.id == each.id; };
    const auto given = out.begin() + static_cast<std::ptrdiff_t>(suppressed.size());
    if (std::any_of(given, out.end(), same)) {
      refuse("`logit_bias`: token {} is given twice", each.id);
    }
    if (std::ranges::binary_search(suppressed, each.id)) continue;  // it stays so
    out.push_back({.id = each.id, .bias = static_cast<float>(each.bias)});
  }
  return out;
}

// An answer that is cut before it can be whole is of no use to whoever asked for its form or for a
// call. What else binds it is a means of the model's, and may be cut as any text.
void check_enough_tokens(const Request& request) {
  const int64_t enough = request.guidance->num_enough_tokens();
  if (request.max_new_tokens == 0 || request.max_new_tokens >= enough) return;
  refuse(
      "`max_new_tokens` is too few for the form of the answer: its shortest text takes {} tokens. "
      "Given: {}",
      enough, request.max_new_tokens);
}

int32_t resolve_drafts(const ipc::GenerateParams& params, const Limits& limits) {
  const int64_t asked = params.speculate.value_or(limits.max_drafts);
  if (asked < 0 || asked > limits.max_drafts) {
    refuse(
        "`speculate` must be >= 0 and <= {}, with which the model was loaded (--speculate). Given: "
        "{}",
        limits.max_drafts, asked);
  }
  return static_cast<int32_t>(asked);
}

}  // namespace

void refuse_image_tokens(const Tokenizer& tokenizer,
                         const std::vector<int32_t>& ids,
                         int32_t vocab_size,
                         const std::string& text) {
  const auto found = std::ranges::find_if(ids, [&](int32_t id) { return id >= vocab_size; });
  if (found == ids.end()) return;
  refuse(
      "{} has token {}, \"{}\", which stands for an image, a video or a sound; only text is read "
      "here",
      text, *found, tokenizer.token_of(*found));
}

uint64_t next_request_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

SamplingParams resolve_sampling(const ipc::GenerateParams& params, const Limits& limits) {
  SamplingParams out;
  if (params.best_of < 1 || params.best_of > limits.max_best_of) {
    refuse("`best_of` must be > 0 and <= {}. Given: {}", limits.max_best_of, params.best_of);
  }
  const double temperature = params.temperature.value_or(1.0);
  check(temperature >= 0 && std::isfinite(temperature), "temperature",
        "strictly positive, or 0 for greedy", temperature);
  const bool greedy = params.temperature && temperature == 0;
  out.do_sample = !greedy && (params.do_sample.value_or(false) || params.temperature ||
                              params.top_k || params.top_p || params.typical_p || params.min_p);
  if (params.best_of > 1 && !out.do_sample) {
    refuse(
        "you must use sampling when `best_of` is > 1; give a temperature, top_k, top_p, typical_p, "
        "min_p or do_sample");
  }
  if (!greedy) out.temperature = std::max(static_cast<float>(temperature), 1e-4F);
  if (params.repetition_penalty) {
    const double value = *params.repetition_penalty;
    check(value > 0 && std::isfinite(value), "repetition_penalty", "strictly positive", value);
    out.repetition_penalty = static_cast<float>(value);
  }
  if (params.frequency_penalty) {
    const double value = *params.frequency_penalty;
    check(value >= -2 && value <= 2, "frequency_penalty", ">= -2.0 and <= 2.0", value);
    out.frequency_penalty = static_cast<float>(value);
  }
  if (params.presence_penalty) {
    const double value = *params.presence_penalty;
    check(value >= -2 && value <= 2, "presence_penalty", ">= -2.0 and <= 2.0", value);
    out.presence_penalty = static_cast<float>(value);
  }
  if (params.top_p) {
    check(*params.top_p > 0 && *params.top_p <= 1, "top_p", "> 0.0 and <= 1.0", *params.top_p);
    out.top_p = static_cast<float>(*params.top_p);
  }
  if (params.typical_p) {
    check(*params.typical_p > 0 && *params.typical_p <= 1, "typical_p", "> 0.0 and <= 1.0",
          *params.typical_p);
    out.typical_p = static_cast<float>(*params.typical_p);
  }
  if (params.min_p) {
    check(*params.min_p >= 0 && *params.min_p <= 1, "min_p", ">= 0.0 and <= 1.0", *params.min_p);
    out.min_p = static_cast<float>(*params.min_p);
  }
  if (params.top_k) {
    if (*params.top_k <= 0) refuse("`top_k` must be strictly positive. Given: {}", *params.top_k);
    if (*params.top_k < ipc::kAllTokens) out.top_k = static_cast<int32_t>(*params.top_k);
  }
  if (params.top_n_tokens < 0 || params.top_n_tokens > limits.max_top_n_tokens) {
    refuse("`top_n_tokens` must be >= 0 and <= {}. Given: {}", limits.max_top_n_tokens,
           params.top_n_tokens);
  }
  out.top_n_tokens = static_cast<int32_t>(params.top_n_tokens);
  out.watermark = params.watermark;
  out.seed = params.seed ? *params.seed : limits.seed ? *limits.seed : random_seed();
  return out;
}

Intake::Intake(const Limits& limits,
               const Tokenizer& tokenizer,
               const ChatTemplate* chat_template,
               int32_t vocab_size,
               GuideCompiler* guides,
               const dialect::Dialects& dialects)
    : limits_(limits), tokenizer_(tokenizer), vocab_size_(vocab_size), guides_(guides) {
  if (chat_template != nullptr) chat_.emplace(*chat_template, tokenizer, dialects);
}

const ChatModel& Intake::chat() const {
  if (chat_) return *chat_;
  throw Error(Code::kTemplate,
              "this model has no chat template (chat_template.jinja, or chat_template in "
              "tokenizer_config.json); "
              "use a plain prompt");
}

std::vector<int32_t> Intake::encode(std::string_view text, bool add_special) const {
  const size_t valid = valid_utf8_prefix(text);
  if (valid != text.size())
    refuse("the prompt is not valid UTF-8: byte {} of {}", valid, text.size());
  std::vector<int32_t> ids = tokenizer_.encode(text, add_special);
  refuse_image_tokens(tokenizer_, ids, vocab_size_, "the prompt");
  return ids;
}

// Made as the text of an answer is: without special tokens.
std::string Intake::text_of(const std::vector<int32_t>& ids) const {
  if (tokenizer_.running_text(true) != nullptr) return tokenizer_.decode(ids, true);
  std::string raw;
  bool at_start = true;
  for (const int32_t id : ids) {
    if (tokenizer_.is_special(id)) continue;
    tokenizer_.append_bytes(id, at_start, raw);
    at_start = false;
  }
  std::string text;
  drain_utf8(raw, true, text);
  return text;
}

std::vector<int32_t> Intake::prompt_ids(const ipc::GenerateRequest& asked,
                                        ChatModel::Prompt& prompt) const {
  const int num_given = int{asked.prompt.has_value()} + int{asked.prompt_ids.has_value()} +
                        int{asked.messages.has_value()};
  if (num_given != 1)
    refuse("give exactly one of prompt, prompt_ids and messages, got {}", num_given);
  if (asked.prompt_ids) {
    for (const int32_t id : *asked.prompt_ids) {
      if (id < 0 || id >= vocab_size_)
        refuse("prompt_ids: {} is not in the vocabulary of {} tokens", id, vocab_size_);
    }
    prompt.text = text_of(*asked.prompt_ids);
    return *asked.prompt_ids;
  }
  if (asked.prompt) {
    if (asked.prompt->empty()) refuse("`inputs` cannot be empty");
    prompt.text = *asked.prompt;
    return encode(prompt.text, true);
  }
  prompt = chat().render(asked);
  return encode(prompt.text, false);  // a template writes the special tokens itself
}

std::unique_ptr<Request> Intake::prepare(const ipc::GenerateRequest& asked) const {
  const ipc::GenerateParams& params = asked.params;
  auto request = std::make_unique<Request>();
  request->accepted_at = Clock::now();
  request->sampling = resolve_sampling(params, limits_);
  request->sampling.logit_bias = resolve_bias(params.logit_bias, vocab_size_, limits_);
  if (params.max_new_tokens && *params.max_new_tokens < 0) {
    refuse("`max_new_tokens` must be at least 0. Given: {}", *params.max_new_tokens);
  }
  if (params.stop.size() > static_cast<size_t>(limits_.max_stop_sequences)) {
    refuse("`stop` supports up to {} stop sequences. Given: {}", limits_.max_stop_sequences,
           params.stop.size());
  }
  for (const std::string& stop : params.stop) {
    if (stop.empty() || !is_valid_utf8(stop))
      refuse("`stop` must hold strings of at least one character of valid UTF-8");
  }
  ChatModel::Prompt prompt;
  request->prompt_ids = prompt_ids(asked, prompt);
  truncate(params, *request);
  if (request->prompt_ids.empty()) refuse("`inputs` cannot be empty: the prompt has no tokens");
  check_length(params, *request);
  if (chat_) request->reading = chat_->reading(prompt);
  // Last of all: it may take a while.
  const bool bounds_reasoning =
      params.max_reasoning_tokens && prompt.reasoning != ChatModel::Reasoning::kNone;
  if (params.guide || !prompt.tools.tools.empty() || bounds_reasoning) {
    if (guides_ == nullptr) throw Error(Code::kUnsupported, "this model's answers can't be guided");
    request->guidance = guides_->compile({.text = params.guide,
                                          .tools = prompt.tools,
                                          .reasoning = prompt.reasoning,
                                          .marks_text = prompt.marks_text,
                                          .max_reasoning_tokens = params.max_reasoning_tokens});
    if (params.guide || prompt.tools.must_call) check_enough_tokens(*request);
  }
  require_length(params, *request);

  request->id = next_request_id();
  request->best_of = static_cast<int32_t>(params.best_of);
  request->max_drafts = resolve_drafts(params, limits_);
  request->ignore_eos = params.ignore_eos;
  request->prompt_logprobs = params.prompt_logprobs;
  request->use_prefix_cache = params.use_prefix_cache;
  request->stream = asked.stream;
  request->details = params.details;
  request->stop = params.stop;
  request->include_stop_text = params.include_stop_text;
  if (asked.announce) {
    request->announce = true;
    request->num_prompt_characters = count_utf8_characters(prompt.text);
  }
  if (params.return_full_text) request->echo_text = std::move(prompt.text);
  return request;
}

void Intake::truncate(const ipc::GenerateParams& params, Request& request) const {
  if (!params.truncate) return;
  const int64_t most = limits_.max_total_tokens - 1;
  if (*params.truncate <= 0 || *params.truncate > most) {
    refuse("`truncate` must be strictly positive and at most {}. Given: {}", most,
           *params.truncate);
  }
  const auto surplus = static_cast<int64_t>(request.prompt_ids.size()) - *params.truncate;
  if (surplus <= 0) return;
  request.num_truncated_tokens = static_cast<int32_t>(surplus);
  request.prompt_ids.erase(request.prompt_ids.begin(), request.prompt_ids.begin() + surplus);
}

// The texts are TGI's: its clients match on them.
void Intake::check_length(const ipc::GenerateParams& params, Request& request) const {
  const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
  const int64_t total = std::min<int64_t>(
      limits_.max_total_tokens, params.max_total_tokens.value_or(limits_.max_total_tokens));
  const int64_t max_input = std::min(total - 1, params.max_input_tokens.value_or(total - 1));
  const int64_t all_that_fit = std::max<int64_t>(total - num_prompt, 0);
  const int64_t usual = params.sampling_defaults
                            ? params.sampling_defaults->max_new_tokens.value_or(all_that_fit)
                            : all_that_fit;
  const int64_t max_new = params.max_new_tokens.value_or(std::min(usual, all_that_fit));
  if (num_prompt + max_new > total) {
    refuse(
        "`inputs` tokens + `max_new_tokens` must be <= {}. Given: {} `inputs` tokens and {} "
        "`max_new_tokens`",
        total, num_prompt, max_new);
  }
  if (num_prompt > max_input) {
    refuse("`inputs` must have less than {} tokens. Given: {}", max_input, num_prompt);
  }
  request.max_new_tokens = static_cast<int32_t>(max_new);
}

// Whoever wants no end heeded has his minimum anyway.
void Intake::require_length(const ipc::GenerateParams& params, Request& request) const {
  const int64_t min_new = params.min_new_tokens.value_or(0);
  if (min_new < 0 || min_new > request.max_new_tokens) {
    refuse("`min_new_tokens` must be at least 0 and at most `max_new_tokens`, {}. Given: {}",
           request.max_new_tokens, min_new);
  }
  if (min_new == 0 || (params.ignore_eos && request.guidance == nullptr)) return;
  if (guides_ == nullptr) throw Error(Code::kUnsupported, "this model's answers can't be guided");
  request.guidance = guides_->at_least(min_new, std::move(request.guidance));
}

std::string Intake::detokenize(const std::vector<int32_t>& ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size_)
      refuse("ids: {} is not in the vocabulary of {} tokens", id, vocab_size_);
  }
  return tokenizer_.decode(ids, /*skip_special=*/false);
}

ipc::TokenizeResult Intake::tokenize(const ipc::TokenizeParams& asked) const {
  if (asked.prompt.has_value() == asked.messages.has_value())
    refuse("give exactly one of prompt and messages");
  ipc::TokenizeResult out;
  out.text = asked.prompt ? *asked.prompt : chat().render(asked);
  const bool add_special = asked.prompt.has_value() && asked.add_special;
  const std::vector<int32_t> ids = encode(out.text, add_special);
  for (const TextSpan& span : token_spans(tokenizer_, out.text, ids, add_special)) {
    out.spans.push_back({.start = span.start, .stop = span.stop});
  }
  for (const int32_t id : ids) {
    out.tokens.push_back(describe_token(tokenizer_, id, std::nullopt));
  }
  return out;
}

}  // namespace tgi
