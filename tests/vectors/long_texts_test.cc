// Texts that are longer than a model takes: which tokens are left, and the entities of those.
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "tests/vectors/served_vectors.h"

namespace tgi {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const ServedModel& model, const ipc::VectorParams& asked) {
  return model.vectors()->prepare(asked).front()->prompt_ids;
}

// A golden folder that takes texts of so many tokens, copied to `to`.
std::unique_ptr<ServedModel> serve_short(const std::string& name,
                                         int64_t max_tokens,
                                         const std::string& to) {
  copy_with_field(name, "tokenizer_config.json", "model_max_length", max_tokens, to);
  return serve_path(to);
}

TEST_CASE("a pair that is too long loses the end of its longer text") {
  const auto model = serve("bert-cross-encoder");
  const VectorIntake& vectors = *model->vectors();
  std::string text;
  for (int i = 0; i < 200; ++i) text += "fox ";
  const auto ids = [&](const std::string& first, const std::string& second) {
    return vectors.prepare({.inputs = {{.text = first, .pair = second}}, .truncate = true})
        .front()
        ->prompt_ids;
  };
  const std::vector<int32_t> cut = ids("the capital", text);
  CHECK(static_cast<int64_t>(cut.size()) == vectors.max_tokens());
  const std::vector<int32_t> first = ids("the capital", "");
  CHECK(std::equal(first.begin(), first.end() - 1, cut.begin()));
  CHECK(cut.back() == first.back());
  CHECK(static_cast<int64_t>(ids(text, text).size()) == vectors.max_tokens());
  CHECK_THROWS_WITH(vectors.prepare({.inputs = {{.text = text}}}),
                    Catch::Contains("`truncate` must be set"));
}

TEST_CASE("what is too long is cut at the side that the model's files say, or the request") {
  const TempFolder folder;
  copy_with_field("bert-cross-encoder", "tokenizer_config.json", "model_max_length", 8,
                  folder.path());
  const std::string text = "a b c d e f g h i j";
  const auto cut = [&](std::optional<std::string> side, std::optional<std::string> pair) {
    const auto model = serve_path(folder.path());
    return ids_of(*model, {.inputs = {{.text = text, .pair = std::move(pair)}},
                           .truncate = true,
                           .truncation_side = std::move(side)});
  };
  const auto whole = [&](const std::string& first, std::optional<std::string> pair) {
    return ids_of(*serve("bert-cross-encoder"), {.inputs = {{first, std::move(pair)}}});
  };
  const Ids right = whole("a b c d e f", std::nullopt);
  const Ids left = whole("e f g h i j", std::nullopt);
  REQUIRE(right.size() == 8);
  CHECK(cut(std::nullopt, std::nullopt) == right);
  CHECK(cut("left", std::nullopt) == left);

  const Json truncation = {{"direction", "Left"}, {"max_length", 4}};
  set_field(folder.path(), "tokenizer.json", "truncation", truncation);
  CHECK(cut(std::nullopt, std::nullopt) == left);
  set_field(folder.path(), "tokenizer_config.json", "truncation_side", "right");
  CHECK(cut(std::nullopt, std::nullopt) == right);
  set_field(folder.path(), "tokenizer_config.json", "truncation_side", "left");
  set_field(folder.path(), "tokenizer.json", "truncation", nullptr);
  CHECK(cut(std::nullopt, std::nullopt) == left);
  CHECK(cut("right", std::nullopt) == right);
  CHECK(cut(std::nullopt, "k l m n") == whole("h i j", "m n"));
  CHECK(cut("right", "k l m n") == whole("a b c", "k l"));

  const Ids given = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(ids_of(*serve_path(folder.path()), {.inputs = {{.ids = given}}, .truncate = true}) ==
        Ids{3, 4, 5, 6, 7, 8, 9, 10});
  set_field(folder.path(), "tokenizer_config.json", "truncation_side", "both");
  CHECK_THROWS_WITH(serve_path(folder.path()),
                    Catch::Contains("truncation_side: expected left or right"));
}

TEST_CASE("messages that are too long keep their end at either side") {
  const TempFolder folder;
  const auto model = serve_short("qwen3-reranker", 64, folder.path());
  std::string text;
  for (int i = 0; i < 30; ++i) text += "fox ";
  const auto cut = [&](const std::string& side) {
    return ids_of(
        *model,
        {.inputs = {{.text = "a", .pair = text}}, .truncate = true, .truncation_side = side});
  };
  const TempFolder other;
  const Ids whole = ids_of(*serve_short("qwen3-reranker", 4096, other.path()),
                           {.inputs = {{.text = "a", .pair = text}}});
  REQUIRE(whole.size() > 64);
  const Ids right = cut("right");
  REQUIRE(right.size() == 64);
  CHECK(cut("left") == Ids(whole.end() - 64, whole.end()));
  CHECK(right.front() == whole.front());
  CHECK(right.back() == whole.back());
}

