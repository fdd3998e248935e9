// Floats of 4 bits in compressed-tensors and in Model Optimizer's checkpoints, and what else the
// latter has: every code and scale, parts of a matrix, which modules are plain, what is refused.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/tensor/float8.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

constexpr const char* kUp = "model.layers.0.mlp.up_proj";
constexpr int64_t kUpRows = 6;
constexpr int64_t kUpCols = 96;

MatrixSpec named_matrix(const std::string& module, MatrixKind kind = MatrixKind::kLayer) {
  return {.name = module + ".weight",
          .prefix = "model.",
          .rows = kUpRows,
          .cols = kUpCols,
          .kind = kind};
}

// One matrix of a checkpoint.
struct Fp4File {
  Json quantization;
  int64_t group_size = 16;
  bool divides = false;
  std::string weight_name = "weight";
  std::string scale_of_all_name;  // empty: there is none
  std::vector<TestTensor> tensors;

  TestTensor& tensor(const std::string& suffix) {
    for (TestTensor& one : tensors) {
      if (one.name == fmt::format("{}.{}", kUp, suffix)) return one;
    }
    FAIL("no tensor " << suffix);
    return tensors.front();
  }
  void erase(const std::string& suffix) {
    std::erase_if(tensors, [&](const TestTensor& one) {
      return one.name == fmt::format("{}.{}", kUp, suffix);
    });
  }

  Json config() const { return {{"quantization_config", quantization}}; }
  MemorySource files() const {
    return MemorySource({{"model.safetensors", build_safetensors(tensors)}});
  }

