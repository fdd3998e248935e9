#include "engine/model/dim_sizes.h"

#include "base/error.h"

namespace tgi {
namespace {

int64_t tokens_per_entry(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].tokens_per_entry;
}

// Of a token, where an entry has `size` numbers.
int64_t entry_values(const ModelConfig& config, int32_t layer, int64_t size) {
  return config.layers[static_cast<size_t>(layer)].entries_overlap ? 2 * size : size;
}

}  // namespace

int64_t dim_size(Dim dim, const ModelConfig& config, int32_t layer) {
  const StateConfig& state = config.state;
  const KvHeads kv = kv_heads_of(config, layer);
  const int64_t head_dim = kv.head_dim;
  const int64_t num_heads = num_heads_of(config, layer);
  switch (dim) {
    case Dim::kOne:
    case Dim::kOneRow:
      return 1;
    case Dim::kVocab:
      return config.vocab_size;
    case Dim::kImagesVocab:
      return int64_t{config.vocab_size} + config.unread_rows;
    case Dim::kHeadVocab:
      return head_vocab_rows(config);
    case Dim::kDistanceBiases:
      return int64_t{config.distance_buckets} * config.num_heads;
    case Dim::kTaskTypes:
      return config.num_task_types;
    case Dim::kDistanceKinds:
      return config.distances.num_kinds;
    case Dim::kTokenTypes:
      return config.num_token_types;
    case Dim::kLayerInputVocab:
      return config.layer_inputs.vocab_size;
    case Dim::kLayerInput:
      return config.layer_inputs.size;
    case Dim::kLayerInputs:
      return int64_t{config.num_layers} * config.layer_inputs.size;
    case Dim::kStreams:
      return config.streams.count;
    case Dim::kStreamPredictions:
      return int64_t{config.streams.count} * config.streams.count * config.streams.count;
    case Dim::kStreamCorrections:
      return int64_t{config.streams.count} * config.streams.count;
    case Dim::kLaurelRank:
      return config.laurel_rank;
    case Dim::kPositions:
      return int64_t{config.position_offset} + config.max_positions;
    case Dim::kHidden:
      return config.hidden_size;
    case Dim::kEmbedding:
      return embedding_cols(config);
    case Dim::kAttentionInput:
      return attention_input_cols(config);
    case Dim::kIntermediate:
      return intermediate_size_of(config, layer);
    case Dim::kGateUp:
    case Dim::kUpGate:
      return int64_t{2} * intermediate_size_of(config, layer);
    case Dim::kQ:
      return num_heads * head_dim;
    case Dim::kKv:
    case Dim::kPairedValues:
      return kv.key_numbers();
    case Dim::kValues:
      return kv.value_numbers();
    case Dim::kQkv:
    case Dim::kQkvByKvHead:
    case Dim::kQByHead:
    case Dim::kKByHead:
    case Dim::kVByHead:
    case Dim::kQvkByQuarter:
      return num_heads * head_dim + kv.key_numbers() + kv.value_numbers();
    case Dim::kHeadDim:
      return head_dim;
    case Dim::kHeads:
      return num_heads;
    case Dim::kRotaryPairs:
      return config.ropes.empty() ? 0 : config.ropes.front().rotary_dim / 2;
    case Dim::kQueryRank:
      return config.latent.query_rank;
    case Dim::kLatent:
      return config.latent.rank;
    case Dim::kLatentKey:
      return latent_key_dim(config, layer);
    case Dim::kLatentUp:
      return int64_t{config.num_heads} * latent_head_rows(config, layer);
    case Dim::kHeadValues:
      return num_heads * (has_latents(config) ? config.latent.value_dim : kv.value_cols());
    case Dim::kQueryPair:
      return int64_t{2} * config.latent.query_rank;
    case Dim::kLatentQGates:
    case Dim::kLatentGatesOfQ:
      return num_heads * (head_dim + config.latent.value_dim);
    case Dim::kBlockLowRank:
      return config.shared_blocks.low_rank;
    case Dim::kNormGateRank:
      return config.norm_gate_rank;
    case Dim::kAllStreams:
      return stream_cols(config);
    case Dim::kConnection:
      return config.streams.num_connections();
    case Dim::kConnectionScales:
      return config.streams.num_kinds();
    case Dim::kHeadConnection:
      return config.streams.count;
    case Dim::kIndexerQueries:
      return config.indexer.query_cols();
    case Dim::kIndexerHeadDim:
      return config.indexer.head_dim;
    case Dim::kIndexerHeads:
      return config.indexer.num_heads;
    case Dim::kEntryValues:
      return entry_values(config, layer, config.latent.rank);
    case Dim::kEntryBias:
      return tokens_per_entry(config, layer) * entry_values(config, layer, config.latent.rank);
    case Dim::kIndexerEntryValues:
      return entry_values(config, layer, config.indexer.head_dim);
    case Dim::kIndexerEntryBias:
      return tokens_per_entry(config, layer) * entry_values(config, layer, config.indexer.head_dim);
    case Dim::kHeadsOfGroup:
      return num_heads * head_dim / std::max(config.entries.output_groups, 1);
    case Dim::kOutputGroups:
      return int64_t{config.entries.output_groups} * config.entries.output_rank;
    case Dim::kExperts:
      return config.experts.num_experts;
    case Dim::kExpertsAndUnread:
      return int64_t{config.experts.num_experts} + config.experts.num_unread;
    case Dim::kExpertsOfToken:
      return config.experts.route.top_k;
    case Dim::kChoices:
      return config.experts.num_choices();
    case Dim::kExpertHidden:
      return expert_cols(config);
    case Dim::kExpertIntermediate:
      return config.experts.intermediate_size;
    case Dim::kExpertGateUp:
      return int64_t{2} * config.experts.intermediate_size;
    case Dim::kSharedIntermediate:
      return config.experts.shared_intermediate_size;
    case Dim::kSharedGateUp:
      return int64_t{2} * config.experts.shared_intermediate_size;
    case Dim::kGatedQ:
    case Dim::kOutputGate:
      return 2 * num_heads * head_dim;
    case Dim::kStateIn:
      return state.num_inputs();
    case Dim::kDeltaIn:
      return state.num_channels() + int64_t{2} * state.num_keys() + state.num_gate_inputs();
    case Dim::kDeltaSecondIn:
      return int64_t{2} * state.num_heads;
    case Dim::kLightningIn:
      return state.num_channels() + int64_t{2} * state.num_keys();
    case Dim::kStateChannels:
      return state.num_channels();
    case Dim::kConvChannels:
      return state.num_conv_channels();
    case Dim::kConvWeights:
      return state.num_conv_channels() * state.conv_kernel;
    case Dim::kStateParts:
      return state.step_rank + int64_t{2} * state.state_size;
    case Dim::kStepRank:
      return state.step_rank;
    case Dim::kStateSize:
      return state.state_size;
    case Dim::kChannelDecay:
      return state.num_channels() * state.state_size;
    case Dim::kStateHeads:
      return state.num_heads;
    case Dim::kStateHeadDim:
      return state.head_dim;
    case Dim::kStateKeys:
      return state.num_keys();
    case Dim::kStateSteps:
      return state.num_steps();
    case Dim::kStateGateRank:
      return state.gate_rank;
  }
  throw Error(Code::kInternal, "unknown dimension");
}

}  // namespace tgi
