// What is known of config.json's fields, against the config classes of transformers
// (scripts/golden/make_config_classes) and against the reader itself.
#include "engine/model/known_fields.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <map>

#include "base/error.h"
#include "base/files/file_source.h"
#include "tests/catch.h"
#include "tests/model/model_files.h"

namespace tgi::known_fields_test {
namespace {

struct ClassFile {
  std::string name;
  Json json;
};

bool is_known(const std::string& name) {
  return std::ranges::any_of(architectures(), [&](const Architecture* architecture) {
    return std::ranges::find(architecture->names, name) != architecture->names.end();
  });
}

// Files have classes of families that are not read here too: those are left out.
ClassFile read_class_file(const FileSource& folder, const std::string& name) {
  ClassFile out{name, parse_json(folder.require_text(name))};
  Json known = Json::object();
  for (const auto& [class_name, defaults] : out.json.at("classes").items()) {
    if (is_known(class_name)) known[class_name] = defaults;
  }
  out.json["classes"] = known;
  return out;
}

std::vector<ClassFile> class_files() {
  std::vector<ClassFile> out;
  const std::string root = std::string(TGI_SOURCE_DIR) + "/tests/golden/config_classes";
  const auto folder = open_folder(root);
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    out.push_back(read_class_file(*folder, entry.path().filename().string()));
  }
  return out;
}

// The sizes of these classes fit each other with a head_dim alone, which they do not have.
bool lacks_head_dim(std::string_view name) {
  return name == "Glm4MoeForCausalLM" || name == "Glm4vMoeTextModel" ||
         name == "Qwen3OmniMoeTextModel";
}

const Architecture& architecture_of(const std::string& name) {
  const Json config = {{"architectures", {name}}};
  return find_architecture(JsonReader(config, ""));
}

// All that a reader can say, to compare.
Json as_json(const ModelConfig& c) {
  Json layers = Json::array();
  for (const LayerPlan& layer : c.layers) {
    const PositionScale& scale = layer.query_scale;
    layers.push_back({static_cast<int>(layer.mlp),
                      layer.experts_by_token,
                      layer.sliding_window,
                      layer.rope,
                      scale.beta,
                      scale.positions,
                      scale.offset,
                      scale.power,
                      layer.score_multiplier,
                      layer.has_attention,
                      layer.has_state,
                      layer.attention_chunk,
                      layer.divides_qk,
                      layer.divides_v,
                      layer.keys_are_values,
                      layer.num_heads,
                      layer.num_kv_heads,
                      layer.head_dim,
                      layer.intermediate_size,
                      layer.kv_layer,
                      layer.block_layer,
                      layer.first_difference,
                      layer.gate_cutoff ? Json(*layer.gate_cutoff) : Json(nullptr),
                      layer.gate_limits.limit,
                      layer.gate_limits.up_limit,
                      layer.expert_limits.limit,
                      layer.expert_limits.up_limit,
                      layer.mixer_factors.stream,
                      layer.mixer_factors.branch,
                      layer.mlp_factors.stream,
                      layer.mlp_factors.branch,
                      static_cast<int>(layer.seen),
                      layer.tokens_per_entry,
                      layer.entries_overlap,
                      layer.back_rope});
  }
  Json ropes = Json::array();
  for (const RopeSpec& rope : c.ropes) {
    ropes.push_back({rope.rotary_dim, rope.interleaved, rope.base, rope.inv_freq,
                     rope.attention_factor, rope.dynamic_factor, rope.dynamic_original_positions});
  }
  const RouteRule& route = c.experts.route;
  const StateConfig& state = c.state;
  return {
      {"experts",
       {c.experts.num_experts, c.experts.intermediate_size, c.experts.shared_intermediate_size,
        static_cast<int>(route.score), route.top_k, route.num_groups, route.top_groups,
        route.group_best, route.normalises, route.scale, route.mixer_width, route.num_identity,
        c.experts.has_choice_bias, c.experts.has_scale, c.experts.weighs_inputs,
        c.experts.output_multiplier, c.experts.hidden_size}},
      {"layer_inputs", {c.layer_inputs.size, c.layer_inputs.vocab_size}},
      {"streams",
       {c.streams.count, c.streams.active, c.streams.has_scales, c.streams.connects, c.streams.eps,
        c.streams.keeps_embedding, c.streams.magnitude, c.streams.mixing_turns,
        c.streams.adds_eps_to_branch}},
      {"shared_blocks", {c.shared_blocks.low_rank, c.shared_blocks.low_rank_qkv}},
      {"norm_gate_rank", c.norm_gate_rank},
      {"indexer",
       {c.indexer.num_heads, c.indexer.head_dim, c.indexer.rope, c.indexer.rule.top_k,
        c.indexer.rule.block_size, c.indexer.rule.local_blocks, c.indexer.first_rotated,
        c.indexer.norm_eps, c.latent.gates_values, c.latent.reads_row_twice}},
      {"laurel_rank", c.laurel_rank},
      {"state",
       {static_cast<int>(state.kind),
        state.conv_kernel,
        state.num_heads,
        state.head_dim,
        state.state_size,
        state.num_groups,
        state.step_rank,
        state.min_step,
        std::isinf(state.max_step) ? -1.0F : state.max_step,
        state.has_conv_bias,
        state.has_in_bias,
        state.has_out_bias,
        state.has_norm,
        state.norm_first,
        state.norms_parts,
        state.norm_eps,
        state.input_multiplier,
        state.part_multipliers,
        state.output_multiplier,
        state.decays_numbers,
        state.strength,
        state.floor,
        state.gate_rank,
        static_cast<int>(state.gate)}},
      {"multipliers",
       {c.attention_input_multiplier, c.key_multiplier, c.attention_output_multiplier,
        c.mlp_gate_multiplier, c.mlp_output_multiplier, c.has_output_gate,
        static_cast<int>(c.output_gate), c.gates_heads}},
      {"sizes",
       {c.vocab_size, c.hidden_size, c.embedding_size, c.projects_embedding_last,
        c.intermediate_size, c.num_layers, c.num_stored_layers, c.num_heads, c.num_kv_heads,
        c.head_dim, c.value_dim, c.max_positions, c.stated_positions, c.unread_rows,
        c.layers_after_last}},
      {"norm",
       {static_cast<int>(c.norm_kind), c.norm_eps, c.post_norm_eps, c.norm_weight_offset,
        c.final_norm_as_stored}},
      {"mlp",
       {static_cast<int>(c.activation), c.gated_mlp, c.mlp_bias, c.gate_limits.limit,
        c.gate_limits.slope, c.gate_limits.up_offset, c.gate_limits.up_limit}},
      {"attention",
       {c.attention_bias, c.attention_output_bias, c.attention_scale, c.attention_softcap,
        c.qkv_clip, c.has_qk_norm, static_cast<int>(c.qk_norm), static_cast<int>(c.qk_norm_kind),
        c.qk_norm_after_rope}},
      {"branches",
       {c.parallel_branches, c.residual_multiplier, c.norms_have_weights, c.norms_embedding,
        c.has_post_norms, c.has_inner_norms}},
      {"layers", layers},
      {"latent",
       {c.latent.rank, c.latent.query_rank, c.latent.kept_dim, c.latent.rotary_dim,
        c.latent.value_dim, c.latent.multiplier}},
      {"entries", {c.entries.output_groups, c.entries.output_rank}},
      {"shared", {c.shares_branch_norm, c.residual_after_norm, c.position_offset}},
      {"encoder",
       {c.is_causal, c.num_token_types, c.num_task_types, c.norms_have_biases,
        static_cast<int>(c.head_input), c.distance_buckets, c.distances.num_kinds,
        c.distances.log_reach, c.distances.has_keys, c.distances.has_queries,
        c.distances.shares_projections, c.distances.norms_rows}},
      {"alibi", c.alibi_slopes},
      {"positions",
       {{"learned", c.learned_positions},
        {"sinusoids", {c.sinusoids.steps, c.sinusoids.first_position}},
        {"ropes", ropes}}},
      {"head",
       {c.embedding_multiplier, c.logit_scale, c.logit_softcap, c.tied_embeddings, c.lm_head_bias,
        c.head_dense_bias, static_cast<int>(c.head_activation), static_cast<int>(c.head_division)}},
      {"dtype", static_cast<int>(c.checkpoint_dtype)},
      {"tokens", {c.eos_token_ids, c.bos_token_id}}};
}

Json with_all(Json config, const Json& more) {
  for (const auto& [key, value] : more.items()) config[key] = value;
  return config;
}

TEST_CASE("every field of the config classes of transformers is known") {
  const std::vector<ClassFile> files = class_files();
  REQUIRE(files.size() >= 2);
  for (const ClassFile& file : files) {
    REQUIRE(file.json.at("classes").size() >= 5);
    for (const auto& [name, defaults] : file.json.at("classes").items()) {
      const Architecture& architecture = architecture_of(name);
      const auto check = [&](const std::string& field) {
        INFO(file.name << " " << name << " " << field);
        const bool is_alias = std::ranges::any_of(
            architecture.aliases, [&](const FieldAlias& row) { return row.alias == field; });
        CHECK((is_alias || find_field(architecture.fields, generic_fields(), field) != nullptr));
      };
      for (const auto& [field, value] : defaults.items()) check(field);
      REQUIRE(file.json.at("generic").size() > 80);
      for (const Json& field : file.json.at("generic")) check(field.get<std::string>());
    }
  }
}

TEST_CASE("a field that is not there means what the config class takes for it") {
  for (const ClassFile& file : class_files()) {
    for (const auto& [name, defaults] : file.json.at("classes").items()) {
      INFO(file.name << " " << name);
      Json nothing = {{"architectures", {name}}};
      // Some classes have tokens past the end of their vocabulary, which are no default here.
      if (name == "ArceeForCausalLM" || name == "Starcoder2ForCausalLM") {
        nothing["vocab_size"] = 128256;
      }
      // These have no sizes of their own in the class.
      if (name == "Dots1ForCausalLM") {
        nothing["n_routed_experts"] = nothing["num_experts_per_tok"] = 8;
        nothing["n_shared_experts"] = 1;
      }
      if (lacks_head_dim(name)) nothing["head_dim"] = 128;
      Json all = with_all(defaults, nothing);
      all["architectures"] = {name};
      const ModelConfig config = load_config(nothing).config;
      // An encoder draws no tokens: where an answer begins and ends means nothing to it.
      const auto settled = [](const ModelConfig& one) {
        Json out = as_json(one);
        if (!one.is_causal) out.erase("tokens");
        return out;
      };
      CHECK(settled(config) == settled(load_config(all).config));
      // Some by hand: a reader that reads neither would pass.
      const Json& text = defaults.contains("text_config") ? defaults.at("text_config") : defaults;
      const auto check = [&](int64_t got, std::initializer_list<const char*> keys) {
        for (const char* key : keys) {
          if (!text.contains(key)) continue;
          INFO(key);
          const Json& value =
              text.at(key).is_null() ? text.at("num_attention_heads") : text.at(key);
          CHECK(got == value.get<int64_t>());
          return;
        }
      };
      if (!nothing.contains("vocab_size")) check(config.vocab_size, {"vocab_size"});
      check(config.hidden_size, {"hidden_size", "n_embd", "d_model"});
      check(config.num_layers, {"num_hidden_layers", "n_layer", "n_layers"});
      check(config.num_heads, {"num_attention_heads", "n_head", "n_heads"});
      const bool shares_one_key = config.entries.output_groups > 0;
      if (!text.contains("multi_query") && !shares_one_key) {
        check(config.num_kv_heads, {"num_key_value_heads", "n_head", "n_heads"});
      }
      const int32_t unused_positions = config.is_causal ? 0 : config.position_offset;
      check(config.max_positions + unused_positions,
            {"max_position_embeddings", "n_positions", "max_seq_len"});
      if (!config.is_causal) continue;
      const bool text_ties = text.value("tie_word_embeddings", false);
      CHECK(config.tied_embeddings == defaults.value("tie_word_embeddings", text_ties));
      const Json bos = text.value("bos_token_id", Json(nullptr));
      CHECK(config.bos_token_id == (bos.is_null() ? -1 : bos.get<int32_t>()));
    }
  }
}

TEST_CASE("mistral without num_key_value_heads has 8, with null as many as heads") {
  Json config = {
      {"architectures", {"MistralForCausalLM"}}, {"num_attention_heads", 16}, {"hidden_size", 64}};
  CHECK(load_config(config).config.num_kv_heads == 8);
  config["num_key_value_heads"] = nullptr;
  CHECK(load_config(config).config.num_kv_heads == 16);
  config.erase("num_key_value_heads");
  config["num_attention_heads"] = 4;
  CHECK_THROWS_WITH(load_config(config),
                    Catch::Contains("4 heads can't be shared among 8 KV heads (the default"));
}

// Another value for each field that is read, with what else it needs to have a meaning.
struct Change {
  Json value;
  Json beside = Json::object();
};

std::map<std::string, Change> changes() {
  const Json linear = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 10000.0}};
  // With what it needs where it means longrope.
  const Json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"short_factor", Json(48, 1.0)},
                     {"long_factor", Json(48, 2.0)}};
  Json types(32, "full_attention");
  types[0] = "sliding_attention";
  Json indexers(78, "full");
  indexers[1] = "shared";
  const Json window = {{"use_sliding_window", true}, {"sliding_window", 64}};
  const Json two_kinds = {{"num_hidden_layers", 2},
                          {"layer_types", {"sliding_attention", "full_attention"}},
                          {"sliding_window", 64}};
  const Json experts = {{"enable_moe_block", true},
                        {"num_experts", 6},
                        {"top_k_experts", 2},
                        {"moe_intermediate_size", 40}};
  return {
      {"vocab_size", {33000}},
      {"hidden_size", {12288}},
      {"intermediate_size", {4608}},
      {"num_hidden_layers", {3}},
      {"num_attention_heads", {256}},
      {"num_key_value_heads", {3}},
      {"head_dim", {72}},
      {"hidden_act", {"relu"}},
      {"max_position_embeddings", {7777777}},
      {"index_topk", {1000}},
      {"index_head_dim", {256, {{"layer_types", Json(60, "minimax_m3_sparse")}}}},
      {"index_n_heads", {8, {{"layer_types", Json(60, "minimax_m3_sparse")}}}},
      {"index_local_blocks", {2, {{"layer_types", Json(60, "minimax_m3_sparse")}}}},
      {"indexer_types", {indexers, {{"num_hidden_layers", 78}}}},
      {"index_topk_pattern", {indexers}},
      {"gated_norm_rank", {20}},
      {"hc_mult", {3}},
      {"hc_eps", {1e-3}},
      {"hc_magnitude", {1.5}},
      {"hc_sinkhorn_iters", {3}},
      {"o_groups", {4}},
      {"o_lora_rank", {512}},
      {"compress_rates", {{{"compressed_sparse_attention", 8}}}},
      {"compress_ratios", {Json(43, 0)}},
      {"compress_rate_csa", {8}},
      {"compress_rate_hca", {64}},
      {"compress_rope_theta", {500.0}},
      {"num_hash_layers", {5}},
      {"scoring_func", {"sigmoid"}},
      {"index_topk_freq", {3}},
      {"index_skip_topk_offset", {3, {{"index_topk_freq", 4}}}},
      {"index_block_size", {64, {{"layer_types", Json(60, "minimax_m3_sparse")}}}},
      {"index_topk_blocks", {4, {{"layer_types", Json(60, "minimax_m3_sparse")}}}},
      {"sparse_attention_config", {{{"sparse_attention_freq", Json(60, 1)}}}},
      {"dense_intermediate_size", {96}},
      {"use_attention_gate", {false}},
      {"use_sandwich_norm", {false}},
      {"num_attention_heads_per_layer", {Json(40, 96)}},
      {"gating", {"per-element"}},
      {"moe_routed_scaling_factor", {3.0}},
      {"rms_norm_eps", {1e-3}},
      {"afn", {"relu"}},
      {"cross_attention_layers", {{1, 5}}},
      {"tie_word_embeddings", {true}},
      {"rope_theta", {3e5, {{"rope_parameters", {{"rope_type", "default"}}}}}},
      {"rope_scaling", {linear}},
      {"rope_parameters", {linear}},
      {"partial_rotary_factor", {0.75}},
      {"is_causal", {false}},
      {"use_bidirectional_attention", {true}},
      {"original_max_position_embeddings", {64, {{"rope_scaling", yarn}}}},
      {"attention_bias", {true}},
      {"mlp_bias", {true}},
      {"sliding_window", {32, window}},
      {"use_sliding_window", {true, {{"max_window_layers", 0}, {"sliding_window", 64}}}},
      {"max_window_layers", {5, window}},
      {"layer_types", {types, window}},
      {"sliding_window_pattern", {3}},
      {"no_rope_layers", {Json(36, 0)}},
      {"no_rope_layer_interval", {3}},
      {"hidden_activation", {"relu"}},
      {"query_pre_attn_scalar", {100}},
      {"attn_logit_softcapping", {3.0}},
      {"final_logit_softcapping", {3.0}},
      {"rope_local_base_freq", {500.0}},
      {"text_config", {{{"hidden_size", 640}}}},
      {"layer_norm_eps", {1e-3}},
      {"norm_eps", {1e-3}},
      {"norm_bias", {true}},
      {"type_vocab_size", {5}},
      {"pad_token_id", {3}},
      {"local_attention", {64}},
      {"relative_attention_num_buckets", {8}},
      {"attention_heads", {32}},
      {"dff", {4096}},
      {"use_task_id", {true}},
      {"task_type_vocab_size", {7, {{"use_task_id", true}}}},
      {"relative_attention", {true}},
      {"max_relative_positions", {20, {{"relative_attention", true}}}},
      {"position_biased_input", {false}},
      {"pos_att_type", {"c2p"}},
      {"position_buckets", {16, {{"relative_attention", true}}}},
      {"share_att_key", {true}},
      {"norm_rel_ebd", {"layer_norm"}},
      {"attention_head_size", {48}},
      {"feed_forward_type", {"reglu"}},
      {"global_attn_every_n_layers", {2}},
      {"global_rope_theta", {1234.5}},
      {"local_rope_theta", {1234.5}},
      {"classifier_pooling", {"mean"}},
      {"embedding_size", {64}},
      {"num_hidden_groups", {2}},
      {"classifier_activation", {"tanh"}},
      {"activation", {"relu"}},
      {"dim", {96}},
      {"hidden_dim", {96}},
      {"n_heads", {3}},
      {"n_layers", {3}},
      {"logit_scale", {0.5}},
      {"use_qk_norm", {true}},
      {"num_local_experts", {12}},
      {"num_experts", {24, experts}},
      {"enable_moe_block", {true, experts}},
      {"top_k_experts", {3, experts}},
      {"attention_k_eq_v", {true}},
      {"num_kv_shared_layers", {5}},
      {"use_double_wide_mlp", {true, {{"num_kv_shared_layers", 5}}}},
      {"hidden_size_per_layer_input", {100}},
      {"vocab_size_per_layer_input", {300000}},
      {"altup_num_inputs", {3}},
      {"altup_active_idx", {2}},
      {"altup_correct_scale", {false}},
      {"laurel_rank", {7}},
      {"activation_sparsity_pattern", {Json(35, 0.5)}},
      {"global_head_dim", {100}},
      {"num_global_key_value_heads", {2, {{"attention_k_eq_v", true}}}},
      {"per_layer_config", {Json{{"5", {{"head_dim", 100}}}}}},
      {"num_experts_per_tok", {3}},
      {"norm_topk_prob", {true, {{"expert_selection_fn", "sigmoid"}}}},
      {"moe_intermediate_size", {96, experts}},
      {"shared_expert_intermediate_size", {96}},
      {"shared_intermediate_size", {96}},
      {"decoder_sparse_step", {2}},
      {"mlp_only_layers", {{1}}},
      {"qkv_bias", {true}},
      {"n_routed_experts", {32}},
      {"n_shared_experts", {3}},
      {"first_k_dense_replace", {4}},
      {"n_group", {2}},
      {"topk_group", {2, {{"n_group", 4}}}},
      {"routed_scaling_factor", {3.0}},
      {"topk_method",
       {"group_limited_greedy", {{"n_group", 4}, {"topk_group", 2}, {"num_experts_per_tok", 2}}}},
      {"mlp_layer_types", {Json(47, "sparse")}},
      {"kv_lora_rank", {100}},
      {"q_lora_rank", {100}},
      {"qk_nope_head_dim", {100}},
      {"qk_rope_head_dim", {100}},
      {"v_head_dim", {100}},
      {"rope_interleave", {false}},
      {"intermediate_size_mlp", {100}},
      {"moe_layers", {{1}}},
      {"interleave_moe_layer_step", {3}},
      {"attention_chunk_size", {100}},
      {"attn_temperature_tuning", {false}},
      {"floor_scale", {100}},
      {"attn_scale", {0.3}},
      {"lm_head_bias", {true}},
      {"router_jitter_noise", {0.2}},
      {"use_post_norm", {false}},
      {"mup_enabled", {true}},
      {"global_attn_every_n_layers", {3}},
      {"num_shared_experts", {3}},
      {"route_scale", {3.0}},
      {"attn_layer_indices", {{0, 2}}},
      {"moe_latent_size", {100}},
      {"scale_emb", {3.0}},
      {"scale_depth", {3.0}},
      {"dim_model_base", {100}},
      {"moe_num_experts", {32}},
      {"moe_k", {1}},
      {"moe_num_shared_experts", {1}},
      {"moe_layer_start_index", {2}},
      {"moe_layer_end_index", {5}},
      {"moe_layer_interval", {2}},
      {"clip_qkv", {2.0}},
      {"swiglu_limit", {3.0}},
      {"moe_topk", {3}},
      {"ffn_config", {{{"moe_top_k", 2}}}},
      {"num_shared_expert", {2}},
      {"mlp_layer_types", {Json::array({"sparse"})}},
      {"qk_norm_type", {"olmo"}},
      {"norm_after", {true}},
      {"rope_scaling_layers", {{0, 2}}},
      {"swiglu_alpha", {2.0}},
      {"embedding_multiplier", {2.0}},
      {"residual_multiplier", {2.0}},
      {"attention_multiplier", {2.0}},
      {"logits_scaling", {2.0}},
      {"attention_out_bias", {true}},
      {"use_bias", {true}},
      {"n_embd", {1536}},
      {"n_layer", {3}},
      {"n_head", {6}},
      {"n_inner", {100}},
      {"n_positions", {77}},
      {"layer_norm_epsilon", {1e-3}},
      {"norm_epsilon", {1e-3}},
      {"rotary_pct", {0.5}},
      {"rotary_emb_base", {20000}},
      {"rotary_dim", {32}},
      {"use_parallel_residual", {true}},
      {"qk_layernorm", {true}},
      {"use_qkv_bias", {true}},
      {"multi_query", {true}},
      {"ffn_hidden_size", {100}},
      {"ffn_dim", {100}},
      {"num_kv_heads", {3}},
      {"activation", {"relu"}},
      {"bias", {true}},
      {"alibi", {true}},
      {"parallel_attn", {true}},
      {"new_decoder_architecture", {true}},
      {"num_ln_in_parallel_attn", {1, {{"new_decoder_architecture", true}}}},
      {"seq_length", {77, {{"use_dynamic_ntk", true}}}},
      {"kv_channels", {64}},
      {"norm_head", {true}},
      {"model_dim", {4096}},
      {"num_transformer_layers", {3}},
      {"num_query_heads", {Json(12, 16)}},
      {"ffn_multipliers", {Json(12, 3.0)}},
      {"ffn_dim_divisor", {512, {{"ffn_multipliers", Json(12, 0.4)}}}},
      {"max_context_length", {7777}},
      {"activation_fn_name", {"relu"}},
      {"normalize_qk_projections", {false}},
      {"share_input_output_layers", {false}},
      {"rope_freq_constant", {500}},
      {"block_configs", {{{{"attention", {{"n_heads_in_group", 3}}}}}}},
      {"use_dynamic_ntk", {true, {{"seq_length", 77}}}},
      {"use_logn_attn", {true, {{"seq_length", 77}}}},
      {"multi_query_attention", {true, {{"multi_query_group_num", 2}}}},
      {"multi_query_group_num", {2, {{"multi_query_attention", true}}}},
      {"layernorm_epsilon", {1e-3}},
      {"add_qkv_bias", {true}},
      {"rope_ratio", {2.0}},
      {"rotary", {{{"type", "origin"}, {"base", 50000.0}}}},
      {"apply_residual_connection_post_layernorm", {true}},
      {"d_model", {6144}},
      {"n_heads", {8}},
      {"n_layers", {3}},
      {"max_seq_len", {77}},
      {"attn_config", {{{"clip_qkv", 2.0}}}},
      {"word_embed_proj_dim", {512}},
      {"scale_embedding", {false}},
      {"do_layer_norm_before", {true}},
      {"enable_bias", {true}},
      {"layer_norm_elementwise_affine", {true}},
      {"model_max_length", {77}},
      {"z_loss_weight", {0}},
      {"activation_function", {"silu"}},
      {"scale_attn_weights", {false}},
      {"scale_attn_by_inverse_layer_idx", {true}},
      {"dtype", {"float16"}},
      {"torch_dtype", {"float16"}},
      {"bos_token_id", {7}},
      {"eos_token_id", {Json::array({7, 8})}},
      {"quantization_config", {Json::object()}},
      {"expand", {3}},
      {"state_size", {8}},
      {"conv_kernel", {3}},
      {"time_step_rank", {5}},
      {"use_conv_bias", {false}},
      {"mixer_rms_eps", {1e-3}},
      {"num_heads", {64, {{"head_dim", 128}}}},
      {"n_groups", {4}},
      {"time_step_limit", {{0.0, 0.5}}},
      {"conv_L_cache", {4}},
      {"conv_bias", {true}},
      {"full_attn_idxs", {{0, 2}}},
      {"tie_embedding", {false}},
      {"block_ff_dim", {300}},
      {"block_auto_adjust_ff_dim", {false}},
      {"block_ffn_dim_multiplier", {2.0}},
      {"block_multiple_of", {7}},
      {"num_dense_layers", {3}},
      {"use_expert_bias", {false}},
      {"position_embedding_type", {"rope"}},
      {"mamba_n_heads", {64}},
      {"mamba_d_head", {32}},
      {"mamba_d_state", {96}},
      {"mamba_n_groups", {2}},
      {"mamba_d_conv", {3}},
      {"mamba_expand", {3, {{"mamba_d_ssm", nullptr}}}},
      {"mamba_conv_bias", {false}},
      {"mamba_proj_bias", {true}},
      {"mamba_d_ssm", {2048}},
      {"mamba_rms_norm", {true}},
      {"mamba_norm_before_gate", {false}},
      {"mamba_dt_rank", {5}},
      {"mamba_num_heads", {64}},
      {"mamba_head_dim", {32}},
      {"ssm_state_size", {64}},
      {"projectors_bias", {true}},
      {"lm_head_multiplier", {2.0}},
      {"key_multiplier", {2.0}},
      {"attention_in_multiplier", {2.0}},
      {"attention_out_multiplier", {2.0}},
      {"ssm_in_multiplier", {2.0}},
      {"ssm_out_multiplier", {2.0}},
      {"mlp_multipliers", {{1.0, 2.0}}},
      {"ssm_multipliers", {{1.0, 2.0, 1.0, 1.0, 1.0}}},
      {"attn_layer_period", {5}},
      {"attn_layer_offset", {2}},
      {"expert_layer_period", {3}},
      {"expert_layer_offset", {0}},
      {"full_attention_interval", {3}},
      {"linear_conv_kernel_dim", {3}},
      {"linear_key_head_dim", {64}},
      {"linear_value_head_dim", {64}},
      {"linear_num_key_heads", {4}},
      {"linear_num_value_heads", {64}},
      {"linear_allow_neg_eigval", {false}},
      {"linear_head_dim", {64}},
      {"short_conv_kernel_size", {3}},
      {"layer_group_size", {3}},
      {"kda_safe_gate", {false}},
      {"kda_lower_bound", {-2.0}},
      {"linear_num_heads", {16}},
      {"linear_attn_config", {{{"head_dim", 64}}}},
      {"hybrid_override_pattern", {"M-*E"}},
      {"layers_block_type", {{"mamba", "mlp", "attention", "moe"}}},
      {"mlp_hidden_act", {"silu"}},
      {"layer_rope_theta", {{1.0}}},
      {"router_scaling_factor", {1.5}},
      {"expert_selection_fn", {"sigmoid"}},
      {"shared_expert_combination_strategy", {"sum", {{"num_shared_experts", 1}}}},
      {"prefix_dense_sliding_window_pattern", {3, {{"first_k_dense_replace", 2}}}},
      {"prefix_dense_intermediate_size", {300}},
      {"window_size", {7}},
      {"num_layers", {3}},
      {"attention_types", {{{{"local"}, 24}}}},
      {"moe_shared_expert_intermediate_size", {96}},
      {"decoder_bias", {false}},
      {"classifier_bias", {true}},
      {"output_vocab_size", {200}},
      {"moe_layers_enum", {"4,5"}},
      {"num_sliding_attention_heads", {96, two_kinds}},
      {"attention_other_setting", {{{"num_attention_heads", 96}}, two_kinds}},
      {"partial_rotary_factors", {Json(45, 0.5)}},
      {"swiglu_limits", {Json(45, 7.0)}},
      {"swiglu_limits_shared", {Json(45, 7.0)}},
      {"num_nextn_predict_layers", {3}},
      {"attention_value_scale", {0.5}},
      {"sliding_window_size", {32}},
      {"hybrid_layer_pattern", {Json(48, 1)}},
      {"moe_layer_freq", {Json(48, 0)}},
      {"swa_num_attention_heads", {32}},
      {"swa_num_key_value_heads", {16}},
      {"swa_head_dim", {100}},
      {"swa_v_head_dim", {100}},
      {"swa_rope_theta", {500.0}},
      {"expert_ffn_hidden_size", {100}},
      {"full_attn_alpha_factor", {3.5}},
      {"full_attn_beta_factor", {3.5}},
      {"linear_attn_alpha_factor", {3.5}},
      {"linear_attn_beta_factor", {3.5}},
      {"mlp_alpha_factor", {3.5}},
      {"mlp_beta_factor", {3.5}},
      {"lru_width", {5120}},
      {"conv1d_width", {2}},
      {"attention_window_size", {32}},
      {"logits_soft_cap", {5.0}},
      {"block_types", {{"attention"}}},
      {"intermediate_multiple_size", {3}},
      {"post_norm_eps", {1e-4}},
      {"qk_scale_factor", {2.5}},
      {"output_multiplier", {0.7}},
      {"layer_rope_theta", {{0.0, 10000.0}, {{"num_hidden_layers", 2}}}},
      {"kv_source_layers", {{0}}},
      {"zero_expert_num", {3}},
      {"share_expert_dim", {96}},
      {"num_mem_blocks", {2}},
      {"mamba_headdim", {64}},
      {"attention_head_dim", {80}},
      {"attention_hidden_size", {2560}},
      {"hybrid_layer_ids", {{6, 12}}},
      {"adapter_rank", {64}},
      {"use_shared_attention_adapter", {true}},
      {"use_mem_rope", {true}},
      {"use_long_context", {true}},
      {"add_bias_linear", {true}},
      {"n_mamba_heads", {16}},
      {"mamba_ngroups", {2}},
      {"time_step_min", {0.01}},
      {"moe_router_scaling_factor", {3.0}},
      {"architectures", {{"XForCausalLM"}}},
      {"model_type", {"x"}},
  };
}

