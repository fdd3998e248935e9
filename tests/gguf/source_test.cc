// A GGUF file as the folder it was made from: files in parts, folders with such files, and what is
// refused by name.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/gguf/gguf_source.h"
#include "engine/gguf/metadata_text.h"
#include "engine/gguf/model_files.h"
#include "engine/model/architecture.h"
#include "engine/model/weight_check.h"
#include "engine/text/tokenizer.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "tests/weights/gguf_files.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHidden = 8;
constexpr uint64_t kWidth = 16;
constexpr uint64_t kTokens = 3;

GgufTestTensor zeros(const std::string& name, std::vector<uint64_t> dims) {
  uint64_t count = 4;
  for (const uint64_t size : dims) count *= size;
  return {name, std::move(dims), 0, std::string(count, '\0')};
}

GgufTestValue number_value(const std::string& key, float value) {
  return {key, GgufBytes().number<uint32_t>(6).number(value).text()};
}

GgufTestValue numbers_value(const std::string& key, const std::vector<float>& values) {
  GgufBytes bytes;
  bytes.number<uint32_t>(9).number<uint32_t>(6).number<uint64_t>(values.size());
  for (const float value : values) bytes.number(value);
  return {key, bytes.text()};
}

GgufTestValue list_value(const std::string& key, const std::vector<std::string>& texts) {
  GgufBytes bytes;
  bytes.number<uint32_t>(9).number<uint32_t>(8).number<uint64_t>(texts.size());
  for (const std::string& text : texts) bytes.string(text);
  return {key, bytes.text()};
}

// Llama of one layer.
std::vector<GgufTestValue> llama_values() {
  return {text_value("general.architecture", "llama"),
          u32_value("llama.block_count", 1),
          u32_value("llama.context_length", 64),
          u32_value("llama.embedding_length", kHidden),
          u32_value("llama.feed_forward_length", kWidth),
          u32_value("llama.attention.head_count", 2),
          number_value("llama.attention.layer_norm_rms_epsilon", 1e-5F),
          text_value("tokenizer.ggml.model", "gpt2"),
          text_value("tokenizer.ggml.pre", "gpt-2"),
          list_value("tokenizer.ggml.tokens", {"a", "b", "c"})};
}

std::vector<GgufTestTensor> llama_tensors() {
  return {zeros("token_embd.weight", {kHidden, kTokens}),
          zeros("output_norm.weight", {kHidden}),
          zeros("blk.0.attn_norm.weight", {kHidden}),
          zeros("blk.0.attn_q.weight", {kHidden, kHidden}),
          zeros("blk.0.attn_k.weight", {kHidden, kHidden}),
          zeros("blk.0.attn_v.weight", {kHidden, kHidden}),
          zeros("blk.0.attn_output.weight", {kHidden, kHidden}),
          zeros("blk.0.ffn_norm.weight", {kHidden}),
          zeros("blk.0.ffn_gate.weight", {kHidden, kWidth}),
          zeros("blk.0.ffn_up.weight", {kHidden, kWidth}),
          zeros("blk.0.ffn_down.weight", {kWidth, kHidden})};
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Config, tokenizer and weights fit each other; what does not fit throws.
void check_whole(const FileSource& files) {
  const LoadedConfig loaded = load_model_config(files);
  check_weights(loaded, *open_checkpoint(files));
  CHECK(load_tokenizer(files)->vocab_size() <= loaded.config.vocab_size);
  files.check_intact();
}

void check_refused(const std::vector<GgufTestValue>& values,
                   const std::vector<GgufTestTensor>& tensors,
                   const std::string& why) {
  const TempFolder folder;
  const std::string path = folder.path() + "/m.gguf";
  write_file(path, gguf_file(values, tensors));
  CHECK_THROWS_WITH(check_whole(*open_gguf(path)), Catch::Contains(path) && Catch::Contains(why));
}

// The weights of all folders are refused so.
void check_misfit(const std::vector<GgufTestValue>& values,
                  const std::vector<GgufTestTensor>& tensors,
                  const std::string& name) {
  const TempFolder folder;
  write_file(folder.file("m.gguf"), gguf_file(values, tensors));
  CHECK_THROWS_WITH(check_whole(*open_gguf(folder.file("m.gguf"))),
                    Catch::Contains("the weights don't fit") && Catch::Contains(name));
}

}  // namespace

