// Files as ollama's own converter writes them: the golden files that llama.cpp's made, spelled
// otherwise, are read as what they were, with an encoder of images in them.
#include "engine/gguf/usual_spelling.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/json.h"
#include "engine/gguf/gguf_source.h"
#include "engine/model/architecture.h"
#include "engine/model/weight_check.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/ggml/gguf_checkpoint.h"
#include "tests/catch.h"
#include "tests/gguf/metadata_builder.h"
#include "tests/temp_folder.h"
#include "tests/weights/gguf_files.h"

namespace tgi {
namespace {

using Renames = std::vector<std::pair<std::string, std::string>>;  // usual, ollama's

struct Case {
  std::string golden;
  std::string architecture;  // as ollama calls it
  Renames keys{};
  Renames tensors{};  // parts of names
  std::vector<std::string> left_out{};
  void (*change)(MetadataBuilder& fields, const GgufMetadata& usual) = nullptr;
};

int32_t integer_of(const GgufMetadata& usual, const std::string& key) {
  const std::string architecture(usual.text("general.architecture"));
  return static_cast<int32_t>(usual.integer(architecture + "." + key));
}

void put_heads_of_layers(MetadataBuilder& fields, const GgufMetadata& usual) {
  std::vector<int32_t> heads(static_cast<size_t>(integer_of(usual, "block_count")));
  heads.back() = integer_of(usual, "attention.head_count_kv");
  const std::string architecture(usual.text("general.architecture"));
  fields.set(architecture + ".attention.head_count_kv", heads);
}

void put_normed(MetadataBuilder& fields, const GgufMetadata& usual) {
  fields.set(std::string(usual.text("general.architecture")) + ".norm_top_k_prob", true);
}

void put_lite_lengths(MetadataBuilder& fields, const GgufMetadata& usual) {
  const std::string prefix = "glm4moelite.attention.";
  fields.set(prefix + "head_count_kv", integer_of(usual, "attention.head_count"));
  fields.set(prefix + "key_length", integer_of(usual, "attention.key_length_mla"));
  fields.set(prefix + "value_length", integer_of(usual, "attention.value_length_mla"));
  fields.set(prefix + "key_length_mla", integer_of(usual, "attention.key_length"));
  fields.set(prefix + "value_length_mla", integer_of(usual, "attention.value_length"));
}

void put_no_stretch(MetadataBuilder& fields, const GgufMetadata&) {
  fields.set("mistral3.rope.scaling.type", "");
  for (const char* key : {"factor", "yarn_beta_fast", "yarn_beta_slow"}) {
    fields.set(std::string("mistral3.rope.scaling.") + key, 0);
  }
}

void put_head_dim(MetadataBuilder& fields, const GgufMetadata& usual) {
  fields.set("arcee.attention.head_dim", integer_of(usual, "attention.value_length"));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {.golden = "gpt-oss",
       .architecture = "gptoss",
       .tensors = {{"attn_output.", "attn_out."},
                   {"attn_sinks.weight", "attn_sinks"},
                   {"post_attention_norm", "ffn_norm"}},
       .left_out = {"expert_feed_forward_length", "rope.scaling.type"}},
      {.golden = "gemma3-pattern-6",
       .architecture = "gemma3",
       .keys = {{"rope.freq_base", "rope.global.freq_base"},
                {"rope.freq_base_swa", "rope.local.freq_base"}}},
      {.golden = "gemma3n-multimodal",
       .architecture = "gemma3n",
       .keys = {{"attention.key_length", "head_dim"},
                {"rope.freq_base_swa", "rope.freq_base_local"},
                {"attention.shared_kv_layers", "num_kv_shared_layers"}}},
      {.golden = "gemma4-experts",
       .architecture = "gemma4",
       .tensors = {{"ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"}}},
      {.golden = "ministral3-yarn-scaled",
       .architecture = "mistral3",
       .keys = {{"rope.scaling.yarn_beta_fast", "rope.scaling.beta_fast"},
                {"rope.scaling.yarn_beta_slow", "rope.scaling.beta_slow"},
                {"rope.scaling.yarn_log_multiplier", "rope.scaling.mscale_all_dim"},
                {"attention.temperature_scale", "rope.scaling_beta"}}},
      {.golden = "mistral3", .architecture = "mistral3", .change = put_no_stretch},
      {.golden = "qwen2_5-vl",
       .architecture = "qwen25vl",
       .keys = {{"rope.dimension_sections", "rope.mrope_section"}}},
      {.golden = "qwen3-vl",
       .architecture = "qwen3vl",
       .left_out = {"rope.dimension_sections", "n_deepstack_layers"}},
      {.golden = "qwen3-vl-moe",
       .architecture = "qwen3vlmoe",
       .left_out = {"rope.dimension_sections", "n_deepstack_layers", "expert_feed_forward_length"},
       .change = put_normed},
      {.golden = "qwen3_5",
       .architecture = "qwen35",
       .tensors = {{"ssm_dt.bias", "ssm_dt"}},
       .change = put_heads_of_layers},
      {.golden = "qwen3_5-moe",
       .architecture = "qwen35moe",
       .tensors = {{"ssm_dt.bias", "ssm_dt"}},
       .left_out = {"expert_feed_forward_length"},
       .change = put_heads_of_layers},
      {.golden = "qwen3-next",
       .architecture = "qwen3next",
       .tensors = {{"ssm_dt.bias", "ssm_dt"}},
       .change = put_heads_of_layers},
      {.golden = "olmo3", .architecture = "olmo3"},
      {.golden = "lfm2", .architecture = "lfm2", .tensors = {{"token_embd_norm.", "output_norm."}}},
      {.golden = "laguna",
       .architecture = "laguna",
       .keys = {{"rope.freq_base_swa", "rope.swa.freq_base"},
                {"rope.dimension_count_swa", "rope.swa.dimension_count"}},
       .tensors = {{"attn_gate.", "attn_g."}}},
      {.golden = "youtu", .architecture = "glm4moelite", .change = put_lite_lengths},
      {.golden = "arcee",
       .architecture = "arcee",
       .left_out = {"attention.key_length"},
       .change = put_head_dim},
  };
  return all;
}

std::string renamed(std::string name, const Renames& parts) {
  for (const auto& [usual, own] : parts) {
    const size_t at = name.find(usual);
    if (at != std::string::npos) name.replace(at, usual.size(), own);
  }
  return name;
}

GgufTestValue as_written(const std::string& key, const GgufValue& value) {
  GgufBytes bytes;
  bytes.number(static_cast<uint32_t>(value.type));
  const std::string raw(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  if (value.type == GgufValueType::kString) return {key, bytes.string(raw).text()};
  if (value.type == GgufValueType::kArray) {
    bytes.number(static_cast<uint32_t>(value.element_type)).number(value.count);
  }
  return {key, bytes.raw(raw).text()};
}

std::vector<GgufTestValue> values_of(const GgufMetadata& usual, const Case& one) {
  MetadataBuilder fields(usual);
  const std::string old_name(usual.text("general.architecture"));
  for (const std::string& key : one.left_out) fields.remove(old_name + "." + key);
  for (const auto& [from, to] : one.keys) {
    const GgufMetadata now = fields.build();
    const GgufValue* const value = now.find(old_name + "." + from);
    if (value == nullptr) continue;
    fields.set(old_name + "." + to, *value).remove(old_name + "." + from);
  }
  if (one.architecture != old_name) fields.rename(old_name, one.architecture);
  if (one.change != nullptr) one.change(fields, usual);
  const std::string prefix = one.architecture + ".";
  fields.set(prefix + "vision.block_count", 2).set(prefix + "mm.tokens_per_image", 256);
  fields.set(prefix + "image_token_index", 10).set("tokenizer.ggml.add_padding_token", false);
  fields.set("tokenizer.ggml.add_unknown_token", false);
  std::vector<GgufTestValue> out;
  const GgufMetadata metadata = fields.build();
  for (const std::string_view key : metadata.keys()) {
    out.push_back(as_written(std::string(key), *metadata.find(key)));
  }
  return out;
}

std::string respelled(const GgufFile& usual, const Case& one) {
  std::vector<GgufTestTensor> tensors;
  for (const GgufTensor& tensor : usual.tensors) {
    std::vector<uint64_t> dims(tensor.shape.rbegin(), tensor.shape.rend());
    tensors.push_back(
        {renamed(std::string(tensor.name), one.tensors), std::move(dims), tensor.type->id,
         std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size())});
  }
  for (const char* name : {"v.blk.0.attn_q.weight", "mm.mm_input_projection.weight", "a.pos"}) {
    tensors.push_back({name, {2}, 0, std::string(8, '\0')});
  }
  return gguf_file(values_of(usual.metadata, one), tensors);
}

Json file_of(const FileSource& files, const char* name) {
  return parse_json(*files.find_text(name));
}

// Under the names of the usual file.
Json tensors_of(const FileSource& files, const Case& one) {
  Json tensors = file_of(files, kGgufIndexFile).at("tensors");
  Renames back;
  for (const auto& [usual, own] : one.tensors) back.emplace_back(own, usual);
  for (Json& tensor : tensors) {
    std::string name = tensor.at("tensor");
    const bool is_usual = std::ranges::any_of(one.tensors, [&](const auto& rename) {
      return name.find(rename.first) != std::string::npos;
    });
    if (!is_usual) tensor["tensor"] = renamed(std::move(name), back);
  }
  return tensors;
}

}  // namespace

