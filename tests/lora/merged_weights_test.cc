// Adapters merged into weights: the numbers are those of PEFT's merge_and_unload
// (scripts/golden/make_adapters) but for the last bit of their type; a checkpoint that is written
// is whole, and is the base but for them.
#include "engine/lora/merged_weights.h"

#include <filesystem>
#include <set>

#include "engine/lora/write_merged.h"
#include "engine/model/weight_check.h"
#include "engine/tensor/weight_element.h"
#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"

namespace tgi::merged_weights_test {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";

struct Opened {
  std::unique_ptr<FileSource> files;
  std::unique_ptr<FileSource> base_files;
  LoadedConfig model;
  std::unique_ptr<Checkpoint> base;
  AdapterFiles adapter;

  MergedWeights merge(int num_threads = 2) const {
    return {open_checkpoint(*base_files), adapter, model, num_threads};
  }
};

Opened open(const std::string& name) {
  Opened out;
  out.files = open_folder(kGolden + "adapters/" + name);
  const Json expected = parse_json(out.files->require_text("expected.json"), 16);
  out.base_files = open_folder(kGolden + expected.at("base").get<std::string>());
  out.model = load_model_config(*out.base_files);
  out.base = open_checkpoint(*out.base_files);
  out.adapter = open_adapter(*out.files, out.model, out.base.get());
  return out;
}

// From one number to the next one, as a part of it.
double spacing(DType dtype) {
  return dtype == DType::kBF16 ? 1.0 / 128 : dtype == DType::kF16 ? 1.0 / 1024 : 1e-6;
}

// PEFT rounds what is added before it adds it, and each step of DoRA.
double tolerance(const Opened& opened, DType dtype, double before, double after) {
  const double steps = opened.adapter.config.is_dora ? 3 : 1;
  return steps * spacing(dtype) * (std::abs(after) + std::abs(after - before)) + 1e-7;
}

void check_weights_of(const std::string& name, const Json& expected) {
  INFO(name);
  const Opened opened = open(name);
  const MergedWeights merged = opened.merge();
  const auto step = expected.at("step").get<size_t>();
  const Json& tensors = expected.at("tensors");
  CHECK(tensors.size() >= 3);
  for (const std::string_view tensor_name : merged.names()) {
    INFO(tensor_name);
    const StoredTensor& tensor = *merged.find(tensor_name);
    const StoredTensor& stored = *opened.base->find(tensor_name);
    const std::vector<float> before = read_elements(opened.base->bytes(stored), *stored.dtype);
    const std::vector<float> after = read_elements(merged.bytes(tensor), *tensor.dtype);
    merged.release(tensor);
    const auto found = tensors.find(tensor_name);
    if (found == tensors.end()) {
      CHECK(after == before);
      continue;
    }
    const auto values = found->get<std::vector<double>>();
    REQUIRE(values.size() == (after.size() + step - 1) / step);
    double change = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto was = static_cast<double>(before[i * step]);
      const auto is = static_cast<double>(after[i * step]);
      CHECK(std::abs(is - values[i]) <= tolerance(opened, *tensor.dtype, was, values[i]));
      change = std::max(change, std::abs(is - was));
    }
    CHECK(change > 1e-3);
  }
}

std::string refusal_of(const std::string& name) {
  const Opened opened = open(name);
  return refusal_of_action(Code::kUnsupported, [&] { (void)opened.merge(); });
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "tgi-merged-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string of(const std::string& name) const { return path_ + "/" + name; }
  bool is_empty() const { return fs::is_empty(path_); }

 private:
  std::string path_;
};

TEST_CASE("weights with an adapter merged into them are those of PEFT's merge_and_unload") {
  const auto goldens = open_folder(kGolden + "merged_weights");
  int count = 0;
  for (const std::string& file : goldens->names()) {
    check_weights_of(file.substr(0, file.size() - 5), parse_json(goldens->require_text(file), 16));
    ++count;
  }
  CHECK(count >= 13);
}

TEST_CASE("merged weights are the same for any number of threads, and again after a release") {
  const Opened opened = open("llama-all-linear-rslora");
  const MergedWeights one = opened.merge(1);
  const MergedWeights three = opened.merge(3);
  for (const std::string_view name : one.names()) {
    const StoredTensor& tensor = *one.find(name);
    const auto bytes = one.bytes(tensor);
    const std::vector<std::byte> kept(bytes.begin(), bytes.end());
    CHECK(std::ranges::equal(kept, three.bytes(*three.find(name))));
    one.release(tensor);
    CHECK(std::ranges::equal(kept, one.bytes(tensor)));
  }
}

TEST_CASE("what can't be merged into weights is refused by name") {
  CHECK_THAT(refusal_of("qwen2-tied-lm-head"),
             Catch::Contains("the head is the embedding in this model") &&
                 Catch::Contains("changes the head alone"));
  CHECK_THAT(refusal_of("granite-embedding"), Catch::Contains("changes the embedding alone"));
  CHECK_THAT(refusal_of("llama-lora-bias"),
             Catch::Contains("the adapter brings a bias, and the model's linear has none"));
  Opened quantised = open("llama");
  quantised.model.weight_format = weight_formats().back();
  CHECK_THAT(refusal_of_action(Code::kUnsupported, [&] { (void)quantised.merge(); }),
             Catch::Contains("are quantised"));
}

TEST_CASE("a merged model is written whole, with the base's other files") {
  const TemporaryFolder place;
  const Opened opened = open("llama-dora");
  const std::string folder = place.of("merged");
  const int64_t bytes = write_merged_model(*opened.base_files, *opened.files, folder, 2, {});
  CHECK(bytes > 0);
  const auto written = open_folder(folder);
  const LoadedConfig model = load_model_config(*written);
  const auto tensors = open_checkpoint(*written);
  CHECK_NOTHROW(check_weights(model, *tensors));
  const MergedWeights merged = opened.merge();
  CHECK(tensors->names() == merged.names());
  for (const std::string_view name : merged.names()) {
    CHECK(
        std::ranges::equal(tensors->bytes(*tensors->find(name)), merged.bytes(*merged.find(name))));
  }
  std::set<std::string> expected{"config.json", "model.safetensors"};
  for (const std::string& name : opened.base_files->names()) {
    if (!name.ends_with(".safetensors") && !name.ends_with(".index.json")) expected.insert(name);
  }
  const auto names = written->names();
  CHECK(std::set<std::string>(names.begin(), names.end()) == expected);

  CHECK_THAT(refusal_of_action(
                 Code::kInvalidArgument,
                 [&] { write_merged_model(*opened.base_files, *opened.files, folder, 2, {}); }),
             Catch::Contains("there already"));
}

TEST_CASE("a merge that is refused or given up leaves nothing") {
  const TemporaryFolder place;
  const Opened opened = open("llama");
  std::stop_source stop;
  stop.request_stop();
  refusal_of_action(Code::kCancelled, [&] {
    write_merged_model(*opened.base_files, *opened.files, place.of("a"), 1, stop.get_token());
  });
  const Opened tied = open("qwen2-tied-lm-head");
  refusal_of_action(Code::kUnsupported, [&] {
    write_merged_model(*tied.base_files, *tied.files, place.of("b"), 1, {});
  });
  CHECK(place.is_empty());
}

}  // namespace
}  // namespace tgi::merged_weights_test
