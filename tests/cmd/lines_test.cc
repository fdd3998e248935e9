#include <atomic>
#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ipc/protocol.h"
#include "ipc/vectors.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

std::string prompt_of(FakeSession& session) {
  return session.request().params["prompt"].get<std::string>();
}

void echo(FakeSession& session) {
  ipc::DoneEvent done;
  done.best.text = "<" + prompt_of(session) + ">";
  session.send_done(done);
}

std::string numbered(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += std::to_string(i) + "\n";
  return out;
}

}  // namespace

TEST_CASE("answers to lines come in the order of the lines, whichever is ready first") {
  const Home home;
  std::atomic<int> num_open = 0;
  std::atomic<int> most_open = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            const int open = ++num_open;
                            int most = most_open;
                            while (open > most && !most_open.compare_exchange_weak(most, open)) {
                            }
                            const int number = std::stoi(prompt_of(session));
                            std::this_thread::sleep_for(std::chrono::milliseconds(number % 7 * 5));
                            --num_open;  // first: after the answer the next one may come
                            echo(session);
                          }));
  const Ran ran = home.run({"generate", "--lines", "--parallel", "8"}, numbered(100));
  CHECK(ran.exit_status == 0);
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "<" + std::to_string(i) + ">\n";
  CHECK(ran.out == expected);
  CHECK(most_open <= 8);
  CHECK(most_open >= 4);
}

TEST_CASE("with json every object has the index of its line") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo));
  const Ran ran = home.run({"generate", "--lines", "--json"}, "a\n\nb");
  std::istringstream lines(ran.out);
  int index = 0;
  for (std::string line; std::getline(lines, line); ++index) {
    const auto json = ipc::OrderedJson::parse(line);
    CHECK(json["index"] == index);
    CHECK(json["text"] == (index == 0 ? "<a>" : index == 1 ? "<>" : "<b>"));
  }
  CHECK(index == 3);
}

TEST_CASE("lines that fail are reported with their number and the others go on") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            if (prompt_of(session) == "bad") {
                              session.send_error(Code::kOutOfMemory, "too long");
                            } else {
                              echo(session);
                            }
                          }));
  const Ran ran = home.run({"generate", "--lines"}, "a\nbad\nb\n\xFF\xFE\nc\n");
  CHECK(ran.out == "<a>\n<b>\n<c>\n");
  CHECK_THAT(ran.err, Catch::Contains("error: line 2: too long\n") &&
                          Catch::Contains("error: line 4: the prompt is not valid UTF-8"));
  CHECK(ran.exit_status == 6);  // of the first
}

TEST_CASE("with json a line that fails has its object too, in its place") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            if (prompt_of(session) == "bad") {
                              session.send_error(Code::kOutOfMemory, "too long");
                            } else if (prompt_of(session) == "end") {
                              session.close();
                            } else {
                              echo(session);
                            }
                          }));
  const Ran ran =
      home.run({"generate", "--lines", "--json", "--parallel", "1"}, "a\nbad\nb\n\xFF\nend\nc\n");
  CHECK(ran.exit_status == 6);
  std::vector<ipc::OrderedJson> objects;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    objects.push_back(ipc::OrderedJson::parse(line));
  }
  REQUIRE(objects.size() == 6);
  for (size_t i = 0; i < objects.size(); ++i) CHECK(objects[i]["index"] == i);
  CHECK(objects[0]["text"] == "<a>");
  CHECK(objects[1].dump() ==
        R"({"index":1,"error":{"code":"out_of_memory","message":"too long"}})");
  CHECK(objects[2]["text"] == "<b>");
  CHECK(objects[3]["error"]["code"] == "invalid_argument");
  CHECK(objects[4]["error"]["code"] == "unavailable");
  CHECK(objects[5]["error"]["code"] == "unavailable");  // given up: never asked
}

TEST_CASE("a full queue in the daemon makes lines wait instead of fail") {
  const Home home;
  std::atomic<int> num_refused = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            if (num_refused < 20) {
                              ++num_refused;
                              session.send_error(Code::kOverloaded, "queue full");
                            } else {
                              echo(session);
                            }
                          }));
  const Ran ran = home.run({"generate", "--lines"}, numbered(10));
  CHECK(ran.exit_status == 0);
  CHECK(ran.err.empty());
  CHECK(num_refused == 20);
}

TEST_CASE("a daemon that goes away ends all lines with one report") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            if (prompt_of(session) == "0") {
                              echo(session);
                            } else {
                              session.close();
                            }
                          }));
  const Ran ran = home.run({"generate", "--lines", "--parallel", "1"}, numbered(50));
  CHECK(ran.exit_status == 8);
  CHECK(ran.out == "<0>\n");
  CHECK_THAT(ran.err, Catch::Contains("error: line 2: ") &&
                          Catch::EndsWith("48 lines after it are given up\n"));
}

