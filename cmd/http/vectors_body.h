// The bodies of the routes whose answer is vectors or scores: LoRAX's /embed, /classify and
// /classify_batch, text-embeddings-inference's /embed, /embed_all, /predict, /rerank and
// /similarity, OpenAI's /v1/embeddings, /v1/rerank as Cohere's and Jina's clients ask it, and
// vLLM's /score.
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
  std::optional<std::string> truncation_direction;
  std::optional<std::string> prompt_name;
  std::optional<int64_t> dimensions;
};

// Of /embed_all.
struct EmbedAllBody {
  OrderedJson inputs;
  std::optional<VectorParameters> parameters;
  bool truncate = false;
  std::optional<std::string> truncation_direction;
  std::optional<std::string> prompt_name;
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
  std::optional<std::string> truncation_direction;
  bool raw_scores = false;
};

struct RerankBody {
  std::string query;
  std::vector<std::string> texts;
  bool truncate = false;
  std::optional<std::string> truncation_direction;
  bool raw_scores = false;
  bool return_text = false;
};

struct DocumentsBody {
  std::string query;
  OrderedJson documents;
  std::optional<std::string> model;
  std::optional<int64_t> top_n;
  bool return_documents = false;
  std::optional<int64_t> max_tokens_per_doc;
};

// Of /similarity.
struct SentencesBody {
  std::string source_sentence;
  std::vector<std::string> sentences;
};
struct SimilarityParameters {
  bool truncate = false;
  std::optional<std::string> truncation_direction;
  std::optional<std::string> prompt_name;
};
struct SimilarityBody {
  SentencesBody inputs;
  std::optional<SimilarityParameters> parameters;
};

// Of /score.
struct ScoreBody {
  OrderedJson text_1;
  OrderedJson text_2;
  std::optional<std::string> model;
  bool use_activation = true;
  std::optional<int64_t> truncate_prompt_tokens;
};

template <>
std::span<const BodyField<VectorParameters>> body_fields<VectorParameters>();
template <>
std::span<const BodyField<EmbedBody>> body_fields<EmbedBody>();
template <>
std::span<const BodyField<EmbedAllBody>> body_fields<EmbedAllBody>();
template <>
std::span<const BodyField<EmbeddingsBody>> body_fields<EmbeddingsBody>();
template <>
std::span<const BodyField<ClassifyBody>> body_fields<ClassifyBody>();
template <>
std::span<const BodyField<RerankBody>> body_fields<RerankBody>();
template <>
std::span<const BodyField<DocumentsBody>> body_fields<DocumentsBody>();
template <>
std::span<const BodyField<SentencesBody>> body_fields<SentencesBody>();
template <>
std::span<const BodyField<SimilarityParameters>> body_fields<SimilarityParameters>();
template <>
std::span<const BodyField<SimilarityBody>> body_fields<SimilarityBody>();
template <>
std::span<const BodyField<ScoreBody>> body_fields<ScoreBody>();
template <>
std::span<const ExtraField> extra_fields<EmbeddingsBody>();
template <>
std::span<const ExtraField> extra_fields<DocumentsBody>();
template <>
std::span<const ExtraField> extra_fields<ScoreBody>();

template <>
struct SchemaName<VectorParameters> {
  static constexpr std::string_view value = "VectorParameters";
};
template <>
struct SchemaName<EmbedBody> {
  static constexpr std::string_view value = "EmbedRequest";
};
template <>
struct SchemaName<EmbedAllBody> {
  static constexpr std::string_view value = "EmbedAllRequest";
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

template <>
struct SchemaName<SentencesBody> {
  static constexpr std::string_view value = "SimilarityInputs";
};
template <>
struct SchemaName<SimilarityParameters> {
  static constexpr std::string_view value = "SimilarityParameters";
};
template <>
struct SchemaName<SimilarityBody> {
  static constexpr std::string_view value = "SimilarityRequest";
};
template <>
struct SchemaName<ScoreBody> {
  static constexpr std::string_view value = "ScoreRequest";
};

// As the daemon has it. Throws for what is neither left nor right.
std::optional<std::string> truncation_side(const std::optional<std::string>& direction);

// A text, a list of texts, of ids, or of lists of ids.
std::vector<ipc::TextInput> texts_of(const OrderedJson& value, const std::string& path);
bool is_single(const OrderedJson& value);  // one text, or the ids of one

// Of /predict: a text, a pair of texts in a list, or a list of such lists.
bool is_list_of_pairs(const OrderedJson& value);
std::vector<ipc::TextInput> pairs_of(const OrderedJson& value, const std::string& path);

}  // namespace tgi::http
