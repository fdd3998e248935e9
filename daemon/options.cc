#include "daemon/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/files/paths.h"

namespace tgi::daemon {
namespace {

[[noreturn]] void fail(std::string_view expected, const std::string& text) {
  throw Error(Code::kInvalidArgument, fmt::format("expected {}, got \"{}\"", expected, text));
}

template <typename T>
T parse_number(const std::string& text, T low, T high, std::string_view expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(value >= low && value <= high)) {
    fail(expected, text);
  }
  return value;
}

int32_t parse_count(const std::string& text) {
  return parse_number<int32_t>(text, 1, INT32_MAX, "a whole number of at least 1");
}

bool parse_switch(const std::string& text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false" || text.empty()) return false;
  fail("1 or 0", text);
}

std::chrono::milliseconds parse_seconds(const std::string& text) {
  const auto seconds = parse_number<double>(text, 0, 1e6, "a number of seconds");
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::string format_seconds(std::chrono::milliseconds value) {
  return fmt::format("{}", static_cast<double>(value.count()) / 1000);
}

struct SizeUnit {
  std::string_view suffix;
  double bytes;
};
constexpr std::array<SizeUnit, 7> kSizeUnits = {{{"KiB", 1024.0},
                                                 {"MiB", 1048576.0},
                                                 {"GiB", 1073741824.0},
                                                 {"KB", 1e3},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"", 1.0}}};

int64_t parse_bytes(const std::string& text) {
  constexpr std::string_view kExpected = "a size such as 512MiB or 4GiB";
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0 && value < 1e15)) fail(kExpected, text);
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const SizeUnit& unit : kSizeUnits) {
    if (unit.suffix == suffix) return static_cast<int64_t>(value * unit.bytes);
  }
  fail(kExpected, text);
}

// Rows by kind of value. `Field` is a captureless lambda that names the member.
template <typename Field>
constexpr OptionRow text_option(std::string_view flag,
                                std::string_view value_name,
                                std::string_view help,
                                Field,
                                std::string_view choices = {}) {
  return {.flag = flag,
          .value_name = value_name,
          .help = help,
          .choices = choices,
          .is_switch = false,
          .set = [](Options& options, const std::string& text) { Field{}(options) = text; },
          .get = [](const Options& options) { return std::string(Field{}(options)); }};
}

template <typename Field>
constexpr OptionRow count_option(std::string_view flag, std::string_view help, Field) {
  return {.flag = flag,
          .value_name = "N",
          .help = help,
          .is_switch = false,
          .set = [](Options& options,
                    const std::string& text) { Field{}(options) = parse_count(text); },
          .get = [](const Options& options) { return fmt::format("{}", Field{}(options)); }};
}

template <typename Field>
constexpr OptionRow switch_option(std::string_view flag, std::string_view help, Field) {
  return {.flag = flag,
          .value_name = "",
          .help = help,
          .is_switch = true,
          .set = [](Options& options,
                    const std::string& text) { Field{}(options) = parse_switch(text); },
          .get = [](const Options& options) { return std::string(Field{}(options) ? "1" : "0"); }};
}

template <typename Field>
constexpr OptionRow seconds_option(std::string_view flag, std::string_view help, Field) {
  return {.flag = flag,
          .value_name = "SECONDS",
          .help = help,
          .is_switch = false,
          .set = [](Options& options,
                    const std::string& text) { Field{}(options) = parse_seconds(text); },
          .get = [](const Options& options) { return format_seconds(Field{}(options)); }};
}

