#include "engine/lora/adapter_files.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "tests/catch.h"
#include "tests/lora/adapter_builder.h"
#include "tests/model/model_files.h"

namespace tgi {
namespace {

LoadedConfig golden_config(const std::string& name) {
  return load_model_config(*open_folder(TGI_SOURCE_DIR "/tests/golden/families/" + name));
}

LoadedConfig vectors_config(const std::string& name) {
  return load_model_config(*open_folder(TGI_SOURCE_DIR "/tests/golden/vectors/" + name));
}

// small_llama: q 24, k and v 8, hidden 10, intermediate 14, 2 layers.
std::vector<TestTensor> small_adapter() {
  return together({lora_of("model.layers.1.self_attn.q_proj", 24, 10),
                   lora_of("model.layers.0.mlp.down_proj", 10, 14), lora_of("lm_head", 11, 10)});
}

std::string refused(const std::vector<TestTensor>& tensors,
                    Code code,
                    const Json& config = small_adapter_config(),
                    const LoadedConfig& model = load_config(small_llama())) {
  return refusal_of_action(code, [&] {
    const MemorySource files = adapter_files(config, tensors);
    open_adapter(files, model);
  });
}

// Names of the parts that the module was found as, of an adapter of it alone.
std::string found_as(const LoadedConfig& model,
                     const std::string& module,
                     int64_t outputs,
                     int64_t inputs) {
  const MemorySource files =
      adapter_files(small_adapter_config(), lora_of(module, outputs, inputs));
  const AdapterFiles adapter = open_adapter(files, model);
  const TensorTable table(model);
  std::string out;
  for (const SitePart& part : adapter.linears.at(0).parts) {
    const bool is_head = part.layer == SitePart::kNone;
    out += (out.empty() ? "" : " ") + std::to_string(part.layer) + ":" +
           (is_head ? "head" : table.find(part.role, part.layer)->name);
  }
  return out;
}

TEST_CASE("the linears of an adapter come in the order of their sites, the head last") {
  const MemorySource files = adapter_files(small_adapter_config(), small_adapter());
  const AdapterFiles adapter = open_adapter(files, load_config(small_llama()));
  REQUIRE(adapter.linears.size() == 3);
  CHECK(adapter.linears[0].module == "model.layers.0.mlp.down_proj");
  CHECK(adapter.linears[1].module == "model.layers.1.self_attn.q_proj");
  CHECK(adapter.linears[2].module == "lm_head");
  CHECK(adapter.linears[0].rank == 2);
  CHECK(adapter.linears[0].scale == 2.0F);
  CHECK((adapter.linears[0].a.rows == 2 && adapter.linears[0].a.cols == 14));
  CHECK((adapter.linears[0].b.rows == 10 && adapter.linears[0].b.cols == 2));
}

TEST_CASE("modules are found with other words around the decoder") {
  const LoadedConfig llama = load_config(small_llama());
  const std::string expected = "1:model.layers.1.mlp.up_proj.weight";
  for (const std::string prefix :
       {"model.", "", "language_model.", "model.language_model.", "language_model.model."}) {
    CHECK(found_as(llama, prefix + "layers.1.mlp.up_proj", 14, 10) == expected);
  }
  CHECK(found_as(llama, "language_model.lm_head", 11, 10) == "-1:head");
  CHECK(found_as(llama, "model.lm_head", 11, 10) == "-1:head");
  for (const std::string module :
       {"vision_tower.layers.1.mlp.up_proj", "model.vision_model.encoder.layers.1.mlp.up_proj",
        "model.layers.2.mlp.up_proj", "model.layers.1.mlp.fc1", "layers.1.mlp.up_proj.x", "up_proj",
        "model", "model.layers", "model.layers.1", "0"}) {
    INFO(module);
    CHECK_THAT(refused(lora_of(module, 14, 10), Code::kInvalidArgument),
               Catch::Contains("2 tensors are of no linear of it: base_model.model." + module));
  }
}

TEST_CASE("modules are those of the family's own table") {
  CHECK(found_as(load_config(small_gpt2()), "transformer.h.0.attn.c_attn", 36, 12) ==
        "0:transformer.h.0.attn.c_attn.weight");
  CHECK(found_as(load_config(small_gpt2()), "lm_head", 11, 12) == "-1:head");
  CHECK(found_as(golden_config("phi3-window"), "model.layers.1.mlp.gate_up_proj", 76, 32) ==
        "1:model.layers.1.mlp.gate_up_proj.weight");
  CHECK(found_as(golden_config("falcon-40b-style"),
                 "transformer.h.1.self_attention.query_key_value", 64,
                 32) == "1:transformer.h.1.self_attention.query_key_value.weight");
  // One tensor whose rows go to two places.
  const LoadedConfig next = golden_config("qwen3-next");
  CHECK(found_as(next, "model.layers.1.self_attn.q_proj", 48, 24) ==
        "1:model.layers.1.self_attn.q_proj.weight 1:model.layers.1.self_attn.q_proj.weight");
  CHECK(found_as(next, "model.layers.0.linear_attn.in_proj_qkvz", 88, 24) ==
        "0:model.layers.0.linear_attn.in_proj_qkvz.weight");
  CHECK(found_as(next, "model.layers.0.mlp.shared_expert.up_proj", 6, 24) ==
        "0:model.layers.0.mlp.shared_expert.up_proj.weight");
  CHECK(found_as(golden_config("jamba"), "model.layers.0.mamba.x_proj", 13, 48) ==
        "0:model.layers.0.mamba.x_proj.weight");
  // Trained as another class than that of the base.
  const LoadedConfig gemma = golden_config("gemma3-multimodal");
  for (const std::string prefix : {"model.", "language_model.model.", "model.language_model."}) {
    CHECK_THAT(found_as(gemma, prefix + "layers.0.self_attn.o_proj", gemma.config.hidden_size,
                        gemma.config.num_heads * gemma.config.head_dim),
               Catch::StartsWith("0:"));
  }
}

// Or of layers that see images alone.
bool is_of_images_or_sounds(const std::string& module) {
  for (const std::string part :
       {"vision", "visual", "projector", "audio", "aligner", "vqmodel", "resampler", "merger",
        "connector", "model.encoder.", "embed_tokens_extend", "img_proj"}) {
    if (module.find(part) != std::string::npos) return true;
  }
  return false;
}

// Modules that are some rows of a tensor of the table, or several tensors, whose adapters are
// refused.
bool is_cut_otherwise(const std::string& model, const std::string& module) {
  const auto ends_with_any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names,
                               [&](std::string_view name) { return module.ends_with(name); });
  };
  if (model == "families/lara-mini") {
    return ends_with_any({"in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b"});
  }
  if (model == "families/minimax-m3-seeing") {
    return module.find(".shared_experts.") != std::string::npos ||
           ends_with_any({"mlp.gate_up_proj", "indexer.q_proj", "indexer.k_proj"});
  }
  // The layers between that see images.
  const std::string_view seeing = model == "families/mllama"        ? ".layers.1.mlp."
                                  : model == "families/mllama-text" ? ".layers.3.mlp."
                                                                    : ".cross_attn.";
  return module.find(seeing) != std::string::npos ||
         module.find(".cross_attn.") != std::string::npos;
}

