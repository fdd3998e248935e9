#include "engine/lora/write_merged.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/new_folder.h"
#include "base/files/safetensors_writer.h"
#include "engine/lora/adapter_files.h"
#include "engine/lora/merged_weights.h"
#include "engine/model/weight_check.h"
#include "engine/weights/side_files.h"

namespace tgi {
namespace {

void write_weights(const Checkpoint& weights,
                   const ShardPlan& plan,
                   const NewFolder& folder,
                   const std::stop_token& stop) {
  for (const ShardPlan::Shard& shard : plan.shards) {
    SafetensorsWriter writer(folder.file(shard.file), shard.entries);
    for (const TensorHeader& entry : shard.entries) {
      if (stop.stop_requested()) {
        throw Error(Code::kCancelled, "the merge of the adapter was given up");
      }
      const StoredTensor& tensor = *weights.find(entry.name);
      writer.append(weights.bytes(tensor));
      weights.release(tensor);
    }
    writer.finish();
  }
  if (plan.shards.size() > 1) {
    write_text_file(folder, "model.safetensors.index.json", plan.index_json().dump(2) + "\n");
  }
}

}  // namespace

int64_t write_merged_model(const FileSource& base,
                           const FileSource& adapter,
                           const std::string& folder,
                           int num_threads,
                           const std::stop_token& stop) {
  const LoadedConfig model = load_model_config(base);
  auto tensors = open_checkpoint(base);
  check_weights(model, *tensors);
  const AdapterFiles opened = open_adapter(adapter, model, tensors.get());
  const MergedWeights weights(std::move(tensors), opened, model, num_threads);
  std::vector<TensorHeader> headers;
  for (const std::string_view name : weights.names()) {
    const StoredTensor& tensor = *weights.find(name);
    headers.push_back({tensor.name, std::string(tensor.dtype_name), tensor.shape});
  }
  const ShardPlan plan = plan_shards(std::move(headers), kDefaultShardBytes);
  NewFolder out(folder);
  out.require_space(plan.total_bytes + (int64_t{16} << 20));
  write_weights(weights, plan, out, stop);
  write_text_file(out, "config.json", base.require_text("config.json"));
  copy_side_files(base, out);
  base.check_intact();
  adapter.check_intact();
  if (!out.commit()) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: the folder is there already", folder));
  }
  return plan.total_bytes;
}

}  // namespace tgi
