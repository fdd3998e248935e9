// The demo model written in every storage format and served: what its status says, how much memory
// it takes, and which claims about its format are refused.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/files/safetensors_writer.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/inspect.h"
#include "engine/runtime/served_model.h"
#include "engine/tensor/half.h"
#include "engine/weights/checkpoint.h"
#include "engine/weights/weight_encoder.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi::quantised_model_test {
namespace {

std::vector<float> floats_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const auto bytes = checkpoint.bytes(tensor);
  std::vector<float> out(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * 2, 2);
    out[i] = bf16_to_f32(half);
  }
  return out;
}

// To the nearest integer, by the largest value of each group.
GroupedMatrix round_matrix(const WeightEncoder& encoder,
                           const std::vector<float>& w,
                           int64_t rows,
                           int64_t cols,
                           int32_t group_size) {
  GroupedMatrix out;
  out.rows = rows;
  out.cols = cols;
  out.bits = encoder.bits;
  out.group_size = group_size;
  const auto top = static_cast<float>((1 << (encoder.bits - 1)) - 1);
  for (int64_t begin = 0; begin < rows * cols; begin += group_size) {
    float largest = 1e-6F;
    for (int64_t i = begin; i < begin + group_size; ++i) {
      largest = std::max(largest, std::fabs(w[static_cast<size_t>(i)]));
    }
    out.scales.push_back(stored_scale(encoder, DType::kBF16, largest / top));
    for (int64_t i = begin; i < begin + group_size; ++i) {
      const float code = std::nearbyint(w[static_cast<size_t>(i)] / out.scales.back());
      out.codes.push_back(static_cast<int8_t>(std::clamp(code, -top, top)));
    }
  }
  return out;
}

void copy_file(const FileSource& files, const std::string& name, const std::string& folder) {
  const auto bytes = files.require(name);
  std::ofstream(folder + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write_quantised_demo(const WeightEncoder& encoder, const std::string& folder) {
  const auto files = open_demo_model();
  const auto checkpoint = open_checkpoint(*files);
  constexpr int32_t kGroupSize = 32;
  std::vector<TensorHeader> headers;
  std::vector<std::byte> data;
  const auto add = [&](const std::string& name, EncodedArray array) {
    headers.push_back({name, array.dtype, array.shape});
    data.insert(data.end(), array.bytes.begin(), array.bytes.end());
  };
  for (const std::string_view name : checkpoint->names()) {
    const StoredTensor& tensor = *checkpoint->find(name);
    if (tensor.shape.size() != 2 || name.find("layers.") == std::string_view::npos) {
      const auto bytes = checkpoint->bytes(tensor);
      add(std::string(name), {.suffix = "",
                              .dtype = "BF16",
                              .shape = tensor.shape,
                              .bytes = {bytes.begin(), bytes.end()}});
      continue;
    }
    const std::vector<float> w = floats_of(*checkpoint, tensor);
    const int64_t rows = tensor.shape[0];
    const int64_t cols = tensor.shape[1];
    const auto arrays =
        encoder.takes_floats
            ? encoder.encode_floats(w, rows, cols, DType::kBF16)
            : encoder.encode(round_matrix(encoder, w, rows, cols, kGroupSize), DType::kBF16);
    const std::string module(name.substr(0, name.size() - std::string_view(".weight").size()));
    for (const EncodedArray& array : arrays) add(module + "." + array.suffix, array);
  }
  SafetensorsWriter writer(folder + "/model.safetensors", headers);
  writer.append(data);
  writer.finish();
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    copy_file(*files, name, folder);
  }
  Json config = parse_json(files->require_text("config.json"));
  EncodedModel model;
  model.group_size = encoder.takes_floats ? 0 : kGroupSize;
  model.dense_modules = {"lm_head"};
  config["quantization_config"] = encoder.quantization_config(model);
  std::ofstream(folder + "/config.json") << config.dump(1);
}

ModelOptions options_for(const std::string& folder) {
  ModelOptions options;
  options.model = folder;
  options.backend = "cpu";
  options.num_threads = 1;
  options.kv_cache_bytes = 4 << 20;
  return options;
}

}  // namespace

TEST_CASE("the demo model is served from every storage format that encoders write") {
  const int64_t plain = ServedModel::load(options_for("demo"))->status().memory.weights;
  struct Expected {
    const char* encoder;
    const char* format;
    const char* held;
    int group_size;
    double part;  // of the memory of the plain model's layers that is taken at most
  };
  for (const Expected& expected : {Expected{"int8", "compressed-tensors", "int8", 32, 0.75},
                                   {"int4", "compressed-tensors", "int4", 32, 0.5},
                                   {"gptq", "gptq", "int4", 32, 0.5},
                                   {"awq", "awq", "int4", 32, 0.5},
                                   {"fp8", "compressed-tensors", "bf16", 0, 1.0}}) {
    INFO(expected.encoder);
    const TempFolder folder;
    write_quantised_demo(find_weight_encoder(expected.encoder), folder.path());
    ModelOptions options = options_for(folder.path());
    const ipc::ModelStatus status = ServedModel::load(options)->status();
    CHECK(status.quantize == expected.format);
    const ipc::ModelFacts facts = inspect_model(options);
    REQUIRE(facts.plans.size() == 1);
    CHECK(facts.plans[0].dtype == expected.format);
    CHECK(facts.plans[0].weights == status.memory.weights);
    CHECK(status.quantize_held == expected.held);
    CHECK(status.quantize_group_size == expected.group_size);
    CHECK(static_cast<double>(status.memory.weights) <= expected.part * static_cast<double>(plain));

    options.backend = "reference";
    CHECK(ServedModel::load(options)->status().quantize_held == "bf16");
    options.backend = "cpu";
    options.quantize = expected.format;
    CHECK_NOTHROW(ServedModel::check(options));
    options.quantize = "int8";
    CHECK_THROWS_WITH(ServedModel::check(options),
                      Catch::Contains("is quantised in the checkpoint already"));
    options.quantize = std::string(expected.format) == "awq" ? "gptq" : "awq";
    CHECK_THROWS_WITH(ServedModel::check(options),
                      Catch::Contains(fmt::format("the checkpoint is {}", expected.format)));
    options.quantize = "bitsandbytes-nf4";
    CHECK_THROWS_WITH(ServedModel::check(options),
                      Catch::Contains(fmt::format("the checkpoint is {}", expected.format)));
    options.quantize = "none";
    options.load_format = "dummy";
    CHECK_THROWS_WITH(ServedModel::load(options), Catch::Contains("take quantization_config out"));
  }
}

TEST_CASE("a plain checkpoint is not taken for a quantised one") {
  ModelOptions options = options_for("demo");
  options.quantize = "gptq";
  CHECK_THROWS_WITH(ServedModel::check(options),
                    Catch::Contains("quantize gptq: the checkpoint is not quantised") &&
                        Catch::Contains("tgi quantize"));
}

TEST_CASE("TGI's words for rounding while loading are ours of as many bits") {
  for (const auto& [word, rounding] : {std::pair{"eetq", "int8"},
                                       {"bitsandbytes", "int8"},
                                       {"bitsandbytes-nf4", "int4"},
                                       {"bitsandbytes-fp4", "int4"}}) {
    INFO(word);
    ModelOptions options = options_for("demo");
    options.quantize = word;
    CHECK(ServedModel::load(options)->status().quantize == rounding);
  }
}

}  // namespace tgi::quantised_model_test
