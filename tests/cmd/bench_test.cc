#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "cmd/bench/engine_run.h"
#include "cmd/bench/stats.h"
#include "cmd/read_bandwidth.h"
#include "ipc/protocol.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi::bench {

using ipc::OrderedJson;

TEST_CASE("a percentile is the nearest rank") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  CHECK(percentile(values, 0.5) == 3);
  CHECK(percentile(values, 0.9) == 5);
  CHECK(percentile(values, 0.2) == 1);
  CHECK(percentile(values, 0.21) == 2);
  CHECK(percentile({7}, 0.99) == 7);
  CHECK(median({1, 2}) == 1);
}

TEST_CASE("rates come from the times when the whole batch prefills and decodes") {
  // The first has its first token at 1 s, the second at 2 s; the first ends at 5 s.
  const RunTimes times = {{1, 2, 3, 4, 5}, {2, 3, 4, 5, 6}};
  CHECK(prefill_tokens_per_s(times, 100) == Approx(100));  // 200 tokens in 2 s
  REQUIRE(decode_tokens_per_s(times));
  CHECK(*decode_tokens_per_s(times) == Approx(2));  // 6 tokens in (2 s, 5 s]
  CHECK(times_to_first_token(times) == std::vector<double>{1, 2});
  CHECK(inter_token_times(times) == std::vector<double>(8, 1.0));
}

TEST_CASE("no decode rate is given when the batch never decodes as a whole") {
  CHECK_FALSE(decode_tokens_per_s({{1, 1.1, 1.2}, {2, 2.1, 2.2}}));
  CHECK_FALSE(decode_tokens_per_s({{1, 1.1, 2.05}, {2, 2.1, 2.2}}));  // one token in the window
}

TEST_CASE("reading memory is measured with any number of threads and any size") {
  for (const int num_threads : {1, 3}) {
    const ReadBandwidth small = measure_read_bandwidth(1, num_threads);
    CHECK(small.buffer_bytes == 4096 * num_threads);
    const ReadBandwidth large = measure_read_bandwidth(64 << 20, num_threads);
    CHECK(large.buffer_bytes <= 64 << 20);
    CHECK(large.buffer_bytes > 60 << 20);
    // No machine reads slower than 100 MB/s or faster than 100 TB/s.
    CHECK(large.bytes_per_s > 1e8);
    CHECK(large.bytes_per_s < 1e14);
  }
}

TEST_CASE("bench asks for fresh prompts of the asked length and reports what it measured") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            const OrderedJson& params = session.request().params;
                            std::this_thread::sleep_for(std::chrono::milliseconds(20));
                            for (int i = 0; i < params["max_new_tokens"]; ++i) {
                              session.send_text("x");
                              std::this_thread::sleep_for(std::chrono::milliseconds(5));
                            }
                            session.send_done({});
                          }));
  const Ran ran = home.run({"bench", "--prompt-length", "50", "--decode-length", "10",
                            "--batch-sizes", "1,3", "--runs", "2", "--json"});
  CHECK(ran.err == "");
  REQUIRE(ran.exit_status == 0);

  std::set<std::string> prompts;
  int num_asked = 0;
  for (const std::string& line : daemon.requests()) {
    if (!line.starts_with("generate ")) continue;
    ++num_asked;
    const OrderedJson request = OrderedJson::parse(line.substr(9));
    CHECK(request["prompt_ids"].size() == 50);
    for (const auto& id : request["prompt_ids"]) CHECK(id < 1000);
    CHECK(request["max_new_tokens"] == 10);
    CHECK(request["ignore_eos"] == true);
    CHECK(request["use_prefix_cache"] == false);
    prompts.insert(request["prompt_ids"].dump());
  }
  CHECK(num_asked == 3 * (1 + 3));  // a warm-up and two runs
  CHECK(prompts.size() == 3 * 3);   // seed and place in the batch make the prompt

  const OrderedJson json = OrderedJson::parse(ran.out);
  CHECK(json["model"] == "demo");
  CHECK(json["plain_read_bytes_per_s"] > 1e8);
  REQUIRE(json["batches"].size() == 2);
  for (const OrderedJson& batch : json["batches"]) {
    const double size = batch["batch_size"];
    const double decode = batch["decode_tokens_per_s"];
    CHECK(batch["prefill_tokens_per_s"] > 50 * size / 0.5);
    CHECK(batch["prefill_tokens_per_s"] <= 50 * size / 0.02);
    CHECK(decode > 20 * size);
    CHECK(decode <= 201 * size);
    CHECK(batch["inter_token_ms"]["p50"] > 4.9);
    CHECK(batch["time_to_first_token_ms"]["p50"] > 20);
    // 2 MB of weights and 1 KiB of KV for each token of 50 + 10 / 2.
    CHECK(batch["decode_bytes_per_s"].get<double>() ==
          Approx(decode / size * (2e6 + 55 * 1024 * size)));
    CHECK(batch["share_of_plain_read"].get<double>() ==
          Approx(batch["decode_bytes_per_s"].get<double>() /
                 json["plain_read_bytes_per_s"].get<double>()));
  }
  const Ran table = home.run({"bench", "--prompt-length", "5", "--decode-length", "10",
                              "--batch-sizes", "2", "--runs", "1"});
  CHECK_THAT(table.out, Catch::Contains("demo (LlamaForCausalLM, bf16), cpu avx512, 2 threads") &&
                            Catch::Contains("plain reading: "));
}

