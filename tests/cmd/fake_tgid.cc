// A program that stands in for tgid where a test needs one to be started. How it behaves is told by
// $FAKE_TGID: ready, slow (loads for a while), fail (ends before it listens), fail_loading (ends
// while loading), fail_among_others (others write to its log behind it), taken (another daemon has
// its place), bad_model, silent (never listens).
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/ipc/fake_daemon.h"

namespace {

using tgi::FakeSession;

int serve(const std::string& socket, const std::string& mode) {
  std::atomic<bool> stop = false;
  std::atomic<int> num_status = 0;
  const tgi::FakeDaemon daemon(socket, [&](FakeSession& session) {
    const std::string method = session.request().method;
    if (method == "status") {
      tgi::ipc::Status status = tgi::ready_status();
      status.pid = ::getpid();
      const int count = ++num_status;
      if (mode == "slow" && count < 5) status.phase = "loading", status.phase_detail = "big";
      if (mode == "fail_loading") status.phase = "loading", status.phase_detail = "big";
      if (mode == "bad_model") status.phase = "failed", status.phase_detail = "no config.json";
      session.send(tgi::ipc::encode_result(tgi::ipc::to_json(status)));
      if (mode == "fail_loading" && count >= 2) {
        std::fputs("level=error msg=\"out of memory\"\n", stderr);
        std::_Exit(6);
      }
    } else if (method == "generate") {
      tgi::ipc::DoneEvent done;
      done.best.text = "pid " + std::to_string(::getpid());
      session.send_done(done);
    } else {
      session.send(R"({"result":{}})");
      if (method == "stop") stop = true;
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!stop && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = std::getenv("FAKE_TGID");
  if (argc != 3 || std::string(argv[1]) != "--socket" || mode == nullptr) return 2;
  std::fputs("level=info msg=\"the log\"\n", stderr);
  if (std::string(mode) == "fail") {
    std::fputs("level=error msg=\"no such device\"\n", stderr);
    return 5;
  }
  if (std::string(mode) == "fail_among_others") {
    std::fputs("tgid: no such device\n", stderr);
    for (int i = 0; i < 20; ++i) std::fputs("level=info msg=\"of another daemon\"\n", stderr);
    return 5;
  }
  if (std::string(mode) == "taken") {
    std::fputs("tgid: another daemon (pid 7) has the place\n", stderr);
    return tgi::code_row(tgi::Code::kOverloaded).exit_status;
  }
  if (std::string(mode) == "silent") {
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return 0;
  }
  try {
    return serve(argv[2], mode);
  } catch (const tgi::Error& error) {
    std::fprintf(stderr, "level=error msg=\"%s\"\n", error.what());
    return tgi::code_row(error.code()).exit_status;
  }
}
