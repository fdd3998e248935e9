#include "cmd/http/api_error.h"

#include <array>

namespace tgi::http {

namespace {

// As soon as another request ends there is room: clients that know the header wait so long.
constexpr std::string_view kRetryAfterSeconds = "1";

Response with_retry(Response response) {
  if (response.status == 429 || response.status == 503) {
    response.headers.push_back({"Retry-After", std::string(kRetryAfterSeconds)});
  }
  return response;
}

}  // namespace

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
  if (dynamic_cast<const BodyError*>(&error) != nullptr) {
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
  return {
      {"error", {{"message", error.what()}, {"type", type}, {"param", nullptr}, {"code", code}}},
      {"error_type", error.type()}};
}

Response openai_error(const ApiError& error) {
  return with_retry(json_response(error.status(), openai_error_json(error)));
}

}  // namespace tgi::http