// What an adapter made with transformers can be of (scripts/golden/make_adapters).
TEST_CASE("the linears of every model type are found under the names of transformers") {
  const auto folder = open_folder(TGI_SOURCE_DIR "/tests/golden/adapters");
  const Json models = parse_json(folder->require_text("modules.json"));
  CHECK(models.size() >= 60);
  int num_found = 0;
  int num_refused = 0;
  for (const auto& [name, modules] : models.items()) {
    const LoadedConfig model =
        load_model_config(*open_folder(TGI_SOURCE_DIR "/tests/golden/" + name));
    const ModuleSites sites(model);
    for (const Json& row : modules) {
      for (const Json& layer : row.at(1)) {
        auto module = row.at(0).get<std::string>();
        const std::string mark = "{layer}";
        if (const size_t at = module.find(mark); at != std::string::npos) {
          module.replace(at, mark.size(), std::to_string(layer.get<int>()));
        }
        INFO(name << " " << module);
        const ModuleTarget* target = sites.find(module);
        const bool is_of_images = is_of_images_or_sounds(module);
        const bool is_unknown = is_of_images || is_cut_otherwise(name, module);
        // Of a block that several layers use, under the first one's name.
        if (module.find(".shared_transformer.") != std::string::npos) {
          CHECK((target == nullptr || !target->refusal.empty()));
          continue;
        }
        CHECK((target == nullptr) == is_unknown);
        if (target == nullptr) continue;
        const bool is_mixed =
            module.find(".altup.") != std::string::npos && module.ends_with("_coefs");
        CHECK(target->refusal.empty() == !is_mixed);
        CHECK(target->parts.empty() == is_mixed);
        if (!is_mixed) {
          CHECK(target->outputs == row.at(2));
          CHECK(target->inputs == row.at(3));
        }
        (is_mixed ? num_refused : num_found) += 1;
      }
    }
  }
  CHECK(num_found >= 3000);
  CHECK(num_refused >= 10);
}

