// The bodies of the routes whose answer is vectors or scores: LoRAX's /embed, /classify and
// /classify_batch, text-embeddings-inference's /embed, /predict and /rerank, OpenAI's
// /v1/embeddings, and /v1/rerank as Cohere's and Jina's clients ask it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/body_table.h"
#include "ipc/vectors.h"

namespace tgi::http {

struct VectorParameters {
  std::optional<std::string> adapter_id;
  std::optional<std::string> adapter_source;
  std::optional<std::string> api_token;
};

struct EmbedBody {
  OrderedJson inputs;
  std::optional<VectorParameters> parameters;
  std::optional<bool> normalize;
  bool truncate = false;
  std::optional<std::string> prompt_name;
  std::optional<int64_t> dimensions;
};

struct EmbeddingsBody {
  OrderedJson input;
  std::optional<std::string> model;
  std::optional<std::string> encoding_format;
  std::optional<int64_t> dimensions;
  std::optional<std::string> adapter_source;
  std::optional<std::string> api_token;
  bool truncate = false;
};

// Of /classify, /classify_batch and /predict.
struct ClassifyBody {
  OrderedJson inputs;
  std::optional<VectorParameters> parameters;
  bool truncate = false;
  bool raw_scores = false;
};

struct RerankBody {
  std::string query;
  std::vector<std::string> texts;
  bool truncate = false;
  bool raw_scores = false;
  bool return_text = false;
};

struct DocumentsBody {
  std::string query;
  OrderedJson documents;
  std::optional<std::string> model;
  std::optional<int64_t> top_n;
  bool return_documents = false;
};

template <>
std::span<const BodyField<VectorParameters>> body_fields<VectorParameters>();
template <>
std::span<const BodyField<EmbedBody>> body_fields<EmbedBody>();
template <>
std::span<const BodyField<EmbeddingsBody>> body_fields<EmbeddingsBody>();
template <>
std::span<const BodyField<ClassifyBody>> body_fields<ClassifyBody>();
template <>
std::span<const BodyField<RerankBody>> body_fields<RerankBody>();
template <>
std::span<const BodyField<DocumentsBody>> body_fields<DocumentsBody>();
template <>
std::span<const ExtraField> extra_fields<EmbedBody>();
template <>
std::span<const ExtraField> extra_fields<EmbeddingsBody>();
template <>
std::span<const ExtraField> extra_fields<ClassifyBody>();
template <>
std::span<const ExtraField> extra_fields<RerankBody>();
template <>
std::span<const ExtraField> extra_fields<DocumentsBody>();

template <>
struct SchemaName<VectorParameters> {
  static constexpr std::string_view value = "VectorParameters";
};
template <>
struct SchemaName<EmbedBody> {
  static constexpr std::string_view value = "EmbedRequest";
};
template <>
struct SchemaName<EmbeddingsBody> {
  static constexpr std::string_view value = "EmbeddingsRequest";
};
template <>
struct SchemaName<ClassifyBody> {
  static constexpr std::string_view value = "ClassifyRequest";
};
template <>
struct SchemaName<RerankBody> {
  static constexpr std::string_view value = "RerankRequest";
};
template <>
struct SchemaName<DocumentsBody> {
  static constexpr std::string_view value = "DocumentsRequest";
};

// A text, a list of texts, of ids, or of lists of ids.
std::vector<ipc::TextInput> texts_of(const OrderedJson& value, const std::string& path);
bool is_single(const OrderedJson& value);  // one text, or the ids of one

// Of /predict: a text, a pair of texts in a list, or a list of such lists.
bool is_list_of_pairs(const OrderedJson& value);
std::vector<ipc::TextInput> pairs_of(const OrderedJson& value, const std::string& path);

}  // namespace tgi::http
