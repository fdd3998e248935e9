// POST /completion
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/generation.h"
#include "cmd/http/info_api.h"
#include "cmd/http/llama_cpp_api.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/stream_pump.h"
#include "cmd/http/token_json.h"

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;

double per(double amount, double of) {
  return of > 0 ? amount / of : 0;
}

OrderedJson llama_cpp_timings(int64_t num_cached,
                              int64_t num_prompt,
                              double prompt_ms,
                              int64_t num_predicted,
                              double predicted_ms) {
  const auto prompt = static_cast<double>(num_prompt);
  const auto predicted = static_cast<double>(num_predicted);
  return {{"cache_n", num_cached},
          {"prompt_n", num_prompt},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", per(prompt_ms, prompt)},
          {"prompt_per_second", per(prompt * 1000, prompt_ms)},
          {"predicted_n", num_predicted},
          {"predicted_ms", predicted_ms},
          {"predicted_per_token_ms", per(predicted_ms, predicted)},
          {"predicted_per_second", per(predicted * 1000, predicted_ms)}};
}

OrderedJson timings_of(const ipc::DoneEvent& done) {
  const ipc::Timings& times = done.timings;
  return llama_cpp_timings(done.num_cached_tokens, done.num_prompt_tokens - done.num_cached_tokens,
                           times.time_to_first_token_ms - times.queue_ms,
                           done.best.num_generated_tokens, times.decode_ms);
}

std::string_view stop_type(ipc::FinishReason reason) {
  switch (reason) {
    case ipc::FinishReason::kEosToken:
      return "eos";
    case ipc::FinishReason::kStopSequence:
      return "word";
    case ipc::FinishReason::kLength:
      break;
  }
  return "limit";
}

OrderedJson one_probability(const ipc::TokenInfo& token) {
  return {{"id", token.id},
          {"token", token.text},
          {"bytes", bytes_of(token)},
          {"logprob", logprob_json(token.logprob)}};
}

OrderedJson probability(const ipc::TokenInfo& token,
                        const std::vector<ipc::TokenInfo>& top,
                        int64_t num_top) {
  OrderedJson out = one_probability(token);
  out["top_logprobs"] = OrderedJson::array();
  for (const ipc::TokenInfo& each : first_of(top, num_top)) {
    out["top_logprobs"].push_back(one_probability(each));
  }
  return out;
}

// "a/b" is the member b of the member a, told as b.
OrderedJson chosen_fields(const OrderedJson& answer, const std::vector<std::string>& paths) {
  OrderedJson out = OrderedJson::object();
  for (const std::string& path : paths) {
    const OrderedJson* at = &answer;
    std::string name;
    for (size_t begin = 0; at != nullptr && begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      name = path.substr(begin, end - begin);
      const auto found = at->is_object() ? at->find(name) : at->end();
      at = at->is_object() && found != at->end() ? &*found : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) out[name] = *at;
  }
  return out;
}

// What the answers of one request share.
class LlamaCppAnswer {
 public:
  LlamaCppAnswer(std::shared_ptr<Scope> scope,
                 const LlamaCppBody& body,
                 OrderedJson settings,
                 std::vector<std::string> prompts)
      : scope_(std::move(scope)),
        settings_(std::move(settings)),
        num_top_(body.n_probs.value_or(0)),
        lists_tokens_(body.return_tokens),
        tells_times_(body.timings_per_token),
        fields_(body.response_fields.value_or(std::vector<std::string>())),
        prompts_(std::move(prompts)),
        states_(prompts_.size()) {}

  OrderedJson whole(size_t index, const ipc::DoneEvent& done) const {
    const ipc::SequenceResult& best = done.best;
    OrderedJson out = end(index, done, best.text);
    if (lists_tokens_) {
      for (const ipc::TokenInfo& token : best.tokens) {
        if (!is_end(token, best)) out["tokens"].push_back(token.id);
      }
    }
    if (num_top_ > 0) {
      static const std::vector<ipc::TokenInfo> kNone;
      OrderedJson list = OrderedJson::array();
      for (size_t i = 0; i < best.tokens.size(); ++i) {
        if (is_end(best.tokens[i], best)) continue;
        const auto& top = i < best.top_tokens.size() ? best.top_tokens[i] : kNone;
        list.push_back(probability(best.tokens[i], top, num_top_));
      }
      out["completion_probabilities"] = std::move(list);
    }
    return fields_.empty() ? out : chosen_fields(out, fields_);
  }

  void on_event(Generation::Event& event, EventWriter& events) {
    State& state = states_.at(event.prompt);
    if (event.reply.accepted) {
      state.num_prompt = event.reply.accepted->num_prompt_tokens;
      state.accepted_at = Clock::now();
    }
    if (event.reply.token) on_token(event.prompt, *event.reply.token, events);
    if (event.reply.done) {
      OrderedJson last = end(event.prompt, *event.reply.done, "");
      if (!state.probabilities.empty()) {
        last["completion_probabilities"] = std::move(state.probabilities);
      }
      events.send(last);
    }
  }

 private:
  struct State {  // of one prompt's stream
    int64_t num_prompt = 0;
    int64_t num_predicted = 0;
    OrderedJson tokens = OrderedJson::array();  // that are not told yet
    OrderedJson probabilities = OrderedJson::array();
    Clock::time_point accepted_at{};
    std::optional<Clock::time_point> first_at{};
  };