TEST_CASE("modules that are rows of one tensor are found by the names of transformers") {
  const auto first_row = [](const ModuleSites& sites, const std::string& module) {
    const ModuleTarget* target = sites.find(module);
    REQUIRE(target != nullptr);
    CHECK(target->refusal.empty());
    return target->first / target->inputs;
  };
  for (const std::string name : {"nomic-bert", "gte-new", "jina-embeddings-3"}) {
    INFO(name);
    const ModuleSites sites(vectors_config(name));
    const std::string attention = "layers.1.self_attn.";
    CHECK(first_row(sites, attention + "q_proj") == 0);
    CHECK(first_row(sites, attention + "k_proj") == 32);
    CHECK(first_row(sites, attention + "v_proj") == 64);
    CHECK(first_row(sites, attention + "o_proj") == 0);
    CHECK(sites.find("vision." + attention + "q_proj") == nullptr);
    CHECK(sites.find("layers.1.other_attn.q_proj") == nullptr);
  }
  const ModuleSites gte(vectors_config("gte-new"));
  CHECK(first_row(gte, "layers.0.mlp.gate_proj") == 48);
  CHECK(first_row(gte, "layers.0.mlp.up_proj") == 0);
  // Part of the tensor's bias.
  CHECK(gte.find("layers.0.self_attn.k_proj.bias") != nullptr);
}

TEST_CASE("of a module that is rows of a tensor the bias is those of the tensor's") {
  const auto base_files = open_folder(TGI_SOURCE_DIR "/tests/golden/vectors/gte-new");
  const LoadedConfig model = load_model_config(*base_files);
  const auto base = open_checkpoint(*base_files);
  const StoredTensor* stored = base->find("encoder.layer.0.attention.qkv_proj.bias");
  REQUIRE(stored != nullptr);
  const std::span<const std::byte> bytes = base->bytes(*stored);
  REQUIRE(bytes.size() == 96 * sizeof(float));
  std::vector<float> whole(96);
  std::memcpy(whole.data(), bytes.data(), bytes.size());
  const std::string k = "layers.0.self_attn.k_proj";
  for (const float by : {0.0F, 0.5F}) {
    std::vector<float> bias(whole.begin() + 32, whole.begin() + 64);
    for (float& value : bias) value += by;
    auto tensors = lora_of("layers.0.self_attn.q_proj", 32, 32);
    tensors.push_back({"base_model.model." + k + ".bias", "F32", "[32]", f32_bytes(bias)});
    Json config = small_adapter_config();
    config["bias"] = "all";
    const MemorySource files = adapter_files(config, tensors);
    const AdapterFiles adapter = open_adapter(files, model, base.get());
    REQUIRE(adapter.linears.size() == (by == 0.0F ? 1 : 2));
    CHECK(adapter.linears[0].offset.empty());
    if (by == 0.0F) continue;
    const AdapterLinear& trained = adapter.linears[1];
    CHECK(trained.module == k);
    REQUIRE(trained.offset.size() == 32);
    for (const float value : trained.offset) CHECK(std::abs(value - by) < 1e-5F);
  }
}

TEST_CASE("an adapter of the embedding has a column for each token") {
  const std::string module = "base_model.model.model.embed_tokens";
  Json config = small_llama();
  for (const bool is_tied : {false, true}) {
    config["tie_word_embeddings"] = is_tied;
    const LoadedConfig model = load_config(config);
    auto tensors = lora_of("lm_head", 11, 10);
    tensors.push_back(numbers(module + ".lora_embedding_A", 2, 11));
    tensors.push_back(numbers(module + ".lora_embedding_B", 10, 2));
    const MemorySource files = adapter_files(small_adapter_config(), tensors);
    const AdapterFiles adapter = open_adapter(files, model);
    REQUIRE(adapter.linears.size() == 2);
    const auto found =
        std::ranges::find(adapter.linears, "model.embed_tokens", &AdapterLinear::module);
    REQUIRE(found != adapter.linears.end());
    CHECK(found->parts.at(0).role == Role::kTokenEmbedding);
    CHECK(found->rank == 2);
    CHECK(read_adapter_facts(files).num_linears == 2);
  }
  CHECK_THAT(refused({numbers(module + ".lora_embedding_A", 2, 10),
                      numbers(module + ".lora_embedding_B", 10, 2)},
                     Code::kInvalidArgument),
             Catch::Contains("lora_embedding_A: expected (2, 11), got (2, 10)"));
  CHECK_THAT(refused({numbers(module + ".lora_embedding_B", 10, 2)}, Code::kInvalidArgument),
             Catch::Contains("1 tensor is without its lora_A: " + module + ".lora_embedding_B"));
  CHECK_THAT(refused(lora_of("model.embed_tokens", 11, 10), Code::kInvalidArgument),
             Catch::Contains("of an embedding, and named as those of linears are: "));
  CHECK_THAT(refused({numbers("base_model.model.lm_head.lora_embedding_A", 2, 10)},
                     Code::kInvalidArgument),
             Catch::Contains("of a linear, and named as those of embeddings are: "));
}

