// A loaded model against its float32 copy, on the demo model.
#include "engine/runtime/logit_check.h"

#include <cmath>

#include "base/log.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/matmul_probe.h"
#include "tests/catch.h"
#include "tests/damaged_model.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

LogitCheck check_demo(const std::string& dtype, const std::string& quantize) {
  ModelOptions options;
  options.dtype = dtype;
  options.quantize = quantize;
  options.backend = "cpu";
  options.num_threads = 1;
  options.max_running = 8;
  const auto model = ServedModel::load(options);
  return check_logits(*model);
}

}  // namespace

TEST_CASE("the divergence of two distributions, whole and with only some tokens named") {
  const std::vector<float> p = {std::log(0.5F), std::log(0.25F), std::log(0.25F)};
  const auto q = [](std::vector<std::pair<int32_t, double>> shares) {
    std::vector<TokenScore> out;
    for (const auto& [id, share] : shares) out.push_back({id, static_cast<float>(std::log(share))});
    return out;
  };
  CHECK(kl_divergence(p, q({{0, 0.5}, {1, 0.25}, {2, 0.25}})) == Approx(0).margin(1e-6));
  const double whole = 0.5 * std::log(0.5 / 0.25) + 0.25 * std::log(0.25 / 0.5);
  CHECK(kl_divergence(p, q({{1, 0.5}, {0, 0.25}, {2, 0.25}})) == Approx(whole).epsilon(1e-4));
  // Tokens 1 and 2 count as one: the same share is left for them, so they tell nothing.
  CHECK(kl_divergence(p, q({{0, 0.5}})) == Approx(0).margin(1e-6));
  CHECK(kl_divergence(p, q({{0, 0.25}})) ==
        Approx(0.5 * std::log(2.0) + 0.5 * std::log(0.5 / 0.75)).epsilon(1e-4));
}

TEST_CASE("float32 is its own reference; rounding and quantising show, each in its order") {
  const LogitCheck exact = check_demo("f32", "none");
  CHECK(exact.mean_kl < 1e-9);
  CHECK(exact.greedy_agreement == 1);
  CHECK(exact.num_positions == 48);
  CHECK(exact.num_tokens_compared == 2048);
  CHECK(exact.reference_bytes == 3'476'224 * 4);
  const LogitCheck rounded = check_demo("bf16", "none");
  CHECK(rounded.mean_kl > 1e-7);
  CHECK(rounded.mean_kl < 1e-2);
  CHECK(rounded.max_kl >= rounded.mean_kl);
  CHECK(rounded.greedy_agreement > 0.9);
  const LogitCheck coarse = check_demo("bf16", "int4");
  CHECK(coarse.mean_kl > 3 * rounded.mean_kl);
  CHECK(coarse.mean_kl < 0.5);
}

TEST_CASE("logits that are not finite are no divergence of 0: the check says what is broken") {
  const auto failure = [](const std::string& folder, const std::string& dtype,
                          const std::string& quantize) -> std::string {
    ModelOptions options;
    options.model = folder;
    options.dtype = dtype;
    options.quantize = quantize;
    options.backend = "cpu";
    options.num_threads = 1;
    options.max_running = 8;
    const auto model = ServedModel::load(options);
    try {
      (void)check_logits(*model);
    } catch (const Error& error) {
      CHECK(error.code() == Code::kNotFinite);
      return error.what();
    }
    return "no error";
  };
  set_log_level(LogLevel::kOff);  // a line for each of some 4,000 requests
  // A weight of each kind: met by every token, and in every format that weights are held in.
  const TempFolder folder;
  for (const char* tensor :
       {"model.layers.0.input_layernorm.weight", "model.layers.0.self_attn.q_proj.weight",
        "model.layers.1.self_attn.v_proj.weight", "model.layers.1.mlp.down_proj.weight",
        "model.layers.2.mlp.gate_proj.weight", "model.norm.weight", "model.embed_tokens.weight"}) {
    for (const uint16_t bits : {kBf16Nan, kBf16Infinity}) {
      write_damaged_demo(folder.file("m"), tensor, 70, bits);
      for (const char* quantize : {"none", "int8", "int4"}) {
        INFO(tensor << (bits == kBf16Nan ? " NaN " : " infinity ") << quantize);
        CHECK_THAT(failure(folder.file("m"), "bf16", quantize),
                   Catch::Contains("bf16") && Catch::Contains("weights are damaged"));
      }
    }
  }
}

TEST_CASE("the matmul probe gives figures that a processor can have") {
  const MatmulSpeed speed = measure_matmul(find_backend("cpu"), DType::kBF16, {.num_threads = 1},
                                           std::chrono::milliseconds(1));
  CHECK(speed.device.backend == "cpu");
  CHECK(speed.prompt_flops_per_s > 1e7);
  CHECK(speed.prompt_flops_per_s < 1e15);
  CHECK(speed.decode_bytes_per_s > 1e6);
  CHECK(speed.decode_bytes_per_s < 1e13);
}

}  // namespace tgi
