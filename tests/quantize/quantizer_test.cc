// Whole checkpoints: what is written, and what is refused.
#include "engine/quantize/quantizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "engine/model/model_weights.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"
#include "engine/text/byte_tokenizer.h"
#include "engine/weights/safetensors.h"
#include "engine/weights/weight_encoder.h"
#include "tests/catch.h"
#include "tests/cuda_emulation/sanitizers.h"
#include "tests/model/model_files.h"
#include "tests/quantize/demo_jobs.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

TEST_CASE("every format of the demo model is near its source") {
  for (const std::string format : {"int8", "int4", "gptq", "awq", "fp8"}) {
    INFO(format);
    const TempFolder folder;
    std::vector<QuantizeProgress> seen;
    const QuantizeResult result = quantize_demo(
        demo_options(folder, format), [&](const QuantizeProgress& p) { seen.push_back(p); });
    CHECK(result.fidelity.mean_kl < (result.bits == 4 ? 0.06 : 0.006));
    CHECK(result.fidelity.changed_perplexity < 1.1 * result.fidelity.source_perplexity);
    CHECK(result.num_sequences == 14);
    CHECK(result.bytes < result.source_bytes);
    REQUIRE(seen.size() == 7);  // reading, five layers, comparing
    CHECK(seen[3].layer == 2);
    CHECK(seen[3].seconds_left.has_value());

    CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
    CHECK(names_in(result.folder) ==
          std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors",
                                   "tokenizer.json", "tokenizer_config.json"});
    const auto files = open_folder(result.folder);
    const Json config = parse_json(files->require_text("config.json"));
    CHECK(config.at("quantization_config").contains("quant_method"));
    CHECK(config.at("hidden_size") == 256);
    CHECK(!parse_safetensors(files->require("model.safetensors"), "model.safetensors").empty());
  }
}

TEST_CASE("gptq is nearer than rounding to nearest, group for group; awq is no worse",
          TGI_NOT_UNDER_SANITIZERS) {
  const auto kl = [](const std::string& format) {
    const TempFolder folder;
    QuantizeOptions options = demo_options(folder, format);
    options.group_size = 64;
    return quantize_demo(options).fidelity.mean_kl;
  };
  const double nearest = kl("int4");
  CHECK(kl("gptq") < 0.6 * nearest);
  CHECK(kl("awq") < 1.15 * nearest);  // a toy without channels that stand out
}

TEST_CASE("what is much worse than its source is not written, unless forced") {
  const TempFolder folder;
  QuantizeOptions options = demo_options(folder, "int4");
  options.group_size = -1;
  options.max_perplexity_growth = -0.9;  // what nothing keeps
  const std::string message = error_of(options);
  CHECK_THAT(message, Catch::Contains("much worse") && Catch::Contains("--force"));
  CHECK(names_in(folder.path()).empty());
  options.force = true;
  CHECK(quantize_demo(options).group_size == 0);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
}