TEST_CASE("a tied head is a module all the same") {
  Json config = small_llama();
  config["tie_word_embeddings"] = true;
  CHECK(found_as(load_config(config), "lm_head", 11, 10) == "-1:head");
}

TEST_CASE("shapes have to be those of the linear and of the rank") {
  const std::string module = "model.layers.1.self_attn.q_proj";
  CHECK_THAT(refused(lora_of(module, 24, 12), Code::kInvalidArgument),
             Catch::StartsWith("memory/adapter_model.safetensors: does not fit this model "
                               "(LlamaForCausalLM); 1 tensor is misshapen: ") &&
                 Catch::Contains("q_proj.lora_A.weight: expected (2, 10), got (2, 12)"));
  CHECK_THAT(refused(lora_of(module, 22, 10), Code::kInvalidArgument),
             Catch::Contains("q_proj.lora_B.weight: expected (24, 2), got (22, 2)"));
  CHECK_THAT(refused(lora_of(module, 24, 10, 4), Code::kInvalidArgument),
             Catch::Contains("expected (2, 10), got (4, 10)") &&
                 Catch::Contains("expected (24, 2), got (24, 4)"));
  Json config = small_adapter_config();
  config["rank_pattern"] = {{"q_proj", 4}};
  const MemorySource files = adapter_files(config, lora_of(module, 24, 10, 4));
  CHECK(open_adapter(files, load_config(small_llama())).linears.at(0).rank == 4);
}

TEST_CASE("A needs its B, and B its A") {
  auto tensors = lora_of("lm_head", 11, 10);
  CHECK_THAT(refused({tensors[0]}, Code::kInvalidArgument),
             Catch::Contains("1 tensor is without its lora_B: base_model.model.lm_head.lora_A"));
  CHECK_THAT(refused({tensors[1]}, Code::kInvalidArgument),
             Catch::Contains("without its lora_A: base_model.model.lm_head.lora_B"));
}

TEST_CASE("a linear has one adapter") {
  CHECK_THAT(refused(together({lora_of("model.layers.0.mlp.up_proj", 14, 10),
                               lora_of("layers.0.mlp.up_proj", 14, 10)}),
                     Code::kInvalidArgument),
             Catch::Contains("of a linear that another module is, too: "
                             "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"));
  auto tensors = lora_of("lm_head", 11, 10);
  tensors.push_back(numbers("base_model.model.lm_head.lora_A.other.weight", 2, 10));
  CHECK_THAT(refused(tensors, Code::kInvalidArgument),
             Catch::Contains("of a module that another tensor is of, too: "));
}

TEST_CASE("an adapter of another model is refused, naming the one it was made for") {
  Json config = small_adapter_config();
  config["base_model_name_or_path"] = "org/other-model";
  const std::string text = refused(together({lora_of("transformer.h.0.attn.c_attn", 36, 12),
                                             lora_of("model.layers.5.mlp.up_proj", 14, 10)}),
                                   Code::kInvalidArgument, config);
  CHECK_THAT(text,
             Catch::Contains("4 tensors are of no linear of it: ") &&
                 Catch::Contains("base_model.model.transformer.h.0.attn.c_attn.lora_A.weight") &&
                 Catch::EndsWith("; adapter_config.json says that it was made for "
                                 "org/other-model"));
}

TEST_CASE("what is of no linear is not listed without end") {
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 20; ++i) {
    for (TestTensor& one : lora_of("model.layers." + std::to_string(100 + i) + ".x", 4, 4)) {
      tensors.push_back(std::move(one));
    }
  }
  CHECK_THAT(refused(tensors, Code::kInvalidArgument), Catch::Contains(" and 28 more"));
}

