// Adapters in GGUF files for every class of models that is written to such files: a matrix is found
// under the name that the writer has for it, and each of its rows where the model has it.
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/lora/adapter_files.h"
#include "engine/lora/adapter_source.h"
#include "engine/model/gguf_model_fields.h"
#include "engine/quantize/gguf/file_plan.h"
#include "engine/tensor/weight_element.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "tests/weights/gguf_files.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

struct Family {
  std::unique_ptr<FileSource> files;
  LoadedConfig model;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<SourceModel> source;
};

// Null: no GGUF file of this program can hold it.
std::unique_ptr<Family> open_family(const std::string& folder) {
  auto out = std::make_unique<Family>();
  out->files = open_folder(folder);
  out->model = load_model_config(*out->files);
  if (find_gguf_architecture(out->model).empty()) return nullptr;
  out->checkpoint = open_checkpoint(*out->files);
  out->source = std::make_unique<SourceModel>(out->model, *out->checkpoint);
  return out;
}

// B of a matrix: row r of the model is r, r + 0.5. As the plan has the rows.
std::vector<float> numbered_rows(const GgufTensorPlan& tensor) {
  std::vector<float> out;
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t of_model = tensor.rows.empty() ? row : tensor.rows[static_cast<size_t>(row)];
    out.push_back(static_cast<float>(of_model));
    out.push_back(static_cast<float>(of_model) + 0.5F);
  }
  return out;
}

}  // namespace

TEST_CASE("adapters in GGUF files fit every class that is written to such files") {
  const std::string golden = TGI_SOURCE_DIR "/tests/golden/families";
  std::set<std::string> architectures;
  const TempFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    INFO(entry.path().filename().string());
    std::unique_ptr<Family> family;
    GgufFilePlan plan;
    try {
      family = open_family(entry.path().string());
      if (family == nullptr) continue;
      plan = plan_gguf_tensors(*family->source, "x");
    } catch (const Error& error) {
      CHECK(error.code() != Code::kInternal);
      continue;  // no file can hold it
    }
    const ModuleSites sites(family->model);
    std::vector<GgufTestTensor> tensors;
    std::set<std::string> modules;
    for (const GgufTensorPlan& tensor : plan.tensors) {
      if (tensor.shape.size() != 2 || tensor.sources.size() != 1) continue;
      std::string module = tensor.sources.front()->name;
      if (module.ends_with(".weight")) module.resize(module.size() - 7);
      const ModuleTarget* const target = sites.find(module);
      if (target == nullptr || !target->refusal.empty() || target->is_embedding()) continue;
      const auto rows = static_cast<uint64_t>(tensor.shape[0]);
      const auto cols = static_cast<uint64_t>(tensor.shape[1]);
      tensors.push_back({tensor.name + ".lora_a",
                         {cols, 2},
                         0,
                         f32_bytes(std::vector<float>(static_cast<size_t>(2 * cols), 1.0F))});
      tensors.push_back({tensor.name + ".lora_b", {2, rows}, 0, f32_bytes(numbered_rows(tensor))});
      modules.insert(module);
    }
    REQUIRE(!tensors.empty());
    const std::string path = folder.file("a.gguf");
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        << gguf_file({text_value("general.architecture", plan.architecture),
                      text_value("general.type", "adapter"), text_value("adapter.type", "lora")},
                     tensors);
    const auto files = open_adapter_source(path);
    const AdapterFiles adapter = open_adapter(*files, family->model);
    std::set<std::string> found;
    for (const AdapterLinear& linear : adapter.linears) {
      found.insert(linear.module);
      const auto values = read_factor(*adapter.tensors, linear.b);
      bool in_order = true;
      for (size_t i = 0; i < values.size(); ++i) {
        in_order = in_order && values[i] == static_cast<float>(i) / 2.0F;
      }
      CHECK(in_order);
    }
    CHECK(found == modules);
    architectures.insert(plan.architecture);
  }
  CHECK(architectures.size() >= 20);
}

}  // namespace tgi
