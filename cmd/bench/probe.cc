#include "cmd/bench/probe.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace tgi::bench {
namespace {

// Few enough for a context of 512 tokens and a vocabulary that cuts words in four.
constexpr int64_t kFewWords = 24;
constexpr int64_t kManyWords = 96;

constexpr int kOk = 200;

Code code_of(int status) {
  if (status == 404 || status == 405) return Code::kNotFound;
  if (status == 429 || status == 503) return Code::kOverloaded;
  return status < 500 ? Code::kInvalidArgument : Code::kUnavailable;
}

[[noreturn]] void refuse(const HttpTarget& target, std::string_view path, const HttpReply& reply) {
  std::string advice;
  if (reply.status == 401 || reply.status == 403) advice = "; give a key with --api-key";
  if (reply.status == 404) advice = "; see --api and --model";
  throw Error(code_of(reply.status),
              fmt::format("{}{}: {}{}", target.url, path,
                          describe_refusal(reply.status, reply.body), advice));
}

std::string first_model(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array()) return "";
  for (const Json& model : json["data"]) {
    if (model.is_object() && model.contains("id") && model["id"].is_string()) {
      return model["id"].get<std::string>();
    }
  }
  return "";
}

// Servers without this list take any name, or none.
void find_model(HttpTarget& target, int cancel_fd) {
  constexpr std::string_view kPath = "/v1/models";
  const HttpReply reply = fetch(target, kPath, "", cancel_fd);
  if (reply.status == 401 || reply.status == 403) refuse(target, kPath, reply);
  if (reply.status == kOk) target.body.model = first_model(reply.body);
}

// The tokens of a prompt of so many words, if the server tells.
std::optional<int64_t> count_tokens(const HttpTarget& target, int64_t num_words, int cancel_fd) {
  const std::vector<PromptPiece> pieces = {{static_cast<uint64_t>(num_words), num_words}};
  const std::string_view path = api_path(target.api, false);
  const HttpReply reply =
      fetch(target, path, request_body(target.api, target.body, prompt_text(pieces, {}), 1, false),
            cancel_fd);
  if (reply.status != kOk) refuse(target, path, reply);
  try {
    const std::optional<int64_t> count = read_event(reply.body).num_prompt_tokens;
    return count ? count : reply.num_prompt_tokens;
  } catch (const Error& error) {
    throw Error(Code::kUnavailable, fmt::format("{}{}: the answer is not what this interface "
                                                "gives: {}; see --api",
                                                target.url, path, error.what()));
  }
}

}  // namespace

std::optional<std::string> probe_server(HttpTarget& target,
                                        std::optional<double> tokens_per_word,
                                        int cancel_fd) {
  if (target.api != Api::kTgi && target.body.model.empty()) find_model(target, cancel_fd);
  if (tokens_per_word) {
    target.words = {.tokens_per_word = *tokens_per_word, .overhead_tokens = 0};
    return std::nullopt;
  }
  const auto few = count_tokens(target, kFewWords, cancel_fd);
  const auto many = count_tokens(target, kManyWords, cancel_fd);
  if (few && many) {
    target.words = fit_word_rate(kFewWords, *few, kManyWords, *many);
    return std::nullopt;
  }
  return "the server does not say how many tokens a prompt has: each word counts as one token";
}

}  // namespace tgi::bench