TEST_CASE("what is not supported yet is refused by name") {
  const auto refuses = [](const TestTensor& tensor, const std::string& reason,
                          const LoadedConfig& model = load_config(small_llama())) {
    CHECK_THAT(refused({tensor}, Code::kUnsupported, small_adapter_config(), model),
               Catch::Contains("1 tensor is " + reason + ": " + tensor.name));
  };
  const std::string q = "base_model.model.model.layers.0.self_attn.q_proj";
  refuses(numbers(q + ".lora_velora_embed.default", 1, 24), "not known");
  refuses(numbers("base_model.model.model.embed_tokens.lora_magnitude_vector", 1, 10),
          "of DoRA of an embedding, which is not supported");
  refuses(numbers("base_model.model.transformer.wpe.lora_embedding_A", 2, 9),
          "of an embedding of positions, whose adapters are not supported",
          load_config(small_gpt2()));
  refuses(numbers("base_model.model.model.norm.lora_A.weight", 2, 10),
          "not of a linear of the model");
  const std::string experts =
      "of experts by names, or in a layout, for which adapters are not supported";
  refuses(numbers("base_model.model.model.layers.0.mlp.experts.1.up_proj.lora_A.weight", 2, 24),
          experts, golden_config("gpt-oss"));
  refuses(numbers("base_model.model.transformer.blocks.0.ffn.experts.mlp.lora_A.weight", 2, 24),
          experts, golden_config("dbrx"));
  refuses(
      numbers("base_model.model.model.layers.0.self_attn.kv_b_proj.lora_magnitude_vector", 1, 24),
      "of DoRA or a bias of what latents become keys and values by, which is not supported",
      golden_config("deepseek2-lite"));
  refuses(numbers("base_model.model.model.embed_tokens_per_layer.lora_embedding_A", 2, 61),
          "of a table of tokens for each layer, whose adapters are not supported",
          golden_config("gemma4-shared-kv"));
  refuses(numbers("base_model.model.model.layers.0.altup.prediction_coefs.lora_A.weight", 2, 3),
          "of what streams are predicted and corrected by, which is not kept as a linear: adapters "
          "of it are not supported",
          golden_config("gemma3n-three-streams-f32"));
  refuses(numbers("base_model.model.encoder.albert_layer_groups.0.albert_layers.0.attention.query."
                  "lora_A.weight",
                  2, 32),
          "of layers that share their weights, whose adapters are not supported",
          vectors_config("albert"));
  refuses(
      numbers("base_model.model.encoder.layer.0.attention.self.query_proj.lora_A.weight", 2, 32),
      "of layers that make keys and queries of distances too, whose adapters are not supported",
      vectors_config("deberta-v3"));
}

TEST_CASE("what changes no answer of the model is left out of an adapter") {
  // As PEFT's all-linear writes them.
  const auto open = [](const std::string& model, std::vector<TestTensor> more) {
    more = together({lora_of("encoder.layer.0.attention.self.query", 32, 32), std::move(more)});
    return open_adapter(adapter_files(small_adapter_config(), more), vectors_config(model))
        .linears.size();
  };
  CHECK(open("bert", lora_of("pooler.dense", 32, 32)) == 1);
  CHECK(open("roberta", lora_of("pooler.dense", 32, 32)) == 1);
  CHECK(open("bert", {numbers("base_model.model.pooler.dense.bias", 1, 32)}) == 1);

  CHECK_THAT(
      refused(lora_of("bert.pooler.dense", 32, 32), Code::kUnsupported, small_adapter_config(),
              vectors_config("bert-classify")),
      Catch::Contains(
          "2 tensors are of the head of the model's task, whose adapters are not supported"));
  auto broken = lora_of("pooler.dense", 32, 32);
  const float bad = std::nanf("");
  std::memcpy(broken[1].data.data(), &bad, sizeof bad);
  CHECK_THAT(
      refused(broken, Code::kInvalidArgument, small_adapter_config(), vectors_config("bert")),
      Catch::Contains("not finite"));
  CHECK_THAT(refused(lora_of("poolers.dense", 32, 32), Code::kInvalidArgument,
                     small_adapter_config(), vectors_config("bert")),
             Catch::Contains("of no linear of it"));
}

TEST_CASE("numbers that are not finite are refused by the tensor's name") {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    auto tensors = lora_of("lm_head", 11, 10);
    std::memcpy(tensors[1].data.data() + 84, &bad, sizeof bad);
    CHECK_THAT(refused(tensors, Code::kInvalidArgument),
               Catch::Contains("not finite: it holds a NaN or an infinity: "
                               "base_model.model.lm_head.lora_B.weight"));
  }
}

TEST_CASE("element types that can't be computed with are named") {
  auto tensors = lora_of("lm_head", 11, 10);
  tensors[0].dtype = "I32";
  CHECK_THAT(refused(tensors, Code::kUnsupported), Catch::Contains("lm_head.lora_A.weight: I32"));
}

TEST_CASE("an adapter without tensors is refused") {
  CHECK_THAT(refused(std::vector<TestTensor>{}, Code::kInvalidArgument),
             Catch::Contains("holds no tensor of a LoRA"));
}

TEST_CASE("a torch file has to be converted") {
  const MemorySource files(
      {{"adapter_config.json", small_adapter_config().dump()}, {"adapter_model.bin", "x"}});
  const LoadedConfig model = load_config(small_llama());
  CHECK_THAT(refusal_of_action(Code::kUnsupported, [&] { open_adapter(files, model); }),
             Catch::StartsWith("memory/adapter_model.bin: ") &&
                 Catch::Contains("adapter_model.safetensors"));
  const MemorySource none({{"adapter_config.json", small_adapter_config().dump()}});
  CHECK_THAT(refusal_of_action(Code::kNotFound, [&] { open_adapter(none, model); }),
             Catch::Contains("memory/adapter_model.safetensors"));
}

