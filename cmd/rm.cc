#include "cmd/rm.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "base/files/split_name.h"
#include "base/standard_error.h"
#include "cmd/download/disk.h"
#include "cmd/models/model_list.h"
#include "cmd/ps.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using State = ListedModel::State;

bool is_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_normal().lexically_relative(folder.lexically_normal());
  return !relative.empty() && relative != "." && *relative.begin() != "..";
}

// A conversion or another folder of tgi's own. A folder that the user named stays his.
bool is_own_folder(const ListedModel& listed) {
  return is_below(listed.model.path, converted_dir());
}

// What the daemon holds or will load: paths, and the names that its models were loaded by.
std::vector<std::string> models_in_use(const ipc::Status& status) {
  std::vector<std::string> out;
  // Of one that is loaded and gets a new version both: what it has, and what comes.
  const auto add = [&](const auto& each) {
    if (each.model) out.push_back(each.model->name);
    if (each.model || each.phase == "loading") out.push_back(each.path);
  };
  add(status);
  for (const ipc::OtherModelStatus& other : status.others) add(other);
  // Files that belong to those: a preset's base, its adapter and what drafts for it.
  const size_t num_named = out.size();
  for (size_t i = 0; i < num_named; ++i) {
    if (!is_preset_path(out[i])) continue;
    try {
      const Preset preset = read_preset(out[i]);
      for (const std::string& part :
           {preset.from, preset.adapter, preset.speculator, preset.draft_model}) {
        if (!part.empty()) out.push_back(part);
      }
    } catch (const Error&) {
      // It was changed since: what it was loaded from is not known.
    }
  }
  return out;
}

// The daemon tells a model by the name it was loaded with, which may be its folder.
void refuse_if_loaded(const Session& session, const ListedModel& listed) {
  std::optional<ipc::Status> status;
  try {
    status = session.client().status();
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable) throw;
    return;  // no daemon, no loaded model
  }
  for (const std::string& in_use : models_in_use(*status)) {
    const auto names = [&](const std::string& name) {
      return !name.empty() && download::is_same_file(in_use, name);
    };
    // Another file of the snapshot is no matter of one that is a file of it.
    const bool is_in_snapshot =
        listed.snapshot && !listed.is_gguf_of_snapshot() && is_below(in_use, listed.snapshot->path);
    if (!names(listed.model.name) && !names(listed.model.path) && !is_in_snapshot &&
        !(listed.snapshot && names(listed.snapshot->path))) {
      continue;
    }
    throw Error(Code::kOverloaded, fmt::format("model {}: the daemon has it loaded; `tgi unload` "
                                               "frees it (`tgi ps` shows under which name)",
                                               listed.model.name));
  }
}

// Waits for a line, watching Ctrl-C.
bool ask(Session& session, const std::string& question) {
  write_stderr(fmt::format("{} [y/N] ", question));
  std::string answer;
  for (;;) {
    pollfd waiting[2] = {{STDIN_FILENO, POLLIN, 0}, {session.interrupt().fd(), POLLIN, 0}};
    if (::poll(waiting, 2, -1) < 0) continue;
    if (waiting[1].revents != 0) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) != 1 || c == '\n') break;
    answer += c;
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

// Of a model that is a file of a snapshot: its parts.
std::vector<std::string> gguf_names(const ListedModel& listed) {
  return all_parts(listed.model.path.substr(listed.snapshot->path.size() + 1));
}

// Nothing that is worth a file of weights would be left in the snapshot.
bool is_last_of_snapshot(const ListedModel& listed) {
  const std::vector<std::string> own = gguf_names(listed);
  return std::ranges::none_of(listed.snapshot->files, [&](const HubFile& file) {
    return file.name.ends_with(".gguf") && std::ranges::find(own, file.name) == own.end();
  });
}

std::string describe(const ListedModel& listed) {
  const InstalledModel& model = listed.model;
  if (listed.is_preset()) return "a preset, whose model stays";
  if (listed.state == State::kMissing) return "whose folder is gone";
  if (listed.is_gguf_of_snapshot()) {
    return fmt::format("{} of {}", format_bytes(model.bytes), model.path);
  }
  const size_t num_files =
      listed.snapshot ? listed.snapshot->files.size() : files_of_folder(model.path).size();
  return fmt::format("{} in {} file{} of {}", format_bytes(model.bytes), num_files,
                     num_files == 1 ? "" : "s", model.path);
}