TEST_CASE("Ctrl-C stops all lines") {
  const Home home;
  std::atomic<int> num_left = 0;
  std::atomic<int> num_waiting = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            if (prompt_of(session) == "0") {
                              echo(session);
                              return;
                            }
                            ++num_waiting;
                            if (session.client_leaves_within(5000)) ++num_left;
                          }));
  Process process(home,
                  {.arguments = {"generate", "--lines", "--parallel", "4"},
                   .input = {},
                   .environment = {},
                   .output_file = {}},
                  Process::Kind::kPipes);
  process.write(numbered(20));
  process.close_input();
  REQUIRE(process.wait_for_output("<0>\n"));
  for (int i = 0; i < 500 && num_waiting < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  process.interrupt();
  CHECK(process.read_to_end() == "<0>\n");
  CHECK(process.wait() == 130);
  for (int i = 0; i < 500 && num_left < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(num_left == 4);
}

TEST_CASE("no lines are no answers") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo));
  const Ran ran = home.run({"generate", "--lines"}, "");
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.empty());
}

TEST_CASE("a line is answered when it is there, not when the input ends") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model(echo));
  Process process(
      home,
      {.arguments = {"generate", "--lines"}, .input = {}, .environment = {}, .output_file = {}},
      Process::Kind::kPipes);
  for (const char* line : {"a", "b", "c"}) {
    process.write(std::string(line) + "\n");
    REQUIRE(process.wait_for_output("<" + std::string(line) + ">\n"));
  }
  SECTION("and the end of the input is the end") {
    process.close_input();
    CHECK(process.wait() == 0);
  }
  SECTION("a reader who goes away ends it while it waits for a line") {
    process.close_output();
    CHECK(process.wait() == 0);
  }
  SECTION("so does Ctrl-C") {
    process.interrupt();
    CHECK(process.wait() == 130);
  }
}

TEST_CASE("of lines without end only so many are taken as are answered") {
  const Home home;
  std::atomic<bool> let_go = false;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&](FakeSession& session) {
                            ++num_asked;
                            while (prompt_of(session) == "0" && !let_go) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(5));
                            }
                            echo(session);
                          }));
  Process process(home,
                  {.arguments = {"generate", "--lines", "--parallel", "4"},
                   .input = {},
                   .environment = {},
                   .output_file = {}},
                  Process::Kind::kPipes);
  process.write(numbered(500));
  int before = -1;
  while (before != num_asked) {
    before = num_asked;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  CHECK(num_asked < 100);
  let_go = true;
  process.close_input();
  REQUIRE(process.wait_for_output("<499>\n"));
  CHECK(process.wait() == 0);
  CHECK(num_asked == 500);
}

TEST_CASE("vectors come as their texts do, and an array holds all of them") {
  const Home home;
  const FakeDaemon daemon(home.socket(), [](FakeSession& session) {
    if (session.request().method != ipc::kEmbed) return ready_model({})(session);
    ipc::EmbedResult result;
    result.dimensions = 1;
    for (const ipc::TextInput& each :
         ipc::vector_params_from_json(session.request().params).inputs) {
      result.vectors.push_back(ipc::base64_of({static_cast<float>(each.text->size())}));
      result.num_tokens.push_back(1);
    }
    session.send(ipc::encode_result(ipc::to_json(result)));
  });
  Process process(home, {.arguments = {"embed"}, .input = {}, .environment = {}, .output_file = {}},
                  Process::Kind::kPipes);
  process.write("a\n");
  REQUIRE(process.wait_for_output("{\"index\":0,\"embedding\":[1]}\n"));
  process.write("bcd\n\xFF\n");
  REQUIRE(process.wait_for_output("{\"index\":1,\"embedding\":[3]}\n"));
  CHECK(process.wait() == 3);  // the line that is no text
  const Ran array = home.run({"embed", "--format", "npy"}, numbered(600));
  CHECK(array.exit_status == 0);
  CHECK_THAT(array.out, Catch::Contains("'shape': (600, 1)"));
  CHECK(array.out.size() % 64 == 600 * sizeof(float) % 64);
  CHECK(home.run({"embed", "two\nlines"}).out == "{\"index\":0,\"embedding\":[9]}\n");
  CHECK(home.run({"embed", ""}).out == "{\"index\":0,\"embedding\":[0]}\n");
  CHECK_THAT(home.run({"embed"}, "").err, Catch::Contains("there are no texts"));
}

}  // namespace tgi
