#include "cmd/http/vectors_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/shortest_double.h"
#include "cmd/http/adapters.h"
#include "cmd/http/generation.h"
#include "cmd/http/openai_body.h"
#include "cmd/http/ranking_api.h"
#include "ipc/client.h"

namespace tgi::http {
namespace {

// What the daemon makes of the texts; the client may leave meanwhile.
OrderedJson ask(Scope& scope, std::string_view method, ipc::VectorParams params) {
  params.model = scope.daemon_model();
  ipc::ClientOptions options = scope.service().daemon;
  options.peer_fd = scope.peer_fd();
  try {
    OrderedJson out = ipc::Client(options).call(method, ipc::to_json(params));
    scope.give_back_permits();
    return out;
  } catch (const ipc::Stopped& stopped) {
    if (stopped.why() == ipc::Stopped::Why::kPeerGone) throw ClientGone();
    throw ApiError(503, "shutting_down", "the server is shutting down; the answer is cut off here");
  } catch (const Error& error) {
    throw daemon_error(error, false);
  }
}

void note_tokens(Scope& scope, const std::vector<int64_t>& counts) {
  scope.record().num_prompt_tokens = std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void choose(Scope& scope,
            const std::optional<VectorParameters>& parameters,
            ipc::VectorParams& params) {
  if (!parameters) return;
  ipc::GenerateRequest request;
  choose_adapter(scope,
                 {.id = parameters->adapter_id,
                  .source = parameters->adapter_source,
                  .token = parameters->api_token},
                 request);
  params.adapter = request.adapter;
  params.adapter_path = request.adapter_path;
}

void choose(Scope& scope, const EmbeddingsBody& body, ipc::VectorParams& params) {
  OpenAiParameters parameters;
  if (body.model) parameters.model = *body.model;
  parameters.adapter_source = body.adapter_source;
  parameters.api_token = body.api_token;
  ipc::GenerateRequest request;
  choose_by_model(scope, parameters, std::span(&request, 1));
  params.adapter = request.adapter;
  params.adapter_path = request.adapter_path;
}

OrderedJson scores_json(const ipc::ClassifyResult& result, const ipc::TextScores& text) {
  OrderedJson out = OrderedJson::array();
  for (const ipc::EntityInfo& entity : text.entities) {
    out.push_back({{"entity_group", entity.group},
                   {"score", entity.score},
                   {"word", entity.word},
                   {"start", entity.start},
                   {"end", entity.end}});
  }
  std::vector<size_t> order(text.scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return text.scores[a] > text.scores[b]; });
  for (const size_t label : order) {
    out.push_back({{"label", result.labels.at(label)}, {"score", text.scores[label]}});
  }
  return out;
}

OrderedJson all_scores_json(const ipc::ClassifyResult& result) {
  OrderedJson out = OrderedJson::array();
  for (const ipc::TextScores& text : result.texts) out.push_back(scores_json(result, text));
  return out;
}

ipc::VectorParams to_params(Scope& scope, const ClassifyBody& body) {
  ipc::VectorParams params;
  params.truncate = body.truncate;
  params.truncation_side = truncation_side(body.truncation_direction);
  params.raw_scores = body.raw_scores;
  choose(scope, body.parameters, params);
  return params;
}

constexpr Term kOpenAiTerms[] = {{"`inputs`", "`input`"}};

OrderedJson array_of(std::span<const float> values) {
  OrderedJson out = OrderedJson::array();
  for (const float value : values) out.push_back(shortest_double(value));
  return out;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double product = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    squares_a += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    squares_b += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  const double lengths = std::sqrt(squares_a * squares_b);
  return lengths > 0 ? product / lengths : 0;
}

// What is asked alike for vectors of texts and of their tokens.
template <typename Body>
ipc::VectorParams params_of_texts(Scope& scope, const Body& body) {
  scope.begin_generation(1);
  ipc::VectorParams params;
  params.inputs = texts_of(body.inputs, "inputs");
  check_count(params.inputs);
  params.truncate = body.truncate;
  params.truncation_side = truncation_side(body.truncation_direction);
  params.prompt_name = body.prompt_name;
  choose(scope, body.parameters, params);
  return params;
}

ipc::EmbedResult embed_body(Scope& scope, const EmbedBody& body) {
  ipc::VectorParams params = params_of_texts(scope, body);
  params.normalize = body.normalize;
  params.dimensions = body.dimensions;
  return ask_vectors(scope, params);
}

Response vectors_response(const ipc::EmbedResult& result) {
  OrderedJson out = OrderedJson::array();
  for (const std::string& vector : result.vectors) out.push_back(numbers_json(vector));
  return json_response(200, out);
}

}  // namespace

void check_count(const std::vector<ipc::TextInput>& inputs) {
  require(!inputs.empty(), "`inputs` cannot be empty");
  require(inputs.size() <= ipc::kMaxTexts, "`inputs` must have at most {} texts. Given: {}",
          ipc::kMaxTexts, inputs.size());
}

ipc::EmbedResult ask_vectors(Scope& scope, const ipc::VectorParams& params) {
  ipc::EmbedResult result = ipc::embed_result_from_json(ask(scope, ipc::kEmbed, params));
  note_tokens(scope, result.num_tokens);
  return result;
}

ipc::ClassifyResult ask_scores(Scope& scope, const ipc::VectorParams& params) {
  ipc::ClassifyResult result = ipc::classify_result_from_json(ask(scope, ipc::kClassify, params));
  note_tokens(scope, result.num_tokens);
  return result;
}

OrderedJson numbers_json(const std::string& base64) {
  return array_of(ipc::floats_of_base64(base64));
}

Response embed(Scope& scope, const EmbedBody& body) {
  const ipc::EmbedResult result = embed_body(scope, body);
  if (!is_single(body.inputs)) return vectors_response(result);
  return json_response(200, {{"embeddings", numbers_json(result.vectors.at(0))}});
}

Response embed_list(Scope& scope, const EmbedBody& body) {
  return vectors_response(embed_body(scope, body));
}

Response embed_all(Scope& scope, const EmbedAllBody& body) {
  ipc::VectorParams params = params_of_texts(scope, body);
  params.each_token = true;
  const ipc::EmbedResult result = ask_vectors(scope, params);
  OrderedJson out = OrderedJson::array();
  for (const std::string& vectors : result.vectors) {
    OrderedJson tokens = OrderedJson::array();
    const std::vector<float> values = ipc::floats_of_base64(vectors);
    const auto width = static_cast<size_t>(std::max<int64_t>(result.dimensions, 1));
    for (size_t begin = 0; begin + width <= values.size(); begin += width) {
      tokens.push_back(array_of(std::span(values).subspan(begin, width)));
    }
    out.push_back(std::move(tokens));
  }
  return json_response(200, out);
}

Response embeddings(Scope& scope, const EmbeddingsBody& body) {
  scope.set_terms(kOpenAiTerms);
  scope.begin_generation(1);
  const std::string format = body.encoding_format.value_or("float");
  require(format == "float" || format == "base64",
          "`encoding_format` must be float or base64. Given: {}", format);
  ipc::VectorParams params;
  params.inputs = texts_of(body.input, "input");
  check_count(params.inputs);
  params.truncate = body.truncate;
  params.dimensions = body.dimensions;
  choose(scope, body, params);
  const ipc::EmbedResult result = ask_vectors(scope, params);
  OrderedJson data = OrderedJson::array();
  for (size_t i = 0; i < result.vectors.size(); ++i) {
    OrderedJson vector =
        format == "base64" ? OrderedJson(result.vectors[i]) : numbers_json(result.vectors[i]);
    data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(vector)}});
  }
  const int64_t num_tokens = scope.record().num_prompt_tokens.value_or(0);
  return json_response(200,
                       {{"object", "list"},
                        {"data", std::move(data)},
                        {"model", body.model.value_or(scope.options().model_id)},
                        {"usage", {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}}});
}

