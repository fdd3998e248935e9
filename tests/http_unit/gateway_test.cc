// Routes, keys, origins, and the document: what stands between a connection and a handler.
#include "cmd/http/gateway.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <set>

#include "cmd/http/descriptor_budget.h"
#include "cmd/http/responses_body.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

struct Served {
  explicit Served(GatewayOptions options = {}) : gateway(std::move(options), service) {}

  Metrics metrics{{.max_input_tokens = 31, .max_total_tokens = 32, .trace_counts = {}}};
  RequestLog log{{.json = true, .level = LogLevel::kOff}};
  Service service{.options = ApiOptions{.model_id = "acme/model", .compute_type = "cpu"},
                  .daemon = {.socket_path = "/nowhere/at/all"},
                  .permits = Permits(8),
                  .metrics = metrics,
                  .log = log};
  Gateway gateway;
};

Request request_of(std::string method, std::string path, std::vector<Header> headers = {}) {
  Request request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.headers = std::move(headers);
  request.arrived_at = std::chrono::steady_clock::now();
  request.arrived_at_system = std::chrono::system_clock::now();
  return request;
}

std::string header_of(const Response& response, std::string_view name) {
  Request as_request;
  as_request.headers = response.headers;
  return std::string(as_request.header(name));
}

const Header kJson{"Content-Type", "application/json"};

}  // namespace

TEST_CASE("a secret is the same only when it is the same") {
  CHECK(same_secret("", ""));
  CHECK(same_secret("Bearer key", "Bearer key"));
  for (const std::string_view other :
       {"", "Bearer ke", "Bearer keyy", "bearer key", "Bearer kez", "Bearer keyBearer key"}) {
    INFO(other);
    CHECK_FALSE(same_secret(other, "Bearer key"));
  }
  CHECK_FALSE(same_secret(std::string_view("Bearer key\0", 11), "Bearer key"));
  CHECK_FALSE(same_secret("x", ""));
  CHECK_FALSE(same_secret("", "x"));
  CHECK_FALSE(same_secret("aaaa", "aa"));
  CHECK_FALSE(same_secret("\xFF", "\x7F"));
}

TEST_CASE("what has no route is 404, a wrong method 405 and says which are right") {
  Served served;
  const auto missing = served.gateway.on_headers(request_of("GET", "/nope"));
  REQUIRE(missing);
  CHECK(missing->status == 404);
  const auto problem = ipc::OrderedJson::parse(missing->body);
  CHECK(problem["error_type"] == "not_found");
  const auto text = problem["error"].get<std::string>();
  CHECK(text == "there is no route GET /nope; GET /docs tells of all");
  const auto wrong = served.gateway.on_headers(request_of("GET", "/generate"));
  REQUIRE(wrong);
  CHECK(wrong->status == 405);
  CHECK(header_of(*wrong, "allow") == "POST");
  CHECK(ipc::OrderedJson::parse(wrong->body)["error"] == "GET /generate: this route takes POST");
  CHECK(header_of(*served.gateway.on_headers(request_of("PUT", "/")), "allow") ==
        "POST, GET, HEAD");
  CHECK_FALSE(served.gateway.on_headers(request_of("HEAD", "/health")));
  CHECK_FALSE(served.gateway.on_headers(request_of("GET", "/v1/models/acme/model")));
  CHECK(served.gateway.on_headers(request_of("GET", "/v1/models/"))->status == 404);
}

