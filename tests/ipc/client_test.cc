#include "ipc/client.h"

#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "ipc/start_daemon.h"
#include "tests/catch.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi::ipc::client_test {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    REQUIRE(::pipe(fds) == 0);
    read_end.reset(fds[0]);
    write_end.reset(fds[1]);
  }
  UniqueFd read_end;
  UniqueFd write_end;
};

Error error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {Code::kInternal, ""};
}

GenerateRequest streaming_request() {
  GenerateRequest request;
  request.prompt = "hi";
  request.stream = true;
  return request;
}

DoneEvent done_with(const std::string& text) {
  DoneEvent event;
  event.best.text = text;
  return event;
}

}  // namespace

TEST_CASE("a call gives the result and sends what was asked") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"),
                          [](FakeSession& session) { session.send(R"({"result":{"n":5}})"); });
  const Client client({.socket_path = folder.file("s")});
  CHECK(client.call("load", {{"model", "/m"}}) == OrderedJson{{"n", 5}});
  CHECK(daemon.requests() == std::vector<std::string>{R"(load {"model":"/m"})"});
}

TEST_CASE("an error of the daemon comes out as it is") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    session.send_error(Code::kOverloaded, "queue full");
  });
  const Error error = error_of([&] { Client({.socket_path = folder.file("s")}).call(kUnload); });
  CHECK(error.code() == Code::kOverloaded);
  CHECK(error.what() == std::string("queue full"));
}

TEST_CASE("tokens of a stream come in order before the end") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    for (int i = 0; i < 1000; ++i) session.send_text(std::to_string(i) + " ", i);
    session.send_done(done_with("all"));
  });
  std::vector<int> ids;
  const DoneEvent done = Client({.socket_path = folder.file("s")})
                             .generate(streaming_request(), [&](const TokenEvent& event) {
                               ids.push_back(event.token.id);
                             });
  CHECK(done.best.text == "all");
  REQUIRE(ids.size() == 1000);
  for (int i = 0; i < 1000; ++i) CHECK(ids[static_cast<size_t>(i)] == i);
}

TEST_CASE("a daemon of another protocol is refused naming both versions") {
  const TempFolder folder;
  const FakeDaemon daemon(
      folder.file("s"), [](FakeSession&) {}, encode_hello({.protocol = 99, .version = "7.8.9"}));
  const Error error = error_of([&] { Client({.socket_path = folder.file("s")}).status(); });
  CHECK(error.code() == Code::kUnsupported);
  CHECK_THAT(error.what(), Catch::Contains("7.8.9") && Catch::Contains("protocol 99") &&
                               Catch::Contains(std::string(kVersion)) &&
                               Catch::Contains("kill " + std::to_string(::getpid())));
}

TEST_CASE("a daemon that goes away in the middle of an answer is unavailable") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    session.send_text("a");
    session.send_text("b");
  });
  std::string text;
  const Error error = error_of([&] {
    Client({.socket_path = folder.file("s")})
        .generate(streaming_request(), [&](const TokenEvent& event) { text += event.text; });
  });
  CHECK(error.code() == Code::kUnavailable);
  CHECK(error.what() == std::string("the daemon went away in the middle of the answer"));
  CHECK(text == "ab");
}

TEST_CASE("a daemon that answers nothing is unavailable") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession&) {});
  const Error error = error_of([&] { Client({.socket_path = folder.file("s")}).status(); });
  CHECK(error.code() == Code::kUnavailable);
  CHECK_THAT(error.what(), Catch::Contains("went away without an answer"));
}

TEST_CASE("a daemon that says no hello is given up after the time") {
  const TempFolder folder;
  const UnixListener silent = listen_unix(folder.file("s"));
  const Error error =
      error_of([&] { Client({.socket_path = folder.file("s"), .hello_timeout_ms = 50}).status(); });
  CHECK(error.code() == Code::kUnavailable);
  CHECK_THAT(error.what(), Catch::Contains("did not say hello within 50 ms"));
}

TEST_CASE("cancelling closes the connection so that the daemon sees it") {
  const TempFolder folder;
  std::promise<bool> left;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    session.send_text("first");
    left.set_value(session.client_leaves_within(5000));
  });
  const Pipe cancel;
  std::string text;
  const Error error = error_of([&] {
    Client({.socket_path = folder.file("s"), .cancel_fd = cancel.read_end.get()})
        .generate(streaming_request(), [&](const TokenEvent& event) {
          text += event.text;
          REQUIRE(::write(cancel.write_end.get(), "x", 1) == 1);
        });
  });
  CHECK(error.code() == Code::kCancelled);
  CHECK(text == "first");
  CHECK(left.get_future().get());
}

