#include "base/files/ollama_store.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using Layers = std::vector<std::pair<std::string, std::string>>;  // kind, text

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// The manifest of a model of these layers; the text of a layer is its digest too.
std::string model_of(const TempFolder& folder, const Layers& layers) {
  std::string list;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& [kind, text] = layers[i];
    const std::string digest = std::to_string(i);
    write(folder.path() + "/blobs/sha256-" + digest, text);
    list += (i == 0 ? "" : ",");
    list += R"({"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":"sha256:)" +
            digest + R"("})";
  }
  const std::string path = folder.path() + "/manifests/registry.ollama.ai/library/llama3.2/1b";
  write(path, R"({"schemaVersion":2,"layers":[)" + list + "]}");
  return path;
}

}  // namespace

TEST_CASE("a model of ollama is a preset where it lies") {
  const TempFolder folder;
  const std::string path = model_of(
      folder, {{"params", R"({"stop":["<a>","<b>"],"temperature":0.5,"top_k":20,"num_keep":24,)"
                          R"("mirostat":0})"},
               {"model", "GGUF"},
               {"template", "{{ .Prompt }}"},
               {"system", "You are\nMario."},
               {"messages", R"([{"role":"user","content":"hi"}])"},
               {"license", "free"}});
  REQUIRE(is_preset_path(path));
  CHECK(name_of_preset(path) == "llama3.2:1b");
  REQUIRE(find_ollama_files(path));
  CHECK(find_ollama_files(path)->has_defaults);
  const Preset preset = read_preset(path);
  CHECK(preset.from == folder.path() + "/blobs/sha256-1");
  CHECK(preset.system == "You are\nMario.");
  CHECK_FALSE(preset.chat_template);
  CHECK(preset.parameters.temperature == 0.5);
  CHECK(preset.parameters.top_k == 20);
  CHECK(preset.parameters.stop == std::vector<std::string>{"<a>", "<b>"});
  CHECK(preset.messages == std::vector<PresetMessage>{{"user", "hi"}});
  CHECK(preset.licenses == std::vector<std::string>{"free"});
}

TEST_CASE("a model of ollama brings its adapter, and what nothing reads is named") {
  const TempFolder folder;
  const std::string path =
      model_of(folder, {{"model", "GGUF"}, {"projector", "x"}, {"adapter", "y"}});
  REQUIRE(find_ollama_files(path));
  CHECK(find_ollama_files(path)->has_defaults);
  const Preset preset = read_preset(path);
  CHECK(preset.adapter == folder.path() + "/blobs/sha256-2");
  REQUIRE(preset.not_used.size() == 1);
  CHECK_THAT(preset.not_used[0], Contains("projector"));
  // Layers of other programs are known by the whole of their type.
  write(path,
        R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:0"},)"
        R"({"mediaType":"application/x-y","digest":"sha256:1"}]})");
  try {
    (void)read_preset(path);
    FAIL("was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kUnsupported);
    CHECK_THAT(error.what(), Contains("application/x-y: a layer of a type"));
  }
}

TEST_CASE("a model of ollama without defaults of its own, and what is no model of ollama") {
  const TempFolder folder;
  const std::string path = model_of(folder, {{"model", "GGUF"}, {"template", "x"}});
  REQUIRE(find_ollama_files(path));
  CHECK_FALSE(find_ollama_files(path)->has_defaults);
  CHECK_FALSE(is_ollama_manifest(path + "b"));
  CHECK_FALSE(is_ollama_manifest(fs::path(path).parent_path()));
  CHECK_FALSE(is_ollama_manifest(folder.path() + "/blobs/sha256-0"));
  const std::string manifests = "/x/manifests/";
  CHECK(ollama_name(manifests + "registry.ollama.ai/someone/model/tag") == "someone/model:tag");
  CHECK(ollama_name(manifests + "hf.co/ORG/NAME/Q4_K_M") == "hf.co/ORG/NAME:Q4_K_M");
  CHECK(ollama_name("/x/manifest/hf.co/ORG/NAME/Q4_K_M").empty());
}

TEST_CASE("what of a model of ollama can't be honoured is refused by name") {
  const TempFolder folder;
  const auto refused = [&](const Layers& layers) {
    const std::string path = model_of(folder, layers);
    std::string out;
    try {
      (void)read_preset(path);
    } catch (const Error& error) {
      out = error.what();
    }
    return out;
  };
  CHECK_THAT(refused({{"params", R"({"mirostat":2})"}, {"model", "GGUF"}}),
             Contains("llama3.2:1b of ollama: params: ") && Contains("got mirostat") &&
                 Contains("/blobs/sha256-1 is the model without its defaults"));
  CHECK_THAT(refused({{"model", "GGUF"}, {"params", "["}}), Contains("of ollama: params: "));
  CHECK_THAT(refused({{"model", "GGUF"}, {"params", R"({"top_p":7})"}}), Contains("top_p: "));
  CHECK_THAT(refused({{"model", "GGUF"}, {"adapter", "x"}, {"adapter", "y"}}),
             Contains("adapter: a model with several adapters"));
  CHECK_THAT(refused({{"model", "GGUF"}, {"embed", "x"}}),
             Contains("embed: a layer of a type that this build does not know"));
  CHECK_THAT(refused({{"model", "GGUF"}, {"model", "GGUF"}}), Contains("several files"));
  CHECK_THAT(refused({{"system", "x"}}), Contains("expected a layer with the model"));
}

}  // namespace tgi
