// What a user sees of generate and chat, with the real daemon and the demo model.
#include <signal.h>

#include <sstream>
#include <thread>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

RunSetup with_daemon(std::vector<std::string> arguments, std::string input = "") {
  return {std::move(arguments), std::move(input), {{"TGI_DAEMON", tgid_binary()}}, std::nullopt};
}

}  // namespace

TEST_CASE("generate starts a daemon by itself, and stop ends it") {
  const Home home;
  const Ran first =
      home.run(with_daemon({"generate", "Once upon a time", "--max-new-tokens", "20"}));
  INFO(first.err);
  CHECK(first.exit_status == 0);
  CHECK(first.out.size() > 20);
  CHECK(home.run({"generate", "Once upon a time", "--max-new-tokens", "20"}).out == first.out);
  CHECK(home.run({"stop"}).exit_status == 0);
  CHECK(home.run({"ps"}).exit_status == 8);
}

TEST_CASE("a stream put together is the answer, and stdout holds nothing else") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::vector<std::string> common = {"generate", "Once upon a time", "--max-new-tokens",
                                           "60"};
  auto streamed = common;
  streamed.push_back("--stream");
  const Ran whole = home.run(common);
  const Ran parts = home.run(streamed);
  CHECK(whole.exit_status == 0);
  CHECK(parts.out == whole.out);
  CHECK(parts.err.empty());
  const Json json = Json::parse(
      home.run({"generate", "Once upon a time", "--max-new-tokens", "60", "--json"}).out);
  CHECK(json.at("text").get<std::string>() + "\n" == whole.out);
  CHECK(json.at("num_generated_tokens") == 60);
  CHECK(json.at("num_cached_tokens") == 0);  // five tokens are less than a block
}

TEST_CASE("with --speculate answers are what they are without, and ps tells what was drafted") {
  const Home home;
  const DaemonProcess daemon(home, {"--speculate", "6"});
  CHECK(home.run({"ps"}).out.find("up to 6 tokens are drafted") != std::string::npos);
  const auto answer = [&](const char* most) {
    const Ran ran = home.run({"generate", "tgi is tgi is tgi is tgi is tgi is", "--max-new-tokens",
                              "200", "--ignore-eos", "--json", "--speculate", most});
    INFO(ran.err);
    REQUIRE(ran.exit_status == 0);
    return Json::parse(ran.out);
  };
  const Json without = answer("0");
  const Json with = answer("6");
  CHECK(with.at("text") == without.at("text"));
  CHECK(without.at("num_skipped_tokens") == 0);
  const ipc::Counters counters = daemon.status().counters;
  CHECK(counters.num_drafted_tokens > 0);
  CHECK(counters.num_skipped_tokens == with.at("num_skipped_tokens"));
  const Ran refused = home.run({"generate", "a", "--speculate", "7"});
  CHECK(refused.exit_status != 0);
  CHECK(refused.err.find("`speculate` must be >= 0 and <= 6") != std::string::npos);
}

// Under TSan these are the kernels that it watches (engine/cpu/CMakeLists.txt).
TEST_CASE("the plainest kernels on two threads answer as the best ones do") {
  std::vector<std::string> answers;
  for (const char* const isa : {"generic", "auto"}) {
    const Home home;
    const DaemonProcess daemon(home, {"--cpu-isa", isa, "--threads", "2"});
    const Ran ran = home.run({"generate", "--lines", "--max-new-tokens", "8"},
                             "Once upon a time\nOne day, a fox\nHello\n");
    INFO(ran.err);
    REQUIRE(ran.exit_status == 0);
    answers.push_back(ran.out);
  }
  CHECK(answers[0] == answers[1]);
}

TEST_CASE("prompts come from arguments, pipes and files, and lines run as one batch in order") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::vector<std::string> length = {"--max-new-tokens", "12"};
  const auto generate = [&](std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), "generate");
    arguments.insert(arguments.end(), length.begin(), length.end());
    return home.run(arguments, input);
  };
  const std::string expected = generate({"One day, a fox"}).out;
  CHECK(generate({"-"}, "One day, a fox\n").out == expected);
  CHECK(generate({"-f", home.write("prompt.txt", "One day, a fox\n")}).out == expected);

  std::string lines;
  std::vector<std::string> alone;
  for (int i = 0; i < 40; ++i) {
    const std::string prompt =
        "There was a " + std::string(i % 2 == 0 ? "fox" : "cat") + " number " + std::to_string(i);
    lines += prompt + "\n";
    if (i % 8 == 0) alone.push_back(Json::parse(generate({prompt, "--json"}).out).at("text"));
  }
  const Ran ran = generate({"--lines", "--json"}, lines);
  CHECK(ran.exit_status == 0);
  std::istringstream results(ran.out);
  std::string result;
  int count = 0;
  while (std::getline(results, result)) {
    const Json json = Json::parse(result);
    CHECK(json.at("index") == count);
    if (count % 8 == 0) CHECK(json.at("text") == alone[static_cast<size_t>(count / 8)]);
    ++count;
  }
  CHECK(count == 40);
}

