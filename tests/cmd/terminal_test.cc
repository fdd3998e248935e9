// What a new user meets in the first minutes: closed descriptors, a home that can't be written, a
// file of another format, no network, values that mean something else than they seem to.
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "base/files/new_folder.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

void answer(FakeSession& session) {
  ipc::DoneEvent done;
  done.best.text = "hello";
  session.send_done(done);
}

// With redirections that only a shell can make. Ends a command that hangs with status 124.
Ran run_in_shell(const Home& home, const std::string& words, const std::string& redirections) {
  std::string line = "exec 2>" + home.file("err") + "; env -i";
  for (const std::string& variable : home.environment({})) line += " '" + variable + "'";
  line += " timeout 20 " + tgi_binary() + " " + words + " " + redirections;
  const int status = std::system(line.c_str());
  return {.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = read_file(home.file("out")),
          .err = read_file(home.file("err"))};
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

RunSetup with(std::vector<std::string> arguments, std::map<std::string, std::string> environment) {
  return {.arguments = std::move(arguments),
          .input = {},
          .environment = std::move(environment),
          .output_file = {}};
}

}  // namespace

TEST_CASE("a closed standard output is an error, neither a hang nor a success") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const std::string words = GENERATE("ps", "ls", "generate hi", "generate hi --json --stream",
                                     "doctor --quick", "--help", "ps --help", "--version");
  CAPTURE(words);
  const Ran ran = run_in_shell(home, words, ">&-");
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::StartsWith("error: standard output is closed"));
}

TEST_CASE("with standard output closed nothing goes into the daemon's socket") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const std::string input = home.write("in", "hi\n");
  const Ran ran = run_in_shell(home, "chat", "<" + input + " >&-");
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::Contains("standard output is closed"));
}

TEST_CASE("a closed standard input counts only where it is read, a closed stderr never") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const std::string out = " >" + home.file("out");
  CHECK(run_in_shell(home, "generate hi", "<&-" + out).out == "hello\n");
  CHECK(run_in_shell(home, "generate hi", "2>&-" + out).exit_status == 0);
  for (const char* words : {"generate -", "chat"}) {
    const Ran ran = run_in_shell(home, words, "<&-" + out);
    CHECK(ran.exit_status == 3);
    CHECK(ran.err == "error: standard input is closed\n");
  }
}

TEST_CASE("what is said in a chat has an end") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const Ran line = run_in_shell(home, "chat", "</dev/zero");
  CHECK(line.exit_status == 3);
  CHECK_THAT(line.err, Catch::Contains("standard input: a line has more than 256 MiB"));
  const std::string fifo = home.file("block");
  const std::string write =
      "(echo '\"\"\"'; yes $(head -c 100000 /dev/zero | tr '\\0' a)) >" + fifo + " 2>/dev/null &";
  REQUIRE(std::system(("mkfifo " + fifo + "; " + write).c_str()) == 0);
  const Ran block = run_in_shell(home, "chat", "<" + fifo);
  CHECK(block.exit_status == 3);
  CHECK_THAT(block.err, Catch::Contains("a message has more than 256 MiB"));
}

TEST_CASE("best-of and stream exclude each other, as they do over HTTP") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const Ran ran = home.run({"generate", "hi", "--do-sample", "--best-of", "3", "--stream"});
  CHECK(ran.exit_status == 2);
  CHECK_THAT(ran.err, Catch::Contains("--best-of and --stream can't go together"));
  CHECK(home.run({"generate", "hi", "--do-sample", "--best-of", "1", "--stream"}).exit_status == 0);
}

TEST_CASE("a chosen folder that can't be written is named with the variable that chooses it") {
  const Home home;
  const std::map<std::string, std::string> unwritable = {
      {"XDG_STATE_HOME", "/proc/nonexistent"},
      {"TGI_DAEMON", std::string(TGI_BINARY_DIR) + "/bin/fake_tgid"},
      {"FAKE_TGID", "ready"}};
  const Ran started = home.run(with({"generate", "hi"}, unwritable));
  CHECK(started.exit_status == 3);
  CHECK_THAT(started.err, Catch::StartsWith("error: folder /proc/nonexistent/tgi: can't make "
                                            "/proc/nonexistent: ") &&
                              Catch::Contains("set XDG_STATE_HOME"));
  const Ran doctor = home.run(with({"doctor", "--quick"}, unwritable));
  CHECK(doctor.exit_status == 1);
  CHECK_THAT(doctor.out, Catch::Contains("fail state        folder /proc/nonexistent") &&
                             Catch::Contains("set XDG_STATE_HOME"));
  CHECK_THAT(home.run({"doctor", "--quick"}).out,
             Catch::Contains("ok   state        " + home.state() + "\n"));
}

