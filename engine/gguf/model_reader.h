// How the file of one architecture (engine/gguf/architectures/) says what its GGUF models are:
// which config.json they would have as a folder, and which names their tensors.
//
// Source: the metadata keys of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, the
// tensor names of the `gguf` package, and what llama.cpp's converter does to a tensor on the way
// into a file: all of it is undone here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/weights/ggml/gguf_file.h"

namespace tgi::gguf {

// Lists of a number for each layer, under names that begin with no architecture's: alpha_p,
// alpha_n, beta and eps of its activation.
inline constexpr const char* kXieluFields[] = {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta",
                                               "xielu.eps"};

// Which stored row is row r of the tensor as Hugging Face has it; empty: r. By name, since many
// tensors share one.
struct RowOrder {
  std::string name{};
  int64_t count = 0;  // of rows
  std::function<std::vector<int32_t>()> rows{};
};

// What was done to the numbers of a vector, but a bias, when it was stored.
enum class Change : uint8_t { kNone, kPlusOne, kMinusExp };

struct TensorRule {
  std::string stored;  // "blk.{layer}.attn_q", without ".weight" or ".bias"
  // "model.layers.{layer}.self_attn.q_proj"; {expert}: of a stack, one by one; (i): the i-th of
  // tensors that are one below the other there; [i]: the i-th of those whose rows take turns there.
  std::string name;
  RowOrder order{};
  Change change = Change::kNone;
  std::vector<int64_t> shape{};  // (optional)
  // (optional) What follows the name of a bias, where nothing follows that of a weight.
  std::optional<std::string> bias_suffix{};
  // What follows `stored` of a tensor whose name here ends without a suffix, as bias_suffix ""
  // says.
  std::string stored_suffix = ".bias";
  std::vector<int64_t> shape_of_weight{};  // (optional) the same as `shape`, but not of a bias
  std::string beside{};   // (optional) only in layers that have this tensor: "ssm_out.weight"
  int64_t only_rows = 0;  // (optional) only of tensors of so many rows
};

struct TensorIndex {
  Json index;  // of engine/weights/ggml/gguf_checkpoint.h, but for its "files"
  Json types;  // of engine/weights/formats/gguf.cc
};

// References what it is made of.
class ModelReader {
 public:
  ModelReader(const GgufMetadata& metadata, std::span<const GgufTensor> tensors);

  // --- fields, under the architecture's name: "block_count" is "llama.block_count". Integers
  // beyond 2^31 throw kInvalidArgument: no size is, and products of two of them fit.
  bool has(std::string_view key) const;
  int64_t integer(std::string_view key);  // throws kInvalidArgument when there is none
  std::optional<int64_t> find_integer(std::string_view key);
  std::optional<double> find_number(std::string_view key);
  std::optional<bool> find_boolean(std::string_view key);
  std::optional<std::string> find_text(std::string_view key);
  // One value for each layer: an array, or one number for all. Empty when there is none.
  std::vector<int64_t> integers_of_layers(std::string_view key);
  // Throws kUnsupported when it is an array whose values differ.
  int64_t one_integer(std::string_view key);
  // The same of the layers that have another value than 0; 0 when none has.
  int64_t one_of_layers(std::string_view key);
  int64_t positive(std::string_view key);  // the same; throws kInvalidArgument below 1
  std::vector<double> numbers(std::string_view key);
  // Nothing when there is none, or it is one value and no array.
  std::vector<bool> booleans_of_layers(std::string_view key);
  // What the field says is of no matter, or known by other means.
  void pass_over(std::string_view key) { read_.insert(std::string(key)); }
  bool was_asked(std::string_view key) const { return read_.contains(std::string(key)); }

  // --- tensors
  const GgufTensor* find_tensor(std::string_view name) const;
  bool has_tensor(std::string_view name) const { return find_tensor(name) != nullptr; }
  // The first layer that has such a tensor: "ffn_gate_inp.weight".
  std::optional<int64_t> find_layer_with(std::string_view tensor) const;
  const GgufTensor& tensor(std::string_view name) const;   // throws kInvalidArgument
  std::vector<float> values(std::string_view name) const;  // of an F32 vector
  // The file has it for whoever runs it in another way; it is read by other means, or not needed.
  void ignore_tensor(std::string_view stored) { ignored_.emplace_back(stored); }

