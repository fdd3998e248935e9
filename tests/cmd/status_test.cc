#include <atomic>
#include <filesystem>
#include <string>

#include "cmd/ps.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {

using ipc::OrderedJson;

TEST_CASE("bytes are shown in the unit that fits") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1.0 KiB");
  CHECK(format_bytes(3 << 20) == "3.0 MiB");
  CHECK(format_bytes((int64_t{5} << 30) + (int64_t{1} << 29)) == "5.50 GiB");
}

TEST_CASE("ps shows what the daemon says") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession&) {}));
  const Ran ran = home.run({"ps"});
  CHECK(ran.exit_status == 0);
  for (const char* part :
       {"model            demo\n", "LlamaForCausalLM, 1.00 million parameters",
        "cpu avx512, 2 threads",
        "weights 1.9 MiB, KV cache 3.0 MiB, workspace 1.0 MiB, of 8.00 GiB",
        "10 used, 20 cached, 70 free, of 100 with 16 tokens each", "0 running, 0 waiting",
        "uptime           1 h 2 min\n", "phase            ready\n"}) {
    CHECK_THAT(ran.out, Catch::Contains(part));
  }
}

TEST_CASE("the uptime is said in words") {
  struct Row {
    double seconds;
    std::string text;
  };
  for (const Row& row :
       {Row{12.34, "12.3 s"}, Row{60, "1 min 0 s"}, Row{792.9, "13 min 12 s"},
        Row{3599, "59 min 59 s"}, Row{7500, "2 h 5 min"}, Row{86'399, "23 h 59 min"},
        Row{3 * 86'400 + 4 * 3600 + 3599, "3 d 4 h"}}) {
    ipc::Status status;
    status.uptime_seconds = row.seconds;
    CHECK_THAT(format_status(status), Catch::Contains("uptime           " + row.text + "\n"));
  }
}

TEST_CASE("ps says which instruction sets failed their trial, and how") {
  const Home home;
  ipc::Status status = ready_status();
  CHECK_THAT(format_status(status), !Catch::Contains("left out"));
  status.model->left_out = {
      {"amx", "matmul_many of bf16, 33 rows", "illegal instruction (SIGILL)"}};
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) {
    session.send(ipc::encode_result(ipc::to_json(status)));
  });
  CHECK_THAT(
      home.run({"ps"}).out,
      Catch::Contains("left out         amx, it does not work on this machine: matmul_many of "
                      "bf16, 33 rows: illegal instruction (SIGILL)\n"));
  const OrderedJson json = OrderedJson::parse(home.run({"ps", "--json"}).out);
  CHECK(json["model"]["left_out"][0]["isa"] == "amx");
}

TEST_CASE("ps says how many adapters there are, and what they take") {
  ipc::Status status = ready_status();
  CHECK_THAT(format_status(status), !Catch::Contains("adapters"));
  status.model->num_adapters = 12;
  status.model->num_active_adapters = 3;
  status.model->adapter_bytes_used = 40 << 20;
  status.model->num_shard = 2;
  status.model->memory.adapters = int64_t{1} << 30;
  CHECK_THAT(format_status(status),
             Catch::Contains("adapters         12 loaded; 3 on the device, which take 40.0 MiB of "
                             "512.0 MiB\n"));
}

TEST_CASE("ps of a daemon without a model has no model lines") {
  const Home home;
  const FakeDaemon daemon(home.socket(), [](FakeSession& session) {
    ipc::Status status;
    status.phase = "failed";
    status.phase_detail = "because";
    session.send(ipc::encode_result(ipc::to_json(status)));
  });
  const Ran ran = home.run({"ps"});
  CHECK_THAT(ran.out, Catch::Contains("phase            failed: because\n"));
  CHECK_THAT(ran.out, !Catch::Contains("architecture"));
}

TEST_CASE("ps --json is the status") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession&) {}));
  const Ran ran = home.run({"ps", "--json"});
  CHECK(OrderedJson::parse(ran.out) == ipc::to_json(ready_status()));
}

namespace {

// Ready, with a step of decoding for each time that it is asked.
FakeDaemon::Script watched(std::atomic<int>& num_asked) {
  return [&num_asked](FakeSession& session) {
    if (session.request().method == ipc::kStatus) {
      ipc::Status status = ready_status();
      status.counters.num_generated_tokens = 1000 * num_asked;
      return session.send(ipc::encode_result(ipc::to_json(status)));
    }
    const int num = ++num_asked;
    ipc::MetricFamily steps{.name = "tgi_batch_inference_duration",
                            .type = "histogram",
                            .help = "",
                            .samples = {{.labels = {{"method", "decode"}},
                                         .bounds = {1.0},
                                         .counts = {num, 0},
                                         .sum = 0.25 * num}}};
    session.send(ipc::encode_result(ipc::to_json(std::vector{steps})));
  };
}

}  // namespace

