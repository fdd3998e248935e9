#include "cmd/http/ranking_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cmd/http/generation.h"
#include "cmd/http/vectors_api.h"

namespace tgi::http {
namespace {

struct Ranked {
  size_t index;
  double score;
};

// One score of each pair. REQUIRES: inputs.
std::vector<double> score_pairs(Scope& scope, const ipc::VectorParams& params) {
  const ipc::ClassifyResult result = ask_scores(scope, params);
  require(result.labels.size() == 1,
          "the model gives {} scores for a pair of texts, and ranking takes one: load a reranker",
          result.labels.size());
  std::vector<double> out;
  for (const ipc::TextScores& text : result.texts) {
    require(text.scores.size() == 1, "the model finds entities and does not rank: load a reranker");
    out.push_back(text.scores.front());
  }
  return out;
}

// The best first; of equals the first. `params`: without the texts.
std::vector<Ranked> rank(Scope& scope,
                         const std::string& query,
                         const std::vector<std::string>& texts,
                         ipc::VectorParams params) {
  for (const std::string& text : texts) params.inputs.push_back({.text = query, .pair = text});
  check_count(params.inputs);
  std::vector<Ranked> out;
  for (const double score : score_pairs(scope, params)) {
    out.push_back({.index = out.size(), .score = score});
  }
  std::ranges::stable_sort(out, [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  return out;
}

// What routes call the texts that our messages call inputs.
constexpr Term kTextTerms[] = {{"`inputs`", "`texts`"}};
constexpr Term kDocumentTerms[] = {{"`inputs`", "`documents`"}};
constexpr Term kScoreTerms[] = {{"`inputs`", "`text_2`"},
                                {"`truncate`", "`truncate_prompt_tokens`"}};

std::string document_text(const OrderedJson& document, const std::string& path) {
  if (document.is_string()) return document.get<std::string>();
  const bool has_text = document.is_object() && document.size() == 1 && document.contains("text") &&
                        document.at("text").is_string();
  if (!has_text) fail_body_type(path, "a text, or an object with the member text", document);
  return document.at("text").get<std::string>();
}

// A text, or a list of them.
std::vector<std::string> list_of_texts(const OrderedJson& value, const std::string& path) {
  if (value.is_string()) return {value.get<std::string>()};
  std::vector<std::string> out;
  read_body_value(value, path, out);
  return out;
}

}  // namespace

Response rerank(Scope& scope, const RerankBody& body) {
  scope.set_terms(kTextTerms);
  scope.begin_generation(1);
  const std::vector<Ranked> ranked =
      rank(scope, body.query, body.texts,
           {.inputs = {},
            .truncate = body.truncate,
            .truncation_side = truncation_side(body.truncation_direction),
            .raw_scores = body.raw_scores});
  OrderedJson out = OrderedJson::array();
  for (const Ranked& one : ranked) {
    OrderedJson row = {{"index", one.index}, {"score", one.score}};
    if (body.return_text) row["text"] = body.texts[one.index];
    out.push_back(std::move(row));
  }
  return json_response(200, out);
}

Response rerank_documents(Scope& scope, const DocumentsBody& body) {
  scope.set_terms(kDocumentTerms);
  scope.begin_generation(1);
  require(body.top_n.value_or(1) > 0, "`top_n` must be > 0. Given: {}", body.top_n.value_or(1));
  const int64_t max_tokens = scope.options().max_input_tokens;
  require(body.max_tokens_per_doc.value_or(max_tokens) >= max_tokens,
          "`max_tokens_per_doc` must be >= {}, where a query and a document are cut: they are not "
          "cut before. Given: {}",
          max_tokens, body.max_tokens_per_doc.value_or(0));
  if (!body.documents.is_array()) fail_body_type("documents", "a list of texts", body.documents);
  std::vector<std::string> texts;
  for (size_t i = 0; i < body.documents.size(); ++i) {
    texts.push_back(document_text(body.documents[i], fmt::format("documents[{}]", i)));
  }
  std::vector<Ranked> ranked = rank(scope, body.query, texts, {.inputs = {}, .truncate = true});
  const size_t count = std::min<size_t>(
      ranked.size(), static_cast<size_t>(body.top_n.value_or(static_cast<int64_t>(ranked.size()))));
  ranked.resize(count);
  OrderedJson results = OrderedJson::array();
  for (const Ranked& one : ranked) {
    OrderedJson row = {{"index", one.index}, {"relevance_score", one.score}};
    if (body.return_documents) row["document"] = {{"text", texts[one.index]}};
    results.push_back(std::move(row));
  }
  return json_response(
      200, {{"model", body.model.value_or(scope.options().model_id)},
            {"results", std::move(results)},
            {"usage", {{"total_tokens", scope.record().num_prompt_tokens.value_or(0)}}}});
}

Response score(Scope& scope, const ScoreBody& body) {
  scope.set_terms(kScoreTerms);
  scope.begin_generation(1);
  const std::vector<std::string> first = list_of_texts(body.text_1, "text_1");
  const std::vector<std::string> second = list_of_texts(body.text_2, "text_2");
  require(first.size() == 1 || first.size() == second.size(),
          "`text_1` must be one text, or as many as `text_2` has. Given: {} and {}", first.size(),
          second.size());
  require(body.truncate_prompt_tokens.value_or(-1) == -1,
          "`truncate_prompt_tokens` must be -1: texts are cut at the model's own length. Given: {}",
          body.truncate_prompt_tokens.value_or(0));
  ipc::VectorParams params;
  params.truncate = body.truncate_prompt_tokens.has_value();
  params.raw_scores = !body.use_activation;
  for (size_t i = 0; i < second.size(); ++i) {
    params.inputs.push_back({.text = first[first.size() == 1 ? 0 : i], .pair = second[i]});
  }
  check_count(params.inputs);
  OrderedJson data = OrderedJson::array();
  for (const double each : score_pairs(scope, params)) {
    data.push_back({{"index", data.size()}, {"object", "score"}, {"score", each}});
  }
  const int64_t num_tokens = scope.record().num_prompt_tokens.value_or(0);
  return json_response(200,
                       {{"object", "list"},
                        {"model", body.model.value_or(scope.options().model_id)},
                        {"data", std::move(data)},
                        {"usage", {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}}});
}

}  // namespace tgi::http
