#include "cmd/http/vertex_api.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/http/adapters.h"
#include "cmd/http/generation.h"
#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"
#include "cmd/http/request_body.h"

namespace tgi::http {

template <>
std::span<const BodyField<VertexBody>> body_fields<VertexBody>() {
  static constexpr std::array kFields = {
      body_field<&VertexBody::instances>(
          "instances", {.description = "bodies of /generate or of a chat", .required = true}),
      body_field<&VertexBody::parameters>(
          "parameters", {"of the instances of /generate that have none of their own"}),
  };
  return kFields;
}

namespace {

// TGI samples here unless it is told not to.
GenerateBody native_instance(OrderedJson instance, const std::optional<OrderedJson>& parameters) {
  const auto own = instance.find("parameters");
  const bool has_own = own != instance.end() && !own->is_null();
  if (!has_own && parameters) instance["parameters"] = *parameters;
  auto body = read_body<GenerateBody>(instance);
  if (!body.parameters) body.parameters = default_parameters();
  const auto given = instance.find("parameters");
  const bool says_how =
      given != instance.end() && given->is_object() && given->contains("do_sample");
  if (!says_how) body.parameters->do_sample = true;
  return body;
}

ipc::GenerateRequest native_request(Scope& scope, const GenerateBody& body) {
  const GenerateParameters& parameters = *body.parameters;
  require(!body.stream, "`stream` is not supported here: an answer is a list of predictions");
  check_parameters(parameters, body.inputs, false, scope.options());
  ipc::GenerateRequest out = to_daemon(parameters, body.inputs, false, scope.options());
  choose_adapter(scope,
                 {.id = parameters.adapter_id,
                  .source = parameters.adapter_source,
                  .token = parameters.api_token,
                  .merged = merged_adapters_of(parameters)},
                 out);
  return out;
}

ipc::GenerateRequest chat_request(Scope& scope, const ChatBody& body) {
  scope.set_terms(chat_terms(body));
  require(!body.stream, "`stream` is not supported here: an answer is a list of predictions");
  require(body.n.value_or(1) == 1, "`n` must be 1 here: an instance has one prediction");
  ipc::GenerateRequest out = to_daemon(body, scope.options());
  choose_by_model(scope, body, {&out, 1});
  return out;
}

ipc::GenerateRequest instance_request(Scope& scope,
                                      const OrderedJson& instance,
                                      const std::optional<OrderedJson>& parameters) {
  if (instance.is_object() && instance.contains("messages")) {
    return chat_request(scope, read_body<ChatBody>(instance));
  }
  if (instance.is_object() && instance.contains("inputs")) {
    return native_request(scope, native_instance(instance, parameters));
  }
  fail_body("instances", "expected objects with `inputs` or `messages`");
}

Response vertex(std::shared_ptr<Scope> scope, const Request& request) {
  const auto body = body_of<VertexBody>(request);
  const ApiOptions& options = scope->options();
  const auto num_instances = static_cast<int64_t>(body.instances.size());
  if (num_instances == 0) {
    throw ApiError(422, "Input validation error", "Input validation error: `instances` is empty");
  }
  if (num_instances > options.max_client_batch_size) {
    throw ApiError(422, "batch size exceeded",
                   fmt::format("Number of prompts exceeds the maximum allowed batch size of {}",
                               options.max_client_batch_size));
  }
  scope->begin_generation(num_instances);
  std::vector<ipc::GenerateRequest> asked;
  for (const OrderedJson& instance : body.instances) {
    asked.push_back(instance_request(*scope, instance, body.parameters));
  }
  Generation generation(scope, std::move(asked));
  OrderedJson predictions = OrderedJson::array();
  for (const ipc::DoneEvent& done : generation.wait()) {
    scope->record().finish_reasons.emplace_back(ipc::finish_reason_name(done.best.finish_reason));
    predictions.push_back(done.best.text);
  }
  return generated_response(*scope, generation, {{"predictions", std::move(predictions)}});
}

constexpr std::array kVertexRoutes = {
    Route{"POST", "/vertex", true, &kNativeErrors, vertex,
          "As Vertex AI: the texts that answer instances", "VertexRequest", "VertexResponse"},
};

}  // namespace

std::span<const Route> vertex_routes() {
  return kVertexRoutes;
}

void add_vertex_schemas(OrderedJson& schemas) {
  schemas["VertexRequest"] = body_schema<VertexBody>();
  schemas["VertexRequest"]["properties"]["instances"]["items"]["oneOf"] =
      OrderedJson::array({{{"$ref", "#/components/schemas/GenerateRequest"}},
                          {{"$ref", "#/components/schemas/ChatRequest"}}});
  schemas["VertexResponse"] = {
      {"type", "object"},
      {"required", {"predictions"}},
      {"properties", {{"predictions", {{"type", "array"}, {"items", {{"type", "string"}}}}}}}};
}

}  // namespace tgi::http
