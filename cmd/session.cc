#include "cmd/session.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/color.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "base/manual/help.h"
#include "base/standard_error.h"
#include "cmd/advised_error.h"
#include "cmd/model_path.h"
#include "cmd/models/use_record.h"
#include "ipc/line_socket.h"
#include "ipc/model_name.h"
#include "ipc/placed_model.h"

namespace tgi {
namespace {

// Whether a request for that name is one for the default model, whatever the daemon calls it.
bool names_default(const ipc::Status& status, const std::string& name) {
  const std::string shown = status.path.empty() ? status.path : shown_model(status.path);
  return name == shown || name == ipc::model_name_of(shown);
}

}  // namespace

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  const std::string group(kCommonGroup);
  app.add_option("--socket", flags.socket,
                 "the daemon's socket; default $TGI_SOCKET, else $XDG_RUNTIME_DIR/tgi/tgid.sock, "
                 "else /tmp/tgi-UID/tgid.sock")
      ->type_name("PATH")
      ->group(group);
  app.add_flag("--no-start", flags.no_start, "do not start a daemon when none is running")
      ->group(group);
  app.add_flag("-v,--verbose", flags.verbose, "say more on stderr: what is done, tokens per second")
      ->group(group);
}

Session::Session(const CommonFlags& flags)
    : flags_(flags),
      out_(STDOUT_FILENO, interrupt_.fd()),
      client_({.socket_path = flags.socket.empty() ? default_socket_path() : flags.socket,
               .cancel_fd = interrupt_.fd(),
               .output_fd = STDOUT_FILENO}) {}

ipc::Status Session::prepare(ipc::StartOptions options) {
  options.may_start = options.may_start && !flags_.no_start;
  const bool tell = flags_.verbose || ::isatty(STDERR_FILENO) == 1;
  if (tell) options.on_notice = [](const std::string& line) { say(line); };
  if (!model_ && name_) return prepare_named(options);
  if (!model_) return bring_default(ipc::prepare_daemon(client_, options), options);
  if (name_ && is_still_beside()) return prepare_named(options);
  name_.reset();
  options.daemon_flags = {"--model", *model_};
  const std::string path = *model_;
  ipc::Status status = prepare_model(options);
  if (path != "demo") record_use(path);
  return status;
}

// The one that is wanted by its path.
ipc::Status Session::prepare_model(ipc::StartOptions options) {
  const ipc::Status status = ipc::prepare_daemon(client_, options);
  if (status.phase == "no model") {
    client_.call(ipc::kLoad, ipc::to_json(ipc::LoadParams{.model = *model_}));
    options.may_start = false;
    return ipc::prepare_daemon(client_, options);
  }
  if (status.path == *model_) return bring_default(status, options);
  for (const ipc::OtherModelStatus& other : status.others) {
    if (other.path == *model_) name_ = other.name;
  }
  return name_ ? prepare_named(options) : load_beside(status, options);
}

// Whether the daemon has the model that is wanted by the name that was found or made for it: it may
// be another daemon by now, or the name another model's.
bool Session::is_still_beside() const {
  try {
    const ipc::Status status = client_.status();
    return ipc::has_model(status, *name_) && ipc::find_model(status, *name_).path == *model_;
  } catch (const ipc::NobodyListens&) {
    return false;
  }
}

// Under a name of its own beside the others, of which those give way that must and may. Which name
// is free the daemon says, for other commands may ask for theirs in the same moment.
ipc::Status Session::load_beside(const ipc::Status& status, const ipc::StartOptions& options) {
  const std::string name = ipc::model_name_of(shown_model(*model_));
  const ipc::LoadParams load{.model = *model_,
                             .name = name,
                             .on_demand = true,
                             .next_name = true,
                             .names_default = names_default(status, name)};
  const ipc::PlacedModel placed =
      ipc::placed_model_from_json(client_.call(ipc::kLoad, ipc::to_json(load)));
  name_ = placed.name;
  try {
    return prepare_named(options);
  } catch (const Error&) {
    const std::string given = *std::exchange(name_, std::nullopt);
    if (placed.is_new) give_back(given);
    throw;
  }
}

