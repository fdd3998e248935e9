// What a user sees of drafters, with the real daemon and the demo model.
#include <filesystem>
#include <fstream>

#include "base/files/safetensors_writer.h"
#include "base/json.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"
#include "tests/temp_folder.h"

namespace tgi::drafters_test {
namespace {

// Medusa heads for the demo model that add nothing: they draft what was drawn last.
void write_heads(const std::string& folder, int64_t hidden_size) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json")
      << R"({"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "demo"})";
  std::vector<TensorHeader> entries;
  int64_t size = 0;
  for (const char* head : {"0", "1"}) {
    const std::string name = std::string(head) + ".0.linear.";
    entries.push_back({name + "weight", "BF16", {hidden_size, hidden_size}});
    entries.push_back({name + "bias", "BF16", {hidden_size}});
    size += entries[entries.size() - 2].bytes() + entries.back().bytes();
  }
  SafetensorsWriter writer(folder + "/medusa_lm_head.safetensors", entries);
  writer.append(std::vector<std::byte>(static_cast<size_t>(size)));
  writer.finish();
}

Json answer(const Home& home, const char* most) {
  const Ran ran = home.run({"generate", "One day, one day, one day", "--max-new-tokens", "150",
                            "--ignore-eos", "--json", "--speculate", most});
  INFO(ran.err);
  REQUIRE(ran.exit_status == 0);
  return Json::parse(ran.out);
}

}  // namespace

TEST_CASE("a draft model drafts, and answers are what they are without") {
  const Home home;
  const DaemonProcess daemon(home, {"--model", "demo", "--draft-model", "demo"});
  const std::string shown = home.run({"ps"}).out;
  CHECK(shown.find("up to 5 tokens are drafted for a step by draft-model, which takes") !=
        std::string::npos);
  const Json without = answer(home, "0");
  const Json with = answer(home, "5");
  CHECK(with.at("text") == without.at("text"));
  const ipc::Status status = daemon.status();
  REQUIRE(status.model);
  CHECK(status.model->drafter == "draft-model");
  // As large as the model, its workspace and its cache.
  CHECK(status.model->memory.drafter > status.model->memory.kv_cache);
  CHECK(status.counters.num_drafted_tokens > 0);
  CHECK(status.counters.num_skipped_tokens == status.counters.num_drafted_tokens);
}

TEST_CASE("heads stand in place of the model that they draft for, or beside it") {
  const Home home;
  const TempFolder folder;
  write_heads(folder.file("heads"), 256);
  for (const bool is_beside : {false, true}) {
    const DaemonProcess daemon(
        home, is_beside ? std::vector<std::string>{"--model", "demo", "--speculator",
                                                   folder.file("heads")}
                        : std::vector<std::string>{"--model", folder.file("heads")});
    CHECK(home.run({"ps"}).out.find("up to 2 tokens are drafted for a step by medusa") !=
          std::string::npos);
    CHECK(answer(home, "2").at("text") == answer(home, "0").at("text"));
    CHECK(daemon.status().model->name == "demo");
    CHECK(daemon.status().counters.num_drafted_tokens > 0);
  }
  const DaemonProcess daemon(home, {"--model", "demo"});
  const Ran loaded = home.run({"load", folder.file("heads")});
  INFO(loaded.err);
  CHECK(loaded.exit_status == 0);
  CHECK(daemon.status().model->drafter == "medusa");
}

TEST_CASE("heads are run beside the model that is there, under one name") {
  const Home home;
  const TempFolder folder;
  const std::string heads = folder.file("heads");
  write_heads(heads, 256);
  {
    const DaemonProcess daemon(home, {"--model", "demo"});
    for (int i = 0; i < 2; ++i) {
      const Ran ran = home.run({"run", heads, "hi"});
      INFO(ran.err);
      CHECK(ran.exit_status == 0);
      const ipc::Status status = daemon.status();
      REQUIRE(status.others.size() == 1);
      CHECK(status.others.front().path == heads);
    }
  }
  const DaemonProcess daemon(home, {"--model", heads});
  CHECK(home.run({"run", heads, "hi"}).exit_status == 0);
  CHECK(daemon.status().path == heads);
  CHECK(daemon.status().others.empty());
}

TEST_CASE("drafters that don't fit are refused, and the model that is there serves on") {
  const Home home;
  const TempFolder folder;
  write_heads(folder.file("heads"), 128);
  const DaemonProcess daemon(home, {"--model", "demo"});
  const auto refusal = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"load", "demo"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = home.run(arguments);
    CHECK(ran.exit_status != 0);
    return ran.err;
  };
  CHECK_THAT(refusal({"--speculator", folder.file("heads")}),
             Catch::Contains("0.0.linear.weight: expected (256, 256), got (128, 128)"));
  write_heads(folder.file("heads"), 256);
  CHECK_THAT(refusal({"--speculator", folder.file("heads"), "--speculate", "3"}),
             Catch::Contains("can draft only 2 tokens"));
  CHECK_THAT(refusal({"--speculator", folder.file("heads"), "--draft-model", "demo"}),
             Catch::Contains("one of them drafts"));
  CHECK_THAT(refusal({"--draft-model", TGI_SOURCE_DIR "/tests/golden/models/llama"}),
             Catch::Contains("its vocabulary is not that of the model"));
  CHECK(answer(home, "0").at("num_generated_tokens") == 150);
}

}  // namespace tgi::drafters_test
