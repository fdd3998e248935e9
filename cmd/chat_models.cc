// The models of the daemon that a chat can go on with.
#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "cmd/chat.h"
#include "cmd/model_path.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

// Of a model that the daemon has not: nothing is downloaded in the middle of a conversation.
std::string path_here(const std::string& name) {
  try {
    return resolve_model(name, {.offline = true, .must_be_model = true});
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound && error.code() != Code::kUnavailable) throw;
    throw Error(
        Code::kNotFound,
        fmt::format("there is no model {}: /model lists those that the daemon has, `tgi ls` "
                    "those of this machine, and `tgi pull {}` brings one from the hub",
                    name, name));
  }
}

}  // namespace

void Chat::list_models() {
  (void)session_.prepare();  // it may have been stopped since the last turn
  const ipc::Status status = session_.client().status();
  const std::string wanted = session_.model_name().value_or("");
  const auto line = [&](const std::string& name, const std::string& phase, bool is_default) {
    const bool is_used = is_default ? wanted.empty() || wanted == name : wanted == name;
    session_.out().write(fmt::format("{} {:<32} {}{}\n", is_used ? "*" : " ", name, phase,
                                     is_default ? ", the default" : ""));
  };
  if (const ipc::ModelStatus* known = status.known()) {
    line(known->served_name.empty() ? shown_model(known->name) : known->served_name, status.phase,
         true);
  }
  for (const ipc::OtherModelStatus& other : status.others) line(other.name, other.phase, false);
}

void Chat::heed_template(const ipc::Status& status) {
  has_template_ = !status.model || status.model->has_chat_template;
  needs_template_ = !has_template_ && (conversation.system() || tools_ || reasoning_.are_given());
  if (has_template_) return;
  const std::string& served = status.model->served_name;
  const std::string name = served.empty() ? shown_model(status.model->name) : served;
  if (needs_template_) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{} has no chat template, so that there is no place for {}; without it the "
                    "model goes on with each line as it stands",
                    name,
                    conversation.system() ? "a system message"
                    : tools_              ? "tools"
                                          : "settings of its reasoning"));
  }
  if (said_of_model_ == name) return;
  said_of_model_ = name;
  Session::say(fmt::format(
      "({} has no chat template: it goes on with each line as it stands, and sees none before it)",
      name));
}

void Chat::use_model(const std::string& name) {
  (void)session_.prepare();
  const ipc::Status status = session_.client().status();
  const ipc::ModelStatus* const known = status.known();
  const bool is_default =
      known != nullptr && (known->served_name == name || shown_model(known->name) == name);
  const bool is_named = !is_default && ipc::has_model(status, name);
  const std::string path = is_default || is_named ? std::string() : path_here(name);
  const Session::Wanted before = session_.wanted();
  try {
    if (is_default) session_.want({});
    if (is_named) session_.want_named(name);
    if (!path.empty()) session_.want_model(path);
    (void)session_.prepare();
  } catch (const Error&) {
    session_.want(before);
    throw;
  }
  if (adapter_choice_) Session::say(fmt::format("(without the adapter {})", adapter_choice_->name));
  adapter_choice_.reset();
}

}  // namespace tgi
