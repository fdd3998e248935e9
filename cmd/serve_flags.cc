#include "cmd/serve_flags.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "base/ascii.h"
#include "base/error.h"
#include "cmd/download/fetch_model.h"
#include "cmd/launcher_flags.h"
#include "cmd/named_adapters.h"
#include "cmd/session.h"
#include "ipc/duration.h"

namespace tgi {
namespace {

constexpr std::string_view kDemoModel = "demo";
constexpr std::string_view kLoopback = "127.0.0.1";
constexpr std::string_view kAllAddresses = "0.0.0.0";

bool is_ip_address(const std::string& text) {
  in6_addr bytes{};  // large enough for both
  return ::inet_pton(AF_INET, text.c_str(), &bytes) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &bytes) == 1;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_ip_address(host));
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    out.push_back(part.substr(begin, part.find_last_not_of(' ') + 1 - begin));
  }
  return out;
}

[[noreturn]] void refuse(const LauncherRow& row) {
  throw Error(Code::kUnsupported, launcher_refusal(row));
}

bool is_fixed_value(const LauncherRow& row, const std::string& value) {
  const std::string wanted = ascii_lower(value);
  std::istringstream values{std::string(row.fixed)};
  for (std::string fixed; values >> fixed;) {
    if (fixed == wanted) return true;
  }
  return false;
}

// For each row at most once: its flag, else its variable, else the file.
class Resolver {
 public:
  Resolver(const ServeFlags& flags, const Environment& environment, const ipc::ConfigFile& file)
      : flags_(flags), environment_(environment), file_(file) {}

  ServeOptions resolve() {
    check_names();
    size_t index = 0;
    for (const LauncherGroup& group : launcher_groups()) {
      for (const LauncherRow& row : group.rows) resolve_row(row, flags_.rows.at(index++));
    }
    take_model();
    take_beside(*flags_.beside, "--model", options_.beside);
    take_beside(*flags_.on_demand, "--on-demand", options_.on_demand);
    take_keeping();
    take_http();
    check_lengths();
    check_sharded();
    check_adapter_names(options_);
    choose_host();
    return std::move(options_);
  }

 private:
  void check_names() const {
    std::vector<std::string> names;
    for (const LauncherGroup& group : launcher_groups()) {
      for (const LauncherRow& row : group.rows) {
        if (!row.is_variable()) names.emplace_back(row.flag);
      }
    }
    ipc::check_config_names(file_, ipc::kServeSection, names);
  }

  void resolve_row(const LauncherRow& row, const CLI::Option* option) {
    if (option != nullptr && option->count() > 0) return take_flag(row, *option);
    if (is_given_otherwise(row)) return;
    const bool is_read = row.env != EnvUse::kUnread && row.env != EnvUse::kNone;
    if (is_read && take_variable(row)) return;
    take_entry(row);
  }

