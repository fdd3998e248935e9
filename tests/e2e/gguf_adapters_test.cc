// Adapters in GGUF files with a real daemon: named by requests, merged, part of a preset, and as
// ollama keeps them.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"
#include "tests/weights/gguf_files.h"

namespace tgi {
namespace {

using Catch::Contains;

// Sizes of the demo model.
constexpr uint64_t kHidden = 256;
constexpr uint64_t kWidth = 512;

std::string numbers(size_t count, uint32_t seed, float scale) {
  GgufBytes out;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    out.number((static_cast<float>(seed >> 8) / 8388608.0F - 1.0F) * scale);
  }
  return out.text();
}

std::string demo_adapter() {
  constexpr uint64_t kRank = 4;
  std::vector<GgufTestTensor> tensors;
  for (int layer = 0; layer < 5; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".ffn_down.weight.lora_";
    const auto seed = static_cast<uint32_t>(layer);
    tensors.push_back({name + "a", {kWidth, kRank}, 0, numbers(kRank * kWidth, seed, 0.2F)});
    tensors.push_back({name + "b", {kRank, kHidden}, 0, numbers(kHidden * kRank, seed + 9, 0.2F)});
  }
  return gguf_file({text_value("general.architecture", "llama"),
                    text_value("general.type", "adapter"),
                    text_value("adapter.type", "lora"),
                    text_value("general.base_model.0.name", "the demo"),
                    {"adapter.lora.alpha", GgufBytes().number<uint32_t>(6).number(8.0F).text()}},
                   tensors);
}

std::string answer(const Home& home, std::vector<std::string> more) {
  std::vector<std::string> words = {"generate", "Once upon a time", "--max-new-tokens", "12"};
  words.insert(words.end(), more.begin(), more.end());
  const Ran ran = home.run(words);
  CHECK(ran.err == "");
  CHECK(ran.exit_status == 0);
  return ran.out;
}

}  // namespace

TEST_CASE("an adapter in a GGUF file answers, is shown, and is merged by a preset") {
  const Home home;
  const std::string file = home.write("a.gguf", demo_adapter());
  const DaemonProcess daemon(home);
  const std::string base = answer(home, {});
  const std::string adapted = answer(home, {"--adapter", file});
  CHECK(adapted != base);
  const Ran shown = home.run({"show", file});
  CHECK(shown.err == "");
  CHECK_THAT(shown.out, Contains("the demo") && Contains("ffn_down"));
  REQUIRE(
      home.run({"create", "tuned", "-f", "-"}, "FROM demo\nADAPTER " + file + "\n").exit_status ==
      0);
  REQUIRE(home.run({"load", "tuned"}).exit_status == 0);
  CHECK(answer(home, {}) != base);
  CHECK_THAT(home.run({"load", file}).err, Contains("the file is an adapter and no model"));
}

TEST_CASE("a model of ollama with an adapter answers by it, though its weights are quantised") {
  const Home home;
  const std::string blobs = home.file("ollama/blobs/sha256-");
  std::filesystem::create_directories(home.file("ollama/blobs"));
  const std::string model = home.file("m.gguf");
  const DaemonProcess daemon(home);
  REQUIRE(home.run({"quantize", "demo", model, "--format", "q8_0"}).exit_status == 0);
  std::filesystem::rename(model, blobs + "0");
  home.write("ollama/blobs/sha256-1", demo_adapter());
  home.write("ollama/blobs/sha256-2", "an encoder of images");
  const auto manifest = [&](const std::string& more) {
    const std::string path = "ollama/manifests/registry.ollama.ai/library/tuned/latest";
    std::filesystem::create_directories(std::filesystem::path(home.file(path)).parent_path());
    return home.write(path, R"({"layers":[{"mediaType":"application/vnd.ollama.image.model",)"
                            R"("digest":"sha256:0"})" +
                                more + "]}");
  };
  const auto layer = [](const std::string& kind, const std::string& digest) {
    return R"(,{"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":"sha256:)" +
           digest + R"("})";
  };
  REQUIRE(home.run({"load", blobs + "0"}).exit_status == 0);
  const std::string base = answer(home, {});
  const std::string adapted = answer(home, {"--adapter", blobs + "1"});
  REQUIRE(adapted != base);
  const std::string path = manifest(layer("adapter", "1") + layer("projector", "2"));
  const Ran loaded = home.run({"load", path});
  CHECK(loaded.err == "");
  REQUIRE(loaded.exit_status == 0);
  CHECK(answer(home, {}) == adapted);
  CHECK_THAT(home.run({"adapters"}).out, Contains("tuned:latest+adapter"));
  const std::string unknown = manifest(layer("prompt", "2"));
  CHECK_THAT(home.run({"load", unknown}).err,
             Contains("prompt: a layer of a type that this build does not know"));
}

}  // namespace tgi
