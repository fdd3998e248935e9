#include "cmd/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/utf8.h"
#include "cmd/answer_writer.h"
#include "cmd/chat_context.h"
#include "cmd/chat_sessions.h"
#include "cmd/chat_tools.h"
#include "cmd/generate.h"
#include "cmd/image_paths.h"
#include "cmd/model_path.h"
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
      "state folder, and each chat in chats there, for --resume. A line that ends in \\ goes on in "
      "the next one; \"\"\" opens and closes a block of lines. Ctrl-C at the prompt clears the "
      "line; during an answer it stops the "
      "answer, and what was said so far stays part of the conversation. Ctrl-D ends.\n\n"
      "From a pipe or a file each line is one turn, and the answers are written one after "
      "the other, each followed by a newline. The exit status is that of the first turn "
      "that went wrong.\n\n"
      "A model without a chat template has no turns: it goes on with each line, or block of "
      "lines, as it stands and by itself, as `tgi run` does.\n\n"
      "With --tools the model may call what the file lists. A call is shown as a line of JSON, "
      "{\"id\": ..., \"name\": ..., \"arguments\": {...}}, and the next line that is read is its "
      "result; nothing is run by itself. The reasoning of models that reason is shown dimmed on "
      "a terminal, and not at all elsewhere.\n\n"
      "Lines that begin with / are commands: /help, /clear, /system [TEXT], /save FILE, "
      "/load FILE, /set [NAME VALUE], /adapter [ADAPTER], /model [NAME], /show, /regenerate, "
      "/quit, "
      "/bye, /exit. A message that "
      "begins with / is written with //.");
  app.add_option("--system", flags.system, "the system message")->type_name("TEXT");
  app.add_option("--load", flags.load, "go on with a conversation that /save wrote")
      ->type_name("FILE");
  app.add_flag("--resume", flags.resume,
               "go on with the last chat of a terminal, which is kept by itself")
      ->excludes("--load");
  app.add_flag("--no-save", flags.no_save, "do not keep this chat for --resume")
      ->excludes("--resume");
  app.add_option(
         "--tools", flags.tools,
         "the tools that the model may call: a JSON list in OpenAI's shape, or of functions")
      ->type_name("FILE");
  add_reasoning_flags(app, flags.reasoning);
  app.add_flag("--stats", flags.stats, "after each answer say on stderr how fast it came");
  app.add_flag("--raw", flags.raw, "on a terminal write answers as they are, no markdown rendered");
  add_model_flags(app, flags.model);
  add_adapter_flag(app, flags.adapter);
  add_sampling_flags(app, flags.sampling, /*for_chat=*/true);
}

Chat::Chat(const ChatFlags& flags, Session& session, LineSource& lines, bool interactive)
    : sampling(flags.sampling),
      stats(flags.stats),
      slides(flags.slides),
      session_(session),
      lines_(lines),
      interactive_(interactive),
      tools_(flags.tools ? std::optional(read_tools(*flags.tools)) : std::nullopt),
      reasoning_(flags.reasoning),
      offline_(flags.model.offline),
      raw_(flags.raw) {
  use_adapter(flags.adapter);
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
      keep();
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
      // The turns that are left can't fare better.
      if (error.code() == Code::kUnavailable || needs_template_) break;
    }
  }
  return exit_status;
}

void Chat::keep() {
  if (session_file_.empty() || conversation.size() == 0) return;
  try {
    conversation.save(session_file_);
  } catch (const Error& error) {
    session_file_.clear();  // said once
    Session::say(fmt::format("(this chat is not kept: {})", error.what()));
  }
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
    if (input.size() > kLongestLine) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("a message has more than {} MiB, which is the most that is read of "
                              "one",
                              kLongestLine >> 20));
    }
    if (!in_block && !continued) return input;
    if (!(in_block && first && text.empty())) input += '\n';  // not after the """ that opens
  }
}

