// Writes the whole distribution after every token of given texts, for scripts/bench/bench_quality:
// what quantising a model costs is seen there and not in a few greedy tokens. Runs the real forward
// pass on the CPU backend or on the reference, without daemon, scheduler or tokenizer.
//
// The input has one text in each line: token ids with spaces between. The output is raw float32,
// (tokens of all texts, vocab): natural log-probabilities, which are logits up to a constant of the
// row. Standard output gets the bytes of the weights that decoding a token reads.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/gguf/model_files.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/model/state_layout.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/worker.h"
#include "engine/weights/checkpoint.h"

namespace tgi {
namespace {

constexpr int32_t kBlockSize = 16;
constexpr int32_t kRowsPerStep = 64;  // each brings a whole distribution

struct Options {
  std::string model;
  std::string input;
  std::string output;
  std::string quantize = "none";
  int32_t group_size = 0;
  std::string dtype = "bf16";
  std::string kv_dtype = "bf16";
  std::string isa = "auto";
  int num_threads = 0;
  bool is_reference = false;
};

using Text = std::vector<int32_t>;

std::vector<Text> read_texts(const std::string& path, int32_t vocab_size) {
  std::ifstream file(path);
  if (!file) throw Error(Code::kNotFound, fmt::format("{}: no such file", path));
  std::vector<Text> texts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Text text;
    for (int32_t id = 0; words >> id;) {
      if (id < 0 || id >= vocab_size) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: token id {}, the model has {}", path, id, vocab_size));
      }
      text.push_back(id);
    }
    if (!words.eof()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: line {} is not token ids", path, texts.size() + 1));
    }
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

LoadWeightsOptions weights_options(const Options& options) {
  LoadWeightsOptions out;
  out.dtype = options.dtype == "f32" ? DType::kF32 : DType::kBF16;
  for (const auto kind : {Quantization::kInt8, Quantization::kInt4}) {
    if (quantization_name(kind) == options.quantize) out.quantization = kind;
  }
  out.group_size = options.group_size;
  return out;
}

std::vector<std::string> names_of_types() {
  std::vector<std::string> out;
  for (const DType dtype : kDTypes) out.emplace_back(dtype_name(dtype));
  return out;
}

DType cache_type(const Options& options) {
  return *std::ranges::find(kDTypes, options.kv_dtype, dtype_name);
}

std::unique_ptr<Worker> make_worker(const Options& options,
                                    const FileSource& files,
                                    const LoadedConfig& model,
                                    int32_t num_blocks) {
  const ModelConfig& config = model.config;
  const LoadWeightsOptions how = weights_options(options);
  auto device = options.is_reference
                    ? make_reference_device()
                    : make_cpu_device({.isa = options.isa, .num_threads = options.num_threads});
  const auto checkpoint = open_checkpoint(files);
  ModelWeights weights = load_weights(model, *checkpoint, *device, how);
  fmt::print("{}\n", weights.streamed_bytes_per_token);
  allocate_state(*device, config, one_kv_group(config),
                 {.num_blocks = num_blocks,
                  .block_size = kBlockSize,
                  .kv_dtype = cache_type(options),
                  .num_slots = 1,
                  .max_blocks_per_slot = num_blocks,
                  .max_batch_tokens = kRowsPerStep});
  return std::make_unique<Worker>(config, std::move(device), std::move(weights),
                                  std::make_unique<NullCommunicator>(), one_kv_group(config),
                                  kRowsPerStep);
}

// Tokens [begin, end) of a text; the ones before it are in the cache already.
void fill_batch(Batch& batch, const Text& text, int32_t begin, int32_t end, int32_t vocab_size) {
  batch.clear();
  if (begin == 0) {
    SamplingParams sampling;
    sampling.top_n_tokens = vocab_size;
    batch.slot_starts.push_back({.slot = 0,
                                 .sampling = sampling,
                                 .token_ids = text,
                                 .num_prompt_tokens = static_cast<int32_t>(text.size())});
  }
  for (int32_t i = begin; i < end; ++i) {
    if (i % kBlockSize == 0) {
      batch.block_appends.push_back({.slot = 0, .index = i / kBlockSize, .block = i / kBlockSize});
    }
    batch.token_ids.push_back(text[static_cast<size_t>(i)]);
    batch.positions.push_back(i);
    batch.sample_rows.push_back({.row = i - begin, .slot = 0, .position = i + 1});
  }
  batch.slots.push_back(0);
  batch.cu_seqlens_q.push_back(end - begin);
  batch.context_lens.push_back(end);
}

void write_rows(const StepResult& result, int32_t vocab_size, std::ofstream& out) {
  std::vector<float> row(static_cast<size_t>(vocab_size));
  for (const SampledToken& sampled : result.sampled) {
    TGI_CHECK(sampled.top_tokens.size() == row.size());
    for (const TokenScore& token : sampled.top_tokens)
      row[static_cast<size_t>(token.id)] = token.logprob;
    out.write(reinterpret_cast<const char*>(row.data()),
              static_cast<std::streamsize>(row.size() * sizeof(float)));
  }
}

void dump_logits(const Options& options) {
  const auto files =
      options.model == kDemoModel ? open_demo_model() : open_model_files(options.model);
  const LoadedConfig model = load_model_config(*files);
  if (model.config.gives_vectors) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: gives vectors of texts, not logits of tokens", options.model));
  }
  const int32_t vocab_size = model.config.vocab_size;
  const std::vector<Text> texts = read_texts(options.input, vocab_size);
  size_t longest = 1;
  for (const Text& text : texts) longest = std::max(longest, text.size());
  const auto num_blocks = static_cast<int32_t>(longest) / kBlockSize + 1;
  const auto worker = make_worker(options, *files, model, num_blocks);
  std::ofstream out(options.output, std::ios::binary);
  Batch batch;
  for (const Text& text : texts) {
    const auto length = static_cast<int32_t>(text.size());
    for (int32_t begin = 0; begin < length; begin += kRowsPerStep) {
      fill_batch(batch, text, begin, std::min(begin + kRowsPerStep, length), vocab_size);
      write_rows(run_step(*worker, batch), vocab_size, out);
    }
  }
  out.close();
  if (!out) throw Error(Code::kInternal, fmt::format("{}: can't be written", options.output));
}

}  // namespace
}  // namespace tgi

int main(int argc, char** argv) {
  tgi::Options options;
  CLI::App app("Writes log-probabilities after every token; see scripts/bench/bench_quality");
  app.add_option("model", options.model, "a Hugging Face folder, a GGUF file, or \"demo\"")
      ->required();
  app.add_option("input", options.input, "token ids, a text in each line")->required();
  app.add_option("output", options.output, "float32, (tokens, vocab)")->required();
  app.add_option("--quantize", options.quantize)->check(CLI::IsMember({"none", "int8", "int4"}));
  app.add_option("--group-size", options.group_size, "0: the default of the kind");
  app.add_option("--dtype", options.dtype)->check(CLI::IsMember({"bf16", "f32"}));
  app.add_option("--kv-cache-dtype", options.kv_dtype)->check(CLI::IsMember(tgi::names_of_types()));
  app.add_option("--cpu-isa", options.isa);
  app.add_option("--threads", options.num_threads);
  app.add_flag("--reference", options.is_reference,
               "plain loops, from the exact values of weights");
  CLI11_PARSE(app, argc, argv);
  try {
    tgi::dump_logits(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "dump_logits: {}\n", error.what());
    return 1;
  }
  return 0;
}
