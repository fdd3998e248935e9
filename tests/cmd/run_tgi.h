// Runs the real tgi binary against a socket of the test, with a home of the test.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi {

struct Ran {
  int exit_status = -1;  // 128 + n when killed by signal n
  std::string out;
  std::string err;
};

struct RunSetup {
  std::vector<std::string> arguments;
  std::string input;
  std::map<std::string, std::string> environment;  // beside a bare minimum
  std::optional<std::string> output_file;          // instead of a pipe
};

// A folder for the socket and the state of one test.
class Home {
 public:
  std::string socket() const { return folder_.file("run/tgid.sock"); }
  std::string state() const { return folder_.file("state/tgi"); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string write(const std::string& name, const std::string& text) const;

  Ran run(const RunSetup& setup) const;
  Ran run(const std::vector<std::string>& arguments, const std::string& input = "") const {
    return run(RunSetup{arguments, input, {}, std::nullopt});
  }

  std::vector<std::string> environment(const RunSetup& setup) const;

 private:
  TempFolder folder_;
};

// One that is talked to while it runs.
class Process {
 public:
  enum class Kind { kPipes, kTerminal };

  Process(const Home& home, const RunSetup& setup, Kind kind);
  ~Process();

  void write(const std::string& text);
  void close_input() { input_.reset(); }
  void close_output() { output_.reset(); }
  void interrupt();  // SIGINT; through the terminal's Ctrl-C where there is one

  // Reads until `text` comes after what was waited for before; false after 10 seconds or at the
  // end.
  bool wait_for_output(const std::string& text);
  // On a terminal: until the editor takes single keys; before that Ctrl-D has another meaning.
  bool wait_for_keys();
  bool takes_lines() const;  // on a terminal: as it is for a shell's commands
  void take_lines() const;   // makes it so
  std::string read_to_end();
  const std::string& output() const { return collected_; }
  int wait();
  pid_t pid() const { return pid_; }

 private:
  bool read_some(int timeout_ms);

  pid_t pid_ = -1;
  bool terminal_ = false;
  UniqueFd input_;
  UniqueFd output_;  // of a terminal: the same as the input
  std::string collected_;
  size_t seen_ = 0;
};

std::string tgi_binary();
std::string read_file(const std::string& path);

}  // namespace tgi
