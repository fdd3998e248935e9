// The quantised storage formats: what encoders write is read back bit for bit, in whole and in
// parts, and what makes no sense is refused with names and numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>

#include "base/error.h"
#include "engine/tensor/float8.h"
#include "engine/weights/weight_encoder.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::quantised_formats_test {
namespace {

constexpr const char* kModule = "model.layers.0.mlp.up_proj";
constexpr int64_t kRows = 40;
constexpr int64_t kCols = 192;

MatrixSpec matrix() {
  return {
      .name = std::string(kModule) + ".weight", .prefix = "model.", .rows = kRows, .cols = kCols};
}

GroupedMatrix random_matrix(const WeightEncoder& encoder, int32_t group_size, bool asymmetric) {
  std::mt19937 random(7);
  const int32_t half = 1 << (encoder.bits - 1);
  const auto code = [&] {
    return static_cast<int8_t>(static_cast<int32_t>(random() % static_cast<uint32_t>(2 * half)) -
                               half);
  };
  GroupedMatrix out;
  out.rows = kRows;
  out.cols = kCols;
  out.bits = encoder.bits;
  out.group_size = group_size;
  for (int64_t i = 0; i < kRows * kCols; ++i) out.codes.push_back(code());
  for (int64_t i = 0; i < kRows * out.num_groups(); ++i) {
    const float scale = static_cast<float>(random() % 1000 + 1) * 1e-5F;
    out.scales.push_back(stored_scale(encoder, DType::kBF16, scale));
    if (asymmetric) out.zeros.push_back(code());
  }
  return out;
}

// A checkpoint of one matrix, and the config that describes it.
struct Stored {
  Json config;
  std::map<std::string, EncodedArray> arrays;

  MemorySource files() const {
    std::vector<TestTensor> tensors;
    for (const auto& [suffix, array] : arrays) {
      tensors.push_back(
          {fmt::format("{}.{}", kModule, suffix), array.dtype,
           fmt::format("[{}]", fmt::join(array.shape, ",")),
           std::string(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size())});
    }
    return MemorySource({{"model.safetensors", build_safetensors(tensors)}});
  }

  Json& quantization() { return config["quantization_config"]; }
};

Stored stored(const WeightEncoder& encoder, const GroupedMatrix& matrix) {
  Stored out;
  for (EncodedArray& array : encoder.encode(matrix, DType::kBF16)) {
    const std::string suffix = array.suffix;
    out.arrays.emplace(suffix, std::move(array));
  }
  EncodedModel model;
  model.group_size = matrix.group_size == matrix.cols ? 0 : matrix.group_size;
  model.asymmetric = !matrix.zeros.empty();
  model.dense_modules = {"lm_head"};
  out.config["quantization_config"] = encoder.quantization_config(model);
  return out;
}

Stored stored(std::string_view name, int32_t group_size = 64, bool asymmetric = false) {
  const WeightEncoder& encoder = find_weight_encoder(name);
  return stored(encoder, random_matrix(encoder, group_size, asymmetric));
}

WeightProblems problems_of(const Stored& stored) {
  const MemorySource files = stored.files();
  const auto checkpoint = open_checkpoint(files);
  const WeightFormat& format = find_weight_format(JsonReader(stored.config, ""));
  WeightProblems problems;
  format.collect(stored.config, *checkpoint, matrix(), problems);
  return problems;
}

// As `storage` says, or as storage_of does.
HostWeight load(const Stored& stored,
                Range rows = {0, kRows},
                Range cols = {0, kCols},
                std::optional<MatrixStorage> storage = {}) {
  const MemorySource files = stored.files();
  const auto checkpoint = open_checkpoint(files);
  const WeightFormat& format = find_weight_format(JsonReader(stored.config, ""));
  WeightProblems problems;
  const auto tensors = format.collect(stored.config, *checkpoint, matrix(), problems);
  REQUIRE(problems.empty());
  if (!storage) {
    storage = storage_of(format.form_of(stored.config, matrix()), cols, DType::kBF16);
  }
  return format.slice(stored.config, *checkpoint, matrix(), tensors, rows, cols, *storage);
}

void check_grouped_block(const HostWeight& got,
                         const GroupedMatrix& matrix,
                         Range rows,
                         Range cols) {
  REQUIRE(got.format == "grouped");
  REQUIRE(got.rows == rows.count);
  REQUIRE(got.cols == cols.count);
  const GroupedPart& part = got.grouped;
  bool same = true;
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t col = 0; col < cols.count; ++col) {
      const int64_t stored_row = rows.begin + row;
      const int64_t stored_col = cols.begin + col;
      const auto from =
          static_cast<size_t>(stored_row * matrix.num_groups() + stored_col / matrix.group_size);
      const int64_t group = row * part.num_groups + col / part.group_size;
      const int zero = matrix.zeros.empty() ? 0 : matrix.zeros[from];
      same = same && part.scales[group] == matrix.scales[from] &&
             (part.zeros == nullptr ? 0 : part.zeros[group]) == zero &&
             part.codes[row * cols.count + col] ==
                 matrix.codes[static_cast<size_t>(stored_row * kCols + stored_col)];
    }
  }
  CHECK(same);
}

