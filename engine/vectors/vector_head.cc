#include "engine/vectors/vector_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "engine/model/tensor_table.h"
#include "engine/weights/respelled_checkpoint.h"

namespace tgi {
namespace {

using Rows = PooledInput::Rows;

PooledInput input_of(PoolingMode mode) {
  switch (mode) {
    case PoolingMode::kCls:
      return {.rows = Rows::kFirst, .pooling = Pooling::kRows};
    case PoolingMode::kLastToken:
      return {.rows = Rows::kLast, .pooling = Pooling::kRows};
    case PoolingMode::kMax:
      return {.rows = Rows::kAll, .pooling = Pooling::kMax};
    case PoolingMode::kMean:
    case PoolingMode::kMeanSqrtLen:
      return {.rows = Rows::kAll, .pooling = Pooling::kSum};
    case PoolingMode::kWeightedMean:
      return {.rows = Rows::kAll, .pooling = Pooling::kWeightedSum};
  }
  throw Error(Code::kInternal, "unknown way of pooling");
}

// What a sum over so many tokens is divided by.
double divisor(PoolingMode mode, int64_t num_tokens) {
  const auto count = static_cast<double>(num_tokens);
  if (mode == PoolingMode::kMean) return count;
  if (mode == PoolingMode::kMeanSqrtLen) return std::sqrt(count);
  if (mode == PoolingMode::kWeightedMean) return count * (count + 1.0) / 2.0;
  return 1.0;
}

// What sentence-transformers' cross-encoders say of their scores: beside the modules, else in
// config.json, where the older field is too.
std::optional<VectorHead::Scores> scores_said(const std::optional<std::string>& activation,
                                              const JsonReader& config) {
  std::string field = "sbert_ce_default_activation_function";
  std::optional<std::string> name = config.optional_string(field);
  if (config.has("sentence_transformers")) {
    const JsonReader inner = config.object("sentence_transformers");
    if (const auto said = inner.optional_string("activation_fn")) {
      field = inner.path_of("activation_fn");
      name = said;
    }
  }
  if (activation) {
    field = "activation_fn";
    name = activation;
  }
  if (!name) return std::nullopt;
  const std::string last = class_name(*name);
  if (last == "Identity") return VectorHead::Scores::kLogits;
  if (last == "Sigmoid") return VectorHead::Scores::kSigmoid;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are torch.nn's Identity, Sigmoid",
                          field, *name));
}

// A number is a name too, as it is written. Null says nothing.
std::optional<std::string> label_of(const Json& name) {
  if (name.is_string()) return name.get<std::string>();
  if (name.is_number_integer()) return name.dump();
  return std::nullopt;
}

std::vector<float> mean_of(std::span<const std::vector<float>> rows) {
  std::vector<float> out;
  for (size_t i = 0; i < rows.front().size(); ++i) {
    double sum = 0.0;
    for (const std::vector<float>& row : rows) sum += static_cast<double>(row[i]);
    out.push_back(static_cast<float>(sum / static_cast<double>(rows.size())));
  }
  return out;
}

PoolingMode mode_of(HeadInput input) {
  if (input == HeadInput::kLast) return PoolingMode::kLastToken;
  return input == HeadInput::kMean ? PoolingMode::kMean : PoolingMode::kCls;
}

}  // namespace

VectorHead::VectorHead(const LoadedConfig& model,
                       const FileSource& files,
                       const Checkpoint& checkpoint,
                       std::optional<PoolingMode> pooling)
    : task_(model.task), hidden_size_(model.config.hidden_size) {
  TGI_CHECK(task_ != Task::kGenerate);
  if (task_ == Task::kEmbed) {
    read_embedder(model, files, pooling);
  } else {
    read_classifier(model, files, RespelledCheckpoint(checkpoint, model.text->renames));
  }
}

bool VectorHead::needs_last_only() const {
  return std::ranges::all_of(inputs_,
                             [](const PooledInput& input) { return input.rows == Rows::kLast; });
}

