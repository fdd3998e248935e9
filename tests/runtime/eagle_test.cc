// EAGLE-3 drafters propose what torch computes in double precision, on every device, however a text
// is shown to them; and those that don't fit are refused by name before their numbers are read.
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "tests/runtime/draft_layers.h"
#include "tests/temp_folder.h"

namespace tgi::eagle_test {
namespace {

const std::string kModel = kDrafters + "eagle3-model";

using ChangeConfig = std::function<void(Json&)>;
using ChangeTensor = std::function<bool(TensorHeader&)>;

bool keep_all(TensorHeader& /*tensor*/) {
  return true;
}

ChangeTensor without(const std::string& name) {
  return [name](TensorHeader& tensor) { return tensor.name != name; };
}

// Of a copy of a golden drafter with something changed.
std::string refusal(const std::string& name,
                    const ChangeConfig& change_config,
                    const ChangeTensor& change_tensor = keep_all,
                    const std::string& model = kModel) {
  const TempFolder folder;
  Json config = read_json(kDrafters + name + "/config.json");
  change_config(config);
  std::ofstream(folder.file("config.json")) << config.dump();
  copy_checkpoint(kDrafters + name, folder.path(), change_tensor);
  try {
    Loaded(model, folder.path(), false, sizes_of(64));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

ChangeConfig with(const std::string& field, const Json& value) {
  return [field, value](Json& config) { config[field] = value; };
}
void same(Json& /*config*/) {}

std::vector<int32_t> layers_read(const std::string& name, int32_t num_layers, const Json& config) {
  const auto files = open_folder(kModel);
  LoadedConfig model = load_model_config(*files);
  model.config.num_layers = num_layers;
  const auto drafter_files = open_folder(kDrafters + name);
  ipc::ModelSettings settings;
  settings.speculator = kDrafters + name;
  const ByteTokenizer tokenizer(model.config.vocab_size);
  const AskedDrafter asked{.settings = settings,
                           .model = model,
                           .tokenizer = tokenizer,
                           .backend = cpu_backend(),
                           .device = {},
                           .files = drafter_files.get(),
                           .config = &config};
  for (const DrafterKind* const kind : drafter_kinds()) {
    if (kind->is_asked(asked)) return kind->prepare(asked)->reported_rows().before_layers;
  }
  return {};
}

}  // namespace

TEST_CASE("an EAGLE-3 drafter proposes what torch computes in double precision") {
  for (const char* name : {"eagle3-plain", "eagle3-speculators", "eagle3-shared"}) {
    const std::string folder = kDrafters + name;
    check_proposals(kModel, folder, folder, true, 64);
    check_proposals(kModel, folder, folder, false, 64);
    check_proposals(kModel, folder, folder, false, 7);  // rows of a pass
  }
}

TEST_CASE("an EAGLE-3 drafter reads the layers that its config names") {
  using Layers = std::vector<int32_t>;
  Json config = read_json(kDrafters + "eagle3-plain/config.json");
  CHECK(layers_read("eagle3-plain", 7, config) == Layers{2, 3, 4});
  CHECK(layers_read("eagle3-plain", 32, config) == Layers{2, 16, 29});
  // Those whose output is read, and those before which it is.
  config["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", {1, 17, 33}}};
  CHECK(layers_read("eagle3-plain", 36, config) == Layers{2, 18, 34});
  config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = Json::array();
  CHECK(layers_read("eagle3-plain", 36, config) == Layers{2, 18, 33});
  config["eagle_aux_hidden_state_layer_ids"] = {2, 18, 33};
  CHECK(layers_read("eagle3-plain", 36, config) == Layers{2, 18, 33});
}

TEST_CASE("EAGLE-3 drafters that don't fit their model are refused by name") {
  CHECK(refusal("eagle3-plain", same).empty());
  CHECK_THAT(refusal("eagle3-plain", with("hidden_size", 32)),
             Catch::Contains("hidden_size is 32") && Catch::Contains("has 24"));
  CHECK_THAT(refusal("eagle3-speculators", with("target_hidden_size", 32)),
             Catch::Contains("target_hidden_size is 32") && Catch::Contains("has 24"));
  CHECK_THAT(refusal("eagle3-plain", with("vocab_size", 62)),
             Catch::Contains("vocab_size is 62") && Catch::Contains("has 61"));
  CHECK_THAT(refusal("eagle3-plain", with("draft_vocab_size", 62)),
             Catch::Contains("draft_vocab_size is 62"));
  CHECK_THAT(refusal("eagle3-speculators", with("eagle_aux_hidden_state_layer_ids", {0, 3, 7})),
             Catch::Contains("0 to 6, got 0, 3, 7"));
  CHECK_THAT(refusal("eagle3-speculators", with("eagle_aux_hidden_state_layer_ids", {3, 3, 6})),
             Catch::Contains("rising") && Catch::Contains("3, 3, 6"));
  CHECK_THAT(refusal("eagle3-speculators", with("eagle_aux_hidden_state_layer_ids", {3, 6})),
             Catch::Contains("fc.weight") && Catch::Contains("(32, 48)"));
  CHECK_THAT(refusal("eagle3-shared",
                     with("eagle_config", {{"eagle_aux_hidden_state_layer_ids", {1, 6}}})),
             Catch::Contains("0 to 5, got 1, 6"));
  // The model has too few.
  CHECK_THAT(refusal("eagle3-plain", same, keep_all, kDrafters + "eagle3-echo-model"),
             Catch::Contains("has 4 layers") && Catch::Contains("7 at least"));
  CHECK_THAT(refusal("eagle3-plain", same, keep_all,
                     TGI_SOURCE_DIR "/tests/golden/families/gemma3n-shared-kv"),
             Catch::Contains("several streams"));
}

TEST_CASE("tensors of an EAGLE-3 drafter that are not there, or not known, are refused by name") {
  CHECK_THAT(refusal("eagle3-plain", same, without("fc.weight")), Catch::Contains("fc.weight"));
  CHECK_THAT(refusal("eagle3-plain", same, without("midlayer.hidden_norm.weight")),
             Catch::Contains("hidden_norm.weight"));
  CHECK_THAT(refusal("eagle3-plain", same, without("lm_head.weight")),
             Catch::Contains("lm_head.weight"));
  CHECK_THAT(refusal("eagle3-plain", same, without("d2t")),
             Catch::Contains("d2t: missing") && Catch::Contains("40 of the model's 61"));
  CHECK(refusal("eagle3-plain", same, without("t2d")).empty());
  CHECK_THAT(refusal("eagle3-speculators", same, without("embed_tokens.weight")),
             Catch::Contains("embed_tokens.weight"));
  CHECK_THAT(refusal("eagle3-speculators", with("norm_before_fc", false)),
             Catch::Contains("input_norm.weight"));
  CHECK_THAT(
      refusal("eagle3-plain", same,
              [](TensorHeader& tensor) {
                if (tensor.name == "midlayer.hidden_norm.weight") {
                  tensor.name = "midlayer.other_norm.weight";
                }
                return true;
              }),
      Catch::Contains("midlayer: layers.0") && Catch::Contains("layers.0.other_norm.weight"));
  CHECK_THAT(refusal("eagle3-plain", same,
                     [](TensorHeader& tensor) {
                       if (tensor.name == "d2t") tensor.dtype = "U64";
                       return true;
                     }),
             Catch::Contains("d2t") && Catch::Contains("U64"));
}

TEST_CASE("a draft vocabulary that leads out of the model's is refused") {
  const std::string from = kDrafters + "eagle3-plain";
  for (const int64_t offset : {int64_t{-1}, int64_t{61}, int64_t{1} << 62, -(int64_t{1} << 62)}) {
    const TempFolder folder;
    std::ofstream(folder.file("config.json")) << read_json(from + "/config.json").dump();
    copy_checkpoint(from, folder.path(), keep_all,
                    [&](const std::string& name, std::vector<std::byte>& bytes) {
                      if (name == "d2t") std::memcpy(bytes.data(), &offset, sizeof offset);
                    });
    CHECK_THROWS_WITH(Loaded(kModel, folder.path(), false, sizes_of(64)),
                      Catch::Contains(fmt::format("entry 0 is {}", offset)));
  }
}

TEST_CASE("what is not known of an EAGLE-3 drafter's config is refused by name") {
  CHECK_THAT(refusal("eagle3-plain", with("use_trees", true)), Catch::Contains("use_trees"));
  CHECK_THAT(refusal("eagle3-speculators", with("fc_norm", true)), Catch::Contains("fc_norm"));
  CHECK_THAT(refusal("eagle3-speculators", with("speculators_model_type", "dflash")),
             Catch::Contains("'dflash' is not supported"));
  CHECK_THAT(refusal("eagle3-plain", with("eagle_config", {{"use_last_layernorm", false}})),
             Catch::Contains("use_last_layernorm"));
  CHECK_THAT(refusal("eagle3-plain", with("num_hidden_layers", 2)),
             Catch::Contains("one layer") && Catch::Contains("2"));
  CHECK_THAT(refusal("eagle3-plain", with("model_type", "deepseek_v3")),
             Catch::Contains("'deepseek_v3'"));
  CHECK_THAT(refusal("eagle3-plain", with("quantization_config", {{"quant_method", "gptq"}})),
             Catch::Contains("quantization_config"));
  CHECK_THAT(refusal("eagle3-plain", with("sliding_window", 4)), Catch::Contains("sliding_window"));
}

TEST_CASE("drafters of EAGLE 1 and 2 are refused as such") {
  // Their fc reads the embedding and one hidden state.
  CHECK_THAT(refusal("eagle3-shared", [](Json& config) { config.erase("eagle_config"); }),
             Catch::Contains("fc.weight of the shape (24, 48)") && Catch::Contains("EAGLE 1"));
}

}  // namespace tgi::eagle_test
