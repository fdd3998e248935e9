#include "engine/lora/gguf_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/first_names.h"
#include "base/json.h"
#include "engine/gguf/model_reader.h"
#include "engine/lora/adapter_tensors.h"
#include "engine/model/gguf_model_fields.h"

namespace tgi {
namespace {

constexpr size_t kMaxListed = 12;
constexpr std::string_view kA = ".weight.lora_a";
constexpr std::string_view kB = ".weight.lora_b";
constexpr std::string_view kAlpha = "adapter.lora.alpha";
constexpr std::string_view kPromptPrefix = "adapter.lora.prompt_prefix";
constexpr std::string_view kInvocation = "adapter.alora.invocation_tokens";
// What is read of adapters, or says what one is for, to people.
constexpr std::array<std::string_view, 3> kKnownKeys = {"adapter.type", kAlpha,
                                                        "adapter.lora.task_name"};

struct Pair {
  const GgufTensor* a = nullptr;
  const GgufTensor* b = nullptr;

  bool is_embedding() const { return a->name.starts_with("token_embd."); }
  bool is_stack() const { return b->shape.size() == 3; }  // one matrix for each expert
  int64_t rank() const { return b->shape.back(); }
  int64_t rank_of_a() const { return a->shape[a->shape.size() - (is_embedding() ? 1 : 2)]; }
  int64_t num_rows() const { return b->shape[b->shape.size() - 2]; }
  // Of the matrix of the model.
  std::vector<int64_t> shape() const {
    if (!is_stack()) return {num_rows(), a->shape.back()};
    return {b->shape.front(), num_rows(), a->shape.back()};
  }
};

using Pairs = std::map<std::string, Pair, std::less<>>;  // by name: "blk.0.attn_q"

[[noreturn]] void refuse(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

void check_shape(const std::string& name, const GgufTensor& tensor) {
  const bool is_stack = tensor.name.find("_exps.") != std::string_view::npos;
  const bool is_known = tensor.shape.size() == (is_stack ? 3 : 2) &&
                        std::ranges::all_of(tensor.shape, [](int64_t size) { return size > 0; });
  if (!is_known) {
    refuse(fmt::format("tensor {}: expected {}, got {}; it is of {}", tensor.name,
                       is_stack ? "a matrix for each expert" : "a matrix", shape_text(tensor.shape),
                       name));
  }
}

void check_fit(const std::string& name, const Pair& pair) {
  if (pair.is_stack() && pair.a->shape.front() != pair.b->shape.front()) {
    refuse(
        fmt::format("tensors {0}{1} {2} and {0}{3} {4}: expected as many experts, got {5} and "
                    "{6}",
                    name, kA, shape_text(pair.a->shape), kB, shape_text(pair.b->shape),
                    pair.a->shape.front(), pair.b->shape.front()));
  }
  if (pair.rank_of_a() == pair.rank()) return;
  refuse(fmt::format("tensors {0}{1} {2} and {0}{3} {4}: expected one rank, got {5} and {6}", name,
                     kA, shape_text(pair.a->shape), kB, shape_text(pair.b->shape), pair.rank_of_a(),
                     pair.rank()));
}

Pairs pairs_of(const GgufFile& file) {
  Pairs out;
  std::vector<std::string> unknown;
  for (const GgufTensor& tensor : file.tensors) {
    const bool is_a = tensor.name.ends_with(kA);
    if (!is_a && !tensor.name.ends_with(kB)) {
      unknown.emplace_back(tensor.name);
      continue;
    }
    const std::string name(tensor.name.substr(0, tensor.name.size() - kA.size()));
    check_shape(name, tensor);
    Pair& pair = out[name];
    (is_a ? pair.a : pair.b) = &tensor;
  }
  if (!unknown.empty()) {
    throw Error(Code::kUnsupported,
                fmt::format("{} {} not known in an adapter, whose tensors are called "
                            "NAME.weight.lora_a and NAME.weight.lora_b: {}",
                            unknown.size(), unknown.size() == 1 ? "tensor is" : "tensors are",
                            first_names(unknown, kMaxListed)));
  }
  if (out.empty()) refuse("holds no tensor of a LoRA");
  for (const auto& [name, pair] : out) {
    if (pair.a == nullptr || pair.b == nullptr) {
      refuse(fmt::format("tensor {}{}: without its {}", name, pair.a == nullptr ? kB : kA,
                         pair.a == nullptr ? "lora_a" : "lora_b"));
    }
    check_fit(name, pair);
  }
  return out;
}

double alpha_of(const GgufMetadata& metadata) {
  const double alpha = metadata.find_number(kAlpha).value_or(0.0);
  if (!std::isfinite(alpha)) refuse(fmt::format("{}: expected a number, got {}", kAlpha, alpha));
  return alpha;
}

// As the hub names it, where the file says that, else as people do.
std::string base_model_of(const GgufMetadata& metadata) {
  constexpr std::string_view kHub = "https://huggingface.co/";
  const auto url = metadata.find_text("general.base_model.0.repo_url");
  if (url && url->starts_with(kHub)) return std::string(url->substr(kHub.size()));
  return std::string(metadata.find_text("general.base_model.0.name").value_or(""));
}

void check_fields(const GgufMetadata& metadata) {
  const auto type = metadata.find_text("general.type").value_or("model");
  if (type != "adapter") {
    refuse(fmt::format("general.type: expected an adapter, got \"{}\"", type));
  }
  const std::string_view kind = metadata.text("adapter.type");
  if (kind != "lora") {
    throw Error(
        Code::kUnsupported,
        fmt::format("adapter.type: adapters of type \"{}\" are not supported, only \"lora\"",
                    kind));
  }
  if (metadata.find_integer("split.count").value_or(1) > 1) {
    throw Error(Code::kUnsupported, "split.count: adapters in several files are not read");
  }
  if (metadata.has(kInvocation)) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: an adapter counts for all tokens of a request, not from some of "
                            "them on",
                            kInvocation));
  }
  if (!metadata.find_text(kPromptPrefix).value_or("").empty()) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: nothing is put before a prompt here; send it with it", kPromptPrefix));
  }
  std::vector<std::string> unknown;
  for (const std::string_view key : metadata.keys()) {
    const bool is_known = !key.starts_with("adapter.") || key == kPromptPrefix ||
                          std::ranges::find(kKnownKeys, key) != kKnownKeys.end();
    if (!is_known) unknown.emplace_back(key);
  }
  if (unknown.empty()) return;
  throw Error(Code::kUnsupported,
              fmt::format("fields of adapters that this build does not know: {}",
                          first_names(unknown, kMaxListed)));
}