// The name of a model that did not become ready: else each try would leave one more.
void Session::give_back(const std::string& name) const {
  try {
    client_.call(ipc::kUnload, ipc::to_json(ipc::UnloadParams{.model = name}));
  } catch (const Error&) {
    // It is gone, with the daemon or alone; or Ctrl-C was pressed, and it is loaded all the same.
  }
}

// The default model, where it is loaded when somebody asks for it.
ipc::Status Session::bring_default(ipc::Status status, const ipc::StartOptions& options) const {
  if (status.phase != "not loaded" || options.accept_failed) return status;
  if (options.on_notice) options.on_notice(fmt::format("loading {}", status.path));
  client_.call(ipc::kKeep, ipc::to_json(ipc::KeepParams{}));
  return client_.status();
}

ipc::Status Session::prepare_named(const ipc::StartOptions& options) const {
  constexpr int kPollMs = 20;
  for (bool is_told = false;; client_.pause(kPollMs)) {
    ipc::Status status = client_.status();
    const ipc::OtherModelStatus found = ipc::find_model(status, *name_);
    const bool is_coming = found.phase == "loading" || found.phase == "draining";
    const bool is_missing = found.phase == "not loaded" || found.phase == "failed";
    if ((is_coming || is_missing) && !is_told && options.on_notice) {
      options.on_notice(fmt::format("loading {}", *name_));
    }
    is_told = true;
    // Of one that failed: again, where requests load it; else this says why there is none.
    if (is_missing) client_.call(ipc::kKeep, ipc::to_json(ipc::KeepParams{.model = *name_}));
    if (is_coming || is_missing) continue;
    status.phase = found.phase;
    status.phase_detail = found.phase_detail;
    status.path = found.path;
    status.model = found.model;
    status.counters = found.counters;
    return status;
  }
}

ipc::TokenizeResult ask_tokens(const Session& session, ipc::TokenizeParams params) {
  params.model = session.model_name();
  return ipc::tokenize_result_from_json(
      session.client().call(ipc::kTokenize, ipc::to_json(params)));
}

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option(
         "-m,--model", flags.model,
         "a folder, a GGUF file, ORG/NAME[@REVISION] or ORG/NAME:QUANTISATION of the hub, which is "
         "downloaded when it is not here, a name of `tgi ls`, \"demo\", or the name of one of "
         "several models that the daemon has (`tgi ps`); default: the daemon's default model")
      ->type_name("MODEL")
      ->check(CLI::Validator(
          [](const std::string& name) {
            return name.empty() ? "expected a model, got an empty name" : std::string();
          },
          ""));
  app.add_flag("--offline", flags.offline, "download nothing");
}

void choose_model(Session& session, const ModelFlags& flags) {
  if (flags.model.empty()) return;
  try {
    if (ipc::has_model(session.client().status(), flags.model)) {
      session.want_named(flags.model);
      return;
    }
  } catch (const ipc::NobodyListens&) {
    // The one that is started has it by its path.
  }
  session.want_model(resolve_model(
      flags.model,
      {.offline = flags.offline, .must_be_model = true, .cancel_fd = session.interrupt().fd()}));
}

void Session::say(std::string_view line) {
  write_stderr(fmt::format("{}\n", line));
}

void Session::say_verbose(std::string_view line) const {
  if (flags_.verbose) say(line);
}

std::string advice_for(const Error& error) {
  if (const auto* advised = dynamic_cast<const AdvisedError*>(&error)) return advised->advice();
  if (dynamic_cast<const ipc::NobodyListens*>(&error) != nullptr) {
    return "start one with `tgi load MODEL`, or with `tgi serve MODEL` for HTTP too";
  }
  switch (error.code()) {
    case Code::kUnavailable:
      return "`tgi doctor` looks for the cause";
    case Code::kDeviceLost:
      return "`tgi doctor` looks at the device; the next command starts a new daemon";
    case Code::kInternal:
      return "this should not happen; `tgi doctor --json` prints what a report of it needs";
    default:
      return {};  // the message says itself what to do
  }
}

int report_error(const Error& error) {
  const std::string label = styled("error:", Style::kRed, may_color(STDERR_FILENO));
  Session::say(fmt::format("{} {}", label, error.what()));
  return code_row(error.code()).exit_status;
}

}  // namespace tgi
