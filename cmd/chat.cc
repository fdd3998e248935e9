#include "cmd/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/utf8.h"
#include "cmd/generate.h"
#include "ipc/line_socket.h"

namespace tgi {
namespace {

constexpr std::string_view kPrompt = ">>> ";
constexpr std::string_view kMorePrompt = "... ";
constexpr std::string_view kBlock = "\"\"\"";

}  // namespace

void add_chat_flags(CLI::App& app, ChatFlags& flags) {
  app.footer(
      "On a terminal lines can be edited, and what was typed is kept in chat_history in the "
      "state folder. A line that ends in \\ goes on in the next one; \"\"\" opens and closes a "
      "block of lines. Ctrl-C at the prompt clears the line; during an answer it stops the "
      "answer, and what was said so far stays part of the conversation. Ctrl-D ends.\n\n"
      "From a pipe or a file each line is one turn, and the answers are written one after "
      "the other, each followed by a newline. The exit status is that of the first turn "
      "that went wrong.\n\n"
      "Lines that begin with / are commands: /help, /clear, /system [TEXT], /save FILE, "
      "/load FILE, /set [NAME VALUE], /regenerate, /quit. A message that begins with / is "
      "written with //.");
  app.add_option("--system", flags.system, "the system message")->type_name("TEXT");
  app.add_option("--load", flags.load, "go on with a conversation that /save wrote")
      ->type_name("FILE");
  app.add_flag("--stats", flags.stats, "after each answer say on stderr how fast it came");
  add_model_flags(app, flags.model);
  add_sampling_flags(app, flags.sampling, /*for_chat=*/true);
}

Chat::Chat(const ChatFlags& flags, Session& session, LineSource& lines, bool interactive)
    : sampling(flags.sampling),
      stats(flags.stats),
      session_(session),
      lines_(lines),
      interactive_(interactive) {
  if (flags.load) conversation.load(*flags.load);
  if (flags.system) conversation.set_system(*flags.system);
}

int Chat::run() {
  int exit_status = 0;
  while (!done) {
    const std::optional<std::string> input = read_turn();
    if (!input) break;
    if (input->empty()) continue;
    lines_.remember(*input);
    try {
      take_turn(*input);
    } catch (const ipc::Stopped& stopped) {
      // Before the answer began, while the daemon was asked how it is: take_turn() has taken the
      // question back.
      if (!interactive_ || stopped.why() != ipc::Stopped::Why::kCancelFd) throw;
      session_.interrupt().take();
      Session::say("(stopped)");
    } catch (const Error& error) {
      const int status = report_error(error);
      if (interactive_) continue;
      if (exit_status == 0) exit_status = status;
      if (error.code() == Code::kUnavailable) break;  // the turns that are left can't fare better
    }
  }
  return exit_status;
}

std::optional<std::string> Chat::read_turn() {
  std::string input;
  bool in_block = false;
  for (bool first = true;; first = false) {
    ReadLine line = lines_.read(std::string(first ? kPrompt : kMorePrompt));
    if (line.kind == ReadLine::Kind::kInterrupted) {
      if (!interactive_) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
      session_.interrupt().take();
      return "";
    }
    if (line.kind == ReadLine::Kind::kEnd) {
      if (first) return std::nullopt;
      return input;
    }
    std::string_view text = line.text;
    if (first && text.starts_with(kBlock)) {
      in_block = true;
      text.remove_prefix(kBlock.size());
    }
    if (in_block && text.ends_with(kBlock)) {
      text.remove_suffix(kBlock.size());
      if (text.empty() && input.ends_with('\n')) input.pop_back();  // """ on a line of its own
      return input += text;
    }
    const bool continued = !in_block && text.ends_with('\\');
    if (continued) text.remove_suffix(1);
    input += text;
    if (!in_block && !continued) return input;
    if (!(in_block && first && text.empty())) input += '\n';  // not after the """ that opens
  }
}

void Chat::take_turn(const std::string& input) {
  if (input.starts_with('/') && !input.starts_with("//")) {
    run_chat_command(*this, input);
    return;
  }
  const std::string text = input.starts_with("//") ? input.substr(1) : input;
  if (const size_t valid = valid_utf8_prefix(text); valid != text.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("the message is not valid UTF-8 at its byte {}", valid));
  }
  conversation.add("user", text);
  try {
    answer();
  } catch (const Error&) {
    if (conversation.ends_with("user")) conversation.drop_last();  // as if it had not been said
    throw;
  }
}

void Chat::answer() {
  session_.prepare();  // the daemon may have been stopped since the last turn
  ipc::GenerateRequest request;
  request.messages = conversation.messages();
  request.stream = true;
  request.params = to_params(sampling);
  Output& out = session_.out();
  std::string text;
  bool was_stopped = false;
  try {
    const ipc::DoneEvent result =
        session_.client().generate(request, [&](const ipc::TokenEvent& event) {
          text += event.text;
          out.write(event.text);
        });
    interactive_ ? out.end_line() : out.write("\n");
    if (stats) Session::say(describe_usage(result));
  } catch (const ipc::Stopped& stopped) {
    if (!interactive_ || stopped.why() != ipc::Stopped::Why::kCancelFd) throw;
    session_.interrupt().take();
    was_stopped = true;
    out.end_line();
    Session::say("(stopped; what was said so far is kept)");
  } catch (const Error&) {
    out.end_line();
    throw;
  }
  // An answer that was stopped before its first character leaves no trace, nor does the question.
  if (!was_stopped || !text.empty()) {
    conversation.add("assistant", text);
  } else if (conversation.ends_with("user")) {
    conversation.drop_last();
  }
}

int run_chat(const ChatFlags& flags, const CommonFlags& common) {
  Session session(common);
  if (has_idle_seed(flags.sampling)) Session::say(kIdleSeed);
  choose_model(session, flags.model);
  const bool interactive = ::isatty(STDIN_FILENO) == 1 && session.out().is_terminal();
  if (!interactive) {
    PlainLines lines(session.interrupt().fd());
    return Chat(flags, session, lines, false).run();
  }
  session.prepare();
  LineEditor editor(state_dir() + "/chat_history", session.interrupt().fd());
  if (!editor.problem().empty()) {
    Session::say(fmt::format("the history is not kept: {}", editor.problem()));
  }
  Session::say("/help lists the commands; Ctrl-D ends");
  return Chat(flags, session, editor, true).run();
}

}  // namespace tgi
