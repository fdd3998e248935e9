#include "cmd/http/gateway.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/ascii.h"
#include "cmd/http/generation.h"
#include "cmd/http/info_api.h"
#include "cmd/http/model_choice.h"

namespace tgi::http {
namespace {

constexpr int kClientGoneStatus = 499;

// Whether it has the segments of `pattern`, of which one in braces stands for any.
bool has_segments(std::string_view path, std::string_view pattern) {
  while (!pattern.empty() && !path.empty()) {
    const auto first_of = [](std::string_view& rest) {
      const size_t end = std::min(rest.find('/', 1), rest.size());
      const std::string_view first = rest.substr(0, end);
      rest.remove_prefix(end);
      return first;
    };
    const std::string_view wanted = first_of(pattern);
    const std::string_view given = first_of(path);
    if (wanted.starts_with("/{") ? given.size() < 2 : given != wanted) return false;
  }
  return pattern.empty() && path.empty();
}

bool matches(const Route& route, std::string_view path) {
  if (route.path.ends_with("/*")) {
    return path.starts_with(route.path.substr(0, route.path.size() - 1)) &&
           path.size() >= route.path.size();
  }
  return has_segments(path, route.path);
}

bool same_method(const Route& route, const Request& request) {
  return route.method == request.method || (route.method == "GET" && request.method == "HEAD");
}

// How many characters have to be put in, taken out or exchanged (Levenshtein).
size_t num_edits(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < to.size(); ++k) {
      const size_t exchanged = diagonal + (from[i] == to[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({exchanged, row[k] + 1, row[k + 1] + 1});
    }
  }
  return row.back();
}

// The paths of routes that were probably meant: /v1 too often or left out, or mistyped.
std::vector<std::string_view> near_routes(std::string_view path) {
  constexpr size_t kMost = 5;
  constexpr size_t kLongest = 100;  // of what is compared
  std::vector<std::pair<size_t, std::string_view>> found;
  if (path.size() == 1 || path.size() > kLongest) return {};
  for (const Route& route : route_table()) {
    if (route.path.size() == 1) continue;
    const bool is_part = path.ends_with(route.path) || route.path.ends_with(path);
    const size_t edits = num_edits(path, route.path);
    const size_t few = std::max(path.size(), route.path.size()) / 4;
    if (is_part || edits <= few) found.emplace_back(edits, route.path);
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second.size() > b.second.size();
  });
  std::vector<std::string_view> out;
  for (const auto& [edits, near] : found) {
    // Of /v1/chat/completions the end is a route too, which is not meant.
    const bool is_told =
        std::ranges::any_of(out, [&](std::string_view other) { return other.ends_with(near); });
    if (out.size() < kMost && !is_told) out.push_back(near);
  }
  return out;
}

// Clients read errors of the shape of their API alone, also where it has no such route.
const ErrorShape& errors_of_path(std::string_view path) {
  for (const Route& route : route_table()) {
    if (matches(route, path)) return *route.errors;
  }
  // Of the route that begins with the most of the same parts.
  const auto num_common = [&](std::string_view of) {
    size_t count = 0;
    for (size_t at = 0; at < path.size() && at < of.size(); ++count) {
      const size_t end = std::min(path.find('/', at + 1), path.size());
      if (of.substr(at, of.find('/', at + 1) - at) != path.substr(at, end - at)) break;
      at = end;
    }
    return count;
  };
  const auto nearest = std::ranges::max_element(
      route_table(), {}, [&](const Route& route) { return num_common(route.path); });
  return num_common(nearest->path) > 0 ? *nearest->errors : kNativeErrors;
}

// Anthropic's clients ask at routes of OpenAI's API too, and read errors of their own form alone.
const ErrorShape& errors_for(const Request& request, const ErrorShape& of_route) {
  return is_for_anthropic(request) ? kAnthropicErrors : of_route;
}

// 404 or 405, with what there is.
Response no_route(const Request& request) {
  std::string allowed;
  for (const Route& route : route_table()) {
    if (!matches(route, request.path)) continue;
    allowed += fmt::format("{}{}{}", allowed.empty() ? "" : ", ", route.method,
                           route.method == "GET" ? ", HEAD" : "");
  }
  const std::string asked = fmt::format("{} {}", request.method, request.path.substr(0, 200));
  const ErrorShape& errors = errors_for(request, errors_of_path(request.path));
  if (!allowed.empty()) {
    const ApiError error(405, "method_not_allowed",
                         fmt::format("{}: this route takes {}", asked, allowed));
    Response response = errors.tell(error);
    response.headers.push_back({"Allow", allowed});
    return response;
  }
  const std::vector<std::string_view> near = near_routes(request.path);
  const ApiError error(
      404, "not_found",
      fmt::format("there is no route {}{}; GET /docs tells of all", asked,
                  near.empty() ? "" : fmt::format(", did you mean {}?", fmt::join(near, " or "))));
  return errors.tell(error);
}

// An id that may be told back and logged as it is.
bool is_plain_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

// A list of header names as a browser sends it; what is no such list is not told back.
bool is_header_list(std::string_view names) {
  return names.size() <= 4096 && std::all_of(names.begin(), names.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

bool is_json(std::string_view content_type) {
  std::string kind = ascii_lower(content_type.substr(0, content_type.find(';')));
  while (kind.ends_with(' ')) kind.pop_back();
  return kind == "application/json" ||
         (kind.starts_with("application/") && kind.ends_with("+json"));
}

// The secret behind the scheme, which has no case (RFC 9110, section 11.1); "": it is another one.
std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (ascii_lower(authorization.substr(0, kScheme.size())) != kScheme) return {};
  authorization.remove_prefix(
      std::min(authorization.find_first_not_of(' ', kScheme.size()), authorization.size()));
  return authorization;
}

// Whether a browser sends it for a page: pages can't keep these headers off.
bool is_of_page(const Request& request) {
  return !request.header("origin").empty() || !request.header("referer").empty() ||
         !request.header("sec-fetch-site").empty();
}

bool takes_any_type(const Route& route, const Request& request) {
  return route.takes_any_type && !(route.pages_say_json && is_of_page(request));
}

}  // namespace

bool same_secret(std::string_view given, std::string_view wanted) {
  size_t difference = given.size() ^ wanted.size();
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = wanted.empty() ? '\0' : wanted[i % wanted.size()];
    difference |= static_cast<size_t>(static_cast<unsigned char>(given[i] ^ other));
  }
  return difference == 0;
}

