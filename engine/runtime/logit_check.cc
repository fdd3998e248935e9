#include "engine/runtime/logit_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "engine/runtime/backend_loader.h"

namespace tgi {
namespace {

constexpr std::string_view kText =
    "The quick brown fox jumps over the lazy dog, and the dog, who had seen it all before, "
    "did not even look up.\n"
    "In 1969 two people walked on the Moon; 50 years later 12 people had.\n"
    "Die Würde des Menschen ist unantastbar. Tous les êtres humains naissent libres.\n"
    "int add(int a, int b) { return a + b; }\n";
constexpr size_t kMaxPositions = 48;
constexpr int64_t kOverheadBytes = int64_t{256} << 20;  // KV cache and workspace of the second copy

// The distribution of the next token after one prefix.
struct Distribution {
  int32_t greedy = 0;
  std::vector<TokenScore> tokens;  // by falling log-probability
};

// A value, not an exception in the promise: two threads would count the references of that one
// inside the standard library, where ThreadSanitizer does not see that they agree.
using Answer = std::variant<Distribution, Error>;

// Keeps the one token's alternatives of one request.
class DistributionSink final : public ResponseSink {
 public:
  explicit DistributionSink(std::promise<Answer> promise) : promise_(std::move(promise)) {}

  void on_accepted(const ipc::AcceptedEvent& /*event*/) override {}
  void on_token(ipc::TokenEvent&& event) override {
    if (is_set_) return;
    Distribution out{.greedy = event.token.id, .tokens = {}};
    out.tokens.reserve(event.top_tokens.size());
    for (const ipc::TokenInfo& token : event.top_tokens) {
      out.tokens.push_back({token.id, static_cast<float>(token.logprob.value_or(-INFINITY))});
    }
    is_set_ = true;
    promise_.set_value(std::move(out));
  }
  void on_done(ipc::DoneEvent&& /*event*/) override {
    fail(Error(Code::kInternal, "a request of the logit check ended without a token"));
  }
  void on_error(const Error& error) override { fail(error); }

 private:
  void fail(const Error& error) {
    if (is_set_) return;
    is_set_ = true;
    promise_.set_value(Error(error.code(), error.what()));  // with a text of its own
  }