constexpr auto kTable = std::to_array<OptionRow>({
    text_option(
        "model",
        "MODEL",
        "Hugging Face folder to load at start, or \"demo\" for the toy model inside the executable",
        [](auto& o) -> auto& { return o.model.model; }),
    switch_option(
        "no-model", "start without a model; `tgi load` brings one", [](auto& o) -> auto& {
          return o.no_model;
        }),
    text_option(
        "load-format",
        "FORMAT",
        "auto, or dummy: random weights from config.json alone, to measure speed without a "
        "checkpoint",
        [](auto& o) -> auto& { return o.model.load_format; },
        "auto dummy"),
    text_option(
        "tokenizer-config",
        "FILE",
        "a tokenizer_config.json whose chat template goes before the model's own",
        [](auto& o) -> auto& { return o.model.tokenizer_config; }),
    text_option(
        "dtype",
        "TYPE",
        "of the weights in memory: auto (as the checkpoint says), f32, bf16, f16; f32 is exact and "
        "takes twice "
        "the memory and time",
        [](auto& o) -> auto& { return o.model.dtype; },
        "auto f32 bf16 f16"),
    text_option(
        "quantize",
        "KIND",
        "none, or round the weights of the layers to int8 or int4 while loading: less memory, "
        "faster decoding, slightly different answers; the format of a quantised checkpoint "
        "(compressed-tensors, gptq, awq, fp8) is known by itself and only checked",
        [](auto& o) -> auto& { return o.model.quantize; },
        "none int8 int4 compressed-tensors gptq awq fp8"),
    {.flag = "quantize-group-size",
     .value_name = "N",
     .help =
         "columns of a weight matrix that share a scale: 32, 64, 96 and so on to 256; 0: 128 for "
         "int8, 32 for int4",
     .is_switch = false,
     .set =
         [](Options& options, const std::string& text) {
           options.model.quantize_group_size =
               parse_number<int32_t>(text, 0, 256, "a multiple of 32 up to 256, or 0");
         },
     .get =
         [](const Options& options) {
           return fmt::format("{}", options.model.quantize_group_size);
         }},
    text_option(
        "kv-cache-dtype",
        "TYPE",
        "of the KV cache: auto (as dtype), f32, bf16, f16; f8e4m3 on a GPU",
        [](auto& o) -> auto& { return o.model.kv_cache_dtype; },
        "auto f32 bf16 f16 f8e4m3"),
    {.flag = "kv-cache-memory",
     .value_name = "SIZE",
     .help = "of the KV cache of all ranks, such as 4GiB; default: room for 16 whole contexts, at "
             "most half of what the weights leave",
     .is_switch = false,
     .set =
         [](Options& options, const std::string& text) {
           if (text != "auto") options.model.kv_cache_bytes = parse_bytes(text);
         },
     .get =
         [](const Options& options) {
           const auto& bytes = options.model.kv_cache_bytes;
           return bytes ? fmt::format("{}", *bytes) : std::string("auto");
         }},
    {.flag = "max-total-tokens",
     .value_name = "N",
     .help = "of one request, prompt and output together; default: what the model and the KV cache "
             "allow",
     .is_switch = false,
     .set =
         [](Options& options, const std::string& text) {
           if (text != "auto")
             options.model.max_total_tokens =
                 parse_number<int32_t>(text, 2, INT32_MAX, "a whole number of at least 2");
         },
     .get =
         [](const Options& options) {
           const auto& tokens = options.model.max_total_tokens;
           return tokens ? fmt::format("{}", *tokens) : std::string("auto");
         }},
    count_option(
        "max-running",
        "sequences in a step; each costs a slot of the device's table",
        [](auto& o) -> auto& { return o.model.max_running; }),
    count_option(
        "max-batch-tokens",
        "token rows in a step, prompts and decodes together; more prefills faster and costs "
        "workspace",
        [](auto& o) -> auto& { return o.model.max_batch_tokens; }),
    {.flag = "target-step-ms",
     .value_name = "MS",
     .help = "while others decode, prompts are cut so small that a step stays below this many "
             "milliseconds; 0: never",
     .is_switch = false,
     .set =
         [](Options& options, const std::string& text) {
           options.model.target_step_ms =
               parse_number<double>(text, 0, 1e9, "a number of milliseconds");
         },
     .get = [](const Options& options) { return fmt::format("{}", options.model.target_step_ms); }},
    count_option(
        "max-waiting", "requests in the queue; more are refused at once", [](auto& o) -> auto& {
          return o.model.max_waiting;
        }),
    count_option(
        "max-best-of", "sequences of one request", [](auto& o) -> auto& {
          return o.model.limits.max_best_of;
        }),
    count_option(
        "max-stop-sequences", "of one request", [](auto& o) -> auto& {
          return o.model.limits.max_stop_sequences;
        }),
    count_option(
        "max-top-n-tokens", "alternatives reported for each token", [](auto& o) -> auto& {
          return o.model.limits.max_top_n_tokens;
        }),
    text_option(
        "backend",
        "NAME",
        "auto (cuda where there is a GPU, else cpu), cpu, cuda, or reference: plain "
        "double-precision loops, slow, to check against",
        [](auto& o) -> auto& { return o.model.backend; },
        "auto cpu cuda reference"),
    count_option(
        "num-shard",
        "ranks that share the model by tensor parallelism, each with its part of the weights and "
        "of the KV cache: one GPU each, or threads of this processor, where it is no faster than "
        "one; must divide the model's heads",
        [](auto& o) -> auto& { return o.model.num_shard; }),
    switch_option(
        "deterministic",
        "bits of an answer never depend on what else is in its batch; slower on a GPU, always so "
        "on the CPU",
        [](auto& o) -> auto& { return o.model.deterministic; }),
    {.flag = "cuda-memory-fraction",
     .value_name = "X",
     .help = "of the memory that is free on a GPU, for weights, KV cache and workspace together",
     .is_switch = false,
     .set =
         [](Options& options, const std::string& text) {
           options.model.cuda_memory_fraction =
               parse_number<double>(text, 1e-6, 1, "a number above 0, at most 1");
         },
     .get =
         [](const Options& options) {
           return fmt::format("{}", options.model.cuda_memory_fraction);
         }},
    text_option(
        "cpu-isa",
        "NAME",
        "auto (the best this processor has), amx, avx512bf16, avx512vnni, avx512, avx2, generic; "
        "all "
        "give the same bits",
        [](auto& o) -> auto& { return o.model.cpu_isa; },
        "auto amx avx512bf16 avx512vnni avx512 avx2 generic"),
    {.flag = "threads",
     .value_name = "N",
     .help = "of the CPU backend, for all ranks together; auto: one per physical core this process "
             "may use, within the quota of its cgroup",
     .is_switch = false,
     .set =
         [](Options& options, const std::string& text) {
           options.model.num_threads = text == "auto" ? 0 : parse_count(text);
         },
     .get =
         [](const Options& options) {
           return options.model.num_threads == 0 ? std::string("auto")
                                                 : fmt::format("{}", options.model.num_threads);
         }},
    switch_option(
        "pin-threads",
        "keep each thread of the CPU backend on one processor: for a machine that serves nothing "
        "else",
        [](auto& o) -> auto& { return o.model.pin_threads; }),
    text_option(
        "socket", "PATH", "Unix socket to listen on", [](auto& o) -> auto& { return o.socket; }),
    text_option(
        "allow-group",
        "GROUP",
        "members of this group may use the daemon, beside its own user and root: generate, "
        "tokenize, "
        "see its status and metrics; a socket handed over by systemd lets in whom its SocketGroup= "
        "and SocketMode= do",
        [](auto& o) -> auto& { return o.allow_group; }),
    text_option(
        "manage-group",
        "GROUP",
        "members of this group may manage the daemon too, beside its own user and root: load, "
        "unload, "
        "stop, quantize, inspect and check; where another group has the socket they must be in "
        "both",
        [](auto& o) -> auto& { return o.manage_group; }),
    count_option(
        "intake-threads", "threads that render chats and tokenise prompts", [](auto& o) -> auto& {
          return o.num_intake_threads;
        }),
    seconds_option(
        "slow-reader-timeout",
        "a client that reads nothing for so long is cancelled",
        [](auto& o) -> auto& { return o.model.slow_reader_timeout; }),
    seconds_option(
        "drain-timeout",
        "on SIGTERM or `tgi stop`, running requests get so long to finish",
        [](auto& o) -> auto& { return o.drain_timeout; }),
    seconds_option(
        "stall-timeout",
        "when requests wait and no step has ended for so long, systemd's watchdog gets no more "
        "signs of life; 0: it always does",
        [](auto& o) -> auto& { return o.stall_timeout; }),
    text_option(
        "log-level",
        "LEVEL",
        "debug, info, warn, error or off",
        [](auto& o) -> auto& { return o.log_level; },
        "debug info warn error off"),
});

