#include "engine/quantize/gguf/gguf_quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/new_file.h"
#include "engine/gguf/gguf_source.h"
#include "engine/model/weight_layout.h"
#include "engine/quantize/awq.h"
#include "engine/quantize/gguf/file_plan.h"
#include "engine/quantize/gguf/tensor_encoder.h"
#include "engine/quantize/gguf/type_mix.h"
#include "engine/quantize/job_run.h"

namespace tgi {
namespace {

const std::string& require_free_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) throw is_taken(path);
  return path;
}

void check_options(const QuantizeOptions& options) {
  const auto refuse = [&](const char* flag) {
    throw Error(Code::kInvalidArgument, fmt::format("{} is not for format {}: the blocks of GGUF "
                                                    "types say it",
                                                    flag, options.format));
  };
  if (options.group_size) refuse("a group size");
  if (options.act_order) refuse("act order");
}

// "TinyLlama-1.1B" of ".../TinyLlama-1.1B", for people.
std::string name_of_model(const std::string& model) {
  const std::string name = std::filesystem::path(model).lexically_normal().filename().string();
  return name.empty() ? model : name;
}

class Run {
 public:
  Run(const QuantizeJob& job,
      const LoadedConfig& model,
      const Checkpoint& checkpoint,
      const Tokenizer& tokenizer)
      : job_(job),
        options_(job.options),
        model_(model),
        run_(job, model.config.num_layers),
        format_(*find_gguf_format(options_.format)),
        source_((check_options(options_), model), checkpoint),
        plan_(plan_gguf_file(source_, job.files, tokenizer, name_of_model(options_.model))),
        mix_(format_, model.config, plan_),
        can_run_(has_plain_layers(model.config)),
        file_(require_free_file(options_.folder)) {
    // Whoever gives a text wants to hear that it is of no use.
    if (can_run_) {
      calibration_ = read_calibration(options_.calibration, model.config, tokenizer);
    } else if (!options_.calibration.file.empty()) {
      throw Error(Code::kUnsupported,
                  "models with experts, states, latent attention, rows for each layer or layers "
                  "whose heads differ are written to GGUF files without a calibration text so far; "
                  "leave out --calibration");
    }
    plan_.fields.put_integer("general.file_type", format_.file_type);
    for (const GgufTensorPlan& tensor : plan_.tensors) {
      headers_.push_back(
          {.name = tensor.name, .type = &mix_.type_of(tensor), .shape = tensor.shape});
    }
  }

  QuantizeResult run() {
    run_.report("reading", 0);
    const std::unique_ptr<Device> device = run_.make_device();
    num_threads_ = std::max(1, device->info().num_threads);
    GgufWriter writer(file_, plan_.fields, headers_);
    std::optional<LayerRunner> runner;
    LayerRunner::HiddenStates states(0, 0);
    if (can_run_) {
      runner.emplace(model_, source_.checkpoint(), *device, calibration_.sequences, job_.stop);
      states = runner->embed();
    }
    write_tensors(writer, runner ? &*runner : nullptr, states);
    writer.finish();
    run_.report("comparing", model_.config.num_layers);
    Fidelity fidelity;
    if (runner) fidelity = compare(*runner, states);
    run_.check_stop();
    job_.files.check_intact();
    if (!file_.commit()) throw is_taken(options_.folder);
    return result(fidelity, writer.total_bytes());
  }

 private:
  static int32_t layer_of(const GgufTensorPlan& tensor) {
    return tensor.sources.empty() ? -1 : tensor.sources.front()->layer;
  }