  std::promise<Answer> promise_;
  bool is_set_ = false;
};

// After each of the first prefixes of the text, one request each: that is the path every client's
// request takes, with its batches, cache and sampling.
std::vector<Distribution> distributions(ServedModel& model,
                                        const std::vector<int32_t>& ids,
                                        int32_t num_tokens) {
  std::vector<std::future<Answer>> answers;
  for (size_t length = 1; length <= ids.size(); ++length) {
    ipc::GenerateRequest asked;
    asked.prompt_ids =
        std::vector<int32_t>(ids.begin(), ids.begin() + static_cast<int64_t>(length));
    asked.stream = true;
    asked.params.max_new_tokens = 1;
    asked.params.ignore_eos = true;
    std::unique_ptr<Request> request = model.intake().prepare(asked);
    request->sampling.top_n_tokens = num_tokens;  // more than a client may ask for
    std::promise<Answer> promise;
    answers.push_back(promise.get_future());
    model.engine().submit(std::move(request),
                          std::make_unique<DistributionSink>(std::move(promise)));
  }
  std::vector<Distribution> out;
  out.reserve(answers.size());
  for (auto& waiting : answers) {
    Answer answer = waiting.get();
    if (const Error* error = std::get_if<Error>(&answer)) throw Error(*error);
    out.push_back(std::get<Distribution>(std::move(answer)));
  }
  return out;
}

// Nothing when the logits are not finite.
std::optional<std::vector<Distribution>> finite_distributions(ServedModel& model,
                                                              const std::vector<int32_t>& ids,
                                                              int32_t num_tokens) {
  try {
    return distributions(model, ids, num_tokens);
  } catch (const Error& error) {
    if (error.code() != Code::kNotFinite) throw;
    return std::nullopt;
  }
}

// The error for a model of which at least one of the two computations is not finite.
Error not_finite_error(const ipc::ModelStatus& facts, bool ours_is_finite, bool theirs_is_finite) {
  const std::string what =
      ours_is_finite ? fmt::format(
                           "the logits of the float32 copy of {} are not finite (NaN or "
                           "infinity), although those of the model itself ({}) are",
                           facts.name, facts.dtype)
                     : fmt::format("the logits of {} ({}) are not finite (NaN or infinity), {}",
                                   facts.name, facts.dtype,
                                   theirs_is_finite ? "but those of its float32 copy are"
                                                    : "and neither are those of its float32 copy");
  const char* const cause = theirs_is_finite
                                ? "its numbers overflow in this dtype, or the device miscalculates"
                                : "its weights are damaged";
  return {Code::kNotFinite, fmt::format("{}: {}", what, cause)};
}

// What this process may still take, by its cgroup too.
int64_t available_bytes() {
  return find_backend("cpu").make_device({})->info().memory_bytes;
}

double in_gib(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(int64_t{1} << 30);
}

ModelOptions reference_options(const ServedModel& model, size_t num_positions) {
  ModelOptions options = model.options();
  options.backend = "cpu";
  options.dtype = "f32";
  options.kv_cache_dtype = "f32";
  options.quantize = "none";
  options.quantize_group_size = 0;
  options.num_shard = 1;
  options.max_running = 8;
  options.max_batch_tokens = 64;
  options.max_total_tokens = static_cast<int32_t>(num_positions) + 16;
  options.kv_cache_bytes.reset();
  options.on_failure = nullptr;
  return options;
}

}  // namespace

std::string_view logit_check_text() {
  return kText;
}

int64_t logit_check_bytes(const ServedModel& model) {
  return model.status().num_params * static_cast<int64_t>(sizeof(float));
}

double kl_divergence(std::span<const float> p, std::span<const TokenScore> q) {
  double kl = 0;
  double p_named = 0;
  double q_named = 0;
  for (const TokenScore& token : q) {
    const double log_p = p[static_cast<size_t>(token.id)];
    const double share = std::exp(log_p);
    p_named += share;
    q_named += std::exp(static_cast<double>(token.logprob));
    if (share > 0) kl += share * (log_p - static_cast<double>(token.logprob));
  }
  // With the whole vocabulary named, what is left is rounding.
  const double p_rest = 1 - p_named;
  const double q_rest = 1 - q_named;
  if (q.size() < p.size() && p_rest > 0 && q_rest > 0) kl += p_rest * std::log(p_rest / q_rest);
  return std::max(kl, 0.0);
}

LogitCheck check_logits(ServedModel& model) {
  const ipc::ModelStatus facts = model.status();
  ipc::TokenizeParams asked;
  asked.prompt = std::string(kText);
  std::vector<int32_t> ids;
  for (const ipc::TokenInfo& token : model.intake().tokenize(asked).tokens) ids.push_back(token.id);
  const auto longest = static_cast<size_t>(std::max<int64_t>(facts.max_total_tokens - 1, 1));
  ids.resize(std::min({ids.size(), kMaxPositions, longest}));

  const auto vocab = static_cast<int32_t>(facts.vocab_size);
  const int32_t num_named = std::min(vocab, model.max_top_tokens());
  const auto our_answers = finite_distributions(model, ids, num_named);
  LogitCheck check;
  check.reference_bytes = logit_check_bytes(model);
  const int64_t free = available_bytes();
  if (check.reference_bytes + kOverheadBytes > free) {
    const std::string no_room =
        fmt::format("the float32 copy of {} takes {:.1f} GiB and {:.1f} GiB are free", facts.name,
                    in_gib(check.reference_bytes + kOverheadBytes), in_gib(free));
    if (our_answers) throw Error(Code::kOutOfMemory, no_room);
    throw Error(Code::kNotFinite,
                fmt::format("the logits of {} ({}) are not finite (NaN or infinity); whether they "
                            "would be in float32 is not known: {}",
                            facts.name, facts.dtype, no_room));
  }
  log_info("checking logits", {{"model", facts.name}, {"positions", ids.size()}});
  const std::unique_ptr<ServedModel> reference =
      ServedModel::load(reference_options(model, ids.size()));
  // The load of the copy has the stop token of the model's options, and so has what comes after.
  const std::stop_callback on_stop(model.options().stop, [&reference] {
    try {
      reference->engine().refuse_all(Error(Code::kCancelled, "the logit check was stopped"));
    } catch (const Error& error) {
      log_warn("the logit check goes on", {{"error", error.what()}});
    }
  });
  const auto their_answers = finite_distributions(*reference, ids, vocab);
  if (!our_answers || !their_answers)
    throw not_finite_error(facts, our_answers.has_value(), their_answers.has_value());
  const std::vector<Distribution>& ours = *our_answers;
  const std::vector<Distribution>& theirs = *their_answers;

  check.num_positions = static_cast<int64_t>(ids.size());
  check.num_tokens_compared = num_named;
  std::vector<float> p(static_cast<size_t>(vocab));
  int64_t num_same = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::fill(p.begin(), p.end(), -INFINITY);
    for (const TokenScore& token : theirs[i].tokens)
      p[static_cast<size_t>(token.id)] = token.logprob;
    const double kl = kl_divergence(p, ours[i].tokens);
    check.mean_kl += kl / static_cast<double>(ids.size());
    check.max_kl = std::max(check.max_kl, kl);
    if (ours[i].greedy == theirs[i].greedy) ++num_same;
  }
  check.greedy_agreement = static_cast<double>(num_same) / static_cast<double>(ids.size());
  return check;
}

}  // namespace tgi
