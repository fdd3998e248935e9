#include "cmd/http/vectors_body.h"

#include <fmt/format.h>

#include <array>

namespace tgi::http {
namespace {

constexpr FieldInfo kDirection = {
    "which side of it: left, right; absent: as the model's files say"};

}  // namespace

template <>
std::span<const BodyField<VectorParameters>> body_fields<VectorParameters>() {
  using B = VectorParameters;
  static constexpr std::array kFields = {
      body_field<&B::adapter_id>("adapter_id", {"a LoRA adapter of the model"}),
      body_field<&B::adapter_source>("adapter_source", {"hub, local, s3"}),
      body_field<&B::api_token>("api_token", {"to the hub, for this request"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<EmbedBody>> body_fields<EmbedBody>() {
  using B = EmbedBody;
  static constexpr std::array kFields = {
      body_field<&B::inputs>("inputs", {"a text, or a list of texts", true}),
      body_field<&B::parameters>("parameters"),
      body_field<&B::normalize>("normalize",
                                {"to the length 1; absent: as the model's own files say"}),
      body_field<&B::truncate>("truncate", {"cut what is too long"}),
      body_field<&B::truncation_direction>("truncation_direction", kDirection),
      body_field<&B::prompt_name>("prompt_name", {"one of the model's prompts"}),
      body_field<&B::dimensions>("dimensions", {"the first so many numbers of each vector"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<EmbedAllBody>> body_fields<EmbedAllBody>() {
  using B = EmbedAllBody;
  static constexpr std::array kFields = {
      body_field<&B::inputs>("inputs", {"a text, or a list of texts", true}),
      body_field<&B::parameters>("parameters"),
      body_field<&B::truncate>("truncate", {"cut what is too long"}),
      body_field<&B::truncation_direction>("truncation_direction", kDirection),
      body_field<&B::prompt_name>("prompt_name", {"one of the model's prompts"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<EmbeddingsBody>> body_fields<EmbeddingsBody>() {
  using B = EmbeddingsBody;
  static constexpr std::array kFields = {
      body_field<&B::input>("input", {"a text, a list of texts, ids, or a list of those", true}),
      body_field<&B::model>("model", {"the model, or an adapter of it"}),
      body_field<&B::encoding_format>("encoding_format", {"float, base64"}),
      body_field<&B::dimensions>("dimensions", {"the first so many numbers of each vector"}),
      body_field<&B::adapter_source>("adapter_source", {"hub, local, s3"}),
      body_field<&B::api_token>("api_token", {"to the hub, for this request"}),
      body_field<&B::truncate>("truncate", {"cut what is too long"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<ClassifyBody>> body_fields<ClassifyBody>() {
  using B = ClassifyBody;
  static constexpr std::array kFields = {
      body_field<&B::inputs>("inputs", {"a text, a pair of texts, or a list of those", true}),
      body_field<&B::parameters>("parameters"),
      body_field<&B::truncate>("truncate", {"cut what is too long"}),
      body_field<&B::truncation_direction>("truncation_direction", kDirection),
      body_field<&B::raw_scores>("raw_scores", {"logits, as the model gives them"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<RerankBody>> body_fields<RerankBody>() {
  using B = RerankBody;
  static constexpr std::array kFields = {
      body_field<&B::query>("query", {"what is looked for", true}),
      body_field<&B::texts>("texts", {"where it is looked for", true}),
      body_field<&B::truncate>("truncate", {"cut what is too long"}),
      body_field<&B::truncation_direction>("truncation_direction", kDirection),
      body_field<&B::raw_scores>("raw_scores", {"logits, as the model gives them"}),
      body_field<&B::return_text>("return_text", {"the texts are part of the answer"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<DocumentsBody>> body_fields<DocumentsBody>() {
  using B = DocumentsBody;
  static constexpr std::array kFields = {
      body_field<&B::query>("query", {"what is looked for", true}),
      body_field<&B::documents>("documents", {"texts, or objects with a member text", true}),
      body_field<&B::model>("model", {"the model"}),
      body_field<&B::top_n>("top_n", {"the best so many; absent: all"}),
      body_field<&B::return_documents>("return_documents", {"the texts are part of the answer"}),
      body_field<&B::max_tokens_per_doc>(
          "max_tokens_per_doc", {"at least what the model takes, which is where they are cut"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<SentencesBody>> body_fields<SentencesBody>() {
  using B = SentencesBody;
  static constexpr std::array kFields = {
      body_field<&B::source_sentence>("source_sentence",
                                      {"what the others are compared with", true}),
      body_field<&B::sentences>("sentences", {"texts", true}),
  };
  return kFields;
}

template <>
std::span<const BodyField<SimilarityParameters>> body_fields<SimilarityParameters>() {
  using B = SimilarityParameters;
  static constexpr std::array kFields = {
      body_field<&B::truncate>("truncate", {"cut what is too long"}),
      body_field<&B::truncation_direction>("truncation_direction", kDirection),
      body_field<&B::prompt_name>("prompt_name", {"one of the model's prompts"}),
  };
  return kFields;
}

template <>
std::span<const BodyField<SimilarityBody>> body_fields<SimilarityBody>() {
  using B = SimilarityBody;
  static constexpr std::array kFields = {
      body_field<&B::inputs>("inputs", {.required = true}),
      body_field<&B::parameters>("parameters"),
  };
  return kFields;
}

template <>
std::span<const BodyField<ScoreBody>> body_fields<ScoreBody>() {
  using B = ScoreBody;
  static constexpr std::array kFields = {
      body_field<&B::text_1>("text_1", {"a text, or a list of texts", true}),
      body_field<&B::text_2>("text_2", {"a text, or a list of texts", true}),
      body_field<&B::model>("model", {"the model"}),
      body_field<&B::use_activation>("use_activation", {"false: logits, as the model gives them"}),
      body_field<&B::truncate_prompt_tokens>("truncate_prompt_tokens",
                                             {"-1: cut what is too long for the model"}),
  };
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<EmbeddingsBody>() {
  static constexpr std::array kFields = {
      ExtraField{"user", kAnything, "names who asks, which changes nothing"},
  };
  return kFields;
}
template <>
std::span<const ExtraField> extra_fields<DocumentsBody>() {
  static constexpr std::array kFields = {
      ExtraField{"user", kAnything, "names who asks, which changes nothing"},
      // Cohere's own default is 10.
      ExtraField{"max_chunks_per_doc", "[1, 10]", "a document is read as one piece, and cut"},
      ExtraField{"rank_fields", R"([["text"]])", "of a document its text is read"},
      ExtraField{"priority", "[0]", "requests are taken in order"},
  };
  return kFields;
}
template <>
std::span<const ExtraField> extra_fields<ScoreBody>() {
  static constexpr std::array kFields = {
      ExtraField{"user", kAnything, "names who asks, which changes nothing"},
      ExtraField{"encoding_format", R"(["float"])", "scores are written as numbers"},
      ExtraField{"priority", "[0]", "requests are taken in order"},
  };
  return kFields;
}

namespace {

bool is_ids(const OrderedJson& value) {
  return value.is_array() && !value.empty() && value.front().is_number();
}

ipc::TextInput input_of(const OrderedJson& value, const std::string& path) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (!is_ids(value)) fail_body_type(path, "a text or a list of token ids", value);
  ipc::TextInput out;
  read_body_value(value, path, out.ids.emplace());
  return out;
}

ipc::TextInput pair_of(const OrderedJson& value, const std::string& path) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  std::vector<std::string> texts;
  read_body_value(value, path, texts);
  if (texts.empty() || texts.size() > 2) {
    fail_body(path, fmt::format("invalid length: {}, expected a text or a pair", texts.size()));
  }
  ipc::TextInput out{.text = texts.front()};
  if (texts.size() == 2) out.pair = texts.back();
  return out;
}

}  // namespace

std::optional<std::string> truncation_side(const std::optional<std::string>& direction) {
  if (!direction) return std::nullopt;
  for (const char* side : {"left", "Left", "LEFT"}) {
    if (*direction == side) return "left";
  }
  for (const char* side : {"right", "Right", "RIGHT"}) {
    if (*direction == side) return "right";
  }
  throw validation_error(
      fmt::format("`truncation_direction` must be left or right. Given: {}", *direction));
}

bool is_single(const OrderedJson& value) {
  return value.is_string() || is_ids(value);
}

std::vector<ipc::TextInput> texts_of(const OrderedJson& value, const std::string& path) {
  if (is_single(value)) return {input_of(value, path)};
  if (!value.is_array()) fail_body_type(path, "a text or a list of texts", value);
  std::vector<ipc::TextInput> out;
  for (size_t i = 0; i < value.size(); ++i) {
    out.push_back(input_of(value[i], fmt::format("{}[{}]", path, i)));
  }
  return out;
}

bool is_list_of_pairs(const OrderedJson& value) {
  return value.is_array() && !value.empty() && value.front().is_array();
}

std::vector<ipc::TextInput> pairs_of(const OrderedJson& value, const std::string& path) {
  if (!is_list_of_pairs(value)) return {pair_of(value, path)};
  std::vector<ipc::TextInput> out;
  for (size_t i = 0; i < value.size(); ++i) {
    out.push_back(pair_of(value[i], fmt::format("{}[{}]", path, i)));
  }
  return out;
}

}  // namespace tgi::http
