#include "cmd/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/store/store.h"
#include "cmd/model_path.h"
#include "cmd/models/model_list.h"
#include "cmd/ps.h"

namespace tgi {
namespace {

// Which of the daemon's models; nothing: the default one.
std::optional<std::string> model_of(const AdaptersFlags& flags) {
  return flags.model.empty() ? std::nullopt : std::optional(flags.model);
}

ipc::AdapterList ask_list(const Session& session, const AdaptersFlags& flags) {
  return ipc::adapter_list_from_json(session.client().call(
      ipc::kAdapters, ipc::to_json(ipc::ModelParams{.model = model_of(flags)})));
}

std::string text_of(const ipc::AdapterList& list) {
  const auto row = [](const auto&... cells) {
    return fmt::format("{:<32} {:>5} {:>10}  {:<8} {:>8} {:>8} {:>8} {:>12}  {}\n", cells...);
  };
  std::string out =
      row("NAME", "RANK", "SIZE", "STATE", "REQUESTS", "RUNNING", "WAITING", "LAST USE", "TARGETS");
  for (const ipc::AdapterStatus& each : list.adapters) {
    out += row(each.name, each.max_rank, format_bytes(each.device_bytes),
               each.pinned ? each.state + "*" : each.state, each.num_requests, each.num_running,
               each.num_waiting, format_duration(each.idle_seconds),
               fmt::format("{}", fmt::join(each.targets, ",")));
  }
  for (const ipc::AdapterStatus& each : list.adapters) {
    if (each.pin_error.empty()) continue;
    out += fmt::format("no longer pinned: {}\n", each.pin_error);
  }
  return out +
         fmt::format(
             "{} of {} in use, at most {} adapters at once{}\n", format_bytes(list.used_bytes),
             format_bytes(list.max_bytes), list.max_active,
             std::ranges::any_of(list.adapters, &ipc::AdapterStatus::pinned) ? "; * pinned" : "");
}

std::string names_text(const Session& session, const AdaptersFlags& flags) {
  std::set<std::string> names;
  try {
    for (const ipc::AdapterStatus& each : ask_list(session, flags).adapters)
      names.insert(each.name);
  } catch (const Error&) {
    // A daemon that is not there, or has no model, has none.
  }
  for (const ListedModel& each : list_models(Store::open())) {
    if (each.model.format == kAdapterFormat) names.insert(each.model.name);
  }
  std::string out;
  for (const std::string& name : names) out += name + "\n";
  return out;
}

void load(Session& session, const AdaptersFlags& flags) {
  const std::string path =
      resolve_model(*flags.load, {.offline = flags.offline, .cancel_fd = session.interrupt().fd()});
  session.client().call(
      ipc::kLoadAdapter,
      ipc::to_json(ipc::LoadAdapterParams{
          .model = model_of(flags), .name = flags.name.value_or(*flags.load), .path = path}));
}

void pin(Session& session, const AdaptersFlags& flags, const std::string& name, bool pinned) {
  for (const ipc::AdapterStatus& each : ask_list(session, flags).adapters) {
    if (each.name != name) continue;
    session.client().call(
        ipc::kLoadAdapter,
        ipc::to_json(ipc::LoadAdapterParams{
            .model = model_of(flags), .name = name, .path = each.path, .pinned = pinned}));
    return;
  }
  throw Error(Code::kAdapter,
              fmt::format("adapter {}: it is not loaded; `tgi adapters` lists those that are, "
                          "--load loads one",
                          name));
}

}  // namespace

void add_adapters_flags(CLI::App& app, AdaptersFlags& flags) {
  app.footer(
      "Without an option it lists the adapters that a model of the daemon has: their rank, what "
      "they take on the device while they are in use, and how many requests they have had. An "
      "adapter that was loaded is in host memory; it is active while requests use it, and until "
      "another one needs its place. Answers by one: `tgi generate --adapter NAME`.");
  app.add_option("-m,--model", flags.model,
                 "of several models that the daemon has this one, by its name (`tgi ps`); default: "
                 "its default model")
      ->type_name("MODEL");
  auto* json = app.add_flag("--json", flags.json, "write the list as one JSON object");
  auto* load_flag =
      app.add_option("--load", flags.load,
                     "check this adapter against the model and keep it: a folder, or "
                     "ORG/NAME[@REVISION] of the hub, which is downloaded when it is not here")
          ->type_name("ADAPTER");
  app.add_option("--name", flags.name, "with --load: what requests call it; default: as --load")
      ->type_name("NAME")
      ->needs(load_flag);
  app.add_flag("--offline", flags.offline, "with --load: download nothing")->needs(load_flag);
  auto* unload = app.add_option("--unload", flags.unload,
                                "forget an adapter; waits until the requests that have it are done")
                     ->type_name("ADAPTER");
  auto* pin_flag = app.add_option("--pin", flags.pin,
                                  "keep a loaded adapter on the device although nobody uses it")
                       ->type_name("ADAPTER");
  auto* unpin = app.add_option("--unpin", flags.unpin, "no longer")->type_name("ADAPTER");
  auto* quiet = app.add_flag("-q,--quiet", flags.quiet,
                             "write names only, one a line: of those that are loaded, and of those "
                             "that are installed; starts no daemon");
  for (auto* one : {json, load_flag, unload, pin_flag, unpin, quiet}) {
    for (auto* other : {json, load_flag, unload, pin_flag, unpin, quiet}) {
      if (one != other) one->excludes(other);
    }
  }
}

int run_adapters(const AdaptersFlags& flags, const CommonFlags& common) {
  Session session(common);
  if (flags.load) {
    load(session, flags);
    session.out().write("loaded\n");
  } else if (flags.unload) {
    session.client().call(
        ipc::kUnloadAdapter,
        ipc::to_json(ipc::UnloadAdapterParams{.model = model_of(flags), .name = *flags.unload}));
    session.out().write("unloaded\n");
  } else if (flags.pin) {
    pin(session, flags, *flags.pin, true);
    session.out().write("pinned\n");
  } else if (flags.unpin) {
    pin(session, flags, *flags.unpin, false);
    session.out().write("unpinned\n");
  } else if (flags.quiet) {
    session.out().write(names_text(session, flags));
  } else {
    const ipc::AdapterList list = ask_list(session, flags);
    session.out().write(flags.json ? ipc::to_json(list).dump() + "\n" : text_of(list));
  }
  return 0;
}

}  // namespace tgi
