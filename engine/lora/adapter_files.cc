#include "engine/lora/adapter_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/first_names.h"
#include "engine/lora/adapter_facts.h"
#include "engine/lora/base_copies.h"
#include "engine/lora/expert_factors.h"
#include "engine/lora/finite_bits.h"
#include "engine/lora/module_patterns.h"
#include "engine/lora/row_lengths.h"
#include "engine/lora/tensor_names.h"
#include "engine/model/weight_check.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

constexpr size_t kMaxListed = 12;
constexpr const char* kBias = ".bias";
constexpr std::string_view kNoSuchLinear = "of no linear of it";

// Checks one adapter. What is wrong with its tensors is gathered, so that one error tells all of
// it.
class Opener {
 public:
  Opener(const FileSource& files, const LoadedConfig& model, const Checkpoint* base)
      : files_(files), model_(model), base_(base), table_(model), sites_(model) {}

  AdapterFiles open() {
    out_.config = read_adapter_config(files_);
    out_.tensors = open_adapter_tensors(files_, &model_, out_.config);
    for (const std::string_view name : out_.tensors->names()) take(*out_.tensors->find(name));
    ModuleScales scales(out_.config);
    for (auto& [module, tensors] : modules_) add_linear(module, tensors, scales);
    for (auto& [module, tensors] : experts_) add_experts(module, tensors, scales);
    if (modules_.empty() && experts_.empty() && problems_.empty()) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: holds no tensor of a LoRA",
                                                      files_.describe(kAdapterWeightsFile)));
    }
    throw_problems();
    for (AdapterLinear& linear : out_.linears) {
      const auto module = modules_.find(linear.module);
      if (module != modules_.end()) add_vectors(linear, module->second);
    }
    throw_problems();
    // A copy of some rows of a bias is told from a trained one only here.
    std::erase_if(out_.linears,
                  [](const AdapterLinear& linear) { return !linear.a && linear.offset.empty(); });
    const auto site = [](const AdapterLinear& linear) {
      const SitePart& part = linear.parts.front();
      const bool is_behind = part.layer == SitePart::kNone;
      return std::tuple(is_behind, part);
    };
    std::ranges::sort(out_.linears, {}, site);
    out_.facts = adapter_facts(out_.config, *out_.tensors);
    return std::move(out_);
  }

 private:
  // Of a module.
  struct Tensors {
    const ModuleTarget* target = nullptr;
    const StoredTensor* a = nullptr;
    const StoredTensor* b = nullptr;
    const StoredTensor* magnitude = nullptr;
    const StoredTensor* b_bias = nullptr;
    const StoredTensor* bias = nullptr;

    const StoredTensor*& place_of(AdapterTensor kind) {
      switch (kind) {
        case AdapterTensor::kA:
        case AdapterTensor::kEmbeddingA:
          return a;
        case AdapterTensor::kB:
        case AdapterTensor::kEmbeddingB:
          return b;
        case AdapterTensor::kMagnitude:
          return magnitude;
        case AdapterTensor::kBBias:
          return b_bias;
        default:
          return bias;
      }
    }
    const StoredTensor& any() const {
      for (const StoredTensor* tensor : {a, b, magnitude, b_bias}) {
        if (tensor != nullptr) return *tensor;
      }
      return *bias;
    }
    bool is_bias_alone() const { return &any() == bias; }
  };

  void report(std::string_view what, std::string item, Code code = Code::kInvalidArgument) {
    problems_[std::string(what)].push_back(std::move(item));
    if (code == Code::kInvalidArgument) is_only_unsupported_ = false;
  }

  void take(const StoredTensor& tensor) {
    const AdapterTensorName name = parse_adapter_tensor(tensor.name);
    if (name.kind == AdapterTensor::kOther) {
      return report("not known", tensor.name, Code::kUnsupported);
    }
    if (const auto parameters = sites_.find_experts(module_of_wrapper(name.module));
        !parameters.empty()) {
      return take_experts(tensor, name);
    }
    const ModuleTarget* target = sites_.find(name.module);
    // What changes no answer of the base changes none when it is adapted: BERT's pooler.
    const bool is_bias = name.kind == AdapterTensor::kBias;
    if (target == nullptr) {
      const std::string stored = std::string(name.module) + (is_bias ? kBias : ".weight");
      if (is_of_task_head(model_, stored)) {
        return report("of the head of the model's task, whose adapters are not supported",
                      tensor.name, Code::kUnsupported);
      }
      if (is_ignored(model_, stored)) return check_numbers(tensor);
    }
    if (is_bias && is_base_bias(tensor, name.module)) return;
    if (target == nullptr) return report(kNoSuchLinear, tensor.name);
    if (name.kind == AdapterTensor::kWeight) return check_copy(tensor, *target);
    if (!target->refusal.empty()) return report(target->refusal, tensor.name, Code::kUnsupported);
    if (target->is_embedding() && name.kind == AdapterTensor::kMagnitude) {
      return report("of DoRA of an embedding, which is not supported", tensor.name,
                    Code::kUnsupported);
    }
    const bool is_expert = target->parts.front().expert != SitePart::kNone;
    if (is_expert && name.kind == AdapterTensor::kMagnitude) {
      return report("of DoRA of an expert, which is not supported", tensor.name,
                    Code::kUnsupported);
    }
    if (target->is_of_heads() && name.kind != AdapterTensor::kA && name.kind != AdapterTensor::kB) {
      return report(
          "of DoRA or a bias of what latents become keys and values by, which is not "
          "supported",
          tensor.name, Code::kUnsupported);
    }
    if (target->is_embedding() != is_of_embedding(name.kind)) {
      return report(target->is_embedding() ? "of an embedding, and named as those of linears are"
                                           : "of a linear, and named as those of embeddings are",
                    tensor.name);
    }
    Tensors& tensors = modules_[std::string(name.module)];
    const StoredTensor*& place = tensors.place_of(name.kind);
    if (place != nullptr) {
      return report("of a module that another tensor is of, too", tensor.name);
    }
    tensors.target = target;
    place = &tensor;
  }

  // Of a module that holds all experts of a layer.
  void take_experts(const StoredTensor& tensor, const AdapterTensorName& name) {
    const bool is_a = name.kind == AdapterTensor::kA;
    if (!is_a && name.kind != AdapterTensor::kB) {
      return report("of experts, and not one of a product's, which is not supported", tensor.name,
                    Code::kUnsupported);
    }
    Tensors& tensors = experts_[std::string(name.module)];
    const StoredTensor*& place = tensors.place_of(name.kind);
    if (place != nullptr) {
      return report("of a module that another tensor is of, too", tensor.name);
    }
    place = &tensor;
  }

  // Null: the module has none, in the model or in the base's checkpoint.
  const StoredTensor* base_bias(std::string_view module) const {
    const ModuleTarget* bias = sites_.find(std::string(module) + kBias);
    if (bias == nullptr || base_ == nullptr) return nullptr;
    return find_by_any_name(*base_, bias->name, model_.architecture->prefix);
  }

  // Those of its tensor's that are the module's.
  std::vector<float> rows_of_bias(const std::string& module,
                                  size_t outputs,
                                  std::vector<float> values) const {
    const ModuleTarget* bias = sites_.find(module + kBias);
    if (bias == nullptr || bias->outputs != static_cast<int64_t>(outputs)) return values;
    const auto first = static_cast<size_t>(bias->first);
    if (values.size() <= outputs || values.size() - outputs < first) return values;
    const auto begin = values.begin() + bias->first;
    return {begin, begin + bias->outputs};
  }

  // Whether there is nothing more to do with a bias of a module: it is a copy, or was refused. That
  // of no linear can only be a copy: with `bias: all` PEFT writes those of norms, too.
  bool is_base_bias(const StoredTensor& tensor, std::string_view module) {
    const StoredTensor* original = base_bias(module);
    if (original == nullptr) {
      report(base_ == nullptr ? "a bias, which can't be compared with the base's"
                              : "a bias where the model has none",
             tensor.name);
      return true;
    }
    if (is_copy(*out_.tensors, tensor, *base_, *original)) return true;
    const ModuleTarget* target = sites_.find(module);
    if (target != nullptr && target->refusal.empty()) return false;
    report("a bias that is not the base's, and of no linear", tensor.name, Code::kUnsupported);
    return true;
  }

  void check_copy(const StoredTensor& tensor, const ModuleTarget& target) {
    if (base_ == nullptr) {
      return report("a whole weight, which can't be compared with the base's", tensor.name);
    }
    const StoredTensor* original =
        find_by_any_name(*base_, target.name, model_.architecture->prefix);
    const bool is_same = original != nullptr && is_copy(*out_.tensors, tensor, *base_, *original);
    if (original != nullptr) base_->release(*original);
    if (is_same) return;
    report(
        "a whole weight that is not the base's, which is not supported; merge the adapter into the "
        "model instead",
        tensor.name, Code::kUnsupported);
  }

  // Whether it has that shape.
  bool check_tensor(const StoredTensor& tensor, const std::vector<int64_t>& expected) {
    if (tensor.shape != expected) {
      report("misshapen", fmt::format("{}: expected {}, got {}", tensor.name, shape_text(expected),
                                      shape_text(tensor.shape)));
      return false;
    }
    check_numbers(tensor);
    return true;
  }

  void check_numbers(const StoredTensor& tensor) {
    if (!tensor.dtype) {
      report("of an element type that can't be used",
             fmt::format("{}: {}", tensor.name, tensor.dtype_name), Code::kUnsupported);
    } else if (!are_finite(out_.tensors->bytes(tensor), *tensor.dtype)) {
      report("not finite: it holds a NaN or an infinity", tensor.name);
    }
  }

  void add_linear(const std::string& module, const Tensors& tensors, ModuleScales& scales) {
    if (!tensors.is_bias_alone() && !is_complete(tensors)) return;
    if (!taken_.insert(tensors.target).second) {
      return report("of a linear that another module is, too", tensors.any().name);
    }
    AdapterLinear linear{.module = module, .parts = tensors.target->parts};
    const int64_t outputs = tensors.target->outputs;
    if (!tensors.is_bias_alone()) {
      const std::string key = scale_key(out_.config, module);
      linear.rank = scales.rank_of(key);
      linear.scale = scales.scale_of(key);
      const bool are_shaped = check_tensor(*tensors.a, {linear.rank, tensors.target->inputs});
      if (!check_tensor(*tensors.b, {outputs, linear.rank}) || !are_shaped) return;
      linear.a = whole_factor(*tensors.a);
      linear.b = whole_factor(*tensors.b);
    }
    for (const StoredTensor* vector : {tensors.magnitude, tensors.b_bias, tensors.bias}) {
      if (vector != nullptr) check_tensor(*vector, {outputs});
    }
    out_.linears.push_back(std::move(linear));
  }

  // A product for each expert of one of the module's parameters (expert_factors.h).
  void add_experts(const std::string& module, const Tensors& tensors, ModuleScales& scales) {
    if (tensors.a == nullptr || tensors.b == nullptr) {
      return report(fmt::format("without its {}", tensors.a == nullptr ? "lora_A" : "lora_B"),
                    tensors.any().name);
    }
    const std::string_view plain = module_of_wrapper(module);
    const auto fit = fit_experts({.a = *tensors.a,
                                  .b = *tensors.b,
                                  .parameters = sites_.find_experts(plain),
                                  .num_experts = sites_.num_experts(),
                                  .has_old_order = out_.config.has_old_expert_order});
    if (!fit) {
      return report(
          "of experts, and of the shape of none of their matrices",
          fmt::format("{} {} with {} {}, expected {}", tensors.a->name,
                      shape_text(tensors.a->shape), tensors.b->name, shape_text(tensors.b->shape),
                      shapes_of_experts(sites_.find_experts(plain), sites_.num_experts())));
    }
    const std::string key = expert_scale_key(plain, *fit->parameter);
    const int32_t rank = scales.rank_of(key);
    if (fit->rank != rank) {
      return report("misshapen",
                    fmt::format("{}: expected rank {}, got {}", tensors.a->name, rank, fit->rank));
    }
    check_numbers(*tensors.a);
    check_numbers(*tensors.b);
    for (int32_t expert = 0; expert < sites_.num_experts(); ++expert) {
      for (const ExpertParameter::Piece& piece : fit->parameter->pieces) {
        const ModuleTarget* target = piece.targets[static_cast<size_t>(expert)];
        if (!taken_.insert(target).second) {
          return report("of experts that another module is, too", tensors.a->name);
        }
        out_.linears.push_back(
            {.module = fmt::format("{}.{}.{}", plain, expert, fit->parameter->name),
             .a = fit->a_of(expert),
             .b = fit->b_of(expert, piece.first_output, target->outputs),
             .rank = rank,
             .scale = scales.scale_of(key),
             .parts = target->parts});
      }
    }
  }

  // A module with a product has all that the config says, and no more.
  bool is_complete(const Tensors& tensors) {
    const auto check = [&](const StoredTensor* tensor, bool expected, std::string_view name) {
      if ((tensor != nullptr) == expected) return true;
      if (expected) {
        report(fmt::format("without its {}", name), tensors.any().name);
      } else {
        report(fmt::format("a {}, which {} does not ask for", name, kAdapterConfigFile),
               tensor->name);
      }
      return false;
    };
    return check(tensors.a, true, "lora_A") && check(tensors.b, true, "lora_B") &&
           check(tensors.magnitude, out_.config.is_dora, "lora_magnitude_vector") &&
           check(tensors.b_bias, out_.config.has_b_biases && !tensors.target->is_embedding(),
                 "lora_B.bias");
  }

  // What becomes of W x + bias, with g = magnitude / ||W + scale B A||, is
  // g (W x + scale B A x) + new bias: the gain is g, and the offset new bias - g * bias.
  void add_vectors(AdapterLinear& linear, const Tensors& tensors) {
    if (tensors.magnitude == nullptr && tensors.b_bias == nullptr && tensors.bias == nullptr) {
      return;
    }
    const auto outputs = static_cast<size_t>(tensors.target->outputs);
    const auto values_or_zeros = [&](const Checkpoint* checkpoint, const StoredTensor* tensor) {
      return tensor == nullptr ? std::vector<float>(outputs, 0.0F)
                               : read_elements(checkpoint->bytes(*tensor), *tensor->dtype);
    };
    if (tensors.magnitude != nullptr) linear.gain = gains(linear, tensors);
    const StoredTensor* original = base_bias(linear.module);
    const auto old_bias = rows_of_bias(linear.module, outputs, values_or_zeros(base_, original));
    const auto new_bias =
        tensors.bias == nullptr ? old_bias : values_or_zeros(out_.tensors.get(), tensors.bias);
    const auto b_bias = values_or_zeros(out_.tensors.get(), tensors.b_bias);
    if (old_bias.size() != outputs) {
      return report("of a linear whose bias in the base is of another size", tensors.any().name);
    }
    std::vector<float> offset(outputs);
    for (size_t i = 0; i < outputs; ++i) {
      const double gain = linear.gain.empty() ? 1.0 : static_cast<double>(linear.gain[i]);
      offset[i] = static_cast<float>(static_cast<double>(new_bias[i]) -
                                     gain * static_cast<double>(old_bias[i]) +
                                     static_cast<double>(linear.scale * b_bias[i]));
    }
    const auto is_zero = [](float value) { return value == 0.0F; };
    if (!std::ranges::all_of(offset, is_zero)) linear.offset = std::move(offset);
  }

  std::vector<float> gains(const AdapterLinear& linear, const Tensors& tensors) {
    if (base_ == nullptr) {
      report("of DoRA, which needs the base's weights, and they are not here",
             tensors.magnitude->name);
      return {};
    }
    std::vector<float> out =
        read_elements(out_.tensors->bytes(*tensors.magnitude), *tensors.magnitude->dtype);
    const std::vector<float> lengths =
        changed_row_lengths(model_, table_, *base_, *tensors.target, *out_.tensors,
                            {.a = tensors.a, .b = tensors.b, .scale = linear.scale});
    bool is_finite = true;
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] /= lengths[i];
      is_finite = is_finite && std::isfinite(out[i]);
    }
    if (!is_finite) {
      report("of a linear with outputs whose weights are all 0, whose size can't be set",
             tensors.magnitude->name);
    }
    return out;
  }

  void throw_problems() const {
    if (problems_.empty()) return;
    std::string text =
        fmt::format("{}: does not fit this model ({})", files_.describe(kAdapterWeightsFile),
                    model_.config.architecture);
    for (const auto& [what, items] : problems_) {
      text += fmt::format("; {} {} {}: {}", items.size(),
                          items.size() == 1 ? "tensor is" : "tensors are", what,
                          first_names(items, kMaxListed));
    }
    if (!out_.config.base_model.empty() && !is_only_unsupported_) {
      text += fmt::format("; {} says that it was made for {}", kAdapterConfigFile,
                          out_.config.base_model);
    }
    throw Error(is_only_unsupported_ ? Code::kUnsupported : Code::kInvalidArgument, text);
  }

  const FileSource& files_;
  const LoadedConfig& model_;
  const Checkpoint* base_;
  const TensorTable table_;
  const ModuleSites sites_;
  AdapterFiles out_;
  std::map<std::string, Tensors> modules_;
  std::map<std::string, Tensors> experts_;  // of modules that hold all of a layer
  std::set<const ModuleTarget*> taken_;
  std::map<std::string, std::vector<std::string>> problems_;
  bool is_only_unsupported_ = true;
};

}  // namespace

AdapterFiles open_adapter(const FileSource& files,
                          const LoadedConfig& model,
                          const Checkpoint* base) {
  return Opener(files, model, base).open();
}

}  // namespace tgi