TEST_CASE("a GGUF file that is not here is refused at once, wherever a model is taken") {
  const Home home;
  struct Refused {
    std::string model;
    int status = 0;
    std::string why;
  };
  for (const Refused& refused : {Refused{home.file("none.gguf"), 4, "there is no such file"},
                                 Refused{"org/M-Q4.GGUF@main", 4, "there is no such file"},
                                 Refused{"none.gguf", 4, "there is no such file"}}) {
    const std::string& model = refused.model;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"load", model}, std::vector<std::string>{"show", model},
          std::vector<std::string>{"serve", model},
          std::vector<std::string>{"download-weights", model},
          std::vector<std::string>{"quantize", model, home.file("new"), "--format", "int8"},
          std::vector<std::string>{"generate", "-m", model, "hi"}}) {
      CAPTURE(words);
      const Ran ran = home.run(with(words, {{"HF_ENDPOINT", "http://127.0.0.1:1"}}));
      CHECK(ran.exit_status == refused.status);
      CHECK_THAT(ran.err, Catch::Contains(refused.why) && !Catch::Contains("trying again"));
    }
  }
}

TEST_CASE("a host that is not known is asked for twice, and the advice is about the network") {
  const Home home;
  const Ran ran =
      home.run(with({"load", "org/name"}, {{"HF_ENDPOINT", "http://no-such-host.invalid"}}));
  CHECK(ran.exit_status == 8);
  CHECK(count(ran.err, "trying again") == 1);
  CHECK_THAT(ran.err, Catch::Contains("no-such-host.invalid") &&
                          Catch::Contains("there is no folder org/name here either") &&
                          Catch::Contains("\nadvice: check the network") &&
                          !Catch::Contains("tgi doctor"));
}

TEST_CASE("values of generation flags are explained in the user's words") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const Ran zero = home.run({"generate", "hi", "--temperature", "0"});
  CHECK(zero.exit_status == 2);
  CHECK_THAT(zero.err, Catch::Contains("--temperature: expected") &&
                           Catch::Contains("without it the likeliest token is taken each time"));
  const Ran stop = home.run({"generate", "hi", "--stop", "a", "--stop", ""});
  CHECK(stop.exit_status == 2);
  CHECK_THAT(stop.err, Catch::Contains("--stop: expected") && !Catch::Contains("stop.0"));
}

TEST_CASE("a seed that nothing draws from is mentioned") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  const Ran idle = home.run({"generate", "hi", "--seed", "7"});
  CHECK(idle.exit_status == 0);
  CHECK(idle.out == "hello\n");
  CHECK_THAT(idle.err, Catch::StartsWith("the seed has no effect"));
  for (const char* flag : {"--temperature", "--top-p", "--min-p", "--typical-p"}) {
    CHECK(home.run({"generate", "hi", "--seed", "7", flag, "0.5"}).err.empty());
  }
  CHECK(home.run({"generate", "hi", "--seed", "7", "--do-sample"}).err.empty());
}

TEST_CASE("a disk that is too small is described in units that fit") {
  const Home home;
  const NewFolder folder(home.file("model"));
  CHECK_THROWS_WITH(folder.require_space(int64_t{5'000'000'000'000'000}),
                    Catch::Contains("needs 5000 TB, but the disk has "));
}

TEST_CASE("standard error that can't be written changes nothing") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(answer));
  for (const auto& [words, status] : {std::pair{"generate hi -v", 0},
                                      {"generate hi --grammar nope --regex x", 2},
                                      {"nonsense", 2},
                                      {"generate --lines -f /not/there", 4},
                                      {"load demo --keep-alive xyz", 2}}) {
    CAPTURE(words);
    const Ran ran = run_in_shell(home, words, "2>/dev/full >" + home.file("out"));
    CHECK(ran.exit_status == status);
    if (status == 0) CHECK(ran.out == "hello\n");
    CHECK(run_in_shell(home, words, ">" + home.file("out")).exit_status == status);
  }
}

TEST_CASE("help that finds a full disk ends with the status of one") {
  const Home home;
  const Ran ran = run_in_shell(home, GENERATE("--help", "ps --help", "version"), ">/dev/full");
  CHECK(ran.exit_status == code_row(Code::kOutOfMemory).exit_status);
}

TEST_CASE("a folder of XDG that is not absolute is ignored") {
  const Home home;
  const Ran ran = home.run(with({"config", "path"}, {{"XDG_CONFIG_HOME", "relative"}}));
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::StartsWith("/"));
}

}  // namespace tgi