void Chat::take_turn(const std::string& input) {
  const bool is_verbatim = input.starts_with("//");
  if (input.starts_with('/') && !is_verbatim) {
    run_chat_command(*this, input);
    return;
  }
  const std::string text = is_verbatim ? input.substr(1) : input;
  if (!is_verbatim) refuse_images(text, kVerbatimInChat);
  if (const size_t valid = valid_utf8_prefix(text); valid != text.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("the message is not valid UTF-8 at its byte {}", valid));
  }
  conversation.add("user", text);
  try {
    answer();
  } catch (const Error&) {
    conversation.cut_last("user");  // as if it had not been said
    throw;
  }
}

ipc::GenerateRequest Chat::request() const {
  ipc::GenerateRequest out;
  out.model = session_.model_name();
  out.stream = true;
  out.params = to_params(sampling);
  set_adapter(adapter_choice_, out);
  if (!has_template_) {
    const ipc::OrderedJson& content = conversation.messages().back().at("content");
    if (!content.is_string()) {
      throw Error(Code::kUnsupported,
                  "the last message is no text, and the model has no chat "
                  "template to show it by");
    }
    out.prompt = content.get<std::string>();
    return out;
  }
  out.messages = conversation.messages();
  out.tools = tools_;
  out.reasoning_effort = reasoning_.effort;
  out.parse_answer = true;
  out.params.max_reasoning_tokens = reasoning_.max_tokens;
  return out;
}

void Chat::confirm(std::string_view line) const {
  if (interactive_) Session::say(fmt::format("({})", line));
}

void Chat::show() {
  const ipc::Status status = session_.prepare();
  Output& out = session_.out();
  if (status.model) {
    out.write(fmt::format("model {}\n", shown_model(status.model->name)));
    out.write(fmt::format("context {} of {} tokens taken at the last answer\n", num_context_tokens_,
                          status.model->max_total_tokens));
  }
  out.write(fmt::format("messages {}\n", conversation.size()));
  if (const auto system = conversation.system()) out.write(fmt::format("system {}\n", *system));
  out.write(show_settings());
}

std::string Chat::show_settings() const {
  return show_sampling_flags(sampling) +
         fmt::format("stats {}\ncontext {}\n", stats ? "on" : "off", slides ? "slide" : "stop");
}

void Chat::use_adapter(const std::string& name) {
  if (name.empty()) {
    adapter_choice_.reset();
    return;
  }
  session_.prepare();
  adapter_choice_ = choose_adapter(session_, name, offline_);
}

std::optional<ipc::DoneEvent> Chat::ask(std::string& text) {
  Output& out = session_.out();
  AnswerWriter writer(out, !raw_);
  try {
    ipc::DoneEvent result =
        session_.client().generate(request(), [&](const ipc::TokenEvent& event) {
          text += event.text;
          writer.write(event);
        });
    writer.end();
    const bool has_line = !text.empty() || result.best.tool_calls.empty();
    if (has_line) interactive_ ? out.end_line() : out.write("\n");
    for (const ipc::ToolCall& call : result.best.tool_calls) out.write(call_line(call) + "\n");
    if (stats) Session::say(describe_usage(result));
    num_context_tokens_ = result.num_prompt_tokens + result.best.num_generated_tokens;
    if (max_context_tokens_ > 0 && num_context_tokens_ >= max_context_tokens_ && !slides) {
      Session::say(fmt::format(
          "(the context of {} tokens is full, the answer ends here{})", max_context_tokens_,
          has_template_ ? ": /clear begins anew, and after /set context slide the oldest turns "
                          "leave by themselves"
                        : ""));
    }
    return result;
  } catch (const ipc::Stopped& stopped) {
    if (!interactive_ || stopped.why() != ipc::Stopped::Why::kCancelFd) throw;
    session_.interrupt().take();
    writer.end();
    out.end_line();
    Session::say("(stopped; what was said so far is kept)");
    return std::nullopt;
  } catch (const Error& error) {
    writer.end();
    out.end_line();
    if (error.code() == Code::kInvalidArgument && max_context_tokens_ > 0 && has_template_) {
      const auto full = explain_full_context(session_, request(), max_context_tokens_);
      if (full) throw Error(*full);
    }
    throw;
  }
}