  // llama.cpp lists what the text is made of.
  static bool is_end(const ipc::TokenInfo& token, const ipc::SequenceResult& sequence) {
    return token.special && sequence.finish_reason == ipc::FinishReason::kEosToken &&
           &token == &sequence.tokens.back();
  }

  void on_token(size_t index, const ipc::TokenEvent& token, EventWriter& events) {
    State& state = states_[index];
    ++state.num_predicted;
    if (!state.first_at) state.first_at = Clock::now();
    if (!token.token.special || token.finish_reason != ipc::FinishReason::kEosToken) {
      state.tokens.push_back(token.token.id);
      if (num_top_ > 0) {
        state.probabilities.push_back(probability(token.token, token.top_tokens, num_top_));
      }
    }
    if (token.text.empty()) return;
    OrderedJson out = {{"index", index},
                       {"content", token.text},
                       {"tokens", std::exchange(state.tokens, OrderedJson::array())},
                       {"stop", false},
                       {"id_slot", -1},
                       {"tokens_predicted", state.num_predicted},
                       {"tokens_evaluated", state.num_prompt}};
    if (!state.probabilities.empty()) {
      out["completion_probabilities"] = std::exchange(state.probabilities, OrderedJson::array());
    }
    if (tells_times_) out["timings"] = times_so_far(state);
    events.send(out);
    scope_->token_written(index);
  }

  static OrderedJson times_so_far(const State& state) {
    const auto millis = [](Clock::duration time) {
      return std::chrono::duration<double, std::milli>(time).count();
    };
    return llama_cpp_timings(0, state.num_prompt, millis(*state.first_at - state.accepted_at),
                             state.num_predicted, millis(Clock::now() - *state.first_at));
  }

  OrderedJson end(size_t index, const ipc::DoneEvent& done, const std::string& text) const {
    const ipc::SequenceResult& best = done.best;
    scope_->record().finish_reasons.emplace_back(openai_finish_reason(best.finish_reason));
    return {{"index", index},
            {"content", text},
            {"tokens", OrderedJson::array()},
            {"id_slot", -1},  // there are none
            {"stop", true},
            {"model", scope_->options().model_id},
            {"tokens_predicted", best.num_generated_tokens},
            {"tokens_evaluated", done.num_prompt_tokens},
            {"generation_settings", settings_},
            {"prompt", prompts_.at(index)},
            {"has_new_line", best.text.find('\n') != std::string::npos},
            {"truncated", done.num_truncated_tokens > 0},
            {"stop_type", stop_type(best.finish_reason)},
            {"stopping_word", best.stop_sequence},
            {"tokens_cached", done.num_cached_tokens},
            {"timings", timings_of(done)}};
  }

  const std::shared_ptr<Scope> scope_;
  const OrderedJson settings_;
  const int64_t num_top_;
  const bool lists_tokens_;
  const bool tells_times_;
  const std::vector<std::string> fields_;
  const std::vector<std::string> prompts_;  // as texts
  std::vector<State> states_;
};

}  // namespace

Response llama_cpp_completion(std::shared_ptr<Scope> scope, const LlamaCppBody& body) {
  scope->set_terms(llama_cpp_terms());
  const ApiOptions& options = scope->options();
  scope->record().stream = body.stream;
  const Tokenize tokenize = [&](const std::string& text, bool add_special) {
    ipc::TokenizeParams params;
    params.prompt = text;
    params.add_special = add_special;
    std::vector<int32_t> ids;
    for (const ipc::TokenInfo& token : ask_tokens(*scope, params).tokens) ids.push_back(token.id);
    return ids;
  };
  const OrderedJson prompts = llama_cpp_prompts(body.prompt, tokenize);
  scope->begin_generation(
      std::clamp<int64_t>(static_cast<int64_t>(prompts.size()), 1, options.max_client_batch_size));
  const CompletionBody completion = to_completion(body, prompts, options, tokenize);
  std::vector<ipc::GenerateRequest> asked = to_daemon(completion, options);
  choose_by_model(*scope, completion, asked);
  std::vector<std::string> texts;
  for (ipc::GenerateRequest& request : asked) {
    request.params.use_prefix_cache = body.cache_prompt;
    if (body.return_tokens && !request.stream) request.params.details = true;
    if (request.prompt) {
      texts.push_back(*request.prompt);
    } else {
      texts.push_back(ask_text(*scope, *request.prompt_ids));
    }
  }
  const auto generation = std::make_shared<Generation>(scope, std::move(asked));
  const auto answer = std::make_shared<LlamaCppAnswer>(
      scope, body, generation_settings(body, completion), std::move(texts));
  if (!body.stream) {
    const std::vector<ipc::DoneEvent> dones = generation->wait();
    OrderedJson all = OrderedJson::array();
    for (size_t i = 0; i < dones.size(); ++i) all.push_back(answer->whole(i, dones[i]));
    return generated_response(*scope, *generation, all.size() == 1 ? all.front() : all);
  }
  generation->wait_until_accepted();
  return stream_response(
      {.scope = scope,
       .start = [generation] { return generation; },
       .on_event = [answer](Generation::Event& event,
                            EventWriter& events) { answer->on_event(event, events); },
       .on_end = [](EventWriter&) {},
       .on_error = [](const ApiError& error,
                      EventWriter& events) { events.send(llama_cpp_error_json(error)); }},
      generation->num_prompt_characters());
}

}  // namespace tgi::http