// --- the model's side

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

// "3" of "blk.3.attn_q"; empty: of no layer.
std::string_view layer_of(std::string_view stored) {
  constexpr std::string_view kBlock = "blk.";
  if (!stored.starts_with(kBlock)) return {};
  stored.remove_prefix(kBlock.size());
  return stored.substr(0, std::min(stored.find('.'), stored.size()));
}

using Rules = std::map<std::string, std::vector<gguf::TensorRule>, std::less<>>;

// What the reader of the architecture calls the matrices of such a model, for each pair. It looks
// at some of them before it knows: at those of the adapter, and at these.
Rules rules_of(const LoadedConfig& model, std::string_view architecture, const Pairs& pairs) {
  GgufFields fields;
  put_model_fields(model, fields);
  const ModelConfig& config = model.config;
  // The reader takes numbers of the layers for tensors of theirs: here any will do.
  if (config.activation == Activation::kXielu) {
    const std::vector<float> numbers(static_cast<size_t>(config.num_layers));
    for (const char* key : gguf::kXieluFields) fields.put_numbers(key, numbers);
  }
  const GgufMetadata metadata = fields.metadata();
  std::map<std::string, std::vector<int64_t>> shapes = {
      {"token_embd.weight", {config.vocab_size, config.hidden_size}},
      {"blk.0.ffn_up.weight", {std::max(config.intermediate_size, 1), config.hidden_size}}};
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    const LayerPlan& plan = config.layers[static_cast<size_t>(layer)];
    const int64_t values =
        int64_t{num_heads_of(config, layer)} * kv_heads_of(config, layer).value_cols();
    if (plan.has_attention || layer == 0) {
      shapes[fmt::format("blk.{}.attn_output.weight", layer)] = {config.hidden_size, values};
    }
    if (plan.has_state) {
      shapes[fmt::format("blk.{}.ssm_out.weight", layer)] = {config.hidden_size,
                                                             config.state.num_channels()};
    }
  }
  for (const auto& [name, pair] : pairs) {
    shapes.try_emplace(name + ".weight", pair.shape());
  }
  std::vector<GgufTensor> seen;
  for (const auto& [name, shape] : shapes) {
    seen.push_back({.name = name, .type = find_ggml_type("F32"), .shape = shape, .bytes = {}});
  }
  for (const gguf::GgufArchitecture& one : gguf::gguf_architectures()) {
    if (one.name != architecture) continue;
    gguf::ModelReader reader(metadata, seen);
    one.read(reader);
    Rules out;
    for (const auto& [name, pair] : pairs) {
      const std::string layer(layer_of(name));
      const std::string stem =
          layer.empty() ? name : replaced(name, "blk." + layer + ".", "blk.{layer}.");
      const std::string stored = name + ".weight";
      const GgufTensor tensor = {
          .name = stored, .type = find_ggml_type("F32"), .shape = pair.shape(), .bytes = {}};
      out[name] = reader.rules_for(stem, layer, tensor);
    }
    return out;
  }
  throw Error(Code::kInternal, fmt::format("nothing reads {}", architecture));
}

