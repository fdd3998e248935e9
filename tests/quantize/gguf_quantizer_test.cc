// Models written as GGUF files: what is in them, how near they are, and what is refused.
#include "engine/quantize/gguf/gguf_quantizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/gguf_format_names.h"
#include "base/known_names.h"
#include "engine/gguf/gguf_source.h"
#include "engine/model/weight_check.h"
#include "engine/quantize/gguf/type_mix.h"
#include "engine/runtime/demo_model.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/ggml/gguf_file.h"
#include "tests/catch.h"
#include "tests/quantize/demo_jobs.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

QuantizeOptions file_options(const TempFolder& folder, const std::string& format) {
  QuantizeOptions options = demo_options(folder, format, "out.gguf");
  options.calibration.num_sequences = 6;
  options.calibration.sequence_length = 64;
  return options;
}

// Of each type the names of the tensors that have it.
std::map<std::string, std::vector<std::string>> types_in(const std::string& path) {
  const MappedFile file(path);
  std::map<std::string, std::vector<std::string>> out;
  for (const GgufTensor& tensor : parse_gguf(file.bytes(), path).tensors) {
    out[std::string(tensor.type->name)].emplace_back(tensor.name);
  }
  return out;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

TEST_CASE("the names of formats of GGUF files are those that flags know") {
  std::vector<std::string_view> known(kGgufFormatNames.begin(), kGgufFormatNames.end());
  std::vector<std::string_view> written;
  for (const GgufFormat& format : gguf_formats()) {
    written.push_back(format.name);
    CHECK(find_ggml_type(format.type) != nullptr);
    CHECK(std::ranges::find(kEncoderNames, format.name) == kEncoderNames.end());
  }
  CHECK(written.size() == known.size());
  std::ranges::sort(known);
  std::ranges::sort(written);
  CHECK(known == written);
}

TEST_CASE("every format of GGUF files is near its source, and is loaded") {
  // Mean KL in nats that each may have on the demo model, and bytes for a weight with all that is
  // around it.
  struct Expected {
    const char* format;
    double kl;
    double bits;
  };
  for (const Expected& expected :
       {Expected{"f32", 1e-9, 33}, Expected{"f16", 1e-5, 17}, Expected{"bf16", 1e-9, 17},
        Expected{"q8_0", 1e-3, 9.5}, Expected{"q6_k", 4e-3, 7.6}, Expected{"q5_k_m", 0.01, 6.8},
        Expected{"q4_k_m", 0.03, 5.9}, Expected{"iq4_xs", 0.04, 5.5}, Expected{"q4_0", 0.06, 5.6},
        Expected{"mxfp4", 0.08, 6.5}}) {
    INFO(expected.format);
    const TempFolder folder;
    std::vector<QuantizeProgress> seen;
    const QuantizeResult result =
        quantize_demo(file_options(folder, expected.format),
                      [&](const QuantizeProgress& p) { seen.push_back(p); });
    CHECK(result.fidelity.mean_kl <= expected.kl);
    CHECK(result.num_sequences == 6);
    REQUIRE(seen.size() == 7);  // reading, five layers, comparing
    CHECK(seen[3].layer == 2);
    CHECK(names_in(folder.path()) == std::vector<std::string>{"out.gguf"});
    CHECK(static_cast<int64_t>(std::filesystem::file_size(result.folder)) == result.bytes);
    const double num_weights = static_cast<double>(result.source_bytes) / 2;  // bf16
    CHECK(static_cast<double>(result.bytes) * 8 / num_weights < expected.bits);

    const auto files = open_gguf(result.folder);
    const LoadedConfig loaded = load_model_config(*files);
    check_weights(loaded, *open_checkpoint(*files));
    CHECK(load_tokenizer(*files)->encode("Once upon a time", true) ==
          load_tokenizer(*open_demo_model())->encode("Once upon a time", true));
  }
}

TEST_CASE("what costs most has more bits, and vectors have all") {
  const TempFolder folder;
  const QuantizeResult result = quantize_demo(file_options(folder, "q4_k_m"));
  const auto types = types_in(result.folder);
  CHECK(contains(types.at("Q4_K"), "blk.1.attn_q.weight"));
  CHECK(contains(types.at("Q6_K"), "blk.2.ffn_down.weight"));
  CHECK(contains(types.at("F32"), "output_norm.weight"));
  CHECK(contains(types.at("F32"), "blk.0.attn_norm.weight"));
  const MappedFile file(result.folder);
  const GgufMetadata metadata = parse_gguf(file.bytes(), "out").metadata;
  CHECK(metadata.integer("general.file_type") == 15);
  CHECK(metadata.integer("general.quantization_version") == 2);
  CHECK(metadata.text("general.name") == "demo");
  CHECK(metadata.find_text("tokenizer.chat_template").has_value());
}

TEST_CASE("what blocks say for themselves is refused as a setting") {
  const TempFolder folder;
  QuantizeOptions options = file_options(folder, "q4_k_m");
  options.group_size = 64;
  CHECK_THAT(error_of(options), Catch::Contains("group size") && Catch::Contains("q4_k_m"));
  options = file_options(folder, "q4_k_m");
  options.act_order = true;
  CHECK_THAT(error_of(options), Catch::Contains("act order"));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a GGUF file that is there is left alone") {
  const TempFolder folder;
  std::ofstream(folder.file("out.gguf")) << "old";
  CHECK_THAT(error_of(file_options(folder, "q8_0")), Catch::Contains("exists already"));
  CHECK(std::filesystem::file_size(folder.file("out.gguf")) == 3);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out.gguf"});
}

TEST_CASE("a GGUF file that is much worse than its source is not written, unless forced") {
  const TempFolder folder;
  QuantizeOptions options = file_options(folder, "q4_0");
  options.max_perplexity_growth = -0.9;  // what nothing keeps
  CHECK_THAT(error_of(options), Catch::Contains("much worse") && Catch::Contains("--force"));
  CHECK(names_in(folder.path()).empty());
  options.force = true;
  CHECK(error_of(options).empty());
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out.gguf"});
}

TEST_CASE("a job for a GGUF file that is stopped leaves nothing") {
  const TempFolder folder;
  std::stop_source stop;
  const auto stop_in_layer_two = [&](const QuantizeProgress& progress) {
    if (progress.layer == 2) stop.request_stop();
  };
  try {
    (void)quantize_demo(file_options(folder, "q4_k_m"), stop_in_layer_two, stop.get_token());
    FAIL("it went on");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kCancelled);
  }
  CHECK(names_in(folder.path()).empty());
}

}  // namespace tgi
