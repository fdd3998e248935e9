// What llama.cpp's server and vLLM tell of tokens, of the template and of themselves.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/http/info_api.h"
#include "cmd/http/llama_cpp_api.h"
#include "cmd/http/openai_answer.h"
#include "cmd/http/request_body.h"

namespace tgi::http {
namespace {

int64_t num_slots(const Scope& scope, const ipc::ModelStatus& model) {
  return std::min(scope.options().max_concurrent_requests, model.max_running);
}

OrderedJson ids_json(const std::vector<ipc::TokenInfo>& tokens) {
  OrderedJson out = OrderedJson::array();
  for (const ipc::TokenInfo& token : tokens) out.push_back(token.id);
  return out;
}

OrderedJson vllm_tokens(const Scope& scope, const ipc::TokenizeResult& result, bool has_strings) {
  OrderedJson strings;
  if (has_strings) {
    strings = OrderedJson::array();
    for (const ipc::TokenInfo& token : result.tokens) strings.push_back(token.text);
  }
  return {{"count", result.tokens.size()},
          {"max_model_len", scope.options().max_total_tokens},
          {"tokens", ids_json(result.tokens)},
          {"token_strs", std::move(strings)}};
}

}  // namespace

int llama_cpp_status(int ours) {
  if (ours == 422) return 400;
  return ours == 424 ? 500 : ours;
}

OrderedJson llama_cpp_error_json(const ApiError& error) {
  const int status = llama_cpp_status(error.status());
  std::string_view type = "invalid_request_error";
  if (status == 401) type = "authentication_error";
  if (status == 403) type = "permission_error";
  if (status == 404) type = "not_found_error";
  if (status == 429 || status == 503) type = "unavailable_error";
  if (status == 500 || status == 502) type = "server_error";
  if (status == 501) type = "not_supported_error";
  return {{"error", {{"code", status}, {"message", error.what()}, {"type", type}}}};
}

Response llama_cpp_error(const ApiError& error) {
  const OrderedJson body = llama_cpp_error_json(error);
  return with_retry(json_response(body["error"]["code"].get<int>(), body));
}

Response llama_cpp_props(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  const ipc::ModelStatus model = *ask_status(*scope).model;
  const LlamaCppBody nothing;
  const auto no_tokens = [](const std::string&, bool) { return std::vector<int32_t>(); };
  const CompletionBody defaults =
      to_completion(nothing, OrderedJson::array(), scope->options(), no_tokens);
  return json_response(200, {{"default_generation_settings",
                              {{"params", generation_settings(nothing, defaults)},
                               {"n_ctx", scope->options().max_total_tokens},
                               {"is_processing", false}}},
                             {"total_slots", num_slots(*scope, model)},
                             {"model_alias", scope->options().model_id},
                             {"model_path", model.name},
                             {"modalities", {{"vision", false}, {"audio", false}}},
                             {"build_info", fmt::format("tgi {}", ipc::kVersion)}});
}

Response llama_cpp_slots(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  const ipc::ModelStatus model = *ask_status(*scope).model;
  OrderedJson out = OrderedJson::array();
  for (int64_t id = 0; id < num_slots(*scope, model); ++id) {
    out.push_back({{"id", id},
                   {"n_ctx", scope->options().max_total_tokens},
                   {"speculative", false},
                   {"is_processing", id < model.num_running}});
  }
  return json_response(200, out);
}

Response apply_template(std::shared_ptr<Scope> scope, const Request& request) {
  const auto body = body_of<ChatBody>(request);
  return json_response(200, {{"prompt", ask_tokens(*scope, to_tokenize(body)).text}});
}

Response detokenize(std::shared_ptr<Scope> scope, const Request& request) {
  auto body = body_of<DetokenizeBody>(request);
  const std::string text = ask_text(*scope, std::move(body.tokens));
  return json_response(200, {{"content", text}, {"prompt", text}});  // llama.cpp's and vLLM's
}

Response llama_cpp_tokenize(Scope& scope, const LlamaCppTokenizeBody& body) {
  ipc::TokenizeParams params;
  params.prompt = body.content;
  params.add_special = body.add_special;
  const ipc::TokenizeResult result = ask_tokens(scope, params);
  if (!body.with_pieces) return json_response(200, {{"tokens", ids_json(result.tokens)}});
  OrderedJson pieces = OrderedJson::array();
  for (const ipc::TokenInfo& token : result.tokens) {
    // Bytes that are no text are told as such.
    pieces.push_back({{"id", token.id},
                      {"piece", token.bytes.empty() ? OrderedJson(token.text) : bytes_of(token)}});
  }
  return json_response(200, {{"tokens", std::move(pieces)}});
}

Response vllm_tokenize(Scope& scope, const OrderedJson& json) {
  if (!json.contains("messages")) {
    const auto body = read_body<VllmTokenizeBody>(json);
    ipc::TokenizeParams params;
    params.prompt = body.prompt;
    params.add_special = body.add_special_tokens;
    return json_response(200,
                         vllm_tokens(scope, ask_tokens(scope, params), body.return_token_strings));
  }
  OrderedJson chat = json;
  bool has_strings = false;
  if (const auto it = chat.find("return_token_strs"); it != chat.end()) {
    if (!it->is_null()) read_body_value(*it, "return_token_strs", has_strings);
    chat.erase(it);
  }
  const ipc::TokenizeParams params = to_tokenize(read_body<ChatBody>(chat));
  return json_response(200, vllm_tokens(scope, ask_tokens(scope, params), has_strings));
}

}  // namespace tgi::http
