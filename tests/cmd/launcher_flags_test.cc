#include "cmd/launcher_flags.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"
#include "tests/cmd/serve_line.h"

namespace tgi {
namespace {

std::vector<LauncherRow> all_rows() {
  std::vector<LauncherRow> rows;
  for (const LauncherGroup& group : launcher_groups()) {
    rows.insert(rows.end(), group.rows.begin(), group.rows.end());
  }
  return rows;
}

std::vector<std::string> as_flag(const LauncherRow& row, const std::string& value) {
  const std::string flag = "--" + std::string(row.flag);
  return row.is_switch() ? std::vector{flag} : std::vector{flag, value};
}

// A value for each row that has a meaning, other than its default.
const std::map<std::string_view, std::string> kSamples = {
    {"kv-cache-memory", "1GiB"},
    {"tool-parser", "hermes"},
    {"pooling", "mean"},
    {"reasoning-parser", "none"},
    {"threads", "3"},
    {"model-gguf", "demo"},
    {"n-threads", "3"},
    {"model-id", "demo"},
    {"revision", "v1"},
    {"offline", "true"},
    {"huggingface-hub-cache", "/cache"},
    {"HF_TOKEN", "hf_x"},
    {"HUGGING_FACE_HUB_TOKEN", "hf_x"},
    {"HF_HUB_OFFLINE", "1"},
    {"S3_ENDPOINT_URL", "http://store"},
    {"validation-workers", "3"},
    {"deterministic", "true"},
    {"sharded", "false"},
    {"num-shard", "2"},
    {"speculate", "4"},
    {"speculative-tokens", "4"},
    {"speculator", "/models/heads"},
    {"draft-model", "/models/small"},
    {"cuda-memory-fraction", "0.5"},
    {"backend", "reference"},
    {"quantize", "int4"},
    {"dtype", "bfloat16"},
    {"kv-cache-dtype", "float16"},
    {"max-concurrent-requests", "7"},
    {"max-best-of", "17"},
    {"max-stop-sequences", "17"},
    {"max-top-n-tokens", "21"},
    {"max-input-tokens", "100"},
    {"max-input-length", "100"},
    {"max-total-tokens", "200"},
    {"waiting-served-ratio", "1.2"},
    {"max-batch-prefill-tokens", "4096"},
    {"max-waiting-tokens", "20"},
    {"max-batch-size", "8"},
    {"hostname", "::1"},
    {"port", "8080"},
    {"json-output", "true"},
    {"otlp-endpoint", "http://127.0.0.1:4318"},
    {"otlp-service-name", "mine"},
    {"cors-allow-origin", "https://a.example,https://b.example:8443"},
    {"api-key", "secret"},
    {"tokenizer-config-path", std::string(TGI_SOURCE_DIR) + "/README.md"},
    {"disable-grammar-support", "true"},
    {"max-client-batch-size", "5"},
    {"payload-limit", "1000"},
    {"enable-prefill-logprobs", "true"},
    {"graceful-termination-timeout", "0"},
    {"LOG_LEVEL", "WARN"},
    {"COMPUTE_TYPE", "1-epyc"},
    {"lora-adapters", "mine=/adapters/mine,ORG/NAME@v1"},
    {"preloaded-adapter-ids", "/adapters/mine,ORG/NAME@v1"},
    {"adapter-id", "ORG/NAME"},
    {"default-adapter-source", "local"},
    {"max-active-adapters", "7"},
    {"adapter-cycle-time-s", "3"},
    {"adapter-memory-fraction", "0.25"},
    {"allow-runtime-lora-updating", "true"},
    {"any-model", "true"},
    {"allow-pull", "true"},
    {"HF_MODEL_ID", "demo"},
    {"HF_MODEL_REVISION", "v1"},
    {"HF_MODEL_QUANTIZE", "int4"},
    {"SM_NUM_GPUS", "2"},
    {"AIP_PREDICT_ROUTE", "/predict"},
    {"AIP_HEALTH_ROUTE", "/alive"},
    {"AIP_HTTP_PORT", "8080"},
    {"max-stored-responses", "5"},
    {"max-stored-bytes", "5000"},
    {"merge-adapter-weights", "true"},
    {"lorax-merging", "true"},
};

// Those whose every value is met, so that nothing has to be set.
bool is_met_anyway(const LauncherRow& row) {
  return row.flag == "waiting-served-ratio" || row.flag == "max-waiting-tokens" ||
         row.flag == "HF_TOKEN" || row.flag == "HF_HUB_OFFLINE" ||
         row.flag.starts_with("HUGGING_FACE") || row.flag == "S3_ENDPOINT_URL";
}

// The flags of TGI 3.3.6 (launcher, router, llama.cpp's launcher) and of LoRAX, as their sources
// have them.
constexpr std::string_view kTheirFlags =
    "model-id revision validation-workers sharded num-shard quantize speculate dtype "
    "kv-cache-dtype trust-remote-code max-concurrent-requests max-best-of max-stop-sequences "
    "max-top-n-tokens max-input-tokens max-input-length max-total-tokens waiting-served-ratio "
    "max-batch-prefill-tokens max-batch-total-tokens max-waiting-tokens max-batch-size cuda-graphs "
    "hostname port prometheus-port shard-uds-path master-addr master-port huggingface-hub-cache "
    "weights-cache-override disable-custom-kernels cuda-memory-fraction rope-scaling rope-factor "
    "json-output otlp-endpoint otlp-service-name cors-allow-origin api-key watermark-gamma "
    "watermark-delta ngrok ngrok-authtoken ngrok-edge tokenizer-config-path "
    "disable-grammar-support env max-client-batch-size lora-adapters usage-stats payload-limit "
    "enable-prefill-logprobs graceful-termination-timeout "
    "master-shard-uds-path tokenizer-name max-image-fetch-size "
    "adapter-id source default-adapter-source adapter-source compile eager compile-max-batch-size "
    "compile-max-rank compile-batch-size speculative-tokens speculation-max-batch-size "
    "preloaded-adapter-ids preloaded-adapter-source predibase-api-token eager-prefill "
    "chunked-prefill prefix-caching merge-adapter-weights max-active-adapters adapter-cycle-time-s "
    "adapter-memory-fraction cors-allow-header cors-expose-header cors-allow-method "
    "cors-allow-credentials download-only backend embedding-dim disable-sgmv memory-wiggle-room "
    "model-gguf n-threads n-threads-batch n-gpu-layers split-mode defrag-threshold numa "
    "disable-mmap use-mlock disable-offload-kqv disable-flash-attention type-k type-v "
    "max-physical-batch-total-tokens";

}  // namespace

TEST_CASE("launcher table: every flag of TGI and LoRAX has one row") {
  std::istringstream names{std::string(kTheirFlags)};
  std::set<std::string> theirs;
  for (std::string name; names >> name;) theirs.insert(name);
  std::set<std::string> seen;
  for (const LauncherRow& row : all_rows()) {
    INFO(row.flag);
    CHECK(seen.insert(std::string(row.flag)).second);
    CHECK_FALSE(row.text.empty());
    CHECK(row.text.back() != '.');
    CHECK((row.use == FlagUse::kSets) == (row.set != nullptr));
    CHECK((row.use == FlagUse::kFixed) == (!row.fixed.empty()));
    const bool says_what_to_do = !row.instead.empty();
    const bool is_unread_variable = row.is_variable() && row.env == EnvUse::kUnread;
    CHECK((row.use == FlagUse::kSets || is_unread_variable) != says_what_to_do);
  }
  for (const std::string& name : theirs) {
    INFO(name);
    CHECK(seen.contains(name));
  }
}

TEST_CASE("launcher table: what has a meaning is taken from the flag and from the variable alike") {
  size_t num_rows = 0;
  for (const LauncherRow& row : all_rows()) {
    if (row.use != FlagUse::kSets) continue;
    INFO(row.flag);
    REQUIRE(kSamples.contains(row.flag));
    const std::string value = kSamples.at(row.flag);
    const Variables variables = {{launcher_variable(row.flag), value}};
    ServeOptions from_variable = resolve({}, variables);
    const bool changes = !(from_variable == ServeOptions{});
    CHECK(changes == !(is_met_anyway(row) || row.env == EnvUse::kNone));
    ++num_rows;
    if (row.is_variable()) continue;
    ServeOptions from_flag = resolve(as_flag(row, value));
    CHECK((from_flag == ServeOptions{}) == is_met_anyway(row));
    from_flag.warnings = from_variable.warnings = {};
    if (row.env != EnvUse::kNone) CHECK(from_flag == from_variable);
  }
  CHECK(num_rows == kSamples.size());
}

TEST_CASE("launcher table: refused flags say why and what to do") {
  for (const LauncherRow& row : all_rows()) {
    if (row.use == FlagUse::kSets || row.is_variable()) continue;
    if (row.use == FlagUse::kFixed && row.is_switch()) continue;
    INFO(row.flag);
    const auto arguments = as_flag(row, "77");
    CHECK(code_of(arguments) == Code::kUnsupported);
    CHECK(refusal(arguments) == fmt::format("--{}: {}", row.flag, launcher_refusal(row)));
  }
}

TEST_CASE("launcher table: a refusal reads as one sentence") {
  CHECK(refusal({"--n-gpu-layers", "4"}) ==
        "--n-gpu-layers: only 0 is taken: a model is on the GPU as a whole or not at all; see "
        "--backend; leave it out");
  CHECK(refusal({}, {{"ROPE_FACTOR", "2"}}) ==
        "ROPE_FACTOR: rope scaling is what the model's config.json says (linear, dynamic, llama3, "
        "yarn), and can't be given beside it yet; set `rope_scaling` in a copy of config.json");
}

TEST_CASE("launcher table: sharded is only a word on num-shard") {
  const auto engine = [](std::vector<std::string> arguments) { return resolve(arguments).engine; };
  using Settings = std::vector<EngineSetting>;
  CHECK(engine({"--sharded", "true", "--num-shard", "4"}) == Settings{{"num-shard", "4"}});
  CHECK(engine({"--sharded", "false", "--num-shard", "4"}) == Settings{{"num-shard", "4"}});
  CHECK(engine({"--sharded", "false"}).empty());
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--sharded", "true"},
        std::vector<std::string>{"--sharded", "true", "--num-shard", "1"}}) {
    CHECK_THAT(refusal(arguments),
               Catch::Contains("expected --num-shard (NUM_SHARD) of 2 or more"));
  }
  CHECK_THAT(refusal({}, {{"SHARDED", "true"}}), Catch::Contains("expected --num-shard"));
  CHECK(resolve({}, {{"SHARDED", "true"}, {"NUM_SHARD", "2"}}).engine ==
        Settings{{"num-shard", "2"}});
  CHECK_THAT(refusal({"--num-shard", "0"}),
             Catch::Contains("expected a whole number of at least 1"));
}

