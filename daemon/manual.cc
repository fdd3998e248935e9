#include "daemon/manual.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/manual/completions.h"
#include "base/manual/man_page.h"
#include "daemon/options.h"
#include "ipc/setting.h"

namespace tgi::daemon {
namespace {

constexpr std::string_view kDetails =
    "Owns the model, the paged KV cache and the continuous-batching loop, and serves them on a "
    "Unix socket to the commands of tgi(1), in the protocol of tgi-ipc(5). Runs in the foreground; "
    "a command that finds no daemon starts one by itself.\n\n"
    "SIGTERM and SIGINT let running requests finish and refuse new ones; a second signal ends it "
    "at once.\n\n"
    "Each option can also be given in the environment, and in the section [daemon] of the file of "
    "settings (tgi-config(1)); a flag wins, then the environment.";

OptionDoc describe_row(const OptionRow& row) {
  OptionDoc doc{.names = {fmt::format("--{}", row.name)},
                .value = std::string(row.value_name),
                .choices = {row.choices.begin(), row.choices.end()},
                .help = ipc::setting_help(row),
                .note = fmt::format(". Environment: {}.", ipc::environment_name(row)),
                .group = "Options"};
  if (row.name != "socket" && !row.is_switch()) {
    const std::string value = row.get(Options());
    doc.note += fmt::format(" Default: {}.", value.empty() ? "none" : value);
  }
  return doc;
}

OptionDoc plain_switch(const std::string& name, const std::string& help) {
  return {.names = {name}, .value = "", .choices = {}, .help = help, .group = "Options"};
}

}  // namespace

CommandDoc describe_tgid() {
  CommandDoc doc{
      .name = "tgid", .summary = "the daemon behind tgi", .details = std::string(kDetails)};
  for (const OptionRow& row : option_table()) doc.options.push_back(describe_row(row));
  doc.options.push_back(
      plain_switch("--print-config", "print every setting with its value and where it comes from"));
  doc.options.push_back(plain_switch(
      "--probe", "measure what this machine's backends can do, print it as JSON, and exit"));
  doc.options.push_back(
      plain_switch("--version", "print the version, the commit and the backends"));
  doc.options.push_back(plain_switch("--help", "show the options that matter most, and examples"));
  doc.options.push_back(plain_switch("--help-all", "show every option"));
  doc.examples = {{"tgid --model ~/models/Llama-3.1-8B", "Serve a folder in the foreground"},
                  {"tgid --no-model --socket /tmp/my.sock", "Start without a model"},
                  {"TGI_QUANTIZE=int4 tgid --print-config", "See the value of each setting"}};
  doc.exit_statuses.push_back({"0", "stopped as asked"});
  doc.exit_statuses.push_back({"2", "the command line is wrong"});
  for (const CodeRow& row : kCodeTable) {
    std::string name(row.name);
    for (char& c : name) c = c == '_' ? ' ' : c;
    // Two codes that share a status are one to the shell; what ends a request ends no daemon.
    if (row.code == Code::kCancelled || row.code == Code::kTemplate ||
        row.code == Code::kNotFinite) {
      continue;
    }
    doc.exit_statuses.push_back({fmt::format("{}", row.exit_status), name});
  }
  doc.environment = {
      {"TGI_...", "each option, as said there: TGI_MAX_RUNNING for --max-running"},
      {"XDG_RUNTIME_DIR", "the socket lies in tgi/tgid.sock below it, where --socket is not given"},
      {"TGI_PLUGIN_DIR",
       "where libtgi-cuda.so is looked for first; then beside tgid, then in ../lib/tgi"}};
  doc.files = {
      {"~/.config/tgi/config.toml", "settings; $TGI_CONFIG names another file"},
      {"$XDG_RUNTIME_DIR/tgi/tgid.sock", "the socket; without the variable /tmp/tgi-UID/tgid.sock"},
      {"SOCKET.lock", "locked while a daemon lives; stays behind on purpose"}};
  doc.see_also = {"tgi(1)", "tgi-ipc(5)"};
  return doc;
}

std::string tgid_man_page() {
  return daemon_man_page(describe_tgid());
}

std::string tgid_completion(std::string_view shell) {
  const ProgramDoc doc{.program = describe_tgid()};
  if (shell == "bash") return bash_completion(doc);
  if (shell == "zsh") return zsh_completion(doc);
  if (shell == "fish") return fish_completion(doc);
  throw Error(Code::kInvalidArgument,
              fmt::format("--completion: expected bash, zsh or fish, got \"{}\"", shell));
}

std::string_view tgid_common_flags() {
  return "model no-model dtype quantize backend num-shard kv-cache-memory max-running threads "
         "socket drain-timeout log-level print-config version";
}

}  // namespace tgi::daemon
