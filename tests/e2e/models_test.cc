// What tgi knows about models and measurements, with a real daemon.
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {

using ipc::OrderedJson;

TEST_CASE("show tells the sizes that the daemon then takes, and loads nothing for it") {
  const Home home;
  const DaemonProcess daemon(home);
  const Ran ran = home.run({"show", "demo", "--json"});
  CHECK(ran.err == "");
  const OrderedJson json = OrderedJson::parse(ran.out);
  const ipc::ModelStatus loaded = *daemon.status().model;
  bool found = false;
  for (const OrderedJson& plan : json["facts"]["plans"]) {
    if (plan["dtype"] != loaded.dtype) continue;
    found = true;
    CHECK(plan["weights"] == loaded.memory.weights);
    CHECK(plan["kv_bytes_per_token"] == loaded.kv_bytes_per_token);
  }
  CHECK(found);
  const Ran other =
      home.run({"show", std::string(TGI_SOURCE_DIR) + "/tests/golden/models/gpt2-untied-f16"});
  CHECK_THAT(other.out, Catch::Contains("GPT2LMHeadModel") && Catch::Contains("F16 tensors"));
  CHECK(daemon.status().model->name == "demo");
  const Ran wrong = home.run({"show", home.file("run")});
  CHECK(wrong.exit_status == code_row(Code::kNotFound).exit_status);
  CHECK_THAT(wrong.out, Catch::Contains("can't be loaded") && Catch::Contains("config.json"));
}

TEST_CASE("a GGUF file is shown, loaded and answers as the folder it was made from") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::string golden = std::string(TGI_SOURCE_DIR) + "/tests/golden/";
  const std::string file = golden + "gguf/phi3-window/model.gguf";
  CHECK_THAT(home.run({"show", file}).out,
             Catch::Contains("Phi3ForCausalLM") && Catch::Contains("F32 tensors (gguf)"));
  const auto answer = [&](const std::string& model) {
    REQUIRE(home.run({"load", model}).exit_status == 0);
    ipc::GenerateRequest request;
    request.prompt_ids = std::vector<int32_t>{5, 9, 17, 33};
    request.params.max_new_tokens = 12;
    request.params.ignore_eos = true;
    return daemon.client().generate(request, {}).best.num_generated_tokens;
  };
  CHECK(answer(file) == 12);
  CHECK(daemon.status().model->name == file);
  home.write("cut.gguf", "GGUF");
  const Ran refused = home.run({"load", home.file("cut.gguf")});
  CHECK(refused.exit_status == 3);
  CHECK_THAT(refused.err, Catch::Contains("cut.gguf") && Catch::Contains("is the file complete?"));
  CHECK(daemon.status().model->name == file);  // it serves on
}

TEST_CASE("a bench that ran to its end is in the history") {
  const Home home;
  const DaemonProcess daemon(home);
  CHECK(home.run({"bench", "-b", "1,2", "-s", "8", "-d", "4", "-r", "1", "-w", "0"}).exit_status ==
        0);
  CHECK(home.run({"bench", "--serving", "--requests", "2", "-s", "8", "-d", "4"}).exit_status == 0);
  const OrderedJson json = OrderedJson::parse(home.run({"bench", "--history", "--json"}).out);
  REQUIRE(json.size() == 2);
  CHECK(json[0]["kind"] == "serving");
  CHECK(json[0]["result"]["num_ok"] == 2);
  CHECK(json[1]["kind"] == "engine");
  CHECK(json[1]["model"] == "demo");
  CHECK(json[1]["backend"] == "cpu");
  CHECK(json[1]["settings"]["prompt_length"] == 8);
  CHECK(json[1]["result"]["batches"].size() == 2);
}

TEST_CASE("rm of the loaded model is refused until it is unloaded") {
  const Home home;
  const std::string source = std::string(TGI_SOURCE_DIR) + "/tests/golden/models/qwen2";
  const std::string repo = home.file(".cache/huggingface/hub/models--org--tiny");
  const std::string snapshot = repo + "/snapshots/aaa";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_directories(repo + "/blobs");
  std::filesystem::create_directories(repo + "/refs");
  std::ofstream(repo + "/refs/main") << "aaa";
  for (const std::string name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(source + "/" + name, repo + "/blobs/" + name);
    std::filesystem::create_symlink("../../blobs/" + name, snapshot + "/" + name);
  }
  const DaemonProcess daemon(home);
  // Dummy weights need no tokenizer; the files are what is looked at here.
  REQUIRE(home.run({"load", snapshot, "--load-format", "dummy"}).exit_status == 0);
  const Ran refused = home.run({"rm", "-y", "org/tiny"});
  CHECK(refused.exit_status == 7);
  CHECK_THAT(refused.err, Catch::Contains("tgi unload"));
  CHECK(std::filesystem::exists(snapshot + "/model.safetensors"));
  // Nor is one that is loaded beside the default one.
  REQUIRE(home.run({"load", "demo"}).exit_status == 0);
  REQUIRE(home.run({"load", snapshot, "--name", "tiny", "--load-format", "dummy"}).exit_status ==
          0);
  CHECK(home.run({"rm", "-y", "org/tiny"}).exit_status == 7);
  REQUIRE(home.run({"unload", "tiny"}).exit_status == 0);
  CHECK(home.run({"rm", "-y", "org/tiny"}).exit_status == 0);
  CHECK_FALSE(std::filesystem::exists(repo));
}

}  // namespace tgi
