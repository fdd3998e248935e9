// The weight format "bitsandbytes": the values that the library itself dequantises to
// (scripts/golden/make_quantised_blocks), bit by bit, whole and in parts, and what does not fit.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/weights/golden_matrix.h"

namespace tgi::bitsandbytes_test {
namespace {

constexpr const char* kNf4State = ".quant_state.bitsandbytes__nf4";

struct Quantised : GoldenMatrix {
  explicit Quantised(const std::string& name) : GoldenMatrix("bitsandbytes", name) {
    if (shape.size() == 3) weight = kGoldenModule;
    const bool is_8bit = tensors.contains("SCB");
    quantization = {{"quant_method", "bitsandbytes"},
                    {"load_in_4bit", !is_8bit},
                    {"load_in_8bit", is_8bit},
                    {"bnb_4bit_quant_type", name.substr(0, 3) == "fp4" ? "fp4" : "nf4"}};
  }

  Json state() const { return parse_json(tensors.at(kNf4State).data); }
  void set_state(const std::string& text) {
    tensors[kNf4State].data = text;
    tensors[kNf4State].shape = fmt::format("[{}]", text.size());
  }
  void set_state(const std::string& field, const Json& value) {
    Json changed = state();
    changed[field] = value;
    set_state(changed.dump());
  }
};

StoredForm form_of(const Json& quantization, const MatrixSpec& spec) {
  const Json config = {{"quantization_config", quantization}};
  return find_weight_format(JsonReader(config, "")).form_of(config, spec);
}

TEST_CASE("matrices of bitsandbytes are the values that it has itself, whole and in parts") {
  for (const char* name : {"nf4", "nf4, rows of an odd length", "nf4, blocks longer than rows",
                           "nf4, nested", "fp4", "fp4, nested", "int8"}) {
    INFO(name);
    const Quantised quantised(name);
    const MatrixSpec spec = quantised.spec();
    for (const auto& [rows, cols] : {std::pair{Range{0, spec.rows}, Range{0, spec.cols}},
                                     {Range{1, 3}, Range{5, spec.cols - 7}},
                                     {Range{spec.rows - 1, 1}, Range{spec.cols - 2, 2}}}) {
      const std::vector<float> got = numbers_of(load_matrix(quantised, spec, rows, cols).weight);
      CHECK(got == quantised.part(rows, cols));
    }
  }
}

// Rows of 128 columns, so that no block ends within one: with codes and scales of its own.
Quantised whole_blocks(bool is_nf4, int64_t block_size) {
  Quantised out(is_nf4 ? "nf4" : "fp4");
  out.shape = {6, 128};
  std::string codes;
  for (int i = 0; i < 6 * 64; ++i) codes.push_back(static_cast<char>(i * 37 + i / 9));
  out.tensors[""].data = codes;
  out.tensors[""].dtype = "U8";
  out.tensors[""].shape = "[384,1]";
  std::vector<float> scales;
  for (int i = 0; i < 6 * 128 / block_size; ++i) scales.push_back(0.5F + static_cast<float>(i) / 7);
  out.tensors[".absmax"].data = f32_bytes(scales);
  out.tensors[".absmax"].shape = fmt::format("[{}]", scales.size());
  const std::string state = is_nf4 ? kNf4State : ".quant_state.bitsandbytes__fp4";
  Json changed = parse_json(out.tensors.at(state).data);
  changed["blocksize"] = block_size;
  changed["shape"] = {6, 128};
  out.tensors[state].data = changed.dump();
  out.tensors[state].shape = fmt::format("[{}]", out.tensors[state].data.size());
  return out;
}

TEST_CASE("4 bits go to devices that keep them as they are, where blocks are of one row") {
  for (const bool is_nf4 : {false, true}) {
    for (const int64_t block_size : {64, 128}) {
      INFO((is_nf4 ? "nf4" : "fp4") << ", blocks of " << block_size);
      const Quantised quantised = whole_blocks(is_nf4, block_size);
      const MatrixSpec spec = quantised.spec();
      const StoredForm form = form_of(quantised.quantization, spec);
      CHECK(form.bits == 4);
      CHECK_FALSE(storage_of(form, {0, 128}, DType::kBF16).stored);
      for (const Range cols : {Range{0, 128}, {64, 64}, {32, 96}}) {
        const MatrixStorage storage = storage_of(form, cols, DType::kBF16, {.tables = true});
        REQUIRE(storage.quantization == (is_nf4 ? Quantization::kNf4 : Quantization::kFp4));
        CHECK(storage.group_size == (cols.begin == 32 ? 32 : 64));
        const HostWeight kept = load_matrix(quantised, spec, {1, 4}, cols, storage).weight;
        const std::vector<float> values =
            numbers_of(load_matrix(quantised, spec, {1, 4}, cols).weight);
        REQUIRE(kept.format == "grouped");
        REQUIRE(kept.grouped.table == value_table(storage.quantization));
        bool same = true;
        for (int64_t i = 0; i < 4 * cols.count; ++i) {
          const int64_t group =
              i / cols.count * kept.grouped.num_groups + i % cols.count / storage.group_size;
          same = same && kept.grouped.scales[group] * kept.grouped.table[kept.grouped.codes[i]] ==
                             values[static_cast<size_t>(i)];
        }
        CHECK(same);
      }
    }
  }
  const Quantised odd("nf4, rows of an odd length");
  CHECK(form_of(odd.quantization, odd.spec()).bits == 0);
}

TEST_CASE("what is planned in 4 bits of a table and is stored otherwise is refused by name") {
  Quantised quantised = whole_blocks(true, 64);
  const MatrixSpec spec = quantised.spec();
  const MatrixStorage storage =
      storage_of(form_of(quantised.quantization, spec), {0, 128}, DType::kBF16, {.tables = true});
  const auto refused = [&](const Quantised& stored) {
    try {
      (void)load_matrix(stored, spec, {0, 6}, {0, 128}, storage);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused(whole_blocks(true, 32)),
             Catch::Contains("blocks of 32 elements, expected a multiple of 64"));
  Quantised plain = quantised;
  for (const char* name : {".absmax", ".quant_map", kNf4State}) plain.tensors.erase(name);
  plain.tensors[""] = {.name = {},
                       .dtype = "F32",
                       .shape = "[6,128]",
                       .data = f32_bytes(std::vector<float>(768, 0.5F))};
  CHECK_THAT(refused(plain), Catch::Contains("expected codes with model.layers.0.mlp.up_proj."
                                             "weight.absmax beside them, got F32") &&
                                 Catch::Contains("llm_int8_skip_modules"));
}

TEST_CASE("parameters of three dimensions and rows by turns are found in bitsandbytes' blocks") {
  const Quantised stack("nf4, three dimensions");
  MatrixSpec spec{.name = kGoldenModule, .prefix = "model.", .rows = 8, .cols = 20};
  spec.stack = {.index = 1, .count = 3};
  CHECK(numbers_of(load_matrix(stack, spec, {0, 8}, {0, 20}).weight) ==
        std::vector<float>(stack.values.begin() + 160, stack.values.begin() + 320));
  std::swap(spec.rows, spec.cols);
  spec.transposed = true;
  const std::vector<float> turned = numbers_of(load_matrix(stack, spec, {3, 2}, {1, 7}).weight);
  CHECK(turned[8] == stack.values[160 + 2 * 20 + 4]);

  const Quantised nested("nf4, nested");
  MatrixSpec odd_rows = nested.spec();
  odd_rows.rows = 17;
  odd_rows.turns = {.index = 1, .count = 2};
  odd_rows.transposed = true;  // of a Conv1D: a module's codes are (out, in) all the same
  const std::vector<float> rows = numbers_of(load_matrix(nested, odd_rows, {2, 1}, {0, 80}).weight);
  CHECK(rows == std::vector<float>(nested.values.begin() + 5 * 80, nested.values.begin() + 6 * 80));
}

TEST_CASE("rows of LLM.int8() go to the device as integers with a scale each") {
  Quantised quantised("int8");
  const MatrixSpec spec = quantised.spec();
  const StoredForm form = form_of(quantised.quantization, spec);
  const MatrixStorage storage = storage_of(form, {0, spec.cols}, DType::kBF16);
  REQUIRE(storage.quantization == Quantization::kInt8);
  const HostWeight got = load_matrix(quantised, spec, {2, 3}, {0, spec.cols}, storage).weight;
  REQUIRE(got.format == "grouped");
  bool same = true;
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t col = 0; col < spec.cols; ++col) {
      const float scale = got.grouped.scales[row * got.grouped.num_groups];
      const float value = scale * static_cast<float>(got.grouped.codes[row * spec.cols + col]);
      const float expected = quantised.values[static_cast<size_t>((row + 2) * spec.cols + col)];
      same = same && std::fabs(value - expected) <= 3e-7F * std::fabs(expected);
    }
  }
  CHECK(same);