Gateway::Gateway(GatewayOptions options, Service& service)
    : options_(std::move(options)), service_(service) {}

const Route* Gateway::find(const Request& request) const {
  for (const auto& [path, to] : options_.aliases) {
    if (path != request.path) continue;
    for (const Route& route : route_table()) {
      if (route.path == to && same_method(route, request)) return &route;
    }
  }
  for (const Route& route : route_table()) {
    if (matches(route, request.path) && same_method(route, request)) return &route;
  }
  return nullptr;
}

std::shared_ptr<Scope> Gateway::make_scope(const Request& request, std::string_view route) const {
  auto scope = std::make_shared<Scope>(service_, request, std::string(route));
  if (const auto id = request.header("x-request-id"); is_plain_id(id)) {
    scope->record().request_id = id;
  }
  return scope;
}

bool Gateway::has_key(const Request& request) const {
  return !options_.api_key ||
         same_secret(bearer_of(request.header("authorization")), *options_.api_key) ||
         same_secret(request.header("x-api-key"), *options_.api_key);  // as Anthropic's clients
}

std::optional<std::string> Gateway::allowed_origin(const Request& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return std::nullopt;
  if (options_.cors_allow_origin.empty()) return "*";
  const auto& allowed = options_.cors_allow_origin;
  if (std::find(allowed.begin(), allowed.end(), "*") != allowed.end()) return "*";
  if (std::find(allowed.begin(), allowed.end(), origin) == allowed.end()) return std::nullopt;
  return std::string(origin);
}