  void take_entry(const LauncherRow& row) {
    const ipc::ConfigEntry* const entry = file_.find(ipc::kServeSection, row.flag);
    if (entry == nullptr) return;
    const bool is_model = row.flag == "model-id";
    if (is_model && flags_.model->count() > 0) return;
    if (entry->is_list && !row.is_list) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected one value, got a list", file_.place(*entry)));
    }
    given_variables_.insert(row.flag);
    if (is_model) where_model_ = file_.place(*entry);
    try {
      for (const std::string& text : entry->values) apply_launcher_row(row, text, options_);
    } catch (const Error& error) {
      throw error.in(file_.place(*entry));
    }
  }

  bool is_given_otherwise(const LauncherRow& row) const {
    const std::string_view means = row.in_place_of.empty() ? row.flag : row.in_place_of;
    if (means == "model-id" && flags_.model->count() > 0 && !row.in_place_of.empty()) return true;
    if (flags_.http->count() > 0 && (means == "port" || means == "hostname")) return true;
    return !row.in_place_of.empty() && is_given(row.in_place_of);
  }

  void take_flag(const LauncherRow& row, const CLI::Option& option) {
    given_flags_.insert(row.flag);
    try {
      for (const std::string& text : option.results()) take_values(row, text);
    } catch (const Error& error) {
      rethrow_for_flag(fmt::format("--{}", row.flag), error);
    }
  }

  // False: it is not set.
  bool take_variable(const LauncherRow& row) {
    const std::string name = launcher_variable(row.flag);
    const std::optional<std::string> text = environment_(name);
    if (!text || text->empty()) return false;
    if (row.env == EnvUse::kIfAddress && !is_ip_address(*text)) return false;
    given_variables_.insert(row.flag);
    try {
      take_values(row, *text);
    } catch (const Error& error) {
      if (row.env != EnvUse::kWarns) throw error.in(name);
      options_.warnings.push_back(fmt::format("{} has no effect: {}", name, error.what()));
    }
    return true;
  }

  void take_values(const LauncherRow& row, const std::string& text) {
    if (!row.is_list) return apply_launcher_row(row, text, options_);
    const std::vector<std::string> values = split_commas(text);
    if (values.empty()) apply_launcher_row(row, text, options_);  // which refuses it
    for (const std::string& value : values) apply_launcher_row(row, value, options_);
  }

  // A wrong value of a flag is a usage error; what is understood but refused is none.
  [[noreturn]] static void rethrow_for_flag(const std::string& flag, const Error& error) {
    if (error.code() == Code::kInvalidArgument) throw UsageError(error.in(flag).what());
    throw error.in(flag);
  }

  void take_beside(const CLI::Option& option,
                   const std::string& flag,
                   std::vector<ipc::NamedModel>& into) {
    for (const std::string& text : option.results()) {
      ipc::NamedModel model;
      try {
        model = ipc::split_named_model(text);
      } catch (const Error& error) {
        throw UsageError(fmt::format("{}: {}", flag, error.what()));
      }
      if (model.name.empty()) {
        throw UsageError(fmt::format("{}: expected NAME=MODEL, got \"{}\"", flag, text));
      }
      const auto is_called = [&](const auto& other) { return other.name == model.name; };
      if (std::ranges::any_of(options_.beside, is_called) ||
          std::ranges::any_of(options_.on_demand, is_called)) {
        throw UsageError(fmt::format("{}: two models have the name {}", flag, model.name));
      }
      into.push_back(std::move(model));
    }
  }

  // What the daemon is started with that is of no model.
  void take_keeping() {
    if (flags_.max_models->count() > 0) {
      options_.engine.push_back({"max-models", flags_.max_models->as<std::string>()});
    }
    if (flags_.load_installed->count() > 0) options_.engine.push_back({"load-installed", ""});
    if (flags_.keep_alive->count() == 0) return;
    const auto text = flags_.keep_alive->as<std::string>();
    try {
      (void)ipc::parse_keep_alive(text);
    } catch (const Error& error) {
      throw UsageError(fmt::format("--keep-alive: {}", error.what()));
    }
    options_.engine.push_back({"keep-alive", text});
  }

  void take_model() {
    std::string where = given_flags_.contains("model-id") ? "--model-id" : where_model_;
    if (flags_.model->count() > 0) {
      if (given_flags_.contains("model-id")) {
        throw UsageError("MODEL and --model-id are the same; give one of them");
      }
      options_.model = flags_.model->results().front();
      where = "MODEL";
      if (options_.model.empty()) throw UsageError("MODEL: expected a folder, got \"\"");
    }
    const std::string& model = options_.model;
    if (model.empty() || model == kDemoModel || std::filesystem::is_directory(model)) return;
    if (download::is_gguf_file(model)) return;
    try {
      download::refuse_missing_gguf(model);
      const bool may_be_of_ollama = model.find(':') != std::string::npos;
      if (download::is_remote(model) || may_be_of_ollama) return;
    } catch (const Error& error) {
      throw error.in(where);
    }
    throw Error(Code::kNotFound, fmt::format("{}: there is no folder {}", where, model));
  }

  // "[HOST]:PORT"; an IPv6 address in brackets of its own.
  void take_http() {
    if (flags_.http->count() == 0) return;
    for (const char* other : {"hostname", "port"}) {
      if (!given_flags_.contains(other)) continue;
      throw UsageError(fmt::format("--http and --{} exclude each other; give one of them", other));
    }
    const std::string text = flags_.http->results().front();
    const size_t colon = text.rfind(':');
    const std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
    const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (colon == std::string::npos || (host.find(':') != std::string::npos && !in_brackets)) {
      throw UsageError(fmt::format(
          "--http: expected [HOST]:PORT, as :8080, 127.0.0.1:8080 or [::1]:8080, got \"{}\"",
          text));
    }
    set_from_http("port", text.substr(colon + 1));
    if (host.empty()) return;
    set_from_http("hostname", host);
    given_flags_.insert("hostname");
  }

  void set_from_http(std::string_view flag, const std::string& value) {
    for (const LauncherGroup& group : launcher_groups()) {
      for (const LauncherRow& row : group.rows) {
        if (row.flag != flag) continue;
        try {
          return row.set(options_, value);
        } catch (const Error& error) {
          rethrow_for_flag(fmt::format("--http, {}", flag), error);
        }
      }
    }
    TGI_CHECK(false);
  }

  bool is_given(std::string_view flag) const {
    return given_flags_.contains(flag) || given_variables_.contains(flag);
  }

  void check_lengths() const {
    if (is_given("max-input-tokens") && is_given("max-input-length")) {
      throw UsageError(
          "--max-input-tokens and --max-input-length (MAX_INPUT_TOKENS, MAX_INPUT_LENGTH) are the "
          "same; give max-input-tokens only");
    }
    const auto& input = options_.max_input_tokens;
    const auto& total = options_.max_total_tokens;
    if (input && total && *input >= *total) {
      throw UsageError(fmt::format(
          "--max-input-tokens: expected less than max-total-tokens, which is {}, got {}", *total,
          *input));
    }
  }

  void check_sharded() const {
    if (!options_.sharded.value_or(false)) return;
    for (const EngineSetting& setting : options_.engine) {
      if (setting.flag == "num-shard" && setting.value != "1") return;
    }
    throw UsageError(
        "--sharded (SHARDED) is true: expected --num-shard (NUM_SHARD) of 2 or more beside it");
  }

  void choose_host() {
    const bool has_key = options_.api_key.has_value();
    if (given_flags_.contains("api-key")) {
      options_.warnings.emplace_back(
          "--api-key can be read in the list of processes; set API_KEY instead");
    }
    // Whoever sets it runs the server in a container of its own.
    const bool is_in_container = is_given("AIP_HTTP_PORT");
    if (!is_given("hostname") && !is_in_container) {
      options_.host = has_key ? kAllAddresses : kLoopback;
      if (has_key) {
        options_.warnings.emplace_back(
            "an API key is set and no host is given: listening on all addresses, without TLS; "
            "--hostname 127.0.0.1 keeps it on this machine");
      }
      return;
    }
    if (!is_given("hostname")) options_.host = kAllAddresses;
    if (!has_key && !is_loopback(options_.host)) {
      options_.warnings.push_back(
          fmt::format("anyone who reaches {} can use this server: no API key is set (API_KEY)",
                      http_url(options_.host, options_.port)));
    }
  }

  const ServeFlags& flags_;
  const Environment& environment_;
  const ipc::ConfigFile& file_;
  std::string where_model_ = "MODEL_ID";  // where it is not a flag
  ServeOptions options_;
  std::set<std::string_view> given_flags_;
  std::set<std::string_view> given_variables_;  // in the file too
};

}  // namespace

