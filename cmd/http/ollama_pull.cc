// ollama's pull: of what is served already nothing is to be done, others are downloaded where the
// server allows it.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/error.h"
#include "cmd/http/model_choice.h"
#include "cmd/http/ollama_api.h"

namespace tgi::http {
namespace {

const OrderedJson kSuccess = {{"status", "success"}};

// ORG/NAME may be an adapter that the first request brings: to be pulled it means a model.
bool is_served(Scope& scope, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    const auto served = models_now(scope.service());
    return std::ranges::any_of(*served, [&](const auto& each) {
      return each->model_id == name || each->model_id + ":latest" == name;
    });
  }
  try {
    ipc::GenerateRequest request;
    choose_ollama_model(scope, name, request);
    return true;
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
    return false;
  }
}

bool has_left(int peer_fd) {
  pollfd peer{.fd = peer_fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&peer, 1, 0) > 0;
}

// Throws ApiError and ClientGone.
void pull(Scope& scope, const std::string& name, const PullProgress& tell) {
  bool is_wanted = true;
  try {
    scope.service().pull(name, scope.peer_fd(), [&](int64_t done, int64_t total) {
      is_wanted = is_wanted && tell(done, total);
      return is_wanted;
    });
  } catch (const Error& error) {
    if (!is_wanted || has_left(scope.peer_fd())) throw ClientGone();
    if (error.code() == Code::kNotFound) throw ApiError(404, "model_not_found", error.what());
    if (error.code() != Code::kCancelled) throw daemon_error(error, false);
    throw ApiError(503, "shutting_down",
                   "the server is shutting down; asked for again, the download goes on where it "
                   "ended");
  }
  if (scope.service().look_again) scope.service().look_again();
}

// A line each time something is known, as ollama's clients draw their bars by them.
Response streamed_pull(std::shared_ptr<Scope> scope, const std::string& name) {
  Response response{.status = 200, .content_type = std::string(kJsonLines.content_type)};
  response.stream = [scope, name](BodyWriter& body) {
    EventWriter lines(body, kJsonLines);
    const auto tell = [&](int64_t done, int64_t total) {
      try {
        lines.send({{"status", fmt::format("pulling {}", name)},
                    {"digest", name},
                    {"total", total},
                    {"completed", done}});
        return true;
      } catch (const ClientGone&) {
        return false;
      }
    };
    return run_stream(
        *scope,
        [&] {
          lines.send({{"status", "pulling manifest"}});
          pull(*scope, name, tell);
          lines.send(kSuccess);
        },
        [&](const ApiError& error) {
          lines.send({{"error", error.what()}});
        });
  };
  return response;
}

}  // namespace

Response ollama_pull(std::shared_ptr<Scope> scope, const OllamaModelBody& body) {
  const std::string name = ollama_name(body);
  const bool streams = body.stream.value_or(true);
  if (is_served(*scope, name)) {
    if (!streams) return json_response(200, kSuccess);
    return {.status = 200,
            .content_type = std::string(kJsonLines.content_type),
            .body = fmt::format("{}\n{}\n", dump_json({{"status", "pulling manifest"}}),
                                dump_json(kSuccess))};
  }
  if (!scope->service().pull) {
    throw ApiError(501, "unsupported",
                   fmt::format("model '{}' not found, and this server pulls no others "
                               "(--allow-pull): `tgi load MODEL --name NAME` loads another one, "
                               "`tgi pull MODEL` only brings its files",
                               name.substr(0, 200)));
  }
  if (streams) return streamed_pull(std::move(scope), name);
  pull(*scope, name, [&](int64_t, int64_t) { return true; });
  return json_response(200, kSuccess);
}

}  // namespace tgi::http