  // In the order of the plan, which goes layer by layer.
  void write_tensors(GgufWriter& writer, LayerRunner* runner, LayerRunner::HiddenStates& states) {
    const TensorEncoder encoder{.source = source_, .num_threads = num_threads_};
    ColumnImportance importance;
    int32_t layer = -1;
    run_.begin_layers();
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      run_.check_stop();
      const GgufTensorPlan& tensor = plan_.tensors[i];
      if (const int32_t next = layer_of(tensor); next > layer) {
        layer = next;
        run_.report("layer", layer);
        importance.clear();
        if (runner != nullptr) importance = see_layer(*runner, layer, states);
      }
      encoder.encode(tensor, *headers_[i].type, importance,
                     [&](std::span<const std::byte> bytes) { writer.append(bytes); });
    }
  }

  // What goes into each matrix of the layer; `states` go on to the next one.
  ColumnImportance see_layer(LayerRunner& runner,
                             int32_t layer,
                             LayerRunner::HiddenStates& states) const {
    constexpr int64_t kNoSample = 1;
    LayerWeights& weights = runner.load_layer(layer);
    std::vector<InputStatistics> inputs;
    std::vector<LayerRunner::Tap> taps;
    for (const LayerLinear& linear : kLayerLinears) {
      inputs.emplace_back((weights.*linear.target).weight->cols, runner.num_tokens(), kNoSample);
    }
    for (size_t i = 0; i < kLayerLinears.size(); ++i) {
      taps.push_back({.w = (weights.*kLayerLinears[i].target).weight.get(),
                      .see = [&input = inputs[i]](const Tensor& x) { input.add(x); }});
    }
    runner.see_inputs(layer, states, std::move(taps));
    runner.run_layer(layer, states);
    ColumnImportance out;
    for (size_t i = 0; i < kLayerLinears.size(); ++i) {
      for (const LinearPart& part : kLayerLinears[i].parts) {
        const TensorEntry* entry = source_.find(part.weight, layer);
        if (entry != nullptr) out[entry] = inputs[i].mean_square();
      }
    }
    return out;
  }

  // The file is read as any other model is.
  Fidelity compare(LayerRunner& source, const LayerRunner::HiddenStates& states) {
    const std::unique_ptr<FileSource> files = open_gguf(file_.path());
    const LoadedConfig written = load_model_config(*files);
    const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(*files);
    const std::unique_ptr<Device> device = run_.make_device();
    LayerRunner runner(written, *checkpoint, *device, calibration_.sequences, job_.stop);
    LayerRunner::HiddenStates changed = runner.embed();
    for (int32_t layer = 0; layer < written.config.num_layers; ++layer) {
      (void)runner.load_layer(layer);
      runner.run_layer(layer, changed);
    }
    const Fidelity fidelity = compare_runs(source, states, runner, changed, num_threads_);
    check_fidelity(options_, fidelity);
    return fidelity;
  }

  QuantizeResult result(const Fidelity& fidelity, int64_t bytes) const {
    int64_t source_bytes = 0;
    for (const TensorEntry& entry : source_.table().entries()) {
      source_bytes +=
          static_cast<int64_t>(source_.checkpoint().bytes(source_.stored(entry)).size());
    }
    return {.folder = options_.folder,
            .format = options_.format,
            .storage = std::string(format_.storage),
            .bits = format_.bits,
            .group_size = static_cast<int32_t>(find_ggml_type(format_.type)->integers.group_size),
            .calibration = calibration_.source,
            .num_sequences = static_cast<int64_t>(calibration_.sequences.size()),
            .num_tokens = calibration_.num_tokens,
            .fidelity = fidelity,
            .source_bytes = source_bytes,
            .bytes = bytes,
            .seconds = run_.seconds()};
  }

  const QuantizeJob& job_;
  const QuantizeOptions& options_;
  const LoadedConfig& model_;
  JobRun run_;
  const GgufFormat& format_;
  const SourceModel source_;
  GgufFilePlan plan_;
  const TypeMix mix_;
  const bool can_run_;
  Calibration calibration_;
  std::vector<GgufTensorHeader> headers_;
  int num_threads_ = 1;
  NewFile file_;
};

}  // namespace

bool is_gguf_format(std::string_view name) {
  return find_gguf_format(name) != nullptr;
}

QuantizeResult quantize_checkpoint_to_gguf(const QuantizeJob& job,
                                           const LoadedConfig& model,
                                           const Checkpoint& checkpoint,
                                           const Tokenizer& tokenizer) {
  return Run(job, model, checkpoint, tokenizer).run();
}

}  // namespace tgi