TEST_CASE("launcher table: backends and shares of a GPU are checked before a daemon is asked") {
  CHECK(code_of({"--backend", "fa2"}) == Code::kUnsupported);
  CHECK_THAT(refusal({"--backend", "tpu"}),
             Catch::Contains("expected one of auto, cpu, cuda, reference, got \"tpu\""));
  for (const char* fraction : {"0", "1.01", "-1", "nan", "much"}) {
    CHECK_THAT(refusal({"--cuda-memory-fraction", fraction}),
               Catch::Contains("expected a number above 0, at most 1"));
  }
}

TEST_CASE("launcher table: values that say what is so anyway are taken") {
  for (const LauncherRow& row : all_rows()) {
    if (row.use != FlagUse::kFixed) continue;
    std::istringstream values{std::string(row.fixed)};
    for (std::string value; values >> value;) {
      INFO(row.flag << " " << value);
      if (!row.is_variable()) CHECK(resolve(as_flag(row, value)) == ServeOptions{});
      CHECK(resolve({}, {{launcher_variable(row.flag), value}}) == ServeOptions{});
    }
  }
  CHECK(resolve({}, {{"PREFIX_CACHING", "True"}}) == ServeOptions{});
}

TEST_CASE(
    "serve flags: refused variables stop the start, warn or are not read, as their row says") {
  std::map<EnvUse, int> num_rows;
  for (const LauncherRow& row : all_rows()) {
    if (row.use == FlagUse::kSets || row.env == EnvUse::kNone) continue;
    if (row.use == FlagUse::kFixed && row.is_switch()) continue;
    INFO(row.flag);
    const std::string name = launcher_variable(row.flag);
    const Variables variables = {{name, row.is_switch() ? "true" : "77"}};
    ++num_rows[row.env];
    if (row.env == EnvUse::kRead) {
      CHECK(code_of({}, variables) == Code::kUnsupported);
      CHECK(refusal({}, variables) == fmt::format("{}: {}", name, launcher_refusal(row)));
    } else if (row.env == EnvUse::kWarns) {
      CHECK(resolve({}, variables).warnings ==
            std::vector{fmt::format("{} has no effect: {}", name, launcher_refusal(row))});
    } else {
      CHECK(resolve({}, variables) == ServeOptions{});
    }
    if (row.is_switch()) CHECK(resolve({}, {{name, "false"}}) == ServeOptions{});
  }
  CHECK(num_rows[EnvUse::kRead] >= 4);
  CHECK(num_rows[EnvUse::kWarns] > 20);
  CHECK(num_rows[EnvUse::kUnread] > 20);
}