TEST_CASE("a reader of the output that goes away cancels the request") {
  const TempFolder folder;
  std::promise<bool> left;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    left.set_value(session.client_leaves_within(5000));
  });
  Pipe output;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    output.read_end.reset();
  });
  const Error error = error_of([&] {
    Client({.socket_path = folder.file("s"), .output_fd = output.write_end.get()})
        .generate(streaming_request(), [](const TokenEvent&) {});
  });
  reader.join();
  CHECK(error.code() == Code::kCancelled);
  CHECK(left.get_future().get());
}

TEST_CASE("an exception of the token handler closes the connection") {
  const TempFolder folder;
  std::promise<bool> left;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    session.send_text("a");
    left.set_value(session.client_leaves_within(5000));
  });
  const Client client({.socket_path = folder.file("s")});
  CHECK_THROWS_AS(client.generate(streaming_request(),
                                  [](const TokenEvent&) { throw std::runtime_error("stop"); }),
                  std::runtime_error);
  CHECK(left.get_future().get());
}

TEST_CASE("a refusal before the whole request was sent is still heard") {
  const TempFolder folder;
  UnixListener listener = listen_unix(folder.file("s"));
  std::thread server([&] {
    std::optional<UniqueFd> client;
    while (!client) client = listener.accept();
    std::string_view lines =
        "{\"protocol\":1,\"version\":\"x\"}\n"
        "{\"error\":{\"code\":\"overloaded\",\"message\":\"full\"}}\n";
    write_from(client->get(), lines);
  });
  GenerateRequest request = streaming_request();
  request.prompt = std::string(16 << 20, 'x');
  const Error error = error_of([&] {
    Client({.socket_path = folder.file("s")}).generate(request, [](const TokenEvent&) {});
  });
  server.join();
  CHECK(error.code() == Code::kOverloaded);
}

TEST_CASE("a request over the limit is refused without being sent") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession&) {});
  GenerateRequest request = streaming_request();
  request.prompt = std::string(kMaxLineBytes, 'x');
  const Error error = error_of([&] {
    Client({.socket_path = folder.file("s")}).generate(request, [](const TokenEvent&) {});
  });
  CHECK(error.code() == Code::kInvalidArgument);
  CHECK_THAT(error.what(), Catch::Contains("the limit is 67108864"));
  CHECK(daemon.requests().empty());
}

TEST_CASE("one client serves many threads") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [](FakeSession& session) {
    session.send_done(done_with(session.request().params["prompt"].get<std::string>()));
  });
  const Client client({.socket_path = folder.file("s")});
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 32; ++i) {
    answers.push_back(std::async(std::launch::async, [&client, i] {
      GenerateRequest request;
      request.prompt = std::to_string(i);
      return client.generate(request, [](const TokenEvent&) {}).best.text;
    }));
  }
  for (int i = 0; i < 32; ++i) {
    CHECK(answers[static_cast<size_t>(i)].get() == std::to_string(i));
  }
}

TEST_CASE("a running daemon that is loading is waited for") {
  const TempFolder folder;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    Status status = ready_status();
    if (++num_asked < 4) {
      status.phase = "loading";
      status.phase_detail = "/models/x";
    }
    session.send(encode_result(to_json(status)));
  });
  std::vector<std::string> notices;
  const Status status =
      prepare_daemon(Client({.socket_path = folder.file("s")}),
                     {.on_notice = [&](const std::string& line) { notices.push_back(line); }});
  CHECK(status.phase == "ready");
  CHECK(num_asked == 4);
  CHECK(notices == std::vector<std::string>{"loading /models/x"});
}

TEST_CASE("a model that can't be loaded is reported with the daemon's reason") {
  const TempFolder folder;
  const FakeDaemon daemon(folder.file("s"), [&](FakeSession& session) {
    Status status;
    status.phase = "failed";
    status.phase_detail = "config.json: no such file";
    session.send(encode_result(to_json(status)));
  });
  const Client client({.socket_path = folder.file("s")});
  const Error error = error_of([&] { prepare_daemon(client, {}); });
  CHECK(error.code() == Code::kUnavailable);
  CHECK_THAT(error.what(), Catch::EndsWith("config.json: no such file"));
  CHECK(prepare_daemon(client, {.wait_for_model = false}).phase == "failed");
}

TEST_CASE("without leave to start a daemon its absence is an error") {
  const TempFolder folder;
  const Error error = error_of(
      [&] { prepare_daemon(Client({.socket_path = folder.file("s")}), {.may_start = false}); });
  CHECK(error.code() == Code::kUnavailable);
  CHECK(error.what() == "no daemon is running at " + folder.file("s"));
}

}  // namespace tgi::ipc::client_test
