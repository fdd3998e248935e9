#include "cmd/serve_daemon.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "cmd/model_path.h"

namespace tgi {
namespace {

// Settings that a running daemon tells of itself, by their flags.
struct KnownSetting {
  std::string_view flag;
  std::string (*get)(const ipc::ModelStatus& model);
};

constexpr std::array kKnown = {
    KnownSetting{"dtype", [](const ipc::ModelStatus& m) { return m.dtype; }},
    KnownSetting{"quantize", [](const ipc::ModelStatus& m) { return m.quantize; }},
    KnownSetting{"kv-cache-dtype", [](const ipc::ModelStatus& m) { return m.kv_cache_dtype; }},
    KnownSetting{"backend", [](const ipc::ModelStatus& m) { return m.backend; }},
    KnownSetting{"num-shard",
                 [](const ipc::ModelStatus& m) { return fmt::format("{}", m.num_shard); }},
    KnownSetting{
        "deterministic",
        [](const ipc::ModelStatus& m) { return std::string(m.deterministic ? "1" : "0"); }},
    KnownSetting{"max-running",
                 [](const ipc::ModelStatus& m) { return fmt::format("{}", m.max_running); }},
    KnownSetting{"max-batch-tokens",
                 [](const ipc::ModelStatus& m) { return fmt::format("{}", m.max_batch_tokens); }},
};

// The one that tgid takes without a value; on when it is given.
constexpr std::string_view kSwitch = "deterministic";

[[noreturn]] void refuse_running(const std::string& what, const ipc::Client& client) {
  throw Error(Code::kInvalidArgument,
              fmt::format("the daemon that runs at {} {}; end it with `tgi stop --socket {}`, or "
                          "give this one another --socket",
                          client.socket_path(), what, client.socket_path()));
}

// What is set for the engine has to hold for the daemon that is there.
void check_settings(const ipc::Status& status,
                    const ServeOptions& options,
                    const ipc::Client& client) {
  for (const EngineSetting& setting : options.engine) {
    if (setting.value == "auto") continue;
    for (const KnownSetting& known : kKnown) {
      if (known.flag != setting.flag) continue;
      const std::string value = known.get(*status.model);
      if (value != setting.value) {
        refuse_running(
            fmt::format("has --{} {}, not {} as asked for", setting.flag, value, setting.value),
            client);
      }
    }
  }
}

void load(const ipc::Client& client, const std::string& model, const ServeOptions& options) {
  ipc::LoadParams params{.model = model};
  if (options.tokenizer_config_path) {
    params.tokenizer_config = absolute_model(*options.tokenizer_config_path);
  }
  for (const EngineSetting& setting : options.engine) {
    const auto number = [&]() -> int64_t {
      int64_t value = 0;
      std::from_chars(setting.value.data(), setting.value.data() + setting.value.size(), value);
      return value;
    };
    if (setting.flag == "dtype") params.dtype = setting.value;
    if (setting.flag == "quantize") params.quantize = setting.value;
    if (setting.flag == "kv-cache-dtype") params.kv_cache_dtype = setting.value;
    if (setting.flag == "backend") params.backend = setting.value;
    if (setting.flag == "num-shard") params.num_shard = number();
    if (setting.flag == "deterministic") params.deterministic = true;
    if (setting.flag == "cuda-memory-fraction") {
      params.cuda_memory_fraction = std::strtod(setting.value.c_str(), nullptr);
    }
    if (setting.flag == "max-running") params.max_running = number();
    if (setting.flag == "max-batch-tokens") params.max_batch_tokens = number();
    if (setting.flag == "max-total-tokens") params.max_total_tokens = number();
  }
  client.call(ipc::kLoad, ipc::to_json(params));
}

std::vector<std::string> daemon_flags(const std::string& model, const ServeOptions& options) {
  std::vector<std::string> flags;
  if (!model.empty()) flags = {"--model", model};
  if (options.tokenizer_config_path) {
    flags.push_back("--tokenizer-config");
    flags.push_back(absolute_model(*options.tokenizer_config_path));
  }
  for (const EngineSetting& setting : options.engine) {
    flags.push_back("--" + setting.flag);
    if (setting.flag != kSwitch) flags.push_back(setting.value);
  }
  return flags;
}

}  // namespace

ipc::Status prepare_served_model(const ipc::Client& client,
                                 const ServeOptions& options,
                                 ipc::StartOptions start) {
  const std::string& model = options.model_path;
  bool started = false;
  start.daemon_flags = daemon_flags(model, options);
  const auto tell = start.on_notice;
  start.on_notice = [&](const std::string& line) {
    started = started || line.starts_with("starting");
    if (tell) tell(line);
  };
  ipc::Status status = ipc::prepare_daemon(client, start);
  if (!status.model && !model.empty()) {
    load(client, model, options);
    start.may_start = false;
    status = ipc::prepare_daemon(client, start);
    started = true;
  }
  if (!status.model) {
    throw Error(Code::kNotFound, fmt::format("the daemon at {} has no model; name one: tgi serve "
                                             "MODEL",
                                             client.socket_path()));
  }
  if (started) return status;
  if (!model.empty() && status.model->name != model) {
    refuse_running(fmt::format("has the model {}, not {} as asked for", status.model->name, model),
                   client);
  }
  check_settings(status, options, client);
  if (options.tokenizer_config_path) {
    refuse_running("was started without --tokenizer-config-path", client);
  }
  return status;
}

}  // namespace tgi