void check_architecture(const GgufMetadata& metadata, const LoadedConfig& model) {
  const std::string_view given = metadata.text("general.architecture");
  const std::string_view expected = find_gguf_architecture(model);
  if (expected.empty()) {
    throw Error(Code::kUnsupported,
                fmt::format("adapters in GGUF files are not read for models of {}; use the "
                            "folder that it was made from",
                            model.config.architecture));
  }
  if (given == expected) return;
  refuse(fmt::format("general.architecture: the adapter is of models of {}, this one ({}) is of {}",
                     given, model.config.architecture, expected));
}

class Opener {
 public:
  Opener(const FileSource& files, AdapterConfig& config)
      : file_(parse_gguf(files.require(kGgufAdapterFile), files.describe(kGgufAdapterFile))),
        pairs_(pairs_of(file_)),
        has_alpha_(alpha_of(file_.metadata) != 0.0),
        config_(config),
        out_(std::make_unique<AdapterTensors>(files, files.describe(kGgufAdapterFile))) {}

  std::unique_ptr<Checkpoint> open(const LoadedConfig* model) {
    if (model == nullptr) {
      for (const auto& [name, pair] : pairs_) add(name, pair, {});
      return std::move(out_);
    }
    check_architecture(file_.metadata, *model);
    num_experts_ = model->config.experts.num_experts;
    const auto rules = rules_of(*model, file_.metadata.text("general.architecture"), pairs_);
    std::vector<std::string> unknown;
    for (const auto& [name, pair] : pairs_) {
      if (!add_by_rules(rules.at(name), name, pair)) unknown.push_back(name);
    }
    if (unknown.empty()) return std::move(out_);
    refuse(fmt::format("{} {} of no linear of models of {}: {}", unknown.size(),
                       unknown.size() == 1 ? "pair of tensors is" : "pairs of tensors are",
                       file_.metadata.text("general.architecture"),
                       first_names(unknown, kMaxListed)));
  }

 private:
  // One matrix of the file is one of the model, or several below each other.
  bool add_by_rules(std::span<const gguf::TensorRule> rules,
                    const std::string& name,
                    const Pair& pair) {
    const std::string_view layer = layer_of(name);
    const int64_t num_rows = pair.num_rows();
    int64_t num_taken = 0;
    bool is_known = false;
    for (const gguf::TensorRule& rule : rules) {
      if (rule.name.find_first_of("([") != std::string::npos) continue;
      is_known = true;
      std::vector<int32_t> rows;
      if (rule.order.rows) rows = rule.order.rows();
      for (const int32_t row : rows) {
        if (row < 0 || row >= num_rows) misfit(name, pair, std::ssize(rows));
      }
      num_taken += rows.empty() ? num_rows : std::ssize(rows);
      const std::string module = replaced(rule.name, "{layer}", layer);
      if (pair.is_stack()) {
        add_experts(name, module, pair);
      } else {
        add(module, pair, rows);
      }
    }
    if (is_known && num_taken != num_rows) misfit(name, pair, num_taken);
    return is_known;
  }