TEST_CASE("a missing route is told in the shape of its neighbours, with those that look like it") {
  Served served;
  const auto message_to = [&](const std::string& path) {
    const auto answer = served.gateway.on_headers(request_of("POST", path));
    REQUIRE(answer);
    const auto json = ipc::OrderedJson::parse(answer->body);
    return json["error"].is_object() ? json["error"]["message"].get<std::string>()
                                     : json["error"].get<std::string>();
  };
  CHECK(message_to("/v1/v1/chat/completions").find("did you mean /v1/chat/completions?") !=
        std::string::npos);
  CHECK(message_to("/v1/chat/completion").find("did you mean /v1/chat/completions") !=
        std::string::npos);
  CHECK(message_to("/v1/zzzzzzzzzzzz").find("did you mean") == std::string::npos);
  CHECK(message_to("/api/chatt").find("did you mean /api/chat") != std::string::npos);
  CHECK(message_to("/genrate").find("did you mean /generate") != std::string::npos);
  CHECK(message_to("/chat").find("/api/chat") != std::string::npos);
  CHECK(message_to("/" + std::string(100'000, 'a')).find("did you mean") == std::string::npos);
  const auto json =
      ipc::OrderedJson::parse(served.gateway.on_headers(request_of("GET", "/v1/nope"))->body);
  CHECK(json["error"]["code"] == "not_found");
  CHECK(json["error"]["type"] == "invalid_request_error");
  const auto of_anthropic = ipc::OrderedJson::parse(
      served.gateway.on_headers(request_of("POST", "/v1/messages/batches"))->body);
  CHECK(of_anthropic["type"] == "error");
  CHECK(of_anthropic["error"]["type"] == "not_found_error");
}

TEST_CASE("a segment in braces stands for any one, and for no more") {
  Served served;
  const auto status_of = [&](const std::string& method, const std::string& path) {
    const auto answer = served.gateway.on_headers(request_of(method, path));
    return answer ? answer->status : 200;
  };
  CHECK(status_of("GET", "/v1/responses/resp_1") == 200);
  CHECK(status_of("DELETE", "/v1/responses/resp_1") == 200);
  CHECK(status_of("GET", "/v1/responses/resp_1/input_items") == 200);
  CHECK(status_of("POST", "/v1/responses/resp_1/cancel") == 200);
  CHECK(status_of("POST", "/v1/responses/resp_1") == 405);
  for (const char* path : {"/v1/responses/", "/v1/responses//input_items", "/v1/responses/a/b",
                           "/v1/responses/a/input_items/", "/v1/responses/a/input_items/b"}) {
    INFO(path);
    CHECK(status_of("GET", path) == 404);
  }
}

TEST_CASE("errors have the shape of the API whose route was asked") {
  Served served({.api_key = "secret", .cors_allow_origin = {}});
  const auto body_of = [&](const std::string& method, const std::string& path) {
    const auto answer = served.gateway.on_headers(request_of(method, path, {kJson}));
    REQUIRE(answer);
    return ipc::OrderedJson::parse(answer->body);
  };
  CHECK(body_of("POST", "/v1/messages")["error"]["type"] == "authentication_error");
  CHECK(body_of("POST", "/v1/messages")["type"] == "error");
  CHECK(body_of("GET", "/v1/messages")["error"]["type"] == "invalid_request_error");
  CHECK(body_of("POST", "/v1/responses")["error"]["code"] == "invalid_api_key");
  const ApiError rule(422, "validation", "a rule");
  CHECK(anthropic_error(rule).status == 400);
  CHECK(responses_error(rule).status == 400);
  CHECK(openai_error(rule).status == 422);
  const ApiError limit(422, "validation", "`min_new_tokens` must be at most `max_new_tokens`");
  CHECK(std::string_view(in_terms(limit, responses_terms()).what()) ==
        "`min_tokens` must be at most `max_output_tokens`");
  CHECK(std::string_view(in_terms(limit, chat_terms(ChatBody())).what()) ==
        "`min_tokens` must be at most `max_completion_tokens`");
  ChatBody older;
  older.max_tokens = 3;
  CHECK(std::string_view(in_terms(limit, chat_terms(older)).what()) ==
        "`min_tokens` must be at most `max_tokens`");
  CHECK(anthropic_error(ApiError(503, "overloaded", "no")).status == 529);
  CHECK(anthropic_error_json(ApiError(429, "overloaded", "no"))["error"]["type"] ==
        "rate_limit_error");
}

TEST_CASE("an error is put into the words of an API, and what the client named stays as it is") {
  constexpr std::array<Term, 3> kTerms = {{
      {"max_new_tokens", "max_tokens"},
      {".function.", "."},
      {"prompt_ids", "prompt"},
  }};
  const auto told = [&](const std::string& text) {
    return std::string(in_terms(validation_error(text), kTerms).what())
        .substr(std::string_view("Input validation error: ").size());
  };
  CHECK(told("`max_new_tokens` must be > 0") == "`max_tokens` must be > 0");
  CHECK(
      told(
          "tools[0].function.name: got \"a.function.b\", not \"max_new_tokens\", max_new_tokens") ==
      "tools[0].name: got \"a.function.b\", not \"max_new_tokens\", max_tokens");
  CHECK(told("max_new_tokens: schema #/properties/max_new_tokens: no max_new_tokens") ==
        "max_tokens: schema #/properties/max_new_tokens: no max_new_tokens");
  CHECK(told("my_max_new_tokens, max_new_tokens2 and max-prompt_ids") ==
        "my_max_new_tokens, max_new_tokens2 and max-prompt_ids");
  CHECK(told("prompt_ids.1: a quote that \"does not end, prompt_ids") ==
        "prompt.1: a quote that \"does not end, prompt_ids");
  CHECK(told("") == "");
  CHECK(told("\"") == "\"");
  const ApiError unknown(404, "model_not_found", "The model `max_new_tokens` does not exist");
  CHECK(std::string_view(in_terms(unknown, kTerms).what()) == unknown.what());
}

TEST_CASE("who names Anthropic's version is told errors in its form") {
  Served served;
  const Header version = {"anthropic-version", "2023-06-01"};
  const auto body_of = [&](const Request& request) {
    const auto early = served.gateway.on_headers(request);
    return ipc::OrderedJson::parse(early ? early->body : served.gateway.on_request(request).body);
  };
  for (const char* path : {"/v1/models/none", "/v1/no/such/route"}) {
    INFO(path);
    CHECK(body_of(request_of("GET", path, {version}))["type"] == "error");
    CHECK_FALSE(body_of(request_of("GET", path)).contains("type"));
  }
}

TEST_CASE("a body of /v1/rerank is told its errors as there, at /rerank too") {
  Served served;
  const auto error_of = [&](const std::string& path, const std::string& body) {
    Request request = request_of("POST", path, {kJson});
    request.body = body;
    const Response answer = served.gateway.on_request(request);
    CHECK(answer.status >= 400);
    return answer.body;
  };
  for (const char* body :
       {R"({"query": 1, "documents": ["b"]})", R"({"query": "a", "documents": []})",
        R"({"query": "a", "documents": ["b"]})"}) {
    INFO(body);
    CHECK(error_of("/rerank", body) == error_of("/v1/rerank", body));
  }
  const std::string of_texts = error_of("/rerank", R"({"query": "a", "texts": []})");
  CHECK(ipc::OrderedJson::parse(of_texts)["error"].is_string());
}

TEST_CASE("the key comes as a bearer's, or as Anthropic's clients send it") {
  Served served({.api_key = "secret", .cors_allow_origin = {}});
  const auto passes = [&](const char* name, const char* value) {
    return !served.gateway.on_headers(request_of("POST", "/v1/messages", {kJson, {name, value}}));
  };
  CHECK(passes("x-api-key", "secret"));
  for (const char* value : {"Bearer secret", "bearer secret", "BEARER secret", "Bearer  secret"}) {
    CHECK(passes("Authorization", value));
  }
  for (const char* value : {"Bearer", "Bearer ", "Bearer Secret", "Bearersecret", "Bearer secret x",
                            "Basic secret", "Bearer,secret"}) {
    CHECK_FALSE(passes("Authorization", value));
  }
  CHECK_FALSE(passes("x-api-key", "Bearer secret"));
  CHECK_FALSE(passes("x-api-key", ""));
  CHECK_FALSE(passes("Authorization", "secret"));
}

TEST_CASE("a route answers under another path too, before what the table has there") {
  Served served({.api_key = std::nullopt,
                 .cors_allow_origin = {},
                 .aliases = {{"/predict", "/vertex"}, {"/alive", "/health"}}});
  CHECK_FALSE(served.gateway.on_headers(request_of("GET", "/alive")));
  CHECK(served.gateway.on_headers(request_of("POST", "/alive", {kJson}))->status == 404);
  Request request = request_of("POST", "/predict", {kJson});
  request.body = R"({"instances": []})";
  const Response answer = served.gateway.on_request(request);
  CHECK(answer.status == 422);
  CHECK(answer.body.find("`instances` is empty") != std::string::npos);
}

TEST_CASE("each API tells its errors in its own shape") {
  Served served({.api_key = "secret", .cors_allow_origin = {}});
  const auto refused = [&](const std::string& path) {
    const auto answer = served.gateway.on_headers(request_of("POST", path));
    REQUIRE(answer);
    CHECK(answer->status == 401);
    return ipc::OrderedJson::parse(answer->body);
  };
  CHECK(refused("/api/chat") == ipc::OrderedJson{{"error", "the API key is wrong or missing"}});
  CHECK(refused("/completion")["error"]["type"] == "authentication_error");
  CHECK(refused("/v2/models/m/infer")["error_type"] == "unauthorized");
}

TEST_CASE("a key guards what generates, and nothing that only tells") {
  Served served({.api_key = "secret", .cors_allow_origin = {}});
  const auto status_of = [&](const std::string& method, const std::string& path,
                             const std::string& key) {
    std::vector<Header> headers = {kJson};
    if (!key.empty()) headers.push_back({"Authorization", key});
    const auto answer = served.gateway.on_headers(request_of(method, path, headers));
    return answer ? answer->status : 200;
  };
  for (const Route& route : route_table()) {
    INFO(route.method << " " << route.path);
    std::string path(route.path);
    if (path.ends_with("/*")) path.replace(path.size() - 1, 1, "x");
    CHECK(status_of(std::string(route.method), path, "") == (route.needs_key ? 401 : 200));
    CHECK(status_of(std::string(route.method), path, "Bearer secret") == 200);
    CHECK(status_of(std::string(route.method), path, "Bearer wrong") ==
          (route.needs_key ? 401 : 200));
  }
  const auto refused = served.gateway.on_headers(request_of("POST", "/v1/completions", {kJson}));
  CHECK(header_of(*refused, "www-authenticate") == "Bearer");
  CHECK(ipc::OrderedJson::parse(refused->body)["error"]["code"] == "invalid_api_key");
  CHECK(served.gateway.on_headers(request_of("POST", "/generate"))->body.empty());
}

TEST_CASE("a body must say that it is JSON") {
  Served served;
  const auto status_of = [&](const std::string& type) {
    const auto answer =
        served.gateway.on_headers(request_of("POST", "/generate", {{"Content-Type", type}}));
    return answer ? answer->status : 200;
  };
  for (const char* type : {"application/json", "application/json; charset=utf-8",
                           "Application/JSON ;x=y", "application/ld+json"}) {
    INFO(type);
    CHECK(status_of(type) == 200);
  }
  for (const char* type : {"", "text/plain", "application/jsonp", "multipart/form-data", "json",
                           "text/x+json", "application/x-www-form-urlencoded"}) {
    INFO(type);
    CHECK(status_of(type) == 415);
  }
}

TEST_CASE("what changes the server takes any type, but from a page") {
  Served served;
  const auto status_of = [&](const std::string& method, const std::string& path,
                             std::vector<Header> headers) {
    const auto answer = served.gateway.on_headers(request_of(method, path, std::move(headers)));
    return answer ? answer->status : 200;
  };
  for (const auto& [method, path] :
       {std::pair{"POST", "/api/pull"}, {"DELETE", "/api/delete"}, {"POST", "/api/create"}}) {
    CAPTURE(path);
    const Header form{"Content-Type", "application/x-www-form-urlencoded"};
    CHECK(status_of(method, path, {form}) == 200);
    CHECK(status_of(method, path, {}) == 200);
    for (const Header& page : {Header{"Origin", "http://a"}, Header{"Origin", "null"},
                               Header{"Referer", "http://a/"}, Header{"Sec-Fetch-Site", "none"}}) {
      CHECK(status_of(method, path, {form, page}) == 415);
      CHECK(status_of(method, path, {kJson, page}) == 200);
    }
  }
  CHECK(status_of("POST", "/api/chat", {{"Origin", "http://a"}}) == 200);
}

TEST_CASE("the document has the paths of KServe's protocol") {
  const ipc::OrderedJson paths = openapi_document().at("paths");
  const std::string model = "/v2/models/{name}";
  for (const std::string version : {"", "/versions/{version}"}) {
    CHECK(paths.at(model + version).contains("get"));
    CHECK(paths.at(model + version + "/ready").contains("get"));
    CHECK(paths.at(model + version + "/infer").contains("post"));
    CHECK_FALSE(paths.at(model + version).contains("post"));
    const ipc::OrderedJson& parameters =
        paths.at(model + version + "/infer").at("post").at("parameters");
    CHECK(parameters.size() == (version.empty() ? 1 : 2));
  }
}

TEST_CASE("origins are told what they may do, and only those that may") {
  Served any;
  const auto preflight = any.gateway.on_headers(
      request_of("OPTIONS", "/generate",
                 {{"Origin", "http://a"}, {"Access-Control-Request-Headers", "x-one, x-two"}}));
  REQUIRE(preflight);
  CHECK(preflight->status == 200);
  CHECK(header_of(*preflight, "access-control-allow-origin") == "*");
  CHECK(header_of(*preflight, "access-control-allow-headers") == "x-one, x-two");
  CHECK(header_of(*preflight, "access-control-allow-methods") == "GET, POST, DELETE");

  Served some({.api_key = std::nullopt, .cors_allow_origin = {"http://a"}});
  const auto allowed =
      some.gateway.on_headers(request_of("OPTIONS", "/", {{"Origin", "http://a"}}));
  CHECK(header_of(*allowed, "access-control-allow-origin") == "http://a");
  CHECK(header_of(*allowed, "vary") == "Origin");
  const auto other = some.gateway.on_headers(request_of("OPTIONS", "/", {{"Origin", "http://b"}}));
  CHECK(header_of(*other, "access-control-allow-origin").empty());
  CHECK(header_of(*other, "access-control-allow-methods").empty());
}

TEST_CASE("a header that would break into lines is not told back") {
  Served served;
  const auto answer = served.gateway.on_headers(
      request_of("OPTIONS", "/",
                 {{"Origin", "http://a"},
                  {"Access-Control-Request-Headers", "x\r\nSet-Cookie: a"},
                  {"X-Request-Id", "a\r\nb"}}));
  CHECK(header_of(*answer, "access-control-allow-headers") ==
        "authorization, content-type, x-api-key");
  CHECK(header_of(*answer, "x-request-id").find('\n') == std::string::npos);
  CHECK(header_of(*served.gateway.on_headers(request_of("GET", "/x", {{"X-Request-Id", "ab-1"}})),
                  "x-request-id") == "ab-1");
}

TEST_CASE("what is refused by its form has the shape of its route's errors") {
  Served served;
  const Response native =
      served.gateway.on_refused(request_of("POST", "/generate"), 413, "too big");
  CHECK(native.status == 413);
  CHECK(native.body == "too big");
  CHECK(native.content_type.starts_with("text/plain"));
  const Response openai =
      served.gateway.on_refused(request_of("POST", "/v1/chat/completions"), 413, "too big");
  CHECK(ipc::OrderedJson::parse(openai.body)["error"]["message"] == "too big");
  const Response crowded = served.gateway.on_refused({}, 429, "many");
  CHECK(crowded.status == 429);
  CHECK(ipc::OrderedJson::parse(crowded.body) ==
        ipc::OrderedJson({{"error", "Model is overloaded"}, {"error_type", "overloaded"}}));
}

TEST_CASE("a body that is no JSON is 400, one of the wrong shape 422, without a daemon") {
  Served served;
  const auto answer = [&](const std::string& path, const std::string& body) {
    Request request = request_of("POST", path, {kJson});
    request.body = body;
    return served.gateway.on_request(request);
  };
  CHECK(answer("/generate", "{").status == 400);
  CHECK(answer("/generate", "").status == 400);
  CHECK(answer("/generate", "\xFF").status == 400);
  CHECK(answer("/generate", "[]").status == 422);
  CHECK(answer("/generate", "{}").status == 422);
  CHECK(answer("/invocations", R"({"input": "a"})").status == 422);
  CHECK(answer("/v1/chat/completions", "{").status == 400);
  CHECK(answer("/v1/chat/completions", R"({"messages": []})").status == 422);
  CHECK(answer("/v1/completions", R"({"prompt": "a", "model": "b"})").status == 404);
  // All is well with this one, but nobody is there to answer.
  CHECK(answer("/generate", R"({"inputs": "a"})").status == 502);
  CHECK(served.service.permits.num_taken() == 0);
}

TEST_CASE("as many sequences as there are permits, and each is given back") {
  Served served;
  REQUIRE(served.service.permits.try_take(7));
  const auto status_of = [&](const std::string& parameters) {
    Request request = request_of("POST", "/generate", {kJson});
    request.body = R"({"inputs": "a", "parameters": )" + parameters + "}";
    return served.gateway.on_request(request).status;
  };
  CHECK(status_of("{}") == 502);
  CHECK(status_of(R"({"best_of": 2, "do_sample": true})") == 429);
  CHECK(status_of("{}") == 502);
  CHECK(served.service.permits.num_taken() == 7);
  served.service.draining = true;
  CHECK(status_of("{}") == 503);
}

TEST_CASE("a place is free before the answer is written, and a refusal says when to ask again") {
  Served served;
  Request request = request_of("POST", "/generate", {kJson});
  request.body = R"({"inputs": "a"})";
  const Response failed = served.gateway.on_request(request);
  CHECK(failed.status == 502);
  CHECK(served.service.permits.num_taken() == 0);
  CHECK(served.service.num_unanswered == 1);  // what ends the gateway waits for the last byte
  REQUIRE(served.service.permits.try_take(8));
  const Response refused = served.gateway.on_request(request);
  CHECK(refused.status == 429);
  CHECK(header_of(refused, "retry-after") == "1");
  request.path = "/v1/completions";
  request.body = R"({"prompt": "a"})";
  CHECK(header_of(served.gateway.on_request(request), "retry-after") == "1");
  served.service.draining = true;
  const Response draining = served.gateway.on_request(request);
  CHECK(draining.status == 503);
  CHECK(header_of(draining, "retry-after") == "1");
  CHECK(header_of(failed, "retry-after").empty());
}

TEST_CASE("descriptors set how many are served at once") {
  const DescriptorBudget plenty = plan_descriptors(1'048'576, 128);
  CHECK(plenty.num_requests == 128);
  CHECK(plenty.num_connections == 1152);
  CHECK(plenty.notice.empty());
  const DescriptorBudget few = plan_descriptors(256, 128);
  CHECK(few.num_requests == 38);
  CHECK(few.num_connections == 78);
  CHECK(few.notice ==
        "open files are limited to 256 (ulimit -n): at most 38 requests at once and 78 "
        "connections, others get 429; --max-concurrent-requests 128 would need 1600");
  const DescriptorBudget some = plan_descriptors(1024, 128);
  CHECK(some.num_requests == 128);
  CHECK(some.num_connections == 576);
  CHECK(some.notice.find("1152 connections would need 1600") != std::string::npos);
  for (const int64_t limit : {69, 100, 256, 1000, 1599, 1600, 5000}) {
    const DescriptorBudget budget = plan_descriptors(limit, 128);
    CHECK(budget.num_requests >= 1);
    CHECK(budget.num_connections > budget.num_requests);
    // Each has a socket to the daemon and may have a line of two ends.
    CHECK(3 * budget.num_requests + budget.num_connections <= limit - 64);
    CHECK(budget.notice.empty() == (limit >= 1600));
  }
  CHECK_THROWS_WITH(plan_descriptors(68, 128), Catch::Contains("expected at least 69"));
  CHECK(plan_descriptors(INT_MAX, INT64_MAX).num_requests > 1'000'000);
}

TEST_CASE("the OpenAPI document has every route, and every schema it refers to") {
  const ipc::OrderedJson document = ipc::OrderedJson::parse(dump_json(openapi_document()));
  CHECK(document["openapi"] == "3.0.3");
  size_t num_operations = 0;
  for (const auto& path : document["paths"].items()) num_operations += path.value().size();
  size_t num_documented = 0;
  for (const Route& route : route_table()) {
    num_documented += std::max<size_t>(1, route.documented.size());
    INFO(route.method << " " << route.path);
    std::string path(route.documented.empty() ? route.path : route.documented.front());
    if (path.ends_with("/*")) path.replace(path.size() - 1, 1, "{name}");
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    REQUIRE(document["paths"].contains(path));
    REQUIRE(document["paths"][path].contains(method));
    const ipc::OrderedJson& operation = document["paths"][path][method];
    CHECK(operation["responses"].contains("200"));
    CHECK(operation["responses"].contains("401") == route.needs_key);
    CHECK(operation.contains("requestBody") == !route.request_schema.empty());
  }
  CHECK(num_operations == num_documented);
  const std::string text = document.dump();
  const std::string marker = "#/components/schemas/";
  std::set<std::string> referred;
  for (size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, at + 1)) {
    const size_t begin = at + marker.size();
    referred.insert(text.substr(begin, text.find('"', begin) - begin));
  }
  CHECK(referred.size() > 10);
  for (const std::string& name : referred) {
    INFO(name);
    CHECK(document["components"]["schemas"].contains(name));
  }
}

}  // namespace tgi::http