TEST_CASE("every golden file of GGUF has a config, a tokenizer and weights that fit") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(TGI_SOURCE_DIR "/tests/golden/gguf")) {
    INFO(entry.path());
    check_whole(*open_model_files(entry.path()));
    ++count;
  }
  CHECK(count >= 80);
}

TEST_CASE("a model of GGUF in parts is opened by any of them") {
  const TempFolder folder;
  const auto part = [&](int number) {
    return folder.path() + "/big-0000" + std::to_string(number) + "-of-00002.gguf";
  };
  std::vector<GgufTestTensor> tensors = llama_tensors();
  const std::vector<GgufTestTensor> later(tensors.begin() + 5, tensors.end());
  tensors.resize(5);
  write_file(part(1), gguf_file(llama_values(), tensors));
  CHECK_THROWS_WITH(open_gguf(part(1)), Catch::Contains(part(2)));
  write_file(part(2), gguf_file({u32_value("split.no", 1)}, later));
  for (int number = 1; number <= 2; ++number) check_whole(*open_gguf(part(number)));
  check_whole(*open_model_files(folder.path()));
  write_file(folder.path() + "/other.gguf", gguf_file(llama_values(), llama_tensors()));
  CHECK_THROWS_WITH(open_model_files(folder.path()),
                    Catch::Contains("2 GGUF models") && Catch::Contains("other.gguf"));
  // Encoders of images are no models.
  fs::rename(folder.path() + "/other.gguf", folder.path() + "/mmproj-other.gguf");
  check_whole(*open_model_files(folder.path()));
}

TEST_CASE("the part of a model that sees is told from the model") {
  check_refused({text_value("general.architecture", "clip"), text_value("general.type", "mmproj")},
                {}, "mmproj");
}

TEST_CASE("files that are no models are told what they are") {
  std::vector<GgufTestValue> values = llama_values();
  check_refused(values, {}, "a vocabulary, not a model");
  values.push_back(text_value("general.type", "imatrix"));
  check_refused(values, llama_tensors(), "no model but of kind \"imatrix\"");
  values = llama_values();
  std::erase_if(values, [](const auto& one) { return one.first.starts_with("tokenizer."); });
  check_refused(values, llama_tensors(), "this file has no tokenizer");
}

TEST_CASE("a Llama may have biases of q, k and v alone, or of what attention puts out") {
  std::vector<GgufTestTensor> tensors = llama_tensors();
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    tensors.push_back(zeros("blk.0." + std::string(name) + ".bias", {kHidden}));
  }
  const TempFolder folder;
  write_file(folder.file("m.gguf"), gguf_file(llama_values(), tensors));
  check_whole(*open_gguf(folder.file("m.gguf")));
  tensors.push_back(zeros("blk.0.attn_output.bias", {kHidden}));
  write_file(folder.file("all.gguf"), gguf_file(llama_values(), tensors));
  check_whole(*open_gguf(folder.file("all.gguf")));
  std::erase_if(tensors, [](const auto& one) {
    return one.name.ends_with(".bias") && one.name != "blk.0.attn_output.bias";
  });
  write_file(folder.file("output.gguf"), gguf_file(llama_values(), tensors));
  check_whole(*open_gguf(folder.file("output.gguf")));
}