  [[noreturn]] static void misfit(const std::string& name, const Pair& pair, int64_t expected) {
    refuse(
        fmt::format("tensor {}{}: the model's matrix has {} rows, it has {}; was the adapter "
                    "made for another model?",
                    name, kB, expected, pair.num_rows()));
  }

  // Each expert's own pair.
  void add_experts(const std::string& name, const std::string& module, const Pair& pair) {
    if (module.find("{expert}") == std::string::npos) {
      throw Error(Code::kUnsupported,
                  fmt::format("tensor {}{}: of experts whose matrices are one parameter of the "
                              "model, {}; use the folder that it was made from",
                              name, kB, module));
    }
    const int64_t count = pair.b->shape.front();
    if (count != num_experts_) {
      refuse(
          fmt::format("tensor {}{}: the model has {} experts, it has {}; was the adapter made "
                      "for another model?",
                      name, kB, num_experts_, count));
    }
    for (int64_t expert = 0; expert < count; ++expert) {
      const GgufTensor a = slice(*pair.a, expert);
      const GgufTensor b = slice(*pair.b, expert);
      add(replaced(module, "{expert}", std::to_string(expert)), {.a = &a, .b = &b}, {});
    }
  }

  static GgufTensor slice(const GgufTensor& stack, int64_t index) {
    GgufTensor out = stack;
    const size_t size = stack.bytes.size() / static_cast<size_t>(stack.shape.front());
    out.shape.erase(out.shape.begin());
    out.bytes = stack.bytes.subspan(static_cast<size_t>(index) * size, size);
    return out;
  }

  void add(const std::string& module, const Pair& pair, std::span<const int32_t> rows) {
    const std::string prefix = "base_model.model." + module;
    if (pair.is_embedding()) {
      out_->add_transposed(prefix + ".lora_embedding_A", *pair.a);
      out_->add(prefix + ".lora_embedding_B", *pair.b, rows);
    } else {
      out_->add(prefix + ".lora_A.weight", *pair.a, {});
      out_->add(prefix + ".lora_B.weight", *pair.b, rows);
    }
    if (pair.rank() == config_.rank) return;
    config_.ranks.emplace_back(module, static_cast<int32_t>(pair.rank()));
    if (!has_alpha_) config_.alphas.emplace_back(module, static_cast<double>(pair.rank()));
  }

  const GgufFile file_;
  const Pairs pairs_;
  const bool has_alpha_;
  int32_t num_experts_ = 0;  // of the model
  AdapterConfig& config_;
  std::unique_ptr<AdapterTensors> out_;
};

}  // namespace

std::string gguf_adapter_config(const GgufFile& file) {
  check_fields(file.metadata);
  int64_t rank = 0;
  for (const auto& [name, pair] : pairs_of(file)) rank = std::max(rank, pair.rank());
  const double alpha = alpha_of(file.metadata);
  const Json config = {{"peft_type", "LORA"},
                       {"base_model_name_or_path", base_model_of(file.metadata)},
                       {"r", rank},
                       {"lora_alpha", alpha == 0.0 ? static_cast<double>(rank) : alpha}};
  return config.dump();
}

std::unique_ptr<Checkpoint> open_gguf_adapter(const FileSource& files,
                                              const LoadedConfig* model,
                                              AdapterConfig& config) {
  try {
    return Opener(files, config).open(model);
  } catch (const Error& error) {
    const std::string label = files.describe(kGgufAdapterFile);
    if (std::string_view(error.what()).starts_with(label)) throw;
    throw error.in(label);
  }
}

}  // namespace tgi