TEST_CASE("seeds, stop strings, best_of, logprobs and full text work from the command line") {
  const Home home;
  const DaemonProcess daemon(home);
  const auto json = [&](std::vector<std::string> flags) {
    std::vector<std::string> arguments = {"generate", "Once upon a time", "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = home.run(arguments);
    INFO(ran.err);
    REQUIRE(ran.exit_status == 0);
    return Json::parse(ran.out);
  };
  const std::vector<std::string> seeded = {"--seed",           "7", "--temperature", "1.1",
                                           "--max-new-tokens", "40"};
  const Json sample = json(seeded);
  CHECK(sample.at("seed") == 7);
  CHECK(json(seeded).at("text") == sample.at("text"));
  CHECK(json({"--seed", "8", "--temperature", "1.1", "--max-new-tokens", "40"}).at("text") !=
        sample.at("text"));

  const Json stopped = json({"--stop", "there was", "--max-new-tokens", "100"});
  CHECK(stopped.at("finish_reason") == "stop_sequence");
  const auto text = stopped.at("text").get<std::string>();
  CHECK(text.substr(text.size() - 9) == "there was");

  const Json best = json({"--best-of", "3", "--temperature", "1", "--max-new-tokens", "10"});
  CHECK(best.at("others").size() == 2);
  for (const Json& other : best.at("others"))
    CHECK(other.at("mean_logprob") <= best.at("mean_logprob"));

  const Json details =
      json({"--details", "--top-n-tokens", "3", "--prompt-logprobs", "--max-new-tokens", "5"});
  CHECK(details.at("tokens").size() == 5);
  CHECK(details.at("top_tokens").size() == 5);
  CHECK(details.at("top_tokens")[0].size() == 3);
  CHECK(details.at("top_tokens")[0][0].at("id") == details.at("tokens")[0].at("id"));
  CHECK(details.at("prompt_tokens").size() == details.at("num_prompt_tokens").get<size_t>());
  const auto full =
      json({"--return-full-text", "--max-new-tokens", "5"}).at("text").get<std::string>();
  CHECK(full.substr(0, 16) == "Once upon a time");
}

TEST_CASE("Ctrl-C cancels on the server within a moment and exits 130") {
  const Home home;
  const DaemonProcess daemon(home);
  Process process(home, {{"generate", "Once", "--stream", "--ignore-eos"}, "", {}, std::nullopt},
                  Process::Kind::kPipes);
  REQUIRE(process.wait_for_output(" "));
  process.interrupt();
  CHECK(process.wait() == 130);
  CHECK(daemon.becomes_idle(2000));
}

TEST_CASE("a closed pipe ends generate quietly and cancels on the server") {
  const Home home;
  const DaemonProcess daemon(home);
  Process process(home, {{"generate", "Once", "--stream", "--ignore-eos"}, "", {}, std::nullopt},
                  Process::Kind::kPipes);
  REQUIRE(process.wait_for_output(" "));
  process.close_output();
  const int status = process.wait();
  CHECK((status == 0 || status == 141));
  CHECK(daemon.becomes_idle(2000));
}

TEST_CASE("each turn of a chat costs only its new tokens") {
  const Home home;
  const DaemonProcess daemon(home);
  ipc::GenerateRequest request;
  request.params.max_new_tokens = 60;
  ipc::OrderedJson messages = ipc::OrderedJson::array();
  int64_t previous_total = 0;
  for (const char* question : {"Hello!", "What is tgi?", "How do I stream?", "Thank you"}) {
    messages.push_back({{"role", "user"}, {"content", question}});
    request.messages = messages;
    const ipc::DoneEvent done = daemon.client().generate(request, {});
    // All whole blocks of the turn before, its answer included.
    CHECK(done.num_cached_tokens >= previous_total / 16 * 16 - 16);
    CHECK(done.num_cached_tokens < done.num_prompt_tokens);
    if (done.best.finish_reason != ipc::FinishReason::kEosToken) break;
    previous_total = done.num_prompt_tokens + done.best.num_generated_tokens;
    messages.push_back({{"role", "assistant"}, {"content", done.best.text}});
  }
  CHECK(messages.size() >= 5);
  const Ran piped = home.run({"chat"}, "Hello!\nWhat is tgi?\n");
  INFO(piped.err);
  CHECK(piped.exit_status == 0);
  CHECK(piped.out.size() > 10);
}

}  // namespace tgi
