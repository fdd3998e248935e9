#include "cmd/ps.h"

#include "base/error.h"
#include "cmd/model_path.h"
#include "cmd/ps_watch.h"
#include "ipc/duration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace tgi {
namespace {

// "1.1 B" for a count of parameters.
std::string format_count(int64_t count) {
  const auto real = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.2f} billion", real / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.2f} million", real / 1e6);
  return fmt::format("{}", count);
}

struct Row {
  std::string_view name;
  std::string value;
};

std::string weights_type(const ipc::ModelStatus& model) {
  if (model.quantize == "none") return model.dtype;
  std::string out = model.quantize;
  if (!model.quantize_held.empty()) out += fmt::format(" held as {}", model.quantize_held);
  if (model.quantize_group_size > 0) {
    out += fmt::format(" in groups of {}", model.quantize_group_size);
  }
  return fmt::format("{} (the rest {})", out, model.dtype);
}

std::string backend(const ipc::ModelStatus& model) {
  std::string out = fmt::format("{} {}", model.backend, model.isa);
  if (!model.device.empty()) out += fmt::format(" ({})", model.device);
  if (model.num_shard > 1) out += fmt::format(", {} ranks", model.num_shard);
  if (model.num_threads > 0) out += fmt::format(", {} threads", model.num_threads);
  return model.deterministic ? out + ", deterministic" : out;
}

// And the dialects in which answers to chats are read.
std::string chat_template(const ipc::ModelStatus& model) {
  if (!model.has_chat_template) return "no";
  const auto name = [](const std::string& parser) { return parser.empty() ? "none" : parser; };
  return fmt::format("yes; tool calls {}, reasoning {}", name(model.tool_parser),
                     name(model.reasoning_parser));
}

// "2 of 12 layers each: 1 keeps all, 1 what a window of 128 tokens needs"
std::string kv_groups(const ipc::KvGroupCounts& groups) {
  return fmt::format("{} of {} layers each: {} keep all, {} what a window of {} tokens needs",
                     groups.num_groups(), groups.num_layers, groups.num_full, groups.num_windowed,
                     groups.window);
}