TEST_CASE("files in the spelling of ollama's converter are read as those of llama.cpp's") {
  for (const Case& one : cases()) {
    INFO(one.golden << " as " << one.architecture);
    const std::string golden = TGI_SOURCE_DIR "/tests/golden/gguf/" + one.golden + "/model.gguf";
    const MappedFile mapped(golden);
    const GgufFile usual = parse_gguf(mapped.bytes(), golden);
    const TempFolder folder;
    std::ofstream(folder.file("m.gguf"), std::ios::binary) << respelled(usual, one);
    const auto expected = open_gguf(golden);
    const auto got = open_gguf(folder.file("m.gguf"));
    CHECK(file_of(*got, "config.json") == file_of(*expected, "config.json"));
    CHECK(tensors_of(*got, one) == tensors_of(*expected, {}));
    if (!one.architecture.starts_with("glm4")) {
      CHECK(file_of(*got, "tokenizer.json") == file_of(*expected, "tokenizer.json"));
    }
    check_weights(load_model_config(*got), *open_checkpoint(*got));
  }
}

// With an encoder in the file, Gemma 3's says neither the base of its rotation nor its stretch.
TEST_CASE("what ollama's files of Gemma 3 leave out is what the class has") {
  const std::string golden = TGI_SOURCE_DIR "/tests/golden/gguf/gemma3-pattern-6/model.gguf";
  const MappedFile mapped(golden);
  const GgufFile usual = parse_gguf(mapped.bytes(), golden);
  Case one = {.golden = "gemma3-pattern-6",
              .architecture = "gemma3",
              .left_out = {"rope.freq_base", "rope.freq_base_swa", "rope.scaling.type",
                           "rope.scaling.factor", "attention.layer_norm_rms_epsilon"}};
  const auto config_of = [&] {
    const TempFolder folder;
    std::ofstream(folder.file("m.gguf"), std::ios::binary) << respelled(usual, one);
    return file_of(*open_gguf(folder.file("m.gguf")), "config.json");
  };
  CHECK(config_of()["rope_theta"] == 1e6);
  CHECK(config_of()["rope_local_base_freq"] == 1e4);
  CHECK(!config_of().contains("rope_scaling"));
  one.change = [](MetadataBuilder& fields, const GgufMetadata&) {
    fields.set("gemma3.context_length", 131072);
  };
  CHECK(config_of()["rope_scaling"] == Json({{"rope_type", "linear"}, {"factor", 8.0}}));
}

