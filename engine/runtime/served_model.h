// A model that is ready to answer: files, tokenizer, template, weights on a device, and its engine
// running. Made on any thread, takes seconds; afterwards every method is safe from any thread.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "engine/runtime/engine.h"
#include "engine/runtime/intake.h"
#include "engine/text/chat_template.h"
#include "ipc/protocol.h"

namespace tgi {

struct ModelOptions {
  std::string model = "demo";        // a folder, or "demo" for the one inside the executable
  std::string tokenizer_config;      // a file in place of the model's for the chat template; or ""
  std::string load_format = "auto";  // "auto", or "dummy": random weights from config.json alone
  std::string dtype =
      "auto";  // of the weights in memory: "auto" (the checkpoint's), "f32", "bf16", "f16"
  // "none", "int8", "int4": the layers' matrices, while loading; or the name of a storage format,
  // which the checkpoint must then have.
  std::string quantize = "none";
  int32_t quantize_group_size = 0;      // 0: the default of the kind
  std::string kv_cache_dtype = "auto";  // "auto" (the weights'), "f32", "bf16", "f16"
  std::string backend = "auto";  // "auto": cuda where there is a GPU, else cpu; "cuda", "cpu",
                                 // "reference": plain double-precision loops
  int32_t num_shard = 1;         // ranks that share the model by tensor parallelism
  // Bits of an answer don't depend on the batch; the cpu backend is so always.
  bool deterministic = false;
  double cuda_memory_fraction = 0.9;  // of a GPU's free memory, for the plan
  std::string cpu_isa = "auto";       // "auto", or one of available_isas()
  int32_t num_threads = 0;            // of all ranks; 0: one per physical core this process may
                                      // use
  bool pin_threads = false;           // each to one processor
  int32_t max_running = 64;           // sequences in a step
  int32_t max_batch_tokens = 512;     // token rows in a step
  double target_step_ms =
      200;  // with decodes running, prefill chunks shrink so that a step stays below; 0: off
  int32_t max_waiting = 8192;  // requests
  std::optional<int32_t> max_total_tokens;
  std::optional<int64_t> kv_cache_bytes;  // of all ranks together
  std::chrono::milliseconds slow_reader_timeout{30000};
  Limits limits;                     // max_total_tokens is filled in
  std::function<void()> on_failure;  // as in EngineOptions (optional)
  std::stop_token stop;              // ends a load with kCancelled (optional)
};

// What devices are asked to be for these; `dtype` is that of dense weights.
DeviceOptions device_options(const ModelOptions& options, DType dtype);
struct PreparedModel;

class ServedModel {
 public:
  // Throws what prepare_model throws (prepared_model.h).
  static void check(const ModelOptions& options);

  // Throws what prepare_model throws and, of what is prepared, kOutOfMemory when it does not fit
  // and kInvalidArgument for damaged numbers and files that can't be read to their end.
  static std::unique_ptr<ServedModel> load(const ModelOptions& options);
  static std::unique_ptr<ServedModel> load(std::unique_ptr<PreparedModel> prepared);

  Engine& engine() { return *engine_; }
  const Intake& intake() const { return *intake_; }
  const ModelOptions& options() const { return options_; }

  // How many alternatives of a token the device can report.
  int32_t max_top_tokens() const { return max_top_tokens_; }

  // With the counters of the engine as they are now.
  ipc::ModelStatus status() const;

 private:
  ServedModel() = default;

  ModelOptions options_;
  int32_t max_top_tokens_ = 0;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::unique_ptr<Intake> intake_;
  ipc::ModelStatus facts_;          // all but the engine's counters; constant after load
  std::unique_ptr<Engine> engine_;  // last: stops first
};

}  // namespace tgi