void check_values(const HostWeight& got, const GroupedMatrix& matrix) {
  REQUIRE(got.format == "dense");
  const auto* values = reinterpret_cast<const float*>(got.parts.at(0).data);
  bool same = true;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t col = 0; col < kCols; ++col) {
      const auto group = static_cast<size_t>(row * matrix.num_groups() + col / matrix.group_size);
      const int zero = matrix.zeros.empty() ? 0 : matrix.zeros[group];
      const auto i = static_cast<size_t>(row * kCols + col);
      same = same && values[i] == matrix.scales[group] * static_cast<float>(matrix.codes[i] - zero);
    }
  }
  CHECK(same);
}

std::string refusal(const Stored& stored, Code code) {
  try {
    (void)load(stored);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

template <typename T>
void put(EncodedArray& array, size_t index, T value) {
  std::memcpy(array.bytes.data() + index * sizeof value, &value, sizeof value);
}

TEST_CASE("integers are read back as they were written, in whole and in parts") {
  for (const std::string_view name : {"int8", "int4", "gptq", "awq"}) {
    const WeightEncoder& encoder = find_weight_encoder(name);
    for (const int32_t group_size : {32, 64, 96, static_cast<int32_t>(kCols)}) {
      for (const bool asymmetric : {false, true}) {
        INFO(name << " groups of " << group_size << " asymmetric " << asymmetric);
        const GroupedMatrix matrix = random_matrix(encoder, group_size, asymmetric);
        const Stored checkpoint = stored(encoder, matrix);
        check_grouped_block(load(checkpoint), matrix, {0, kRows}, {0, kCols});
        // Rows that begin within a word, columns within a group of the file.
        for (const Range cols : {Range{0, 96}, {96, 96}, {32, 64}, {64, 100}}) {
          const Range rows = {3, 21};
          const HostWeight part = load(checkpoint, rows, cols);
          if (part.format == "grouped") check_grouped_block(part, matrix, rows, cols);
        }
        check_values(load(checkpoint, {0, kRows}, {0, kCols}, DType::kF32), matrix);
      }
    }
  }
}

TEST_CASE("devices take over groups that kernels have, others are decoded") {
  const auto held = [](StoredForm form, Range cols) {
    const MatrixStorage storage = storage_of(form, cols, DType::kBF16);
    return storage.stored ? storage.group_size : 0;
  };
  CHECK(held({.bits = 4, .group_size = 128}, {0, 4096}) == 128);
  CHECK(held({.bits = 4, .group_size = 32}, {0, 4096}) == 32);
  CHECK(held({.bits = 8, .group_size = 256}, {0, 4096}) == 128);
  CHECK(held({.bits = 8, .group_size = 160}, {0, 4096}) == 32);
  CHECK(held({.bits = 8, .group_size = 0}, {0, 100}) == 128);
  CHECK(held({.bits = 8, .group_size = 0}, {50, 50}) == 128);
  CHECK(held({.bits = 4, .group_size = 48}, {0, 4096}) == 0);
  CHECK(held({.bits = 0, .group_size = 128}, {0, 4096}) == 0);
  // A cut within a group: groups of the device begin at it.
  CHECK(held({.bits = 4, .group_size = 128}, {2752, 2752}) == 64);
  CHECK(held({.bits = 4, .group_size = 32}, {48, 48}) == 0);
}

// For a device that keeps 8-bit floats: codes and scales of the same values.
static void check_kept_f8(const Stored& checkpoint, Range cols, int32_t group_size) {
  const JsonReader config(checkpoint.config, "");
  const StoredForm form = find_weight_format(config).form_of(checkpoint.config, matrix());
  const MatrixStorage storage = storage_of(form, cols, DType::kBF16, {.f8 = true});
  CHECK(storage.quantization == Quantization::kF8E4M3);
  CHECK(storage.group_size == group_size);
  const HostWeight kept = load(checkpoint, {7, 20}, cols, storage);
  const HostWeight decoded = load(checkpoint, {7, 20}, cols, MatrixStorage(DType::kF32));
  REQUIRE(kept.format == "grouped");
  const GroupedPart& part = kept.grouped;
  const auto* values = reinterpret_cast<const float*>(decoded.parts.at(0).data);
  bool same = true;
  for (int64_t row = 0; row < 20; ++row) {
    for (int64_t col = 0; col < cols.count; ++col) {
      const float value = e4m3_to_f32(static_cast<uint8_t>(part.codes[row * cols.count + col]));
      const float scale = part.scales[row * part.num_groups + col / part.group_size];
      same = same && value * scale == values[row * cols.count + col];
    }
  }
  CHECK(same);
}

TEST_CASE("fp8 is read back as the values that were written, in whole and in parts") {
  std::mt19937 random(9);
  std::vector<float> w(static_cast<size_t>(kRows * kCols));
  for (float& value : w) value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-33F;
  const WeightEncoder& encoder = find_weight_encoder("fp8");
  Stored checkpoint;
  for (EncodedArray& array : encoder.encode_floats(w, kRows, kCols, DType::kF32)) {
    const std::string suffix = array.suffix;
    checkpoint.arrays.emplace(suffix, std::move(array));
  }
  checkpoint.config["quantization_config"] = encoder.quantization_config({});
  const HostWeight whole = load(checkpoint);
  const auto* values = reinterpret_cast<const float*>(whole.parts.at(0).data);
  double worst = 0.0;
  for (size_t i = 0; i < w.size(); ++i) {
    // Three bits of mantissa, or a multiple of 2^-9 of a scale of 1/448 of the largest.
    const double allowed = std::max(std::fabs(double{w[i]}) / 16.0, 0.25 / 448.0 / 1024.0 * 1.01);
    worst = std::max(worst, std::fabs(double{w[i]} - double{values[i]}) / allowed);
  }
  CHECK(worst <= 1.0);
  const HostWeight part = load(checkpoint, {7, 9}, {100, 50});
  const auto* some = reinterpret_cast<const float*>(part.parts.at(0).data);
  bool same = true;
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t col = 0; col < 50; ++col) {
      same = same && some[row * 50 + col] == values[(row + 7) * kCols + col + 100];
    }
  }
  CHECK(same);

  check_kept_f8(checkpoint, {64, 100}, 128);
  // DeepSeek's blocks, of which a rank's columns may begin within one.
  Stored blocks;
  blocks.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {16, 64}}};
  blocks.arrays.emplace("weight", checkpoint.arrays.at("weight"));
  EncodedArray scales{"weight_scale_inv", "F32", {3, 3}, std::vector<std::byte>(36)};
  for (size_t i = 0; i < 9; ++i) put(scales, i, 0.25F + static_cast<float>(i));
  blocks.arrays.emplace("weight_scale_inv", std::move(scales));
  check_kept_f8(blocks, {0, kCols}, 64);
  check_kept_f8(blocks, {96, 96}, 32);

  put<uint8_t>(checkpoint.arrays.at("weight"), static_cast<size_t>(kCols + 5), 0x7F);
  CHECK_THAT(refusal(checkpoint, Code::kInvalidArgument), Catch::Contains("element (1, 5)"));
}

