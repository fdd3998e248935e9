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

// Of a model of so many layers, named as the base where it has a name.
std::string adapter_of(uint64_t hidden, uint64_t width, int layers, const std::string& base) {
  constexpr uint64_t kRank = 4;
  std::vector<GgufTestTensor> tensors;
  for (int layer = 0; layer < layers; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".ffn_down.weight.lora_";
    const auto seed = static_cast<uint32_t>(layer);
    tensors.push_back({name + "a", {width, kRank}, 0, numbers(kRank * width, seed, 0.2F)});
    tensors.push_back({name + "b", {kRank, hidden}, 0, numbers(hidden * kRank, seed + 9, 0.2F)});
  }
  std::vector<GgufTestValue> values = {
      text_value("general.architecture", "llama"),
      text_value("general.type", "adapter"),
      text_value("adapter.type", "lora"),
      {"adapter.lora.alpha", GgufBytes().number<uint32_t>(6).number(8.0F).text()}};
  if (!base.empty()) values.push_back(text_value("general.base_model.0.name", base));
  return gguf_file(values, tensors);
}

std::string demo_adapter() {
  return adapter_of(kHidden, kWidth, 5, "the demo");
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

TEST_CASE("an adapter in a GGUF file is merged into the model that it names, once") {
  const Home home;
  const std::string base = TGI_SOURCE_DIR "/tests/golden/models/llama";
  const std::string file = home.write("mine.gguf", adapter_of(36, 38, 2, base));
  const DaemonProcess daemon(home);
  const Ran merged = home.run({"download-weights", file, "--merge-lora", "--quiet"});
  CHECK(merged.err == "");
  REQUIRE(merged.exit_status == 0);
  const std::filesystem::path folder = merged.out.substr(0, merged.out.find('\n'));
  CHECK(folder.parent_path().filename() == "mine");
  const auto size_of = [](const std::filesystem::path& in) {
    return std::filesystem::file_size(in / "model.safetensors");
  };
  CHECK(size_of(folder) / 64 == size_of(base) / 64);  // but for the header's padding
  CHECK(std::filesystem::exists(folder / "tokenizer.json") ==
        std::filesystem::exists(std::filesystem::path(base) / "tokenizer.json"));
  CHECK(home.run({"download-weights", file, "--merge-lora", "--quiet"}).out == merged.out);

  const std::string nobodys = home.write("nobodys.gguf", adapter_of(36, 38, 2, ""));
  CHECK_THAT(home.run({"download-weights", nobodys, "--merge-lora", "--quiet"}).err,
             Contains("general.base_model.0: missing"));
}

TEST_CASE("a model of ollama with an adapter answers by it, though its weights are quantised",
          TGI_NOT_UNDER_TSAN) {
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
