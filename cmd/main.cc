// tgi: one binary, one row per command. Each command is a file of its own that is opened blind by
// the same names: GenerateFlags, add_generate_flags, run_generate.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_commit.h"
#include "base/color.h"
#include "base/current_error.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "base/manual/help.h"
#include "base/manual/usage.h"
#include "base/manual/version_line.h"
#include "base/standard_descriptors.h"
#include "base/standard_error.h"
#include "cmd/adapters.h"
#include "cmd/bench.h"
#include "cmd/chat.h"
#include "cmd/config.h"
#include "cmd/create.h"
#include "cmd/docs.h"
#include "cmd/doctor.h"
#include "cmd/download_weights.h"
#include "cmd/embed.h"
#include "cmd/generate.h"
#include "cmd/load.h"
#include "cmd/logs.h"
#include "cmd/ls.h"
#include "cmd/manual.h"
#include "cmd/ps.h"
#include "cmd/quantize.h"
#include "cmd/rm.h"
#include "cmd/run.h"
#include "cmd/serve.h"
#include "cmd/session.h"
#include "cmd/show.h"
#include "cmd/stop.h"
#include "cmd/terminal_settings.h"
#include "cmd/tokenize.h"
#include "cmd/unload.h"
#include "cmd/version.h"
#include "ipc/client.h"
#include "ipc/config_file.h"
#include "ipc/protocol.h"

