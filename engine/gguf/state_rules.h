// What architectures with layers that carry a state (Mamba 1 and 2) share: their fields and
// tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

// Names of the fields of config.json; an empty one is not written.
struct StateFields {
  std::string num_heads{};
  std::string head_dim{};
  std::string state_size{};
  std::string num_groups{};
  std::string conv_kernel{};
  std::string conv_bias{};
  std::string in_bias{};
  std::string out_bias{};
};

// Those of Mamba 2 among layers of attention.
StateFields hybrid_state_fields();

// Throw kInvalidArgument without the sizes, or where heads are not whole.
void read_mamba2_state(ModelReader& model, const StateFields& fields);
void read_mamba1_state(ModelReader& model, const StateFields& fields, const char* rank_field);

double state_expansion(ModelReader& model);  // its width in hidden sizes

// `mixer`: "backbone.layers.{layer}.mixer". REQUIRES: model.config has hidden_size.
void name_mamba2(ModelReader& model, const std::string& mixer);
void name_mamba1(ModelReader& model, const std::string& mixer);
// Around layers that are mixers alone, and the name of those.
void name_backbone(ModelReader& model);
inline constexpr const char* kBackboneMixer = "backbone.layers.{layer}.mixer";
// Around layers of a mixer and an MLP, and that MLP; not the norm before it.
void name_hybrid_block(ModelReader& model);

// Layers with another number of heads than 0 have attention: which. Writes heads as read_heads
// does. Throws kUnsupported where those that have some have not as many.
std::vector<bool> read_heads_of_layers(ModelReader& model);

// Layers offset, offset + period and so on of those that `is_in` says. Throws kUnsupported naming
// `what` for others.
struct Stride {
  int64_t period = 1;
  int64_t offset = 0;
};
Stride stride_of(const std::vector<bool>& is_in, const std::string& what);

}  // namespace tgi::gguf
