// Layers for the next tokens propose what torch computes in double precision, on every device,
// however a text is shown to them; and checkpoints that don't fit are refused before their numbers
// are read.
#include <array>
#include <fstream>
#include <functional>

#include "tests/runtime/draft_layers.h"
#include "tests/temp_folder.h"

namespace tgi::draft_layers_test {
namespace {

// A copy of a golden model with something changed.
std::string refusal(const std::function<void(Json&)>& change_config,
                    const std::function<bool(TensorHeader&)>& keep,
                    const std::string& model = "mtp-glm4-moe") {
  const TempFolder folder;
  const std::string from = kDrafters + model;
  Json config = read_json(from + "/config.json");
  change_config(config);
  std::ofstream(folder.file("config.json")) << config.dump();
  copy_checkpoint(from, folder.path(), keep);
  try {
    Loaded(folder.path(), kOwnLayer, false, sizes_of(64));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a layer for the next tokens proposes what torch computes in double precision") {
  for (const char* name :
       {"mtp-glm4-moe", "mtp-deepseek3", "mtp-glm4-moe-lite", "mtp-hy3", "mtp-mellum"}) {
    const std::string folder = kDrafters + name;
    check_proposals(folder, kOwnLayer, folder, true, 64);
    check_proposals(folder, kOwnLayer, folder, false, 64);
    check_proposals(folder, kOwnLayer, folder, false, 7);  // rows of a pass
  }
}

TEST_CASE("behind a gap a layer that drafts begins anew, and without rows it drafts nothing") {
  const std::string folder = kDrafters + "mtp-glm4-moe";
  Loaded loaded(folder, kOwnLayer, false, sizes_of(64));
  const std::vector<GoldenText> texts = golden_texts(folder);
  Shown shown{.golden = &texts[0], .memory = loaded.drafter->start(), .length = 30};
  std::vector<int32_t> drafts = {1};
  const auto draft = [&] {
    const std::array wanted = {shown.wanted(2, drafts)};
    loaded.drafter->draft(wanted);
  };
  draft();
  CHECK(drafts.empty());
  // A prefix was cached.
  const std::array begin = {shown.rows(20, 30)};
  loaded.drafter->read(begin);
  draft();
  CHECK(drafts.size() == 2);
  const std::vector<int32_t> behind_gap = drafts;
  // Rows that do not reach to the text's end are no reason to draft.
  shown.length = 33;
  draft();
  CHECK(drafts.empty());
  // The same rows behind another gap are the same text to it.
  const std::array elsewhere = {shown.rows(2, 10)};
  loaded.drafter->read(elsewhere);
  shown.length = 30;
  loaded.drafter->read(begin);
  draft();
  CHECK(drafts == behind_gap);
}

TEST_CASE("texts that are not read any more lose the rows that wait, where others need the room") {
  const std::string folder = kDrafters + "mtp-glm4-moe";
  Loaded loaded(folder, kOwnLayer, false, sizes_of(64));  // 4 texts
  const std::vector<GoldenText> texts = golden_texts(folder);
  const auto read = [&](const Shown& text, int32_t first, int32_t to) {
    const std::array rows = {text.rows(first, to)};
    loaded.drafter->read(rows);
  };
  const auto drafts_of = [&](Shown& text, int32_t length) {
    std::vector<int32_t> drafts;
    text.length = length;
    const std::array wanted = {text.wanted(4, drafts)};
    loaded.drafter->draft(wanted);
    return drafts;
  };
  std::vector<Shown> shown;
  for (int i = 0; i < 6; ++i) {
    shown.push_back({.golden = &texts[0], .memory = loaded.drafter->start()});
    read(shown.back(), 0, 13);
  }
  const std::vector<int32_t> expected = texts[0].drafts.at(13);
  for (size_t i = 0; i < shown.size(); ++i) {
    INFO(i);
    if (i < 2) {
      CHECK(drafts_of(shown[i], 13).empty());
    } else {
      CHECK(drafts_of(shown[i], 13) == expected);
    }
  }
  // What is shown again is read again; a text that ends makes room as well.
  read(shown[0], 0, 13);
  CHECK(drafts_of(shown[0], 13) == expected);
  shown.clear();
  shown.push_back({.golden = &texts[1], .memory = loaded.drafter->start()});
  read(shown[0], 0, 20);
  CHECK(drafts_of(shown[0], 20) == texts[1].drafts.at(20));
}

TEST_CASE("layers for the next tokens that don't fit are refused by name") {
  const auto same = [](Json&) {};
  const auto all = [](TensorHeader&) { return true; };
  CHECK(refusal(same, all).empty());
  const auto without = [](const std::string& name) {
    return [name](TensorHeader& tensor) { return tensor.name != name; };
  };
  CHECK_THAT(refusal(same, without("model.layers.2.eh_proj.weight")),
             Catch::Contains("(MTP)") && Catch::Contains("model.layers.2.eh_proj.weight"));
  CHECK_THAT(refusal(same, without("model.layers.2.mlp.experts.3.up_proj.weight")),
             Catch::Contains("missing: model.layers.2.mlp.experts.3.up_proj.weight"));
  CHECK(refusal(same, without("model.layers.2.embed_tokens.weight")).empty());
  CHECK_THAT(refusal(same,
                     [](TensorHeader& tensor) {
                       if (tensor.name == "model.layers.2.hnorm.weight") {
                         tensor.name = "model.layers.2.hidden_norm.weight";
                       }
                       return true;
                     }),
             Catch::Contains("model.layers.2.hidden_norm.weight") &&
                 Catch::Contains("model.layers.2.hnorm.weight"));
  CHECK_THAT(refusal(same,
                     [](TensorHeader& tensor) {
                       if (tensor.name == "model.layers.2.enorm.weight") tensor.shape = {12, 2};
                       return true;
                     }),
             Catch::Contains("model.layers.2.enorm.weight"));
  const auto count = [](int count) {
    return [count](Json& config) { config["num_nextn_predict_layers"] = count; };
  };
  CHECK_THAT(refusal(count(0), all), Catch::Contains("num_nextn_predict_layers is 0"));
  CHECK_THAT(refusal(count(2), all), Catch::Contains("num_nextn_predict_layers is 2"));
  CHECK_THROWS_WITH(
      Loaded(TGI_SOURCE_DIR "/tests/golden/models/llama", kOwnLayer, false, sizes_of(64)),
      Catch::Contains("no layer for the next tokens"));
}

TEST_CASE("a layer for the next tokens that is stored apart is told by its own names") {
  const auto same = [](Json&) {};
  const auto all = [](TensorHeader&) { return true; };
  const auto without = [](const std::string& name) {
    return [name](TensorHeader& tensor) { return tensor.name != name; };
  };
  CHECK(refusal(same, all, "mtp-mellum").empty());
  CHECK_THAT(refusal(same, without("mtp.fc.weight"), "mtp-mellum"),
             Catch::Contains("missing: mtp.fc.weight"));
  // The model's first layer does not stand in for it.
  CHECK_THAT(refusal(same, without("mtp.layers.0.self_attn.q_proj.weight"), "mtp-mellum"),
             Catch::Contains("missing: mtp.layers.0.self_attn.q_proj.weight"));
  const auto with = [](const char* field, const Json& value) {
    return [=](Json& config) { config[field] = value; };
  };
  CHECK(refusal(with("mtp_layer_types", {"full_attention"}), all, "mtp-mellum").empty());
  CHECK_THAT(
      refusal(with("mtp_layer_types", {"full_attention", "full_attention"}), all, "mtp-mellum"),
      Catch::Contains("mtp_layer_types"));
  CHECK_THAT(refusal(with("mtp_mlp_layer_types", {"dense"}), all, "mtp-mellum"),
             Catch::Contains("mtp.layers.0.mlp.gate_proj.weight"));
}

}  // namespace tgi::draft_layers_test