TEST_CASE("copies of the base's weights have to be equal to it") {
  const LoadedConfig model = load_config(small_llama());
  const auto base_tensors = small_tensors(model);
  const MemorySource base_files = weight_files(base_tensors);
  const auto base = open_checkpoint(base_files);
  const auto head = std::ranges::find(base_tensors, "lm_head.weight", &TestTensor::name);
  REQUIRE(head != base_tensors.end());

  const auto open_with = [&](TestTensor copy, const Checkpoint* compared) {
    auto tensors = lora_of("lm_head", 11, 10);
    tensors.push_back(std::move(copy));
    const MemorySource files = adapter_files(small_adapter_config(), tensors);
    return open_adapter(files, model, compared).linears.size();
  };
  TestTensor copy = *head;
  copy.name = "base_model.model.lm_head.base_layer.weight";
  CHECK(open_with(copy, base.get()) == 1);
  CHECK_THAT(refusal_of_action(Code::kInvalidArgument, [&] { open_with(copy, nullptr); }),
             Catch::Contains("can't be compared with the base's: " + copy.name));
  copy.name = "base_model.model.lm_head.weight";
  CHECK(open_with(copy, base.get()) == 1);

  TestTensor other = copy;
  other.data.back() = static_cast<char>(other.data.back() ^ 1);
  CHECK_THAT(
      refusal_of_action(Code::kUnsupported, [&] { open_with(other, base.get()); }),
      Catch::Contains("a whole weight that is not the base's") && Catch::Contains(copy.name));

  // Rounded to the type that the adapter was trained in: the upper halves of numbers with few bits.
  TestTensor half = copy;
  half.dtype = "BF16";
  half.data.clear();
  for (size_t i = 0; i < copy.data.size(); i += 4) {
    float value = 0.0F;
    std::memcpy(&value, copy.data.data() + i, sizeof value);
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const auto rounded = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
    half.data.append(reinterpret_cast<const char*>(&rounded), 2);
  }
  CHECK(open_with(half, base.get()) == 1);
}

TEST_CASE("a copy of a tied head is compared with the embedding") {
  Json config = small_llama();
  config["tie_word_embeddings"] = true;
  const LoadedConfig model = load_config(config);
  const auto base_tensors = small_tensors(model);
  const MemorySource base_files = weight_files(base_tensors);
  const auto base = open_checkpoint(base_files);
  auto tensors = lora_of("lm_head", 11, 10);
  tensors.push_back(
      *std::ranges::find(base_tensors, "model.embed_tokens.weight", &TestTensor::name));
  tensors.back().name = "base_model.model.lm_head.base_layer.weight";
  const MemorySource files = adapter_files(small_adapter_config(), tensors);
  CHECK(open_adapter(files, model, base.get()).linears.size() == 1);
}

// small_llama with biases in the linears of attention, or a small GPT-2; and its checkpoint.
struct SmallBase {
  explicit SmallBase(const Json& config, const std::string& zeros = "")
      : model(load_config(config)),
        tensors(with_zeros(small_tensors(model), zeros)),
        files(weight_files(tensors)),
        checkpoint(open_checkpoint(files)) {}

  static std::vector<TestTensor> with_zeros(std::vector<TestTensor> all, const std::string& name) {
    for (TestTensor& tensor : all) {
      if (tensor.name == name) tensor.data.assign(tensor.data.size(), '\0');
    }
    return all;
  }
  const TestTensor& tensor(const std::string& name) const {
    return *std::ranges::find(tensors, name, &TestTensor::name);
  }
  // The tensor as an adapter holds it, with `change` added to its second number.
  TestTensor trained(const std::string& name, float change) const {
    TestTensor out = tensor(name);
    float value = 0.0F;
    std::memcpy(&value, out.data.data() + 4, sizeof value);
    value += change;
    std::memcpy(out.data.data() + 4, &value, sizeof value);
    out.name = "base_model.model." + name;
    return out;
  }
  AdapterFiles open(const std::vector<TestTensor>& adapter,
                    const Json& config = small_adapter_config()) const {
    return open_adapter(adapter_files(config, adapter), model, checkpoint.get());
  }
  std::string refused(const std::vector<TestTensor>& adapter,
                      Code code,
                      const Json& config = small_adapter_config()) const {
    return refusal_of_action(code, [&] { open(adapter, config); });
  }

