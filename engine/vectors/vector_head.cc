#include "engine/vectors/vector_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

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

// What sentence-transformers' cross-encoders say of their scores, the older field too.
std::optional<VectorHead::Scores> scores_said(const JsonReader& config) {
  std::string field = "sbert_ce_default_activation_function";
  std::optional<std::string> name = config.optional_string(field);
  if (config.has("sentence_transformers")) {
    const JsonReader inner = config.object("sentence_transformers");
    field = inner.path_of("activation_fn");
    if (const auto said = inner.optional_string("activation_fn")) name = said;
  }
  if (!name) return std::nullopt;
  const std::string last = name->substr(name->rfind('.') + 1);
  if (last == "Identity") return VectorHead::Scores::kLogits;
  if (last == "Sigmoid") return VectorHead::Scores::kSigmoid;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are torch.nn's Identity, Sigmoid",
                          field, *name));
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
    read_classifier(model, checkpoint);
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
  max_tokens_ = modules.max_tokens;
  prompts_ = std::move(modules.prompts);
  default_prompt_ = std::move(modules.default_prompt);
}

void VectorHead::read_classifier(const LoadedConfig& model, const Checkpoint& checkpoint) {
  const std::span<const HeadSpec> heads = heads_of(model);
  const auto spec = std::ranges::find(heads, task_, &HeadSpec::task);
  TGI_CHECK(spec != heads.end());
  each_token_ = spec->input == HeadInput::kEach;
  if (each_token_) {
    inputs_ = {{.rows = Rows::kAll, .pooling = Pooling::kRows}};
    modes_ = {PoolingMode::kCls};
  } else {
    const HeadInput input =
        spec->input == HeadInput::kAsConfigured ? model.config.head_input : spec->input;
    modes_ = {mode_of(input)};
    inputs_ = {input_of(modes_.front())};
  }
  const JsonReader config(model.json, "");
  if (modes_.front() == PoolingMode::kLastToken && config.has("pad_token_id")) {
    padding_ = static_cast<int32_t>(config.integer_or("pad_token_id", 0));
  }
  int64_t width = hidden_size_;
  const auto find = [&](std::string_view name) -> const StoredTensor* {
    if (name.empty()) return nullptr;
    return find_by_any_name(checkpoint, name, model.text->prefix);
  };
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
  dimensions_ = width;
  read_labels(model);
}

void VectorHead::read_labels(const LoadedConfig& model) {
  const JsonReader config(model.json, "");
  for (int64_t i = 0; i < dimensions_; ++i) labels_.push_back(fmt::format("LABEL_{}", i));
  if (config.has("id2label")) {
    const Json& names = config.object("id2label").json();
    if (static_cast<int64_t>(names.size()) != dimensions_) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("id2label: expected {} labels, one for each score of the weights, "
                              "got {}",
                              dimensions_, names.size()));
    }
    for (int64_t i = 0; i < dimensions_; ++i) {
      const auto found = names.find(std::to_string(i));
      if (found == names.end() || !found->is_string()) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("id2label: expected the name of label {}", i));
      }
      labels_[static_cast<size_t>(i)] = found->get<std::string>();
    }
  }
  if (const auto said = scores_said(config)) {
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
  }
  return rows;
}

}  // namespace tgi
