// `tgi quantize` with the real daemon: what it writes can be loaded, and whatever ends it early
// leaves nothing.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "ipc/quantize_job.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

const std::string kStories = std::string(TGI_SOURCE_DIR) + "/tests/quantize/stories.jsonl";

// The job has the lowest priority: on a busy machine it waits for everything else.
constexpr int kPatienceMs = 300000;
// Beside other tests a second thread of the job would get next to no time, and the first wait for
// it.
const std::vector<std::string> kOneThread = {"--threads", "1"};

// AWQ takes a while, int8 does not.
ipc::OrderedJson request(const std::string& output, const std::string& format = "awq") {
  ipc::QuantizeParams params;
  params.model = "demo";
  params.output = output;
  params.format = format;
  params.calibration = kStories;
  params.sequence_length = 64;
  params.force = true;
  return ipc::to_json(params);
}

// Until its first layer is done.
void wait_for_layer(RawConnection& connection) {
  for (;;) {
    const ipc::Reply reply = ipc::decode_reply(connection.read_line(kPatienceMs));
    REQUIRE(reply.progress);
    if (reply.progress->done == 1) return;
  }
}

ipc::Reply last_reply(RawConnection& connection) {
  for (;;) {
    ipc::Reply reply = ipc::decode_reply(connection.read_line(kPatienceMs));
    if (!reply.progress) return reply;
  }
}

bool becomes_empty(const std::string& folder) {
  for (int waited_ms = 0; waited_ms < kPatienceMs && !names_in(folder).empty(); waited_ms += 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return names_in(folder).empty();
}

}  // namespace

TEST_CASE("a model is quantized, loaded and answers", TGI_NOT_UNDER_TSAN) {
  const Home home;
  const DaemonProcess daemon(home, kOneThread);
  const std::string output = home.file("quantized");
  const Ran ran = home.run({"quantize", "demo", output, "--format", "gptq", "--calibration",
                            kStories, "--calibration-length", "128"});
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::Contains(output) && Catch::Contains("perplexity") &&
                          Catch::Contains("mean KL") && Catch::Contains("groups of 128"));
  CHECK_THAT(ran.err, Catch::Contains("layer 5 of 5"));
  const Ran loaded = home.run({"load", output});
  INFO(loaded.err);
  REQUIRE(loaded.exit_status == 0);
  const Ran answer = home.run({"generate", "Once upon a time", "--max-new-tokens", "12"});
  CHECK(answer.exit_status == 0);
  CHECK(answer.out.size() > 20);
}

TEST_CASE("a model becomes a GGUF file, which is loaded and answers", TGI_NOT_UNDER_TSAN) {
  const Home home;
  const DaemonProcess daemon(home, kOneThread);
  const std::string output = home.file("demo.gguf");
  const Ran wrong = home.run({"quantize", "demo", home.file("demo"), "--format", "q4_k_m"});
  CHECK(wrong.exit_status == 3);
  CHECK_THAT(wrong.err, Catch::Contains("ends in .gguf"));
  const Ran other = home.run({"quantize", "demo", output, "--format", "gptq"});
  CHECK(other.exit_status == 3);
  CHECK_THAT(other.err, Catch::Contains("q4_k_m"));
  const Ran ran =
      home.run({"quantize", "demo", output, "--format", "q4_k_m", "--calibration", kStories});
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::Contains(output) && Catch::Contains("Q4_K") &&
                          Catch::Contains("mean KL") && Catch::Contains("groups of 32"));
  CHECK(home.run({"load", output}).exit_status == 0);
  const Ran answer = home.run({"generate", "Once upon a time", "--max-new-tokens", "12"});
  CHECK(answer.exit_status == 0);
  CHECK(answer.out.size() > 20);
}

TEST_CASE("the result as JSON; a folder that is there is refused", TGI_NOT_UNDER_TSAN) {
  const Home home;
  const DaemonProcess daemon(home, kOneThread);
  const std::string output = home.file("quantized");
  const std::vector<std::string> command = {"quantize", "demo",          output,
                                            "--format", "int8",          "--json",
                                            "--quiet",  "--calibration", kStories};
  const Ran ran = home.run(command);
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  CHECK(ran.err.empty());
  const auto report = ipc::quantize_report_from_json(ipc::parse_json(ran.out));
  CHECK(report.format == "int8");
  CHECK(report.mean_kl < 0.01);
  CHECK(report.bytes < report.source_bytes);
  const Ran again = home.run(command);
  CHECK(again.exit_status == 3);
  CHECK_THAT(again.err, Catch::Contains("exists already"));
}