void Chat::slide() {
  const ipc::GenerateRequest wanted = request();
  const int64_t most = max_context_tokens_ - room_for_answer(wanted, max_context_tokens_);
  int num_dropped = 0;
  while (count_chat_tokens(session_, request()) > most && conversation.drop_oldest_turn()) {
    ++num_dropped;
  }
  if (num_dropped == 0) return;
  Session::say(fmt::format("(the context of {} tokens ends: the oldest {} left the conversation)",
                           max_context_tokens_,
                           num_dropped == 1 ? "turn" : fmt::format("{} turns", num_dropped)));
}

bool Chat::read_results(const std::vector<ipc::ToolCall>& calls) {
  for (const ipc::ToolCall& call : calls) {
    const ReadLine line = lines_.read(fmt::format("{} returns: ", call.name));
    if (line.kind == ReadLine::Kind::kInterrupted) {
      if (!interactive_) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
      session_.interrupt().take();
      Session::say("(the question is taken back: a call has no result)");
      return false;
    }
    if (line.kind == ReadLine::Kind::kEnd) {
      done = true;
      return false;
    }
    if (!is_valid_utf8(line.text)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("the result of {} is not valid UTF-8", call.name));
    }
    conversation.add(message_of_result(call, line.text));
  }
  return true;
}

void Chat::answer() {
  const ipc::Status status = session_.prepare();  // it may have been stopped since the last turn
  max_context_tokens_ = status.model ? status.model->max_total_tokens : 0;
  heed_template(status);
  if (slides && max_context_tokens_ > 0 && has_template_) slide();
  const size_t before = conversation.size();
  for (;;) {
    std::string text;
    const std::optional<ipc::DoneEvent> result = ask(text);
    const bool has_calls = result && !result->best.tool_calls.empty();
    if (!has_calls) {
      // An answer that was stopped before its first character leaves no trace, nor does the
      // question.
      if (result || !text.empty()) {
        conversation.add("assistant", text);
      } else if (conversation.ends_with("user")) {
        conversation.drop_last();
      }
      return;
    }
    conversation.add(message_with_calls(result->best.text, result->best.tool_calls));
    if (!read_results(result->best.tool_calls)) {
      conversation.cut(before);
      if (conversation.ends_with("user")) conversation.drop_last();
      return;
    }
  }
}

namespace {

// Where a chat on a terminal is kept; empty: nowhere, which is said.
std::string prepare_session_file(const ChatFlags& flags) {
  if (flags.no_save) return "";
  try {
    make_private_dir(chat_sessions_dir());
    prune_chat_sessions();
  } catch (const Error& error) {
    Session::say(fmt::format("(this chat is not kept: {})", error.what()));
    return "";
  }
  return flags.resume ? flags.load.value_or("") : new_chat_session();
}

}  // namespace

int run_chat(const ChatFlags& given, const CommonFlags& common) {
  ChatFlags flags = given;
  if (flags.resume) {
    flags.load = newest_chat_session();
    if (!flags.load) {
      throw Error(Code::kNotFound,
                  fmt::format("there is no chat to go on with in {}", chat_sessions_dir()));
    }
  }
  Session session(common);
  if (has_idle_seed(flags.sampling)) Session::say(kIdleSeed);
  choose_model(session, flags.model);
  const bool interactive = ::isatty(STDIN_FILENO) == 1 && session.out().is_terminal();
  if (!interactive) {
    PlainLines lines(session.interrupt().fd());
    return Chat(flags, session, lines, false).run();
  }
  const ipc::Status status = session.prepare();
  LineEditor editor(state_dir() + "/chat_history", session.interrupt().fd());
  if (!editor.problem().empty()) {
    Session::say(fmt::format("the history is not kept: {}", editor.problem()));
  }
  Chat chat(flags, session, editor, true);
  chat.heed_template(status);  // before anything is typed
  Session::say("/help lists the commands; Ctrl-D ends");
  if (flags.resume) {
    Session::say(fmt::format("(going on with {} messages)", chat.conversation.size()));
  }
  chat.keep_in(prepare_session_file(flags));
  return chat.run();
}

}  // namespace tgi
