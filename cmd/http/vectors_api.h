// The routes whose answer is vectors or scores, and /startup.
#pragma once

#include <memory>

#include "cmd/http/service.h"
#include "cmd/http/vectors_body.h"

namespace tgi::http {

// One text: LoRAX's {"embeddings": [...]}; a list: text-embeddings-inference's list of vectors.
Response embed(Scope& scope, const EmbedBody& body);
Response embeddings(Scope& scope, const EmbeddingsBody& body);

// Of a model that classifies tokens its entities, of one that classifies texts all labels with
// their scores, the best first.
Response classify(Scope& scope, const ClassifyBody& body);
Response classify_batch(Scope& scope, const ClassifyBody& body);
Response predict(Scope& scope, const ClassifyBody& body);

Response rerank(Scope& scope, const RerankBody& body);
Response rerank_documents(Scope& scope, const DocumentsBody& body);

// Whether the model really answers: a small request of the kind it is made for.
Response startup(std::shared_ptr<Scope> scope, const Request& request);

}  // namespace tgi::http
