// Checkpoints written as GGUF files (engine/quantize/gguf) have the logits that transformers gives
// them, to 1e-4 in f32; what such files can't say of a model is refused by name.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/gguf_source.h"
#include "engine/quantize/quantizer.h"
#include "engine/quantize/source_model.h"
#include "engine/runtime/backend_loader.h"
#include "tests/promises/engine_fixture.h"
#include "tests/promises/golden_logits.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

// Of one byte each, as the alphabet of bytes writes them: the small models have no tokenizer.
std::string tokenizer_of(int32_t vocab_size) {
  Json vocab = Json::object();
  constexpr int32_t kNumPrintable = '~' - '!' + 1;
  for (int32_t id = 0; id < vocab_size; ++id) {
    // Letters first: texts are made of them. Behind all of ASCII follow bytes from A1 on.
    const int32_t letter = 'A' + id <= '~' ? 'A' + id : '!' + id - ('~' - 'A' + 1);
    const std::string symbol =
        id < kNumPrintable ? std::string(1, static_cast<char>(letter))
                           : std::string{'\xC2', static_cast<char>(0xA1 + id - kNumPrintable)};
    vocab[symbol] = id;
  }
  return Json{{"version", "1.0"},
              {"added_tokens", Json::array()},
              {"normalizer", nullptr},
              {"pre_tokenizer",
               {{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", true}}},
              {"post_processor", nullptr},
              {"decoder", {{"type", "ByteLevel"}}},
              {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}}
      .dump();
}

// A folder with a tokenizer beside it.
class WithTokenizer final : public FileSource {
 public:
  WithTokenizer(const FileSource& folder, std::string tokenizer)
      : folder_(folder), tokenizer_(std::move(tokenizer)) {}
  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == "tokenizer.json") return std::as_bytes(std::span(tokenizer_));
    return folder_.find(name);
  }
  std::vector<std::string> names() const override { return folder_.names(); }
  std::string describe(const std::string& name) const override { return folder_.describe(name); }

 private:
  const FileSource& folder_;
  const std::string tokenizer_;
};

std::string write_gguf(const FileSource& files, const std::string& path, const char* format) {
  QuantizeOptions options;
  options.model = "golden";
  options.folder = path;
  options.format = format;
  options.force = true;
  options.calibration = {.file = std::string(TGI_SOURCE_DIR) + "/tests/quantize/stories.jsonl",
                         .num_sequences = 2,
                         .sequence_length = 16};
  const LoadedConfig model = load_model_config(files);
  if (!has_plain_layers(model.config)) options.calibration.file.clear();
  try {
    (void)quantize_model({.files = files,
                          .options = options,
                          .backend = find_backend("cpu"),
                          .num_threads = 1,
                          .on_progress = nullptr});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// "" when it was written.
std::string check_written(const std::string& folder) {
  const auto files = open_folder(folder);
  const LoadedConfig model = load_model_config(*files);
  const WithTokenizer with_tokenizer(*files, tokenizer_of(model.config.vocab_size));
  const TempFolder out;
  const std::string path = out.file("model.gguf");
  const std::string refusal = write_gguf(with_tokenizer, path, "f32");
  CHECK(std::filesystem::is_empty(out.path()) == !refusal.empty());
  if (!refusal.empty()) return refusal;
  const LoadedFixture loaded = load_workers(*open_gguf(path), {});
  const Json golden = parse_json(files->require_text("golden.json"), 16);
  for (const Json& one : golden.at("cases")) check_logits(loaded, one);
  return "";
}

}  // namespace

TEST_CASE("a checkpoint that is written as a GGUF file keeps its logits") {
  const char* const only = std::getenv("TGI_GOLDEN_FAMILY");
  int num_written = 0;
  for (const char* const set : {"models", "families"}) {
    for (const std::string& folder : golden_model_folders(set)) {
      const std::string name = std::filesystem::path(folder).filename().string();
      if (only != nullptr && name != only) continue;
      INFO(name);
      try {
        const std::string refusal = check_written(folder);
        if (refusal.empty()) ++num_written;
        if (std::getenv("TGI_SHOW") != nullptr) fmt::print("{}\t{}\n", name, refusal);
      } catch (const Error& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  CHECK(num_written > 0);
}

}  // namespace tgi