TEST_CASE("a job that is stopped leaves nothing") {
  const TempFolder folder;
  std::stop_source stop;
  const auto stop_in_layer_two = [&](const QuantizeProgress& progress) {
    if (progress.layer == 2) stop.request_stop();
  };
  try {
    (void)quantize_demo(demo_options(folder, "gptq"), stop_in_layer_two, stop.get_token());
    FAIL("it went on");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kCancelled);
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("what a killed job left behind goes with the next one of that name") {
  const TempFolder folder;
  // No process has such a number; the one with number 1 lives.
  const std::string dead = ".out.partial-999999999-abcdef";
  const std::string alive = ".out.partial-1-abcdef";
  for (const std::string& name : {dead, alive}) {
    std::filesystem::create_directory(folder.file(name));
    std::ofstream(folder.file(name) + "/model.safetensors") << "half";
  }
  (void)quantize_demo(demo_options(folder, "int8"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{alive, "out"});
}

TEST_CASE("an empty folder is filled, any other is left alone") {
  const TempFolder folder;
  const QuantizeOptions options = demo_options(folder, "int8");
  std::filesystem::create_directory(options.folder);
  (void)quantize_demo(options);
  CHECK(names_in(options.folder).size() == 5);
  CHECK_THAT(error_of(options), Catch::Contains(options.folder) && Catch::Contains("already"));
}

TEST_CASE("settings that can't work are refused before any work") {
  const TempFolder folder;
  const auto refusal = [&](const std::string& format, auto change) {
    QuantizeOptions options = demo_options(folder, format);
    change(options);
    const std::string message = error_of(options);
    CHECK(names_in(folder.path()).empty());
    return message;
  };
  using O = QuantizeOptions;
  CHECK_THAT(refusal("int3", [](O&) {}), Catch::Contains("int3") && Catch::Contains("gptq"));
  CHECK_THAT(refusal("int4", [](O& o) { o.group_size = 48; }),
             Catch::Contains("48") && Catch::Contains("256") &&
                 Catch::Contains("self_attn.q_proj.weight"));
  CHECK_THAT(refusal("int4", [](O& o) { o.group_size = 0; }), Catch::Contains("group size 0"));
  CHECK_THAT(refusal("fp8", [](O& o) { o.group_size = 64; }), Catch::Contains("per row"));
  CHECK_THAT(refusal("gptq", [](O& o) { o.damping = 0; }), Catch::Contains("damping"));
  CHECK_THAT(refusal("awq", [](O& o) { o.act_order = true; }), Catch::Contains("act order"));
  CHECK_THAT(refusal("int8", [](O& o) { o.calibration.file = "/nowhere"; }),
             Catch::Contains("/nowhere"));
  CHECK_THAT(refusal("int8", [](O& o) { o.calibration.sequence_length = 2000; }),
             Catch::Contains("2000") && Catch::Contains("1024"));
  CHECK_THAT(refusal("int8", [](O& o) { o.folder = "/dev/null/out"; }),
             Catch::Contains("/dev/null"));
}

TEST_CASE("lines of JSON are texts; a line that is none is named") {
  const TempFolder folder;
  const std::string text = folder.file("text.jsonl");
  std::ofstream(text) << "{\"text\": \"The bear went home.\"}\n\n{\"text\": \"It was late.\"}\n";
  QuantizeOptions options = demo_options(folder, "int8");
  options.force = true;
  options.calibration.file = text;
  CHECK(quantize_demo(options).num_sequences == 2);
  std::filesystem::remove_all(options.folder);
  std::ofstream(text, std::ios::app) << "{\"txt\": 1}\n";
  CHECK_THAT(error_of(options), Catch::Contains("line 4") && Catch::Contains("text"));
  std::ofstream(folder.file("empty")).flush();
  options.calibration.file = folder.file("empty");
  CHECK_THAT(error_of(options), Catch::Contains("no text"));
}

// With the tokenizer of the demo model.
MemorySource small_gpt2_model() {
  const Json config = {{"architectures", {"GPT2LMHeadModel"}},
                       {"vocab_size", 2048},
                       {"n_embd", 64},
                       {"n_layer", 1},
                       {"n_head", 2},
                       {"n_positions", 256}};
  std::vector<TestTensor> tensors = small_tensors(load_config(config));
  for (TestTensor& tensor : tensors) {
    std::vector<float> values(tensor.data.size() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i * 7919 % 1009) / 1009.0F - 0.5F;
    }
    tensor.data = f32_bytes(values);
  }
  const auto demo = open_demo_model();
  std::map<std::string, std::string> files;
  files["config.json"] = config.dump();
  files["model.safetensors"] = build_safetensors(tensors);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    files[name] = std::string(demo->require_text(name));
  }
  return MemorySource(std::move(files));
}

