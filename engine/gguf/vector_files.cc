#include "engine/gguf/vector_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/weights/checkpoint.h"
#include "engine/weights/ggml/gguf_values.h"

namespace tgi::gguf {
namespace {

constexpr const char* kPooling = "pooling_type";
constexpr int64_t kNone = 0;
constexpr int64_t kRank = 4;
// By number, as files have them; the names are sentence-transformers'.
constexpr const char* kPoolingNames[] = {nullptr, "mean", "cls", "lasttoken", nullptr};

int64_t pooling_of(ModelReader& model) {
  const int64_t type = model.find_integer(kPooling).value_or(kNone);
  if (type >= kNone && type <= kRank) return type;
  throw Error(Code::kUnsupported,
              fmt::format("{}.{}: {} is not supported; known are 0 (none), 1 (mean), 2 (cls), 3 "
                          "(last), 4 (rank)",
                          model.architecture(), kPooling, type));
}

// A safetensors file of one matrix in f32.
std::string safetensors_of(const GgufTensor& tensor, const std::string& name) {
  const std::vector<float> values = decode_values(tensor, tensor.bytes);
  const size_t num_bytes = values.size() * sizeof(float);
  const std::string header =
      Json{{name, {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {0, num_bytes}}}}}
          .dump();
  const auto length = static_cast<uint64_t>(header.size());
  std::string out(sizeof(length) + header.size() + num_bytes, '\0');
  std::memcpy(out.data(), &length, sizeof(length));
  std::memcpy(out.data() + sizeof(length), header.data(), header.size());
  std::memcpy(out.data() + sizeof(length) + header.size(), values.data(), num_bytes);
  return out;
}

// The dense layers behind the pooling, which some files have: without biases, nothing between them.
std::vector<std::string> add_dense(ModelReader& model, std::map<std::string, std::string>& files) {
  std::vector<std::string> folders;
  for (const auto& [stored, folder] : {std::pair{"dense_2", "2_Dense"}, {"dense_3", "3_Dense"}}) {
    model.pass_over(fmt::format("{}_feat_in", stored));  // the tensor says both
    model.pass_over(fmt::format("{}_feat_out", stored));
    const GgufTensor* const tensor = model.find_tensor(fmt::format("{}.weight", stored));
    if (tensor == nullptr) continue;
    if (tensor->shape.size() != 2) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tensor {}: expected a matrix, got {} dimensions", tensor->name,
                              tensor->shape.size()));
    }
    model.ignore_tensor(stored);
    files[fmt::format("{}/config.json", folder)] = Json{
        {"in_features", tensor->shape[1]},
        {"out_features", tensor->shape[0]},
        {"bias", false},
        {"activation_function",
         "torch.nn.modules.linear.Identity"}}.dump();
    files[fmt::format("{}/model.safetensors", folder)] = safetensors_of(*tensor, "linear.weight");
    folders.emplace_back(folder);
  }
  model.pass_over("embedding_length_out");
  return folders;
}

// The text before, between and behind the two that are compared, as a template of Jinja. Files have
// it with the two by name, in braces.
std::string pair_template(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template.rerank";
  constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {{"{query}", "query"},
                                                                       {"{document}", "document"}};
  std::string_view text = metadata.find_text(kKey).value_or("");
  for (const auto& [place, role] : kPlaces) {
    if (text.find(place) != std::string_view::npos) continue;
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected a text with {} and {}, which says how a pair reaches a "
                            "model that ranks; take the model's folder",
                            kKey, kPlaces[0].first, kPlaces[1].first));
  }
  std::string out =
      "{%- if messages | length != 2 or messages[0].role != 'query' -%}{{ "
      "raise_exception('expected "
      "a query and a document; the instruction is part of the model') }}{%- endif -%}";
  while (!text.empty()) {
    size_t at = text.size();
    size_t which = 0;
    for (size_t i = 0; i < std::size(kPlaces); ++i) {
      const size_t found = std::min(text.find(kPlaces[i].first), text.size());
      if (found < at) which = i;
      at = std::min(at, found);
    }
    if (at > 0) out += fmt::format("{{{{ {} }}}}", Json(text.substr(0, at)).dump());
    if (at == text.size()) break;
    out += fmt::format("{{{{ messages[{}].content }}}}", which);
    text.remove_prefix(at + kPlaces[which].first.size());
  }
  return out;
}