TEST_CASE("one job at a time, beside requests; a client that leaves ends it") {
  const Home home;
  const DaemonProcess daemon(home, kOneThread);
  std::filesystem::create_directory(home.file("out"));
  auto first = std::make_unique<RawConnection>(daemon.socket());
  first->send_request(ipc::kQuantize, request(home.file("out/a")));
  wait_for_layer(*first);
  RawConnection second(daemon.socket());
  second.send_request(ipc::kQuantize, request(home.file("out/b")));
  const ipc::Reply refused = last_reply(second);
  REQUIRE(refused.error);
  CHECK(refused.error->code() == Code::kOverloaded);

  ipc::GenerateRequest asked;
  asked.prompt = "Once";
  asked.params.max_new_tokens = 4;
  CHECK(daemon.client().generate(asked, nullptr).best.num_generated_tokens == 4);

  CHECK(names_in(home.file("out")).size() == 1);
  first->close();
  CHECK(becomes_empty(home.file("out")));
  // Its place is free again, in a moment.
  bool is_taken = true;
  for (int i = 0; i < 500 && is_taken; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    RawConnection third(daemon.socket());
    third.send_request(ipc::kQuantize, request(home.file("out/c"), "int8"));
    const ipc::Reply reply = last_reply(third);
    is_taken = reply.error && reply.error->code() == Code::kOverloaded;
  }
  CHECK(!is_taken);
}

// The thread of the first job is on its way out when the second one begins.
TEST_CASE("a job right after another one keeps its place, and the daemon goes on answering") {
  const Home home;
  const DaemonProcess daemon(home, kOneThread);
  std::filesystem::create_directory(home.file("out"));
  RawConnection first(daemon.socket());
  first.send_request(ipc::kQuantize, request(home.file("out/a"), "int8"));
  REQUIRE(last_reply(first).result);
  RawConnection second(daemon.socket());
  second.send_request(ipc::kQuantize, request(home.file("out/b")));
  wait_for_layer(second);
  RawConnection third(daemon.socket());
  third.send_request(ipc::kQuantize, request(home.file("out/c")));
  const ipc::Reply refused = last_reply(third);
  REQUIRE(refused.error);
  CHECK(refused.error->code() == Code::kOverloaded);
  CHECK(daemon.status().phase == "ready");
}

TEST_CASE("a daemon that stops ends the job, and nothing is left") {
  const Home home;
  DaemonProcess daemon(home, kOneThread);
  std::filesystem::create_directory(home.file("out"));
  RawConnection connection(daemon.socket());
  connection.send_request(ipc::kQuantize, request(home.file("out/a")));
  wait_for_layer(connection);
  daemon.signal(SIGTERM);
  const ipc::Reply reply = last_reply(connection);
  REQUIRE(reply.error);
  CHECK(reply.error->code() == Code::kCancelled);
  CHECK_THAT(reply.error->what(), Catch::Contains("stopping"));
  CHECK(daemon.wait() == 0);
  CHECK(names_in(home.file("out")).empty());
}

TEST_CASE("a daemon that is killed leaves half a folder, which the next job removes",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  std::filesystem::create_directory(home.file("out"));
  const std::string output = home.file("out/a");
  {
    DaemonProcess daemon(home, kOneThread);
    RawConnection connection(daemon.socket());
    connection.send_request(ipc::kQuantize, request(output));
    wait_for_layer(connection);
    daemon.signal(SIGKILL);
    CHECK(daemon.wait() == 128 + SIGKILL);
  }
  CHECK(!std::filesystem::exists(output));
  CHECK(names_in(home.file("out")).size() == 1);
  const DaemonProcess daemon(home, kOneThread);
  RawConnection connection(daemon.socket());
  connection.send_request(ipc::kQuantize, request(output, "int8"));
  const ipc::Reply reply = last_reply(connection);
  REQUIRE(reply.result);
  CHECK(names_in(home.file("out")) == std::vector<std::string>{"a"});
}

}  // namespace tgi
