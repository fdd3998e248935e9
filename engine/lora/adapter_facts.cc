#include "engine/lora/adapter_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "engine/lora/expert_factors.h"
#include "engine/lora/gguf_adapter.h"
#include "engine/lora/module_patterns.h"
#include "engine/lora/tensor_names.h"

namespace tgi {

std::unique_ptr<Checkpoint> open_adapter_tensors(const FileSource& files,
                                                 const LoadedConfig* model,
                                                 AdapterConfig& config) {
  if (files.find(kGgufAdapterFile)) return open_gguf_adapter(files, model, config);
  static constexpr const char* kTorchFile = "adapter_model.bin";
  if (!files.find(kAdapterWeightsFile) && files.find(kTorchFile)) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: the daemon reads adapters from {}; tgi makes it of a .bin file "
                            "where it is given the folder (tgi adapters --load), and so does "
                            "PEFT with save_pretrained(..., safe_serialization=True)",
                            files.describe(kTorchFile), kAdapterWeightsFile));
  }
  return open_safetensors(files, kAdapterWeightsFile);
}

AdapterFacts adapter_facts(const AdapterConfig& config, const Checkpoint& tensors) {
  AdapterFacts facts;
  facts.base_model = config.base_model;
  std::set<std::string> targets;
  ModuleScales scales(config);
  for (const std::string_view name : tensors.names()) {
    const StoredTensor& tensor = *tensors.find(name);
    facts.size_bytes += static_cast<int64_t>(tensors.bytes(tensor).size());
    const AdapterTensorName parsed = parse_adapter_tensor(name);
    const bool is_a = parsed.kind == AdapterTensor::kA || parsed.kind == AdapterTensor::kEmbeddingA;
    if (!is_a || tensor.shape.empty()) continue;
    ++facts.num_linears;
    const auto parameters = parameters_of(config, parsed.module);
    if (parameters.empty()) {
      // Of a stack, one matrix for each expert, as of one.
      const int64_t rank =
          tensor.shape[tensor.shape.size() - std::min<size_t>(tensor.shape.size(), 2)];
      facts.max_rank = std::max(facts.max_rank, static_cast<int32_t>(rank));
      targets.emplace(parsed.module.substr(parsed.module.rfind('.') + 1));
    }
    // The tensor holds the ranks of all experts below each other.
    for (const std::string& parameter : parameters) {
      const std::string name = parameter.substr(parameter.rfind('.') + 1);
      const std::string whole = fmt::format("{}.{}", module_of_wrapper(parsed.module), name);
      facts.max_rank = std::max(facts.max_rank, scales.rank_of(whole));
      targets.insert(name);
    }
  }
  facts.targets.assign(targets.begin(), targets.end());
  return facts;
}

AdapterFacts read_adapter_facts(const FileSource& files) {
  AdapterConfig config = read_adapter_config(files);
  const auto tensors = open_adapter_tensors(files, nullptr, config);
  return adapter_facts(config, *tensors);
}

}  // namespace tgi