// As a CrossEncoder of sentence-transformers: the probability of yes, of the two.
std::map<std::string, std::string> answer_score_files(ModelReader& model) {
  const GgufTensor& rows = model.tensor("cls.output.weight");
  const std::vector<int64_t> expected = {2, model.config.at("hidden_size").get<int64_t>()};
  if (rows.shape != expected) {
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: expected the rows of two answers, ({}, {}), got {}",
                            rows.name, expected[0], expected[1], shape_text(rows.shape)));
  }
  const std::string key = fmt::format("{}.classifier.output_labels", model.architecture());
  const bool has_labels = model.metadata().has(key);
  if (has_labels && model.metadata().texts(key) != std::vector<std::string_view>{"yes", "no"}) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected yes and no, of a model that ranks by its answer", key));
  }
  model.pass_over("classifier.output_labels");
  model.ignore_tensor("cls.output");
  const auto module = [](const char* type, const char* path) {
    return Json{{"type", fmt::format("sentence_transformers.{}", type)}, {"path", path}};
  };
  return {
      {"modules.json", Json{module("base.modules.transformer.Transformer", ""),
                            module("cross_encoder.modules.logit_score.LogitScore", "1_LogitScore")}
                           .dump()},
      {"1_LogitScore/config.json", Json{{"true_token_id", 0}, {"false_token_id", 1}}.dump()},
      {"1_LogitScore/model.safetensors", safetensors_of(rows, "linear.weight")},
      {"config_sentence_transformers.json",
       Json{{"model_type", "CrossEncoder"},
            {"activation_fn", "torch.nn.modules.activation.Sigmoid"}}
           .dump()},
      {"sentence_bert_config.json", Json{{"transformer_task", "text-generation"},
                                         {"modality_config", {{"message", {{"format", "flat"}}}}}}
                                        .dump()},
      {"chat_template.jinja", pair_template(model.metadata())}};
}

}  // namespace

void read_answer_scores(ModelReader& model) {
  model.scores_answers = pooling_of(model) == kRank && model.has_tensor("cls.output.weight");
}

bool has_classifier(ModelReader& model) {
  const int64_t pooling = pooling_of(model);
  const bool gives_scores =
      model.has_tensor("cls.output.weight") && (pooling == kNone || pooling == kRank);
  if (gives_scores) return true;
  model.pass_over("classifier.output_labels");
  for (const char* tensor : {"cls", "cls.output", "cls.norm"}) model.ignore_tensor(tensor);
  return false;
}

void read_labels(ModelReader& model) {
  const std::string key = fmt::format("{}.classifier.output_labels", model.architecture());
  model.pass_over("classifier.output_labels");
  const std::vector<int64_t>& shape = model.tensor("cls.output.weight").shape;
  const int64_t num_labels = shape.size() == 1 ? 1 : shape.front();
  Json labels = Json::object();
  if (model.metadata().has(key)) {
    for (const std::string_view label : model.metadata().texts(key)) {
      labels[std::to_string(labels.size())] = label;
    }
  } else {
    for (int64_t i = 0; i < num_labels; ++i) labels[std::to_string(i)] = fmt::format("LABEL_{}", i);
  }
  if (static_cast<int64_t>(labels.size()) != num_labels) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected {} labels, one for each row of cls.output, got {}", key,
                            num_labels, labels.size()));
  }
  model.config["id2label"] = std::move(labels);
}

std::map<std::string, std::string> vector_files(ModelReader& model) {
  const bool is_causal = model.find_boolean("attention.causal").value_or(true);
  if (!is_causal) model.config["is_causal"] = false;
  const int64_t pooling = pooling_of(model);
  if (model.scores_answers) return answer_score_files(model);
  std::map<std::string, std::string> files;
  const std::vector<std::string> dense = add_dense(model, files);
  const char* const mode = kPoolingNames[pooling];
  if (mode == nullptr) {
    if (pooling == kNone || model.config.contains("id2label")) return {};
    throw Error(
        Code::kUnsupported,
        fmt::format("{}.{}: a model that ranks, without a classifier that this build knows; "
                    "take the model's folder",
                    model.architecture(), kPooling));
  }
  Json modules = Json::array();
  const auto add = [&](const char* type, const std::string& path) {
    modules.push_back(
        {{"type", fmt::format("sentence_transformers.models.{}", type)}, {"path", path}});
  };
  add("Transformer", "");
  add("Pooling", "1_Pooling");
  files["1_Pooling/config.json"] = Json{{"pooling_mode", mode}}.dump();
  for (const std::string& folder : dense) add("Dense", folder);
  add("Normalize", "Normalize");
  files["modules.json"] = modules.dump();
  return files;
}

}  // namespace tgi::gguf
