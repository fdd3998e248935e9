// What stands between the connections and the handlers: routing, the API key, CORS, and one log
// line, count and trace per request. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/http/http_server.h"
#include "cmd/http/routes.h"
#include "cmd/http/service.h"

namespace tgi::http {

struct GatewayOptions {
  std::optional<std::string> api_key;
  std::vector<std::string> cors_allow_origin;  // empty: any
  // Paths under which a route of the table answers too, before any other that has the path.
  std::vector<std::pair<std::string, std::string>> aliases{};
};

class Gateway final : public RequestHandler {
 public:
  // `service` must outlive it.
  Gateway(GatewayOptions options, Service& service);

  std::optional<Response> on_headers(const Request& request) override;
  Response on_request(const Request& request) override;
  Response on_refused(const Request& request, int status, const std::string& reason) override;

 private:
  const Route* find(const Request& request) const;
  std::shared_ptr<Scope> make_scope(const Request& request, std::string_view route) const;
  bool has_key(const Request& request) const;
  Response answer(const Route& route, const Request& request) const;
  Response finish(std::shared_ptr<Scope> scope, const Request& request, Response response) const;
  std::optional<std::string> allowed_origin(const Request& request) const;
  Response preflight(const Request& request) const;

  const GatewayOptions options_;
  Service& service_;
};

// Compares without telling by its time where two texts differ.
bool same_secret(std::string_view given, std::string_view wanted);

}  // namespace tgi::http
