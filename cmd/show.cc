#include "cmd/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "cmd/bench/table.h"
#include "cmd/model_path.h"
#include "cmd/models/model_list.h"
#include "cmd/ps.h"
#include "ipc/model_facts.h"

namespace tgi {
namespace {

struct Shown {
  ListedModel listed;
  std::vector<InstalledFile> files;
  std::optional<ipc::ModelFacts> facts;
  std::optional<ipc::AdapterFolder> adapter;  // instead of facts, of an adapter
  std::optional<Preset> preset;               // of one, with the facts of its base
  std::string problem;                        // why there are no facts
  int exit_status = 0;                        // of that; 0 where the model may well be loaded
};

std::string row(std::string_view name, const std::string& value) {
  return fmt::format("{:<16} {}\n", name, value);
}

std::string count_text(int64_t count) {
  const auto real = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.2f} billion", real / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.2f} million", real / 1e6);
  return fmt::format("{}", count);
}

std::string origin_rows(const ListedModel& listed, bool is_adapter) {
  const InstalledModel& model = listed.model;
  std::string out = row(is_adapter ? "adapter" : "model", model.name);
  if (listed.state != ListedModel::State::kReady) {
    out += row("state", std::string(state_name(listed.state)));
  }
  if (!model.source.empty()) out += row("source", model.source);
  if (!model.revision.empty()) out += row("revision", model.revision);
  if (!model.commit.empty()) out += row("commit", model.commit);
  if (!model.path.empty()) out += row("folder", model.path);
  return out;
}

std::string chat_template_text(const ipc::ModelFacts& facts) {
  if (!facts.chat_template_error.empty()) return "can't be used: " + facts.chat_template_error;
  if (facts.chat_templates.empty()) return "none";
  const std::string names = fmt::format("{}", fmt::join(facts.chat_templates, ", "));
  return fmt::format("{}{}", facts.chat_templates.size() == 1 ? "yes" : names,
                     facts.knows_tools ? ", knows tools" : "");
}

std::string stored_text(const ipc::ModelFacts& facts) {
  if (!facts.weights_error.empty()) return "can't be read: " + facts.weights_error;
  std::vector<std::string> parts;
  for (const ipc::StoredWeights& stored : facts.stored) {
    parts.push_back(fmt::format("{} in {} {} tensor{}", format_bytes(stored.bytes),
                                stored.num_tensors, stored.dtype,
                                stored.num_tensors == 1 ? "" : "s"));
  }
  return fmt::format("{} ({})", fmt::join(parts, ", "), facts.weight_format);
}

