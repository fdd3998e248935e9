// What transformers and sentence-transformers make of texts (scripts/golden/make_vectors), by the
// way a request takes: ids, vectors to 1e-5, scores and entities; and the same bits alone and
// together.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "engine/model/architecture.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"
#include "tests/vectors/reranker_file.h"
#include "tests/vectors/served_vectors.h"

namespace tgi {
namespace {

std::vector<std::string> golden_names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    if (entry.is_directory()) out.push_back(entry.path().filename().string());
  }
  std::ranges::sort(out);
  REQUIRE(out.size() >= 20);
  return out;
}

Json expected_of(const std::string& name) {
  return parse_json(open_folder(kGolden + name)->require_text("expected.json"), 16);
}

ipc::TextInput input_of(const Json& text) {
  if (text.is_string()) return {.text = text.get<std::string>()};
  return {.text = text.at(0).get<std::string>(), .pair = text.at(1).get<std::string>()};
}

double worst(const std::vector<float>& got, const Json& wanted) {
  REQUIRE(got.size() == wanted.size());
  double out = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    out = std::max(out, std::abs(static_cast<double>(got[i]) - wanted[i].get<double>()));
  }
  return out;
}

double largest(const Json& values) {
  double out = 1.0;
  for (const Json& value : values) out = std::max(out, std::abs(value.get<double>()));
  return out;
}

void check_texts(ServedModel& model, const Json& expected, const ipc::VectorParams& all) {
  const VectorIntake& vectors = *model.vectors();
  const bool embeds = expected.at("task") == "embed";
  const std::string_view method = embeds ? ipc::kEmbed : ipc::kClassify;
  const std::vector<PooledText> together = run(model, method, all);
  const Json& rows = embeds ? expected.at("vectors")
                            : expected.value("logits", expected.value("token_logits", Json()));
  for (size_t i = 0; i < all.inputs.size(); ++i) {
    INFO("text " << i);
    ipc::VectorParams one = all;
    one.inputs = {all.inputs[i]};
    const auto prepared = vectors.prepare(one);
    std::vector<int32_t> ids = expected.at("ids")[i].get<std::vector<int32_t>>();
    if (ids.back() == vectors.head().padding())
      ids.pop_back();  // the end, which is the padding too
    CHECK(prepared.front()->prompt_ids == ids);
    const PooledText alone = run(model, method, one).front();
    CHECK(alone.pooled == together[i].pooled);
    const auto got = vectors.head().finish(together[i].pooled, together[i].num_tokens);
    if (embeds) {
      std::vector<float> vector = got.front();
      Json wanted = rows[i];
      if (vectors.head().normalises()) {
        normalise(vector);
        auto values = wanted.get<std::vector<float>>();
        normalise(values);  // those of a folder may not be, a GGUF file's are always
        wanted = values;
      }
      CHECK(worst(vector, wanted) <= 1e-5 * largest(wanted));
    } else if (expected.at("task") == "classify") {
      CHECK(worst(got.front(), rows[i]) <= 2e-5 * largest(rows[i]));
    } else {
      REQUIRE(got.size() == rows[i].size());
      for (size_t t = 0; t < got.size(); ++t) {
        CHECK(worst(got[t], rows[i][t]) <= 2e-5 * largest(rows[i][t]));
      }
    }
  }
}

void check_answers(ServedModel& model, const Json& expected, const ipc::VectorParams& all) {
  if (expected.at("task") == "embed") return;
  const ipc::ClassifyResult result =
      model.vectors()->classify(all, run(model, ipc::kClassify, all));
  for (size_t i = 0; i < all.inputs.size(); ++i) {
    INFO("text " << i);
    const ipc::TextScores& text = result.texts[i];
    if (expected.at("task") == "classify") {
      const std::vector<float> scores(text.scores.begin(), text.scores.end());
      CHECK(worst(scores, expected.at("scores")[i]) <= 1e-5);
      continue;
    }
    const Json& wanted = expected.at("entities")[i];
    REQUIRE(text.entities.size() == wanted.size());
    for (size_t e = 0; e < wanted.size(); ++e) {
      CHECK(text.entities[e].group == wanted[e].at("group").get<std::string>());
      CHECK(text.entities[e].word == wanted[e].at("word").get<std::string>());
      CHECK(text.entities[e].start == wanted[e].at("start"));
      CHECK(text.entities[e].end == wanted[e].at("end"));
      CHECK(std::abs(text.entities[e].score - wanted[e].at("score").get<double>()) <= 1e-5);
    }
  }
}

