// A model that is ready to answer: files, tokenizer, template, weights on a device, and its engine
// running. Made on any thread, takes seconds; afterwards every method is safe from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/files/preset.h"
#include "engine/runtime/adapter_store.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/guide_compiler.h"
#include "engine/runtime/intake.h"
#include "engine/runtime/vector_intake.h"
#include "engine/text/chat_template.h"
#include "ipc/model_settings.h"
#include "ipc/protocol.h"

namespace tgi {

struct ModelOptions : ipc::ModelSettings {
  // A folder, a GGUF file, a preset (base/files/preset_files.h), or "demo" for the one inside the
  // executable.
  std::string model = "demo";
  std::string name;                  // by which requests ask for it (optional)
  std::function<void()> on_failure;  // as in EngineOptions (optional)
  std::stop_token stop;              // ends a load with kCancelled (optional)
  int64_t promised_bytes = 0;        // as in LoadRanksOptions
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
  AdapterStore& adapters() { return *adapters_; }

  // Null where the model draws tokens.
  const VectorIntake* vectors() const { return vectors_.get(); }
  // Each text as a request, with the adapter that is asked for. Throws what VectorIntake throws,
  // and kAdapter; kInvalidArgument where the model is for another task.
  std::vector<std::unique_ptr<Request>> prepare_texts(std::string_view method,
                                                      const ipc::VectorParams& asked);

  // As Intake's, with the adapter that is asked for. Throws what it throws, and kAdapter;
  // kCancelled when `stop` ends a merge of adapters.
  std::unique_ptr<Request> prepare(const ipc::GenerateRequest& asked, std::stop_token stop = {});

  // As Intake's; a chat with what the model's preset puts before it.
  ipc::TokenizeResult tokenize(const ipc::TokenizeParams& asked) const;

  ipc::AdapterList list_adapters() const;

  const GuideCompiler& guides() const { return *guides_; }
  const ModelOptions& options() const { return options_; }

  // How many alternatives of a token the device can report.
  int32_t max_top_tokens() const { return max_top_tokens_; }

  // With the counters of the engine as they are now.
  ipc::ModelStatus status() const;

 private:
  ServedModel() = default;

  template <typename Asked>
  std::shared_ptr<const HostAdapter> adapter_of(const Asked& asked);
  void require_task(std::string_view method, bool fits) const;
  void load_own_adapter(const std::string& path);

  ModelOptions options_;
  int32_t max_top_tokens_ = 0;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::shared_ptr<const Preset> preset_;  // (optional)
  std::unique_ptr<GuideCompiler> guides_;
  std::jthread warming_guides_;  // uses guides_; ends by itself
  std::unique_ptr<Intake> intake_;
  std::shared_ptr<const VectorHead> vector_head_;  // (optional)
  std::unique_ptr<VectorIntake> vectors_;          // (optional)
  ipc::ModelStatus facts_;  // all but the engine's counters; constant after load
  std::unique_ptr<AdapterStore> adapters_;
  std::shared_ptr<const HostAdapter> own_adapter_;  // (optional) of requests that name none
  std::unique_ptr<Engine> engine_;                  // last: stops first
};

}  // namespace tgi