TEST_CASE("ps --ready tells by its exit status whether requests are answered") {
  const Home home;
  CHECK(home.run({"ps", "--ready"}).exit_status == 8);
  std::string phase = "loading";
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) {
    ipc::Status status = ready_status();
    status.phase = phase;
    session.send(ipc::encode_result(ipc::to_json(status)));
  });
  const Ran loading = home.run({"ps", "--ready"});
  CHECK(loading.exit_status == 8);
  CHECK_THAT(loading.err, Catch::Contains("not ready: loading"));
  phase = "ready";
  const Ran ready = home.run({"ps", "--ready"});
  CHECK(ready.exit_status == 0);
  CHECK(ready.out + ready.err == "");
  CHECK(home.run({"ps", "--ready", "--json"}).exit_status == 2);
  CHECK(home.run({"ps", "--ready", "-w"}).exit_status == 2);
}

TEST_CASE("ps -w writes lines into a pipe until Ctrl-C, with rates from the second on") {
  const Home home;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(home.socket(), watched(num_asked));
  Process ps(home, {{"ps", "-w", "--interval", "0.1"}, "", {}, std::nullopt},
             Process::Kind::kPipes);
  CHECK(ps.wait_for_output("TOKENS/S"));
  CHECK(ps.wait_for_output("       -        -  10 %   20 %       -       -\n"));
  CHECK(ps.wait_for_output("   250.0       -\n"));
  ps.interrupt();
  CHECK(ps.wait() == 0);
  CHECK(ps.read_to_end().find('\x1b') == std::string::npos);
}

TEST_CASE("ps -w draws over its table on a terminal and leaves the last one") {
  const Home home;
  std::atomic<int> num_asked = 0;
  const FakeDaemon daemon(home.socket(), watched(num_asked));
  Process ps(home, {{"ps", "-w", "--interval", "0.1"}, "", {}, std::nullopt},
             Process::Kind::kTerminal);
  CHECK(ps.wait_for_output("Ctrl-C ends"));
  CHECK(ps.wait_for_output("\x1b[4A\r"));
  ps.interrupt();
  CHECK(ps.wait_for_output("\x1b[4A\r\x1b[J"));
  CHECK(ps.wait_for_output("250.0"));
  CHECK(ps.wait() == 0);
}

TEST_CASE("ps -w ends when the daemon goes, and asks none to start") {
  const Home home;
  const Ran ran = home.run({"ps", "-w"});
  CHECK(ran.exit_status == 8);
  CHECK(home.run({"ps", "--interval", "2"}).exit_status == 2);
  CHECK(home.run({"ps", "-w", "--interval", "0"}).exit_status == 2);
}

TEST_CASE("load sends an absolute path and waits for the model") {
  const Home home;
  const FakeDaemon daemon(
      home.socket(), ready_model([](FakeSession& session) { session.send(R"({"result":{}})"); }));
  const Ran ran = home.run({"load", "./x/../m/", "--dtype", "bf16", "--load-format", "dummy"});
  CHECK(ran.err == "");
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::StartsWith("loaded demo (LlamaForCausalLM, 1.9 MiB) in "));
  const std::string expected = OrderedJson{
      {"model", std::filesystem::current_path().string() + "/m"},
      {"load_format", "dummy"},
      {"dtype", "bf16"}}.dump();
  CHECK(daemon.requests().at(1) == "load " + expected);
  CHECK(home.run({"load", "demo"}).exit_status == 0);
  CHECK(daemon.requests().at(4) == R"(load {"model":"demo"})");
  CHECK(home.run({"load", "demo", "--backend", "cpu", "--num-shard", "2", "--deterministic",
                  "--cuda-memory-fraction", "0.5"})
            .exit_status == 0);
  CHECK(daemon.requests().at(7) ==
        R"(load {"model":"demo","backend":"cpu","num_shard":2,"deterministic":true,)"
        R"("cuda_memory_fraction":0.5})");
}

TEST_CASE("load passes on why a model can't be loaded") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_error(Code::kNotFound, "model /m: no such folder");
                          }));
  const Ran ran = home.run({"load", "/m"});
  CHECK(ran.exit_status == 4);
  CHECK(ran.err == "error: model /m: no such folder\n");
}

TEST_CASE("unload asks for it") {
  const Home home;
  const FakeDaemon daemon(
      home.socket(), ready_model([](FakeSession& session) { session.send(R"({"result":{}})"); }));
  CHECK(home.run({"unload"}).out == "unloaded\n");
  CHECK(daemon.requests() == std::vector<std::string>{"unload {}"});
}

}  // namespace tgi