void VectorHead::read_embedder(const LoadedConfig& model,
                               const FileSource& files,
                               std::optional<PoolingMode> pooling) {
  SentenceModules modules = read_sentence_modules(files, model.config.hidden_size);
  modes_ = std::move(modules.modes);
  if (pooling) modes_ = {*pooling};
  if (modes_.empty()) {
    modes_ = {model.config.is_causal ? PoolingMode::kLastToken : PoolingMode::kMean};
  }
  for (const PoolingMode mode : modes_) inputs_.push_back(input_of(mode));
  steps_ = std::move(modules.dense);
  normalises_ = modules.normalises;
  const int64_t width = hidden_size_ * static_cast<int64_t>(modes_.size());
  if (!steps_.empty() && steps_.front().cols != width) {
    throw Error(Code::kInvalidArgument,
                fmt::format("pooling: the first dense layer reads {} numbers, this way of pooling "
                            "gives {}",
                            steps_.front().cols, width));
  }
  dimensions_ = steps_.empty() ? width : steps_.back().rows;
  if (modules.kept_dimensions) kept_dimensions_ = std::min(*modules.kept_dimensions, dimensions_);
  if (modules.logit_score) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: LogitScore is supported for a CrossEncoder only",
                            files.describe(kModulesFile)));
  }
  read_texts(std::move(modules));
}

void VectorHead::read_texts(SentenceModules&& modules) {
  max_tokens_ = modules.max_tokens;
  cut_side_ = modules.cut_side;
  gives_token_types_ = modules.gives_token_types;
  prompts_ = std::move(modules.prompts);
  default_prompt_ = std::move(modules.default_prompt);
  messages_ = std::move(modules.messages);
}

void VectorHead::read_classifier(const LoadedConfig& model,
                                 const FileSource& files,
                                 const Checkpoint& checkpoint) {
  SentenceModules modules = read_sentence_modules(files, model.config.hidden_size);
  if (!modules.modes.empty() || !modules.dense.empty() || modules.normalises) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: of a model that gives scores only Transformer and LogitScore are "
                            "supported",
                            files.describe(kModulesFile)));
  }
  if (modules.logit_score) {
    read_logit_score(model, *modules.logit_score, checkpoint);
  } else {
    read_layers(model, checkpoint);
  }
  dimensions_ = is_logit_score_ ? 1 : steps_.back().rows;
  read_labels(model, modules.activation);
  read_texts(std::move(modules));
}

void VectorHead::read_logit_score(const LoadedConfig& model,
                                  const LogitScore& score,
                                  const Checkpoint& checkpoint) {
  modes_ = {PoolingMode::kLastToken};
  inputs_ = {input_of(modes_.front())};
  is_logit_score_ = true;
  logit_softcap_ = model.config.logit_softcap;
  if (score.rows) {
    steps_ = {*score.rows};
    return;
  }
  const auto stored = [&](Role role) -> const StoredTensor* {
    for (const TensorSpec& spec : model.tensors()) {
      if (spec.role == role) return find_by_any_name(checkpoint, spec.name, model.text->prefix);
    }
    return nullptr;
  };
  if (has_matrix_before_head(model)) {
    throw Error(Code::kUnsupported,
                "LogitScore: not supported where a matrix of its own stands before the head");
  }
  const std::string_view name = model.ties_head ? "the embedding" : "the head";
  const StoredTensor* const head = stored(model.ties_head ? Role::kTokenEmbedding : Role::kLmHead);
  const StoredTensor* const bias = stored(Role::kLmHeadBias);
  DenseStep step;
  step.cols = hidden_size_;
  const std::array<int64_t, 2> shape = {model.config.vocab_size, hidden_size_};
  const std::array<int64_t, 1> length = {model.config.vocab_size};
  const auto add_row = [&](int32_t token) {
    if (token >= model.config.vocab_size) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("LogitScore: the token {} is not in the vocabulary of {} tokens",
                              token, model.config.vocab_size));
    }
    for (const float value : read_tensor_row(checkpoint, head, name, shape, token)) {
      step.weight.push_back(value * model.config.logit_scale);
    }
    if (bias != nullptr) {
      step.bias.push_back(
          read_tensor(checkpoint, bias, "the head's bias", length)[static_cast<size_t>(token)] *
          model.config.logit_scale);
    }
    ++step.rows;
  };
  add_row(score.true_token);
  if (score.false_token) add_row(*score.false_token);
  steps_ = {std::move(step)};
}

