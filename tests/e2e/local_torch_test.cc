// A folder of the user's own with a checkpoint of torch: every command that takes a model converts
// it.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = std::string(TGI_SOURCE_DIR) + "/tests/golden/";

// The letters of the demo model's tokenizer, each a token.
std::string small_tokenizer(int64_t vocab_size) {
  Json json = Json::parse(read_file(std::string(TGI_SOURCE_DIR) + "/assets/demo/tokenizer.json"));
  Json vocab = Json::object();
  for (const auto& [token, id] : json["model"]["vocab"].items()) {
    if (id.get<int64_t>() < vocab_size) vocab[token] = id;
  }
  json["model"]["vocab"] = vocab;
  json["model"]["merges"] = Json::array();
  return json.dump();
}

std::string torch_folder(const Home& home, const std::string& name) {
  const std::string folder = home.file(name);
  fs::create_directories(folder);
  fs::copy_file(kGolden + "models/qwen2/config.json", folder + "/config.json");
  fs::copy_file(kGolden + "torch/qwen2/pytorch_model.bin", folder + "/pytorch_model.bin");
  home.write(name + "/tokenizer.json", small_tokenizer(100));
  return folder;
}

// Those that are whole.
std::vector<std::string> conversions(const Home& home) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry :
       fs::recursive_directory_iterator(home.file(".cache/tgi/converted"), error)) {
    if (entry.path().filename() == "model.safetensors") out.push_back(entry.path().parent_path());
  }
  return out;
}

void touch(const std::string& file) {
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(7));
}

}  // namespace

TEST_CASE("a folder with a checkpoint of torch is converted beside the store, once") {
  const Home home;
  const DaemonProcess daemon(home, {"--no-model"});
  const std::string folder = torch_folder(home, "mine");
  const std::string before = read_file(folder + "/pytorch_model.bin");

  // Who names it to the daemon itself is told what to type.
  try {
    (void)daemon.client().call(ipc::kLoad, ipc::to_json(ipc::LoadParams{.model = folder}));
    FAIL("the daemon converts nothing");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), Catch::Contains("`tgi load " + folder + "` converts it"));
  }

  const Ran first = home.run({"load", folder});
  INFO(first.err);
  REQUIRE(first.exit_status == 0);
  CHECK_THAT(first.err, Catch::Contains("converted to safetensors in"));
  CHECK_THAT(first.out, Catch::StartsWith("loaded mine (Qwen2ForCausalLM"));
  CHECK(home.run({"generate", "hi", "--max-new-tokens", "3"}).exit_status == 0);
  REQUIRE(conversions(home).size() == 1);
  const std::string converted = conversions(home).front();
  const auto made_at = fs::last_write_time(converted + "/model.safetensors");
  CHECK(read_file(folder + "/pytorch_model.bin") == before);
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 3);

  // The same by another name for it, and by other commands.
  const Ran again = home.run({"load", folder + "/../mine/"});
  CHECK(again.exit_status == 0);
  CHECK_THAT(again.err, !Catch::Contains("converted"));
  CHECK(home.run({"generate", "hi", "-m", folder, "--max-new-tokens", "3"}).exit_status == 0);
  CHECK(home.run({"download-weights", folder}).out == converted + "\n");
  CHECK(conversions(home) == std::vector<std::string>{converted});
  CHECK(fs::last_write_time(converted + "/model.safetensors") == made_at);

  // Another state of it, of its weights or its texts, is converted anew; the older one is of no
  // use.
  touch(folder + "/pytorch_model.bin");
  REQUIRE(home.run({"load", folder}).exit_status == 0);
  REQUIRE(conversions(home).size() == 1);
  const std::string second = conversions(home).front();
  CHECK(second != converted);
  home.write("mine/generation_config.json", R"({"eos_token_id": 3})");
  REQUIRE(home.run({"load", folder}).exit_status == 0);
  REQUIRE(conversions(home).size() == 1);
  CHECK(fs::exists(conversions(home).front() + "/generation_config.json"));

  // Another folder of that name is another model.
  fs::create_directory(home.file("other"));
  const std::string namesake = torch_folder(home, "other/mine");
  REQUIRE(home.run({"load", namesake}).exit_status == 0);
  CHECK(conversions(home).size() == 2);
}

TEST_CASE("a sharded checkpoint of torch is converted, and one that lacks a shard is refused") {
  const Home home;
  const std::string folder = home.file("sharded");
  fs::copy(kGolden + "torch/sharded", folder);
  fs::remove(folder + "/expected.safetensors");
  home.write("sharded/config.json", "{}");
  const Ran whole = home.run({"download-weights", folder});
  INFO(whole.err);
  CHECK(whole.exit_status == 0);
  CHECK(conversions(home).size() == 1);
  fs::remove(folder + "/pytorch_model-00002-of-00002.bin");
  const Ran part = home.run({"download-weights", folder});
  CHECK(part.exit_status == 4);
  CHECK_THAT(part.err, Catch::Contains("pytorch_model-00002-of-00002.bin"));
}

TEST_CASE("a conversion that can't be made leaves nothing behind, and the model that serves") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::string folder = torch_folder(home, "mine");
  const std::string weights = folder + "/pytorch_model.bin";
  fs::copy_file(kGolden + "torch/refused/os_system.bin", weights,
                fs::copy_options::overwrite_existing);
  const Ran code = home.run({"load", folder});
  CHECK(code.exit_status == 3);
  CHECK_THAT(code.err, Catch::Contains("posix.system"));

  fs::copy_file(kGolden + "torch/qwen2/pytorch_model.bin", weights,
                fs::copy_options::overwrite_existing);
  fs::resize_file(weights, 20'000);
  CHECK(home.run({"load", folder}).exit_status == 3);

  // No room where it would go: the cache is a file there.
  fs::copy_file(kGolden + "torch/qwen2/pytorch_model.bin", weights,
                fs::copy_options::overwrite_existing);
  fs::remove_all(home.file(".cache/tgi/converted"));
  fs::create_directories(home.file(".cache/tgi"));
  home.write(".cache/tgi/converted", "");
  const Ran full = home.run({"load", folder});
  CHECK(full.exit_status >= 3);
  CHECK_THAT(full.err, Catch::Contains(".cache/tgi/converted"));
  CHECK(conversions(home).empty());
  CHECK(daemon.status().phase == "ready");
  CHECK(daemon.status().model->name == "demo");
}

}  // namespace tgi
