// What every command that talks to the daemon shares: the common flags, the client, Ctrl-C,
// standard output, and how things are said to the user. Belongs to the main thread; client() may be
// used by others.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/interrupt.h"
#include "cmd/output.h"
#include "ipc/client.h"
#include "ipc/protocol.h"
#include "ipc/start_daemon.h"

namespace tgi {

struct CommonFlags {
  std::string socket;  // empty: the default
  bool no_start = false;
  bool verbose = false;
};

void add_common_flags(CLI::App& app, CommonFlags& flags);

// Usage errors found after parsing: two flags that exclude each other, say. main() ends with exit
// status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Session {
 public:
  explicit Session(const CommonFlags& flags);

  const ipc::Client& client() const { return client_; }
  Interrupt& interrupt() { return interrupt_; }
  Output& out() { return out_; }

  // From now on prepare() wants this model in the daemon: a folder's path, or "demo".
  void want_model(std::string path) {
    model_ = std::move(path);
    name_.reset();
  }

  // From now on prepare() waits for the model that the daemon has under this name, and its status
  // tells of it as of the only one.
  void want_named(std::string name) {
    name_ = std::move(name);
    model_.reset();
  }
  // What is wanted, to come back to.
  struct Wanted {
    std::optional<std::string> model;
    std::optional<std::string> name;
  };
  Wanted wanted() const { return {model_, name_}; }
  void want(Wanted wanted) {
    model_ = std::move(wanted.model);
    name_ = std::move(wanted.name);
  }

  // For the requests: nothing, or the name that was wanted.
  const std::optional<std::string>& model_name() const { return name_; }

  // Finds or starts the daemon and waits for the model that is wanted. A daemon without a model is
  // told to load it; one that has others takes it beside them, and model_name() is its name from
  // then on.
  ipc::Status prepare(ipc::StartOptions options = {});

  // One line on stderr: always, or with --verbose only.
  static void say(std::string_view line);
  void say_verbose(std::string_view line) const;

 private:
  ipc::Status bring_default(ipc::Status status, const ipc::StartOptions& options) const;
  ipc::Status prepare_model(ipc::StartOptions options);
  ipc::Status prepare_named(const ipc::StartOptions& options) const;
  ipc::Status load_beside(const ipc::Status& status, const ipc::StartOptions& options);
  bool is_still_beside() const;
  void give_back(const std::string& name) const;

  const CommonFlags& flags_;
  Interrupt interrupt_;
  Output out_;
  ipc::Client client_;
  std::optional<std::string> model_;
  std::optional<std::string> name_;  // with model_: by which the daemon has that
};

// --model, --offline of the commands that ask a model.
struct ModelFlags {
  std::string model;  // empty: the daemon's default one
  bool offline = false;
};

void add_model_flags(CLI::App& app, ModelFlags& flags);

// Makes the session want the model: the one that the daemon has under that name, else one that is
// found or downloaded. Nothing without --model.
void choose_model(Session& session, const ModelFlags& flags);

// The tokens of a prompt or a chat, by the model that the session wants.
ipc::TokenizeResult ask_tokens(const Session& session, ipc::TokenizeParams params);

// "error: ..." on stderr and the exit status of the error's code.
int report_error(const Error& error);

// What to do about an error where its message can't say it; else nothing.
std::string advice_for(const Error& error);

}  // namespace tgi
