// A refusal or failure of one HTTP request, and the shapes in which the APIs tell it.
#pragma once

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cmd/http/message.h"
#include "cmd/http/request_record.h"
#include "ipc/protocol.h"

namespace tgi::http {

class ApiError : public std::runtime_error {
 public:
  ApiError(int status,
           std::string type,
           const std::string& message,
           std::string code = "",
           std::string param = "")
      : std::runtime_error(shown_controls(message)),
        status_(status),
        type_(std::move(type)),
        code_(std::move(code)),
        param_(std::move(param)) {}

  int status() const { return status_; }
  const std::string& type() const { return type_; }    // TGI's tag: clients choose exceptions by it
  const std::string& code() const { return code_; }    // OpenAI's, where it has one
  const std::string& param() const { return param_; }  // the member it is about, where it is one's

 private:
  int status_;
  std::string type_;
  std::string code_;
  std::string param_;
};

// ApiError::code of an adapter that is not to be had.
inline constexpr std::string_view kAdapterFailed = "adapter_failed";

// ApiError::code of a request of Anthropic's API for a conversation that the server holds; their
// clients know it, and go on with the whole conversation.
inline constexpr std::string_view kNoThreads = "thread_unsupported_request";

// ApiError::type of a wrong or missing API key: TGI's framework answers these without a body.
inline constexpr std::string_view kUnauthorized = "unauthorized";

// A JSON body that could not be read: TGI's framework answers these in plain text.
inline constexpr std::string_view kUnreadableBody = "body";  // ApiError::type
class BodyError : public ApiError {
 public:
  BodyError(int status, const std::string& message, std::string param = "")
      : ApiError(status, std::string(kUnreadableBody), message, "", std::move(param)) {}
};

// 422, "Input validation error: " + rule.
ApiError validation_error(const std::string& rule);

// Throws validation_error of the rule unless it holds.
template <typename... Args>
void require(bool holds, fmt::format_string<Args...> rule, Args&&... args) {
  if (!holds) throw validation_error(fmt::format(rule, std::forward<Args>(args)...));
}

ApiError overloaded_error();

// What the daemon answered, or that it did not. `started`: tokens were there already.
ApiError daemon_error(const Error& error, bool started);

// Which of the failures the metrics know this is.
Failure failure_of(const ApiError& error);

// {"error": text, "error_type": tag}; plain text for body errors.
ipc::OrderedJson native_error_json(const ApiError& error);
Response native_error(const ApiError& error);

// {"error": {"message", "type", "param", "code"}, "error_type": tag}
ipc::OrderedJson openai_error_json(const ApiError& error);
Response openai_error(const ApiError& error);

// With the header Retry-After where another try may fare better.
Response with_retry(Response response);

// How the API of a route tells its errors.
struct ErrorShape {
  Response (*tell)(const ApiError& error);
  std::string_view schema;                                  // in the OpenAPI document
  bool tells_form_as_text = false;                          // what is refused by its form alone
  int (*status)(int ours) = [](int ours) { return ours; };  // that `tell` gives
};
inline constexpr ErrorShape kNativeErrors{native_error, "ErrorResponse", true};
inline constexpr ErrorShape kOpenAiErrors{openai_error, "OpenAiError"};

// OpenAI's shape with OpenAI's statuses: what breaks a rule is 400 and not TGI's 422, and what the
// model failed is 500.
Response responses_error(const ApiError& error);
int responses_status(int ours);
inline constexpr ErrorShape kResponsesErrors{responses_error, "OpenAiError", false,
                                             responses_status};

// {"type": "error", "error": {"type", "message"}}, with Anthropic's types and statuses.
ipc::OrderedJson anthropic_error_json(const ApiError& error);
Response anthropic_error(const ApiError& error);
int anthropic_status(int ours);
inline constexpr ErrorShape kAnthropicErrors{anthropic_error, "AnthropicError", false,
                                             anthropic_status};

// A word of our messages, and what an API calls it. A scope has those of its request
// (Scope::set_terms): whoever tells an error to a client puts it into them.
struct Term {
  std::string_view ours;
  std::string_view theirs;
};
// The same error, in the words of the API.
ApiError in_terms(const ApiError& error, std::span<const Term> terms);

Response json_response(int status, const ipc::OrderedJson& body);

// For text from outside that may not be UTF-8: bad bytes become U+FFFD.
std::string dump_json(const ipc::OrderedJson& json);

}  // namespace tgi::http
