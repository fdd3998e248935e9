#include "cmd/http/openai_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "cmd/http/stream_pump.h"
#include "cmd/http/token_json.h"

namespace tgi::http {
namespace {

std::string unique_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) ^
                                      std::random_device{}()};
  return fmt::format("{}-{:016x}{:016x}", prefix, random(), random());
}

}  // namespace

OrderedJson bytes_of(const ipc::TokenInfo& token) {
  OrderedJson out = OrderedJson::array();
  for (const uint8_t byte : token.bytes) out.push_back(byte);
  if (!token.bytes.empty()) return out;
  for (const char c : token.text) out.push_back(static_cast<uint8_t>(c));
  return out;
}

OrderedJson answer_head(std::string_view id_prefix, std::string_view object, const Scope& scope) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string& adapter = scope.record().adapter;
  return {{"id", unique_id(id_prefix)},
          {"object", object},
          {"created", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
          {"model", adapter.empty() ? scope.options().model_id : adapter},
          {"system_fingerprint", fmt::format("{}-native", ipc::kVersion)}};
}

std::string open_object(const OrderedJson& object) {
  std::string text = dump_json(object);
  text.pop_back();
  return text;
}

bool is_listed(const ipc::TokenInfo& token) {
  return !token.special;
}

OrderedJson token_logprobs(const ipc::TokenInfo& token,
                           const std::vector<ipc::TokenInfo>& top_tokens,
                           int64_t num_top) {
  OrderedJson top = OrderedJson::array();
  for (const ipc::TokenInfo& each : first_of(top_tokens, num_top)) {
    top.push_back(
        {{"token", each.text}, {"logprob", logprob_json(each.logprob)}, {"bytes", bytes_of(each)}});
  }
  return {{"token", token.text},
          {"logprob", logprob_json(token.logprob)},
          {"bytes", bytes_of(token)},
          {"top_logprobs", std::move(top)}};
}

OrderedJson listed_logprobs(const ipc::SequenceResult& sequence, int64_t num_top) {
  static const std::vector<ipc::TokenInfo> kNone;
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    if (!is_listed(sequence.tokens[i])) continue;
    const auto& top = i < sequence.top_tokens.size() ? sequence.top_tokens[i] : kNone;
    out.push_back(token_logprobs(sequence.tokens[i], top, num_top));
  }
  return out;
}

std::string_view openai_finish_reason(ipc::FinishReason reason) {
  return reason == ipc::FinishReason::kLength ? "length" : "stop";
}

size_t choices_of_sequence(size_t num_sequences, size_t n) {
  return num_sequences == 1 ? std::max<size_t>(n, 1) : 1;
}

void UsageCounts::add(const ipc::DoneEvent& done, size_t n) {
  num_prompt_tokens += done.num_prompt_tokens;
  num_cached_tokens += done.num_cached_tokens;
  const auto copies = static_cast<int64_t>(choices_of_sequence(done.others.size() + 1, n));
  num_generated_tokens += copies * done.best.num_generated_tokens;
  num_reasoning_tokens += copies * done.best.num_reasoning_tokens;
  for (const auto& other : done.others) {
    num_generated_tokens += other.num_generated_tokens;
    num_reasoning_tokens += other.num_reasoning_tokens;
  }
}

OrderedJson UsageCounts::to_json() const {
  OrderedJson out = {{"prompt_tokens", num_prompt_tokens},
                     {"completion_tokens", num_generated_tokens},
                     {"total_tokens", num_prompt_tokens + num_generated_tokens},
                     {"prompt_tokens_details", {{"cached_tokens", num_cached_tokens}}}};
  if (num_reasoning_tokens > 0) {
    out["completion_tokens_details"] = {{"reasoning_tokens", num_reasoning_tokens}};
  }
  return out;
}

std::vector<const ipc::SequenceResult*> in_order(const ipc::DoneEvent& done) {
  std::vector<const ipc::SequenceResult*> out = {&done.best};
  for (const auto& other : done.others) out.push_back(&other);
  std::sort(out.begin(), out.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  return out;
}

std::vector<const ipc::SequenceResult*> choices_of(const ipc::DoneEvent& done, size_t n) {
  std::vector<const ipc::SequenceResult*> out = in_order(done);
  if (out.size() == 1) out.resize(choices_of_sequence(1, n), out.front());
  if (out.size() <= n) return out;
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return a->mean_logprob > b->mean_logprob; });
  out.resize(n);
  std::sort(out.begin(), out.end(),
            [](const auto* a, const auto* b) { return a->index < b->index; });
  return out;
}

OrderedJson usage_chunk(OrderedJson head, const UsageCounts& usage) {
  head["choices"] = OrderedJson::array();
  head["usage"] = usage.to_json();
  return head;
}

Response stream_answer(std::shared_ptr<Scope> scope,
                       std::shared_ptr<Generation> generation,
                       std::function<void(Generation::Event& event, EventWriter& events)> on_event,
                       std::function<void(EventWriter& events)> on_end) {
  const int64_t num_characters = generation->num_prompt_characters();
  return stream_response({.scope = std::move(scope),
                          .start = [generation = std::move(generation)] { return generation; },
                          .on_event = std::move(on_event),
                          .on_end =
                              [on_end = std::move(on_end)](EventWriter& events) {
                                on_end(events);
                                events.send_text("[DONE]");
                              },
                          .on_error =
                              [](const ApiError& error, EventWriter& events) {
                                OrderedJson event = openai_error_json(error);
                                event["error"]["http_status_code"] = error.status();
                                events.send(event);
                                events.send_text("[DONE]");
                              }},
                         num_characters);
}

}  // namespace tgi::http