TEST_CASE("arrays that are missing or do not fit are told with what was expected") {
  Stored gptq = stored("gptq");
  gptq.arrays.erase("scales");
  gptq.arrays.at("qzeros").dtype = "F32";
  WeightProblems problems = problems_of(gptq);
  CHECK(problems.missing == std::vector<std::string>{"model.layers.0.mlp.up_proj.scales"});
  REQUIRE(problems.unsupported.size() == 1);
  CHECK_THAT(problems.unsupported[0], Catch::Contains("qzeros: expected I32 or U32, got F32"));

  Stored awq = stored("awq", 64, true);
  awq.quantization()["group_size"] = 32;
  problems = problems_of(awq);
  REQUIRE(problems.misshapen.size() == 2);
  CHECK_THAT(problems.misshapen[0], Catch::Contains("qzeros: expected (6, 5), got (3, 5)"));
  awq.quantization()["group_size"] = 80;
  problems = problems_of(awq);
  REQUIRE(problems.misshapen.size() == 1);
  CHECK_THAT(problems.misshapen[0], Catch::Contains("(40, 192) can't be cut into groups of 80"));

  Stored int8 = stored("int8");
  int8.quantization()["config_groups"]["group_0"]["weights"]["num_bits"] = 4;
  problems = problems_of(int8);
  REQUIRE(problems.misshapen.size() == 1);
  CHECK_THAT(problems.misshapen[0],
             Catch::Contains("weight_packed: expected (40, 24), got (40, 48)"));
}

