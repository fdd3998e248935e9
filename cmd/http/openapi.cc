// The OpenAPI document: routes from the route table, bodies from the tables they are read with.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "cmd/http/answer_schemas.h"
#include "cmd/http/anthropic_body.h"
#include "cmd/http/item_schemas.h"
#include "cmd/http/lora_api.h"
#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"
#include "cmd/http/responses_body.h"
#include "cmd/http/routes.h"
#include "cmd/http/vectors_body.h"

namespace tgi::http {
namespace {

OrderedJson reference(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

OrderedJson content_of(std::string_view type, std::string_view schema) {
  return {{std::string(type), {{"schema", reference(schema)}}}};
}

// Fields that may have several forms, which a C++ type does not tell.
void describe_choices(OrderedJson& schemas) {
  const OrderedJson text = {{"type", "string"}};
  const OrderedJson texts = {{"type", "array"}, {"items", text}};
  const OrderedJson ids = {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}};
  for (const char* body : {"ChatRequest", "CompletionRequest"}) {
    OrderedJson& properties = schemas[body]["properties"];
    properties["stop"]["oneOf"] = OrderedJson::array({text, texts});
    properties["logit_bias"]["type"] = "object";
    properties["logit_bias"]["additionalProperties"] = {{"type", "number"}};
    properties["stream_options"]["type"] = "object";
    properties["stream_options"]["properties"] = {{"include_usage", {{"type", "boolean"}}}};
  }
  schemas["CompletionRequest"]["properties"]["prompt"]["oneOf"] =
      OrderedJson::array({text, texts, ids, {{"type", "array"}, {"items", ids}}});
  schemas["ChatRequest"]["properties"]["chat_template_kwargs"]["type"] = "object";
  schemas["ChatRequest"]["properties"]["messages"] = {
      {"type", "array"},
      {"minItems", 1},
      {"items",
       {{"type", "object"},
        {"required", {"role"}},
        {"properties",
         {{"role", text},
          {"content", {{"description", "a text, or parts of type text"}, {"nullable", true}}}}}}}};
}

OrderedJson schemas() {
  OrderedJson out = OrderedJson::parse(kAnswerSchemas);
  out.update(OrderedJson::parse(kItemSchemas));
  out["AdapterParameters"] = body_schema<MergedAdaptersBody>();
  out["GenerateParameters"] = body_schema<GenerateParameters>();
  out["CompatGenerateRequest"] = body_schema<GenerateBody>();
  out["TokenizeRequest"] = body_schema<TokenizeBody>();
  out["GenerateRequest"] = body_schema<GenerateBody>();
  out["GenerateRequest"]["properties"].erase("stream");
  out["ChatRequest"] = body_schema<ChatBody>();
  out["CompletionRequest"] = body_schema<CompletionBody>();
  out["ResponsesRequest"] = body_schema<ResponsesBody>();
  out["MessagesRequest"] = body_schema<MessagesBody>();
  out["CountTokensRequest"] = body_schema<CountTokensBody>();
  out["LoadLoraAdapterRequest"] = body_schema<LoadLoraBody>();
  out["UnloadLoraAdapterRequest"] = body_schema<UnloadLoraBody>();
  out["VectorParameters"] = body_schema<VectorParameters>();
  out["EmbedRequest"] = body_schema<EmbedBody>();
  out["EmbedAllRequest"] = body_schema<EmbedAllBody>();
  out["EmbeddingsRequest"] = body_schema<EmbeddingsBody>();
  out["ClassifyRequest"] = body_schema<ClassifyBody>();
  out["RerankRequest"] = body_schema<RerankBody>();
  out["DocumentsRequest"] = body_schema<DocumentsBody>();
  out["SimilarityInputs"] = body_schema<SentencesBody>();
  out["SimilarityParameters"] = body_schema<SimilarityParameters>();
  out["SimilarityRequest"] = body_schema<SimilarityBody>();
  out["ScoreRequest"] = body_schema<ScoreBody>();
  out["SagemakerRequest"]["oneOf"] =
      OrderedJson::array({reference("CompatGenerateRequest"), reference("ChatRequest"),
                          reference("CompletionRequest")});
  describe_choices(out);
  for (const Api& api : apis()) api.add_schemas(out);
  return out;
}

struct AnswerRow {
  std::string_view response_schema;  // of the route table
  OrderedJson (*whole)();            // null: only streamed
  std::string_view event;            // "": never streamed
};

// What a 200 holds where it is more than the one schema.
constexpr std::array<AnswerRow, 7> kAnswers = {{
    {"StreamResponse", nullptr, "StreamResponse"},
    {"GenerateResponse", [] { return reference("GenerateResponse"); }, ""},
    {"CompatGenerateResponse",
     [] {
       return OrderedJson{{"type", "array"}, {"items", reference("GenerateResponse")}};
     },
     "StreamResponse"},
    {"ChatCompletion", [] { return reference("ChatCompletion"); }, "ChatCompletionChunk"},
    {"CompletionFinal", [] { return reference("CompletionFinal"); }, "Chunk"},
    {"ResponseObject", [] { return reference("ResponseObject"); }, "ResponseEvent"},
    {"Message", [] { return reference("Message"); }, "MessageEvent"},
}};

OrderedJson one_of(std::initializer_list<OrderedJson> choices) {
  return {{"oneOf", OrderedJson::array_t(choices)}};
}

OrderedJson answer_content(const Route& route) {
  OrderedJson out = OrderedJson::object();
  if (route.response_schema == "SagemakerResponse") {
    const auto whole = [](const AnswerRow& row) { return row.whole(); };
    out["application/json"]["schema"] =
        one_of({whole(kAnswers[2]), whole(kAnswers[3]), whole(kAnswers[4])});
    out["text/event-stream"]["schema"] =
        one_of({reference("StreamResponse"), reference("ErrorResponse"),
                reference("ChatCompletionChunk"), reference("Chunk"), reference("OpenAiError")});
    return out;
  }
  for (const AnswerRow& row : kAnswers) {
    if (row.response_schema != route.response_schema) continue;
    if (row.whole != nullptr) out["application/json"]["schema"] = row.whole();
    if (!row.event.empty()) {
      out["text/event-stream"]["schema"] =
          one_of({reference(row.event), reference(route.errors->schema)});
    }
    return out;
  }
  out = content_of("application/json", route.response_schema);
  if (!route.stream_type.empty()) {
    out[std::string(route.stream_type)]["schema"] =
        one_of({reference(route.response_schema), reference(route.errors->schema)});
  }
  return out;
}

// `{name}` is what the document calls what /* stands for, where the route does not say it.
std::vector<std::string> paths_of(const Route& route) {
  if (!route.documented.empty()) return {route.documented.begin(), route.documented.end()};
  std::string path(route.path);
  if (path.ends_with("/*")) path.replace(path.size() - 1, 1, "{name}");
  return {path};
}

OrderedJson path_parameters(const std::string& path) {
  OrderedJson out = OrderedJson::array();
  for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    const std::string name = path.substr(at + 1, path.find('}', at) - at - 1);
    out.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  return out;
}

OrderedJson describe(const Route& route, const std::string& path) {
  OrderedJson out = {{"summary", route.summary}};
  if (route.needs_key) {
    out["security"] =
        OrderedJson::array({OrderedJson::object(), {{"api_key", OrderedJson::array()}}});
  }
  OrderedJson parameters = path_parameters(path);
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  OrderedJson ok = {{"description", "the answer"}};
  if (!route.response_schema.empty()) {
    ok["content"] = answer_content(route);
  }
  OrderedJson responses = {{"200", std::move(ok)}};
  const std::string_view error = route.errors->schema;
  const auto told = [&](int status) { return std::to_string(route.errors->status(status)); };
  const auto add = [&](int status, const char* why) {
    responses[told(status)] = {{"description", why},
                               {"content", content_of("application/json", error)}};
  };
  // What is refused by its form alone is told in plain text on TGI's own routes.
  const auto add_plain = [&](int status, const char* why) {
    if (!route.errors->tells_form_as_text) return add(status, why);
    responses[told(status)] = {{"description", why},
                               {"content", {{"text/plain", {{"schema", {{"type", "string"}}}}}}}};
  };
  if (!route.request_schema.empty()) {
    out["requestBody"] = {{"required", true},
                          {"content", content_of("application/json", route.request_schema)}};
    add_plain(400, "the body is not JSON");
    add_plain(413, "the body is too large");
    add_plain(415, "the body does not say that it is JSON");
    add(422, "the request breaks a rule");
    if (route.errors->tells_form_as_text) {
      responses["422"]["content"]["text/plain"] = {{"schema", {{"type", "string"}}}};
    }
    add(424, "the model failed");
    add(429, "as many requests are running as are allowed");
    add(500, "the answer is incomplete");
    add(502, "the daemon does not answer");
  }
  if (route.needs_key) responses["401"] = {{"description", "the API key is wrong or missing"}};
  const bool names_model = route.errors != &kNativeErrors || route.path == "/invocations";
  if (names_model) add(404, "no such model");
  if (!route.request_schema.empty() || route.path.find("health") != std::string_view::npos ||
      route.path == "/ping" || route.path == "/") {
    add(503, "no model is ready, or the server is shutting down");
  }
  out["responses"] = std::move(responses);
  return out;
}

}  // namespace

OrderedJson openapi_document() {
  OrderedJson paths = OrderedJson::object();
  for (const Route& route : route_table()) {
    const std::string method = ascii_lower(route.method);
    for (const std::string& path : paths_of(route)) paths[path][method] = describe(route, path);
  }
  return {{"openapi", "3.0.3"},
          {"info",
           {{"title", "tgi"},
            {"description", "Text generation: TGI's API and OpenAI's"},
            {"version", ipc::kVersion}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", schemas()},
            {"securitySchemes", {{"api_key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace tgi::http
