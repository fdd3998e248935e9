#include "cmd/serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor_limit.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/fetch_model.h"
#include "cmd/download/hub_names.h"
#include "cmd/http/adapters.h"
#include "cmd/http/background_runs.h"
#include "cmd/http/descriptor_budget.h"
#include "cmd/http/gateway.h"
#include "cmd/http/http_server.h"
#include "cmd/http/response_store.h"
#include "cmd/http/stream_pump.h"
#include "cmd/model_path.h"
#include "cmd/models/use_record.h"
#include "cmd/named_adapters.h"
#include "cmd/serve_daemon.h"
#include "cmd/serve_pull.h"
#include "cmd/serve_watch.h"

namespace tgi {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLastWords{5000};  // for the final error events of cut-off streams

// SIGTERM, Ctrl-C and SIGHUP as a descriptor. Made before any thread, so that all have them
// blocked.
UniqueFd block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

void take_signal(int fd) {
  signalfd_siginfo info;
  (void)!::read(fd, &info, sizeof info);
}

void fire(const UniqueFd& event) {
  const uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

// As the hub calls the tasks.
std::string pipeline_tag(std::string_view task) {
  if (task == "embed") return "feature-extraction";
  if (task == "classify") return "text-classification";
  if (task == "classify-tokens") return "token-classification";
  return "text-generation";
}

// Of so many tokens in all; a model that generates has at least one to give.
int64_t most_input_tokens(const ipc::ModelStatus& model, int64_t max_total_tokens) {
  return max_total_tokens - (model.task == "generate" ? 1 : 0);
}

http::ApiOptions api_options(const ServeOptions& options, const ipc::ModelStatus& model) {
  http::ApiOptions out;
  const bool is_as_asked = !options.model.empty() && model.name == options.model_path;
  const std::string& name = model.served_name;
  out.model_id = is_as_asked ? options.model : name.empty() ? shown_model(model.name) : name;
  out.compute_type =
      options.compute_type.empty() ? model.backend + "+optimized" : options.compute_type;
  out.pipeline_tag = pipeline_tag(model.task);
  out.max_concurrent_requests = options.max_concurrent_requests;
  out.max_best_of = options.max_best_of;
  out.max_choices = model.max_best_of;
  out.max_stop_sequences = options.max_stop_sequences;
  out.max_top_n_tokens = options.max_top_n_tokens;
  out.max_top_logprobs = std::min(out.max_top_logprobs, model.max_top_n_tokens);
  // The texts of a model that gives vectors are as long as its files say, whatever is asked for.
  const bool generates = model.task == "generate";
  const auto asked_total = generates ? options.max_total_tokens : std::nullopt;
  const auto asked_input = generates ? options.max_input_tokens : std::nullopt;
  out.max_total_tokens = asked_total.value_or(model.max_total_tokens);
  out.max_input_tokens = asked_input.value_or(most_input_tokens(model, out.max_total_tokens));
  out.max_client_batch_size = options.max_client_batch_size;
  out.validation_workers = options.validation_workers;
  out.enable_prefill_logprobs = options.enable_prefill_logprobs;
  out.supports_grammars = !options.disable_grammar_support;
  out.allows_lora_updates = options.allow_lora_updates;
  out.any_model = options.any_model;
  out.has_chat_template = model.has_chat_template;
  out.has_reasoning = !model.reasoning_parser.empty();
  return out;
}

// The same for a model that took the place of the first: what was asked for then still bounds it,
// what the new one allows does too.
http::ApiOptions options_of_another(const ServeOptions& options, const ipc::ModelStatus& model) {
  http::ApiOptions out = api_options(options, model);
  out.max_total_tokens = std::min(out.max_total_tokens, model.max_total_tokens);
  out.max_input_tokens =
      std::min(out.max_input_tokens, most_input_tokens(model, out.max_total_tokens));
  out.max_best_of = std::min(out.max_best_of, model.max_best_of);
  out.max_stop_sequences = std::min(out.max_stop_sequences, model.max_stop_sequences);
  out.max_top_n_tokens = std::min(out.max_top_n_tokens, model.max_top_n_tokens);
  return out;
}

// Of all models of the daemon, the default one's first; those that were never loaded have its
// limits until they are. REQUIRES: there is a default one.
std::vector<http::ApiOptions> options_of_all(const ServeOptions& options,
                                             http::ApiOptions of_default,
                                             const ipc::Status& status) {
  std::vector<http::ApiOptions> out = {std::move(of_default)};
  out.front().phase = status.phase;
  out.front().stay = status.stay;
  for (const ipc::OtherModelStatus& other : status.others) {
    const ipc::ModelStatus* const known = other.known();
    if (known == nullptr && other.phase == "loading" && other.stay.num_waiting == 0) continue;
    http::ApiOptions& added =
        out.emplace_back(known == nullptr ? out.front() : options_of_another(options, *known));
    added.model_id = other.name;
    added.daemon_model = other.name;
    added.is_known = known != nullptr;
    added.phase = other.phase;
    added.stay = other.stay;
  }
  return out;
}

struct LimitRow {
  std::string_view flag;
  int64_t asked;
  int64_t available;
};

void check_limits(const http::ApiOptions& options, const ipc::ModelStatus& model) {
  for (const LimitRow& row :
       {LimitRow{"--max-total-tokens", options.max_total_tokens, model.max_total_tokens},
        LimitRow{"--max-input-tokens", options.max_input_tokens,
                 most_input_tokens(model, options.max_total_tokens)},
        LimitRow{"--max-best-of", options.max_best_of, model.max_best_of},
        LimitRow{"--max-stop-sequences", options.max_stop_sequences, model.max_stop_sequences},
        LimitRow{"--max-top-n-tokens", options.max_top_n_tokens, model.max_top_n_tokens}}) {
    if (row.asked <= row.available) continue;
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected at most {}, which is what the model {} and its daemon "
                            "allow, got {}",
                            row.flag, row.available, model.name, row.asked));
  }
}

