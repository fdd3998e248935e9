// Every route of the gateway, in one table: what answers, who may ask, and what the OpenAPI
// document says of it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "cmd/http/api_error.h"
#include "cmd/http/message.h"
#include "cmd/http/service.h"

namespace tgi::http {

struct Route {
  std::string_view method;
  // One that ends with /* takes all below it; a segment {name} stands for any one.
  std::string_view path;
  bool needs_key = false;
  const ErrorShape* errors = &kNativeErrors;
  // Throws ApiError and ClientGone.
  Response (*handle)(std::shared_ptr<Scope> scope, const Request& request);
  // What the OpenAPI document says of it.
  std::string_view summary;
  std::string_view request_schema;  // names of components; "" when there is none
  std::string_view response_schema;
  bool takes_any_type = false;        // of a body: the API's clients do not say that theirs is JSON
  std::string_view stream_type = "";  // of a streamed answer, whose events have response_schema too
  // With takes_any_type: but not from a page of a browser, which may send a body of some types to
  // any server unasked. What changes the server is not to be had so.
  bool pages_say_json = false;
  // What the OpenAPI document has in place of a path that ends with /*; none: {name} stands there.
  std::span<const std::string_view> documented{};
};

std::span<const Route> route_table();

// An API beside TGI's and OpenAI's: its own files, and one line in the list of routes.cc.
struct Api {
  std::span<const Route> (*routes)();
  void (*add_schemas)(ipc::OrderedJson& schemas);  // that its rows name
};
std::span<const Api> apis();

// For /api-doc/openapi.json: OpenAPI 3.0.3, made from the route and field tables.
ipc::OrderedJson openapi_document();

}  // namespace tgi::http
