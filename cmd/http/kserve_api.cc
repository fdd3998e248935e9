#include "cmd/http/kserve_api.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "cmd/http/generation.h"
#include "cmd/http/info_api.h"
#include "cmd/http/request_body.h"

namespace tgi::http {

template <>
std::span<const BodyField<KserveTensor>> body_fields<KserveTensor>() {
  using T = KserveTensor;
  static constexpr std::array kFields = {
      body_field<&T::name>("name", {.description = "of the input", .required = true}),
      body_field<&T::shape>("shape", {"of the data: as many as there are texts"}),
      body_field<&T::datatype>("datatype", {.description = "BYTES", .required = true}),
      body_field<&T::data>("data", {.description = "texts, or the bytes of one", .required = true}),
      body_field<&T::parameters>("parameters", {"those of the protocol that ask for nothing"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<KserveOutput>> body_fields<KserveOutput>() {
  static constexpr std::array kFields = {
      body_field<&KserveOutput::name>("name", {.description = "of the output", .required = true}),
      body_field<&KserveOutput::parameters>("parameters",
                                            {"those of the protocol that ask for nothing"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<KserveBody>> body_fields<KserveBody>() {
  using B = KserveBody;
  static constexpr std::array kFields = {
      body_field<&B::id>("id", {"told back"}),
      body_field<&B::parameters>("parameters", {"those of /generate"}),
      body_field<&B::inputs>("inputs", {.description = "the prompts", .required = true}),
      body_field<&B::outputs>("outputs", {"names of the answers, one for each input; default: "
                                          "those of the inputs"}),
  };
  return kFields;
}

namespace {

// Of a path below /v2/models/.
struct ModelPath {
  std::string model{};
  std::string version{};  // "": none is named
  bool wants_ready = false;
  bool wants_inference = false;
};

bool take_end(std::string& text, std::string_view end) {
  if (!text.ends_with(end) || text.size() == end.size()) return false;
  text.resize(text.size() - end.size());
  return true;
}

// A model's name may have slashes itself.
ModelPath model_path(const std::string& path) {
  constexpr std::string_view kPrefix = "/v2/models/";
  constexpr std::string_view kVersions = "/versions/";
  ModelPath out{.model = path.substr(kPrefix.size())};
  out.wants_ready = take_end(out.model, "/ready");
  if (!out.wants_ready) out.wants_inference = take_end(out.model, "/infer");
  if (const size_t at = out.model.rfind(kVersions); at != std::string::npos && at > 0) {
    out.version = out.model.substr(at + kVersions.size());
    out.model.resize(at);
  }
  return out;
}

// Sets the adapter that the path names. Throws 404 for a name that is nobody's.
void choose(Scope& scope, const std::string& model, std::span<ipc::GenerateRequest> requests) {
  OpenAiParameters parameters;
  parameters.model = model;
  choose_by_model(scope, parameters, requests);
}

bool is_healthy(const std::shared_ptr<Scope>& scope, const Request& request) {
  return health(scope, request).status == 200;
}

Response health_answer(const std::shared_ptr<Scope>& scope,
                       const Request& request,
                       OrderedJson answer) {
  if (!is_healthy(scope, request)) throw ApiError(503, "healthcheck", "unhealthy");
  return json_response(200, answer);
}

// The server lives when it answers at all.
Response kserve_live(std::shared_ptr<Scope> /*scope*/, const Request& /*request*/) {
  return json_response(200, {{"live", true}});
}

// TGI says that it lives, the protocol that it is ready.
Response kserve_ready(std::shared_ptr<Scope> scope, const Request& request) {
  return health_answer(scope, request, {{"live", true}, {"ready", true}});
}

Response kserve_server(std::shared_ptr<Scope> /*scope*/, const Request& /*request*/) {
  return json_response(200, {{"name", "text-generation-inference"},
                             {"version", ipc::kVersion},
                             {"extensions", {"health", "models", "metrics"}}});
}

Response kserve_model(std::shared_ptr<Scope> scope, const Request& request) {
  const ModelPath path = model_path(request.path);
  if (path.wants_inference) {
    throw ApiError(405, "method_not_allowed", "inference takes POST");
  }
  ipc::GenerateRequest nothing;
  choose(*scope, path.model, {&nothing, 1});
  if (path.wants_ready) {
    return health_answer(scope, request, {{"name", path.model}, {"live", true}, {"ready", true}});
  }
  const auto tensor = [](const char* name) {
    return OrderedJson::array({{{"name", name}, {"datatype", "BYTES"}, {"shape", {-1}}}});
  };
  const std::string version = path.version.empty() ? "1" : path.version;
  return json_response(200, {{"name", path.model},
                             {"version", version},
                             {"versions", {version}},
                             {"platform", "tgi"},
                             {"inputs", tensor("text_input")},
                             {"outputs", tensor("text_output")},
                             {"extensions", {"infer", "ready"}}});
}

// One input, with what its answer has to look like.
struct InputTexts {
  std::vector<std::string> texts;
  bool is_of_bytes = false;  // TGI's form
};

InputTexts texts_of_tensor(const KserveTensor& tensor, const std::string& path) {
  InputTexts out;
  if (tensor.parameters && tensor.parameters->is_object() &&
      tensor.parameters->contains("binary_data_size")) {
    fail_body(path + ".parameters.binary_data_size",
              "binary tensors are not supported, expected the data as JSON");
  }
  const OrderedJson& data = tensor.data;
  if (!data.is_array()) fail_body_type(path + ".data", "a list of texts", data);
  require(!data.empty(), "`{}.data` cannot be empty", path);
  out.is_of_bytes = data.front().is_number();
  const bool is_known =
      tensor.datatype == "BYTES" || (out.is_of_bytes && tensor.datatype == "UINT8");
  if (!is_known) {
    fail_body(path + ".datatype",
              fmt::format("expected BYTES, got {}", tensor.datatype.substr(0, 100)));
  }
  if (out.is_of_bytes) {
    std::vector<uint8_t> bytes;
    read_body_value(data, path + ".data", bytes);
    std::string text(bytes.begin(), bytes.end());
    if (!is_valid_utf8(text)) throw ApiError(422, "utf8", path + ".data: the bytes are not UTF-8");
    out.texts.push_back(std::move(text));
    return out;
  }
  read_body_value(data, path + ".data", out.texts);
  if (!tensor.shape) return out;
  int64_t count = 1;
  for (const int64_t size : *tensor.shape) {
    if (size < 0 || size > int64_t{1} << 20) fail_body(path + ".shape", "expected counts");
    count = std::min<int64_t>(count * size, int64_t{1} << 20);
  }
  if (count != static_cast<int64_t>(out.texts.size())) {
    fail_body(path + ".shape",
              fmt::format("expected as many as there are texts, which is {}, got {}",
                          out.texts.size(), count));
  }
  return out;
}

// Those of /generate. The protocol's own one asks for answers in bytes, which may be refused.
GenerateParameters parameters_of(const std::optional<OrderedJson>& json) {
  if (!json) return default_parameters();
  OrderedJson rest = *json;
  if (rest.is_object()) rest.erase("binary_data_output");
  if (rest.is_object() && rest.empty()) return default_parameters();
  GenerateParameters out;
  read_body_value(rest, "parameters", out);
  return out;
}

OrderedJson output_json(const std::string& name, const InputTexts& input, OrderedJson texts) {
  if (!input.is_of_bytes) {
    return {{"name", name},
            {"shape", {texts.size()}},
            {"datatype", "BYTES"},
            {"data", std::move(texts)}};
  }
  OrderedJson bytes = OrderedJson::array();
  for (const char c : texts.front().get_ref<const std::string&>()) {
    bytes.push_back(static_cast<uint8_t>(c));
  }
  return {{"name", name},
          {"shape", {1, bytes.size()}},
          {"datatype", "BYTES"},
          {"data", std::move(bytes)}};
}

Response kserve_infer(std::shared_ptr<Scope> scope, const Request& request) {
  const ModelPath path = model_path(request.path);
  if (!path.wants_inference) {
    throw ApiError(404, "not_found", "there is no such route; did you mean its /infer?");
  }
  if (!request.header("inference-header-content-length").empty()) {
    throw BodyError(415, "binary tensors are not supported, expected the whole body as JSON");
  }
  const auto body = body_of<KserveBody>(request);
  if (!body.outputs.empty() && body.outputs.size() != body.inputs.size()) {
    throw ApiError(422, "length mismatch",
                   fmt::format("Inputs and outputs length mismatch: {} and {}", body.inputs.size(),
                               body.outputs.size()));
  }
  require(!body.inputs.empty(), "`inputs` cannot be empty");
  const GenerateParameters parameters = parameters_of(body.parameters);
  const ApiOptions& options = scope->options();
  std::vector<InputTexts> inputs;
  std::vector<ipc::GenerateRequest> asked;
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    inputs.push_back(texts_of_tensor(body.inputs[i], fmt::format("inputs[{}]", i)));
    for (const std::string& text : inputs.back().texts) {
      check_parameters(parameters, text, false, options);
      asked.push_back(to_daemon(parameters, text, false, options));
    }
  }
  if (static_cast<int64_t>(asked.size()) > options.max_client_batch_size) {
    throw ApiError(422, "batch size exceeded",
                   fmt::format("Number of prompts exceeds the maximum allowed batch size of {}",
                               options.max_client_batch_size));
  }
  scope->begin_generation(static_cast<int64_t>(asked.size()) * asked.front().params.best_of);
  choose(*scope, path.model, asked);
  Generation generation(scope, std::move(asked));
  const std::vector<ipc::DoneEvent> dones = generation.wait();
  OrderedJson outputs = OrderedJson::array();
  auto done = dones.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    OrderedJson texts = OrderedJson::array();
    for (size_t k = 0; k < inputs[i].texts.size(); ++k, ++done) {
      scope->record().finish_reasons.emplace_back(
          ipc::finish_reason_name(done->best.finish_reason));
      texts.push_back(done->best.text);
    }
    const std::string& name = body.outputs.empty() ? body.inputs[i].name : body.outputs[i].name;
    outputs.push_back(output_json(name, inputs[i], std::move(texts)));
  }
  OrderedJson answer = {{"model_name", path.model},
                        {"model_version", path.version.empty() ? "1" : path.version}};
  if (body.id) answer["id"] = *body.id;
  answer["outputs"] = std::move(outputs);
  return generated_response(*scope, generation, answer);
}

// As the protocol calls them; a model's name may have slashes, which no document can say.
constexpr std::array<std::string_view, 4> kModelPaths = {
    "/v2/models/{name}", "/v2/models/{name}/versions/{version}", "/v2/models/{name}/ready",
    "/v2/models/{name}/versions/{version}/ready"};
constexpr std::array<std::string_view, 2> kInferPaths = {
    "/v2/models/{name}/infer", "/v2/models/{name}/versions/{version}/infer"};

constexpr std::array kKserveRoutes = {
    Route{"GET", "/v2", false, &kKserveErrors, kserve_server, "As KServe: the server", "",
          "KserveServer"},
    Route{"GET", "/v2/health/live", false, &kKserveErrors, kserve_live,
          "As KServe: whether the server lives", "", "KserveHealth"},
    Route{"GET", "/v2/health/ready", false, &kKserveErrors, kserve_ready,
          "As KServe: whether the model answers", "", "KserveHealth"},
    Route{"GET", "/v2/models/*", false, &kKserveErrors, kserve_model,
          "As KServe: the model; with /ready behind it whether it answers, /versions/VERSION may "
          "stand between",
          "", "KserveModel", false, "", false, kModelPaths},
    Route{"POST", "/v2/models/*", true, &kKserveErrors, kserve_infer,
          "As KServe, with /infer behind the model's name: continue texts; /versions/VERSION may "
          "stand between",
          "KserveRequest", "KserveResponse", true, "", false, kInferPaths},
};

constexpr std::string_view kKserveSchemas = R"json({
"KserveServer": {"type": "object", "required": ["name", "version", "extensions"], "properties": {
  "name": {"type": "string"}, "version": {"type": "string"}, "extensions": {"type": "array", "items": {"type": "string"}}}},
"KserveHealth": {"type": "object", "properties": {"live": {"type": "boolean"}, "ready": {"type": "boolean"}}},
"KserveModel": {"type": "object", "required": ["name"], "properties": {
  "name": {"type": "string"}, "live": {"type": "boolean"}, "ready": {"type": "boolean"}, "version": {"type": "string"},
  "versions": {"type": "array", "items": {"type": "string"}}, "platform": {"type": "string"},
  "inputs": {"type": "array", "items": {"type": "object"}}, "outputs": {"type": "array", "items": {"type": "object"}},
  "extensions": {"type": "array", "items": {"type": "string"}}}},
"KserveResponse": {"type": "object", "required": ["model_name", "outputs"], "properties": {
  "model_name": {"type": "string"}, "model_version": {"type": "string"}, "id": {"type": "string"},
  "outputs": {"type": "array", "items": {"type": "object", "required": ["name", "shape", "datatype", "data"], "properties": {
    "name": {"type": "string"}, "shape": {"type": "array", "items": {"type": "integer"}}, "datatype": {"type": "string"},
    "data": {"type": "array", "items": {}}}}}}}
})json";

}  // namespace

Response kserve_error(const ApiError& error) {
  return with_retry(json_response(error.status(), native_error_json(error)));
}

std::span<const Route> kserve_routes() {
  return kKserveRoutes;
}

void add_kserve_schemas(OrderedJson& schemas) {
  schemas.update(OrderedJson::parse(kKserveSchemas));
  schemas["KserveTensor"] = body_schema<KserveTensor>();
  schemas["KserveOutput"] = body_schema<KserveOutput>();
  schemas["KserveRequest"] = body_schema<KserveBody>();
}

}  // namespace tgi::http
