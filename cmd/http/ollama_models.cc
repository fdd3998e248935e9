// ollama's routes about models: what is served is all there is.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/sha.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/files/preset_files.h"
#include "cmd/http/adapters.h"
#include "cmd/http/info_api.h"
#include "cmd/http/model_choice.h"
#include "cmd/http/ollama_api.h"
#include "cmd/http/vectors_api.h"
#include "ipc/model_facts.h"

namespace tgi::http {
namespace {

using std::chrono::system_clock;

// Clients look at it to know what they may ask; what follows the plus does not count in it.
constexpr std::string_view kSpokenVersion = "0.13.0";

// A name as ollama writes it: with a tag.
std::string tagged(const std::string& name) {
  const size_t last_part = name.find_last_of('/') + 1;
  return name.find(':', last_part) == std::string::npos ? name + ":latest" : name;
}

std::string parameter_size(int64_t count) {
  const auto real = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", real / 1e9);
  return fmt::format("{:.1f}M", real / 1e6);
}

// "LlamaForCausalLM" is of the family llama.
std::string family_of(const std::string& architecture) {
  return ascii_lower(architecture.substr(0, architecture.find("For")));
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

OrderedJson details_of(const ipc::ModelStatus& model) {
  const std::string family = family_of(model.architecture);
  return {{"parent_model", ""},
          {"format", model.name.ends_with(".gguf") ? "gguf" : "safetensors"},
          {"family", family},
          {"families", {family}},
          {"parameter_size", parameter_size(model.num_params)},
          {"quantization_level", upper(model.quantize == "none" ? model.dtype : model.quantize)}};
}

// Clients tell models apart by it and print its beginning. The files are not read for it.
std::string digest_of(const ipc::ModelStatus& model) {
  const std::string text = fmt::format("{}\n{}\n{}\n{}", model.name, model.architecture,
                                       model.num_params, model.memory.weights);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  ::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  std::string out;
  for (const unsigned char byte : hash) out += fmt::format("{:02x}", byte);
  return out;
}

// Of its files; of a model without any since when the daemon runs.
std::string modified_at(const ipc::ModelStatus& model, double uptime_seconds) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(model.name, error);
  if (!error) {
    const auto ago = std::filesystem::file_time_type::clock::now() - written;
    return ollama_time(system_clock::now() -
                       std::chrono::duration_cast<system_clock::duration>(ago));
  }
  return ollama_time(system_clock::now() -
                     std::chrono::seconds(static_cast<int64_t>(uptime_seconds)));
}

OrderedJson head_of(const std::string& name, const ipc::ModelStatus& model) {
  return {{"name", name},
          {"model", name},
          {"size", model.memory.weights},
          {"digest", digest_of(model)},
          {"details", details_of(model)}};
}

OrderedJson capabilities_of(const ipc::ModelStatus& model) {
  if (model.task == "embed") return {"embedding"};
  if (model.task != "generate") return OrderedJson::array();
  OrderedJson out = {"completion"};
  if (model.has_chat_template) out.push_back("tools");
  if (!model.reasoning_parser.empty()) out.push_back("thinking");
  return out;
}

// Nothing where it is none, or can't be read (any more).
std::optional<Preset> preset_of(const ipc::ModelStatus& model) {
  if (!is_preset_path(model.name)) return std::nullopt;
  try {
    return read_preset(model.name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Lines as ollama writes them.
std::string parameters_text(const std::optional<Preset>& preset, int64_t max_total_tokens) {
  std::string out = fmt::format("num_ctx {}", max_total_tokens);
  if (!preset) return out;
  for (const ParameterLine& line : parameter_lines(preset->parameters)) {
    if (line.name == "num_ctx") continue;  // the line above is what came of it
    out += line.name == "stop" ? fmt::format("\nstop {}", dump_json(line.value))
                               : fmt::format("\n{} {}", line.name, line.value);
  }
  return out;
}

// Where on this machine its base lies is nobody's business over HTTP.
std::string modelfile_of(const Preset& preset) {
  Preset named = preset;
  named.from = std::filesystem::path(preset.from).filename().string();
  if (!preset.adapter.empty()) {
    named.adapter = std::filesystem::path(preset.adapter).filename().string();
  }
  return to_modelfile(named);
}

void add_preset(const Preset& preset, OrderedJson& out) {
  if (preset.chat_template) out["template"] = *preset.chat_template;
  if (preset.system) out["system"] = *preset.system;
  if (!preset.licenses.empty())
    out["license"] = fmt::format("{}", fmt::join(preset.licenses, "\n"));
  for (const PresetMessage& message : preset.messages) {
    out["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
}

// What its files say, unless the daemon can't read them (any more).
std::optional<ipc::ModelFacts> facts_of(const Scope& scope, const ipc::ModelStatus& model) {
  try {
    return ipc::model_facts_from_json(ask_daemon(
        scope.service(), ipc::kInspect, ipc::to_json(ipc::InspectParams{.model = model.name})));
  } catch (const Error&) {
    return std::nullopt;
  }
}

OrderedJson model_info(const ipc::ModelStatus& model, const std::optional<ipc::ModelFacts>& facts) {
  const std::string family = family_of(model.architecture);
  OrderedJson out = {{"general.architecture", family},
                     {"general.parameter_count", model.num_params},
                     {family + ".context_length", model.max_total_tokens},
                     {family + ".vocab_size", model.vocab_size}};
  if (model.task == "embed") out[family + ".embedding_length"] = model.dimensions;
  if (!facts) return out;
  out[family + ".block_count"] = facts->num_layers;
  out[family + ".embedding_length"] = facts->hidden_size;
  out[family + ".feed_forward_length"] = facts->intermediate_size;
  out[family + ".attention.head_count"] = facts->num_heads;
  out[family + ".attention.head_count_kv"] = facts->num_kv_heads;
  out[family + ".attention.key_length"] = facts->head_dim;
  return out;
}

// Of one that is in use: if that ended now.
std::string expires_at(const ipc::ModelStay& stay) {
  if (stay.pinned || stay.keep_alive_seconds < 0) return "9999-12-31T23:59:59Z";  // it stays
  const double seconds = stay.expires_in_seconds.value_or(stay.keep_alive_seconds);
  return ollama_time(system_clock::now() + std::chrono::duration_cast<system_clock::duration>(
                                               std::chrono::duration<double>(seconds)));
}

void require_known(Scope& scope, const std::string& name) {
  ipc::GenerateRequest request;
  choose_ollama_model(scope, name, request);
}

}  // namespace

std::vector<ServedStatus> ask_served(Scope& scope) {
  const auto served = models_now(scope.service());
  const ipc::Status daemon = ask_status(scope);
  std::vector<ServedStatus> out;
  for (const auto& each : *served) {
    ServedStatus one{each->model_id, each->max_total_tokens, {}, daemon.uptime_seconds};
    const auto take = [&](const auto& status) {
      one.is_loaded = status.phase == "ready" || status.phase == "draining";
      one.stay = status.stay;
      if (status.known() != nullptr) one.model = *status.known();
      if (one.model.name.empty()) one.model.name = status.path;
    };
    if (each->daemon_model.empty()) {
      take(daemon);
    } else if (ipc::has_model(daemon, each->daemon_model)) {
      take(ipc::find_model(daemon, each->daemon_model));
    } else {
      continue;
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::string ollama_time(system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", fmt::gmtime(system_clock::to_time_t(time)),
                     rest.count());
}

OrderedJson ollama_error_json(const ApiError& error) {
  return {{"error", error.what()}};
}

int ollama_status(int ours) {
  if (ours == 422) return 400;
  return ours == 424 ? 500 : ours;
}

Response ollama_error(const ApiError& error) {
  return with_retry(json_response(ollama_status(error.status()), ollama_error_json(error)));
}

void choose_ollama_model(Scope& scope, const std::string& name, ipc::GenerateRequest& request) {
  OpenAiParameters parameters;
  // A name with a tag may be the model's own, as that of a GGUF file of the hub.
  const bool is_whole = is_base_model(name, scope.options());
  parameters.model = is_whole ? name : without_latest(name);
  try {
    choose_by_model(scope, parameters, {&request, 1});
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
    throw ApiError(404, error.type(),
                   fmt::format("model '{}' not found; this server has '{}'", name.substr(0, 200),
                               fmt::join(scope.options().model_ids, "', '")),
                   error.code());
  }
}

Response ollama_tags(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  OrderedJson models = OrderedJson::array();
  const auto add = [&](const std::string& name, const ServedStatus& served) {
    OrderedJson one = head_of(tagged(name), served.model);
    one["modified_at"] = modified_at(served.model, served.uptime_seconds);
    models.push_back(std::move(one));
  };
  const std::vector<ServedStatus> served = ask_served(*scope);
  for (const ServedStatus& each : served) add(each.model_id, each);
  for (const std::string& name : adapter_names(scope->service())) add(name, served.front());
  return json_response(200, {{"models", std::move(models)}});
}

Response ollama_ps(std::shared_ptr<Scope> scope, const Request& /*request*/) {
  OrderedJson models = OrderedJson::array();
  for (const ServedStatus& each : ask_served(*scope)) {
    if (!each.is_loaded) continue;
    OrderedJson one = head_of(tagged(each.model_id), each.model);
    const int64_t size = each.model.memory.held();
    one["size"] = size;
    one["size_vram"] = each.model.backend == "cpu" || each.model.backend == "reference" ? 0 : size;
    one["context_length"] = each.max_total_tokens;
    one["expires_at"] = expires_at(each.stay);
    models.push_back(std::move(one));
  }
  return json_response(200, {{"models", std::move(models)}});
}

// The one that the scope's request is for.
static ServedStatus served_of(Scope& scope) {
  std::vector<ServedStatus> models = ask_served(scope);
  for (ServedStatus& each : models) {
    if (each.model_id == scope.options().model_id) return std::move(each);
  }
  throw ApiError(503, "unavailable", "no model is loaded");
}

Response ollama_show(std::shared_ptr<Scope> scope, const OllamaModelBody& body) {
  require_known(*scope, ollama_name(body));
  const ServedStatus served = served_of(*scope);
  ipc::ModelStatus model = served.model;
  const std::optional<ipc::ModelFacts> facts = facts_of(*scope, model);
  if (facts && model.architecture.empty()) {  // it was never loaded
    model.architecture = facts->architecture;
    model.num_params = facts->num_params;
    model.vocab_size = facts->vocab_size;
    model.max_total_tokens = facts->max_positions;
  }
  const std::optional<Preset> preset = preset_of(model);
  OrderedJson out = {{"modelfile", preset ? modelfile_of(*preset)
                                          : fmt::format("FROM {}\n", scope->options().model_id)},
                     {"parameters", parameters_text(preset, scope->options().max_total_tokens)},
                     {"template", ""},  // in Go's notation, which no model here has
                     {"details", details_of(model)},
                     {"model_info", model_info(model, facts)},
                     {"capabilities", capabilities_of(model)},
                     {"modified_at", modified_at(model, served.uptime_seconds)}};
  if (facts && !facts->licence.empty()) out["license"] = facts->licence;
  if (preset) add_preset(*preset, out);
  return json_response(200, out);
}

Response ollama_version(std::shared_ptr<Scope> /*scope*/, const Request& /*request*/) {
  return json_response(200, {{"version", fmt::format("{}+tgi.{}", kSpokenVersion, ipc::kVersion)}});
}

}  // namespace tgi::http
