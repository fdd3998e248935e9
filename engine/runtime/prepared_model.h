// A model that is about to be loaded: its files are open, and all that can be known before its
// weights are read has been checked. There is no other way to load one, so that a check ahead of a
// load and the load itself can't differ.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files/file_source.h"
#include "base/files/preset.h"
#include "engine/device/backend.h"
#include "engine/lora/adapter_files.h"
#include "engine/model/architecture.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/generation_rules.h"
#include "engine/runtime/load_ranks.h"
#include "engine/runtime/served_model.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "engine/vectors/vector_head.h"

namespace tgi {

struct PreparedModel {
  std::string asked_model;  // as it was named: heads stand for options.model, which they draft for
  ModelOptions options;
  std::string model_path;                // of its files, or "demo": of a preset that of its base
  std::shared_ptr<const Preset> preset;  // (optional) where options.model is one
  std::unique_ptr<FileSource> files;
  std::unique_ptr<FileSource> adapter_files;  // (optional) of what is merged into the weights
  AdapterFiles adapter;
  std::string own_adapter;  // of requests that name none; "": none
  LoadedConfig loaded;
  GenerationRules rules;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  Backend* backend = nullptr;
  LoadRanksOptions ranks;
  std::unique_ptr<FileSource> speculator_files;   // (optional) of settings.speculator
  std::string drafter_name;                       // "": none
  std::unique_ptr<PreparedDrafter> drafter;       // (optional)
  std::shared_ptr<const VectorHead> vector_head;  // (optional) of a model that gives vectors
  std::string speculation_off;  // why nothing is drafted although it was asked for
  double seconds = 0;           // that this took

  // What the settings say of it; nothing: the model's files do.
  std::optional<PoolingMode> pooling() const;

  // Each rank opens its own; references this.
  OpenCheckpoint open_checkpoint_of() const;
};

// Reads everything but the weights' numbers, takes nothing of a device. Throws an Error of every
// kind naming what is wrong: settings, files, the tensors' names, shapes and types, what the
// backend has no kernels for, cuts that don't come out even.
std::unique_ptr<PreparedModel> prepare_model(const ModelOptions& options);

// Of its KV cache, what no block that is used or cached stands in: an estimate from above, for a
// block that was used once keeps its memory.
int64_t untouched_kv_bytes(const ipc::ModelStatus& status);

// What of the memory that `model` will take comes free when `serving` gives way. Of memory that is
// shared, with `is_certain`, only what is surely taken: not the KV cache that no token has touched.
GivenBack given_back_by(const ServedModel& serving, const PreparedModel& model, bool is_certain);

// Whether it will fit when all of that is free. Throws and returns what check_ranks does.
int32_t check_fits(const PreparedModel& model, std::span<const GivenBack> given_back);

}  // namespace tgi