TEST_CASE("contents that make no sense are refused by tensor and place") {
  Stored checkpoint = stored("gptq");
  put<uint16_t>(checkpoint.arrays.at("scales"), 41, 0x7E00);
  CHECK_THAT(refusal(checkpoint, Code::kInvalidArgument),
             Catch::Contains("up_proj.scales: element 41 of (3, 40) is nan"));

  checkpoint = stored("gptq");
  put<int32_t>(checkpoint.arrays.at("g_idx"), 7, 3);
  CHECK_THAT(refusal(checkpoint, Code::kInvalidArgument),
             Catch::Contains("g_idx: column 7 belongs to group 3, but there are 3"));
  put<int32_t>(checkpoint.arrays.at("g_idx"), 7, -1);
  CHECK_THAT(refusal(checkpoint, Code::kInvalidArgument), Catch::Contains("group -1"));
  put<int32_t>(checkpoint.arrays.at("g_idx"), 7, 1);
  CHECK_THAT(refusal(checkpoint, Code::kInvalidArgument),
             Catch::Contains("set desc_act in quantization_config to true"));

  checkpoint = stored("gptq");
  put<uint32_t>(checkpoint.arrays.at("qzeros"), 0, 0x77777776U);
  CHECK_THAT(refusal(checkpoint, Code::kInvalidArgument),
             Catch::Contains("zero point of group 0, output 0 is 7, expected 8 as sym is true"));
}

TEST_CASE("act-order takes the group of each column from g_idx") {
  const WeightEncoder& encoder = find_weight_encoder("gptq");
  const GroupedMatrix matrix = random_matrix(encoder, 64, false);
  Stored checkpoint = stored(encoder, matrix);
  checkpoint.quantization()["desc_act"] = true;
  const HostWeight plain = load(checkpoint);
  check_values(plain, matrix);
  put<int32_t>(checkpoint.arrays.at("g_idx"), 5, 2);
  const HostWeight moved = load(checkpoint, {1, 1}, {4, 2});
  const auto* values = reinterpret_cast<const float*>(moved.parts.at(0).data);
  const auto code = static_cast<float>(matrix.codes[static_cast<size_t>(kCols + 5)]);
  CHECK(values[1] == matrix.scales[static_cast<size_t>(matrix.num_groups() + 2)] * code);
}