TEST_CASE("experts of Mixtral that are a tensor each are read") {
  std::vector<GgufTestValue> values = llama_values();
  values.push_back(u32_value("llama.expert_count", 2));
  values.push_back(u32_value("llama.expert_used_count", 1));
  std::vector<GgufTestTensor> tensors = llama_tensors();
  std::erase_if(tensors, [](const auto& one) {
    return one.name.find("ffn_") != std::string::npos && one.name != "blk.0.ffn_norm.weight";
  });
  tensors.push_back(zeros("blk.0.ffn_gate_inp.weight", {kHidden, 2}));
  for (const std::string expert : {"0", "1"}) {
    tensors.push_back(zeros("blk.0.ffn_gate." + expert + ".weight", {kHidden, kWidth}));
    tensors.push_back(zeros("blk.0.ffn_up." + expert + ".weight", {kHidden, kWidth}));
    tensors.push_back(zeros("blk.0.ffn_down." + expert + ".weight", {kWidth, kHidden}));
  }
  const TempFolder folder;
  write_file(folder.file("m.gguf"), gguf_file(values, tensors));
  check_whole(*open_gguf(folder.file("m.gguf")));
}

TEST_CASE("a factor without a kind stretches positions, under its older name too") {
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    std::vector<GgufTestValue> values = llama_values();
    values.push_back(number_value(key, 4.0F));
    const TempFolder folder;
    write_file(folder.file("m.gguf"), gguf_file(values, llama_tensors()));
    const auto files = open_gguf(folder.file("m.gguf"));
    CHECK(parse_json(*files->find_text("config.json"))["rope_scaling"] ==
          Json({{"rope_type", "linear"}, {"factor", 4.0}}));
  }
}

TEST_CASE("Apertus's activation has numbers for each layer, or the file is refused") {
  std::vector<GgufTestValue> values = llama_values();
  for (GgufTestValue& value : values) {
    if (value.first.starts_with("llama.")) value.first.replace(0, 5, "apertus");
  }
  values.front() = text_value("general.architecture", "apertus");
  std::vector<GgufTestTensor> tensors = llama_tensors();
  std::erase_if(tensors, [](const auto& tensor) { return tensor.name.ends_with("gate.weight"); });
  tensors.push_back(zeros("blk.0.attn_q_norm.weight", {kHidden / 2}));
  tensors.push_back(zeros("blk.0.attn_k_norm.weight", {kHidden / 2}));
  check_refused(values, tensors, "xielu.alpha_p");
  for (const char* key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"}) {
    values.push_back(numbers_value(key, {0.5F}));
  }
  const TempFolder folder;
  write_file(folder.file("m.gguf"), gguf_file(values, tensors));
  check_whole(*open_gguf(folder.file("m.gguf")));
  values.back() = numbers_value("xielu.eps", {0.5F, 0.25F});
  check_refused(values, tensors, "xielu.eps: expected 1 values, one for each layer, got 2");
}

TEST_CASE("metadata are shown as lines of text, long ones by their beginning") {
  std::vector<GgufTestValue> values = llama_values();
  values.push_back(text_value("general.name", "one\ntwo"));
  values.push_back(text_value("general.description", std::string(100, 'x')));
  values.push_back(text_value("general.odd", "\xFF"));
  values.push_back(numbers_value("general.numbers", {0.5F, 2.0F}));
  const TempFolder folder;
  write_file(folder.file("m.gguf"), gguf_file(values, llama_tensors()));
  const Json shown =
      parse_json(*open_gguf(folder.file("m.gguf"))->find_text(gguf::kMetadataTextFile));
  CHECK(shown.size() == values.size());
  CHECK(shown["general.architecture"] == "llama");
  CHECK(shown["llama.embedding_length"] == "8");
  CHECK(shown["tokenizer.ggml.tokens"] == "3 of string");
  CHECK(shown["general.name"] == "one two");
  CHECK(shown["general.description"] == std::string(60, 'x') + "... (100 bytes)");
  CHECK(shown["general.odd"] == "general.odd: not UTF-8");
  CHECK(shown["general.numbers"] == "[0.5, 2]");
}

TEST_CASE("a part of a GGUF model under another name says what it is") {
  std::vector<GgufTestValue> values = llama_values();
  values.push_back({"split.count", GgufBytes().number<uint32_t>(2).number<uint16_t>(3).text()});
  check_refused(values, llama_tensors(), "one of 3 files that belong together");
}