TEST_CASE("the longest text stands in a file for each kind of model") {
  for (const std::string kind :
       {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    INFO(kind);
    const TempFolder folder;
    copy_with_field("bert", "sentence_" + kind + "_config.json", "max_seq_length", 7,
                    folder.path());
    if (kind != "bert") std::ofstream(folder.path() + "/sentence_bert_config.json") << "{}";
    CHECK(serve_path(folder.path())->vectors()->max_tokens() == 7);
  }
}

std::vector<ipc::EntityInfo> entities(ServedModel& model, const ipc::VectorParams& asked) {
  return model.vectors()->classify(asked, run(model, ipc::kClassify, asked)).texts[0].entities;
}

// Makes every token of a text an entity.
void begin_everywhere(const std::string& folder) {
  Json labels;
  for (int i = 0; i < 5; ++i) labels[std::to_string(i)] = "B-" + std::to_string(i);
  set_field(folder, "config.json", "id2label", labels);
}

TEST_CASE("entities of a text that is cut are those of the tokens that are left") {
  const TempFolder folder;
  const std::string text = "a b c d e f g h i j";
  for (const std::string side : {"right", "left"}) {
    INFO(side);
    copy_with_field("bert-tokens", "tokenizer_config.json", "model_max_length", 8, folder.path());
    begin_everywhere(folder.path());
    const auto model = serve_path(folder.path());
    const ipc::VectorParams cut{
        .inputs = {{.text = text}}, .truncate = true, .truncation_side = side};
    const bool is_left = side == "left";
    const std::string rest = is_left ? "e f g h i j" : "a b c d e f";
    const std::vector<ipc::EntityInfo> found = entities(*model, cut);
    const std::vector<ipc::EntityInfo> wanted = entities(*model, {.inputs = {{.text = rest}}});
    REQUIRE(wanted.size() == 6);
    REQUIRE(found.size() == wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].group == wanted[i].group);
      CHECK(found[i].word == wanted[i].word);
      CHECK(found[i].score == wanted[i].score);
      CHECK(found[i].start == wanted[i].start + (is_left ? 8 : 0));
    }
  }
}

TEST_CASE("a token that stands for no part of a text is none of those that mark its ends") {
  const TempFolder folder;
  const Json trims = {{"type", "RobertaProcessing"},
                      {"cls", {"[CLS]", 0}},
                      {"sep", {"[SEP]", 2}},
                      {"trim_offsets", true},
                      {"add_prefix_space", true}};
  copy_with_field("modernbert-tokens", "tokenizer.json", "post_processor", trims, folder.path());
  begin_everywhere(folder.path());
  const auto model = serve_path(folder.path());
  const std::vector<ipc::EntityInfo> found = entities(*model, {.inputs = {{.text = "the  fox"}}});
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const ipc::EntityInfo& entity : found) places.emplace_back(entity.start, entity.end);
  CHECK(places == std::vector<std::pair<int64_t, int64_t>>{
                      {0, 1}, {1, 3}, {4, 4}, {5, 6}, {6, 7}, {7, 8}});  // tokenizers 0.23
  CHECK_THROWS_WITH(model->vectors()->prepare({.inputs = {{.text = "the"}}, .prompt = "a "}),
                    Catch::Contains("`prompt`"));
}

TEST_CASE("modules without a model beside them are refused by name") {
  const TempFolder folder;
  std::ofstream(folder.path() + "/modules.json")
      << R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}])";
  CHECK_THROWS_WITH(serve_path(folder.path()),
                    Catch::Contains("modules.json: 0.type: "
                                    "'sentence_transformers.models.StaticEmbedding' in ''"));
}

TEST_CASE("a label may be a number, and one that is null is called by its place") {
  const TempFolder folder;
  const auto labels = [&](const Json& names) {
    copy_with_field("bert-cross-encoder", "config.json", "id2label", names, folder.path());
    return serve_path(folder.path())->vectors()->head().labels();
  };
  CHECK(labels({{"0", 7}}) == std::vector<std::string>{"7"});
  CHECK(labels({{"0", nullptr}}) == std::vector<std::string>{"LABEL_0"});
  CHECK_THROWS_WITH(labels({{"0", true}}),
                    Catch::Contains("id2label.0: expected a text or a whole number"));
}

}  // namespace
}  // namespace tgi