TEST_CASE("zero points of the first gptq layout are one more than what is stored") {
  const WeightEncoder& encoder = find_weight_encoder("gptq");
  GroupedMatrix matrix = random_matrix(encoder, 64, true);
  for (int8_t& zero : matrix.zeros) {
    if (zero == -8) zero = -7;
  }
  Stored checkpoint = stored(encoder, matrix);
  CHECK(checkpoint.quantization()["checkpoint_format"] == "gptq_v2");
  checkpoint.quantization()["checkpoint_format"] = "gptq";
  for (int8_t& zero : matrix.zeros) zero = static_cast<int8_t>(zero == 7 ? -8 : zero + 1);
  check_grouped_block(load(checkpoint), matrix, {0, kRows}, {0, kCols});
  // The layout by its newer name alone.
  checkpoint.quantization().erase("checkpoint_format");
  checkpoint.quantization()["format"] = "gptq";
  check_grouped_block(load(checkpoint), matrix, {0, kRows}, {0, kCols});
  checkpoint.quantization()["format"] = "gptq_v2";
  for (int8_t& zero : matrix.zeros) zero = static_cast<int8_t>(zero == -8 ? 7 : zero - 1);
  check_grouped_block(load(checkpoint), matrix, {0, kRows}, {0, kCols});
}

TEST_CASE("AutoRound's checkpoints are read as gptq's and awq's, whichever they say they are") {
  const auto auto_round = [](const char* packing) {
    return Json{{"quant_method", "auto-round"},
                {"bits", 4},
                {"group_size", 64},
                {"sym", false},
                {"iters", 200},
                {"data_type", "int"},
                {"packing_format", packing},
                {"act_bits", 16}};
  };
  for (const std::string_view name : {"gptq", "awq"}) {
    const WeightEncoder& encoder = find_weight_encoder(name);
    GroupedMatrix matrix = random_matrix(encoder, 64, true);
    for (int8_t& zero : matrix.zeros) {
      if (zero == 7) zero = 6;
    }
    Stored checkpoint = stored(encoder, matrix);
    checkpoint.quantization() = auto_round(name == "awq" ? "auto_round:auto_awq" : "auto_round");
    check_grouped_block(load(checkpoint), matrix, {0, kRows}, {0, kCols});
    if (name == "awq") continue;
    checkpoint.quantization() = auto_round("auto_round:auto_gptq");
    for (int8_t& zero : matrix.zeros) ++zero;
    check_grouped_block(load(checkpoint), matrix, {0, kRows}, {0, kCols});
  }
  for (const char* packing : {"auto_round:auto_gptq", "auto_round:auto_awq"}) {
    Json config = {{"quantization_config", auto_round(packing)}};
    const WeightFormat& format = find_weight_format(JsonReader(config, ""));
    CHECK(format.form_of(config, matrix()).bits == 4);
    config["quantization_config"]["extra_config"][kModule] = {{"bits", 16}, {"data_type", "fp"}};
    CHECK(format.form_of(config, matrix()).quantised_as.empty());
  }
}