Response classify(Scope& scope, const ClassifyBody& body) {
  scope.begin_generation(1);
  ipc::VectorParams params = to_params(scope, body);
  params.inputs = pairs_of(body.inputs, "inputs");
  require(params.inputs.size() == 1, "`inputs` must be one text; /classify_batch takes several");
  const ipc::ClassifyResult result = ask_scores(scope, params);
  return json_response(200, scores_json(result, result.texts.at(0)));
}

Response classify_batch(Scope& scope, const ClassifyBody& body) {
  scope.begin_generation(1);
  ipc::VectorParams params = to_params(scope, body);
  params.inputs = texts_of(body.inputs, "inputs");
  check_count(params.inputs);
  return json_response(200, all_scores_json(ask_scores(scope, params)));
}

Response predict(Scope& scope, const ClassifyBody& body) {
  scope.begin_generation(1);
  ipc::VectorParams params = to_params(scope, body);
  params.inputs = pairs_of(body.inputs, "inputs");
  const ipc::ClassifyResult result = ask_scores(scope, params);
  const bool is_list = is_list_of_pairs(body.inputs);
  return json_response(200,
                       is_list ? all_scores_json(result) : scores_json(result, result.texts.at(0)));
}

Response similarity(Scope& scope, const SimilarityBody& body) {
  scope.begin_generation(1);
  const SimilarityParameters parameters = body.parameters.value_or(SimilarityParameters());
  ipc::VectorParams params;
  params.inputs.push_back({.text = body.inputs.source_sentence});
  for (const std::string& text : body.inputs.sentences) params.inputs.push_back({.text = text});
  require(!body.inputs.sentences.empty(), "`inputs.sentences` cannot be empty");
  check_count(params.inputs);
  params.truncate = parameters.truncate;
  params.truncation_side = truncation_side(parameters.truncation_direction);
  params.prompt_name = parameters.prompt_name;
  const ipc::EmbedResult result = ask_vectors(scope, params);
  const std::vector<float> source = ipc::floats_of_base64(result.vectors.at(0));
  OrderedJson out = OrderedJson::array();
  for (size_t i = 1; i < result.vectors.size(); ++i) {
    out.push_back(cosine(source, ipc::floats_of_base64(result.vectors[i])));
  }
  return json_response(200, out);
}

