// tgi chat: turns of a conversation, on a terminal with editing and commands, else one line per
// turn.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/adapter_choice.h"
#include "cmd/conversation.h"
#include "cmd/line_editor.h"
#include "cmd/sampling_flags.h"
#include "cmd/session.h"

namespace tgi {

struct ChatFlags {
  std::optional<std::string> system;
  std::optional<std::string> load;
  bool resume = false;
  bool no_save = false;
  std::optional<std::string> tools;  // a file
  ReasoningFlags reasoning;
  bool stats = false;
  bool raw = false;
  bool slides = false;  // as /set context slide
  ModelFlags model;
  std::string adapter;  // empty: none
  SamplingFlags sampling;
};

void add_chat_flags(CLI::App& app, ChatFlags& flags);
int run_chat(const ChatFlags& flags, const CommonFlags& common);

// One running chat. Main thread only.
class Chat {
 public:
  Chat(const ChatFlags& flags, Session& session, LineSource& lines, bool interactive);

  // Runs until the end of the input or /quit. Returns the exit status of the first turn that went
  // wrong; always 0 on a terminal, where the user saw it.
  int run();

  // Asks for an answer to the conversation as it stands and adds it. Where the model calls tools,
  // their results are read and it is asked again.
  void answer();

  // From now on the conversation is written to this file after each turn.
  void keep_in(const std::string& path) { session_file_ = path; }

  // Answers are by this adapter from now on; empty: by the model alone. Throws when there is none
  // of that name, and changes nothing then.
  void use_adapter(const std::string& name);
  // "": the model alone answers.
  std::string adapter_name() const { return adapter_choice_ ? adapter_choice_->name : ""; }

  // Answers are by this model of the daemon from now on, which is loaded if it is one that requests
  // load; the adapter stays behind. Throws when the daemon has none of that name, and changes
  // nothing then.
  void use_model(const std::string& name);
  void list_models();

  // A model without a chat template goes on with each message as it stands, which is said once a
  // model. Throws kUnsupported where something was asked for that only a template has a place for.
  void heed_template(const ipc::Status& status);

  // Says on a terminal that a command was done; scripts see it by the exit status.
  void confirm(std::string_view line) const;

  // The model, how much of its context the conversation takes, and what is set.
  void show();
  std::string show_settings() const;  // what /set sets, one a line

  // What the commands work on.
  Conversation conversation;
  SamplingFlags sampling;
  bool stats = false;
  bool slides = false;  // oldest turns leave where the context ends
  bool done = false;

  Session& session() { return session_; }

 private:
  // The next input, made of one or more lines; nothing at the end. An interrupted one is empty.
  std::optional<std::string> read_turn();
  void take_turn(const std::string& input);
  ipc::GenerateRequest request() const;
  // Nothing where the answer was stopped.
  std::optional<ipc::DoneEvent> ask(std::string& text);
  void slide();
  void keep();
  // False: no result came for some call.
  bool read_results(const std::vector<ipc::ToolCall>& calls);

  Session& session_;
  LineSource& lines_;
  const bool interactive_;
  const std::optional<ipc::OrderedJson> tools_;
  const ReasoningFlags reasoning_;
  const bool offline_;
  const bool raw_;
  std::optional<AdapterChoice> adapter_choice_;
  std::string session_file_;        // empty: not kept
  bool has_template_ = true;        // the model that was asked last has one
  bool needs_template_ = false;     // it has none, and what was asked for has no place then
  std::string said_of_model_;       // which one it was said of last that it has none
  int64_t max_context_tokens_ = 0;  // of the model, when it was asked last
  int64_t num_context_tokens_ = 0;  // of the last answer and all before it
};

// Does what a line like "/set seed 7" says. Throws kInvalidArgument for an unknown command.
void run_chat_command(Chat& chat, std::string_view line);

// The table of commands as text, for /help and the man page.
std::string chat_commands_help();

}  // namespace tgi
