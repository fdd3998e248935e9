#include "cmd/bench/api.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace tgi::bench {
namespace {

using ipc::OrderedJson;

struct ApiRow {
  Api api;
  std::string_view name;
  std::string_view stream_path;
  std::string_view path;
};

constexpr std::array kApis = {
    ApiRow{Api::kTgi, "tgi", "/generate_stream", "/generate"},
    ApiRow{Api::kOpenAiChat, "openai-chat", "/v1/chat/completions", "/v1/chat/completions"},
    ApiRow{Api::kOpenAiCompletions, "openai-completions", "/v1/completions", "/v1/completions"},
};

const ApiRow& api_row(Api api) {
  return kApis[static_cast<size_t>(api)];
}

OrderedJson tgi_body(const BodyOptions& options, std::string_view prompt, int64_t num_tokens) {
  OrderedJson parameters = {{"max_new_tokens", num_tokens}, {"details", true}};
  parameters.update(options.sampling);
  if (options.ignore_eos) parameters["ignore_eos_token"] = true;  // LoRAX's name; TGI has none
  return {{"inputs", prompt}, {"parameters", std::move(parameters)}};
}

OrderedJson openai_body(
    Api api, const BodyOptions& options, std::string_view prompt, int64_t num_tokens, bool stream) {
  OrderedJson body = OrderedJson::object();
  if (!options.model.empty()) body["model"] = options.model;
  if (api == Api::kOpenAiChat) {
    body["messages"] = OrderedJson::array({{{"role", "user"}, {"content", prompt}}});
  } else {
    body["prompt"] = prompt;
  }
  body["max_tokens"] = num_tokens;
  body["temperature"] = 0;  // absent would mean 1; `sampling` may say so
  for (const auto& [name, value] : options.sampling.items()) {
    // do_sample is TGI's: here a temperature above 0 says it, 1 by default.
    if (name == "do_sample") {
      if (!options.sampling.contains("temperature")) body["temperature"] = 1;
    } else {
      body[name] = value;
    }
  }
  if (options.ignore_eos) body["ignore_eos"] = true;
  body["stream"] = stream;
  if (stream) body["stream_options"] = {{"include_usage", true}};
  return body;
}

// Reads the few members that matter without building the document: a load test reads hundreds of
// thousands of these a second. The path is the names of the open objects; arrays add nothing.
class EventReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  AnswerEvent event;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t number) override { return integer(number); }
  bool number_unsigned(number_unsigned_t number) override {
    return integer(static_cast<int64_t>(number));
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool parse_error(size_t position,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    throw Error(Code::kInvalidArgument, fmt::format("not valid JSON at byte {}", position));
  }

  bool key(string_t& name) override {
    path_.resize(open_.empty() ? 0 : open_.back());
    if (!path_.empty()) path_ += '.';
    path_ += name;
    return true;
  }

  bool string(string_t& text) override {
    if (path_ == "error" || path_ == "error.message") {
      event.error = text.empty() ? "an error without a message" : text;
    } else if (path_ == "error_type" || path_ == "error.type" || path_ == "error.code") {
      if (event.error_kind.empty()) event.error_kind = text;
    } else if (path_ == "choices.text" || path_ == "choices.delta.content" ||
               path_ == "choices.delta.reasoning_content" || path_ == "choices.delta.reasoning" ||
               path_ == "choices.delta.tool_calls.function.arguments" ||
               path_ == "choices.message.content") {
      event.has_output = event.has_output || !text.empty();
    } else if (path_ == "choices.finish_reason") {
      event.is_end = event.is_end || !text.empty();
    } else if (path_ == "generated_text") {
      event.is_end = true;
    }
    return true;
  }

 private:
  bool integer(int64_t number) {
    if (path_ == "token.id") {
      event.has_output = true;
    } else if (path_ == "usage.prompt_tokens" || path_ == "details.input_length") {
      event.num_prompt_tokens = number;
    } else if (path_ == "usage.completion_tokens" || path_ == "details.generated_tokens") {
      event.num_output_tokens = number;
    } else if (path_ == "usage.prompt_tokens_details.cached_tokens") {
      event.num_cached_tokens = number;
    }
    return true;
  }

  bool open() {
    // An error object whose members we don't know is an error all the same.
    if (path_ == "error" && event.error.empty()) event.error = "an error without a message";
    open_.push_back(path_.size());
    return true;
  }

  bool close() {
    path_.resize(open_.back());
    open_.pop_back();
    return true;
  }

  std::string path_;
  std::vector<size_t> open_;  // sizes of path_ at the beginning of each open object or array
};

}  // namespace

Api api_from_name(std::string_view name) {
  for (const ApiRow& row : kApis) {
    if (row.name == name) return row.api;
  }
  throw Error(
      Code::kInvalidArgument,
      fmt::format("--api: expected tgi, openai-chat or openai-completions, got \"{}\"", name));
}

std::string_view api_name(Api api) {
  return api_row(api).name;
}

std::string_view api_path(Api api, bool stream) {
  return stream ? api_row(api).stream_path : api_row(api).path;
}

std::string request_body(Api api,
                         const BodyOptions& options,
                         std::string_view prompt,
                         int64_t num_output_tokens,
                         bool stream) {
  return (api == Api::kTgi ? tgi_body(options, prompt, num_output_tokens)
                           : openai_body(api, options, prompt, num_output_tokens, stream))
      .dump();
}

AnswerEvent read_event(std::string_view data) {
  if (data == "[DONE]") {
    AnswerEvent end;
    end.is_end = true;
    return end;
  }
  const size_t first = data.find_first_not_of(" \t");
  if (first == std::string_view::npos || data[first] != '{') {
    throw Error(Code::kInvalidArgument, "expected a JSON object");
  }
  EventReader reader;
  nlohmann::json::sax_parse(data, &reader);
  return std::move(reader.event);
}

}  // namespace tgi::bench
