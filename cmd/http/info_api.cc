#include "cmd/http/info_api.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cmd/http/adapters.h"
#include "cmd/http/model_choice.h"
#include "ipc/client.h"
#include "ipc/detokenize.h"

namespace tgi::http {
namespace {

// As llama.cpp's router calls it.
std::string_view model_state(const ApiOptions& model) {
  if (model.phase == "ready" || model.phase == "draining") return "loaded";
  return model.phase == "not loaded" ? "unloaded" : model.phase;
}

OrderedJson model_json(const std::string& id, const ApiOptions& options) {
  OrderedJson out = {
      {"id", id}, {"object", "model"}, {"created", 0}, {"owned_by", options.model_id}};
  if (id == options.model_id) out["status"] = {{"value", model_state(options)}};
  // As vLLM tells adapters from what they are of.
  if (id != options.model_id) out["parent"] = options.model_id;
  return out;
}

OrderedJson anthropic_model_json(const std::string& id, const ApiOptions& options) {
  OrderedJson out = {{"type", "model"},
                     {"id", id},
                     {"display_name", id},
                     {"created_at", "1970-01-01T00:00:00Z"},  // as Anthropic tells an unknown time
                     {"lifecycle", "active"}};
  if (options.is_known) out["max_input_tokens"] = options.max_input_tokens;
  return out;
}

// All on one page.
OrderedJson anthropic_models_json(OrderedJson models) {
  const OrderedJson first = models.empty() ? OrderedJson() : models.front()["id"];
  const OrderedJson last = models.empty() ? OrderedJson() : models.back()["id"];
  return {{"data", std::move(models)}, {"has_more", false}, {"first_id", first}, {"last_id", last}};
}

// Whether it is loaded, and how long it stays.
OrderedJson standing_json(const ApiOptions& model) {
  const ipc::ModelStay& stay = model.stay;
  OrderedJson out = {{"model_id", model.model_id},
                     {"state", model.phase == "ready" ? "loaded" : model.phase},
                     {"pinned", stay.pinned},
                     {"requests", stay.num_uses},
                     {"waiting", stay.num_waiting}};
  if (stay.idle_seconds) out["idle_seconds"] = *stay.idle_seconds;
  if (stay.expires_in_seconds) out["expires_in_seconds"] = *stay.expires_in_seconds;
  return out;
}

// [{id, text, start, stop}]: the text is the slice of the source.
OrderedJson spans_json(const ipc::TokenizeResult& result) {
  std::vector<size_t> begins;  // of each character, in bytes
  for (size_t i = 0; i < result.text.size(); ++i) {
    if (starts_character(result.text[i])) begins.push_back(i);
  }
  begins.push_back(result.text.size());
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < result.tokens.size() && i < result.spans.size(); ++i) {
    const ipc::TokenSpan& span = result.spans[i];
    const size_t begin = begins.at(static_cast<size_t>(span.start));
    const size_t end = begins.at(static_cast<size_t>(span.stop));
    out.push_back({{"id", result.tokens[i].id},
                   {"text", result.text.substr(begin, end - begin)},
                   {"start", span.start},
                   {"stop", span.stop}});
  }
  return out;
}

}  // namespace

bool is_for_anthropic(const Request& request) {
  return !request.header("anthropic-version").empty();
}

ipc::Status ask_status(const Scope& scope) {
  std::optional<ipc::Status> status;
  try {
    status =
        ipc::status_from_json(ask_daemon(scope.service(), ipc::kStatus, OrderedJson::object()));
    if (const auto name = scope.daemon_model()) {
      ipc::OtherModelStatus found = ipc::find_model(*status, *name);
      status->model = std::move(found.model);
      status->last_model = std::move(found.last_model);
      status->phase = found.phase;
      status->counters = found.counters;
    }
    // What it was tells what it will be.
    if (!status->model) status->model = status->last_model;
  } catch (const Error& error) {
    throw daemon_error(error, false);
  }
  if (!status->model) throw ApiError(503, "unavailable", "no model is loaded");
  return *std::move(status);
}

ipc::TokenizeResult ask_tokens(const Scope& scope, ipc::TokenizeParams params) {
  params.model = scope.daemon_model();
  try {
    return ipc::tokenize_result_from_json(
        ipc::Client(scope.service().daemon).call(ipc::kTokenize, ipc::to_json(params)));
  } catch (const Error& error) {
    throw daemon_error(error, false);
  }
}

int64_t count_tokens(const Scope& scope, const ipc::GenerateRequest& request) {
  ipc::TokenizeParams asked;
  asked.messages = request.messages;
  asked.tools = request.tools;
  asked.tool_choice = request.tool_choice;
  asked.tool_prompt = request.tool_prompt;
  asked.reasoning_effort = request.reasoning_effort;
  asked.chat_template_kwargs = request.chat_template_kwargs;
  asked.add_special = false;
  asked.continue_final_message = request.continue_final_message;
  return static_cast<int64_t>(ask_tokens(scope, asked).tokens.size());
}