TEST_CASE("launcher table: engine settings are tgid's flags, each given once") {
  const std::string own = read_file(std::string(TGI_SOURCE_DIR) + "/ipc/daemon_settings.cc");
  std::set<std::string> passed;
  for (const LauncherRow& row : all_rows()) {
    if (row.use != FlagUse::kSets || row.is_variable()) continue;
    for (const EngineSetting& setting : resolve(as_flag(row, kSamples.at(row.flag))).engine) {
      INFO(setting.flag);
      CHECK((ipc::find_model_setting(setting.flag) != nullptr ||
             own.find("\"" + setting.flag + "\"") != std::string::npos));
      passed.insert(setting.flag);
    }
  }
  CHECK(passed.size() >= 10);
  CHECK_THAT(refusal({"--threads", "2", "--n-threads", "3"}), Catch::Contains("give one of them"));
  // Above what tgid allows by itself it has to be told; below, the gateway alone limits.
  CHECK(resolve({"--max-best-of", "16"}).engine.empty());
  CHECK(resolve({"--max-best-of", "17"}).engine ==
        std::vector<EngineSetting>{{"max-best-of", "17"}});
}

TEST_CASE("the committed page of flags is that of the table") {
  INFO("docs/flags_from_tgi.md is stale; run: scripts/make_docs");
  CHECK(read_file(std::string(TGI_SOURCE_DIR) + "/docs/flags_from_tgi.md") ==
        launcher_flags_page());
}

}  // namespace tgi