  TestTensor order{.name = {}, .dtype = "U8", .shape = "[]", .data = std::string(1, '\0')};
  quantised.tensors["weight_format"] = order;
  CHECK(numbers_of(load_matrix(quantised, spec, {0, 6}, {0, 70}).weight) == quantised.values);
  quantised.tensors["weight_format"].data = "\2";
  CHECK_THAT(refusal_of(quantised),
             Catch::Contains("up_proj.weight_format: the order of the numbers "
                             "is 2 (col_turing)"));
  quantised.tensors["weight_format"] = order;
  quantised.tensors.erase("SCB");
  CHECK_THAT(refusal_of(quantised), Catch::Contains("missing model.layers.0.mlp.up_proj.SCB;"));
  quantised = Quantised("int8");
  quantised.put("SCB", 4, std::numeric_limits<float>::infinity());
  CHECK_THAT(refusal_of(quantised), Catch::Contains("up_proj.SCB: element 4 of (6) is inf"));
  quantised = Quantised("int8");
  quantised.tensors["SCB"].shape = "[6,1]";
  CHECK_THAT(refusal_of(quantised), Catch::Contains("SCB: expected (6), got (6, 1)"));
}

TEST_CASE("what config.json has in 8 bits and the file has not is refused with what to do") {
  Quantised plain("int8");
  plain.tensors.erase("SCB");
  plain.tensors[""] = {.name = {},
                       .dtype = "F32",
                       .shape = "[6,70]",
                       .data = f32_bytes(std::vector<float>(420, 0.5F))};
  const MatrixSpec spec = plain.spec();
  const MatrixStorage storage =
      storage_of(form_of(plain.quantization, spec), {0, 70}, DType::kBF16);
  CHECK_THROWS_WITH(load_matrix(plain, spec, {0, 6}, {0, 70}, storage),
                    Catch::Contains("up_proj.weight: expected I8 with "
                                    "model.layers.0.mlp.up_proj.SCB beside it, got F32") &&
                        Catch::Contains("llm_int8_skip_modules"));
  // Where no integers are planned the file is right.
  plain.quantization["llm_int8_has_fp16_weight"] = true;
  CHECK(form_of(plain.quantization, spec).bits == 0);
  CHECK(load_matrix(plain, spec, {0, 6}, {0, 70}).weight.format == "dense");
}

struct Damage {
  std::function<void(Quantised&)> damage;
  const char* expected;
};

TEST_CASE("parts of a matrix of 4 bits that are missing or make no sense are named") {
  const std::vector<Damage> rows = {
      {[](Quantised& q) { q.tensors.erase(kNf4State); },
       "missing model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4;"},
      {[](Quantised& q) { q.tensors.erase(""); }, "missing model.layers.0.mlp.up_proj.weight;"},
      {[](Quantised& q) { q.tensors.erase(".absmax"); },
       "missing model.layers.0.mlp.up_proj.weight.absmax;"},
      {[](Quantised& q) { q.tensors.erase(".quant_map"); }, "up_proj.weight.quant_map;"},
      {[](Quantised& q) { q.tensors.erase(".nested_absmax"); }, "up_proj.weight.nested_absmax;"},
      {[](Quantised& q) { q.tensors.erase(".nested_quant_map"); },
       "up_proj.weight.nested_quant_map;"},
      {[](Quantised& q) { q.set_state("{\"blocksize\": 64"); },
       "tensor model.layers.0.mlp.up_proj.weight.quant_state.bitsandbytes__nf4: "},
      {[](Quantised& q) { q.set_state("[1]"); }, "bitsandbytes__nf4: expected an object"},
      {[](Quantised& q) { q.set_state(std::string("\xff\xfe\0", 3)); }, "bitsandbytes__nf4: "},
      {[](Quantised& q) { q.set_state("quant_type", "af4"); },
       "bitsandbytes__nf4.quant_type: expected nf4 or fp4, got af4"},
      {[](Quantised& q) { q.set_state("blocksize", 48); },
       "bitsandbytes__nf4.blocksize: expected one of 32, 64"},
      {[](Quantised& q) { q.set_state("blocksize", 0); }, "bitsandbytes__nf4.blocksize: expected"},
      {[](Quantised& q) { q.set_state("blocksize", 64); },
       "weight.absmax: expected (43), got (85)"},
      {[](Quantised& q) { q.set_state("nested_blocksize", 256); },
       "weight.nested_absmax: expected (1), got (2)"},
      {[](Quantised& q) { q.set_state("nested_blocksize", nullptr); },
       "bitsandbytes__nf4.nested_blocksize"},
      {[](Quantised& q) { q.set_state("nested_dtype", "float16"); },
       "bitsandbytes__nf4.nested_dtype: expected float32, got float16"},
      {[](Quantised& q) { q.set_state("nested_offset", 1e300); },
       "bitsandbytes__nf4.nested_offset: expected a number of 32 bits"},
      {[](Quantised& q) { q.set_state("dtype", "float8"); }, "bitsandbytes__nf4.dtype"},
      {[](Quantised& q) { q.set_state("twist", 1); },
       "bitsandbytes__nf4.twist = 1: not a known field"},
      {[](Quantised& q) {
         q.set_state("shape", Json::array({80, 34}));
       },
       "bitsandbytes__nf4: expected the shape (34, 80), got (80, 34)"},
      {[](Quantised& q) { q.set_state("shape", nullptr); }, "expected a list of sizes, got none"},
      {[](Quantised& q) {
         q.set_state("shape", Json::array({34, -80}));
       },
       "expected a list of sizes, got [34,-80]"},
      {[](Quantised& q) { q.tensors[""].shape = "[1,340]"; }, "up_proj.weight: expected (340, 1)"},
      {[](Quantised& q) { q.tensors[""].dtype = "I32"; }, "up_proj.weight: expected U8 or what"},
      {[](Quantised& q) {
         q.tensors[".quant_map"].shape = "[15]";
         q.tensors[".quant_map"].data.resize(60);
       },
       "weight.quant_map: expected (16), got (15)"},
      {[](Quantised& q) { q.put(".quant_map", 3, 0.25F); },
       "weight.quant_map: code 3 stands for 0.25, expected -0.39491"},
      {[](Quantised& q) { q.put(".nested_absmax", 1, std::nanf("")); },
       "weight.nested_absmax: element 1 of (2) is nan"},
      {[](Quantised& q) {
         q.put(".nested_absmax", 0, 3e38F);
         q.set_state("nested_offset", 3e38);
       },
       "weight.absmax: element "},
  };
  for (const Damage& row : rows) {
    Quantised quantised("nf4, nested");
    REQUIRE(refusal_of(quantised) == kNothingWrong);
    row.damage(quantised);
    INFO(row.expected);
    CHECK_THAT(refusal_of(quantised), Catch::Contains(row.expected));
  }
  Quantised simple("nf4");
  simple.put(".absmax", 2, std::nanf(""));
  CHECK_THAT(refusal_of(simple), Catch::Contains("up_proj.weight.absmax: element 2 of (6) is nan"));
}

TEST_CASE("a matrix that bitsandbytes skipped is plain in the file, whatever config.json says") {
  Quantised plain("nf4");
  plain.tensors = {{"",
                    {.name = {},
                     .dtype = "F32",
                     .shape = "[6,64]",
                     .data = f32_bytes(std::vector<float>(384, 0.5F))}}};
  CHECK(load_matrix(plain, plain.spec(), {0, 6}, {0, 64}).weight.format == "dense");
}

TEST_CASE("experts and routers are no linears of transformers 5") {
  const auto bits_of = [](const std::string& module, const Json& version) {
    MatrixSpec spec{.name = module + ".weight", .prefix = "", .rows = 64, .cols = 128};
    const Json config = {{"quantization_config", {{"load_in_8bit", true}}},
                         {"transformers_version", version}};
    return find_weight_format(JsonReader(config, "")).form_of(config, spec).bits;
  };
  for (const char* const module :
       {"model.layers.0.mlp.experts.1.up_proj", "model.layers.0.mlp.gate",
        "model.layers.0.block_sparse_moe.experts.0.w1", "model.layers.0.mlp.router"}) {
    INFO(module);
    CHECK(bits_of(module, "5.24.0") == 0);
    CHECK(bits_of(module, "4.57.1") == 8);
    CHECK(bits_of(module, nullptr) == 8);
  }
  CHECK(bits_of("model.layers.0.mlp.shared_expert_gate", "5.24.0") == 8);
  CHECK(bits_of("model.layers.0.mlp.shared_expert.gate_proj", "5.24.0") == 8);
}

TEST_CASE("modules that bitsandbytes leaves alone are named as transformers names them") {
  const auto quantised = [](const Json& skipped, MatrixKind kind = MatrixKind::kLayer) {
    const Json quantization = {{"quant_method", "bitsandbytes"},
                               {"load_in_8bit", true},
                               {"llm_int8_skip_modules", skipped}};
    const bool is_layer = kind == MatrixKind::kLayer;
    const MatrixSpec spec{
        .name = is_layer ? std::string(kGoldenModule) + ".weight" : "lm_head.weight",
        .prefix = "model.",
        .rows = 8,
        .cols = 64,
        .kind = kind};
    return form_of(quantization, spec).bits == 8;
  };
  CHECK(quantised(nullptr));
  CHECK(quantised(Json::array({"lm_head", "model.layers.1", "mlp.up"})));
  for (const char* name : {"up_proj", "model.layers.0", "layers.0.mlp", "mlp", "proj",
                           "mlp.up_proj", R"(model\.layers\.\d\.mlp)", "model.layers.*up_proj"}) {
    INFO(name);
    CHECK_FALSE(quantised(Json::array({name})));
  }
  CHECK_FALSE(quantised(nullptr, MatrixKind::kHead));
  CHECK_FALSE(quantised(Json::array({"lm_head"}), MatrixKind::kHead));
  CHECK(quantised(Json::array({"v_proj"}), MatrixKind::kHead));
  CHECK_FALSE(quantised(Json::array(), MatrixKind::kEmbedding));
}

}  // namespace
}  // namespace tgi::bitsandbytes_test