int64_t remove_own_folder(const ListedModel& listed) {
  int64_t bytes = 0;
  for (const InstalledFile& file : files_of_folder(listed.model.path)) bytes += file.bytes;
  std::error_code error;
  fs::remove_all(listed.model.path, error);
  if (error) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: can't be removed: {}", listed.model.path, error.message()));
  }
  return bytes;
}

// Conversions of a snapshot that the store does not know lie where the downloads put them.
int64_t remove_conversion_of(const HubSnapshot& snapshot) {
  std::string name;
  for (const char c : snapshot.repo) name += c == '/' ? std::string("--") : std::string(1, c);
  ListedModel converted;
  converted.model.path = fmt::format("{}/{}/{}", converted_dir(), name, snapshot.commit);
  std::error_code error;
  return fs::is_directory(converted.model.path, error) ? remove_own_folder(converted) : 0;
}

void remove_model(Session& session, Store& store, const ListedModel& listed) {
  const InstalledModel& model = listed.model;
  if (listed.is_preset()) {
    remove_preset(model.name);
    return session.out().write(fmt::format("removed {}; its model stays\n", model.name));
  }
  int64_t freed = 0;
  if (listed.is_gguf_of_snapshot() && !is_own_folder(listed) && !is_last_of_snapshot(listed)) {
    freed += remove_hub_files(*listed.snapshot, gguf_names(listed));
  } else if (listed.snapshot) {
    freed += remove_hub_snapshot(*listed.snapshot);
    freed += remove_conversion_of(*listed.snapshot);
  }
  std::error_code error;
  if (is_own_folder(listed) && fs::exists(model.path, error)) freed += remove_own_folder(listed);
  // The disk was full, and what went has made room.
  if (store.is_read_only()) store = Store::open();
  // Others may be records of the same files.
  for (const InstalledModel& other : store.models()) {
    const bool is_gone =
        !other.path.empty() && !fs::exists(other.path, error) &&
        (other.path == model.path || (!model.commit.empty() && other.commit == model.commit));
    if (other.name == model.name || is_gone) store.remove_model(other.name);
  }
  const bool stays = fs::exists(model.path, error);
  session.out().write(
      stays ? fmt::format("forgot {}; its folder {} is yours and stays\n", model.name, model.path)
            : fmt::format("removed {}, {} freed\n", model.name, format_bytes(freed)));
}

void check_removable(const Session& session, const ListedModel& listed) {
  if (listed.state == State::kBuiltIn) {
    throw Error(Code::kInvalidArgument, "demo is built into tgid and can't be removed");
  }
  if (!listed.program.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: a file of {}, which tgi only reads; remove it there ({})",
                            listed.model.name, listed.program, listed.model.path));
  }
  if (!listed.is_recorded && !listed.snapshot && !listed.is_preset()) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: a folder that tgi did not make; remove it yourself", listed.model.path));
  }
  refuse_if_loaded(session, listed);
}

}  // namespace

void add_rm_flags(CLI::App& app, RmFlags& flags) {
  app.footer(
      "Removes the files that no other revision of the model needs, from the Hugging Face cache "
      "and "
      "from tgi's own folders. Of a preset its file goes, and its model stays. A folder that you "
      "named yourself is forgotten, not removed. A model "
      "that the daemon has loaded is refused. Never starts a daemon.");
  app.add_option("model", flags.models, "names as `tgi ls` shows them")
      ->type_name("MODEL")
      ->required();
  app.add_flag("-y,--yes", flags.yes, "do not ask");
}

int run_rm(const RmFlags& flags, const CommonFlags& common) {
  Session session(common);
  if (!flags.yes && ::isatty(STDIN_FILENO) != 1) {
    throw UsageError("can't ask when standard input is no terminal; give --yes");
  }
  Store store = Store::open();
  std::vector<ListedModel> models;  // all are checked before the first is removed
  for (const std::string& name : flags.models) {
    models.push_back(find_listed_model(store, name));
    check_removable(session, models.back());
  }
  for (const ListedModel& listed : models) {
    const std::string question = fmt::format("remove {}, {}?", listed.model.name, describe(listed));
    if (!flags.yes && !ask(session, question)) {
      Session::say(fmt::format("{} stays", listed.model.name));
      continue;
    }
    refuse_if_loaded(session, listed);
    remove_model(session, store, listed);
  }
  return 0;
}

}  // namespace tgi