TEST_CASE("a model with Conv1D modules is written in formats that transformers reads into them") {
  const MemorySource source = small_gpt2_model();
  int num_written = 0;
  for (const WeightEncoder* encoder : weight_encoders()) {
    INFO(encoder->name);
    const TempFolder folder;
    QuantizeOptions options = demo_options(folder, std::string(encoder->name));
    options.group_size = encoder->takes_floats ? options.group_size : 32;
    options.force = true;
    const auto quantize = [&] {
      return quantize_model({.files = source,
                             .options = options,
                             .backend = find_backend("cpu"),
                             .num_threads = 1,
                             .on_progress = nullptr});
    };
    if (!encoder->takes_conv1d) {
      CHECK_THROWS_WITH(quantize(), Catch::Contains("transformer.h.0.attn.c_attn.weight") &&
                                        Catch::Contains("Conv1D") &&
                                        Catch::Contains("--format gptq"));
      CHECK(names_in(folder.path()).empty());
      continue;
    }
    ++num_written;
    const auto files = open_folder(quantize().folder);
    const auto stored = open_checkpoint(*files);
    // As its modules have them: inputs by outputs, eight inputs in a word.
    CHECK(stored->find("transformer.h.0.attn.c_attn.qweight")->shape ==
          std::vector<int64_t>{64 / 8, 192});
    CHECK(stored->find("transformer.h.0.mlp.c_proj.qweight")->shape ==
          std::vector<int64_t>{256 / 8, 64});
  }
  CHECK(num_written == 1);
}

TEST_CASE("a checkpoint that is quantised already is refused") {
  const TempFolder folder;
  QuantizeOptions options = demo_options(folder, "int8");
  const std::string first = quantize_demo(options).folder;
  options.folder = folder.file("again");
  options.model = first;
  const auto files = open_folder(first);
  CHECK_THROWS_WITH(quantize_model({.files = *files,
                                    .options = options,
                                    .backend = find_backend("cpu"),
                                    .num_threads = 1,
                                    .on_progress = nullptr}),
                    Catch::Contains("quantised already") || Catch::Contains("compressed-tensors"));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
}

int64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return -1;
}

// The address sanitizer keeps for a while what was freed.
TEST_CASE("memory is that of a layer or two, not of the model", TGI_NOT_UNDER_SANITIZERS) {
  constexpr int64_t kMostLayers = 5;
  const LoadedConfig model = load_config({{"architectures", {"LlamaForCausalLM"}},
                                          {"vocab_size", 512},
                                          {"hidden_size", 512},
                                          {"intermediate_size", 2048},
                                          {"num_hidden_layers", 16},
                                          {"num_attention_heads", 8},
                                          {"num_key_value_heads", 8},
                                          {"max_position_embeddings", 128},
                                          {"torch_dtype", "bfloat16"}});
  const auto checkpoint = make_dummy_checkpoint(model, 1);
  const auto files = open_demo_model();
  constexpr int64_t kLayerBytes = int64_t{4} * (4 * 512 * 512 + 3 * 512 * 2048);  // in f32
  for (const std::string format : {"int8", "gptq"}) {
    const TempFolder folder;
    QuantizeOptions options = demo_options(folder, format);
    options.calibration.num_sequences = 4;  // what a step needs is not what is looked at here
    options.calibration.sequence_length = 64;
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
    const int64_t before = status_bytes("VmRSS");
    (void)quantize_checkpoint({.files = *files,
                               .options = options,
                               .backend = find_backend("cpu"),
                               .num_threads = 1,
                               .on_progress = nullptr},
                              model, *checkpoint, ByteTokenizer(512));
    const int64_t grown = status_bytes("VmHWM") - before;
    INFO(format << ": " << grown << " bytes, a layer has " << kLayerBytes);
    CHECK(grown > kLayerBytes);
    // The layer, the floats and codes of one matrix, the Gram matrix of the widest one. The model
    // has 16 layers.
    CHECK(grown < kMostLayers * kLayerBytes);
  }
}

}  // namespace
}  // namespace tgi