TEST_CASE("vectors, scores and entities are those of transformers and sentence-transformers") {
  const char* only = std::getenv("TGI_GOLDEN_FAMILY");
  for (const std::string& name : golden_names()) {
    if (only != nullptr && name != only) continue;
    INFO(name);
    const Json expected = expected_of(name);
    const auto model = serve(name);
    REQUIRE(model->vectors() != nullptr);
    CHECK(task_name(model->vectors()->head().task()) == expected.at("task").get<std::string>());
    ipc::VectorParams all;
    if (!expected.value("use_default_prompt", false)) all.prompt = "";
    all.truncate = expected.value("truncate", false);
    for (const Json& text : expected.at("texts")) all.inputs.push_back(input_of(text));
    check_texts(*model, expected, all);
    check_answers(*model, expected, all);
  }
}

TEST_CASE("GGUF files of llama.cpp's converter give the same vectors and scores") {
  const std::string folder = TGI_SOURCE_DIR "/tests/golden/gguf_vectors/";
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string name = entry.path().stem().string();
    INFO(name);
    const auto files = open_folder(folder);
    const auto own = files->find_text(name + ".json");
    const Json expected = own ? parse_json(*own, 16) : expected_of(name);
    const auto model = serve_path(entry.path().string());
    REQUIRE(model->vectors() != nullptr);
    CHECK(task_name(model->vectors()->head().task()) == expected.at("task").get<std::string>());
    ipc::VectorParams all{.inputs = {}, .prompt = ""};
    for (const Json& text : expected.at("texts")) all.inputs.push_back(input_of(text));
    check_texts(*model, expected, all);
    check_answers(*model, expected, all);
    ++num_files;
  }
  CHECK(num_files >= 8);
}