const OptionRow* find_row(std::string_view flag) {
  for (const OptionRow& row : kTable) {
    if (row.flag == flag) return &row;
  }
  return nullptr;
}

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

std::string environment_name(const OptionRow& row) {
  std::string name = "TGI_" + std::string(row.flag);
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

ResolvedOptions resolve_options(const std::vector<GivenFlag>& flags) {
  ResolvedOptions out;
  out.options.socket = own_socket_path();
  for (const OptionRow& row : kTable) {
    Origin origin = Origin::kDefault;
    const auto apply = [&](const std::string& text, const std::string& where) {
      try {
        row.set(out.options, text);
      } catch (const Error& error) {
        throw error.in(where);
      }
    };
    const std::string variable = environment_name(row);
    if (const char* text = std::getenv(variable.c_str()); text != nullptr && *text != '\0') {
      apply(text, variable);
      origin = Origin::kEnvironment;
    }
    for (const GivenFlag& given : flags) {
      if (given.flag != row.flag) continue;
      apply(given.value, "--" + given.flag);
      origin = Origin::kFlag;
    }
    out.origins.push_back(origin);
  }
  for (const GivenFlag& given : flags) TGI_CHECK(find_row(given.flag) != nullptr);
  return out;
}

std::string print_config(const ResolvedOptions& resolved) {
  std::string out;
  for (size_t i = 0; i < kTable.size(); ++i) {
    const OptionRow& row = kTable[i];
    std::string origin = "default";
    if (resolved.origins[i] == Origin::kEnvironment) origin = environment_name(row);
    if (resolved.origins[i] == Origin::kFlag) origin = "--" + std::string(row.flag);
    out += fmt::format("{:<20} = {:<28} ({})\n", row.flag, row.get(resolved.options), origin);
  }
  return out;
}

}  // namespace tgi::daemon