  // The file's layers from this one on are not those of the model.
  void ignore_layers_from(int64_t layer) { end_layer_ = layer; }

  int64_t num_layers() const { return num_layers_; }

  const GgufMetadata& metadata() const { return metadata_; }
  std::string_view architecture() const { return architecture_; }

  // --- what an architecture's file fills in
  // Of a decoder that ranks: the classifier is two rows of the head, those of a token that says yes
  // and of one that says no.
  bool scores_answers = false;
  // The tensor that tokens are looked up in; "output": the head is the embedding, too.
  std::string embedding = "token_embd";
  Json config = Json::object();  // config.json
  void name(std::string_view stored,
            std::string_view name,
            RowOrder order = {},
            Change change = Change::kNone) {
    rules.push_back({std::string(stored), std::string(name), std::move(order), change});
  }
  std::vector<TensorRule> rules;
  // Rows of q for each column of attn_output: 2 where a gate is among them.
  int64_t q_rows_of_output = 1;
  // A tensor of one number, with that shape, which files have as a field.
  void state_number(std::string_view name, double value, const std::vector<int64_t>& shape) {
    numbers_[std::string(name)] = {{"value", value}, {"shape", shape}};
  }

  // Throws kUnsupported naming the fields that nobody asked for.
  void check_all_read() const;
  // Throws kUnsupported naming the tensors that no rule has a name for.
  TensorIndex make_index() const;
  // What the tensor is of the model: "blk.{layer}.attn_q", "12". Empty: nothing.
  std::vector<TensorRule> rules_for(std::string_view stem,
                                    std::string_view layer,
                                    const GgufTensor& tensor) const;

 private:
  std::string key_of(std::string_view key) const;
  int64_t one_of(const std::vector<int64_t>& all, std::string_view key) const;
  std::optional<std::string> asked(std::string_view key);
  bool is_ignored(std::string_view stem, const std::string& layer) const;

