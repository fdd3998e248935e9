// Vertex AI's route, as TGI has it: a list of instances, each the body of /generate or a chat, and
// a list of texts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cmd/http/body_table.h"
#include "cmd/http/routes.h"

namespace tgi::http {

struct VertexBody {
  std::vector<OrderedJson> instances;
  std::optional<OrderedJson> parameters;  // of instances of /generate that have none
};

template <>
std::span<const BodyField<VertexBody>> body_fields<VertexBody>();

std::span<const Route> vertex_routes();
void add_vertex_schemas(OrderedJson& schemas);

}  // namespace tgi::http
