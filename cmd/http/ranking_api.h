// The routes that say how well texts fit: those of text-embeddings-inference, Cohere and vLLM.
#pragma once

#include "cmd/http/service.h"
#include "cmd/http/vectors_body.h"

namespace tgi::http {

// The best first. Texts of /rerank, documents of /v1/rerank.
Response rerank(Scope& scope, const RerankBody& body);
Response rerank_documents(Scope& scope, const DocumentsBody& body);

// vLLM's: a score of each pair, in order.
Response score(Scope& scope, const ScoreBody& body);

}  // namespace tgi::http