TEST_CASE("kinds of quantisation that can't be loaded are named with those that can") {
  const auto refuse = [](Json quantization) {
    const Json config = {{"quantization_config", std::move(quantization)}};
    try {
      find_weight_format(JsonReader(config, ""));
    } catch (const Error& error) {
      CHECK(error.code() == Code::kUnsupported);
      return std::string(error.what());
    }
    FAIL("was accepted");
    return std::string();
  };
  CHECK_THAT(refuse({{"quant_method", "gptq"}, {"bits", 5}}),
             Catch::Contains("5 bits") && Catch::Contains("2, 3, 4, 8"));
  CHECK_THAT(refuse({{"quant_method", "gptq"}, {"bits", 4}, {"checkpoint_format", "qigen"}}),
             Catch::Contains("'qigen'") && Catch::Contains("gptq_v2"));
  for (const Json& other : {Json{{"bits", 8}}, Json{{"sym", false}}, Json{{"desc_act", true}}}) {
    Json marlin = {{"quant_method", "gptq"}, {"bits", 4}, {"checkpoint_format", "marlin"}};
    marlin.update(other);
    CHECK_THAT(refuse(marlin), Catch::Contains("in marlin's layout has 4 bits"));
  }
  CHECK_THAT(
      refuse({{"quant_method", "gptq"}, {"bits", 4}, {"dynamic", {{"-:x", Json::object()}}}}),
      Catch::Contains("dynamic"));
  CHECK_THAT(refuse({{"quant_method", "awq"}, {"bits", 4}, {"version", "gemv_fast"}}),
             Catch::Contains("'gemv_fast'") && Catch::Contains("gemm"));
  CHECK_THAT(
      refuse({{"quant_method", "awq"}, {"bits", 4}, {"version", "gemv"}, {"group_size", 16}}),
      Catch::Contains("groups of 32, 64, 128"));
  CHECK_THAT(refuse({{"quant_method", "awq"}, {"bits", 8}}), Catch::Contains("8 bits"));
  CHECK_THAT(refuse({{"quant_method", "fp8"}, {"fmt", "e5m2"}}), Catch::Contains("e4m3"));
  CHECK_THAT(refuse({{"quant_method", "auto-round"},
                     {"bits", 4},
                     {"packing_format", "auto_round:llm_compressor"}}),
             Catch::Contains("packing_format: auto-round in the layout 'auto_round:llm_com") &&
                 Catch::Contains("auto_round:auto_gptq"));
  CHECK_THAT(refuse({{"quant_method", "auto-round"},
                     {"bits", 4},
                     {"extra_config", {{"model.layers.0.mlp.up_proj", {{"bits", 8}}}}}}),
             Catch::Contains("extra_config.model.layers.0.mlp.up_proj: auto-round with modules"));
  CHECK_THAT(refuse({{"quant_method", "auto-round"}, {"bits", 4}, {"twist", 1}}),
             Catch::Contains("twist = 1: not a known field of auto-round"));
  CHECK_THAT(refuse({{"quant_method", "aqlm"}}),
             Catch::Contains("'aqlm'") && Catch::Contains("compressed-tensors, gptq, awq"));

  Json packed = stored("int4").quantization();
  Json& weights = packed["config_groups"]["group_0"]["weights"];
  weights["num_bits"] = 3;
  CHECK_THAT(refuse(packed), Catch::Contains("3 bits") && Catch::Contains("4 and 8"));
  weights["num_bits"] = 4;
  packed["format"] = "marlin-24";
  CHECK_THAT(refuse(packed), Catch::Contains("'marlin-24'") && Catch::Contains("pack-quantized"));
  packed["format"] = "pack-quantized";
  packed["sparsity_config"] = {{"format", "sparse-24-bitmask"}};
  CHECK_THAT(refuse(packed), Catch::Contains("sparse-24-bitmask"));
}

TEST_CASE("compressed-tensors names the modules it leaves alone, also by patterns") {
  const auto quantised = [](const std::string& ignore, const std::string& name) {
    Stored checkpoint = stored("int4");
    checkpoint.quantization()["ignore"] = {ignore};
    const MatrixSpec spec{.name = name, .prefix = "", .rows = 8, .cols = 64};
    const WeightFormat& format = find_weight_format(JsonReader(checkpoint.config, ""));
    return !format.form_of(checkpoint.config, spec).quantised_as.empty();
  };
  CHECK(quantised("lm_head", "model.layers.0.mlp.up_proj.weight"));
  CHECK_FALSE(quantised("model.layers.0.mlp.up_proj", "model.layers.0.mlp.up_proj.weight"));
  CHECK(quantised("model.layers.0.mlp.up", "model.layers.0.mlp.up_proj.weight"));
  CHECK_FALSE(quantised("re:.*up_proj$", "model.layers.0.mlp.up_proj.weight"));
  CHECK(quantised("re:up_proj", "model.layers.0.mlp.up_proj.weight"));  // matches from the start on
  CHECK_THROWS_WITH(quantised("re:(", "model.layers.0.mlp.up_proj.weight"),
                    Catch::Contains("pattern \"(\""));
  CHECK_THROWS_WITH(quantised("re:(a+)+(a+)+(a+)+$", std::string(60, 'a') + "b.weight"),
                    Catch::Contains("limit"));
}

}  // namespace
}  // namespace tgi::quantised_formats_test