  uint8_t byte(const std::string& suffix, int64_t index) const {
    for (const TestTensor& one : tensors) {
      if (one.name == fmt::format("{}.{}", kUp, suffix))
        return static_cast<uint8_t>(one.data[static_cast<size_t>(index)]);
    }
    return 0;
  }
  float scale_of_all() const {
    float value = 1.0F;
    for (const TestTensor& one : tensors) {
      if (!scale_of_all_name.empty() && one.name == fmt::format("{}.{}", kUp, scale_of_all_name))
        std::memcpy(&value, one.data.data(), sizeof value);
    }
    return value;
  }
  // As the format's description says it.
  float value(int64_t row, int64_t col) const {
    constexpr float kValues[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const uint8_t both = byte(weight_name, (row * kUpCols + col) / 2);
    const int code = col % 2 == 0 ? both & 15 : both >> 4;
    const float own = code >= 8 ? -kValues[code - 8] : kValues[code];
    const uint8_t scale = byte("weight_scale", row * (kUpCols / group_size) + col / group_size);
    if (group_size == 32) return std::ldexp(own, scale - 127);
    const float decoded = e4m3_to_f32(scale);
    return own * (divides ? decoded / scale_of_all() : decoded * scale_of_all());
  }
};

void add_arrays(Fp4File& file) {
  std::string codes;
  for (int64_t i = 0; i < kUpRows * kUpCols / 2; ++i) {
    codes.push_back(static_cast<char>(i * 37 % 256));
  }
  std::string scales;
  for (int64_t i = 0; i < kUpRows * kUpCols / file.group_size; ++i) {
    // Of e4m3 all but the last, NaN, of e8m0 some.
    scales.push_back(static_cast<char>(file.group_size == 16 ? i * 7 % 127 : 120 + i % 10));
  }
  const auto name = [](const std::string& suffix) { return fmt::format("{}.{}", kUp, suffix); };
  file.tensors.push_back({name(file.weight_name), "U8", "[6,48]", codes});
  file.tensors.push_back({name("weight_scale"), file.group_size == 16 ? "F8_E4M3" : "U8",
                          fmt::format("[6,{}]", kUpCols / file.group_size), scales});
  if (file.scale_of_all_name.empty()) return;
  file.tensors.push_back({name(file.scale_of_all_name), "F32", "[1]", f32_bytes({0.75F})});
}

Json compressed_fp4(const char* format, const char* strategy, int64_t group_size) {
  const Json weights = {{"num_bits", 4},        {"type", "float"},
                        {"strategy", strategy}, {"group_size", group_size},
                        {"symmetric", true},    {"dynamic", false}};
  const Json group = {{"targets", {"Linear"}}, {"weights", weights}};
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", group}}}};
}

Fp4File compressed_nvfp4() {
  Fp4File out{.quantization = compressed_fp4("nvfp4-pack-quantized", "tensor_group", 16),
              .divides = true,
              .weight_name = "weight_packed",
              .scale_of_all_name = "weight_global_scale",
              .tensors = {}};
  add_arrays(out);
  return out;
}

Fp4File compressed_mxfp4() {
  Fp4File out{.quantization = compressed_fp4("mxfp4-pack-quantized", "group", 32),
              .group_size = 32,
              .weight_name = "weight_packed",
              .scale_of_all_name = {},
              .tensors = {}};
  add_arrays(out);
  return out;
}

Json modelopt(const char* algo) {
  return {{"quant_method", "modelopt"}, {"quant_algo", algo}, {"ignore", {"lm_head"}}};
}

Fp4File modelopt_nvfp4() {
  Fp4File out{
      .quantization = modelopt("NVFP4"), .scale_of_all_name = "weight_scale_2", .tensors = {}};
  add_arrays(out);
  return out;
}

Fp4File modelopt_mxfp4() {
  Fp4File out{.quantization = modelopt("W4A8_MXFP4_FP8"),
              .group_size = 32,
              .scale_of_all_name = {},
              .tensors = {}};
  add_arrays(out);
  return out;
}

std::vector<Fp4File> all_fp4_files() {
  return {compressed_nvfp4(), compressed_mxfp4(), modelopt_nvfp4(), modelopt_mxfp4()};
}

WeightProblems fp4_problems(const Fp4File& file, const MatrixSpec& spec = named_matrix(kUp)) {
  const MemorySource files = file.files();
  const auto checkpoint = open_checkpoint(files);
  const Json config = file.config();
  WeightProblems problems;
  find_weight_format(JsonReader(config, "")).collect(config, *checkpoint, spec, problems);
  return problems;
}

HostWeight fp4_block(const Fp4File& file, Range rows, Range cols) {
  const MemorySource files = file.files();
  const auto checkpoint = open_checkpoint(files);
  const Json config = file.config();
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  const MatrixSpec spec = named_matrix(kUp);
  WeightProblems problems;
  const auto tensors = format.collect(config, *checkpoint, spec, problems);
  REQUIRE(problems.empty());
  return format.slice(config, *checkpoint, spec, tensors, rows, cols,
                      storage_of(format.form_of(config, spec), cols, DType::kBF16));
}

std::string fp4_failure(const Fp4File& file) {
  try {
    (void)fp4_block(file, {0, kUpRows}, {0, kUpCols});
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "";
}

std::string config_failure(const Json& quantization) {
  const Json config = {{"quantization_config", quantization}};
  try {
    (void)find_weight_format(JsonReader(config, ""));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string form_in(const Json& quantization,
                    const std::string& module,
                    MatrixKind kind = MatrixKind::kLayer) {
  const Json config = {{"quantization_config", quantization}};
  const WeightFormat& format = find_weight_format(JsonReader(config, ""));
  return format.form_of(config, named_matrix(module, kind)).quantised_as;
}

}  // namespace

TEST_CASE("floats of 4 bits are read as integers times scales, whole and in parts, exactly") {
  for (const Fp4File& file : all_fp4_files()) {
    INFO(file.quantization);
    for (const auto& [rows, cols] : {std::pair{Range{0, 6}, Range{0, 96}},
                                     {Range{1, 3}, Range{32, 64}},
                                     {Range{5, 1}, Range{64, 32}}}) {
      const HostWeight got = fp4_block(file, rows, cols);
      REQUIRE(got.format == "grouped");
      REQUIRE(got.grouped.group_size == file.group_size);
      CHECK(got.grouped.zeros == nullptr);
      for (int64_t row = 0; row < rows.count; ++row) {
        for (int64_t col = 0; col < cols.count; ++col) {
          const float scale =
              got.grouped.scales[row * got.grouped.num_groups + col / file.group_size];
          const int code = got.grouped.codes[row * cols.count + col];
          CHECK(scale * static_cast<float>(code) == file.value(rows.begin + row, cols.begin + col));
        }
      }
    }
  }
}

TEST_CASE("columns that are cut within a group of floats of 4 bits are decoded") {
  for (const Fp4File& file : all_fp4_files()) {
    INFO(file.quantization);
    const Range rows = {0, 6};
    for (const Range& cols : {Range{40, 56}, Range{7, 31}}) {
      const HostWeight got = fp4_block(file, rows, cols);
      REQUIRE(got.format == "dense");
      const auto* values = reinterpret_cast<const float*>(got.parts.at(0).data);
      for (int64_t i = 0; i < rows.count * cols.count; ++i) {
        CHECK(values[i] == file.value(i / cols.count, cols.begin + i % cols.count));
      }
    }
  }
}

TEST_CASE("arrays of floats of 4 bits that are missing or do not fit are told all at once") {
  for (Fp4File file : all_fp4_files()) {
    INFO(file.quantization);
    file.tensor("weight_scale").shape = fmt::format("[{},6]", kUpCols / file.group_size);
    const std::string shape = fmt::format("({}, 6)", kUpCols / file.group_size);
    CHECK(fp4_problems(file).misshapen ==
          std::vector<std::string>{fmt::format("{}.weight_scale: expected (6, {}), got {}", kUp,
                                               kUpCols / file.group_size, shape)});
    file.erase("weight_scale");
    CHECK(fp4_problems(file).missing ==
          std::vector<std::string>{fmt::format("{}.weight_scale", kUp)});
    MatrixSpec narrow = named_matrix(kUp);
    narrow.cols = 72;
    CHECK(fp4_problems(file, narrow).misshapen ==
          std::vector<std::string>{
              fmt::format("{}.weight: 72 columns can't be in groups of {}", kUp, file.group_size)});
  }
  for (Fp4File file : {compressed_nvfp4(), modelopt_nvfp4()}) {
    file.tensor("weight_scale").dtype = "U8";
    CHECK(fp4_problems(file).unsupported ==
          std::vector<std::string>{fmt::format("{}.weight_scale: expected F8_E4M3, got U8", kUp)});
    file.tensor("weight_scale").dtype = "F8_E4M3";
    file.erase(file.scale_of_all_name);
    CHECK(fp4_problems(file).missing ==
          std::vector<std::string>{fmt::format("{}.{}", kUp, file.scale_of_all_name)});
  }
}

TEST_CASE("nvfp4 by group alone has one scale for all where the file has it") {
  Fp4File file = compressed_nvfp4();
  file.quantization["config_groups"]["group_0"]["weights"]["strategy"] = "group";
  const auto first_scale = [](const Fp4File& one) {
    return fp4_block(one, {0, 1}, {16, 16}).grouped.scales[0];
  };
  const float with = first_scale(file);
  file.erase("weight_global_scale");
  CHECK(with == 2 * first_scale(file) / 0.75F / 2);
}

TEST_CASE("scales of floats of 4 bits that are no numbers are refused with their place") {
  const auto with_scale = [](Fp4File file, int byte) {
    file.tensor("weight_scale").data[3] = static_cast<char>(byte);
    return fp4_failure(file);
  };
  for (const Fp4File& file : {compressed_nvfp4(), modelopt_nvfp4()}) {
    for (const int nan : {0x7F, 0xFF}) {
      CHECK_THAT(with_scale(file, nan),
                 Catch::StartsWith(fmt::format("tensor {}.weight_scale: element 3 is ", kUp)));
    }
    CHECK(with_scale(file, 0x80) == "");
  }
  for (const Fp4File& file : {compressed_mxfp4(), modelopt_mxfp4()}) {
    CHECK_THAT(with_scale(file, 255), Catch::Contains("weight_scale: element 3 is 255"));
    CHECK(with_scale(file, 0) == "");
  }
  const auto with_scale_of_all = [](Fp4File file, float value) {
    file.tensor(file.scale_of_all_name).data = f32_bytes({value});
    return fp4_failure(file);
  };
  for (const Fp4File& file : {compressed_nvfp4(), modelopt_nvfp4()}) {
    for (const float bad : {std::nanf(""), INFINITY}) {
      CHECK_THAT(with_scale_of_all(file, bad),
                 Catch::Contains(file.scale_of_all_name) && Catch::Contains("finite number"));
    }
  }
  CHECK_THAT(with_scale_of_all(compressed_nvfp4(), 0.0F),
             Catch::Contains("weight_global_scale: is 0, but the scales"));
  CHECK_THAT(with_scale_of_all(compressed_nvfp4(), 1e-38F),
             Catch::Contains("weight_scale: element ") && Catch::Contains("divided by"));
  CHECK_THAT(with_scale_of_all(modelopt_nvfp4(), 3e38F),
             Catch::Contains("weight_scale: element ") && Catch::Contains("multiplied with"));
  CHECK(with_scale_of_all(modelopt_nvfp4(), 0.0F) == "");  // a matrix of zeros
}

TEST_CASE("what compressed-tensors says of floats of 4 bits has to fit their layout") {
  const Json nvfp4 = compressed_fp4("nvfp4-pack-quantized", "tensor_group", 16);
  const Json mxfp4 = compressed_fp4("mxfp4-pack-quantized", "group", 32);
  const auto failure = [](Json quantization, const char* key, const Json& value) {
    quantization["config_groups"]["group_0"]["weights"][key] = value;
    return config_failure(quantization);
  };
  CHECK(config_failure(nvfp4) == "");
  CHECK(failure(nvfp4, "scale_dtype", "torch.float8_e4m3fn") == "");
  CHECK(failure(mxfp4, "scale_dtype", "torch.uint8") == "");
  CHECK_THAT(failure(nvfp4, "scale_dtype", "torch.uint8"), Catch::Contains("float8_e4m3fn"));
  CHECK_THAT(failure(mxfp4, "scale_dtype", "bfloat16"), Catch::Contains("supported: uint8"));
  CHECK_THAT(failure(nvfp4, "num_bits", 8), Catch::Contains("with 8 bits can't be loaded"));
  CHECK_THAT(failure(nvfp4, "type", "int"), Catch::Contains("with integers can't be loaded"));
  CHECK_THAT(failure(nvfp4, "group_size", 32), Catch::Contains("supported: 16"));
  CHECK_THAT(failure(nvfp4, "group_size", -1), Catch::Contains("groups of a row"));
  CHECK_THAT(failure(mxfp4, "group_size", 16), Catch::Contains("supported: 32"));
  CHECK_THAT(failure(mxfp4, "strategy", "tensor_group"), Catch::Contains("supported: group"));
  CHECK_THAT(failure(nvfp4, "strategy", "channel"), Catch::Contains("tensor_group, group"));
  CHECK_THAT(failure(nvfp4, "symmetric", false), Catch::Contains("zero points"));
}

TEST_CASE("modules that Model Optimizer leaves alone are named with wildcards") {
  Json quantization = modelopt("NVFP4");
  quantization["ignore"] = {
      "lm_head",        "model.layers.0.self_attn*",          "*.mlp.gate",
      "model.layers.3", "language_model.model.layers.4.mlp*", "model.layers.5*"};
  const char* kNvfp4 = "modelopt, nvfp4";
  CHECK(form_in(quantization, kUp) == kNvfp4);
  CHECK(form_in(quantization, "model.layers.0.self_attn.q_proj") == "");
  CHECK(form_in(quantization, "model.layers.1.self_attn.q_proj") == kNvfp4);
  CHECK(form_in(quantization, "model.layers.1.mlp.gate") == "");
  CHECK(form_in(quantization, "model.layers.1.mlp.gate_proj") == kNvfp4);
  CHECK(form_in(quantization, "model.layers.3.mlp.gate_proj") == "");
  CHECK(form_in(quantization, "model.layers.4.mlp.gate_proj") == "");
  CHECK(form_in(quantization, "model.layers.50.mlp.gate_proj") == "");
  CHECK(form_in(quantization, "lm_head", MatrixKind::kHead) == "");
  CHECK(form_in(quantization, "model.embed_tokens", MatrixKind::kEmbedding) == "");
  quantization["ignore"] = {"model.layers.*.self_attn.qkv_proj", "lm_head"};
  CHECK(form_in(quantization, "model.layers.1.self_attn.k_proj") == "");
  CHECK(form_in(quantization, "model.layers.1.self_attn.o_proj") == kNvfp4);
  quantization["ignore"] = Json::array();
  CHECK(form_in(quantization, "lm_head", MatrixKind::kHead) == kNvfp4);
  quantization.erase("ignore");  // as the first exports
  CHECK(form_in(quantization, "lm_head", MatrixKind::kHead) == "");
}

TEST_CASE("Model Optimizer's settings are read from its own file's layout, and layer by layer") {
  const Json own = {{"quant_method", "modelopt"},
                    {"producer", {{"name", "modelopt"}, {"version", "0.33.0"}}},
                    {"quantization",
                     {{"quant_algo", "FP8"},
                      {"kv_cache_quant_algo", "FP8"},
                      {"exclude_modules", {"lm_head", "*.down_proj"}}}}};
  CHECK(form_in(own, kUp) == "modelopt, fp8");
  CHECK(form_in(own, "model.layers.0.mlp.down_proj") == "");
  Json cache_alone = own;
  cache_alone["quantization"]["quant_algo"] = nullptr;
  CHECK(form_in(cache_alone, kUp) == "");

  Json mixed = modelopt("MIXED_PRECISION");
  mixed["quantized_layers"] = {
      {kUp, {{"quant_algo", "NVFP4"}, {"group_size", 16}}},
      {"model.layers.0.mlp.experts", {{"quant_algo", "FP8"}}},
      {"model.layers.0.mlp.experts.1", {{"quant_algo", "W4A8_MXFP4_FP8"}}}};
  CHECK(form_in(mixed, kUp) == "modelopt, nvfp4");
  CHECK(form_in(mixed, "model.layers.0.mlp.up_proj_2") == "");
  CHECK(form_in(mixed, "model.layers.0.mlp.experts.11.up_proj") == "modelopt, fp8");
  CHECK(form_in(mixed, "model.layers.0.mlp.experts.1.up_proj") == "modelopt, mxfp4");
  CHECK(form_in(mixed, "model.layers.0.self_attn.q_proj") == "");
  mixed["quantized_layers"]["model.language_model.layers.2.mlp.gate_up_proj"] = {
      {"quant_algo", "fp8"}};
  CHECK(form_in(mixed, "model.layers.2.mlp.gate_proj") == "modelopt, fp8");
  CHECK(form_in(mixed, "model.layers.2.mlp.down_proj") == "");
  mixed["quantized_layers"][kUp]["quant_algo"] = "W4A16_AWQ";
  CHECK_THAT(config_failure(mixed), Catch::Contains("up_proj.quant_algo: modelopt's 'W4A16_AWQ'"));
}

TEST_CASE("settings of Model Optimizer that can't be loaded are refused by name") {
  const auto failure = [](const char* algo, const Json& changes) {
    Json quantization = modelopt(algo);
    quantization.update(changes);
    return config_failure(quantization);
  };
  const Json weights = {{"num_bits", 8}, {"type", "float"}, {"dynamic", false}};
  const auto groups = [](const Json& of_weights) {
    return Json{{"config_groups", {{"group_0", {{"weights", of_weights}}}}}};
  };
  CHECK(failure("FP8", groups(weights)) == "");
  CHECK(failure("fp8", {{"weights", weights}, {"input_activations", weights}}) == "");
  CHECK_THAT(failure("NVFP4", {{"weights", weights}}),
             Catch::StartsWith("quantization_config.weights.num_bits: 8 contradicts"));
  CHECK(failure("FP8", {{"kv_cache_scheme", "NVFP4"}}) == "");
  CHECK_THAT(failure("NVFP4", groups(weights)),
             Catch::StartsWith("quantization_config.config_groups.group_0.weights.num_bits: 8 "
                               "contradicts quant_algo 'NVFP4', expected 4"));
  CHECK_THAT(failure("INT4_AWQ", {}),
             Catch::StartsWith("quantization_config.quant_algo: modelopt's 'INT4_AWQ' can't be "
                               "loaded; supported: FP8, ") &&
                 Catch::Contains("MIXED_PRECISION"));
  CHECK_THAT(failure("NVFP4", {{"group_size", 32}}),
             Catch::StartsWith("quantization_config.group_size: NVFP4 in groups of 32"));
  CHECK_THAT(failure("NVFP4", {{"pre_quant_scale", true}}), Catch::Contains("pre_quant_scale"));
  CHECK_THAT(failure("NVFP4", {{"lora_rank", 32}}), Catch::Contains("lora_rank"));
  CHECK_THAT(failure("FP8", {{"quantized_layers", {{kUp, {{"quant_algo", "FP8"}}}}}}),
             Catch::Contains("MIXED_PRECISION"));
  CHECK_THAT(failure("MIXED_PRECISION", {}), Catch::Contains("quantized_layers"));
  CHECK_THAT(failure("FP8", {{"twist", 1}}),
             Catch::Contains("quantization_config.twist = 1: not a known field of modelopt"));
  CHECK_THAT(failure("FP8", {{"ignore", "lm_head"}}),
             Catch::Contains("quantization_config.ignore"));
  Json without = modelopt("FP8");
  without.erase("quant_algo");
  without.update(groups(weights));
  CHECK_THAT(config_failure(without), Catch::Contains("quant_algo: missing"));
}

TEST_CASE("Model Optimizer's floats of 8 bits have one scale, or one for each row") {
  const auto file_of = [](const char* algo, const char* shape, const std::vector<float>& scales) {
    Fp4File out{.quantization = modelopt(algo), .scale_of_all_name = {}, .tensors = {}};
    std::string values;
    for (int64_t i = 0; i < kUpRows * kUpCols; ++i)
      values.push_back(static_cast<char>(i * 5 % 127));
    out.tensors.push_back({fmt::format("{}.weight", kUp), "F8_E4M3", "[6,96]", values});
    out.tensors.push_back({fmt::format("{}.weight_scale", kUp), "F32", shape, f32_bytes(scales)});
    return out;
  };
  const auto check = [&](const Fp4File& file, const std::vector<float>& scales) {
    const HostWeight got = fp4_block(file, {0, kUpRows}, {0, kUpCols});
    const auto* values = reinterpret_cast<const float*>(got.parts.at(0).data);
    for (int64_t i = 0; i < kUpRows * kUpCols; ++i) {
      const float scale = scales[static_cast<size_t>(i / kUpCols) % scales.size()];
      CHECK(values[i] == e4m3_to_f32(file.byte("weight", i)) * scale);
    }
  };
  check(file_of("FP8", "[]", {0.25F}), {0.25F});
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  for (const char* shape : {"[6]", "[6,1]"}) {
    check(file_of("FP8_PER_CHANNEL_PER_TOKEN", shape, rows), rows);
  }
  CHECK_THAT(fp4_problems(file_of("FP8", "[6]", rows)).misshapen.at(0),
             Catch::Contains("weight_scale: expected () or (1) or (1, 1), got (6)"));
  Fp4File file = file_of("FP8", "[1]", {std::nanf("")});
  CHECK_THAT(fp4_failure(file), Catch::Contains("weight_scale") && Catch::Contains("finite"));
}

}  // namespace tgi
