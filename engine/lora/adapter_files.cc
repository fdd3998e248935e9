#include "engine/lora/adapter_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "engine/lora/base_copies.h"
#include "engine/lora/finite_bits.h"
#include "engine/lora/module_patterns.h"
#include "engine/lora/tensor_names.h"

namespace tgi {
namespace {

constexpr size_t kMaxListed = 12;
constexpr std::string_view kNoSuchLinear = "of no linear of it";

// Checks one adapter. What is wrong with its tensors is gathered, so that one error tells all of
// it.
class Opener {
 public:
  Opener(const FileSource& files, const LoadedConfig& model, const Checkpoint* base)
      : files_(files), model_(model), base_(base), sites_(model) {}

  AdapterFiles open() {
    out_.config = read_adapter_config(files_);
    out_.tensors = open_tensors(files_);
    for (const std::string_view name : out_.tensors->names()) take(*out_.tensors->find(name));
    ModuleScales scales(out_.config);
    for (auto& [module, pair] : pairs_) add_linear(module, pair, scales);
    if (pairs_.empty() && problems_.empty()) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: holds no tensor of a LoRA",
                                                      files_.describe(kAdapterWeightsFile)));
    }
    throw_problems();
    const auto site = [](const AdapterLinear& linear) {
      const SitePart& part = linear.parts.front();
      const bool is_head = part.layer == SitePart::kHead;
      return std::tuple(is_head, part.layer, part.linear, part.role);
    };
    std::ranges::sort(out_.linears, {}, site);
    return std::move(out_);
  }

  static std::unique_ptr<Checkpoint> open_tensors(const FileSource& files) {
    static constexpr const char* kTorchFile = "adapter_model.bin";
    if (!files.find(kAdapterWeightsFile) && files.find(kTorchFile)) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: adapters are read from {}; convert it, in PEFT with "
                              "save_pretrained(..., safe_serialization=True)",
                              files.describe(kTorchFile), kAdapterWeightsFile));
    }
    return open_safetensors(files, kAdapterWeightsFile);
  }

 private:
  struct Pair {
    const ModuleTarget* target = nullptr;
    const StoredTensor* a = nullptr;
    const StoredTensor* b = nullptr;
  };

  void report(std::string_view what, std::string item, Code code = Code::kInvalidArgument) {
    problems_[std::string(what)].push_back(std::move(item));
    if (code == Code::kInvalidArgument) is_only_unsupported_ = false;
  }

  void take(const StoredTensor& tensor) {
    const AdapterTensorName name = parse_adapter_tensor(tensor.name);
    if (const std::string_view refusal = refusal_of(name.kind); !refusal.empty()) {
      return report(refusal, tensor.name, Code::kUnsupported);
    }
    const ModuleTarget* target = sites_.find(name.module);
    if (target == nullptr) return report(kNoSuchLinear, tensor.name);
    if (name.kind == AdapterTensor::kWeight) return check_copy(tensor, *target);
    if (!target->refusal.empty()) return report(target->refusal, tensor.name, Code::kUnsupported);
    Pair& pair = pairs_[std::string(name.module)];
    const StoredTensor*& place = name.kind == AdapterTensor::kA ? pair.a : pair.b;
    if (place != nullptr) {
      return report("of a module that another tensor is of, too", tensor.name);
    }
    pair.target = target;
    place = &tensor;
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

  void check_tensor(const StoredTensor& tensor, const std::vector<int64_t>& expected) {
    if (tensor.shape != expected) {
      report("misshapen", fmt::format("{}: expected {}, got {}", tensor.name, shape_text(expected),
                                      shape_text(tensor.shape)));
    } else if (!tensor.dtype) {
      report("of an element type that can't be used",
             fmt::format("{}: {}", tensor.name, tensor.dtype_name), Code::kUnsupported);
    } else if (!are_finite(out_.tensors->bytes(tensor), *tensor.dtype)) {
      report("not finite: it holds a NaN or an infinity", tensor.name);
    }
  }

  void add_linear(const std::string& module, const Pair& pair, ModuleScales& scales) {
    if (pair.a == nullptr) return report("without its lora_A", pair.b->name);
    if (pair.b == nullptr) return report("without its lora_B", pair.a->name);
    if (!taken_.insert(pair.target).second) {
      return report("of a linear that another module is, too", pair.a->name);
    }
    const int32_t rank = scales.rank_of(module);
    check_tensor(*pair.a, {rank, pair.target->inputs});
    check_tensor(*pair.b, {pair.target->outputs, rank});
    out_.linears.push_back({.module = module,
                            .a = pair.a,
                            .b = pair.b,
                            .rank = rank,
                            .scale = scales.scale_of(module),
                            .parts = pair.target->parts});
  }

  void throw_problems() const {
    if (problems_.empty()) return;
    std::string text =
        fmt::format("{}: does not fit this model ({})", files_.describe(kAdapterWeightsFile),
                    model_.config.architecture);
    for (const auto& [what, items] : problems_) {
      text += fmt::format("; {} {} {}: ", items.size(),
                          items.size() == 1 ? "tensor is" : "tensors are", what);
      for (size_t i = 0; i < std::min(items.size(), kMaxListed); ++i) {
        text += (i == 0 ? "" : ", ") + items[i];
      }
      if (items.size() > kMaxListed) text += fmt::format(" and {} more", items.size() - kMaxListed);
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
  const ModuleSites sites_;
  AdapterFiles out_;
  std::map<std::string, Pair> pairs_;  // by modules
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

AdapterFacts read_adapter_facts(const FileSource& files) {
  const AdapterConfig config = read_adapter_config(files);
  const auto tensors = Opener::open_tensors(files);
  AdapterFacts facts;
  facts.base_model = config.base_model;
  std::set<std::string> targets;
  for (const std::string_view name : tensors->names()) {
    const StoredTensor& tensor = *tensors->find(name);
    facts.size_bytes += static_cast<int64_t>(tensors->bytes(tensor).size());
    const AdapterTensorName parsed = parse_adapter_tensor(name);
    if (parsed.kind != AdapterTensor::kA || tensor.shape.empty()) continue;
    ++facts.num_linears;
    facts.max_rank = std::max(facts.max_rank, static_cast<int32_t>(tensor.shape.front()));
    targets.emplace(parsed.module.substr(parsed.module.rfind('.') + 1));
  }
  facts.targets.assign(targets.begin(), targets.end());
  return facts;
}

}  // namespace tgi
