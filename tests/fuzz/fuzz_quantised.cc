// Any bytes as a quantised checkpoint: a quantization_config, a zero byte, a safetensors file with
// one matrix. Loaded or refused with a typed error; what is loaded has as many elements as it says,
// all of them readable.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/weights/checkpoint.h"
#include "engine/weights/weight_format.h"

namespace tgi {
namespace {

class OneFile final : public FileSource {
 public:
  explicit OneFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name != "model.safetensors") return std::nullopt;
    return bytes_;
  }
  std::string describe(const std::string& name) const override { return name; }

 private:
  std::span<const std::byte> bytes_;
};

void use(const HostWeight& weight, Range rows, Range cols) {
  if (weight.rows != rows.count || weight.cols != cols.count) std::abort();
  double sum = 0.0;
  if (weight.format == "grouped") {
    const GroupedPart& part = weight.grouped;
    if (part.num_groups * part.group_size < weight.cols) std::abort();
    for (int64_t i = 0; i < weight.rows * weight.cols; ++i) sum += part.codes[i];
    for (int64_t i = 0; i < weight.rows * part.num_groups; ++i) {
      sum += static_cast<double>(part.scales[i]);
      if (part.zeros != nullptr) sum += part.zeros[i];
    }
  } else if (weight.owner != nullptr) {
    const auto* values = reinterpret_cast<const float*>(weight.parts.at(0).data);
    for (int64_t i = 0; i < weight.rows * weight.cols; ++i) sum += static_cast<double>(values[i]);
  }
  if (sum == 0.125) std::abort();  // so that it is computed; never so in the corpus
}

void load(const Json& config, const FileSource& files) {
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  const auto checkpoint = open_checkpoint(files);
  const MatrixSpec spec{
      .name = "model.layers.0.mlp.up_proj.weight", .prefix = "model.", .rows = 16, .cols = 64};
  const StoredForm form = format.form_of(config, spec);
  WeightProblems problems;
  const auto tensors = format.collect(config, *checkpoint, spec, problems);
  for (const std::string_view name : checkpoint->names()) {
    if (format.may_ignore != nullptr) {
      (void)format.may_ignore(*checkpoint, *checkpoint->find(name));
    }
  }
  if (!problems.empty()) return;
  for (const Range cols : {Range{0, 64}, {32, 32}, {8, 40}}) {
    const Range rows = {3, 9};
    for (const bool keeps_all : {false, true}) {
      const MatrixStorage storage =
          storage_of(form, cols, DType::kBF16, {.f8 = keeps_all, .tables = keeps_all});
      use(format.slice(config, *checkpoint, spec, tensors, rows, cols, storage), rows, cols);
    }
    use(format.slice(config, *checkpoint, spec, tensors, rows, cols, DType::kF32), rows, cols);
  }
}

}  // namespace
}  // namespace tgi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* text = reinterpret_cast<const char*>(data);
  const std::string_view all(text, size);
  const size_t end = all.find('\0');
  if (end == std::string_view::npos) return 0;
  const tgi::OneFile files(std::as_bytes(std::span(data, size)).subspan(end + 1));
  try {
    const tgi::Json quantization = tgi::parse_json(all.substr(0, end), 16);
    tgi::load({{"quantization_config", quantization}}, files);
  } catch (const tgi::Error& error) {
    const bool is_typed =
        error.code() == tgi::Code::kInvalidArgument || error.code() == tgi::Code::kUnsupported;
    if (!is_typed) std::abort();
  }
  return 0;
}
