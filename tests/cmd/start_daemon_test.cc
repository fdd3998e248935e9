#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "ipc/client.h"
#include "ipc/line_socket.h"
#include "ipc/start_daemon.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

// Stops the daemon that a test started, whatever happens.
class StartHome : public Home {
 public:
  explicit StartHome(std::string mode) : mode_(std::move(mode)) {}
  ~StartHome() {
    if (ipc::someone_listens(socket())) {
      try {
        ipc::Client({.socket_path = socket()}).call(ipc::kStop);
      } catch (const Error&) {  // it is on its way out already
      }
    }
  }

  Ran start(const std::vector<std::string>& arguments) const {
    return run({.arguments = arguments,
                .input = {},
                .environment = {{"TGI_DAEMON", std::string(TGI_BINARY_DIR) + "/bin/fake_tgid"},
                                {"FAKE_TGID", mode_}},
                .output_file = {}});
  }

 private:
  const std::string mode_;
};

bool goes_away(const std::string& socket) {
  for (int i = 0; i < 500; ++i) {
    if (!ipc::someone_listens(socket)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("a command that finds no daemon starts one, which goes on after it") {
  const StartHome home("ready");
  const Ran first = home.start({"generate", "hi"});
  CHECK(first.err == "");
  REQUIRE(first.exit_status == 0);
  const Ran second = home.start({"generate", "hi"});
  CHECK(second.out == first.out);  // the same process answered

  const pid_t pid = std::stoi(first.out.substr(4));
  CHECK(::getsid(pid) == pid);  // a session of its own: the terminal's Ctrl-C and hangup pass it by
  CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/cwd") == "/");
  CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/0") == "/dev/null");
  CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/1") == "/dev/null");
  struct stat status {};
  REQUIRE(::stat((home.state() + "/tgid.log").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(read_file(home.state() + "/tgid.log") == "level=info msg=\"the log\"\n");

  const Ran stopped = home.start({"stop"});
  CHECK(stopped.exit_status == 0);
  CHECK(stopped.out == "stopped\n");
  CHECK_FALSE(ipc::someone_listens(home.socket()));
}

TEST_CASE("the daemon holds no file of the command that started it") {
  const StartHome home("ready");
  // run() returns when the pipes of stdout and stderr have no writer any more: here and now.
  const auto begin = std::chrono::steady_clock::now();
  CHECK(home.start({"generate", "hi"}).exit_status == 0);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(ipc::someone_listens(home.socket()));
}

TEST_CASE("with --verbose the start and the loading are told") {
  const StartHome home("slow");
  const Ran ran = home.start({"generate", "hi", "-v"});
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.err, Catch::Contains("starting a daemon (") && Catch::Contains("loading big"));
}

TEST_CASE("a daemon that ends at once is reported with its own words") {
  const StartHome home("fail");
  const Ran ran = home.start({"generate", "hi"});
  CHECK(ran.exit_status == 8);
  CHECK_THAT(ran.err, Catch::Contains("ended with exit status 5") &&
                          Catch::Contains("level=error msg=\"no such device\""));
}

TEST_CASE("only the words of this start are reported, not those of earlier ones") {
  const StartHome home("fail");
  home.start({"generate", "hi"});
  const Ran ran = home.start({"generate", "hi"});
  const size_t first = ran.err.find("no such device");
  REQUIRE(first != std::string::npos);
  CHECK(ran.err.find("no such device", first + 1) == std::string::npos);
}

TEST_CASE("the reason is reported though others write to the same log behind it") {
  const StartHome home("fail_among_others");
  const Ran ran = home.start({"generate", "hi"});
  CHECK(ran.exit_status == 8);
  CHECK_THAT(ran.err,
             Catch::Contains("tgid: no such device") && !Catch::Contains("of another daemon"));
}

TEST_CASE("a place that is taken by a daemon that does not answer is told as such") {
  const StartHome home("taken");
  const std::map<std::string, std::string> environment = {
      {"TGI_DAEMON", std::string(TGI_BINARY_DIR) + "/bin/fake_tgid"},
      {"FAKE_TGID", "taken"},
      {"XDG_STATE_HOME", home.file("state")}};
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const ipc::Client client({.socket_path = home.socket()});
  std::string message;
  try {
    ipc::prepare_daemon(client, {.start_timeout_ms = 300});
  } catch (const Error& error) {
    message = error.what();
  }
  for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  CHECK_THAT(message, Catch::Contains("found its place taken by a daemon that does not answer") &&
                          Catch::Contains("tgid: another daemon (pid 7)"));
}

TEST_CASE("a daemon that ends while loading is reported with its own words") {
  const StartHome home("fail_loading");
  const Ran ran = home.start({"generate", "hi"});
  CHECK(ran.exit_status == 8);
  CHECK_THAT(ran.err, Catch::Contains("ended with exit status 6") &&
                          Catch::Contains("level=error msg=\"out of memory\""));
}

TEST_CASE("a daemon whose model can't be loaded is reported with the reason") {
  const StartHome home("bad_model");
  const Ran ran = home.start({"generate", "hi"});
  CHECK(ran.exit_status == 8);
  CHECK_THAT(ran.err, Catch::Contains("no config.json"));
}

TEST_CASE("many commands at once start one daemon") {
  const StartHome home("ready");
  std::vector<std::future<Ran>> runs;
  for (int i = 0; i < 8; ++i) {
    runs.push_back(std::async(std::launch::async, [&] { return home.start({"generate", "hi"}); }));
  }
  std::set<std::string> answers;
  for (auto& run : runs) {
    const Ran ran = run.get();
    CHECK(ran.exit_status == 0);
    CHECK(ran.err == "");
    answers.insert(ran.out);
  }
  CHECK(answers.size() == 1);
}

TEST_CASE("Ctrl-C while a daemon starts ends the command") {
  const StartHome home("silent");
  Process process(home,
                  {.arguments = {"generate", "hi"},
                   .input = {},
                   .environment = {{"TGI_DAEMON", std::string(TGI_BINARY_DIR) + "/bin/fake_tgid"},
                                   {"FAKE_TGID", "silent"}},
                   .output_file = {}},
                  Process::Kind::kPipes);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  process.interrupt();
  CHECK(process.wait() == 130);
}

TEST_CASE("ps, unload and stop never start a daemon") {
  const StartHome home("ready");
  const std::string command = GENERATE("ps", "unload", "stop");
  const Ran ran = home.start({command});
  CHECK(ran.exit_status == 8);
  CHECK(ran.err ==
        "error: no daemon is running at " + home.socket() +
            "\nadvice: start one with `tgi load MODEL`, or with `tgi serve MODEL` for HTTP "
            "too\n");
  CHECK(goes_away(home.socket()));
}

TEST_CASE("a daemon program that is not there is named") {
  const Home home;  // its $TGI_DAEMON points nowhere
  const Ran ran = home.run({"generate", "hi"});
  CHECK(ran.exit_status == 4);
  CHECK(ran.err == "error: $TGI_DAEMON is /nonexistent/tgid: no such program\n");
}

}  // namespace tgi