TEST_CASE("bench refuses what does not fit the model and passes errors on") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_error(Code::kOutOfMemory, "no blocks");
                          }));
  const Ran too_long = home.run({"bench", "--prompt-length", "4000"});
  CHECK(too_long.exit_status == 3);
  CHECK_THAT(too_long.err, Catch::Contains("make 4128 tokens, the model demo has room for 4096"));
  const Ran failed = home.run({"bench"});
  CHECK(failed.exit_status == 6);
  CHECK(failed.err == "error: no blocks\n");
}

TEST_CASE("TGI's names of bench's flags work, and its tables come out") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            const OrderedJson& params = session.request().params;
                            for (int i = 0; i < params["max_new_tokens"]; ++i) {
                              session.send_text("x");
                              std::this_thread::sleep_for(std::chrono::milliseconds(2));
                            }
                            session.send_done({});
                          }));
  const Ran ran = home.run({"bench", "-b", "1", "-b", "2,3", "-s", "5", "-d", "6", "-r", "1", "-w",
                            "0", "--temperature", "0.5"});
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::Contains("| Sequence Length | 5     |") &&
                          Catch::Contains("| temperature     | 0.5   |"));
  for (const std::string row :
       {"| Prefill        |          1 |", "| Decode (token) |          2 |",
        "| Decode (total) |          3 |", "| Decode  |          3 |"}) {
    CHECK_THAT(ran.out, Catch::Contains(row));
  }
  for (const std::string& line : daemon.requests()) {
    if (line.starts_with("generate ")) CHECK_THAT(line, Catch::Contains("\"temperature\":0.5"));
  }
}

TEST_CASE("Ctrl-C in the middle gives the batch sizes and runs that are done") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            for (int i = 0; i < 10; ++i) {
                              session.send_text("x");
                              std::this_thread::sleep_for(std::chrono::milliseconds(10));
                            }
                            session.send_done({});
                          }));
  Process process(home,
                  {{"bench", "-b", "1,2", "-s", "5", "-d", "10", "-r", "1000", "-w", "0"},
                   "",
                   {},
                   std::nullopt},
                  Process::Kind::kTerminal);
  for (int i = 0; i < 4; ++i) REQUIRE(process.wait_for_output("batch sizes ["));  // the view
  process.interrupt();
  REQUIRE(process.wait_for_output("broken off by Ctrl-C"));
  const std::string out = process.read_to_end();
  CHECK_THAT(out, Catch::Contains("| Prefill        |          1 |"));
  CHECK(out.find("plain reading:") == std::string::npos);
  CHECK(out.substr(out.find("| Parameter")).find('\x1b') == std::string::npos);
  CHECK(process.wait() == 130);
}

TEST_CASE("the daemon is loaded over its socket") {
  const Home home;
  std::atomic<int> number = 0;
  const FakeDaemon daemon(home.socket(), ready_model([&number](FakeSession& session) {
                            if (++number % 5 == 0) {
                              session.send_error(Code::kOverloaded, "the queue is full");
                              return;
                            }
                            ipc::DoneEvent done;
                            for (int i = 0; i < session.request().params["max_new_tokens"]; ++i) {
                              session.send_text("x");
                            }
                            done.num_prompt_tokens = 20;
                            done.num_cached_tokens = 8;
                            done.best.num_generated_tokens = 4;
                            session.send_done(done);
                          }));
  const Ran ran = home.run({"bench", "--serving", "--requests", "20", "--concurrency", "6", "-s",
                            "20", "-d", "4", "-w", "0", "--shared-prefix", "8", "--json"});
  CHECK(ran.err == "");
  REQUIRE(ran.exit_status == 0);
  const OrderedJson json = OrderedJson::parse(ran.out);
  CHECK(json["num_ok"] == 16);
  CHECK(json["errors"]["overloaded"]["count"] == 4);
  CHECK(json["errors"]["overloaded"]["example"] == "the queue is full");
  CHECK(json["num_output_tokens"] == 64);
  CHECK(json["num_cached_tokens"] == 128);
  std::set<std::string> fronts;
  std::set<std::string> prompts;
  for (const std::string& line : daemon.requests()) {
    if (!line.starts_with("generate ")) continue;
    const OrderedJson request = OrderedJson::parse(line.substr(9));
    CHECK(request.value("use_prefix_cache", true));
    const std::vector<int> ids = request["prompt_ids"];
    REQUIRE(ids.size() == 20);
    fronts.insert(OrderedJson(std::vector<int>(ids.begin(), ids.begin() + 8)).dump());
    prompts.insert(request["prompt_ids"].dump());
  }
  CHECK(fronts.size() == 1);
  CHECK(prompts.size() == 20);
}

}  // namespace tgi::bench