void apply_launcher_row(const LauncherRow& row, const std::string& value, ServeOptions& options) {
  // A switch that is off asks for nothing, whatever it is.
  if (row.is_switch() && !parse_launcher_switch(value)) return;
  if (row.use == FlagUse::kRefused) refuse(row);
  if (row.use == FlagUse::kFixed && !row.is_switch() && !is_fixed_value(row, value)) refuse(row);
  if (row.use == FlagUse::kSets) row.set(options, value);
}

std::string http_url(const std::string& host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("http://[{}]:{}", host, port)
               : fmt::format("http://{}:{}", host, port);
}

void add_serve_flags(CLI::App& app, ServeFlags& flags) {
  app.footer(
      "Starts a daemon when none is running, waits for the model and serves until Ctrl-C or "
      "SIGTERM.\n\n"
      "Takes the flags of text-generation-launcher and lorax-launcher, and their variables: "
      "MAX_BEST_OF for --max-best-of. Those without a meaning here are refused with the reason; "
      "docs/flags_from_tgi.md lists all.");
  // Not "model": CLI11 2.4 takes that for the name of --model, too.
  flags.model =
      app.add_option("MODEL", CLI::callback_t(),
                     "a Hugging Face folder, a GGUF file, a model of the hub as "
                     "ORG/NAME[@REVISION] or ORG/NAME:QUANTISATION, which is downloaded when it "
                     "is not here, a name of `tgi ls`, or \"demo\"; default: what the daemon has")
          ->type_name("MODEL");
  flags.beside =
      app.add_option("--model", CLI::callback_t(),
                     "one more model beside MODEL, under a name by which requests ask for it; may "
                     "be given more than once")
          ->type_name("NAME=MODEL")
          ->expected(1, CLI::detail::expected_max_vector_size)
          ->allow_extra_args(false);
  flags.on_demand =
      app.add_option("--on-demand", CLI::callback_t(),
                     "a model that is loaded when a request asks for it by this name; may be given "
                     "more than once")
          ->type_name("NAME=MODEL")
          ->expected(1, CLI::detail::expected_max_vector_size)
          ->allow_extra_args(false);
  const std::string of_installed =
      "models that tgi has downloaded or made are loaded when a request asks for them by the name "
      "that `tgi ls` shows; of a daemon that is started for this";
  flags.load_installed = app.add_flag("--load-installed", of_installed);
  flags.max_models =
      app.add_option("--max-models", CLI::callback_t(),
                     "models that are loaded at once; beyond it the one unused for longest gives "
                     "way, once its requests have ended; default: as many as fit")
          ->type_name("N")
          ->check(CLI::Range(0, 1'000'000));
  flags.keep_alive =
      app.add_option("--keep-alive", CLI::callback_t(),
                     "how long a model stays without a request: 5m, 1h30m, 300 (seconds), 0 (no "
                     "longer than its requests), -1 (it stays); default -1")
          ->type_name("TIME");
  flags.http = app.add_option("--http", CLI::callback_t(),
                              "where to listen, as :8080, 127.0.0.1:8080 or [::1]:8080; port 0: a "
                              "free one; default 127.0.0.1:3000, with an API key 0.0.0.0:3000")
                   ->type_name("ADDRESS");
  for (const LauncherGroup& group : launcher_groups()) {
    for (const LauncherRow& row : group.rows) {
      flags.rows.push_back(nullptr);
      if (row.is_variable()) continue;
      const std::string names = row.short_name.empty()
                                    ? fmt::format("--{}", row.flag)
                                    : fmt::format("-{},--{}", row.short_name, row.flag);
      const std::string help(row.text);
      CLI::Option* option = row.is_switch() ? app.add_flag(names, help)
                                            : app.add_option(names, CLI::callback_t(), help)
                                                  ->type_name(std::string(row.value_name));
      if (row.is_list)
        option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
      option->group(row.use == FlagUse::kSets ? std::string(group.help) : "");
      flags.rows.back() = option;
    }
  }
}

ServeOptions resolve_serve_flags(const ServeFlags& flags,
                                 const Environment& environment,
                                 const ipc::ConfigFile& file) {
  return Resolver(flags, environment, file).resolve();
}

}  // namespace tgi
