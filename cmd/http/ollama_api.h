// ollama's API (github.com/ollama/ollama, its page of the API): its routes below /api, answered by
// the model that is served. Streams are lines of JSON; an error is {"error": text}.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/ollama_body.h"
#include "cmd/http/routes.h"
#include "cmd/http/service.h"
#include "cmd/http/sse.h"

namespace tgi::http {

std::span<const Route> ollama_routes();
void add_ollama_schemas(OrderedJson& schemas);

// {"error": text}; what other APIs call 422 is a 400.
OrderedJson ollama_error_json(const ApiError& error);
Response ollama_error(const ApiError& error);
int ollama_status(int ours);
inline constexpr ErrorShape kOllamaErrors{ollama_error, "OllamaError", false, ollama_status};

inline constexpr StreamFraming kJsonLines = {
    .content_type = "application/x-ndjson", .before = "", .after = "\n", .keep_alive = ""};

// Throw ApiError and ClientGone.
Response ollama_chat(std::shared_ptr<Scope> scope, const OllamaChatBody& body);
Response ollama_generate(std::shared_ptr<Scope> scope, const OllamaGenerateBody& body);
Response ollama_embed(std::shared_ptr<Scope> scope, const OllamaEmbedBody& body);
Response ollama_embeddings(std::shared_ptr<Scope> scope, const OllamaEmbeddingsBody& body);
Response ollama_show(std::shared_ptr<Scope> scope, const OllamaModelBody& body);
Response ollama_create(std::shared_ptr<Scope> scope, const OllamaCreateBody& body);
Response ollama_delete(std::shared_ptr<Scope> scope, const OllamaModelBody& body);
Response ollama_pull(std::shared_ptr<Scope> scope, const OllamaModelBody& body);
Response ollama_tags(std::shared_ptr<Scope> scope, const Request& request);
Response ollama_ps(std::shared_ptr<Scope> scope, const Request& request);
Response ollama_version(std::shared_ptr<Scope> scope, const Request& request);

struct ServedStatus {
  std::string model_id;
  int64_t max_total_tokens = 0;
  ipc::ModelStatus model;     // of one that was never loaded its name and nothing else
  double uptime_seconds = 0;  // of the daemon
  bool is_loaded = true;
  ipc::ModelStay stay{};
};

// Of all models, the default one's first.
std::vector<ServedStatus> ask_served(Scope& scope);

// Sets the adapter that the name means, where it means one. Throws ollama's 404 for a name that is
// nobody's.
void choose_ollama_model(Scope& scope, const std::string& name, ipc::GenerateRequest& request);

// Now, as ollama writes times: "2024-03-01T12:00:00.123456789Z".
std::string ollama_time(std::chrono::system_clock::time_point time);

}  // namespace tgi::http
