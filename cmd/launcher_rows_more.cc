// The rows of LoRAX's launcher, of TGI's llama.cpp launcher and of the variables that have no flag.
// Flags that TGI's launcher has too are in launcher_rows_tgi.cc only.
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "cmd/launcher_rows.h"
#include "cmd/launcher_setters.h"

namespace tgi {
namespace {

constexpr std::string_view kNoGraphs =
    "CUDA graphs are captured for each batch size when it is first met";
constexpr std::string_view kNoPredibase = "models and adapters of Predibase are not supported";
constexpr std::string_view kFixedCors =
    "methods and headers of cross-origin requests are what the routes need, Authorization among "
    "them";
constexpr std::string_view kOneAttention = "there is one attention for all models and prompts";

constexpr auto kLorax = std::to_array<LauncherRow>({
    sets("adapter-id",
         "ADAPTER",
         "the LoRA adapter of requests that name none: a folder or ORG/NAME[@REVISION]",
         set_static_adapter),
    fixed("source",
          "KIND",
          "local hub s3",
          "which it is follows from the model's name: a folder, ORG/NAME or s3://BUCKET/PREFIX",
          kLeaveOut,
          EnvUse::kUnread),
    sets("default-adapter-source",
         "KIND",
         "where an adapter is whose request does not say: hub, local (a path on this machine) or "
         "s3; default hub",
         set_adapter_source),
    fixed("adapter-source",
          "KIND",
          "local hub s3",
          "where --adapter-id is follows from its name: a folder, ORG/NAME or s3://BUCKET/PREFIX",
          kLeaveOut),
    refused("compile", "", kNoGraphs, kLeaveOut, EnvUse::kUnread),
    fixed("eager", "", "true", kNoGraphs, kLeaveOut, EnvUse::kUnread),
    refused("compile-max-batch-size", "N", kNoGraphs, kLeaveOut),
    refused("compile-max-rank", "N", kNoGraphs, kLeaveOut),
    refused("compile-batch-size", "N", kNoGraphs, kLeaveOut),
    sets("speculative-tokens", "N", "as --speculate (tgid --speculate)", pass<"speculate">),
    fixed("speculation-max-batch-size",
          "N",
          "32",
          "whether drafts pay follows from what a row costs in the batch as it is",
          kLeaveOut),
    as_list(sets("preloaded-adapter-ids",
                 "LIST",
                 "adapters that are loaded at the start and stay on the device, as --lora-adapters "
                 "writes them",
                 set_preloaded_adapter)),
    fixed("preloaded-adapter-source",
          "KIND",
          "local hub s3",
          "where they are follows from their names: a folder, ORG/NAME or s3://BUCKET/PREFIX",
          kLeaveOut),
    refused("predibase-api-token", "TOKEN", kNoPredibase, kLeaveOut, EnvUse::kUnread),
    fixed("eager-prefill",
          "BOOL",
          "true 1",
          "a waiting request's prompt always starts as soon as there is room",
          kLeaveOut),
    fixed("chunked-prefill",
          "BOOL",
          "true 1",
          "prompts are always cut into steps; it does not change answers",
          "leave it out, and see --max-batch-prefill-tokens"),
    fixed("prefix-caching",
          "BOOL",
          "true 1",
          "the prefix cache is always on; it does not change answers",
          kLeaveOut),
    sets_switch<&ServeOptions::merge_adapter_weights>(
        "merge-adapter-weights",
        "merge the adapter of --adapter-id into the weights while they are loaded (tgid "
        "--merge-adapter)"),
    sets("max-active-adapters",
         "N",
         "adapters in use at once; default 1024 (tgid --max-active-adapters)",
         pass<"max-active-adapters">),
    sets("adapter-cycle-time-s",
         "SECONDS",
         "an adapter that was in use for so long takes no new requests while another one waits "
         "for its place; default 2 (tgid --adapter-cycle-time)",
         pass<"adapter-cycle-time">),
    sets("adapter-memory-fraction",
         "X",
         "of the memory that weights and workspace leave, for adapters in use; default 0.1 (tgid "
         "--adapter-memory-fraction)",
         pass<"adapter-memory-fraction">),
    as_list(refused("cors-allow-header", "NAME", kFixedCors, "use --cors-allow-origin alone")),
    as_list(refused("cors-expose-header", "NAME", kFixedCors, "use --cors-allow-origin alone")),
    as_list(refused("cors-allow-method", "NAME", kFixedCors, "use --cors-allow-origin alone")),
    fixed("cors-allow-credentials",
          "BOOL",
          "false 0",
          "cookies mean nothing here, and a key goes in the Authorization header",
          "use --cors-allow-origin alone"),
    refused("download-only", "", "this command serves", "use `tgi download-weights MODEL`"),
    sets("backend",
         "NAME",
         "auto (cuda where there is a GPU, else cpu), cpu, cuda, reference; default auto. LoRAX's "
         "kinds of attention are refused (tgid --backend)",
         set_backend,
         EnvUse::kNone),
    refused("embedding-dim",
            "N",
            "which dense layer is read is said by modules.json",
            "leave it out; `dimensions` of a request takes the first so many numbers"),
    refused("disable-sgmv", "", "adapters have one kind of kernel", kLeaveOut),
    refused("memory-wiggle-room",
            "X",
            "memory is planned by arithmetic, not tried out",
            "bound the KV cache with --kv-cache-memory SIZE"),
});

constexpr auto kLlamaCpp = std::to_array<LauncherRow>({
    sets("model-gguf",
         "FILE",
         "as --model-id, of a GGUF file",
         [](ServeOptions& o, const std::string& v) { o.model = parse_launcher_text(v); }),
    sets("n-threads", "N", "as --threads (tgid --threads)", pass<"threads">),
    refused(
        "n-threads-batch", "N", "the same threads compute prompts and output", "use --threads N"),
    fixed("n-gpu-layers",
          "N",
          "0",
          "a model is on the GPU as a whole or not at all; see --backend",
          kLeaveOut),
    refused(
        "split-mode", "KIND", "a model is cut by heads only", "see --num-shard", EnvUse::kUnread),
    fixed("defrag-threshold",
          "X",
          "-1 -1.0",
          "a paged KV cache has nothing to put together",
          kLeaveOut),
    fixed("numa",
          "KIND",
          "distribute",
          "the pages of weights and KV cache always alternate between the memory nodes",
          kLeaveOut,
          EnvUse::kUnread),
    fixed("disable-mmap",
          "",
          "true",
          "weights are always packed into memory of their own",
          kLeaveOut),
    refused("use-mlock", "", "memory is not locked", "run without swap"),
    fixed(
        "disable-offload-kqv", "", "true", "keys and values are where the weights are", kLeaveOut),
    refused("disable-flash-attention", "", kOneAttention, kLeaveOut),
    refused("type-k", "TYPE", "keys and values have one type", "use --kv-cache-dtype TYPE"),
    refused("type-v", "TYPE", "keys and values have one type", "use --kv-cache-dtype TYPE"),
    refused("max-physical-batch-total-tokens",
            "N",
            "a step is not cut again by the device",
            "use --max-batch-prefill-tokens N"),
});

// Read where a model is looked for and downloaded (cmd/download/hub_env.h), for all commands.
constexpr LauncherRow of_downloads(std::string_view name, std::string_view text) {
  return sets(name, "TEXT", text, [](ServeOptions&, const std::string&) {});
}

constexpr std::string_view kOneProcess = "all ranks are threads of one process; see --num-shard";
constexpr std::string_view kNoBucket = "a model of a bucket is named s3://BUCKET/PREFIX";

constexpr auto kVariables = std::to_array<LauncherRow>({
    sets("LOG_LEVEL",
         "LEVEL",
         "debug, info, warn, error or off; default info. Other values, as TGI's filters, give a "
         "warning",
         set_log_level,
         EnvUse::kWarns),
    sets("COMPUTE_TYPE",
         "TEXT",
         "of the header x-compute-type",
         [](ServeOptions& options, const std::string& value) {
           options.compute_type = parse_launcher_text(value);
         }),
    unread("LOG_COLORIZE", "log lines have no colours"),
    of_downloads("HF_TOKEN", "of the hub, when a model is downloaded; see docs/download.md"),
    of_downloads("HUGGING_FACE_HUB_TOKEN", "older name of HF_TOKEN"),
    unread("HF_API_TOKEN", "HF_TOKEN is"),
    of_downloads("HF_HUB_OFFLINE", "as --offline, for all commands"),
    unread("HF_HUB_ENABLE_HF_TRANSFER", "files always come in parallel ranges"),
    unread("HF_HUB_USER_AGENT_ORIGIN", "the hub is told tgi's version and nothing else"),
    unread("ATTENTION", kOneAttention),
    unread("FLASH_INFER", kOneAttention),
    unread("USE_FLASH_ATTENTION", kOneAttention),
    fixed("PREFILL_CHUNKING",
          "BOOL",
          "1 true",
          "prompts are always cut into steps; it does not change answers",
          kLeaveOut),
    refused("TGI_WIGGLE_ROOM",
            "X",
            "memory is planned by arithmetic, not tried out",
            "bound the KV cache with --kv-cache-memory SIZE"),
    unread("USE_CUTLASS_W8A8", "activations are not rounded to integers on a GPU"),
    unread("SAFETENSORS_FAST_GPU", "weights are always copied straight from the mapped files"),
    unread("CUDA_VISIBLE_DEVICES",
           "the driver reads it in the daemon: it holds when it is set where tgid is started"),
    unread("NVIDIA_VISIBLE_DEVICES", "it is for container runtimes"),
    unread("ZE_AFFINITY_MASK", "there is no XPU backend"),
    unread("RANK", kOneProcess),
    unread("WORLD_SIZE", kOneProcess),
    unread("TORCH_NCCL_AVOID_RECORD_STREAMS", kOneProcess),
    in_place_of(
        "model-id",
        sets("HF_MODEL_ID",
             "ID",
             "as MODEL_ID, which goes before it, in SageMaker's containers",
             [](ServeOptions& o, const std::string& v) { o.model = parse_launcher_text(v); })),
    in_place_of(
        "revision",
        sets("HF_MODEL_REVISION",
             "REV",
             "as REVISION, which goes before it, in SageMaker's containers",
             [](ServeOptions& o, const std::string& v) { o.revision = parse_launcher_text(v); })),
    in_place_of("quantize",
                sets("HF_MODEL_QUANTIZE",
                     "KIND",
                     "as QUANTIZE, which goes before it, in SageMaker's containers",
                     set_quantize)),
    refused("HF_MODEL_TRUST_REMOTE_CODE",
            "BOOL",
            "code that comes with a model is never run",
            kLeaveOut),
    in_place_of("num-shard",
                sets("SM_NUM_GPUS",
                     "N",
                     "as NUM_SHARD, which goes before it, in SageMaker's containers",
                     pass<"num-shard">)),
    sets("AIP_PREDICT_ROUTE",
         "PATH",
         "Vertex AI's: POST there is POST /vertex",
         add_alias<"/vertex">),
    sets("AIP_HEALTH_ROUTE", "PATH", "Vertex AI's: GET there is GET /health", add_alias<"/health">),
    in_place_of("port",
                sets("AIP_HTTP_PORT",
                     "PORT",
                     "Vertex AI's: as PORT, which goes before it; without a host the server then "
                     "listens on all addresses",
                     set_port)),
    unread("AIP_MODE", "the other variables of Vertex AI are read whatever it says"),
    refused("REQUEST_LOGGER_URL",
            "URL",
            "prompts, answers and tokens of clients are never sent anywhere",
            kLeaveOut),
    fixed("LORAX_USE_GLOBAL_HF_TOKEN",
          "BOOL",
          "1 true",
          "adapters are asked for with the server's token where the request brings none",
          kLeaveOut),
    unread("PREDIBASE_MODEL_BUCKET", kNoBucket),
    unread("PREDIBASE_MODEL_FOLDER", kNoBucket),
    unread("PREDIBASE_GATEWAY_ENDPOINT", kNoBucket),
    of_downloads("S3_ENDPOINT_URL", "of a model named s3://BUCKET/PREFIX; see docs/download.md"),
    unread("R2_ACCOUNT_ID", kNoBucket),
});

}  // namespace

std::span<const LauncherRow> lorax_rows() {
  return kLorax;
}

std::span<const LauncherRow> llamacpp_rows() {
  return kLlamaCpp;
}

std::span<const LauncherRow> variable_rows() {
  return kVariables;
}

}  // namespace tgi
