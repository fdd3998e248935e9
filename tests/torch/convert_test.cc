#include "cmd/download/torch/convert.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/new_folder.h"
#include "cmd/download/torch/torch_folder.h"
#include "tests/temp_folder.h"
#include "tests/torch/torch_files.h"

namespace tgi::download {

namespace fs = std::filesystem;
using Catch::Contains;

TEST_CASE("every element type and every view comes out as torch reads it") {
  const std::string name = GENERATE("views", "protocol4", "nested", "zip64", "stream");
  INFO(name);
  const TempFolder folder;
  const ConvertedModel model = convert_torch_checkpoint(golden(name), folder.file("out"));
  CHECK(model.files == std::vector<std::string>{"model.safetensors"});
  CHECK(model.num_tensors == 25);
  CHECK(model.dropped.empty());
  check_equal(read_folder(folder.file("out")), read_file(golden(name) + "/expected.safetensors"));
}

TEST_CASE("the head goes where config.json ties it, other shared tensors keep their names") {
  const std::string name = GENERATE("tied", "untied");
  const TempFolder folder;
  const ConvertedModel model = convert_torch_checkpoint(golden(name), folder.file("out"));
  CHECK(model.dropped ==
        (name == "tied" ? std::vector<std::string>{"lm_head.weight"} : std::vector<std::string>{}));
  check_equal(read_folder(folder.file("out")), read_file(golden(name) + "/expected.safetensors"));
  CHECK(read_all(folder.file("out/config.json")) == read_all(golden(name) + "/config.json"));
}

TEST_CASE("a checkpoint in several files becomes one, or several of the size asked for") {
  const TempFolder folder;
  const Tensors expected = read_file(golden("sharded/expected.safetensors"));
  CHECK(convert_torch_checkpoint(golden("sharded"), folder.file("one")).files.size() == 1);
  check_equal(read_folder(folder.file("one")), expected);
  CHECK_FALSE(fs::exists(folder.file("one/pytorch_model.bin.index.json")));

  const ConvertedModel three =
      convert_torch_checkpoint(golden("sharded"), folder.file("three"), {.max_shard_bytes = 20});
  CHECK(three.files.size() == 3);
  check_equal(read_folder(folder.file("three")), expected);
  const auto checkpoint = open_checkpoint(*open_folder(folder.file("three")));
  CHECK(checkpoint->names().size() == expected.size());
}

TEST_CASE("a converted model is the model it was made from") {
  const TempFolder folder;
  const std::string source = std::string(TGI_SOURCE_DIR) + "/tests/golden/models/qwen2";
  fs::create_directory(folder.file("in"));
  fs::copy_file(golden("qwen2/pytorch_model.bin"), folder.file("in/pytorch_model.bin"));
  fs::copy_file(source + "/config.json", folder.file("in/config.json"));
  std::vector<int64_t> done;
  const ConvertedModel model = convert_torch_checkpoint(
      folder.file("in"), folder.file("out"), {.on_progress = [&](const ConvertProgress& progress) {
        done.push_back(progress.done_bytes);
        CHECK(progress.total_bytes >= 38'000);
      }});
  check_equal(read_folder(folder.file("out")), read_file(source + "/model.safetensors"));
  REQUIRE_FALSE(done.empty());
  CHECK(std::ranges::is_sorted(done));
  CHECK(done.back() == model.bytes);
}

TEST_CASE("modules of sentence-transformers go with a model, their weights as safetensors") {
  const TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
  };
  for (const char* name :
       {"in", "in/1_Pooling", "in/2_Dense", "in/3_Dense", "in/4_Normalize", "in/onnx"}) {
    fs::create_directory(folder.file(name));
  }
  fs::copy_file(golden("qwen2/pytorch_model.bin"), folder.file("in/pytorch_model.bin"));
  write("in/config.json", "{}");
  write("in/modules.json", "[]");
  write("in/1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": true}");
  write("in/2_Dense/config.json", "{\"bias\": false}");
  fs::copy_file(golden("views/pytorch_model.bin"), folder.file("in/2_Dense/pytorch_model.bin"));
  write("in/3_Dense/model.safetensors", "as it is");
  fs::copy_file(golden("views/pytorch_model.bin"), folder.file("in/3_Dense/pytorch_model.bin"));
  write("in/onnx/model.onnx", "another");
  convert_torch_checkpoint(folder.file("in"), folder.file("out"));
  CHECK(read_all(folder.file("out/1_Pooling/config.json")) ==
        "{\"pooling_mode_mean_tokens\": true}");
  CHECK(read_all(folder.file("out/2_Dense/config.json")) == "{\"bias\": false}");
  check_equal(read_file(folder.file("out/2_Dense/model.safetensors")),
              read_file(golden("views/expected.safetensors")));
  CHECK(read_all(folder.file("out/3_Dense/model.safetensors")) == "as it is");
  CHECK_FALSE(fs::exists(folder.file("out/2_Dense/pytorch_model.bin")));
  CHECK(fs::exists(folder.file("out/4_Normalize")));
  CHECK_FALSE(fs::exists(folder.file("out/onnx")));
}

TEST_CASE("an adapter is converted under the name that adapters have") {
  const TempFolder folder;
  const ConvertedModel model = convert_torch_checkpoint(golden("adapter"), folder.file("out"));
  CHECK(model.files == std::vector<std::string>{"adapter_model.safetensors"});
  check_equal(read_file(folder.file("out/adapter_model.safetensors")),
              read_file(golden("adapter/expected.safetensors")));
  CHECK(read_all(folder.file("out/adapter_config.json")) ==
        read_all(golden("adapter/adapter_config.json")));
  // Beside a model it is the model that is asked for.
  fs::create_directory(folder.file("in"));
  fs::copy(golden("adapter"), folder.file("in"));
  fs::copy(golden("untied"), folder.file("in"),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  CHECK(convert_torch_checkpoint(folder.file("in"), folder.file("model")).files ==
        std::vector<std::string>{"model.safetensors"});
}

TEST_CASE("what training leaves beside a model is not taken for one") {
  CHECK(is_torch_weights("pytorch_model.bin"));
  CHECK(is_torch_weights("pytorch_model-00001-of-00002.bin"));
  CHECK_FALSE(is_torch_weights("training_args.bin"));
  CHECK_FALSE(is_torch_weights("optimizer.bin"));
  CHECK_FALSE(is_torch_weights("model.safetensors"));
}

TEST_CASE("a checkpoint that is not whole is refused naming what is missing") {
  const TempFolder folder;
  fs::copy(golden("sharded"), folder.file("in"));
  const auto convert = [&] {
    return convert_torch_checkpoint(folder.file("in"), folder.file("out"));
  };
  const std::string second = folder.file("in/pytorch_model-00002-of-00002.bin");
  SECTION("a file") {
    fs::remove(second);
    CHECK_THROWS_WITH(convert(), Contains("pytorch_model-00002-of-00002.bin: is not there"));
  }
  SECTION("the end of a file") {
    fs::resize_file(second, fs::file_size(second) / 2);
    CHECK_THROWS_WITH(convert(), Contains(second) && Contains("cut off"));
  }
  SECTION("a tensor") {
    fs::copy_file(golden("refused/good.bin"), second, fs::copy_options::overwrite_existing);
    CHECK_THROWS_WITH(convert(), Contains(second) && Contains("tensor c is not in it"));
  }
  SECTION("a tensor twice") {
    fs::copy_file(folder.file("in/pytorch_model-00001-of-00002.bin"), second,
                  fs::copy_options::overwrite_existing);
    CHECK_THROWS_WITH(convert(), Contains("tensor a is in another file too"));
  }
  SECTION("a path out of the folder") {
    write_all(folder.file("in/pytorch_model.bin.index.json"),
              R"({"weight_map": {"a": "../../etc/passwd"}})");
    CHECK_THROWS_WITH(convert(), Contains("weight_map.a") && Contains("expected the name"));
  }
  SECTION("everything") {
    fs::remove_all(folder.file("in"));
    fs::create_directory(folder.file("in"));
    CHECK_THROWS_WITH(convert(), Contains("no torch checkpoint"));
  }
  CHECK_FALSE(fs::exists(folder.file("out")));
}

TEST_CASE("a conversion that is stopped leaves nothing") {
  const TempFolder folder;
  const ConvertOptions options{
      .on_progress = [](const ConvertProgress&) { throw Error(Code::kCancelled, "cancelled"); }};
  CHECK_THROWS_AS(convert_torch_checkpoint(golden("views"), folder.file("a/out"), options), Error);
  CHECK(fs::is_empty(folder.file("a")));
}

TEST_CASE("a new folder is whole or not there, and the leavings of the dead go") {
  const TempFolder folder;
  const std::string path = folder.file("a/model");
  const pid_t child = ::fork();
  if (child == 0) {
    NewFolder died(path);
    write_all(died.file("weights"), "half");
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(std::distance(fs::directory_iterator(folder.file("a")), {}) == 1);
  {
    NewFolder first(path);
    NewFolder second(path);
    write_all(first.file("weights"), "first");
    write_all(second.file("weights"), "second");
    CHECK(std::distance(fs::directory_iterator(folder.file("a")), {}) == 2);
    CHECK(first.commit());
    CHECK_FALSE(second.commit());
    CHECK_THROWS_WITH(second.require_space(INT64_MAX), Contains("GB free"));
  }
  CHECK(read_all(path + "/weights") == "first");
  CHECK(std::distance(fs::directory_iterator(folder.file("a")), {}) == 1);
}

}  // namespace tgi::download