  const GgufMetadata& metadata_;
  std::span<const GgufTensor> tensors_;
  std::map<std::string_view, const GgufTensor*> by_name_;
  std::string architecture_;
  int64_t num_layers_ = 0;
  std::set<std::string> read_;
  std::vector<std::string> ignored_;
  std::optional<int64_t> end_layer_;
  Json numbers_ = Json::object();
};

inline constexpr const char* kMlp = "model.layers.{layer}.mlp";

// An architecture of GGUF: what stands in general.architecture.
struct GgufArchitecture {
  std::string_view name;
  void (*read)(ModelReader& model);
};

std::span<const GgufArchitecture> gguf_architectures();

// --- shared by architectures

// Heads whose halves are rotated, stored so that neighbours are, from stored row `first` on.
RowOrder rotated_heads(std::string_view name, int64_t num_heads, int64_t rows, int64_t first = 0);
// Rows [first, first + count) of what is stored as one.
RowOrder rows_of(int64_t first, int64_t count);
// The rows of q, k and v one below the other, where Hugging Face has them by KV head: its heads of
// q, its k, its v.
RowOrder qkv_by_kv_head(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim);

// What most decoders have: sizes, heads, norm, rope, vocabulary, whether the head is tied.
// `class_name` is the one of `architectures`, `model_type` the one of config.json.
void read_decoder(ModelReader& model, std::string_view class_name, std::string_view model_type);
// Its parts: all but the width of MLPs, heads and rope; that width too, the same in all layers that
// have one; heads, all of one length; the rope, of heads of that length.
void read_outer_sizes(ModelReader& model, std::string_view class_name, std::string_view model_type);
void read_sizes(ModelReader& model, std::string_view class_name, std::string_view model_type);
void read_heads(ModelReader& model);
void read_rope(ModelReader& model, int64_t head_dim);

// Says which part of a head is rotated where the class would take another for granted.
void state_rotary_part(ModelReader& model);
// The width of the MLP from its tensor, for architectures whose field is not kept to.
void read_width_of_tensor(ModelReader& model);
// Fields of config.json that a class does not have.
void drop_fields(ModelReader& model, std::initializer_list<const char*> fields);
// The epsilon of norms with a mean, under the class's name of it.
void read_layer_norm(ModelReader& model, const char* field);
// Whether there are biases is said by the tensors: attention_bias, and mlp_bias too.
void read_attention_bias(ModelReader& model);
void read_biases(ModelReader& model);
// Experts: how many, how many each token takes, how wide they are; and their three stacks, under
// names with {expert}.
void read_experts(ModelReader& model, const char* count_field, const char* width_field);

// What expert_gating_func says: how scores of experts come from the router's.
inline constexpr int64_t kGatingSoftmax = 1;
inline constexpr int64_t kGatingSigmoid = 2;

// Where the class has one way only: throws kUnsupported for a file that says another.
void expect_gating(ModelReader& model, int64_t expected);
void expect_normed_weights(ModelReader& model);
void name_experts(ModelReader& model, const std::string& experts);
// The bias for choosing among them, under a name of its own.
void name_choice_bias(ModelReader& model, const std::string& name, std::vector<int64_t> shape = {});
// The same of the experts that every token is sent to.
void name_shared_experts(ModelReader& model, const std::string& experts);
// What DeepSeek V3 and those after it say of their experts, and name: with sigmoids, groups, a bias
// for the choice, dense layers first.
void read_deepseek_experts(ModelReader& model);
void name_deepseek_experts(ModelReader& model, const std::string& mlp = kMlp);
// Experts that are one stack elsewhere too: "w1" of EXPERTS.w1, whose biases are EXPERTS.w1_bias.
void name_expert_stacks(ModelReader& model,
                        const std::string& experts,
                        const char* gate,
                        const char* up,
                        const char* down);

// Gate and up of all experts as one stack, EXPERTS.gate_up_proj, whether they are one here or two;
// and EXPERTS.down_proj.
void name_gate_up_stacks(ModelReader& model, const std::string& experts);
// A tensor whose name there has no ".weight", or what else follows it here.
void name_bare(ModelReader& model,
               std::string_view stored,
               const std::string& name,
               const char* stored_suffix = ".weight");

// Layers that predict further tokens come after those that are counted elsewhere: left out.
void drop_predicting_layers(ModelReader& model);

// Of each layer of the model, whether the file has blk.N.`tensor`.
std::vector<bool> layers_with(const ModelReader& model, std::string_view tensor);

// mlp_layer_types, "dense" or "sparse": those with a router are the latter.
Json read_mlp_layer_types(const ModelReader& model);

// Which of `pattern` layers has no window.
enum class WindowOrder : uint8_t { kFullLast, kFullFirst };

// layer_types: one of `pattern` layers has no window, unless the file says otherwise.
Json read_layer_types(ModelReader& model,
                      int64_t pattern,
                      WindowOrder order = WindowOrder::kFullLast);
// The same with its window; false: the file has none.
bool read_windows(ModelReader& model, int64_t pattern, WindowOrder order = WindowOrder::kFullLast);

// Names of Llama's block.
void name_outer(ModelReader& model, Change norm = Change::kNone);
void name_attention(ModelReader& model);
void name_rotated_attention(ModelReader& model);  // with rotated_heads
void name_qk_norms(ModelReader& model, Change norm = Change::kNone);
void name_norms(ModelReader& model, Change norm = Change::kNone);       // one before each branch
void name_four_norms(ModelReader& model, Change norm = Change::kNone);  // and one after
void name_post_norms(ModelReader& model);  // one after each branch only
void name_mlp(ModelReader& model, const std::string& mlp = kMlp);
// q, k, v and o of `attention`.
void name_projections(ModelReader& model, const std::string& attention);
void name_decoder(ModelReader& model, Change norm = Change::kNone);  // all of the block

}  // namespace tgi::gguf
