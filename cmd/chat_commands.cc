// The commands inside tgi chat: one row each.
#include <fmt/format.h>

#include <array>
#include <string>

#include "base/error.h"
#include "base/manual/help.h"
#include "cmd/chat.h"
#include "cmd/image_paths.h"

namespace tgi {
namespace {

struct ChatCommand {
  std::string_view name;
  std::string_view arguments;
  std::string_view help;
  void (*run)(Chat& chat, std::string_view arguments);
};

void show_help(Chat& chat, std::string_view /*arguments*/) {
  chat.session().out().write(chat_commands_help());
}

void clear(Chat& chat, std::string_view /*arguments*/) {
  chat.conversation.clear();
}

void system_message(Chat& chat, std::string_view arguments) {
  if (!arguments.empty()) {
    chat.conversation.set_system(std::string(arguments));
    return;
  }
  const auto text = chat.conversation.system();
  chat.session().out().write((text ? *text : std::string("no system message")) + "\n");
}

std::string require_file(std::string_view command, std::string_view arguments) {
  if (!arguments.empty()) return std::string(arguments);
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected a file name", command));
}

void save(Chat& chat, std::string_view arguments) {
  const std::string file = require_file("/save", arguments);
  chat.conversation.save(file);
  chat.confirm(fmt::format("saved {} messages to {}", chat.conversation.size(), file));
}

void load(Chat& chat, std::string_view arguments) {
  const std::string file = require_file("/load", arguments);
  chat.conversation.load(file);
  chat.confirm(fmt::format("loaded {} messages from {}", chat.conversation.size(), file));
}

void set(Chat& chat, std::string_view arguments) {
  if (arguments.empty()) {
    chat.session().out().write(chat.show_settings());
    return;
  }
  const size_t space = arguments.find(' ');
  if (space == std::string_view::npos) {
    throw Error(Code::kInvalidArgument,
                fmt::format("/set {}: expected a value after the name", arguments));
  }
  const std::string_view name = arguments.substr(0, space);
  const std::string_view value = arguments.substr(arguments.find_first_not_of(' ', space));
  if (name == "context") {
    if (value != "slide" && value != "stop") {
      throw Error(Code::kInvalidArgument,
                  fmt::format("context: expected slide or stop, got {}", value));
    }
    chat.slides = value == "slide";
  } else if (name != "stats") {
    set_sampling_flag(chat.sampling, name, value);
  } else if (value == "on" || value == "off") {
    chat.stats = value == "on";
  } else {
    throw Error(Code::kInvalidArgument, fmt::format("stats: expected on or off, got {}", value));
  }
  chat.confirm(fmt::format("{} is {} now", name, value));
}

void show(Chat& chat, std::string_view /*arguments*/) {
  chat.show();
}

void regenerate(Chat& chat, std::string_view /*arguments*/) {
  if (!chat.conversation.ends_with("assistant")) {
    throw Error(Code::kInvalidArgument, "/regenerate: there is no answer yet");
  }
  const Conversation before = chat.conversation;
  chat.conversation.drop_last();
  try {
    chat.answer();
    if (!chat.conversation.ends_with("assistant")) chat.conversation = before;
  } catch (const Error&) {
    chat.conversation = before;
    throw;
  }
}

void adapter(Chat& chat, std::string_view arguments) {
  if (!arguments.empty()) chat.use_adapter(arguments == "off" ? "" : std::string(arguments));
  const std::string name = chat.adapter_name();
  chat.confirm(name.empty() ? "the model alone answers" : fmt::format("{} answers", name));
}

void model(Chat& chat, std::string_view arguments) {
  if (arguments.empty()) return chat.list_models();
  chat.use_model(std::string(arguments));
  chat.confirm(fmt::format("{} answers now", arguments));
}

void quit(Chat& chat, std::string_view /*arguments*/) {
  chat.done = true;
}

constexpr std::array kChatCommands = {
    ChatCommand{"/help", "", "list the commands", show_help},
    ChatCommand{"/clear", "", "forget the conversation, but not the system message", clear},
    ChatCommand{"/system", "[TEXT]", "set the system message, or show it", system_message},
    ChatCommand{"/save", "FILE", "write the conversation to a JSON file", save},
    ChatCommand{"/load", "FILE", "go on with a conversation that was saved", load},
    ChatCommand{
        "/set", "[NAME VALUE]",
        "set a generation parameter (see the options), stats on, or context slide, by which the "
        "oldest turns leave where the context ends; VALUE off takes a parameter back; without "
        "arguments show them",
        set},
    ChatCommand{"/adapter", "[ADAPTER]",
                "answer by this LoRA adapter from now on, as --adapter names it; off: by the model "
                "alone; without a name say which",
                adapter},
    ChatCommand{
        "/model", "[NAME]",
        "go on with another model, of the daemon (which is loaded if requests load it) or of this "
        "machine (which is loaded beside it); without a name list the daemon's",
        model},
    ChatCommand{"/regenerate", "", "drop the last answer and ask again", regenerate},
    ChatCommand{"/show", "", "show the model, the context's length and the settings", show},
    ChatCommand{"/quit", "", "end; so does Ctrl-D", quit},
    ChatCommand{"/bye", "", "the same as /quit", quit},
    ChatCommand{"/exit", "", "the same as /quit", quit},
};

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

void run_chat_command(Chat& chat, std::string_view line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view name = line.substr(0, space);
  for (const ChatCommand& command : kChatCommands) {
    if (command.name != name) continue;
    const std::string_view arguments = trim(line.substr(space));
    if (command.arguments.empty() && !arguments.empty()) {
      throw Error(Code::kInvalidArgument, fmt::format("{} takes no arguments", name));
    }
    command.run(chat, arguments);
    return;
  }
  refuse_images(line, kVerbatimInChat);  // its path is no command
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: no such command; /help lists them, and a message that begins with / "
                          "is written with //",
                          name));
}

std::string chat_commands_help() {
  constexpr size_t kHelpColumn = 21;
  std::string out;
  for (const ChatCommand& command : kChatCommands) {
    out += fmt::format("{:<20} {}\n", fmt::format("{} {}", command.name, command.arguments),
                       wrap(command.help, kHelpColumn, kHelpColumn, kHelpColumns));
  }
  out += wrap(
      "A line that ends in \\ goes on in the next one; \"\"\" opens and closes a block of "
      "lines.",
      0, 0, kHelpColumns);
  return out + "\n";
}

}  // namespace tgi
