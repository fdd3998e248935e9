// What the readers of DeBERTa, Jina's BERT and ERNIE make of their own fields, and what they
// refuse; and positions that are waves.
#include <cmath>
#include <string>

#include "engine/model/architecture.h"
#include "engine/model/host_weights.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::encoders_test {
namespace {

ModelConfig read(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config).config;
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

const Json kRelative = {{"relative_attention", true}, {"pos_att_type", "c2p|p2c"}};

Json relative(const Json& more) {
  Json out = kRelative;
  out.update(more);
  return out;
}

TEST_CASE("DeBERTa's kinds of distances are positions, or buckets, to both sides") {
  const ModelConfig plain = read("DebertaModel", kRelative);
  CHECK(plain.distances.num_kinds == 2 * 512);
  CHECK(plain.distances.log_reach == 0);
  CHECK(plain.distances.has_keys);
  CHECK(plain.distances.has_queries);
  CHECK(plain.attention_scale == Approx(1.0 / std::sqrt(64.0 * 3.0)));
  CHECK(read("DebertaModel", relative({{"max_relative_positions", 40}})).distances.num_kinds == 80);

  const ModelConfig third =
      read("DebertaV2Model", relative({{"position_buckets", 256}, {"share_att_key", true}}));
  CHECK(third.distances.num_kinds == 2 * 256);
  CHECK(third.distances.log_reach == 512);
  CHECK(third.distances.shares_projections);

  const ModelConfig one = read("DebertaV2Model", relative({{"pos_att_type", {"p2c"}}}));
  CHECK_FALSE(one.distances.has_keys);
  CHECK(one.attention_scale == Approx(1.0 / std::sqrt(64.0 * 2.0)));
  // Scores are divided by more even where nothing is added to them.
  const ModelConfig absolute = read("DebertaModel", {{"pos_att_type", "c2p"}});
  CHECK_FALSE(absolute.distances.has_products());
  CHECK(absolute.attention_scale == one.attention_scale);
}

TEST_CASE("what DeBERTa's reader does not know is refused by name") {
  CHECK_THAT(refused("DebertaModel", {{"pos_att_type", "c2p|p2p"}}, Code::kUnsupported),
             Catch::Contains("pos_att_type: expected c2p and p2c") && Catch::Contains("'p2p'"));
  CHECK_THAT(refused("DebertaModel", {{"pos_att_type", {"c2p", "c2p"}}}, Code::kUnsupported),
             Catch::Contains("each once at most"));
  CHECK_THAT(refused("DebertaModel", {{"talking_head", true}}, Code::kUnsupported),
             Catch::Contains("talking_head"));
  CHECK_THAT(refused("DebertaV2Model", {{"conv_kernel_size", 3}}, Code::kUnsupported),
             Catch::Contains("conv_kernel_size"));
  CHECK_THAT(refused("DebertaV2Model", {{"norm_rel_ebd", "rms"}}, Code::kUnsupported),
             Catch::Contains("norm_rel_ebd: 'rms' is not supported"));
  CHECK_THAT(refused("DebertaV2Model", relative({{"position_buckets", 2}}), Code::kInvalidArgument),
             Catch::Contains("position_buckets"));
  CHECK_THAT(refused("DebertaV2Model",
                     relative({{"position_buckets", 256}, {"max_relative_positions", 100}}),
                     Code::kInvalidArgument),
             Catch::Contains("less than twice the 100 positions"));
  CHECK_THAT(refused("DebertaV2Model", {{"embedding_size", 128}}, Code::kUnsupported),
             Catch::Contains("embedding_size"));
  CHECK_THAT(refused("DebertaV2ForSequenceClassification", {{"pooler_hidden_act", "tanh"}},
                     Code::kUnsupported),
             Catch::Contains("pooler_hidden_act"));
}

TEST_CASE("Jina's BERT has a gate and ALiBi where its file says so") {
  const ModelConfig gated = read("JinaBertForMaskedLM", {{"model_type", "bert"},
                                                         {"feed_forward_type", "reglu"},
                                                         {"position_embedding_type", "alibi"}});
  CHECK(gated.gated_mlp);
  CHECK(gated.activation == Activation::kRelu);
  CHECK(gated.alibi_slopes.size() == 12);
  CHECK_FALSE(gated.learned_positions);
  CHECK(read("BertModel", {{"model_type", "bert"}}).architecture == "BertModel");
  CHECK_THAT(refused("JinaBertModel", {{"feed_forward_type", "swiglu"}}, Code::kUnsupported),
             Catch::Contains("feed_forward_type: 'swiglu' is not supported"));
  CHECK_THAT(refused("JinaBertModel", {{"position_embedding_type", "rotary"}}, Code::kUnsupported),
             Catch::Contains("position_embedding_type: 'rotary' is not supported"));
  CHECK_THAT(refused("JinaBertModel", {{"model_type", "roberta"}}, Code::kInvalidArgument),
             Catch::Contains("expected 'bert'"));
}

TEST_CASE("ERNIE has a table of kinds of texts where its file says so") {
  CHECK(read("ErnieModel", {{"use_task_id", true}}).num_task_types == 3);
  CHECK(read("ErnieModel", {{"task_type_vocab_size", 5}}).num_task_types == 0);
}

TEST_CASE("positions that are waves are sines, then cosines, and nothing in an odd last column") {
  const std::vector<float> rows = make_sinusoids({.steps = 1, .first_position = 2}, 2, 5);
  REQUIRE(rows.size() == 10);
  CHECK(rows[0] == Approx(std::sin(2.0)));
  CHECK(rows[1] == Approx(std::sin(2e-4)));
  CHECK(rows[2] == Approx(std::cos(2.0)));
  CHECK(rows[3] == Approx(std::cos(2e-4)));
  CHECK(rows[4] == 0.0F);
  CHECK(rows[5] == Approx(std::sin(3.0)));
}

}  // namespace
}  // namespace tgi::encoders_test