std::unique_ptr<http::OtlpExporter> make_exporter(const ServeOptions& options,
                                                  http::RequestLog& log) {
  if (!options.otlp_endpoint) return nullptr;
  return std::make_unique<http::OtlpExporter>(http::OtlpOptions{
      .endpoint = *options.otlp_endpoint,
      .service_name = options.otlp_service_name,
      .on_trouble = [&log](const std::string& trouble) {
        log.event(LogLevel::kWarn,
                  trouble.empty() ? "traces are accepted again" : "traces are lost",
                  {{"reason", trouble}});
      }});
}

struct GivenAdapter {
  http::NamedAdapter named;
  bool is_pinned = false;
};

GivenAdapter find_adapter(const std::string& text, bool is_pinned, const ResolveOptions& resolve) {
  auto [name, adapter] = split_named_adapter(text);
  return {.named = {.name = std::move(name), .folder = resolve_model(adapter, resolve)},
          .is_pinned = is_pinned};
}

// Those that were given, brought here and checked by the daemon.
http::AdaptersOptions prepare_adapters(const ServeOptions& options,
                                       const ipc::Client& client,
                                       const ResolveOptions& resolve) {
  std::vector<GivenAdapter> given;
  for (const std::string& text : options.lora_adapters) {
    given.push_back(find_adapter(text, false, resolve));
  }
  for (const std::string& text : options.preloaded_adapters) {
    given.push_back(find_adapter(text, true, resolve));
  }
  http::AdaptersOptions out;
  if (!options.static_adapter.empty()) {
    given.push_back(find_adapter(options.static_adapter, true, resolve));
    out.static_adapter = given.back().named.name;
  }
  for (const GivenAdapter& each : given) {
    ipc::LoadAdapterParams params{.name = each.named.name, .path = each.named.folder};
    if (each.is_pinned) params.pinned = true;
    client.call(ipc::kLoadAdapter, ipc::to_json(params));
    out.named.push_back(each.named);
  }
  out.default_source = options.adapter_source;
  // As LoRAX does.
  out.finds_others = options.preloaded_adapters.empty();
  out.convert = [resolve](const std::string& folder) {
    ResolveOptions of_request = resolve;
    of_request.cancel_fd = -1;
    return resolve_model(folder, of_request);
  };
  out.resolve = [resolve](const std::string& id, const std::optional<std::string>& token) {
    // What a client names may be neither a folder of this machine nor any address.
    const auto name = download::parse_hub_name(id);
    const bool is_of_hub = download::is_remote(id) && name && name->file.empty();
    if (!is_of_hub && !id.starts_with("s3://")) {
      throw Error(Code::kNotFound, "expected ORG/NAME[@REVISION] of the hub");
    }
    ResolveOptions of_request = resolve;
    of_request.cancel_fd = -1;
    if (token) {
      // Where requests without the token don't look.
      of_request.token = token;
      of_request.cache_dir = state_dir() + "/adapters/" + download::sha256_of(*token).substr(0, 32);
      check_access(id, of_request);
    }
    return resolve_model(id, of_request);
  };
  return out;
}

