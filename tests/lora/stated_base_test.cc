// The model that an adapter says it was made for, beside the one that it is to change.
#include "engine/lora/stated_base.h"

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"
#include "tests/temp_folder.h"

namespace tgi::stated_base_test {
namespace {

namespace fs = std::filesystem;

std::string add(const TempFolder& place, const std::string& name, const std::string& architecture) {
  const fs::path folder = fs::path(place.path()) / name;
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"architectures": [")" << architecture << R"("]})";
  return folder.string();
}

}  // namespace

TEST_CASE("an adapter's base is compared by its name, else by its family where that is known") {
  const TempFolder cache;
  const std::string served = add(cache, "models--org--Served-8B/snapshots/abc", "LlamaForCausalLM");
  const std::string falcon = add(cache, "a-falcon", "FalconForCausalLM");
  (void)add(cache, "models--org--other/snapshots/abc", "FalconForCausalLM");
  (void)add(cache, "models--org--cousin/snapshots/abc", "LLaMAForCausalLM");
  (void)add(cache, "models--org--strange/snapshots/abc", "NobodysForCausalLM");
  const auto files = open_folder(TGI_SOURCE_DIR "/tests/golden/models/llama");
  const LoadedConfig model = load_model_config(*files);
  const auto doubt = [&](const std::string& stated, const std::string& path) {
    return doubt_about_base(stated, path, model);
  };
  for (const char* same : {"", "org/Served-8B", "mirror/served-8b", "/elsewhere/Served-8B/"}) {
    CHECK(doubt(same, served) == std::nullopt);
  }
  CHECK(doubt("org/Served-8B", "/models/served-8b-Q4_K_M.gguf") == std::nullopt);
  CHECK(doubt("org/other", "") == std::nullopt);
  CHECK(doubt("org/unknown", served) ==
        "it was made for org/unknown, whose config is not here to be compared");
  CHECK(doubt("org/strange", served) ==
        "it was made for org/strange, whose config is not here to be compared");
  CHECK(doubt("org/cousin", served) == "it was made for org/cousin");
  for (const std::string& other : {std::string("org/other"), falcon}) {
    CHECK_THAT(refusal_of_action(Code::kInvalidArgument, [&] { (void)doubt(other, served); }),
               Catch::StartsWith("it was made for " + other +
                                 ", a FalconForCausalLM, and the model "
                                 "is a LlamaForCausalLM"));
  }
}

}  // namespace tgi::stated_base_test