  LoadedConfig model;
  std::vector<TestTensor> tensors;
  MemorySource files;
  std::unique_ptr<Checkpoint> checkpoint;
};

Json biased_llama() {
  Json config = small_llama();
  config["attention_bias"] = true;
  return config;
}

Json with(const std::string& field) {
  Json config = small_adapter_config();
  config[field] = true;
  return config;
}

TestTensor vector_of(const std::string& name, int64_t size, float first = 0.0F) {
  TestTensor out = numbers(name, 1, size, first);
  out.shape = "[" + std::to_string(size) + "]";
  return out;
}

TEST_CASE("a bias of B is added, times the scale") {
  const SmallBase base(small_llama());
  auto tensors = lora_of("lm_head", 11, 10);
  tensors.push_back(vector_of("base_model.model.lm_head.lora_B.bias", 11, 3.0F));
  // No base is needed for it.
  const MemorySource files = adapter_files(with("lora_bias"), tensors);
  const AdapterFiles adapter = open_adapter(files, base.model);
  CHECK(adapter.linears.at(0).gain.empty());
  REQUIRE(adapter.linears.at(0).offset.size() == 11);
  CHECK(adapter.linears.at(0).offset[0] == 6.0F);
  CHECK(adapter.linears.at(0).offset[10] == 2.0F * (3.0F + 10.0F / 8.0F));

  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument),
             Catch::Contains("a lora_B.bias, which adapter_config.json does not ask for: "
                             "base_model.model.lm_head.lora_B.bias"));
  CHECK_THAT(
      base.refused(lora_of("lm_head", 11, 10), Code::kInvalidArgument, with("lora_bias")),
      Catch::Contains("1 tensor is without its lora_B.bias: base_model.model.lm_head.lora_A"));
  tensors.back().shape = "[1,11]";
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument, with("lora_bias")),
             Catch::Contains("lora_B.bias: expected (11), got (1, 11)"));
}

TEST_CASE("trained biases change those of the base by the difference") {
  const SmallBase base(biased_llama());
  const std::string q = "model.layers.0.self_attn.q_proj";
  const std::string o = "model.layers.1.self_attn.o_proj";
  auto tensors = lora_of(q, 24, 10);
  tensors.push_back(base.trained(q + ".bias", 0.5F));
  tensors.back().name = "base_model.model." + q + ".base_layer.bias";
  tensors.push_back(base.trained(o + ".bias", -0.25F));
  tensors.push_back(base.trained("model.layers.1.self_attn.v_proj.bias", 0.0F));
  const AdapterFiles adapter = base.open(tensors);
  REQUIRE(adapter.linears.size() == 2);
  const AdapterLinear& first = adapter.linears[0];
  CHECK(first.module == q);
  CHECK(static_cast<bool>(first.a));
  REQUIRE(first.offset.size() == 24);
  CHECK(std::abs(first.offset[1] - 0.5F) < 1e-5F);
  CHECK(first.offset[0] == 0.0F);
  // A linear without an adapter of its own.
  const AdapterLinear& second = adapter.linears[1];
  CHECK(second.module == o);
  CHECK_FALSE(static_cast<bool>(second.a));
  CHECK(second.rank == 0);
  REQUIRE(second.offset.size() == 10);
  CHECK(std::abs(second.offset[1] + 0.25F) < 1e-5F);

  const MemorySource files = adapter_files(small_adapter_config(), tensors);
  CHECK_THAT(refusal_of_action(Code::kInvalidArgument, [&] { open_adapter(files, base.model); }),
             Catch::Contains("3 tensors are a bias, which can't be compared with the base's: "));
  TestTensor twice = base.trained(q + ".bias", 0.5F);
  tensors.push_back(twice);
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument),
             Catch::Contains("of a module that another tensor is of, too: "));
}

TEST_CASE("a trained bias has to be of a linear, and of the model") {
  const SmallBase base(small_gpt2());
  auto tensors = lora_of("transformer.h.0.attn.c_attn", 36, 12);
  tensors.push_back(base.trained("transformer.h.0.ln_1.bias", 0.0F));
  CHECK(base.open(tensors).linears.size() == 1);
  CHECK(base.open(tensors).linears[0].offset.empty());
  tensors.back() = base.trained("transformer.h.0.ln_1.bias", 0.5F);
  CHECK_THAT(base.refused(tensors, Code::kUnsupported),
             Catch::Contains("1 tensor is a bias that is not the base's, and of no linear: "
                             "base_model.model.transformer.h.0.ln_1.bias"));
  tensors.back() = vector_of("base_model.model.lm_head.bias", 11);
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument),
             Catch::Contains("1 tensor is a bias where the model has none: "
                             "base_model.model.lm_head.bias"));
  tensors.back() = base.trained("transformer.h.0.mlp.c_fc.bias", 0.5F);
  tensors.back().shape = "[1,48]";
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument),
             Catch::Contains("c_fc.bias: expected (48), got (1, 48)"));
}

