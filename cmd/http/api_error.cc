#include "cmd/http/api_error.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tgi::http {

namespace {

// As soon as another request ends there is room: clients that know the header wait so long.
constexpr std::string_view kRetryAfterSeconds = "1";

}  // namespace

Response with_retry(Response response) {
  if (response.status == 429 || response.status == 503 || response.status == 529) {
    response.headers.push_back({"Retry-After", std::string(kRetryAfterSeconds)});
  }
  return response;
}

ApiError validation_error(const std::string& rule) {
  return {422, "validation", "Input validation error: " + rule};
}

ApiError overloaded_error() {
  return {429, "overloaded", "Model is overloaded"};
}

ApiError daemon_error(const Error& error, bool started) {
  const std::string failed = std::string("Request failed during generation: ") + error.what();
  switch (error.code()) {
    case Code::kInvalidArgument:
    case Code::kUnsupported:
      return validation_error(error.what());
    case Code::kTemplate:
      return {422, "template_error", std::string("Template error: ") + error.what()};
    case Code::kOverloaded:
      // A model that is being loaded, or a daemon that stops: another request may fare better.
      return {503, "overloaded", std::string("Model is overloaded: ") + error.what()};
    case Code::kNotFound:
      return {503, "unavailable", error.what()};
    case Code::kForbidden:
      return {403, "forbidden", error.what()};
    case Code::kUnavailable:
      if (started) return {500, "incomplete_generation", "Incomplete generation"};
      return {502, "generation", failed};
    case Code::kNotFinite:
      return {424, "generation", failed, "not_finite"};
    case Code::kAdapter:
      return {424, "generation", failed, std::string(kAdapterFailed)};
    case Code::kOutOfMemory:
    case Code::kCancelled:
    case Code::kDeviceLost:
    case Code::kInternal:
      break;
  }
  return {424, "generation", failed};
}

Failure failure_of(const ApiError& error) {
  struct Row {
    std::string_view type;
    Failure failure;
  };
  static constexpr std::array<Row, 6> kRows = {{
      {"overloaded", Failure::kOverloaded},
      {"generation", Failure::kGeneration},
      {"unavailable", Failure::kGeneration},
      {"incomplete_generation", Failure::kIncomplete},
      {"template_error", Failure::kTemplate},
      {"shutting_down", Failure::kOverloaded},
  }};
  for (const Row& row : kRows) {
    if (row.type == error.type()) return row.failure;
  }
  return Failure::kValidation;
}

std::string dump_json(const ipc::OrderedJson& json) {
  return json.dump(-1, ' ', false, ipc::OrderedJson::error_handler_t::replace);
}

Response json_response(int status, const ipc::OrderedJson& body) {
  return {.status = status, .content_type = "application/json", .body = dump_json(body)};
}

ipc::OrderedJson native_error_json(const ApiError& error) {
  return {{"error", error.what()}, {"error_type", error.type()}};
}

Response native_error(const ApiError& error) {
  if (error.type() == kUnauthorized) return {.status = error.status()};
  if (error.type() == kUnreadableBody) {
    return plain_text(error.status(), error.what());
  }
  return with_retry(json_response(error.status(), native_error_json(error)));
}

ipc::OrderedJson openai_error_json(const ApiError& error) {
  std::string type = "invalid_request_error";
  if (error.status() == 401) type = "authentication_error";
  if (error.status() == 429) type = "rate_limit_error";
  if (error.status() >= 500 || error.status() == 424) type = "server_error";
  const std::string code = error.code().empty() ? error.type() : error.code();
  const ipc::OrderedJson param =
      error.param().empty() ? ipc::OrderedJson() : ipc::OrderedJson(error.param());
  return {{"error", {{"message", error.what()}, {"type", type}, {"param", param}, {"code", code}}},
          {"error_type", error.type()}};
}

Response openai_error(const ApiError& error) {
  return with_retry(json_response(error.status(), openai_error_json(error)));
}

int responses_status(int ours) {
  if (ours == 422 || ours == 415) return 400;
  return ours == 424 ? 500 : ours;
}

int anthropic_status(int ours) {
  constexpr int kOverloadedStatus = 529;  // Anthropic's own
  return ours == 503 ? kOverloadedStatus : responses_status(ours);
}

namespace {

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

// Whether the term stands there by itself, and not within a longer word.
bool is_whole_term(std::string_view text, size_t at, std::string_view term) {
  const size_t end = at + term.size();
  const bool begins = !is_of_word(term.front()) || at == 0 || !is_of_word(text[at - 1]);
  const bool ends = !is_of_word(term.back()) || end == text.size() || !is_of_word(text[end]);
  return begins && ends;
}

std::string replaced_in_words(std::string text, std::span<const Term> terms) {
  for (const Term& term : terms) {
    for (size_t at = text.find(term.ours); at != std::string::npos;) {
      const bool is_whole = is_whole_term(text, at, term.ours);
      if (is_whole) text.replace(at, term.ours.size(), term.theirs);
      at = text.find(term.ours, at + (is_whole ? term.theirs.size() : 1));
    }
  }
  return text;
}

// What the client named stays as it is: what stands in quotation marks, and all from the place in a
// JSON schema on, whose properties are his.
std::string replaced(std::string_view text, std::span<const Term> terms) {
  const size_t end = std::min(text.find("schema #"), text.size());
  std::string out;
  for (size_t at = 0; at < end;) {
    const size_t quote = std::min(text.find('"', at), end);
    out += replaced_in_words(std::string(text.substr(at, quote - at)), terms);
    const size_t closing = quote < end ? std::min(text.find('"', quote + 1), end - 1) : end - 1;
    out += text.substr(quote, closing + 1 - quote);
    at = closing + 1;
  }
  return out.append(text.substr(end));
}

}  // namespace

Response responses_error(const ApiError& error) {
  return with_retry(json_response(responses_status(error.status()), openai_error_json(error)));
}

ipc::OrderedJson anthropic_error_json(const ApiError& error) {
  struct Row {
    int status;
    std::string_view type;
  };
  static constexpr std::array<Row, 7> kTypes = {{
      {401, "authentication_error"},
      {403, "permission_error"},
      {404, "not_found_error"},
      {413, "request_too_large"},
      {429, "rate_limit_error"},
      {529, "overloaded_error"},
      {504, "timeout_error"},
  }};
  const int status = anthropic_status(error.status());
  std::string_view type = status >= 500 ? "api_error" : "invalid_request_error";
  for (const Row& row : kTypes) {
    if (row.status == status) type = row.type;
  }
  ipc::OrderedJson told = {{"type", type}, {"message", error.what()}};
  if (error.code() == kNoThreads) told["details"] = {{"error_code", kNoThreads}};
  return {{"type", "error"}, {"error", std::move(told)}};
}

Response anthropic_error(const ApiError& error) {
  return with_retry(json_response(anthropic_status(error.status()), anthropic_error_json(error)));
}

ApiError in_terms(const ApiError& error, std::span<const Term> terms) {
  if (error.type() == "model_not_found") return error;  // nothing but names, of the client and ours
  return {error.status(), error.type(), replaced(error.what(), terms), error.code(),
          replaced(error.param(), terms)};
}

}  // namespace tgi::http
