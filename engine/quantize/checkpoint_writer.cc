#include "engine/quantize/checkpoint_writer.h"

#include <fmt/format.h>

#include <set>
#include <span>

#include "base/error.h"
#include "engine/weights/side_files.h"

namespace tgi {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

std::string module_of(const std::string& name) {
  return name.ends_with(kWeightSuffix) ? name.substr(0, name.size() - kWeightSuffix.size()) : name;
}

std::string array_name(const StoredTensor& tensor, const std::string& suffix) {
  return module_of(tensor.name) + "." + suffix;
}

}  // namespace

CheckpointWriter::CheckpointWriter(const SourceModel& source,
                                   const WeightEncoder& encoder,
                                   const EncodedModel& settings,
                                   const NewFolder& folder)
    : source_(source), encoder_(encoder), settings_(settings), folder_(folder) {
  check_modules();
  describe();
  folder_.require_space(plan_.total_bytes + (int64_t{16} << 20));
}

// In a dense checkpoint a matrix is transposed when transformers holds it in a Conv1D. In a format
// that it reads into Linear modules only, it would not find the matrix and go on with random ones.
void CheckpointWriter::check_modules() const {
  if (encoder_.takes_conv1d) return;
  for (const TensorEntry& entry : source_.table().entries()) {
    if (!entry.spec->transposed) continue;
    std::string others;
    for (const WeightEncoder* other : weight_encoders()) {
      if (other->takes_conv1d)
        others += fmt::format("{}{}", others.empty() ? "" : ", ", other->name);
    }
    throw Error(Code::kUnsupported,
                fmt::format("format {} does not suit this model: {} is the weight of a Conv1D, and "
                            "transformers reads {} into Linear modules only; use --format {}, or "
                            "leave the model as it is and load it with --quantize",
                            encoder_.name, source_.stored(entry).name, encoder_.storage, others));
  }
}

void CheckpointWriter::describe() {
  const ModelConfig& config = source_.model().config;
  std::vector<TensorHeader> headers;
  std::set<const StoredTensor*> of_layers;
  for (const TensorEntry& entry : source_.table().entries()) {
    if (entry.layer >= 0) of_layers.insert(&source_.stored(entry));
  }
  const auto add = [&](const StoredTensor& tensor) {
    headers.push_back({tensor.name, std::string(tensor.dtype_name), tensor.shape});
  };
  for (const std::string_view name : source_.checkpoint().names()) {
    const StoredTensor* tensor = source_.checkpoint().find(name);
    source_bytes_ +=
        TensorHeader{tensor->name, std::string(tensor->dtype_name), tensor->shape}.bytes();
    if (of_layers.contains(tensor)) continue;
    outer_.push_back(tensor);
    add(*tensor);
  }
  std::string problems;
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    for (const LayerLinear& linear : kLayerLinears) {
      for (const LinearPart& part : linear.parts) {
        const TensorEntry* entry = source_.find(part.weight, layer);
        if (entry == nullptr) continue;
        const StoredTensor& tensor = source_.stored(*entry);
        try {
          const auto arrays =
              encoder_.describe({.rows = entry->rows,
                                 .cols = entry->cols,
                                 .group_size = group_size_for(settings_.group_size, entry->cols),
                                 .asymmetric = settings_.asymmetric,
                                 .model_dtype = config.checkpoint_dtype});
          for (const EncodedArray& array : arrays) {
            headers.push_back({array_name(tensor, array.suffix), array.dtype, array.shape});
          }
        } catch (const Error& error) {
          // Layers are alike: the first one says it for all.
          if (layer == 0) problems += fmt::format("\n  {}: {}", tensor.name, error.what());
        }
      }
    }
    for (const TensorEntry& entry : source_.table().entries()) {
      if (entry.layer == layer && entry.is_vector()) add(source_.stored(entry));
    }
  }
  if (!problems.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("format {} does not suit this model:{}", encoder_.name, problems));
  }
  plan_ = plan_shards(std::move(headers), kDefaultShardBytes);
}

void CheckpointWriter::append(std::string_view name, std::span<const std::byte> bytes) {
  if (writer_ != nullptr && entry_ == plan_.shards[shard_].entries.size()) {
    writer_->finish();
    writer_.reset();
    ++shard_;
    entry_ = 0;
  }
  TGI_CHECK(shard_ < plan_.shards.size());
  const ShardPlan::Shard& shard = plan_.shards[shard_];
  if (writer_ == nullptr) {
    writer_ = std::make_unique<SafetensorsWriter>(folder_.file(shard.file), shard.entries);
  }
  TGI_CHECK(shard.entries[entry_].name == name);
  TGI_CHECK(shard.entries[entry_].bytes() == static_cast<int64_t>(bytes.size()));
  writer_->append(bytes);
  ++entry_;
}

void CheckpointWriter::copy(const StoredTensor& tensor) {
  append(tensor.name, source_.checkpoint().bytes(tensor));
  source_.checkpoint().release(tensor);
}

void CheckpointWriter::write_outer() {
  for (const StoredTensor* tensor : outer_) copy(*tensor);
}

void CheckpointWriter::write_layer(int32_t layer,
                                   LayerTensors& tensors,
                                   const std::map<Role, std::vector<EncodedArray>>& matrices) {
  for (const LayerLinear& linear : kLayerLinears) {
    for (const Role role : tensors.roles_of(linear)) {
      const StoredTensor& tensor = source_.stored(*tensors.find(role));
      for (const EncodedArray& array : matrices.at(role)) {
        append(array_name(tensor, array.suffix), array.bytes);
      }
    }
  }
  for (const TensorEntry& entry : source_.table().entries()) {
    if (entry.layer != layer || !entry.is_vector()) continue;
    const StoredTensor& tensor = source_.stored(entry);
    if (tensors.is_changed(entry.spec->role)) {
      append(tensor.name, encode_floats_as(*tensors.vector(entry.spec->role), *tensor.dtype));
    } else {
      copy(tensor);
    }
  }
}

void CheckpointWriter::finish(const FileSource& files, const Json& quantization_config) {
  TGI_CHECK(writer_ != nullptr && shard_ + 1 == plan_.shards.size() &&
            entry_ == plan_.shards.back().entries.size());
  writer_->finish();
  writer_.reset();
  if (plan_.shards.size() > 1) {
    write_text_file(folder_, "model.safetensors.index.json", plan_.index_json().dump(2) + "\n");
  }
  // The members keep their order.
  auto config = nlohmann::ordered_json::parse(files.require_text("config.json"));
  config["quantization_config"] = nlohmann::ordered_json::parse(quantization_config.dump());
  write_text_file(folder_, "config.json", config.dump(2) + "\n");
  copy_side_files(files, folder_);
}

}  // namespace tgi
