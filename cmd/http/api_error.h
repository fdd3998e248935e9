// A refusal or failure of one HTTP request, and its two shapes: TGI's and OpenAI's.
#pragma once

#include <fmt/format.h>

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
  ApiError(int status, std::string type, const std::string& message, std::string code = "")
      : std::runtime_error(message),
        status_(status),
        type_(std::move(type)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& type() const { return type_; }  // TGI's tag: clients choose exceptions by it
  const std::string& code() const { return code_; }  // OpenAI's, where it has one

 private:
  int status_;
  std::string type_;
  std::string code_;
};

// ApiError::code of an adapter that is not to be had.
inline constexpr std::string_view kAdapterFailed = "adapter_failed";

// A JSON body that could not be read: TGI's framework answers these in plain text.
class BodyError : public ApiError {
 public:
  BodyError(int status, const std::string& message) : ApiError(status, "body", message) {}
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

Response json_response(int status, const ipc::OrderedJson& body);

// For text from outside that may not be UTF-8: bad bytes become U+FFFD.
std::string dump_json(const ipc::OrderedJson& json);

}  // namespace tgi::http