Response Gateway::preflight(const Request& request) const {
  Response response{.status = 200};
  if (!allowed_origin(request)) return response;
  const std::string_view asked = request.header("access-control-request-headers");
  response.headers.push_back({"Access-Control-Allow-Methods", "GET, POST, DELETE"});
  response.headers.push_back(
      {"Access-Control-Allow-Headers", !asked.empty() && is_header_list(asked)
                                           ? std::string(asked)
                                           : "authorization, content-type, x-api-key"});
  response.headers.push_back({"Access-Control-Max-Age", "600"});
  return response;
}

Response Gateway::finish(std::shared_ptr<Scope> scope,
                         const Request& request,
                         Response response) const {
  response.headers.push_back({"x-request-id", scope->record().request_id});
  if (const auto origin = allowed_origin(request)) {
    response.headers.push_back({"Access-Control-Allow-Origin", *origin});
    response.headers.push_back({"Access-Control-Expose-Headers", "*"});
  }
  if (!options_.cors_allow_origin.empty()) response.headers.push_back({"Vary", "Origin"});
  response.on_end = [scope, status = response.status](bool was_sent) {
    scope->end(status, was_sent);
  };
  return response;
}

std::optional<Response> Gateway::on_headers(const Request& request) {
  const Route* const route = find(request);
  if (route == nullptr) {
    auto scope = make_scope(request, "");
    if (request.method == "OPTIONS") return finish(scope, request, preflight(request));
    Response response = no_route(request);
    scope->record().error_type = response.status == 404 ? "not_found" : "method_not_allowed";
    return finish(scope, request, std::move(response));
  }
  if (route->needs_key && !has_key(request)) {
    auto scope = make_scope(request, route->path);
    const ApiError error(401, std::string(kUnauthorized), "the API key is wrong or missing",
                         "invalid_api_key");
    scope->record().error_type = error.type();
    Response response = errors_for(request, *route->errors).tell(error);
    response.headers.push_back({"WWW-Authenticate", "Bearer"});
    return finish(scope, request, std::move(response));
  }
  const bool wants_json_type = !route->request_schema.empty() && !takes_any_type(*route, request);
  if (wants_json_type && !is_json(request.header("content-type"))) {
    return on_refused(request, 415, "Expected request with `Content-Type: application/json`");
  }
  return std::nullopt;
}

Response Gateway::answer(const Route& route, const Request& request) const {
  auto scope = make_scope(request, route.path);
  const auto refuse = [&](const ApiError& error) {
    scope->failed(error);
    return errors_for(request, *route.errors).tell(in_terms(error, scope->terms()));
  };
  Response response;
  try {
    std::optional<std::string> model;
    if (!route.request_schema.empty()) model = model_of_body(request.body);
    if (model) {
      choose_served_model(*scope, *model);
    } else if (const auto queried = request.query_value("model")) {
      choose_queried_model(*scope, *queried);
    }
    response = route.handle(scope, request);
  } catch (const ApiError& error) {
    response = refuse(error);
  } catch (const ClientGone&) {
    scope->client_left();
    response.status = kClientGoneStatus;
  } catch (const std::exception& error) {
    response = refuse(ApiError(500, "internal", std::string("internal error: ") + error.what()));
  }
  if (!response.stream) scope->give_back_permits();
  return finish(scope, request, std::move(response));
}

Response Gateway::on_request(const Request& request) {
  return answer(*find(request), request);
}

Response Gateway::on_refused(const Request& request, int status, const std::string& reason) {
  if (request.method.empty()) {
    return status == 429 ? native_error(overloaded_error()) : plain_text(status, reason);
  }
  const Route* const route = find(request);
  auto scope = make_scope(request, route == nullptr ? "" : route->path);
  const BodyError error(status, reason);
  scope->record().error_type = error.type();
  const ErrorShape& of_route = route == nullptr ? kNativeErrors : *route->errors;
  return finish(scope, request, errors_for(request, of_route).tell(error));
}

}  // namespace tgi::http
