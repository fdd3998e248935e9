// A model family as data: which names it goes by, how its config.json is read, which tensors it has
// under which names. One constexpr per family in engine/model/families/, one line in
// kArchitectures. No behaviour: the forward pass is written once (transformer.cc) and is switched
// by which roles have a weight and by the traits of ModelConfig.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/model/head_spec.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"
#include "engine/weights/respelled_checkpoint.h"
#include "engine/weights/weight_format.h"

namespace tgi {

// What a tensor is for. Fused and separate spellings of one thing are different roles; a checkpoint
// has one of them.
enum class Role : uint8_t {
  kTokenEmbedding,
  kPositionEmbedding,
  kTypeEmbedding,
  kTaskEmbedding,  // whose first row is added to every token's
  kEmbeddingNorm,
  kEmbeddingNormBias,
  kDistanceBias,       // of all layers: a number for each head and kind of distance
  kDistanceEmbedding,  // of all layers: a row as wide as the stream for each kind of distance
  kDistanceNorm,       // of its rows
  kDistanceNormBias,
  kLayerInputTable,  // (vocabulary, rows of all layers)
  kLayerInputIn,     // from the embedding to the rows of all layers
  kLayerInputNorm,   // of each row that it gives
  kStreamIn,         // from the embedding to each further stream
  kStreamOut,        // from each further stream to the last hidden state
  kEmbeddingIn,      // from a row of the table to the stream
  kEmbeddingInBias,
  kRopeScales,  // logarithms of what the ropes' frequencies are multiplied by
  kHiddenNorm,  // of the hidden states that a layer for the next tokens reads
  kHeadIn,      // from the stream to what the head reads
  kHeadDense,   // of the stream, then an activation and a norm: what the head reads
  kHeadDenseBias,
  kHeadNorm,
  kHeadNormBias,
  kFinalNorm,
  kFinalNormBias,
  kHeadConnection,  // as kAttentionConnection, of what the last norm reads
  kHeadConnectionBase,
  kHeadConnectionScale,
  kLmHead,
  kLmHeadBias,
  // Per layer. A norm before a branch reads the stream, one after it what the branch adds.
  kAttentionNorm,
  kAttentionNormBias,
  kQ,
  kK,
  kV,
  kQkv,
  kQBias,
  kKBias,
  kVBias,
  kQkvBias,
  // Of LayerPlan::first_difference: products of q and k are exponents of what it goes on from
  // there.
  kDifferenceQ1,
  kDifferenceK1,
  kDifferenceQ2,
  kDifferenceK2,
  // Beside q, k and v of a block that layers share: from what they read to a short row, and back.
  kQLowIn,
  kKLowIn,
  kVLowIn,
  kQLowOut,
  kKLowOut,
  kVLowOut,
  kQNorm,
  kQNormBias,
  kKNorm,
  kKNormBias,
  kSinks,
  kQueryScale,  // of each head, and what is added (QkvArgs.head_scales)
  kQueryScaleOffset,
  kOutputGate,  // the rows of a tensor of q that are its output's gate
  kOutputGateBias,
  kDistanceKey,  // of the embedding of distances, where they are not those of the stream
  kDistanceKeyBias,
  kDistanceQuery,
  kDistanceQueryBias,
  // Of latent attention. Down makes a short row of the stream, up all heads of such a row: q of
  // that of queries is kQ, keys and values of the other are kLatentUp.
  kQueryDown,
  kQueryDownBias,
  kQueryDownNorm,
  kLatentDown,
  kLatentDownBias,
  kLatentNorm,
  kLatentUp,
  kLatentGate,  // a number for each head, by which what it gives is gated
  kValueGate,   // the same, for each number that it gives
  // Of layers that choose the tokens they see.
  kIndexerQuery,
  kIndexerQueryNorm,
  kIndexerInputNorm,  // of the stream, before kIndexerQuery
  kIndexerInputNormBias,
  kIndexerScale,  // as kQueryScale
  kIndexerScaleOffset,
  kIndexerKey,
  kIndexerKeyNorm,
  kIndexerKeyNormBias,
  kIndexerWeights,  // of its heads
  // Of layers that see entries, which stand for several tokens: what makes of a token what it adds
  // to entries, and its gates; and those of the indexer that chooses among them.
  kEntryValues,
  kEntryGates,
  kEntryGateBias,
  kEntryNorm,
  kIndexerEntryValues,
  kIndexerEntryGates,
  kIndexerEntryGateBias,
  kIndexerEntryNorm,
  kOutputGroups,  // what makes of each group of heads a short row, before kO
  kO,
  kOBias,
  // Of layers with a state.
  kStateIn,
  kStateInBias,
  kStateKeyIn,  // where they are not part of kStateIn
  kStateValueIn,
  kStateValueInBias,
  kStateGateIn,
  kStateSecondIn,
  kStateThirdIn,
  kConv,
  kConvBias,
  kStateParts,
  kStateGateUp,  // of the short row that kStateGateIn gives
  kStep,         // of the short row that dt is made of
  kStepBias,
  kStateStepBias,  // of heads
  kDecay,
  kRgLruDecay,  // what softplus makes the decay of
  kDecayRate,   // of lightning attention: the decay is its negative
  // Of RG-LRU: a matrix for each head, and a bias for each channel.
  kInputGate,
  kInputGateBias,
  kDecayGate,
  kDecayGateBias,
  kSkip,
  kStateNorm,
  kStepNorm,
  kInputNorm,
  kOutputNorm,
  kStateOut,
  kStateOutBias,
  // Of what the norm before a branch gives: through a short row to what gates it.
  kAttentionNormGateIn,
  kAttentionNormGateOut,
  kMlpNormGateIn,
  kMlpNormGateOut,
  // Of streams that are connected to the branches: what makes numbers of all of them, what is
  // added to these, and what they are multiplied by before.
  kAttentionConnection,
  kAttentionConnectionBase,
  kAttentionConnectionScale,
  kMlpConnection,
  kMlpConnectionBase,
  kMlpConnectionScale,
  kAttentionInnerNorm,  // of what attention gives, before kO
  kAttentionPostNorm,
  kMlpNorm,
  kMlpNormBias,
  kGate,
  kGateBias,
  kUp,
  kUpBias,
  kGateUp,
  kGateUpBias,
  kGateUpLowIn,  // as kQLowIn
  kGateUpLowOut,
  kBlockNorm,     // of all streams, before a block that feeds a state
  kBlockOut,      // of what it gives
  kMlpInnerNorm,  // of what kDown reads
  kDown,
  kDownBias,
  kMlpPostNorm,
  // Of layers with experts beside a dense MLP: of what each gives, of what experts and router read.
  kDensePostNorm,
  kExpertsNorm,
  kExpertsPostNorm,
  kRouterNorm,
  // Of rows for each layer: what the stream makes of them, and back.
  kLayerInputGate,
  kLayerInputOut,
  kLayerInputPostNorm,
  kStreamScale,  // of the stream after the layer
  // Of several streams: what the coefficients of prediction and correction hang on, their matrices,
  // and the scales of what a layer's row reads.
  kStreamRouter,
  kStreamRouterNorm,
  kStreamPrediction,
  kStreamCorrection,
  kStreamColumnScales,
  // What is added beside attention: to the short row, back, and the norm of that.
  kLaurelIn,
  kLaurelOut,
  kLaurelNorm,
  // Of Activation::kXielu: what softplus makes alpha_p of, and alpha_n - beta.
  kXieluAlphaP,
  kXieluAlphaN,
  kXieluBeta,
  kXieluEps,
  kRouter,
  kRouterBias,
  kChoiceBias,
  kExpertsByToken,  // the experts of each token of the vocabulary
  kExpertScale,
  kExpertsIn,  // from the stream to what all experts read
  kExpertsInBias,
  kExpertsOut,  // back
  kExpertsOutBias,
  kSharedGate,
  kSharedUp,
  kSharedGateUp,
  kSharedDown,
  kSharedGateBias,
  kSharedUpBias,
  kSharedDownBias,
  kSharedOutputGate,
  // Per layer and expert.
  kExpertGate,
  kExpertUp,
  kExpertGateUp,
  kExpertDown,
  kExpertGateBias,
  kExpertUpBias,
  kExpertGateUpBias,
  kExpertDownBias,
  kCount,
};

// Whether the role is of a norm's weight, which scales.
constexpr bool is_norm_weight(Role role) {
  switch (role) {
    case Role::kEmbeddingNorm:
    case Role::kDistanceNorm:
    case Role::kHiddenNorm:
    case Role::kFinalNorm:
    case Role::kHeadNorm:
    case Role::kAttentionNorm:
    case Role::kAttentionInnerNorm:
    case Role::kAttentionPostNorm:
    case Role::kMlpNorm:
    case Role::kMlpInnerNorm:
    case Role::kBlockNorm:
    case Role::kMlpPostNorm:
    case Role::kDensePostNorm:
    case Role::kExpertsNorm:
    case Role::kExpertsPostNorm:
    case Role::kRouterNorm:
    case Role::kLayerInputNorm:
    case Role::kLayerInputPostNorm:
    case Role::kStreamRouterNorm:
    case Role::kLaurelNorm:
    case Role::kQNorm:
    case Role::kKNorm:
    case Role::kQueryDownNorm:
    case Role::kLatentNorm:
    case Role::kIndexerQueryNorm:
    case Role::kIndexerInputNorm:
    case Role::kIndexerKeyNorm:
    case Role::kEntryNorm:
    case Role::kIndexerEntryNorm:
      return true;
    default:
      return false;
  }
}

// What is added to the weights of a norm as they are stored; 0 of what is none.
constexpr float norm_offset_of(const ModelConfig& config, Role role) {
  const bool is_as_stored = role == Role::kFinalNorm && config.final_norm_as_stored;
  return is_norm_weight(role) && !is_as_stored ? config.norm_weight_offset : 0.0F;
}

// Of what draws tokens.
constexpr bool is_of_head(Role role) {
  switch (role) {
    case Role::kHeadDense:
    case Role::kHeadDenseBias:
    case Role::kHeadNorm:
    case Role::kHeadNormBias:
    case Role::kLmHead:
    case Role::kLmHeadBias:
      return true;
    default:
      return false;
  }
}

// Only layers with attention, or with a state, have such tensors.
constexpr bool is_of_attention(Role role) {
  return role >= Role::kQ && role <= Role::kOBias;
}
constexpr bool is_of_state(Role role) {
  return role >= Role::kStateIn && role <= Role::kStateOutBias;
}

// A symbolic size, so that one table row serves every layer of every checkpoint of the family.
enum class Dim : uint8_t {
  kOne,     // the tensor is a vector
  kOneRow,  // the tensor is a matrix all the same
  kVocab,
  kHeadVocab,    // of a head that draws fewer
  kImagesVocab,  // with the rows of tokens that stand for images, which are left out
  kPositions,    // with the rows before that of position 0
  kTokenTypes,
  kTaskTypes,
  kLayerInputVocab,
  kLayerInput,   // the row of one layer
  kLayerInputs,  // those of all
  kStreams,
  kStreamPredictions,  // stored (streams * streams, streams)
  kStreamCorrections,  // stored (streams, streams)
  kLaurelRank,
  kDistanceBiases,  // stored (buckets, heads)
  kDistanceKinds,
  kHidden,
  kEmbedding,
  kAttentionInput,  // what q, k and v read, where that is wider than the stream
  kIntermediate,
  kGateUp,  // gate, then up
  kUpGate,  // up, then gate
  kQ,
  kKv,
  kValues,  // likewise of v
  // Of heads whose values stand in pairs, one of each half of them: those of a tensor of v, of
  // which each head has both.
  kPairedValues,
  kQkv,          // all of q, then k, then v
  kQkvByKvHead,  // for each KV head: its query heads, its key, its value
  kQByHead,      // for each head its q, its k, its v; of such a tensor the q, and so on
  kKByHead,
  kVByHead,
  kQvkByQuarter,  // four times: a quarter of q, of v, of k
  kHeadDim,
  kHeads,
  kRotaryPairs,  // of the first rope
  kQueryRank,
  kLatent,          // the latent alone
  kLatentKey,       // with the rotated columns
  kLatentUp,        // for each head: the columns of its key that are not rotated, its value
  kHeadValues,      // a value for each head of q: what attention gives
  kQueryPair,       // the queries' short row, normed and as it was
  kLatentQGates,    // for each head: its q, the gates of its value; of such a tensor the q
  kLatentGatesOfQ,  // the same size; of such a tensor the gates
  kNormGateRank,
  kBlockLowRank,
  kAllStreams,
  kConnection,        // numbers that connect all streams to a branch
  kConnectionScales,  // one for each kind of them
  kHeadConnection,
  kIndexerQueries,
  kIndexerHeadDim,
  kIndexerHeads,
  kEntryValues,  // of a token, for the entries it is part of
  kEntryBias,    // stored (tokens of an entry, those)
  kIndexerEntryValues,
  kIndexerEntryBias,
  kHeadsOfGroup,  // the values of a group of heads
  kOutputGroups,  // the short rows of all groups
  kExperts,
  kExpertsOfToken,    // that a token goes to
  kChoices,           // with those that have no matrices
  kExpertsAndUnread,  // a row of those that are read, and one of the others
  kExpertHidden,
  kExpertIntermediate,
  kExpertGateUp,  // gate, then up
  kSharedIntermediate,
  kSharedGateUp,  // gate, then up
  kGatedQ,        // for each head: its q, its output's gate; of such a tensor the q
  kOutputGate,    // the same size; of such a tensor the gates
  // Of layers with a state.
  kStateIn,        // all that the convolution, the gate and the recurrence read
  kDeltaIn,        // for each key head: its q, its k, the v and the z of its value heads
  kDeltaSecondIn,  // for each key head: the b and the a of its value heads
  kLightningIn,    // for each head: its q, its k, its v
  kStateChannels,
  kConvChannels,
  kConvWeights,  // stored (channels, 1, kernel)
  kStateParts,   // of Mamba 1: dt, b, c
  kStepRank,
  kStateSize,
  kChannelDecay,  // stored (channels, state_size)
  kStateHeads,
  kStateHeadDim,
  kStateKeys,
  kStateSteps,     // of the gated delta rule: dt
  kStateGateRank,  // where its gate is made of a short row
};

// How tensor parallelism cuts a tensor (world size 1 takes all of it). Heads are never cut in two.
enum class Split : uint8_t {
  kNone,     // every rank holds all of it
  kRows,     // by output features: q, k, v, gate, up and their biases
  kColumns,  // by input features, results summed over ranks: o, down; their biases, which must be
             // added once, are held by rank 0 alone
};

// Whether the model has a tensor, from the config alone, so that it says what will be loaded.
using IsPresent = bool (*)(const ModelConfig& config, int32_t layer);

struct TensorSpec {
  Role role;
  // "{layer}" and "{expert}" stand for their numbers, "{layer-1}" for that of the one before,
  // "{pair}" and "{half}" for half of the layer's and what is left of it,
  // "{block}" for that of the layer whose block it has, "{use}" for how many before it have one,
  // "{last}" for that of the last, "{stream}" for those of all streams but the first, less one;
  // "{head}" for each head's: such a vector is stored head by head; "{qkv}" for q, k and v, one
  // behind the other.
  std::string_view name;
  Dim rows;  // output features; kOne for vectors
  Dim cols;  // input features, or the length of a vector
  Split split = Split::kNone;
  IsPresent only_if = nullptr;  // null: always
  bool transposed = false;      // stored as (cols, rows), as GPT-2's Conv1D does
  // One tensor holds the matrices of all experts of the layer, or of all heads of its state, one
  // after the other.
  bool stacked = false;
  bool flat = false;         // and that as rows of one matrix, not as a tensor of three dimensions
  Turns turns{};             // rows of gate and up that alternate in one tensor
  bool by_head = false;      // a vector that is stored as (heads, head_dim)
  bool for_heads = false;    // a vector of which one number is stored for all columns of a head
  bool as_row = false;       // a vector that is stored as (1, length)
  bool amid_ones = false;    // a vector that is stored as (1, 1, length, 1)
  bool before_ones = false;  // a vector that is stored as (length, 1, 1)
  bool is_scalar = false;    // a vector of one number that is stored without dimensions
  bool is_counted = true;    // else another row of the table is of the same tensor
  // No matrix, but indices in its shape (engine/weights/stored_indices.h). All ranks hold them.
  bool holds_indices = false;
};

// How a layer that predicts the token after the next (next_tokens.h) is stored: behind the last
// layer, beside that layer's own tensors in their place; or apart, under a name of its own.
struct NextTokenNames {
  std::string_view count_field;     // of config.json: how many of them there are
  std::string_view embedding_norm;  // of the next token's embedding
  std::string_view hidden_norm;     // of the hidden state
  std::string_view projection;      // of both, one behind the other, to the stream
  std::string_view final_norm;
  std::span<const std::string_view>
      copies{};                  // of the model's embedding and head, and what is not read
  bool hands_on_normed = false;  // what it reads for a further token has been through final_norm
  std::string_view apart{};      // "mtp.": its layer is "mtp.layers.0."; empty: behind the last one
  // (optional) Makes the one layer of `model`, which is as the model's last one, what it is.
  void (*shape)(const JsonReader& config, ModelConfig& model) = nullptr;
};

struct Architecture {
  std::span<const std::string_view> names;        // of config.json's "architectures"
  std::span<const std::string_view> model_types;  // of its "model_type"
  // (optional) The "model_type" of another family, which its files name beside its own class.
  std::string_view borrowed_type{};
  // (optional) The class of another family that `transformers` computes it with: files that it
  // writes name that one in "architectures", beside a model_type of these.
  std::string_view computed_by{};
  std::string_view prefix;  // of tensor names: "model."; a checkpoint may have it or not
  ModelConfig (*read_config)(const JsonReader& config);
  std::span<const KnownField> fields;     // of config.json, beside those of every model
  std::span<const FieldAlias> aliases{};  // (optional)
  std::span<const TensorSpec> tensors;
  // (optional) The same of checkpoints in which each expert's matrices are tensors of their own,
  // where those of `tensors` are stored one behind the other.
  std::span<const TensorSpec> tensors_of_separate_experts{};
  std::span<const TensorRename>
      renames{};  // (optional) of tensors, where some spell them otherwise
  // Some of its checkpoints have no bias of the experts' choice, which config.json does not say.
  bool may_lack_choice_bias = false;
  // Tensors that are known and not needed, by the endings of their names, or by how they begin
  // after an optional "model.": "vision_tower.*".
  std::span<const std::string_view> ignored;
  // One more layer than config.json counts may be stored, which predicts a second token.
  bool ignores_layer_after_last = false;
  const NextTokenNames* next_tokens = nullptr;  // (optional) of that layer
  // Of a multimodal checkpoint, of which the text model is read: text_config where there is none,
  // and what its model_type is where it names none. Then read_config and tensors are those of the
  // family that text_config names. Empty: a text model itself.
  std::string_view default_text{};
  // default_text also says what a text_config that is there leaves out, instead of the defaults of
  // the family.
  bool default_text_fills_gaps = false;
  // Its class makes a head of its own, whatever is said of tied embeddings.
  bool has_own_head = false;
  // Its files have the text model's fields beside text_config, too, where its class does not look.
  bool repeats_text = false;
  // (optional) The object of config.json that all of this is in, where a checkpoint has parts that
  // speak beside it.
  std::string_view part{};
  // What may follow the last hidden states, one for each task.
  std::span<const HeadSpec> heads{};
  // (optional) Tokens that end an answer beside those that its files say, where its tokenizer has
  // them: the model's own code says so.
  std::span<const std::string_view> end_tokens{};
};

// All families, in the order they are tried.
std::span<const Architecture* const> architectures();

// The family that config.json names: of a class that `transformers` makes of it for another task it
// is the same ("BertModel", "BertForTokenClassification"). Throws kUnsupported naming the
// architecture and listing the known ones.
const Architecture& find_architecture(const JsonReader& config);

struct LoadedConfig {
  Task task = Task::kGenerate;
  const Architecture* architecture = nullptr;
  const Architecture* text = nullptr;  // the same, or of a multimodal one its text model's
  bool has_separate_experts = false;   // where the family has checkpoints of both kinds
  bool ties_head = false;  // config.json says it; a model that gives vectors loads no head at all
  ModelConfig config;
  int32_t first_layer = 0;  // of those that are loaded
  const WeightFormat* weight_format = nullptr;
  Json json;  // config.json, for the weight format

  std::span<const TensorSpec> tensors() const {
    return has_separate_experts ? text->tensors_of_separate_experts : text->tensors;
  }
};

// What may follow the last hidden states of a model: its family's, or what every decoder has that
// is saved as a classifier.
std::span<const HeadSpec> heads_of(const LoadedConfig& model);

// Reads a model that draws tokens as one whose hidden states are wanted.
void make_embedder(LoadedConfig& model);

// From config.json and generation_config.json. Throws kNotFound without config.json, and
// kInvalidArgument or kUnsupported naming file and field, with the value and what was expected.
LoadedConfig load_model_config(const FileSource& files);

}  // namespace tgi
