// What can draft for a model, and one of them that is about to be loaded. To add a kind: its file,
// which defines a DrafterKind, and a line in the list of drafter_kinds.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/device/backend.h"
#include "engine/draft/drafter.h"
#include "engine/model/architecture.h"
#include "engine/model/reported_rows.h"
#include "engine/text/tokenizer.h"
#include "ipc/model_settings.h"

namespace tgi {

// What is known when a kind is chosen, before any weight is read. All of it outlives the choice.
struct AskedDrafter {
  const ipc::ModelSettings& settings;
  const LoadedConfig& model;   // that is drafted for
  const Tokenizer& tokenizer;  // its
  Backend& backend;
  DeviceOptions device;                     // as the model's
  DType dtype = DType::kBF16;               // of matrices
  DType kv_dtype = DType::kBF16;            // of a KV cache
  const FileSource* files = nullptr;        // (optional) of settings.speculator
  const Json* config = nullptr;             // its config.json
  const FileSource* model_files = nullptr;  // of the model; outlive the drafter's load
};

struct DrafterSizes {
  int32_t max_running = 0;       // sequences in a step
  int32_t max_batch_tokens = 0;  // token rows in a step
  int32_t max_total_tokens = 0;  // of a sequence
  int32_t block_size = 16;       // tokens
  int32_t num_blocks = 0;        // of the model's KV cache
  int32_t num_groups = 1;        // of them a block of tokens has one for each
};

// Of the memory of rank 0.
struct DrafterBytes {
  int64_t weights = 0;
  int64_t workspace = 0;
  int64_t block = 0;  // of KV cache, beside each of the model's
};

// The model that is drafted for, loaded.
struct DraftedModel {
  DrafterSizes sizes;
  // Of rank 0's device; outlive the drafter.
  const Matrix* lm_head = nullptr;
  const Tensor* lm_head_bias = nullptr;  // (optional)
  const Matrix* token_embedding = nullptr;
  std::stop_token stop{};  // ends a load with kCancelled
};

// A drafter of which all is checked that can be without its weights' numbers.
class PreparedDrafter {
 public:
  virtual ~PreparedDrafter() = default;

  // Of a step of a sequence: what it can draft, and what it does when nobody says.
  virtual int32_t most_drafts() const = 0;
  virtual int32_t usual_drafts() const { return most_drafts(); }
  // As Drafter's.
  virtual bool reads_hidden() const { return false; }
  // What it reads of all of a text. (optional: nothing)
  virtual ReportedRows reported_rows() const { return {}; }
  // What it will take of such a device. (optional: nothing)
  virtual DrafterBytes bytes(const Device& /*device*/, const DrafterSizes& /*sizes*/) const {
    return {};
  }
  // Throws kInvalidArgument for damaged files, kOutOfMemory, kCancelled.
  virtual std::unique_ptr<Drafter> load(const DraftedModel& model) = 0;
};

struct DrafterKind {
  std::string_view name;  // as it is shown: "n-gram"
  bool (*is_asked)(const AskedDrafter& asked);
  // Throws an Error naming what is wrong with the files, or does not fit the model.
  std::unique_ptr<PreparedDrafter> (*prepare)(const AskedDrafter& asked);
};

// The first that is asked for is taken.
std::span<const DrafterKind* const> drafter_kinds();

}  // namespace tgi
