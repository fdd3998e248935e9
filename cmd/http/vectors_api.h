// The routes whose answer is vectors or scores, and /startup.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/http/service.h"
#include "cmd/http/vectors_body.h"

namespace tgi::http {

// One text: LoRAX's {"embeddings": [...]}; a list: text-embeddings-inference's list of vectors.
Response embed(Scope& scope, const EmbedBody& body);
// That list of one text, too.
Response embed_list(Scope& scope, const EmbedBody& body);
// text-embeddings-inference's: of each text the vectors of its tokens, which are not pooled.
Response embed_all(Scope& scope, const EmbedAllBody& body);
Response embeddings(Scope& scope, const EmbeddingsBody& body);

// Of a model that classifies tokens its entities, of one that classifies texts all labels with
// their scores, the best first.
Response classify(Scope& scope, const ClassifyBody& body);
Response classify_batch(Scope& scope, const ClassifyBody& body);
Response predict(Scope& scope, const ClassifyBody& body);

// text-embeddings-inference's: the cosine of a text's vector and each other's.
Response similarity(Scope& scope, const SimilarityBody& body);

// Whether the model answers with something else than text.
bool gives_vectors(const Scope& scope);
// The one address of servers that have one model: the body of /similarity, /rerank, /embed or
// /predict, by its members and by what the model does. REQUIRES: gives_vectors.
Response answer_by_task(Scope& scope, const OrderedJson& body);

// The vectors, or the scores, of the texts, whose tokens are noted in the scope's record; the
// client may leave meanwhile. Throw ApiError and ClientGone.
void check_count(const std::vector<ipc::TextInput>& inputs);
ipc::EmbedResult ask_vectors(Scope& scope, const ipc::VectorParams& params);
ipc::ClassifyResult ask_scores(Scope& scope, const ipc::VectorParams& params);
// A vector of the result as an array, with as few digits as tell each number from its neighbours.
OrderedJson numbers_json(const std::string& base64);

// Whether the model really answers: a small request of the kind it is made for.
Response startup(std::shared_ptr<Scope> scope, const Request& request);

}  // namespace tgi::http