TEST_CASE("DoRA gives each output a length") {
  const SmallBase base(biased_llama());
  const std::string o = "model.layers.1.self_attn.o_proj";
  auto tensors = lora_of(o, 10, 24);
  const std::string magnitude = "base_model.model." + o + ".lora_magnitude_vector";
  tensors.push_back(vector_of(magnitude, 10, 5.0F));
  const AdapterFiles adapter = base.open(tensors, with("use_dora"));
  REQUIRE(adapter.linears.size() == 1);
  const auto at = [&](const std::string& data, int64_t index) {
    float value = 0.0F;
    std::memcpy(&value, data.data() + index * 4, sizeof value);
    return static_cast<double>(value);
  };
  for (int64_t row = 0; row < 10; ++row) {
    double squares = 0.0;
    for (int64_t col = 0; col < 24; ++col) {
      double value = at(base.tensor(o + ".weight").data, row * 24 + col);
      for (int64_t r = 0; r < 2; ++r) {
        value += 2.0 * at(tensors[1].data, row * 2 + r) * at(tensors[0].data, r * 24 + col);
      }
      squares += value * value;
    }
    const double gain = (5.0 + static_cast<double>(row) / 8.0) / std::sqrt(squares);
    const double bias = at(base.tensor(o + ".bias").data, row);
    const auto i = static_cast<size_t>(row);
    CHECK(std::abs(static_cast<double>(adapter.linears[0].gain.at(i)) / gain - 1.0) < 1e-5);
    CHECK(std::abs(static_cast<double>(adapter.linears[0].offset.at(i)) - (1.0 - gain) * bias) <
          1e-4);
  }

  const MemorySource files = adapter_files(with("use_dora"), tensors);
  CHECK_THAT(refusal_of_action(Code::kInvalidArgument, [&] { open_adapter(files, base.model); }),
             Catch::Contains("of DoRA, which needs the base's weights, and they are not here: " +
                             magnitude));
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument),
             Catch::Contains("a lora_magnitude_vector, which adapter_config.json does not ask "
                             "for: " +
                             magnitude));
  CHECK_THAT(base.refused(lora_of(o, 10, 24), Code::kInvalidArgument, with("use_dora")),
             Catch::Contains("1 tensor is without its lora_magnitude_vector: "));
  CHECK_THAT(base.refused({tensors[2]}, Code::kInvalidArgument, with("use_dora")),
             Catch::Contains("1 tensor is without its lora_A: " + magnitude));
  tensors[2] = vector_of(magnitude, 24);
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument, with("use_dora")),
             Catch::Contains("lora_magnitude_vector: expected (10), got (24)"));
}

TEST_CASE("an output whose weights are all 0 has no length to set") {
  const SmallBase base(small_llama(), "lm_head.weight");
  auto tensors = lora_of("lm_head", 11, 10);
  tensors[1].data.assign(tensors[1].data.size(), '\0');
  tensors.push_back(vector_of("base_model.model.lm_head.lora_magnitude_vector", 11));
  CHECK_THAT(base.refused(tensors, Code::kInvalidArgument, with("use_dora")),
             Catch::Contains("of a linear with outputs whose weights are all 0"));
}

TEST_CASE("facts are told without a model") {
  Json config = small_adapter_config();
  config["base_model_name_or_path"] = "org/base";
  const MemorySource files =
      adapter_files(config, together({small_adapter(), lora_of("x.up_proj", 4, 6, 5)}));
  const AdapterFacts facts = read_adapter_facts(files);
  CHECK(facts.base_model == "org/base");
  CHECK(facts.max_rank == 5);
  CHECK(facts.num_linears == 4);
  CHECK(facts.targets == std::vector<std::string>{"down_proj", "lm_head", "q_proj", "up_proj"});
  CHECK(facts.size_bytes == 4 * (2 * (24 + 10) + 2 * (10 + 14) + 2 * (11 + 10) + 5 * (4 + 6)));
  const MemorySource fitting = adapter_files(config, small_adapter());
  const AdapterFacts opened = open_adapter(fitting, load_config(small_llama())).facts;
  CHECK(opened.base_model == "org/base");
  CHECK(opened.max_rank == 2);
  CHECK(opened.num_linears == 3);
  CHECK(opened.targets == std::vector<std::string>{"down_proj", "lm_head", "q_proj"});
  CHECK(opened.size_bytes == read_adapter_facts(fitting).size_bytes);
}

}  // namespace
}  // namespace tgi