namespace tgi {
namespace {

constexpr int kUsageExit = 2;
constexpr int kOutputGoneExit = 0;  // `| head -1` got what it wanted

struct Flags {
  CommonFlags common;
  GenerateFlags generate;
  ChatFlags chat;
  EmbedFlags embed;
  RerankFlags rerank;
  PsFlags ps;
  AdaptersFlags adapters;
  ServeFlags serve;
  LoadFlags load;
  UnloadFlags unload;
  DownloadWeightsFlags download_weights;
  QuantizeFlags quantize;
  StopFlags stop;
  LsFlags ls;
  ShowFlags show;
  RmFlags rm;
  BenchFlags bench;
  DoctorFlags doctor;
  DocsFlags docs;
  RunFlags run;
  CreateFlags create;
  LogsFlags logs;
  TokenizeFlags tokenize;
  DetokenizeFlags detokenize;
  RenderFlags render;
  VersionFlags version;
  ConfigFlags config;
};

struct Command {
  std::string_view name;
  std::string_view summary;
  void (*add_flags)(CLI::App& app, Flags& flags);
  int (*run)(const Flags& flags);
  bool hidden = false;
  bool reads_settings = true;  // false: it works although the file of settings is wrong
};

constexpr std::array kCommands = {
    // Those that people begin with come first, then what they need later: so --help lists them.
    Command{"run", "chat with a model, or let it answer, from a name alone",
            [](CLI::App& app, Flags& flags) { add_run_flags(app, flags.run); },
            [](const Flags& flags) { return run_run(flags.run, flags.common); }},
    Command{"chat", "talk with the model",
            [](CLI::App& app, Flags& flags) { add_chat_flags(app, flags.chat); },
            [](const Flags& flags) { return run_chat(flags.chat, flags.common); }},
    Command{"generate", "answer a prompt, or each line of a file",
            [](CLI::App& app, Flags& flags) { add_generate_flags(app, flags.generate); },
            [](const Flags& flags) { return run_generate(flags.generate, flags.common); }},
    Command{"serve", "answer HTTP: TGI's API and OpenAI's",
            [](CLI::App& app, Flags& flags) { add_serve_flags(app, flags.serve); },
            [](const Flags& flags) { return run_serve(flags.serve, flags.common); }},
    Command{"ps", "show what the daemon is doing",
            [](CLI::App& app, Flags& flags) { add_ps_flags(app, flags.ps); },
            [](const Flags& flags) { return run_ps(flags.ps, flags.common); }},
    Command{"logs", "show what the daemon wrote to its log",
            [](CLI::App& app, Flags& flags) { add_logs_flags(app, flags.logs); },
            [](const Flags& flags) { return run_logs(flags.logs, flags.common); }},
    Command{"load", "load a model into the daemon",
            [](CLI::App& app, Flags& flags) { add_load_flags(app, flags.load); },
            [](const Flags& flags) { return run_load(flags.load, flags.common); }},
    Command{"unload", "free the model's memory; the daemon stays",
            [](CLI::App& app, Flags& flags) { add_unload_flags(app, flags.unload); },
            [](const Flags& flags) { return run_unload(flags.unload, flags.common); }},
    Command{"stop", "stop the daemon after it has finished what runs",
            [](CLI::App& app, Flags& flags) { add_stop_flags(app, flags.stop); },
            [](const Flags& flags) { return run_stop(flags.stop, flags.common); }},
    Command{"pull", "the same as download-weights",
            [](CLI::App& app, Flags& flags) {
              add_download_weights_flags(app, flags.download_weights);
            },
            [](const Flags& flags) {
              return run_download_weights(flags.download_weights, flags.common);
            }},
    Command{"download-weights", "bring a model to this machine",
            [](CLI::App& app, Flags& flags) {
              add_download_weights_flags(app, flags.download_weights);
            },
            [](const Flags& flags) {
              return run_download_weights(flags.download_weights, flags.common);
            }},
    Command{"ls", "list the models of this machine",
            [](CLI::App& app, Flags& flags) { add_ls_flags(app, flags.ls); },
            [](const Flags& flags) { return run_ls(flags.ls, flags.common); }},
    Command{"show", "show what a model is and what memory it needs",
            [](CLI::App& app, Flags& flags) { add_show_flags(app, flags.show); },
            [](const Flags& flags) { return run_show(flags.show, flags.common); }},
    Command{"rm", "remove a model from this machine",
            [](CLI::App& app, Flags& flags) { add_rm_flags(app, flags.rm); },
            [](const Flags& flags) { return run_rm(flags.rm, flags.common); }},
    Command{"create", "keep a named model with its prompt and settings, from a Modelfile",
            [](CLI::App& app, Flags& flags) { add_create_flags(app, flags.create); },
            [](const Flags& flags) { return run_create(flags.create, flags.common); }},
    Command{"quantize", "write a quantised checkpoint of a model",
            [](CLI::App& app, Flags& flags) { add_quantize_flags(app, flags.quantize); },
            [](const Flags& flags) { return run_quantize(flags.quantize, flags.common); }},
    Command{"adapters", "list, load and unload LoRA adapters",
            [](CLI::App& app, Flags& flags) { add_adapters_flags(app, flags.adapters); },
            [](const Flags& flags) { return run_adapters(flags.adapters, flags.common); }},
    Command{"embed", "write the vector of a text, or of each line",
            [](CLI::App& app, Flags& flags) { add_embed_flags(app, flags.embed); },
            [](const Flags& flags) { return run_embed(flags.embed, flags.common); }},
    Command{"rerank", "order lines by how well they fit a question",
            [](CLI::App& app, Flags& flags) { add_rerank_flags(app, flags.rerank); },
            [](const Flags& flags) { return run_rerank(flags.rerank, flags.common); }},
    Command{"tokenize", "show the tokens of a text",
            [](CLI::App& app, Flags& flags) { add_tokenize_flags(app, flags.tokenize); },
            [](const Flags& flags) { return run_tokenize(flags.tokenize, flags.common); }},
    Command{"detokenize", "write the text of tokens",
            [](CLI::App& app, Flags& flags) { add_detokenize_flags(app, flags.detokenize); },
            [](const Flags& flags) { return run_detokenize(flags.detokenize, flags.common); }},
    Command{"render", "write what the chat template makes of messages",
            [](CLI::App& app, Flags& flags) { add_render_flags(app, flags.render); },
            [](const Flags& flags) { return run_render(flags.render, flags.common); }},
    Command{"bench", "measure prefill and decode speed over the socket",
            [](CLI::App& app, Flags& flags) { add_bench_flags(app, flags.bench); },
            [](const Flags& flags) { return run_bench(flags.bench, flags.common); }},
    Command{"doctor", "look for what is wrong with this machine, the daemon or its model",
            [](CLI::App& app, Flags& flags) {
              flags.doctor.version = version_line("tgi", kBuildCommit);
              add_doctor_flags(app, flags.doctor);
            },
            [](const Flags& flags) { return run_doctor(flags.doctor, flags.common); }, false,
            false},
    Command{"config", "show the settings and where they come from, and change them",
            [](CLI::App& app, Flags& flags) { add_config_flags(app, flags.config); },
            [](const Flags& flags) { return run_config(flags.config, flags.common); }, false,
            false},
    Command{"version", "show the versions of the tool and of the daemon",
            [](CLI::App& app, Flags& flags) {
              flags.version.own = version_line("tgi", kBuildCommit);
              add_version_flags(app, flags.version);
            },
            [](const Flags& flags) { return run_version(flags.version, flags.common); }, false,
            false},
    Command{"docs", "write the man pages and completions",
            [](CLI::App& app, Flags& flags) { add_docs_flags(app, flags.docs); },
            [](const Flags& flags) { return run_docs(flags.docs, flags.common); }, true, false},
};

const Command* find_command(std::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

void add_commands(CLI::App& app, Flags& flags) {
  app.formatter(make_help_formatter({.describe =
                                         [](const CLI::App& shown) {
                                           if (shown.get_parent() == nullptr) {
                                             return describe_tgi(shown).program;
                                           }
                                           CommandDoc doc = describe_command(shown);
                                           add_manual(doc);
                                           return doc;
                                         },
                                     .common_flags = common_flags}));
  app.set_version_flag("--version", version_line("tgi", kBuildCommit),
                       "print the version, the commit and the backends");
  add_help_flags(app, false);
  app.require_subcommand(1);
  app.footer(
      "The model runs in the daemon tgid, which a command starts when none is running. It listens "
      "on "
      "a Unix socket that only its own user can reach, and goes on until `tgi stop`.");
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    command.add_flags(*sub, flags);
    add_common_flags(*sub, flags.common);
    add_help_flags(*sub, true);
    if (command.hidden) sub->group("");
  }
}

// As the file of settings has it, for what is said before a command has read it.
void take_color() {
  try {
    apply_color(resolve_terminal_settings(ipc::read_config(config_path())));
  } catch (const std::exception&) {
    // A command that is right says what is wrong with the file.
  }
}

int usage_error(std::string_view command, const UsageComplaint& complaint) {
  const std::string name = command.empty() ? "tgi" : fmt::format("tgi {}", command);
  take_color();
  write_stderr(usage_text(name, complaint, may_color(STDERR_FILENO)));
  return kUsageExit;
}

int unknown_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  const std::string_view meant = nearest_word(name, names);
  return usage_error("",
                     {.message = fmt::format("no such command: {}", name),
                      .advice = meant.empty() ? "" : fmt::format("did you mean `tgi {}`?", meant)});
}

// The last words of a command that went wrong: one line, and one of advice where there is any.
int end_with(const Error& error) {
  const int status = report_error(error);
  const std::string advice = advice_for(error);
  if (!advice.empty()) Session::say(fmt::format("advice: {}", advice));
  return status;
}

// The file of settings and its variables, where the command line says nothing.
void take_settings(Flags& flags) {
  const ipc::ConfigFile file = ipc::read_config(config_path());
  const TerminalSettings settings = resolve_terminal_settings(file);
  apply_color(settings);
  flags.common.no_start = flags.common.no_start || settings.no_start;
  flags.common.verbose = flags.common.verbose || settings.verbose;
  flags.chat.raw = flags.chat.raw || settings.raw;
  flags.chat.stats = flags.chat.stats || settings.stats;
  flags.chat.slides = settings.context == "slide";
  flags.chat.no_save = flags.chat.no_save || settings.no_save;
  flags.generate.raw = flags.generate.raw || settings.raw;
  flags.run.raw = flags.run.raw || settings.raw;
  flags.run.stats = settings.stats;
  flags.run.slides = flags.chat.slides;
  flags.run.no_save = settings.no_save;
  const ipc::ConfigEntry* const socket = file.find(ipc::kDaemonSection, "socket");
  const bool is_chosen =
      !flags.common.socket.empty() || !process_environment("TGI_SOCKET").value_or("").empty();
  if (!is_chosen && socket != nullptr && !socket->values.empty()) {
    flags.common.socket = socket->values.front();
  }
}

// Where the home can't be written: said by the first command, which makes the folder in its place.
void tell_of_temporary_home() {
  const std::optional<std::string> notice = temporary_home_notice();
  std::error_code error;
  if (!notice || std::filesystem::is_directory(state_dir(), error)) return;
  make_state_dir();
  Session::say(*notice);
}

int run_command(const Command& command, Flags& flags) {
  try {
    if (command.reads_settings) {
      take_settings(flags);
      tell_of_temporary_home();
    }
    return command.run(flags);
  } catch (const UsageError& error) {
    return usage_error(command.name, {.message = error.what(), .advice = ""});
  } catch (const ipc::Stopped& stopped) {
    return stopped.why() == ipc::Stopped::Why::kOutputGone ? kOutputGoneExit
                                                           : code_row(stopped.code()).exit_status;
  } catch (const Error& error) {
    return end_with(error);
  } catch (...) {
    return end_with(current_error());
  }
}

// --help and --version: written by CLI11, which does not look whether it worked.
int show_help(const CLI::App& app, const CLI::ParseError& error) {
  const int status = app.exit(error);
  std::cout.flush();
  if (std::cout) return status;
  if (errno == EPIPE) return kOutputGoneExit;  // `| head -1`
  return end_with(Error(errno == ENOSPC ? Code::kOutOfMemory : Code::kInvalidArgument,
                        "standard output is closed or can't be written"));
}

// `tgi --socket PATH ps` as `tgi ps --socket PATH`: flags that all commands share may come first.
void put_command_first(std::vector<std::string>& words) {
  size_t at = 0;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--socket") {
      ++at;
    } else if (word != "--no-start" && word != "-v" && word != "--verbose" &&
               !word.starts_with("--socket=")) {
      break;
    }
  }
  if (at >= words.size() || words[at].starts_with('-')) return;
  const auto begin = words.begin();
  std::rotate(begin, begin + static_cast<std::ptrdiff_t>(at),
              begin + static_cast<std::ptrdiff_t>(at) + 1);
}

int run_main(int argc, char** argv) {
  open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a closed output is an error of write(), not a death
  Flags flags;
  CLI::App app("Run language models on this machine: commands for the daemon tgid.", "tgi");
  add_commands(app, flags);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return usage_error("", {.message = "a command is required", .advice = ""});
  put_command_first(words);
  // `tgi help load` as many tools have it.
  if (words.front() == "help") words = {words.size() > 1 ? words[1] : "--help", "--help"};
  const std::string name = words.front();
  const Command* command = find_command(name);
  if (!name.starts_with('-') && command == nullptr) return unknown_command(name);
  try {
    app.parse(
        std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the last first
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return show_help(app, error);
    const CLI::App& parsed = command != nullptr ? *app.get_subcommand(name) : app;
    return usage_error(command != nullptr ? name : "", explain_parse_error(parsed, error));
  }
  return run_command(*find_command(app.get_subcommands().front()->get_name()), flags);
}

}  // namespace
}  // namespace tgi

int main(int argc, char** argv) {
  return tgi::run_main(argc, argv);
}
