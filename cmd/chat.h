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
  std::optional<std::string> tools;  // a file
  ReasoningFlags reasoning;
  bool stats = false;
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

  // Answers are by this adapter from now on; empty: by the model alone. Throws when there is none
  // of that name, and changes nothing then.
  void use_adapter(const std::string& name);

  // What the commands work on.
  Conversation conversation;
  SamplingFlags sampling;
  bool stats = false;
  bool done = false;

  Session& session() { return session_; }

 private:
  // The next input, made of one or more lines; nothing at the end. An interrupted one is empty.
  std::optional<std::string> read_turn();
  void take_turn(const std::string& input);
  ipc::GenerateRequest request() const;
  // Nothing where the answer was stopped.
  std::optional<ipc::DoneEvent> ask(std::string& text);
  // False: no result came for some call.
  bool read_results(const std::vector<ipc::ToolCall>& calls);

  Session& session_;
  LineSource& lines_;
  const bool interactive_;
  const std::optional<ipc::OrderedJson> tools_;
  const ReasoningFlags reasoning_;
  const bool offline_;
  std::optional<AdapterChoice> adapter_choice_;
};

// Does what a line like "/set seed 7" says. Throws kInvalidArgument for an unknown command.
void run_chat_command(Chat& chat, std::string_view line);

// The table of commands as text, for /help and the man page.
std::string chat_commands_help();

}  // namespace tgi