void VectorHead::read_layers(const LoadedConfig& model, const Checkpoint& checkpoint) {
  const std::span<const HeadSpec> heads = heads_of(model);
  const auto find = [&](std::string_view name) -> const StoredTensor* {
    if (name.empty()) return nullptr;
    return find_by_any_name(checkpoint, name, model.text->prefix);
  };
  // Of several the one that is stored.
  auto spec = std::ranges::find_if(heads, [&](const HeadSpec& head) {
    return head.task == task_ && find(head.layers.front().weight) != nullptr;
  });
  if (spec == heads.end()) spec = std::ranges::find(heads, task_, &HeadSpec::task);
  TGI_CHECK(spec != heads.end());
  const HeadInput input =
      spec->input == HeadInput::kAsConfigured ? model.config.head_input : spec->input;
  is_mean_ = input == HeadInput::kMeanOfEach;
  each_token_ = input == HeadInput::kEach || is_mean_;
  if (each_token_) {
    inputs_ = {{.rows = Rows::kAll, .pooling = Pooling::kRows}};
    modes_ = {PoolingMode::kCls};
  } else {
    modes_ = {mode_of(input)};
    inputs_ = {input_of(modes_.front())};
  }
  const JsonReader config(model.json, "");
  if (modes_.front() == PoolingMode::kLastToken && config.has("pad_token_id")) {
    padding_ = static_cast<int32_t>(config.integer_or("pad_token_id", 0));
  }
  int64_t width = hidden_size_;
  for (const HeadLayer& layer : spec->layers) {
    DenseStep step;
    const std::array<int64_t, 2> shape = {-1, width};
    const StoredTensor* const weight = find(layer.weight);
    step.weight = read_tensor(checkpoint, weight, layer.weight, shape);
    step.rows = weight->shape.front();
    step.cols = width;
    step.activation = layer.activation;
    step.norm_eps = model.config.norm_eps;
    const std::array<int64_t, 1> length = {step.rows};
    const auto read_vector = [&](std::string_view name, bool is_needed) {
      const StoredTensor* const tensor = find(name);
      if (tensor == nullptr && !is_needed) return std::vector<float>();
      return read_tensor(checkpoint, tensor, name, length);
    };
    step.bias = read_vector(layer.bias, false);
    step.norm = read_vector(layer.norm, !layer.norm.empty());
    step.norm_bias = read_vector(layer.norm_bias, false);
    width = step.rows;
    steps_.push_back(std::move(step));
  }
}

void VectorHead::read_labels(const LoadedConfig& model,
                             const std::optional<std::string>& activation) {
  const JsonReader config(model.json, "");
  for (int64_t i = 0; i < dimensions_; ++i) labels_.push_back(fmt::format("LABEL_{}", i));
  // What a language model's file has there is of nothing that it was trained for.
  if (config.has("id2label") && !is_logit_score_) {
    const Json& names = config.object("id2label").json();
    if (static_cast<int64_t>(names.size()) != dimensions_) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("id2label: expected {} labels, one for each score of the weights, "
                              "got {}",
                              dimensions_, names.size()));
    }
    for (int64_t i = 0; i < dimensions_; ++i) {
      const auto found = names.find(std::to_string(i));
      if (found == names.end()) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("id2label: expected the name of label {}", i));
      }
      if (const auto label = label_of(*found)) {
        labels_[static_cast<size_t>(i)] = *label;
      } else if (!found->is_null()) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("id2label.{}: expected a text or a whole number, got {}", i,
                                found->type_name()));
      }
    }
  }
  if (const auto said = scores_said(activation, config)) {
    scores_ = *said;
    return;
  }
  const std::string problem = config.string_or("problem_type", "");
  if (problem == "regression") {
    scores_ = Scores::kLogits;
  } else if (problem == "multi_label_classification" ||
             (dimensions_ == 1 && task_ == Task::kClassify)) {
    scores_ = Scores::kSigmoid;
  }
}

std::vector<std::vector<float>> VectorHead::finish(std::span<const std::vector<float>> pooled,
                                                   int64_t num_tokens) const {
  TGI_CHECK(pooled.size() == inputs_.size());
  std::vector<std::vector<float>> rows(1);
  if (each_token_) {
    const auto width = static_cast<size_t>(hidden_size_);
    rows.resize(pooled.front().size() / width);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto begin = pooled.front().begin() + static_cast<ptrdiff_t>(i * width);
      rows[i].assign(begin, begin + static_cast<ptrdiff_t>(width));
    }
  } else {
    for (size_t i = 0; i < pooled.size(); ++i) {
      const double by = divisor(modes_[i], num_tokens);
      for (const float value : pooled[i]) {
        rows.front().push_back(static_cast<float>(static_cast<double>(value) / by));
      }
    }
  }
  for (std::vector<float>& row : rows) {
    for (const DenseStep& step : steps_) row = step.apply(row);
    if (!is_logit_score_) continue;
    if (logit_softcap_ > 0.0F) {
      for (float& logit : row) logit = logit_softcap_ * std::tanh(logit / logit_softcap_);
    }
    if (row.size() > 1) row = {row[0] - row[1]};
  }
  if (is_mean_) return {mean_of(rows)};
  return rows;
}

}  // namespace tgi