// "12 layers of 1 heads of 256, 3 layers of 1 heads of 512, 20 that read another's"
std::string kv_heads(const ipc::KvGroupCounts& groups) {
  std::vector<std::string> parts;
  for (const ipc::KvHeads& row : groups.heads) {
    parts.push_back(fmt::format("{} layer{} of {} heads of {}", row.num_layers,
                                row.num_layers == 1 ? "" : "s", row.num_kv_heads,
                                format_head_size(row)));
  }
  if (groups.num_shared > 0) {
    parts.push_back(fmt::format("{} that read{} another's", groups.num_shared,
                                groups.num_shared == 1 ? "s" : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "12 loaded; 3 on the device, which take 40.0 MiB of 512.0 MiB"
std::string adapters(const ipc::ModelStatus& model) {
  return fmt::format("{} loaded; {} on the device, which take {} of {}", model.num_adapters,
                     model.num_active_adapters, format_bytes(model.adapter_bytes_used),
                     format_bytes(model.memory.adapters / std::max<int64_t>(model.num_shard, 1)));
}

std::string drafter_memory(const ipc::MemoryPlan& memory) {
  return memory.drafter > 0 ? ", which takes " + format_bytes(memory.drafter) : std::string();
}

std::vector<Row> model_rows(const ipc::ModelStatus& model) {
  const ipc::MemoryPlan& memory = model.memory;
  std::vector<Row> rows = {
      {"model", model.served_name.empty() || model.served_name == model.name
                    ? shown_model(model.name)
                    : fmt::format("{} ({})", model.served_name, shown_model(model.name))},
      {"architecture",
       fmt::format("{}, {} parameters", model.architecture, format_count(model.num_params))},
      {"backend", backend(model)},
      {"dtype", fmt::format("weights {}, KV cache {}", weights_type(model), model.kv_cache_dtype)},
      {"context", fmt::format("{} tokens", model.max_total_tokens)},
      {"memory",
       fmt::format("weights {}, KV cache {}, workspace {}{}, of {}", format_bytes(memory.weights),
                   format_bytes(memory.kv_cache), format_bytes(memory.workspace),
                   memory.states > 0 ? fmt::format(" (states {})", format_bytes(memory.states))
                                     : std::string(),
                   format_bytes(memory.available))},
      {"KV blocks", fmt::format("{} used, {} cached, {} free, of {} with {} tokens each",
                                model.num_blocks_used, model.num_blocks_cached,
                                model.num_blocks_free, model.num_blocks, model.block_size)},
      {"requests", fmt::format("{} running, {} waiting", model.num_running, model.num_waiting)},
      {"chat template", chat_template(model)},
      {"loaded in", fmt::format("{:.2f} s", model.load_seconds)},
  };
  if (model.task != "generate") {
    rows.insert(rows.begin() + 2,
                {"task", fmt::format("{}, {} numbers for a text", model.task, model.dimensions)});
  }
  if (model.num_adapters + model.num_active_adapters > 0) {
    rows.push_back({"adapters", adapters(model)});
  }
  if (model.kv_groups.num_windowed > 0) {
    rows.push_back({"KV groups", kv_groups(model.kv_groups)});
  }
  if (!model.kv_groups.heads.empty()) rows.push_back({"KV heads", kv_heads(model.kv_groups)});
  if (!model.speculation_off.empty()) {
    rows.push_back({"speculation", fmt::format("off: {}", model.speculation_off)});
  } else if (model.speculate > 0) {
    rows.push_back(
        {"speculation", fmt::format("up to {} tokens are drafted for a step by {}{}",
                                    model.speculate, model.drafter, drafter_memory(memory))});
  }
  for (const ipc::LeftOutKernels& one : model.left_out) {
    rows.push_back({"left out", fmt::format("{}, it does not work on this machine: {}: {}", one.isa,
                                            one.kernel, one.reason)});
  }
  if (!model.captured_rows.empty()) {
    rows.push_back(
        {"captured steps", fmt::format("of {} decode rows", fmt::join(model.captured_rows, ", "))});
  }
  return rows;
}

std::string drafts(const ipc::Counters& counters) {
  if (counters.num_drafted_tokens == 0) return "none";
  const double share = 100.0 * static_cast<double>(counters.num_skipped_tokens) /
                       static_cast<double>(counters.num_drafted_tokens);
  return fmt::format("{} tokens drafted, {} of them drawn ({:.0f} %)", counters.num_drafted_tokens,
                     counters.num_skipped_tokens, share);
}

std::vector<Row> counter_rows(const ipc::Counters& counters) {
  return {
      {"requests so far", fmt::format("{} ({} failed, {} cancelled)", counters.num_requests,
                                      counters.num_failed, counters.num_cancelled)},
      {"tokens so far", fmt::format("{} of prompts ({} from the prefix cache), {} generated",
                                    counters.num_prompt_tokens, counters.num_cached_tokens,
                                    counters.num_generated_tokens)},
      {"drafts so far", drafts(counters)},
      {"steps so far",
       fmt::format("{} ({} preemptions)", counters.num_steps, counters.num_preemptions)},
  };
}

int64_t held_bytes(const std::optional<ipc::ModelStatus>& model) {
  return model ? model->memory.held() : 0;
}

// "600.0 MiB: demo 200.0 MiB, second 400.0 MiB"
std::string memory_of_all(const ipc::Status& status) {
  int64_t sum = held_bytes(status.model);
  std::vector<std::string> parts;
  if (status.model) {
    const std::string& name = status.model->served_name;
    parts.push_back(fmt::format("{} {}", name.empty() ? shown_model(status.model->name) : name,
                                format_bytes(sum)));
  }
  for (const ipc::OtherModelStatus& other : status.others) {
    if (!other.model) continue;
    sum += held_bytes(other.model);
    parts.push_back(fmt::format("{} {}", other.name, format_bytes(held_bytes(other.model))));
  }
  return fmt::format("{}: {}", format_bytes(sum), fmt::join(parts, ", "));
}

std::string phase(const std::string& phase, const std::string& detail) {
  return detail.empty() ? phase : fmt::format("{}: {}", phase, detail);
}

// "pinned", "for ever", "5m without a request, 4m12s of them left"; and who uses it.
std::string stay_text(const ipc::ModelStay& stay) {
  std::string out = "until it is unloaded";
  if (stay.pinned) {
    out = "pinned";
  } else if (stay.keep_alive_seconds >= 0) {
    out = fmt::format("{} without a request", ipc::format_keep_alive(stay.keep_alive_seconds));
    if (stay.expires_in_seconds) {
      out += fmt::format(", {} left", format_duration(*stay.expires_in_seconds));
    }
  }
  if (stay.num_uses_before > 0) {
    out += fmt::format("; {} requests end on the one before", stay.num_uses_before);
  }
  if (stay.num_uses > 0) return out + fmt::format("; used by {} now", stay.num_uses);
  if (!stay.idle_seconds) return out;
  return out + fmt::format("; last used {} ago", format_duration(*stay.idle_seconds));
}

// Nothing of a daemon that has one model, which stays: that goes without saying.
void add_stay(const ipc::Status& status, const ipc::ModelStay& stay, std::vector<Row>& rows) {
  const bool goes_without = status.others.empty() && status.max_models == 0 && !stay.pinned &&
                            stay.keep_alive_seconds < 0;
  if (!goes_without) rows.push_back({"stays", stay_text(stay)});
  if (stay.num_waiting > 0) {
    rows.push_back({"waiting", fmt::format("{} requests, until it is loaded", stay.num_waiting)});
  }
}

// Those beside the default one, each after an empty line.
void add_others(const ipc::Status& status, std::vector<Row>& rows) {
  for (const ipc::OtherModelStatus& other : status.others) {
    rows.push_back({});
    if (other.model) {
      for (Row& row : model_rows(*other.model)) rows.push_back(std::move(row));
      for (Row& row : counter_rows(other.counters)) rows.push_back(std::move(row));
    } else {
      rows.push_back({"model", other.name});
    }
    add_stay(status, other.stay, rows);
    if (other.phase != "ready") rows.push_back({"phase", phase(other.phase, other.phase_detail)});
  }
}

}  // namespace

std::string format_head_size(const ipc::KvHeads& heads) {
  if (heads.value_dim == 0 || heads.value_dim == heads.head_dim)
    return fmt::format("{}", heads.head_dim);
  return fmt::format("{}, with values of {}", heads.head_dim, heads.value_dim);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 60) return fmt::format("{:.1f} s", seconds);
  const int64_t minutes = whole / 60;
  const int64_t hours = minutes / 60;
  if (hours == 0) return fmt::format("{} min {} s", minutes, whole % 60);
  if (hours < 24) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string format_bytes(int64_t bytes) {
  const auto real = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.2f} GiB", real / (1 << 30));
  if (bytes >= int64_t{1} << 20) return fmt::format("{:.1f} MiB", real / (1 << 20));
  if (bytes >= int64_t{1} << 10) return fmt::format("{:.1f} KiB", real / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string format_status(const ipc::Status& status) {
  std::vector<Row> rows = {
      {"daemon", fmt::format("version {}, pid {}, {}", status.version, status.pid, status.socket)},
      {"phase", phase(status.phase, status.phase_detail)},
      {"uptime", format_duration(status.uptime_seconds)},
      {"resident", format_bytes(status.rss_bytes)},
  };
  if (!status.others.empty()) rows.push_back({"memory of all", memory_of_all(status)});
  if (status.max_models > 0) {
    rows.push_back({"max models", fmt::format("{} loaded at once", status.max_models)});
  }
  if (status.model) {
    for (Row& row : model_rows(*status.model)) rows.push_back(std::move(row));
  }
  for (Row& row : counter_rows(status.counters)) rows.push_back(std::move(row));
  if (status.phase != "no model") add_stay(status, status.stay, rows);
  add_others(status, rows);
  std::string out;
  for (const Row& row : rows) {
    out += row.name.empty() ? "\n" : fmt::format("{:<16} {}\n", row.name, row.value);
  }
  return out;
}

namespace {

// One that answers is enough: the others are loaded in their turn.
void require_ready(const ipc::Status& status) {
  const auto answers = [](const std::string& phase) {
    return phase == "ready" || phase == "not loaded";
  };
  if (answers(status.phase)) return;
  for (const ipc::OtherModelStatus& other : status.others) {
    if (answers(other.phase)) return;
  }
  const std::string detail = status.phase_detail.empty() ? "" : ": " + status.phase_detail;
  throw Error(Code::kUnavailable, fmt::format("not ready: {}{}", status.phase, detail));
}

}  // namespace

void add_ps_flags(CLI::App& app, PsFlags& flags) {
  app.footer(
      "Never starts a daemon: where none is running it says so and ends with exit status 8.");
  auto* json = app.add_flag("--json", flags.json,
                            "write the whole status as one JSON object; with --watch one a line");
  auto* ready = app.add_flag(
      "--ready", flags.ready,
      "write nothing, and end with 0 when requests are answered: by a model that is loaded, "
      "or is when they ask for it; else with 8 and the reason. For health checks");
  auto* watch =
      app.add_flag("-w,--watch", flags.watch,
                   "go on until Ctrl-C, with a line for each model: requests that run and "
                   "wait, tokens/s generated and of prompts computed, shares of the KV "
                   "cache in use and cached, and how many ms a step takes, which is the "
                   "time between two tokens of an answer, and one with prompt tokens. "
                   "Drawn over on a terminal");
  ready->excludes(json);
  ready->excludes(watch);
  app.add_option("--interval", flags.interval_seconds, "of --watch; default 1")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->needs(watch);
}

int run_ps(const PsFlags& flags, const CommonFlags& common) {
  Session session(common);
  if (flags.watch) return watch_daemon(session, flags.interval_seconds, flags.json);
  const ipc::Status status = session.client().status();
  if (flags.ready) {
    require_ready(status);
    return 0;
  }
  session.out().write(flags.json ? ipc::to_json(status).dump() + "\n" : format_status(status));
  return 0;
}

}  // namespace tgi
