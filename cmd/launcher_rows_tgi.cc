// The rows of TGI's launcher and router, and those of `tgi serve` itself. The texts are the
// reader's: they appear in --help, in the errors and in docs/flags_from_tgi.md.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/launcher_rows.h"
#include "cmd/launcher_setters.h"

namespace tgi {
namespace {

using Options = ServeOptions;

constexpr std::string_view kNoNgrok = "tunnels are no part of this server";
constexpr std::string_view kInsteadOfNgrok = "run a tunnel or a reverse proxy beside it";
constexpr std::string_view kNoTorch = "nothing here uses torch.distributed";
constexpr std::string_view kRopeInConfig =
    "rope scaling is what the model's config.json says (linear, dynamic, llama3, yarn), and can't "
    "be given beside it yet";
constexpr std::string_view kEditConfig = "set `rope_scaling` in a copy of config.json";

constexpr auto kLauncher = std::to_array<LauncherRow>({
    sets("model-id",
         "PATH",
         "as the argument MODEL: a Hugging Face folder, a GGUF file, ORG/NAME[@REVISION] or "
         "ORG/NAME:QUANTISATION of the hub, or \"demo\"; default: what the daemon has",
         [](Options& o, const std::string& v) { o.model = parse_launcher_text(v); }),
    sets("revision",
         "REV",
         "of a model of the hub: a branch, a tag or a commit; default main",
         [](Options& o, const std::string& v) { o.revision = parse_launcher_text(v); }),
    sets("validation-workers",
         "N",
         "threads of the daemon that render chats and tokenise prompts; default 2 (tgid "
         "--intake-threads)",
         set_workers),
    sets("sharded",
         "BOOL",
         "true wants --num-shard of 2 or more beside it: GPUs are not counted here. false changes "
         "nothing",
         [](Options& o, const std::string& v) { o.sharded = parse_launcher_switch(v); }),
    sets("num-shard",
         "N",
         "ranks that share the model: one GPU each, or threads of the processor, where it is no "
         "faster; default 1, where TGI takes all GPUs (tgid --num-shard)",
         pass<"num-shard">),
    sets("quantize",
         "KIND",
         "int8 or int4: round the weights to that while loading; none; the name of a format, as "
         "gptq or fp8: the checkpoint must be so. Of an unquantised one eetq and bitsandbytes are "
         "int8, bitsandbytes-nf4 and bitsandbytes-fp4 are int4, which the daemon logs. TGI's and "
         "LoRAX's other kinds are refused, each with what to use (tgid --quantize)",
         set_quantize),
    sets("speculate",
         "N",
         "tokens that are drafted at most for a step, from what followed the same text before: "
         "answers stay as they are; default: as a preset says, else none (tgid --speculate)",
         pass<"speculate">),
    sets("dtype",
         "TYPE",
         "of the weights in memory: float16, bfloat16, float32, auto; default auto, as the "
         "checkpoint says (tgid --dtype)",
         [](Options& o, const std::string& v) { pass_dtype(o, "dtype", v); }),
    sets("kv-cache-dtype",
         "TYPE",
         "of the KV cache: float16, bfloat16, float32, auto; default auto, as the weights; "
         "fp8_e4m3fn, int8 on the CPU, fp8_e5m2 is refused (tgid --kv-cache-dtype)",
         [](Options& o, const std::string& v) { pass_dtype(o, "kv-cache-dtype", v); }),
    refused("trust-remote-code",
            "",
            "code that comes with a model is never run: there is no Python here to run it",
            "leave it out; the families in README.md need none"),
    sets_count<&Options::max_concurrent_requests>(
        "max-concurrent-requests", "requests at once; one more gets 429 at once; default 128"),
    sets("max-best-of",
         "N",
         "largest `best_of`; default 2",
         [](Options& o, const std::string& v) {
           set_limit<&Options::max_best_of, 1, &ipc::ModelSettings::max_best_of>(o, v,
                                                                                 "max-best-of");
         }),
    sets("max-stop-sequences",
         "N",
         "most `stop` texts of a request; default 4",
         [](Options& o, const std::string& v) {
           set_limit<&Options::max_stop_sequences, 0, &ipc::ModelSettings::max_stop_sequences>(
               o, v, "max-stop-sequences");
         }),
    sets("max-top-n-tokens",
         "N",
         "largest `top_n_tokens`; default 5. `top_logprobs` of the OpenAI routes goes to 20",
         [](Options& o, const std::string& v) {
           set_limit<&Options::max_top_n_tokens, 0, &ipc::ModelSettings::max_top_n_tokens>(
               o, v, "max-top-n-tokens");
         }),
    sets_count<&Options::max_input_tokens>(
        "max-input-tokens", "most tokens of a prompt; default: all but one of --max-total-tokens"),
    sets_count<&Options::max_input_tokens>("max-input-length",
                                           "older name of --max-input-tokens; both is an error"),
    sets("max-total-tokens",
         "N",
         "most tokens of a request, prompt and output together; default: what the model and the KV "
         "cache allow (tgid --max-total-tokens)",
         set_max_total_tokens),
    sets("waiting-served-ratio",
         "X",
         "any value from 0 holds: it says when running requests are paused for waiting ones, and "
         "here they never are; see tgid --target-step-ms",
         [](Options&, const std::string& v) { parse_launcher_number(v, 0, 1e9); }),
    sets("max-batch-prefill-tokens",
         "N",
         "most tokens of a step, prompts and running requests together; a longer prompt takes "
         "several steps (tgid --max-batch-tokens)",
         pass<"max-batch-tokens">),
    refused("max-batch-total-tokens",
            "N",
            "the KV cache can't be given in tokens yet, only in bytes",
            "use --kv-cache-memory SIZE; `tgi ps` shows how many tokens fit"),
    sets("max-waiting-tokens",
         "N",
         "any value holds: a waiting request joins at the next step when there is room, so none "
         "waits for so many tokens",
         [](Options&, const std::string& v) { parse_launcher_count(v, 0); }),
    sets("max-batch-size",
         "N",
         "most sequences in a step; default 64, on a GPU 256 (tgid --max-running)",
         pass<"max-running">),
    fixed("cuda-graphs", "LIST", "0", "sizes are captured when they are first met", kLeaveOut),
    sets("hostname",
         "HOST",
         "address to listen on; default 127.0.0.1, with an API key 0.0.0.0. The variable is read "
         "only when it is an IP address: shells and containers put the machine's name there",
         set_host,
         EnvUse::kIfAddress),
    with_short(sets("port", "PORT", "port to listen on; default 3000, 0: a free one", set_port),
               "p"),
    refused("prometheus-port",
            "PORT",
            "/metrics is served at the one HTTP port",
            "scrape /metrics there",
            EnvUse::kUnread),
    refused("shard-uds-path",
            "PATH",
            "there are no shards, only one daemon with one socket",
            "use --socket PATH or TGI_SOCKET"),
    refused("master-addr", "HOST", kNoTorch, kLeaveOut, EnvUse::kUnread),
    refused("master-port", "PORT", kNoTorch, kLeaveOut, EnvUse::kUnread),
    sets("huggingface-hub-cache",
         "PATH",
         "where models of the hub are looked for and downloaded to; default $HF_HUB_CACHE, else "
         "$HF_HOME/hub, else ~/.cache/huggingface/hub",
         [](Options& o, const std::string& v) { o.cache_dir = parse_launcher_text(v); }),
    refused("weights-cache-override",
            "PATH",
            "weights are not kept apart from the rest of a model",
            kGiveFolder),
    refused("disable-custom-kernels",
            "",
            "there are no other kernels to fall back to",
            "set TGI_CPU_ISA=generic or TGI_BACKEND=reference to compare with plain code"),
    sets("cuda-memory-fraction",
         "X",
         "of the memory that is free on a GPU, for weights, KV cache and workspace; default 0.9 "
         "(tgid --cuda-memory-fraction)",
         pass<"cuda-memory-fraction">),
    refused("rope-scaling", "KIND", kRopeInConfig, kEditConfig, EnvUse::kRead),
    refused("rope-factor", "X", kRopeInConfig, kEditConfig, EnvUse::kRead),
    sets_switch<&Options::json_output>("json-output", "log lines as JSON"),
    sets("otlp-endpoint",
         "URL",
         "send traces there: OTLP over HTTP, usually port 4318; TGI spoke gRPC, and its port 4317 "
         "is refused",
         set_otlp_endpoint),
    sets("otlp-service-name",
         "NAME",
         "service.name of the traces; default text-generation-inference.router",
         [](Options& o, const std::string& v) { o.otlp_service_name = parse_launcher_text(v); }),
    as_list(sets("cors-allow-origin",
                 "ORIGIN",
                 "browsers' pages that may call, such as https://example.org; may be given several "
                 "times, or with commas; default: any",
                 set_origin)),
    sets("api-key",
         "KEY",
         "clients have to send `Authorization: Bearer KEY`; others see a flag in the list of "
         "processes, so rather set API_KEY",
         set_api_key),
    fixed("watermark-gamma",
          "X",
          "0.5 .5",
          "the watermark has TGI's default of 0.5, which can't be "
          "changed yet",
          kLeaveOut,
          EnvUse::kRead),
    fixed("watermark-delta",
          "X",
          "2 2.0",
          "the watermark has TGI's default of 2, which can't be "
          "changed yet",
          kLeaveOut,
          EnvUse::kRead),
    refused("ngrok", "", kNoNgrok, kInsteadOfNgrok),
    refused("ngrok-authtoken", "TOKEN", kNoNgrok, kInsteadOfNgrok),
    refused("ngrok-edge", "EDGE", kNoNgrok, kInsteadOfNgrok),
    sets("tokenizer-config-path",
         "FILE",
         "a tokenizer_config.json whose chat template is used",
         set_tokenizer_config),
    sets_switch<&Options::disable_grammar_support>(
        "disable-grammar-support",
        "answer a request with a grammar by 422 `grammar is not "
        "supported`"),
    with_short(
        refused("env",
                "",
                "there is no such list of the machine",
                "run `tgi ps`, `tgi --version` and `tgid --print-config`",
                EnvUse::kNone),
        "e"),
    sets_count<&Options::max_client_batch_size>("max-client-batch-size",
                                                "most prompts of a /v1/completions request; "
                                                "default 4"),
    as_list(sets("lora-adapters",
                 "LIST",
                 "LoRA adapters that requests may name: ADAPTER or NAME=ADAPTER, a folder or "
                 "ORG/NAME[@REVISION]",
                 set_lora_adapter)),
    fixed("usage-stats", "LEVEL", "off", "nothing about the use is ever sent anywhere", kLeaveOut),
    sets_count<&Options::payload_limit>("payload-limit",
                                        "most bytes of a request's body; default 2000000"),
    sets_switch<&Options::enable_prefill_logprobs>(
        "enable-prefill-logprobs",
        "without it `prefill` of the details is empty, whatever decoder_input_details says"),
    with_short(sets_count<&Options::graceful_termination_timeout, 0>(
                   "graceful-termination-timeout",
                   "seconds that running requests get to finish at the end; default 90"),
               "g"),
});

constexpr auto kRouter = std::to_array<LauncherRow>({
    refused(
        "max-image-fetch-size", "BYTES", "models that see images are not available yet", kLeaveOut),
    refused(
        "tokenizer-name", "PATH", "the tokenizer is the one in the model's folder", kGiveFolder),
    refused("master-shard-uds-path",
            "PATH",
            "there are no shards, only one daemon with one socket",
            "use --socket PATH or TGI_SOCKET"),
});

// A flag of its own for a setting of a model.
template <size_t kIndex>
LauncherRow serve_setting() {
  constexpr const ipc::ModelSetting& kRow = ipc::kModelSettings[kIndex];
  static const std::string text = fmt::format(
      "{}{} (tgid --{})", ipc::setting_help(kRow),
      kRow.is_switch() ? std::string() : "; default " + kRow.get(ipc::ModelSettings()), kRow.name);
  return sets(kRow.name, kRow.value_name, text, pass<Literal(kRow.name)>, EnvUse::kNone);
}

template <size_t... kIndex>
std::vector<LauncherRow> serve_settings(std::index_sequence<kIndex...>) {
  std::vector<LauncherRow> rows;
  ((ipc::kModelSettings[kIndex].in_serve ? rows.push_back(serve_setting<kIndex>()) : void()), ...);
  return rows;
}

std::vector<LauncherRow> make_serve_rows() {
  std::vector<LauncherRow> rows =
      serve_settings(std::make_index_sequence<ipc::kModelSettings.size()>());
  rows.push_back(sets(
      "offline", "",
      "download nothing: models come from folders and from the cache (HF_HUB_OFFLINE)",
      [](Options& o, const std::string&) { o.offline = true; }, EnvUse::kNone));
  rows.push_back(sets(
      "any-model", "",
      "a `model` that is neither the model's name nor an adapter's means the model that is served, "
      "instead of 404",
      [](Options& o, const std::string&) { o.any_model = true; }, EnvUse::kNone));
  rows.push_back(sets(
      "allow-pull", "",
      "clients may have models of the hub downloaded by ollama's /api/pull, and loaded by their "
      "names then: whoever reaches this server (with its API key) fills this machine's disk",
      [](Options& o, const std::string&) { o.allow_pull = true; }, EnvUse::kNone));
  rows.push_back(sets(
      "allow-runtime-lora-updating", "",
      "clients may have LoRA adapters loaded and unloaded by vLLM's routes: whoever reaches this "
      "server (with its API key) names folders that are read here",
      [](Options& o, const std::string&) { o.allow_lora_updates = true; }, EnvUse::kNone));
  LauncherRow responses = sets_count<&Options::max_stored_responses, 0>(
      "max-stored-responses",
      "most answers of /v1/responses that are kept in memory, for GET and previous_response_id; "
      "default 1000, 0: none");
  LauncherRow bytes = sets_count<&Options::max_stored_bytes>(
      "max-stored-bytes",
      "most bytes that they have together; the one used longest ago goes; default 100000000");
  for (LauncherRow row : {responses, bytes}) {
    row.env = EnvUse::kNone;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::span<const LauncherRow> serve_rows() {
  static const std::vector<LauncherRow> kRows = make_serve_rows();
  return kRows;
}

std::span<const LauncherRow> tgi_launcher_rows() {
  return kLauncher;
}

std::span<const LauncherRow> tgi_router_rows() {
  return kRouter;
}

}  // namespace tgi