// Serves until a signal, then lets what runs finish. A second signal ends it at once.
void serve_until_signal(http::HttpServer& server,
                        http::Service& service,
                        http::RequestLog& log,
                        int signals,
                        const UniqueFd& cut_off,
                        milliseconds drain_timeout) {
  const UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::jthread acceptor([&] { server.run(stop.get()); });
  pollfd signal{.fd = signals, .events = POLLIN, .revents = 0};
  while (::poll(&signal, 1, -1) <= 0) {
  }
  take_signal(signals);
  service.draining = true;
  log.event(LogLevel::kInfo, "shutting down",
            {{"running", service.num_unanswered.load()}, {"timeout_ms", drain_timeout.count()}});
  const auto deadline = std::chrono::steady_clock::now() + drain_timeout;
  while (service.num_unanswered > 0 && std::chrono::steady_clock::now() < deadline) {
    if (::poll(&signal, 1, 20) > 0) break;
  }
  fire(cut_off);
  fire(stop);
  server.close_idle();
  if (!server.wait_until_empty(kLastWords)) server.shutdown_all();
}

}  // namespace

int run_serve(const ServeFlags& flags, const CommonFlags& common) {
  ServeOptions options =
      resolve_serve_flags(flags, process_environment, ipc::read_config(config_path()));
  for (const std::string& warning : options.warnings) Session::say("warning: " + warning);
  const UniqueFd signals = block_signals();
  const http::DescriptorBudget descriptors =
      http::plan_descriptors(raise_descriptor_limit(), options.max_concurrent_requests);
  options.max_concurrent_requests = descriptors.num_requests;
  const std::string socket = common.socket.empty() ? default_socket_path() : common.socket;
  const ipc::Client starter({.socket_path = socket, .cancel_fd = signals.get()});
  ipc::StartOptions start;
  start.may_start = !common.no_start;
  http::RequestLog log({.json = options.json_output, .level = parse_log_level(options.log_level)});
  start.on_notice = [&](const std::string& line) {
    options.json_output ? log.event(LogLevel::kInfo, line) : Session::say(line);
  };
  if (!descriptors.notice.empty()) {
    options.json_output ? log.event(LogLevel::kWarn, descriptors.notice)
                        : Session::say("warning: " + descriptors.notice);
  }
  http::ServerOptions server_options;
  server_options.host = options.host;
  server_options.port = options.port;
  server_options.max_connections = static_cast<int>(descriptors.num_connections);
  server_options.max_body_bytes = static_cast<size_t>(options.payload_limit);
  http::try_address(server_options);  // before minutes of loading that would be in vain
  ResolveOptions resolve{
      .cache_dir = options.cache_dir, .offline = options.offline, .cancel_fd = signals.get()};
  if (options.json_output) {
    resolve.on_line = [&](const std::string& line) { log.event(LogLevel::kInfo, line); };
  }
  if (!options.model.empty()) {
    ResolveOptions of_model = resolve;
    of_model.revision = options.revision;
    of_model.must_be_model = true;
    const ModelPaths paths = resolve_model_or_heads(options.model, of_model);
    options.model_path = paths.model;
    if (!paths.speculator.empty()) options.engine.push_back({"speculator", paths.speculator});
  }
  for (EngineSetting& setting : options.engine) {
    const ipc::ModelSetting* const row = ipc::find_model_setting(setting.flag);
    if (row == nullptr || !row->names_model(setting.value)) continue;
    setting.value = resolve_files(setting.value, resolve);
  }
  for (ipc::NamedModel& each : options.beside) each.model = resolve_model(each.model, resolve);
  for (ipc::NamedModel& each : options.on_demand) each.model = resolve_model(each.model, resolve);
  if (options.merge_adapter_weights) {
    if (options.static_adapter.empty()) {
      throw Error(Code::kInvalidArgument,
                  "--merge-adapter-weights: which adapter? name it with --adapter-id");
    }
    const GivenAdapter given = find_adapter(options.static_adapter, false, resolve);
    options.engine.push_back({"merge-adapter", given.named.folder});
    options.static_adapter.clear();
  }
  const ipc::Status status = prepare_served_model(starter, options, start);
  if (!options.model_path.empty() && options.model_path != "demo") record_use(options.model_path);

  http::Adapters adapters(prepare_adapters(options, starter, resolve));
  const http::ApiOptions limits = api_options(options, *status.known());
  check_limits(limits, *status.known());
  set_log_level(parse_log_level(options.log_level));
  const std::unique_ptr<http::OtlpExporter> exporter = make_exporter(options, log);
  http::MetricsOptions metrics_options;
  metrics_options.max_input_tokens = limits.max_input_tokens;
  metrics_options.max_total_tokens = limits.max_total_tokens;
  if (exporter) metrics_options.trace_counts = [&exporter] { return exporter->counts(); };
  metrics_options.has_adapters = [&adapters] { return adapters.are_in_play(); };
  http::Metrics metrics(metrics_options);
  const UniqueFd cut_off(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int num_pumps = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 4U));
  http::StreamPumps pumps(num_pumps, cut_off.get(), http::ConnectionLimits().write_timeout);
  http::ResponseStore responses(options.max_stored_responses, options.max_stored_bytes);
  http::Service service{.options = options_of_all(options, limits, status),
                        .daemon = {.socket_path = socket, .cancel_fd = cut_off.get()},
                        .permits = http::Permits(limits.max_concurrent_requests),
                        .metrics = metrics,
                        .log = log,
                        .pumps = &pumps,
                        .exporter = exporter.get(),
                        .adapters = &adapters,
                        .responses = &responses};
  if (options.allow_pull) service.pull = make_puller(resolve, socket, cut_off.get());
  http::BackgroundRuns background;  // ends before the service that it uses
  service.background = &background;
  http::GatewayOptions gateway_options{.api_key = options.api_key,
                                       .cors_allow_origin = options.cors_allow_origin};
  for (const RouteAlias& alias : options.route_aliases) {
    gateway_options.aliases.emplace_back(alias.path, alias.route);
  }
  http::Gateway gateway(std::move(gateway_options), service);
  const auto take_models = [&](const ipc::Status& now) {
    service.options.set(options_of_all(options, options_of_another(options, *now.known()), now));
  };
  // Outlives the server, whose threads ask it.
  ServeWatch watch({.socket_path = socket,
                    .serve = options,
                    .daemon = static_cast<pid_t>(status.pid),
                    .model = status.known()->name,
                    .on_model = take_models,
                    .on_event = [&](bool is_trouble, const std::string& text) {
                      log.event(is_trouble ? LogLevel::kWarn : LogLevel::kInfo, text);
                    }});
  service.look_again = [&] {
    constexpr int kTimeoutMs = 250;  // the routes that ask answer without a daemon too
    ipc::ClientOptions asked{.socket_path = socket, .hello_timeout_ms = kTimeoutMs};
    try {
      ipc::Exchange exchange(asked, ipc::kStatus, ipc::OrderedJson::object());
      const std::optional<ipc::Reply> reply = exchange.next(kTimeoutMs);
      if (!reply || !reply->result) return;
      const ipc::Status now = ipc::status_from_json(*reply->result);
      if (now.known() == nullptr) return;
      take_models(now);
      watch.note_model(now.known()->name);
    } catch (const Error&) {
      // The watch tells of a daemon that does not answer.
    }
  };
  service.daemon_trouble = [&watch] { return watch.trouble(); };
  http::HttpServer server(server_options, gateway);
  const std::string url = http_url(options.host, static_cast<uint16_t>(server.port()));
  if (options.json_output) {
    log.event(LogLevel::kInfo, "serving", {{"model", limits.model_id}, {"url", url}});
  } else {
    Session::say(fmt::format("serving {} on {}", limits.model_id, url));
  }
  serve_until_signal(server, service, log, signals.get(), cut_off,
                     std::chrono::seconds(options.graceful_termination_timeout));
  if (!options.json_output) Session::say("the daemon goes on; `tgi stop` ends it");
  return 0;
}

}  // namespace tgi
