// POST /api/embed and the older /api/embeddings
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/ollama_api.h"
#include "cmd/http/vectors_api.h"

namespace tgi::http {
namespace {

void choose(Scope& scope, const OllamaKept& body, ipc::VectorParams& params) {
  const std::string& name = ollama_name(body);
  params.keep_alive_seconds = keep_alive_of(body.keep_alive);
  ipc::GenerateRequest request;
  choose_ollama_model(scope, name, request);
  params.adapter = request.adapter;
  params.adapter_path = request.adapter_path;
}

bool is_nothing(const std::optional<OrderedJson>& input) {
  return !input || *input == OrderedJson("") || (input->is_array() && input->empty());
}

}  // namespace

Response ollama_embed(std::shared_ptr<Scope> scope, const OllamaEmbedBody& body) {
  const std::string& name = ollama_name(body);
  scope->begin_generation(1);
  ipc::VectorParams params;
  choose(*scope, body, params);
  OrderedJson vectors = OrderedJson::array();
  if (!is_nothing(body.input)) {
    params.inputs = texts_of(*body.input, "input");
    check_count(params.inputs);
    params.truncate = body.truncate.value_or(true);
    params.dimensions = body.dimensions;
    params.normalize = true;
    for (const std::string& vector : ask_vectors(*scope, params).vectors) {
      vectors.push_back(numbers_json(vector));
    }
  }
  return json_response(200, {{"model", name},
                             {"embeddings", std::move(vectors)},
                             {"total_duration", static_cast<int64_t>(scope->elapsed_s() * 1e9)},
                             {"load_duration", 0},
                             {"prompt_eval_count", scope->record().num_prompt_tokens.value_or(0)}});
}

Response ollama_embeddings(std::shared_ptr<Scope> scope, const OllamaEmbeddingsBody& body) {
  scope->begin_generation(1);
  ipc::VectorParams params;
  choose(*scope, body, params);
  OrderedJson vector = OrderedJson::array();
  if (!body.prompt.value_or("").empty()) {
    params.inputs = {{.text = body.prompt}};
    params.truncate = true;
    vector = numbers_json(ask_vectors(*scope, params).vectors.at(0));
  }
  return json_response(200, {{"embedding", std::move(vector)}});
}

}  // namespace tgi::http
