#include "engine/quantize/quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/files/new_folder.h"
#include "engine/quantize/checkpoint_writer.h"
#include "engine/quantize/gguf/gguf_quantizer.h"
#include "engine/quantize/job_run.h"
#include "engine/quantize/layer_quantizer.h"

namespace tgi {
namespace {

// There is nothing of that name, or an empty folder.
const std::string& require_free_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_there = fs::exists(fs::symlink_status(folder, error));
  const bool is_empty = fs::is_directory(folder, error) && fs::is_empty(folder, error);
  if (is_there && !is_empty) throw is_taken(folder);
  return folder;
}

void check_options(const QuantizeOptions& options, const WeightEncoder& encoder) {
  if (options.group_size && *options.group_size < 1 && *options.group_size != -1) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("group size {}: expected a number of columns, or -1 for a scale per row",
                    *options.group_size));
  }
  if (options.group_size && *options.group_size > 0 && encoder.takes_floats) {
    throw Error(Code::kInvalidArgument, fmt::format("format {} has a scale per row; leave out the "
                                                    "group size {}",
                                                    encoder.name, *options.group_size));
  }
  if (!(options.damping > 0.0 && options.damping < 1.0)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("damping must be above 0 and below 1, got {}", options.damping));
  }
  if (options.act_order && encoder.method != QuantizeMethod::kGptq) {
    throw Error(Code::kInvalidArgument,
                fmt::format("act order is for gptq alone, not for {}", encoder.name));
  }
}

// The group size as EncodedModel has it: 0 is a row.
int32_t resolve_group_size(const QuantizeOptions& options,
                           const WeightEncoder& encoder,
                           const SourceModel& source) {
  if (options.group_size) return std::max(*options.group_size, 0);
  int32_t size = encoder.default_group_size;
  const auto divides_all = [&] {
    for (const LayerLinear& linear : kLayerLinears) {
      for (const LinearPart& part : linear.parts) {
        const TensorEntry* entry = source.find(part.weight, 0);
        if (entry != nullptr && entry->cols % size != 0) return false;
      }
    }
    return true;
  };
  while (size > 32 && !divides_all()) size /= 2;
  return size;
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
        encoder_(find_weight_encoder(options_.format)),
        source_((check_options(options_, encoder_), require_plain_layers(model.config), model),
                checkpoint),
        settings_({.group_size = resolve_group_size(options_, encoder_, source_),
                   .asymmetric = encoder_.writes_zero_points,
                   .dense_modules = {"lm_head"},
                   .damping = options_.damping,
                   .act_order = options_.act_order}),
        calibration_(read_calibration(options_.calibration, model.config, tokenizer)),
        folder_(require_free_folder(options_.folder)),
        writer_(source_, encoder_, settings_, folder_) {}

  QuantizeResult run() {
    run_.report("reading", 0);
    const std::unique_ptr<Device> device = run_.make_device();
    const int num_threads = std::max(1, device->info().num_threads);
    LayerRunner runner(model_, source_.checkpoint(), *device, calibration_.sequences, job_.stop);
    LayerQuantizer quantizer(runner, {.encoder = &encoder_,
                                      .settings = settings_,
                                      .model_dtype = model_.config.checkpoint_dtype,
                                      .num_threads = num_threads});
    LayerRunner::HiddenStates source_states = runner.embed();
    LayerRunner::HiddenStates states = source_states;
    writer_.write_outer();
    run_.begin_layers();
    for (int32_t layer = 0; layer < model_.config.num_layers; ++layer) {
      run_.report("layer", layer);
      LayerWeights& weights = runner.load_layer(layer);
      runner.run_layer(layer, source_states);
      LayerTensors tensors(source_, layer);
      const EncodedLayer encoded = quantizer.quantize(layer, weights, tensors, states);
      writer_.write_layer(layer, tensors, encoded);
      runner.run_layer(layer, states);
    }
    run_.report("comparing", model_.config.num_layers);
    const Fidelity fidelity = runner.compare(source_states, states, num_threads);
    check_fidelity(options_, fidelity);
    writer_.finish(job_.files, encoder_.quantization_config(settings_));
    run_.check_stop();
    job_.files.check_intact();
    if (!folder_.commit()) throw is_taken(options_.folder);
    return result(fidelity);
  }

 private:
  QuantizeResult result(const Fidelity& fidelity) const {
    return {.folder = options_.folder,
            .format = options_.format,
            .storage = std::string(encoder_.storage),
            .bits = encoder_.bits,
            .group_size = settings_.group_size,
            .calibration = calibration_.source,
            .num_sequences = static_cast<int64_t>(calibration_.sequences.size()),
            .num_tokens = calibration_.num_tokens,
            .fidelity = fidelity,
            .source_bytes = writer_.source_bytes(),
            .bytes = writer_.total_bytes(),
            .seconds = run_.seconds()};
  }

  const QuantizeJob& job_;
  const QuantizeOptions& options_;
  const LoadedConfig& model_;
  JobRun run_;
  const WeightEncoder& encoder_;
  const SourceModel source_;
  const EncodedModel settings_;
  const Calibration calibration_;
  NewFolder folder_;
  CheckpointWriter writer_;
};

}  // namespace

void check_fidelity(const QuantizeOptions& options, const Fidelity& fidelity) {
  const double growth = fidelity.changed_perplexity / fidelity.source_perplexity - 1.0;
  if (options.force || growth <= options.max_perplexity_growth) return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("the quantised model is much worse: perplexity {:.3f} where the source has "
                  "{:.3f} (+{:.0f} %, the limit is {:.0f} %), mean KL {:.4f}; nothing was "
                  "written. Use a smaller group size, another format or more bits, a text like "
                  "the ones that the model is for (--calibration), or --force",
                  fidelity.changed_perplexity, fidelity.source_perplexity, growth * 100.0,
                  options.max_perplexity_growth * 100.0, fidelity.mean_kl));
}

QuantizeResult quantize_checkpoint(const QuantizeJob& job,
                                   const LoadedConfig& model,
                                   const Checkpoint& checkpoint,
                                   const Tokenizer& tokenizer) {
  if (is_gguf_format(job.options.format)) {
    return quantize_checkpoint_to_gguf(job, model, checkpoint, tokenizer);
  }
  return Run(job, model, checkpoint, tokenizer).run();
}

QuantizeResult quantize_model(const QuantizeJob& job) {
  return made_of_intact(job.files, [&] {
    const LoadedConfig model = load_model_config(job.files);
    if (model.weight_format->is_quantised) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{} is quantised already (as {}); quantize the model that it was made "
                      "from",
                      job.options.model, model.weight_format->name));
    }
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(job.files);
    const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(job.files);
    return quantize_checkpoint(job, model, *checkpoint, *tokenizer);
  });
}

}  // namespace tgi