TEST_CASE("what a GGUF file says and this build does not know is refused by name") {
  const auto with = [](GgufTestValue value) {
    std::vector<GgufTestValue> values = llama_values();
    std::erase_if(values, [&](const GgufTestValue& other) { return other.first == value.first; });
    values.push_back(std::move(value));
    return values;
  };
  const auto tensors = llama_tensors();
  check_refused(with(text_value("general.architecture", "nonsense")), tensors,
                "'nonsense' is not supported");
  check_refused(with(u32_value("llama.new_trick", 1)), tensors, "llama.new_trick");
  check_refused(with(text_value("llama.rope.scaling.type", "bent")), tensors, "\"bent\"");
  check_refused(with(u32_value("tokenizer.ggml.new_trick", 1)), tensors,
                "tokenizer.ggml.new_trick");
  check_refused(with(text_value("tokenizer.ggml.pre", "bent")), tensors, "'bent'");
  check_refused(with(text_value("tokenizer.ggml.model", "bent")), tensors, "'bent'");
  check_refused(with(u32_value("llama.attention.head_count", 0)), tensors,
                "head_count: expected 1 or more");
  check_refused(with(u32_value("llama.attention.head_count", 1U << 30)), tensors, "ask for");
  check_refused(with(u32_value("llama.attention.key_length", 1U << 30)), tensors, "ask for");
  check_refused(with(u32_value("llama.embedding_length", ~0U)), tensors,
                "expected at most 2147483648");
  check_misfit(with(u32_value("llama.block_count", 2)), tensors, "missing");
  std::vector<GgufTestTensor> more = tensors;
  more.push_back(zeros("blk.0.new_trick.weight", {kHidden}));
  check_refused(llama_values(), more, "blk.0.new_trick.weight");
  more.back() = zeros("blk.1.ffn_up.weight", {kHidden, kWidth});
  check_misfit(llama_values(), more, "model.layers.1.mlp.up_proj.weight");
  std::vector<GgufTestTensor> fewer = tensors;
  fewer.pop_back();
  check_misfit(llama_values(), fewer, "model.layers.0.mlp.down_proj.weight");
}

// BERT of one layer.
std::vector<GgufTestValue> bert_values() {
  return {text_value("general.architecture", "bert"),
          u32_value("bert.block_count", 1),
          u32_value("bert.context_length", 64),
          u32_value("bert.embedding_length", kHidden),
          u32_value("bert.feed_forward_length", kWidth),
          u32_value("bert.attention.head_count", 2),
          number_value("bert.attention.layer_norm_epsilon", 1e-12F),
          u32_value("bert.pooling_type", 2),
          text_value("tokenizer.ggml.model", "gpt2"),
          text_value("tokenizer.ggml.pre", "gpt-2"),
          list_value("tokenizer.ggml.tokens", {"a", "b", "c"})};
}

std::vector<GgufTestTensor> bert_tensors() {
  std::vector<GgufTestTensor> out = {zeros("token_embd.weight", {kHidden, kTokens}),
                                     zeros("position_embd.weight", {kHidden, 64}),
                                     zeros("token_types.weight", {kHidden})};
  const auto add = [&](const std::string& name, uint64_t cols, uint64_t rows) {
    out.push_back(zeros(name + ".weight", {cols, rows}));
    out.push_back(zeros(name + ".bias", {rows}));
  };
  const auto add_norm = [&](const std::string& name) {
    out.push_back(zeros(name + ".weight", {kHidden}));
    out.push_back(zeros(name + ".bias", {kHidden}));
  };
  add_norm("token_embd_norm");
  add("blk.0.attn_qkv", kHidden, 3 * kHidden);
  add("blk.0.attn_output", kHidden, kHidden);
  add_norm("blk.0.attn_output_norm");
  add("blk.0.ffn_up", kHidden, kWidth);
  add("blk.0.ffn_down", kWidth, kHidden);
  add_norm("blk.0.layer_output_norm");
  return out;
}