TEST_CASE("dense layers make ollama's Gemma 3 one of vectors") {
  MetadataBuilder fields;
  fields.set("general.architecture", "gemma3").set("gemma3.context_length", 2048);
  fields.set("gemma3.attention.causal", false);
  const GgufMetadata metadata = fields.build();
  std::vector<GgufTensor> tensors(3);
  const char* const names[] = {"dense.0.weight", "norm.weight", "blk.0.attn_norm.weight"};
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].name = names[i];
  const gguf::UsualSpelling file(metadata, tensors);
  CHECK(file.metadata().text("general.architecture") == "gemma-embedding");
  CHECK(file.metadata().integer("gemma-embedding.pooling_type") == 1);
  CHECK(!file.metadata().has("gemma-embedding.attention.causal"));
  CHECK(file.find_tensor("dense_2.weight") != nullptr);
  CHECK(file.find_tensor("output_norm.weight") != nullptr);
  CHECK(file.find_tensor("blk.0.attn_norm.weight") != nullptr);
  CHECK(file.stored_name("dense_2.weight") == "dense.0.weight");
}

TEST_CASE("a field that says the same under both names is one, and one that contradicts stays") {
  MetadataBuilder fields;
  fields.set("general.architecture", "llama").set("llama.attention.key_length", 64);
  fields.set("llama.attention.head_dim", 64);
  CHECK(!gguf::UsualSpelling(fields.build(), {}).has("attention.head_dim"));
  fields.set("llama.attention.head_dim", 32);
  const GgufMetadata contradicting = fields.build();
  const gguf::UsualSpelling file(contradicting, {});
  CHECK(file.integer("attention.head_dim") == 32);
  CHECK(file.integer("attention.key_length") == 64);
}

}  // namespace tgi