// "1 KV heads of 256 in 12 layers, 1 KV heads of 512 in 3 layers, which 20 more layers read"
std::string kv_heads_text(const ipc::ModelFacts& facts) {
  if (facts.kv_heads.empty()) {
    return fmt::format("{} KV heads of {}", facts.num_kv_heads, facts.head_dim);
  }
  std::vector<std::string> parts;
  for (const ipc::KvHeads& row : facts.kv_heads) {
    parts.push_back(fmt::format("{} KV heads of {} in {} layer{}", row.num_kv_heads,
                                format_head_size(row), row.num_layers,
                                row.num_layers == 1 ? "" : "s"));
  }
  if (facts.num_shared_kv_layers > 0) {
    parts.push_back(fmt::format("which {} more layer{}", facts.num_shared_kv_layers,
                                facts.num_shared_kv_layers == 1 ? " reads" : "s read"));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string context_text(const ipc::ModelFacts& facts) {
  std::string out = fmt::format("{} tokens", facts.max_positions);
  if (facts.chosen_tokens > 0) {
    out += fmt::format(", of which layers that choose see {}", facts.chosen_tokens);
  }
  if (facts.sliding_window > 0) {
    out +=
        fmt::format(", {} layers see the last {}", facts.num_windowed_layers, facts.sliding_window);
  }
  return out;
}

std::string facts_rows(const ipc::ModelFacts& facts) {
  std::string out = row("architecture", fmt::format("{}, {} parameters", facts.architecture,
                                                    count_text(facts.num_params)));
  out += row("layers", fmt::format("{}, hidden {}, intermediate {}", facts.num_layers,
                                   facts.hidden_size, facts.intermediate_size));
  if (facts.num_heads > 0)
    out += row("heads", fmt::format("{} with {}", facts.num_heads, kv_heads_text(facts)));
  out +=
      row("vocabulary", fmt::format("{} tokens{}", facts.vocab_size,
                                    facts.tied_embeddings ? ", head tied to the embedding" : ""));
  out += row("context", context_text(facts));
  if (facts.num_experts > 0) {
    out += row("experts", fmt::format("{} in a layer, {} for each token", facts.num_experts,
                                      facts.experts_per_token));
  }
  if (facts.num_state_layers > 0) {
    out += row("state", fmt::format("{} in {} layers for each sequence, whatever its length",
                                    format_bytes(facts.state_bytes), facts.num_state_layers));
  }
  out += row("weights", stored_text(facts));
  out += row("chat template", chat_template_text(facts));
  out += row("licence", facts.licence.empty() ? "not given in its files" : facts.licence);
  return out;
}

std::string adapter_rows(const ipc::AdapterFolder& adapter) {
  std::vector<std::string> kinds = {adapter.is_dora ? "DoRA" : "LoRA"};
  if (adapter.is_rank_stabilised) kinds.emplace_back("rank-stabilised");
  if (adapter.has_b_biases) kinds.emplace_back("biases of B");
  if (adapter.bias != "none") kinds.push_back(fmt::format("trained biases ({})", adapter.bias));
  std::string out = row("kind", fmt::format("{}", fmt::join(kinds, ", ")));
  if (!adapter.base_model.empty()) {
    out += row("made for", adapter.revision.empty() ? adapter.base_model
                                                    : adapter.base_model + "@" + adapter.revision);
  }
  const bool has_others = adapter.max_rank > adapter.rank;
  out += row("rank", fmt::format("{}{}, alpha {:g}", adapter.rank,
                                 has_others ? fmt::format(" (up to {})", adapter.max_rank) : "",
                                 adapter.alpha));
  if (!adapter.targets.empty()) {
    out += row("asked for", fmt::format("{}", fmt::join(adapter.targets, ", ")));
  }
  if (!adapter.weights_error.empty()) return out + row("weights", adapter.weights_error);
  out += row("changes",
             fmt::format("{} linear{}: {}", adapter.num_linears,
                         adapter.num_linears == 1 ? "" : "s", fmt::join(adapter.modules, ", ")));
  return out + row("weights", format_bytes(adapter.bytes));
}

std::string files_rows(const std::vector<InstalledFile>& files) {
  std::string out;
  for (const InstalledFile& file : files) {
    out += row(out.empty() ? "files" : "",
               fmt::format("{:>10}  {}", format_bytes(file.bytes), file.name));
  }
  return out;
}

// One line a dtype, one column a context.
std::string memory_table(const ipc::ModelFacts& facts) {
  std::vector<std::string> heads = {"dtype", "weights", "KV / token"};
  for (const ipc::DTypePlan& plan : facts.plans) {
    if (!plan.error.empty()) continue;
    for (const ipc::ContextPlan& context : plan.contexts) {
      heads.push_back(fmt::format("{} tokens", context.tokens));
    }
    break;
  }
  bench::Table table(heads);
  std::string errors;
  for (const ipc::DTypePlan& plan : facts.plans) {
    if (!plan.error.empty()) {
      errors += fmt::format("{}: {}\n", plan.dtype, plan.error);
      continue;
    }
    std::vector<std::string> cells = {plan.dtype, format_bytes(plan.weights),
                                      format_bytes(plan.kv_bytes_per_token)};
    for (const ipc::ContextPlan& context : plan.contexts) {
      cells.push_back(format_bytes(context.total));
    }
    table.add(std::move(cells));
  }
  return fmt::format(
      "\nMemory for one sequence: weights, workspace and KV cache, on the {} backend, which has "
      "{}\n\n{}{}",
      facts.backend, format_bytes(facts.memory), table.text(), errors);
}

std::string metadata_table(const std::vector<ipc::MetadataRow>& metadata) {
  size_t width = 0;
  for (const ipc::MetadataRow& one : metadata) width = std::max(width, one.name.size());
  std::string out = "\nMetadata of the file\n\n";
  for (const ipc::MetadataRow& one : metadata) {
    out += fmt::format("{:<{}}  {}\n", one.name, width, one.value);
  }
  return out;
}

// A text of several lines, the first beside the name.
std::string text_rows(std::string_view name, const std::string& text) {
  std::string out;
  size_t begin = 0;
  do {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += row(begin == 0 ? name : "", text.substr(begin, end - begin));
    begin = end + 1;
  } while (begin < text.size());
  return out;
}

std::string preset_rows(const Preset& preset) {
  std::string out = row("from", shown_model(preset.from));
  if (!preset.adapter.empty()) out += row("adapter", preset.adapter);
  for (const ParameterLine& line : parameter_lines(preset.parameters)) {
    out += row(line.name, line.value);
  }
  if (!preset.speculator.empty()) out += row("speculator", preset.speculator);
  if (!preset.draft_model.empty()) out += row("draft model", preset.draft_model);
  for (const std::string& part : preset.not_used) out += row("not used", part);
  if (preset.schema) out += text_rows("schema", *preset.schema);
  if (preset.system) out += text_rows("system", *preset.system);
  if (preset.chat_template) out += text_rows("template", *preset.chat_template);
  for (const PresetMessage& message : preset.messages) {
    out += text_rows("message", fmt::format("{}: {}", message.role, message.content));
  }
  for (const std::string& license : preset.licenses) out += text_rows("licence", license);
  return out;
}

// With the base's name as commands take it, where it has one.
std::string modelfile_of(const Preset& preset) {
  Preset named = preset;
  named.from = shown_model(preset.from);
  return to_modelfile(named);
}

std::string text_of(const Shown& shown) {
  std::string out = origin_rows(shown.listed, shown.adapter.has_value());
  if (shown.preset) out += preset_rows(*shown.preset);
  if (shown.adapter) out += adapter_rows(*shown.adapter);
  if (shown.facts) out += facts_rows(*shown.facts);
  if (!shown.problem.empty()) out += row("can't be loaded", shown.problem);
  out += files_rows(shown.files);
  if (shown.facts) out += memory_table(*shown.facts);
  if (shown.facts && !shown.facts->metadata.empty()) out += metadata_table(shown.facts->metadata);
  return out;
}

std::string json_of(const Shown& shown) {
  ipc::OrderedJson out = to_json(shown.listed);
  out["files"] = ipc::OrderedJson::array();
  for (const InstalledFile& file : shown.files) {
    out["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
    if (!file.hash.empty()) out["files"].back()["hash"] = file.hash;
  }
  out["facts"] = shown.facts ? ipc::to_json(*shown.facts) : ipc::OrderedJson();
  if (shown.adapter) out.update(ipc::to_json(*shown.adapter));
  if (shown.preset) out["modelfile"] = modelfile_of(*shown.preset);
  out["error"] = shown.problem.empty() ? ipc::OrderedJson() : ipc::OrderedJson(shown.problem);
  return out.dump(-1, ' ', false, ipc::OrderedJson::error_handler_t::replace) + "\n";
}

// What a model of another program brings; nothing where that can't be used, which the daemon tells.
std::optional<Preset> defaults_of(const ListedModel& listed) {
  if (listed.preset.empty()) return std::nullopt;
  try {
    return read_preset(listed.preset);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What the daemon's model of that name was loaded from, or will be; "": it has none.
std::string path_in_daemon(const Session& session, const std::string& name) {
  try {
    const ipc::Status status = session.client().status();
    if (!ipc::has_model(status, name)) return "";
    return ipc::find_model(status, name).path;
  } catch (const Error&) {
    return "";  // no daemon, or one that says nothing
  }
}

ListedModel find_shown(const Session& session, const std::string& name) {
  const Store store = Store::open();
  try {
    return find_listed_model(store, name);
  } catch (const Error& error) {
    const std::string path =
        error.code() == Code::kNotFound ? path_in_daemon(session, name) : std::string();
    if (path.empty()) throw;
    return find_listed_model(store, shown_model(path));
  }
}

// What the daemon makes of the folder; it need not have a model loaded.
void ask_daemon(Session& session, Shown& shown) {
  const ListedModel& listed = shown.listed;
  session.prepare({.wait_for_model = false, .accept_failed = true});
  const bool is_built_in = listed.state == ListedModel::State::kBuiltIn;
  const std::string& path = listed.preset.empty() ? listed.model.path : listed.preset;
  try {
    const ipc::OrderedJson result = session.client().call(
        ipc::kInspect, ipc::to_json(ipc::InspectParams{is_built_in ? listed.model.name : path}));
    if (result.contains("adapter")) {
      shown.adapter = ipc::adapter_folder_from_json(result);
    } else {
      shown.facts = ipc::model_facts_from_json(result);
    }
  } catch (const Error& error) {
    const bool is_about_model = error.code() == Code::kInvalidArgument ||
                                error.code() == Code::kUnsupported ||
                                error.code() == Code::kNotFound ||
                                error.code() == Code::kForbidden;  // the rest can be shown
    if (!is_about_model) throw;
    shown.problem = error.what();
    // Who may not ask for a folder still sees its files; the model is not known to be bad.
    if (error.code() != Code::kForbidden) shown.exit_status = code_row(error.code()).exit_status;
  }
}

}  // namespace

void add_show_flags(CLI::App& app, ShowFlags& flags) {
  app.footer(
      "Sizes are planned as loading plans them, for one sequence of 2048, 8192, 32768 and as many "
      "tokens as the model is meant for. Starts a daemon when none is running; nothing is loaded.");
  app.add_option(
         "model", flags.model,
         "a name as `tgi ls` shows it, a preset too, or a folder; a LoRA adapter too; or the "
         "name that a model has in the daemon")
      ->type_name("MODEL")
      ->required();
  auto* json = app.add_flag("--json", flags.json, "write one JSON object");
  app.add_flag("--modelfile", flags.modelfile,
               "write a Modelfile that `tgi create` reads; no daemon is needed")
      ->excludes(json);
}

int run_show(const ShowFlags& flags, const CommonFlags& common) {
  Session session(common);
  Shown shown;
  shown.listed = find_shown(session, flags.model);
  const bool is_preset = shown.listed.is_preset();
  if (is_preset) {
    shown.preset = read_preset(shown.listed.model.path);
  } else {
    shown.preset = defaults_of(shown.listed);
  }
  if (flags.modelfile) {
    const Preset plain{.from = shown.listed.model.name, .parameters = {}};
    session.out().write(modelfile_of(shown.preset ? *shown.preset : plain));
    return 0;
  }
  if (!shown.listed.model.path.empty() && !is_preset)
    shown.files = files_of_folder(shown.listed.model.path);
  for (InstalledFile& file : shown.files) {
    for (const InstalledFile& recorded : shown.listed.model.files) {
      if (recorded.name == file.name) file.hash = recorded.hash;
    }
  }
  if (shown.listed.state == ListedModel::State::kMissing) {
    shown.exit_status = code_row(Code::kNotFound).exit_status;
    shown.problem = is_preset ? fmt::format("{} is gone", shown.preset->from)
                              : "its folder is gone; `tgi rm` forgets it";
  } else {
    ask_daemon(session, shown);
  }
  session.out().write(flags.json ? json_of(shown) : text_of(shown));
  return shown.exit_status;
}

}  // namespace tgi
