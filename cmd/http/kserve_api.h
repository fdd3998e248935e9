// KServe's open inference protocol, version 2, as TGI has it: a text in, the text that follows out.
// Tensors are of type BYTES: a list of texts, as the protocol's clients send them, or TGI's list of
// the bytes of one. Errors are those of TGI, always as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/native_body.h"
#include "cmd/http/routes.h"
#include "cmd/http/service.h"

namespace tgi::http {

struct KserveTensor {
  std::string name;
  std::optional<std::vector<int64_t>> shape;
  std::string datatype;
  OrderedJson data;
  std::optional<OrderedJson> parameters;
};

struct KserveOutput {
  std::string name;
  std::optional<OrderedJson> parameters;
};

struct KserveBody {
  std::optional<std::string> id;
  std::optional<OrderedJson> parameters;  // GenerateParameters, beside the protocol's own
  std::vector<KserveTensor> inputs;
  std::vector<KserveOutput> outputs;  // none: one for each input, of its name
};

template <>
std::span<const BodyField<KserveTensor>> body_fields<KserveTensor>();
template <>
std::span<const BodyField<KserveOutput>> body_fields<KserveOutput>();
template <>
std::span<const BodyField<KserveBody>> body_fields<KserveBody>();
template <>
struct SchemaName<KserveTensor> {
  static constexpr std::string_view value = "KserveTensor";
};
template <>
struct SchemaName<KserveOutput> {
  static constexpr std::string_view value = "KserveOutput";
};

Response kserve_error(const ApiError& error);
inline constexpr ErrorShape kKserveErrors{kserve_error, "ErrorResponse"};

std::span<const Route> kserve_routes();
void add_kserve_schemas(OrderedJson& schemas);

}  // namespace tgi::http