// The reader's answer or its refusal: both are a use of the field.
std::string outcome(const Json& config) {
  try {
    return as_json(load_config(config).config).dump();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("a field that is said to be read changes the model, or is refused") {
  const std::map<std::string, Change> all = changes();
  for (const Architecture* architecture : architectures()) {
    const auto check = [&](const KnownField& field) {
      if (field.use != FieldUse::kRead && field.use != FieldUse::kReadOrNull) return;
      // A family's own row stands before the common one.
      if (find_field(architecture->fields, generic_fields(), field.name)->use != field.use) return;
      INFO(architecture->names.front() << " " << field.name);
      const auto found = all.find(std::string(field.name));
      REQUIRE(found != all.end());
      const auto& [name, change] = *found;
      // What it needs beside it differs from family to family.
      bool is_used = false;
      const Json first = {{"max_window_layers", 0}};
      const Json windows = {{"layer_types", Json(28, "sliding_attention")}};
      const Json more_windows = {{"layer_types", Json(40, "sliding_attention")}};
      const Json two_windows = {{"layer_types", Json(2, "sliding_attention")},
                                {"num_hidden_layers", 2}};
      for (const Json& beside :
           {change.beside, Json::object(), first, with_all(change.beside, first), windows,
            more_windows, two_windows}) {
        Json before = with_all({{"architectures", {architecture->names.front()}}}, beside);
        if (lacks_head_dim(architecture->names.front())) before["head_dim"] = 128;
        // Without it the model has no positions.
        if (architecture->names.front() == "GraniteMoeHybridForCausalLM") {
          before["position_embedding_type"] = "rope";
        }
        if (architecture->names.front() == "DeepseekV2ForCausalLM" ||
            architecture->names.front() == "DeepseekOcr2TextModel") {
          before["topk_method"] = "group_limited_greedy";  // else it has no groups
        }
        if (architecture->names.front() == "DeepseekForCausalLM" && name != "n_routed_experts") {
          before["n_routed_experts"] = 64;  // else it has no experts
        }
        if (architecture->names.front() == "Zamba2ForCausalLM") before["use_mem_rope"] = true;
        // Its lists have no default.
        if (architecture->names.front() == "OpenELMForCausalLM") {
          before["num_query_heads"] = before["num_kv_heads"] = Json(12, 8);
          if (!before.contains("ffn_multipliers")) before["ffn_multipliers"] = Json(12, 2.0);
        }
        // Without them it is another model.
        if (architecture->names.front() == "DeciLMForCausalLM") {
          const auto num_layers = before.value("num_hidden_layers", size_t{32});
          const Json block = {{"attention", {{"n_heads_in_group", 4}}},
                              {"ffn", {{"ffn_mult", 2.0}}}};
          before["block_configs"] = Json(num_layers, block);
        }
        before.erase(name);
        Json after = before;
        after[name] = change.value;
        // Some defaults are true.
        if (change.value.is_boolean() && name != "use_sliding_window") {
          Json other = before;
          other[name] = false;
          is_used |= outcome(before) != outcome(other);
        }
        is_used |= outcome(before) != outcome(after);
        if (is_used) break;
      }
      CHECK(is_used);
    };
    for (const KnownField& field : architecture->fields) check(field);
    for (const KnownField& field : generic_fields()) check(field);
  }
}

std::string refusal_of_fields(const Json& config, Code code) {
  try {
    load_config(config);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK_THAT(error.what(), Catch::StartsWith("memory/config.json: "));
    return error.what();
  }
  FAIL("was accepted: " << config.dump());
  return "";
}

TEST_CASE("fields that nobody knows are refused by name, all of them, with what to do") {
  for (const Architecture* architecture : architectures()) {
    Json config = {{"architectures", {architecture->names.front()}}};
    const std::string before = outcome(config);
    config["logit_swizzle"] = {1, 2};
    config["attn_twist"] = 0.5;
    CHECK_THAT(refusal_of_fields(config, Code::kUnsupported),
               Catch::Contains("attn_twist = 0.5, logit_swizzle = [1,2]") &&
                   Catch::Contains(std::string(architecture->names.front())) &&
                   Catch::Contains("take it out of the file"));
    // Null says nothing.
    config["logit_swizzle"] = nullptr;
    config["attn_twist"] = nullptr;
    CHECK(outcome(config) == before);
  }
}

TEST_CASE("what is known to be harmless changes nothing, with all its values") {
  const Json extras = {{"_name_or_path", "x"},
                       {"transformers_version", "4.31.0.dev0"},
                       {"auto_map", {{"AutoModelForCausalLM", "modeling.X"}}},
                       {"unsloth_version", "2025.1"},
                       {"unsloth_fixed", true},
                       {"attention_dropout", 0.1},
                       {"pretraining_tp", 2},
                       {"use_cache", false},
                       {"gradient_checkpointing", true},
                       {"id2label", {{"0", "a"}}},
                       {"task_specific_params", {{"text-generation", {{"do_sample", true}}}}},
                       {"do_sample", true},
                       {"top_k", 50},
                       {"return_dict", true},
                       {"prefix", ""},
                       {"pad_token_id", 0},
                       {"pruned_heads", Json::object()},
                       {"is_encoder_decoder", false},
                       {"add_cross_attention", false},
                       {"_attn_implementation", "flash_attention_2"}};
  for (const Architecture* architecture : architectures()) {
    const Json config = {{"architectures", {architecture->names.front()}}};
    Json all = extras;
    for (const KnownField& field : architecture->fields) {  // but what the family reads
      if (field.reason.empty()) all.erase(std::string(field.name));
    }
    CHECK(outcome(with_all(config, all)) == outcome(config));
    for (const KnownField& field : architecture->fields) {
      INFO(field.name);
      CHECK(field.reason.empty() ==
            (field.use == FieldUse::kRead || field.use == FieldUse::kReadOrNull));
    }
  }
}

TEST_CASE("known fields with values that ask for something else are refused by name") {
  const std::map<std::string, Json> values = {
      {"is_encoder_decoder", true},
      {"add_cross_attention", true},
      {"tie_encoder_decoder", true},
      {"pruned_heads", {{"0", {1}}}},
      {"per_layer_config", {{"0", {{"sliding_window", 3}}}}},
      {"prefix", "Once"},
      {"transformers_weights", "other.safetensors"}};
  for (const Architecture* architecture : architectures()) {
    for (const auto& [name, value] : values) {
      Json config = {{"architectures", {architecture->names.front()}}};
      config[name] = value;
      CHECK_THAT(refusal_of_fields(config, Code::kUnsupported), Catch::Contains(name + ": "));
    }
  }
  const auto refused = [](const char* name, const char* field, const Json& value) {
    Json config = {{"architectures", {name}}};
    config[field] = value;
    CHECK_THAT(refusal_of_fields(config, Code::kUnsupported),
               Catch::Contains(std::string(field) + ": "));
  };
  refused("MistralForCausalLM", "attention_bias", true);
  refused("Qwen2ForCausalLM", "attention_bias", false);
  refused("Qwen3ForCausalLM", "mlp_bias", true);
  refused("LlamaForCausalLM", "rope_interleaved", true);
  // Null where the class has no meaning for it.
  CHECK_THAT(refusal_of_fields({{"architectures", {"LlamaForCausalLM"}}, {"rms_norm_eps", nullptr}},
                               Code::kInvalidArgument),
             Catch::Contains("rms_norm_eps: expected a value, got null"));
}

TEST_CASE("gpt2 takes the names that its fields have elsewhere, and no contradiction") {
  const Json config = {{"architectures", {"GPT2LMHeadModel"}}, {"hidden_size", 96}};
  CHECK(load_config(config).config.hidden_size == 96);
  CHECK(load_config(with_all(config, {{"n_embd", 96}})).config.hidden_size == 96);
  CHECK_THAT(refusal_of_fields(with_all(config, {{"n_embd", 48}}), Code::kInvalidArgument),
             Catch::Contains("hidden_size: 96 contradicts n_embd = 48"));
}

}  // namespace
}  // namespace tgi::known_fields_test