bool gives_vectors(const Scope& scope) {
  return scope.options().pipeline_tag != ApiOptions().pipeline_tag;
}

Response answer_by_task(Scope& scope, const OrderedJson& body) {
  const auto has = [](const OrderedJson& json, const char* name) {
    return json.is_object() && json.contains(name);
  };
  if (has(body, "inputs") && has(body.at("inputs"), "source_sentence")) {
    return similarity(scope, read_body<SimilarityBody>(body));
  }
  if (has(body, "query")) return rerank(scope, read_body<RerankBody>(body));
  const bool embeds = scope.options().pipeline_tag == "feature-extraction";
  if (embeds) return embed_list(scope, read_body<EmbedBody>(body));
  return predict(scope, read_body<ClassifyBody>(body));
}

Response startup(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  try {
    const ipc::Client client(scope->service().daemon);
    const ipc::Status status = client.status();
    if (!status.model) throw Error(Code::kOverloaded, "no model is loaded yet");
    if (status.model->task == "generate") {
      ipc::GenerateRequest request;
      request.prompt = "a";
      request.params.max_new_tokens = 1;
      (void)client.generate(request, [](const ipc::TokenEvent&) {});
    } else {
      const bool embeds = status.model->task == "embed";
      ipc::TextInput input{.text = "a"};
      // Every model of the task takes a pair; a reranker's chat template may write nothing else.
      if (status.model->task == "classify") input.pair = "a";
      (void)client.call(embeds ? ipc::kEmbed : ipc::kClassify,
                        ipc::to_json(ipc::VectorParams{.inputs = {input}}));
    }
    return {.status = 200};
  } catch (const Error& error) {
    return native_error(ApiError(500, "startup", error.what()));
  }
}

}  // namespace tgi::http