TEST_CASE("a GGUF file of an encoder says how it pools, or that it gives scores") {
  const TempFolder folder;
  const std::string path = folder.file("m.gguf");
  const auto task_of = [&](const std::vector<GgufTestValue>& values,
                           const std::vector<GgufTestTensor>& tensors) {
    write_file(path, gguf_file(values, tensors));
    const auto files = open_gguf(path);
    check_whole(*files);
    return load_model_config(*files).task;
  };
  std::vector<GgufTestValue> values = bert_values();
  std::vector<GgufTestTensor> tensors = bert_tensors();
  CHECK(task_of(values, tensors) == Task::kEmbed);

  const auto with_pooling = [&](uint32_t type) {
    std::vector<GgufTestValue> out = bert_values();
    for (GgufTestValue& value : out) {
      if (value.first == "bert.pooling_type") value = u32_value(value.first, type);
    }
    return out;
  };
  check_refused(with_pooling(9), tensors, "bert.pooling_type: 9 is not supported");
  check_refused(with_pooling(4), tensors, "bert.pooling_type");

  tensors.push_back(zeros("cls.output.weight", {kHidden}));  // of one label
  tensors.push_back(zeros("cls.output.bias", {1}));
  CHECK(task_of(values, tensors) == Task::kEmbed);  // as it says itself
  check_refused(with_pooling(4), tensors, "cls.output: the layer in front of this classifier");
  tensors.push_back(zeros("cls.weight", {kHidden, kHidden}));
  tensors.push_back(zeros("cls.bias", {kHidden}));
  CHECK(task_of(with_pooling(4), tensors) == Task::kClassify);
  values = with_pooling(4);
  values.push_back(list_value("bert.classifier.output_labels", {"good", "bad"}));
  check_refused(values, tensors, "expected 1 labels");
  values = with_pooling(4);
  values.push_back(u32_value("bert.attention.head_count_kv", 1));
  check_refused(values, tensors, "bert.attention.head_count_kv: expected 2");
}

TEST_CASE("fields of a GGUF file that no tensor of it bears out are refused") {
  std::vector<GgufTestValue> values = llama_values();
  for (auto& [key, value] : values) {
    if (key.starts_with("llama.")) key.replace(0, 5, "lfm2");
  }
  values[0] = text_value("general.architecture", "lfm2");
  values.push_back(u32_value("lfm2.attention.head_count_kv", 1));
  values.push_back(u32_value("lfm2.shortconv.l_cache", 4));
  std::vector<GgufTestTensor> tensors = {zeros("token_embd.weight", {kHidden, kTokens}),
                                         zeros("blk.0.shortconv.conv.weight", {3, kHidden})};
  check_refused(values, tensors, "blk.0.shortconv.conv.weight has 24 elements");
  for (auto& [key, value] : values) {
    if (key == "lfm2.attention.head_count") value = u32_value(key, 0).second;
  }
  check_refused(values, tensors, "lfm2.attention.head_count: expected 1 or more, got 0");
  tensors = llama_tensors();
  tensors[0] = {"token_embd.weight", {}, 0, std::string(4, '\0')};
  check_misfit(llama_values(), tensors, "model.embed_tokens.weight");
}

TEST_CASE("a GGUF file that is cut anywhere is refused, and so is one that is not there") {
  const TempFolder folder;
  const std::string path = folder.path() + "/m.gguf";
  const std::string text = gguf_file(llama_values(), llama_tensors());
  for (size_t size = 0; size < text.size(); size += 97) {
    write_file(path, text.substr(0, size));
    INFO(size);
    CHECK_THROWS_AS(check_whole(*open_gguf(path)), Error);
  }
  CHECK_THROWS_WITH(open_gguf(folder.path() + "/none.gguf"), Catch::Contains("none.gguf"));
}

}  // namespace tgi
