// tgid: owns the model and serves it on a Unix socket. See daemon/options.h for its settings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/build_commit.h"
#include "base/color.h"
#include "base/current_error.h"
#include "base/descriptor_limit.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "base/log.h"
#include "base/manual/help.h"
#include "base/manual/usage.h"
#include "base/manual/version_line.h"
#include "base/standard_descriptors.h"
#include "base/standard_error.h"
#include "daemon/manual.h"
#include "daemon/options.h"
#include "daemon/probe.h"
#include "daemon/server.h"

namespace {

constexpr const char* kSummary =
    "the daemon behind tgi: owns the model, the KV cache and the accelerators, and serves "
    "them on a Unix socket";

// Its own dozen, the files of a model that is being loaded, and clients: below this it would listen
// and never answer.
constexpr int64_t kLeastDescriptors = 64;

void require_descriptors() {
  const int64_t limit = tgi::raise_descriptor_limit();
  if (limit >= kLeastDescriptors) return;
  throw tgi::Error(
      tgi::Code::kInvalidArgument,
      fmt::format("open files are limited to {}, expected at least {}; raise the limit "
                  "(ulimit -n, LimitNOFILE= of a service)",
                  limit, kLeastDescriptors));
}

int wrong_command_line(const tgi::UsageComplaint& complaint) {
  tgi::write_stderr(tgi::usage_text("tgid", complaint, tgi::may_color(STDERR_FILENO)));
  return 2;
}

int run_daemon(int argc, char** argv) {
  CLI::App app{kSummary, "tgid"};
  app.formatter(tgi::make_help_formatter(
      {.describe = [](const CLI::App&) { return tgi::daemon::describe_tgid(); },
       .common_flags = [](const std::string&) { return tgi::daemon::tgid_common_flags(); }}));
  tgi::add_help_flags(app, true);
  app.set_version_flag("--version", tgi::version_line("tgid", tgi::kBuildCommit));
  bool print_config = false;
  app.add_flag("--print-config", print_config,
               "print every setting with its value and where it comes from, and exit");
  bool probe = false;
  app.add_flag("--probe", probe,
               "measure what this machine's backends can do, print it as JSON, and exit");
  // For man/ and completions/.
  bool print_man = false;
  std::string completion;
  app.add_flag("--man", print_man, "print the man page")->group("");
  app.add_option("--completion", completion, "print the completion of a shell")->group("");
  const auto rows = tgi::daemon::option_table();
  std::vector<std::vector<std::string>> values(rows.size());
  std::vector<CLI::Option*> added;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string flag = "--" + std::string(rows[i].name);
    const std::string help = tgi::ipc::setting_help(rows[i]);
    if (rows[i].is_switch()) {
      added.push_back(app.add_flag(flag, help));
    } else {
      added.push_back(app.add_option(flag, values[i], help)
                          ->type_name(std::string(rows[i].value_name))
                          ->expected(1)
                          ->multi_option_policy(rows[i].reset ? CLI::MultiOptionPolicy::TakeAll
                                                              : CLI::MultiOptionPolicy::Throw));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return wrong_command_line(tgi::explain_parse_error(app, error));
  }
  if (print_man) {
    std::fputs(tgi::daemon::tgid_man_page().c_str(), stdout);
    return 0;
  }
  if (!completion.empty()) {
    std::fputs(tgi::daemon::tgid_completion(completion).c_str(), stdout);
    return 0;
  }
  std::vector<tgi::daemon::GivenFlag> given;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (added[i]->count() == 0) continue;
    if (rows[i].is_switch()) values[i] = {"1"};
    for (const std::string& value : values[i]) {
      given.push_back({std::string(rows[i].name), value});
    }
  }
  tgi::daemon::ResolvedOptions resolved;
  try {
    resolved = tgi::daemon::resolve_options(given, tgi::ipc::read_config(tgi::config_path()));
  } catch (const tgi::daemon::FlagError& error) {
    return wrong_command_line({.message = error.what(), .advice = ""});
  }
  if (probe) {
    const tgi::ModelOptions& model = resolved.options.model;
    std::printf("%s\n", tgi::daemon::probe_machine(tgi::kBuildCommit, model).dump().c_str());
    return 0;
  }
  if (print_config) {
    std::fputs(tgi::daemon::print_config(resolved).c_str(), stdout);
    return 0;
  }
  tgi::set_log_level(tgi::parse_log_level(resolved.options.log_level));
  if (const auto notice = tgi::temporary_home_notice()) tgi::log_warn(*notice);
  require_descriptors();
  tgi::daemon::Server server(resolved.options);
  return server.run();
}

}  // namespace

int main(int argc, char** argv) {
  tgi::open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a closed output is an error of write(), not a death
  try {
    const int status = run_daemon(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    if (errno == EPIPE) return status;  // `| head -1`
    throw tgi::Error(errno == ENOSPC ? tgi::Code::kOutOfMemory : tgi::Code::kInvalidArgument,
                     "standard output is closed or can't be written");
  } catch (...) {
    const tgi::Error error = tgi::current_error();
    tgi::write_stderr(fmt::format("tgid: {}\n", error.what()));
    return tgi::code_row(error.code()).exit_status;
  }
}