TEST_CASE("a decoder that ranks by its answer gives the same scores from a GGUF file") {
  const std::string name = "qwen3-reranker";
  const Json expected = expected_of(name);
  const Json tokens =
      parse_json(open_folder(kGolden + name + "/1_LogitScore")->require_text("config.json"));
  const auto yes = tokens.at("true_token_id").get<int32_t>();
  const auto no = tokens.at("false_token_id").get<int32_t>();
  // As the template of the folder writes it with its default prompt.
  const std::string pair_template =
      "<|im_start|>system\nAnswer \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
      "<Instruct>: find the answer\n<Query>: {query}\n<Document>: {document}\n<|im_end|>\n"
      "<|im_start|>assistant\n<think>\n\n</think>\n\n";
  const TempFolder folder;
  const std::string path = folder.file("reranker.gguf");
  write_reranker(kGolden + name, yes, no, {.pair_template = pair_template}, path);
  const auto model = serve_path(path);
  REQUIRE(model->vectors() != nullptr);
  CHECK(task_name(model->vectors()->head().task()) == expected.at("task").get<std::string>());
  CHECK(model->vectors()->head().labels().size() == 1);
  // A file says nothing of a length that texts are cut to: the folder without one is compared.
  const std::string whole = folder.file("whole");
  std::filesystem::copy(kGolden + name, whole, std::filesystem::copy_options::recursive);
  Json tokenizer = parse_json(open_folder(whole)->require_text("tokenizer_config.json"));
  REQUIRE(tokenizer.erase("model_max_length") == 1);
  std::ofstream(whole + "/tokenizer_config.json") << tokenizer.dump();
  const auto original = serve_path(whole);
  ipc::VectorParams all{.inputs = {}};
  for (const Json& text : expected.at("texts")) all.inputs.push_back(input_of(text));
  const auto wanted_ids = original->vectors()->prepare(all);
  const auto ids = model->vectors()->prepare(all);
  const auto wanted = original->vectors()->classify(all, run(*original, ipc::kClassify, all));
  const auto scores = model->vectors()->classify(all, run(*model, ipc::kClassify, all));
  for (size_t i = 0; i < all.inputs.size(); ++i) {
    CHECK(ids[i]->prompt_ids == wanted_ids[i]->prompt_ids);
    REQUIRE(scores.texts[i].scores.size() == 1);
    CHECK(std::abs(scores.texts[i].scores[0] - wanted.texts[i].scores[0]) <= 1e-5);
  }
  // One that is not cut in either.
  CHECK(std::abs(scores.texts[2].scores[0] - expected.at("scores")[2][0].get<double>()) <= 1e-5);
  ipc::VectorParams told = all;
  told.prompt = "find something else";
  CHECK_THROWS_WITH(model->prepare_texts(ipc::kClassify, told),
                    Catch::Contains("the instruction is part of the model"));

  const auto refusal = [&](const RerankerFile& file) {
    write_reranker(kGolden + name, yes, no, file, path);
    try {
      (void)serve_path(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(refusal({.pair_template = "{query} alone"}),
             Catch::Contains("tokenizer.chat_template.rerank: expected a text with {query} and "
                             "{document}"));
  CHECK_THAT(refusal({.pair_template = pair_template, .labels = {"good", "bad"}}),
             Catch::Contains("qwen3.classifier.output_labels: expected yes and no"));
  CHECK_THAT(refusal({.pair_template = pair_template, .num_rows = 3}),
             Catch::Contains("tensor cls.output.weight: expected the rows of two answers"));
}

TEST_CASE("a decoder's text has the same vector in chunks, and with what the cache has of it") {
  for (const std::string name : {"qwen3-embedding", "mistral-mean"}) {
    INFO(name);
    const Json expected = expected_of(name);
    ModelOptions options;
    options.model = kGolden + name;
    options.dtype = "f32";
    options.num_threads = 2;
    options.max_batch_tokens = 16;
    options.max_running = 3;
    const auto model = ServedModel::load(options);
    ipc::VectorParams all{.inputs = {}, .prompt = ""};
    for (const Json& text : expected.at("texts")) all.inputs.push_back(input_of(text));
    for (int turn = 0; turn < 2; ++turn) {
      const std::vector<PooledText> texts = run(*model, ipc::kEmbed, all);
      for (size_t i = 0; i < texts.size(); ++i) {
        INFO("text " << i << ", turn " << turn);
        std::vector<float> vector =
            model->vectors()->head().finish(texts[i].pooled, texts[i].num_tokens).front();
        if (model->vectors()->head().normalises()) normalise(vector);
        const Json& wanted = expected.at("vectors")[i];
        CHECK(worst(vector, wanted) <= 1e-5 * largest(wanted));
      }
    }
  }
}

TEST_CASE("an encoder is cut into ranks, and gives the same to rounding") {
  for (const std::string name : {"bert", "mpnet", "modernbert", "nomic-bert", "deberta",
                                 "deberta-v3", "jina-bert", "ernie"}) {
    INFO(name);
    const Json expected = expected_of(name);
    const auto model = serve(name, 2);
    const std::vector<PooledText> texts =
        run(*model, ipc::kEmbed, {.inputs = {input_of(expected.at("texts")[3])}, .prompt = ""});
    std::vector<float> vector =
        model->vectors()->head().finish(texts[0].pooled, texts[0].num_tokens).front();
    if (model->vectors()->head().normalises()) normalise(vector);
    CHECK(worst(vector, expected.at("vectors")[3]) <= 2e-5 * largest(expected.at("vectors")[3]));
  }
}

TEST_CASE("any decoder gives vectors where it is told how to pool") {
  ModelOptions options;
  options.model = "demo";
  options.pooling = "last-token";
  const auto model = ServedModel::load(options);
  REQUIRE(model->vectors() != nullptr);
  const std::vector<PooledText> texts =
      run(*model, ipc::kEmbed, {.inputs = {{.text = "Once"}, {.text = "Once upon"}}});
  const auto& head = model->vectors()->head();
  CHECK(head.finish(texts[0].pooled, texts[0].num_tokens) !=
        head.finish(texts[1].pooled, texts[1].num_tokens));
  ipc::GenerateRequest asked;
  asked.prompt = "Once";
  CHECK_THROWS_WITH(model->prepare(asked), Catch::Contains("made for the task embed"));
}

TEST_CASE("a reranker's template is told the model's prompt, or the caller's") {
  const auto model = serve("qwen3-reranker");
  const auto ids = [&](std::optional<std::string> prompt) {
    return model->vectors()
        ->prepare({.inputs = {{.text = "a", .pair = "b"}}, .prompt = std::move(prompt)})
        .front()
        ->prompt_ids;
  };
  CHECK(ids(std::nullopt) == ids("find the answer"));
  CHECK(ids(std::nullopt) != ids("find it"));
}

TEST_CASE("a vector has the dimensions that the model keeps, after its norm") {
  const TempFolder folder;
  copy_with_field("bert", "config_sentence_transformers.json", "truncate_dim", 5, folder.path());
  const auto whole = serve("bert");
  const auto cut = serve_path(folder.path());
  const auto vector = [](ServedModel& model, std::optional<int64_t> dimensions) {
    const ipc::VectorParams asked{.inputs = {{.text = "some words"}}, .dimensions = dimensions};
    const ipc::EmbedResult result = model.vectors()->embed(asked, run(model, "embed", asked));
    return ipc::floats_of_base64(result.vectors.front());
  };
  std::vector<float> expected = vector(*whole, std::nullopt);
  expected.resize(5);
  CHECK(vector(*cut, std::nullopt) == expected);
  CHECK(vector(*cut, 7) == vector(*whole, 7));
  copy_with_field("bert", "config_sentence_transformers.json", "truncate_dim", 0, folder.path());
  CHECK_THROWS_WITH(serve_path(folder.path()), Catch::Contains("truncate_dim: expected 1 or more"));
  copy_with_field("bert", "config_sentence_transformers.json", "pads_left", true, folder.path());
  CHECK_THROWS_WITH(serve_path(folder.path()), Catch::Contains("pads_left"));
}

TEST_CASE("types of tokens reach the model where its tokenizer hands them over") {
  const TempFolder folder;
  const auto has_types = [&](const std::string& field, const Json& value) {
    copy_with_field("bert-cross-encoder", "tokenizer_config.json", field, value, folder.path());
    const auto model = serve_path(folder.path());
    const auto requests = model->vectors()->prepare({.inputs = {{.text = "a", .pair = "b"}}});
    return !requests.front()->token_types.empty();
  };
  CHECK(has_types("tokenizer_class", "BertTokenizer"));
  CHECK(has_types("model_input_names", {"input_ids", "token_type_ids", "attention_mask"}));
  CHECK_FALSE(has_types("model_input_names", {"input_ids", "attention_mask"}));
  CHECK_FALSE(has_types("tokenizer_class", "TokenizersBackend"));
}

// A golden folder with one more field in its config.json.
class ChangedConfig final : public FileSource {
 public:
  ChangedConfig(const std::string& name, const std::string& field, const Json& value)
      : folder_(open_folder(kGolden + name)) {
    Json config = parse_json(folder_->require_text("config.json"));
    config[field] = value;
    config_ = config.dump();
  }
  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    return name == "config.json" ? std::as_bytes(std::span(config_)) : folder_->find(name);
  }
  std::string describe(const std::string& name) const override { return name; }

 private:
  std::unique_ptr<FileSource> folder_;
  std::string config_;
};

TEST_CASE("a cross-encoder's scores are what its config says that they are") {
  const auto scores = [](const std::string& field, const Json& value) {
    const ChangedConfig files("bert-cross-encoder", field, value);
    const LoadedConfig model = load_model_config(files);
    return VectorHead(model, files, *open_checkpoint(files)).scores();
  };
  const std::string torch = "torch.nn.modules.";
  CHECK(scores("pad_token_id", 0) == VectorHead::Scores::kSigmoid);
  CHECK(scores("sentence_transformers", {{"activation_fn", torch + "linear.Identity"}}) ==
        VectorHead::Scores::kLogits);
  CHECK(scores("sbert_ce_default_activation_function", torch + "linear.Identity") ==
        VectorHead::Scores::kLogits);
  CHECK(scores("sentence_transformers", {{"activation_fn", torch + "activation.Sigmoid"}}) ==
        VectorHead::Scores::kSigmoid);
  CHECK_THROWS_WITH(scores("sbert_ce_default_activation_function", torch + "activation.Tanh"),
                    Catch::Contains("Identity, Sigmoid"));
}

TEST_CASE("texts that are cancelled midway leave nothing behind") {
  const auto model = serve("bert");
  std::string text;
  for (int i = 0; i < 60; ++i) text += "fox ";
  for (int turn = 0; turn < 20; ++turn) {
    ipc::VectorParams asked;
    for (int i = 0; i < 40; ++i) asked.inputs.push_back({.text = text});
    std::vector<std::unique_ptr<Request>> requests = model->prepare_texts(ipc::kEmbed, asked);
    std::vector<uint64_t> ids;
    const auto texts = std::make_shared<PooledTexts>(
        requests.size(), [](std::vector<PooledText>&&, const Error*) {});
    for (size_t i = 0; i < requests.size(); ++i) {
      ids.push_back(requests[i]->id);
      model->engine().submit(std::move(requests[i]), texts->sink(i));
    }
    for (const uint64_t id : ids) model->engine().cancel(id);
  }
  for (int i = 0; i < 500 && model->engine().num_live_requests() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(model->engine().num_live_requests() == 0);
  CHECK(run(*model, ipc::kEmbed, {.inputs = {{.text = "hello"}}}).size() == 1);
  const EngineStats stats = model->engine().stats();
  CHECK(stats.num_blocks_used == 0);
  CHECK(stats.num_running == 0);
}

}  // namespace
}  // namespace tgi