std::string ask_text(const Scope& scope, std::vector<int32_t> ids) {
  try {
    return ipc::detokenize_result_from_json(
               ipc::Client(scope.service().daemon)
                   .call(ipc::kDetokenize,
                         ipc::to_json(ipc::DetokenizeParams{.model = scope.daemon_model(),
                                                            .ids = std::move(ids)})))
        .text;
  } catch (const Error& error) {
    throw daemon_error(error, false);
  }
}

Response info(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  const auto now = models_now(scope->service());
  // The one that was asked for, as it is now.
  const auto asked = scope->daemon_model()
                         ? scope->service().options.find(scope->options().model_id)
                         : now->front();
  const ApiOptions& options = asked == nullptr ? scope->options() : *asked;
  OrderedJson all = OrderedJson::array();
  for (const auto& each : *now) all.push_back(standing_json(*each));
  return json_response(200, {{"model_id", options.model_id},
                             {"model_sha", nullptr},
                             {"model_pipeline_tag", options.pipeline_tag},
                             {"max_concurrent_requests", options.max_concurrent_requests},
                             {"max_best_of", options.max_best_of},
                             {"max_stop_sequences", options.max_stop_sequences},
                             {"max_input_tokens", options.max_input_tokens},
                             {"max_total_tokens", options.max_total_tokens},
                             {"validation_workers", options.validation_workers},
                             {"max_client_batch_size", options.max_client_batch_size},
                             {"router", "text-generation-router"},
                             {"version", ipc::kVersion},
                             {"sha", nullptr},
                             {"docker_label", nullptr},
                             {"models", std::move(all)}});
}

Response health(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  const Service& service = scope->service();
  bool healthy = false;
  try {
    const ipc::Status status =
        ipc::status_from_json(ask_daemon(service, ipc::kStatus, OrderedJson::object()));
    const auto name = scope->daemon_model();
    const auto takes_requests = [](const auto& model) {
      const bool is_back_soon = model.phase == "loading" && model.last_model;
      return model.phase == "ready" || model.phase == "not loaded" || model.phase == "draining" ||
             is_back_soon;  // requests wait for it
    };
    healthy = !service.draining &&
              (name ? takes_requests(ipc::find_model(status, *name)) : takes_requests(status));
  } catch (const Error&) {
    // The daemon is not there, or does not answer: that is the answer.
  }
  if (healthy) return {.status = 200};
  const ApiError error(503, "healthcheck", "unhealthy");
  const std::string trouble = service.daemon_trouble ? service.daemon_trouble() : "";
  if (trouble.empty()) return native_error(error);
  return json_response(
      503, {{"error", error.what()}, {"error_type", error.type()}, {"reason", trouble}});
}

Response metrics_page(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  std::optional<EngineReport> report;
  try {
    report = ipc::metric_families_from_json(
        ask_daemon(scope->service(), ipc::kMetrics, OrderedJson::object()));
  } catch (const Error&) {
    // Told by tgi_engine_up.
  }
  return {.status = 200,
          .content_type = Metrics::kContentType,
          .body = scope->service().metrics.scrape(report)};
}

Response models(std::shared_ptr<Scope> scope, const Request& request) {
  const auto served = models_now(scope->service());
  const bool is_anthropic = is_for_anthropic(request);
  const auto told = is_anthropic ? anthropic_model_json : model_json;
  OrderedJson data = OrderedJson::array();
  for (const auto& each : *served) data.push_back(told(each->model_id, *each));
  for (const std::string& name : adapter_names(scope->service())) {
    data.push_back(told(name, *served->front()));
  }
  if (is_anthropic) return json_response(200, anthropic_models_json(std::move(data)));
  return json_response(200, {{"object", "list"}, {"data", std::move(data)}});
}

Response one_model(std::shared_ptr<Scope> scope, const Request& request) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = request.path.substr(kPrefix.size());
  const auto told = is_for_anthropic(request) ? anthropic_model_json : model_json;
  const auto served = models_now(scope->service());
  const ApiOptions& options = *served->front();
  for (const auto& each : *served) {
    if (each->model_id == name) return json_response(200, told(name, *each));
  }
  const std::vector<std::string> names = adapter_names(scope->service());
  const bool is_adapter = std::ranges::find(names, name) != names.end();
  if (!is_adapter && !is_base_model(name.empty() ? "?" : name, options)) {
    throw model_not_found(name.empty() ? "?" : name, options);
  }
  return json_response(200, told(is_adapter ? name : options.model_id, options));
}

Response tokenize(Scope& scope, const TokenizeBody& body) {
  ipc::TokenizeParams asked;
  asked.prompt = body.inputs;
  asked.add_special = body.add_special_tokens;
  return json_response(200, spans_json(ask_tokens(scope, asked)));
}

Response chat_tokenize(Scope& scope, const ChatBody& body) {
  const ipc::TokenizeResult result = ask_tokens(scope, to_tokenize(body));
  return json_response(
      200, {{"tokenize_response", spans_json(result)}, {"templated_text", result.text}});
}

}  // namespace tgi::http
