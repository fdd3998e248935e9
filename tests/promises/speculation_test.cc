// Promise 1 and 2 with drafts: an answer has the bits that it has without any, however it is drawn,
// whatever ends it, with right drafts and wrong ones.
#include <map>
#include <random>
#include <thread>

#include "engine/draft/drafter.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/drafters/model_drafter.h"
#include "engine/runtime/guide_compiler.h"
#include "engine/runtime/intake.h"
#include "tests/promises/engine_fixture.h"

namespace tgi::speculation_test {
namespace {

constexpr int32_t kMaxDrafts = 6;

// What sequences have become, prompt and answer.
using Texts = std::vector<std::vector<int32_t>>;

// Knows how its sequences will go on, says it for a while and then something else.
class KnowingDrafter final : public Drafter {
 public:
  KnowingDrafter(const Texts& texts, int32_t vocab_size) : texts_(texts), vocab_size_(vocab_size) {}

  std::unique_ptr<Memory> start() override { return std::make_unique<Memory>(); }
  bool is_free() const override { return true; }
  void draft(std::span<const Wanted> wanted) override {
    for (const Wanted& each : wanted) {
      each.draft_ids->clear();
      const std::vector<int32_t>* const text = find(each.token_ids);
      const auto num_right = static_cast<int32_t>(random_() % 8);
      for (int32_t i = 0; i < each.max_tokens; ++i) {
        const size_t at = each.token_ids.size() + static_cast<size_t>(i);
        const bool is_right = text != nullptr && i < num_right && at < text->size();
        each.draft_ids->push_back(
            is_right ? (*text)[at]
                     : static_cast<int32_t>(random_() % static_cast<uint32_t>(vocab_size_)));
      }
    }
  }

 private:
  const std::vector<int32_t>* find(std::span<const int32_t> known) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::vector<int32_t>& text = texts_[(last_ + i) % texts_.size()];
      if (text.size() < known.size() || !std::equal(known.begin(), known.end(), text.begin()))
        continue;
      last_ = (last_ + i) % texts_.size();
      return &text;
    }
    return nullptr;
  }

  const Texts& texts_;
  const int32_t vocab_size_;
  size_t last_ = 0;
  std::mt19937 random_{5};
};

struct Setting {
  std::string name;
  FixtureOptions options;
};

struct Outcome {
  std::vector<ipc::DoneEvent> answers;
  ipc::Counters counters;
};

using MakeRequest = std::function<std::unique_ptr<Request>(size_t index)>;

// `drafter`: (optional)
Outcome run(const FileSource& files,
            const FixtureOptions& options,
            const Tokenizer& tokenizer,
            size_t count,
            const MakeRequest& make_request,
            std::unique_ptr<Drafter> drafter) {
  LoadedFixture loaded = load_workers(files, options);
  const ModelConfig& config = loaded.model.config;
  EngineOptions engine_options;
  engine_options.scheduler = {.max_running = options.max_running,
                              .max_batch_tokens = options.max_batch_tokens,
                              .max_forced_tokens = drafter == nullptr ? 0 : 16};
  engine_options.num_blocks = options.num_blocks;
  engine_options.kv_groups = loaded.kv_plan.groups;
  engine_options.vocab_size = config.vocab_size;
  engine_options.eos_token_ids = config.eos_token_ids;
  engine_options.drafts_at_any_price = true;
  const int32_t max_drafts = drafter == nullptr ? 0 : kMaxDrafts;
  std::vector<std::unique_ptr<Answer>> answers;
  Engine engine(engine_options, std::move(loaded.workers), tokenizer, std::move(drafter));
  for (size_t i = 0; i < count; ++i) {
    auto request = make_request(i);
    request->max_drafts = max_drafts;
    answers.push_back(std::make_unique<Answer>());
    engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
  }
  Outcome out;
  for (const auto& answer : answers) {
    REQUIRE(answer->wait_for_end(300000));
    REQUIRE(answer->done);
    out.answers.push_back(std::move(*answer->done));
  }
  // Published when the step that ended the last is done with.
  const auto is_counted = [&] {
    int64_t num_told = 0;
    for (const ipc::DoneEvent& answer : out.answers) {
      num_told += answer.best.num_generated_tokens;
      for (const auto& other : answer.others) num_told += other.num_generated_tokens;
    }
    out.counters = engine.stats().counters;
    return out.counters.num_generated_tokens == num_told;
  };
  for (int i = 0; i < 1000 && !is_counted(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return out;
}

bool same_tokens(const std::vector<ipc::TokenInfo>& a, const std::vector<ipc::TokenInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.id == y.id && x.logprob == y.logprob && x.text == y.text;
  });
}

bool same_lists(const std::vector<std::vector<ipc::TokenInfo>>& a,
                const std::vector<std::vector<ipc::TokenInfo>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_tokens);
}

bool same_sequence(const ipc::SequenceResult& a, const ipc::SequenceResult& b) {
  return a.index == b.index && a.text == b.text && a.finish_reason == b.finish_reason &&
         a.stop_sequence == b.stop_sequence && a.num_generated_tokens == b.num_generated_tokens &&
         a.mean_logprob == b.mean_logprob && same_tokens(a.tokens, b.tokens) &&
         same_lists(a.top_tokens, b.top_tokens);
}

bool same_answer(const ipc::DoneEvent& a, const ipc::DoneEvent& b) {
  return same_sequence(a.best, b.best) && same_tokens(a.prompt_tokens, b.prompt_tokens) &&
         same_lists(a.prompt_top_tokens, b.prompt_top_tokens) &&
         std::equal(a.others.begin(), a.others.end(), b.others.begin(), b.others.end(),
                    same_sequence);
}

void check_same(const FileSource& files,
                const std::vector<Setting>& settings,
                const Tokenizer& tokenizer,
                size_t count,
                const MakeRequest& make_request) {
  const Outcome wanted =
      run(files, settings.front().options, tokenizer, count, make_request, nullptr);
  CHECK(wanted.counters.num_drafted_tokens == 0);
  Texts texts;
  for (size_t i = 0; i < count; ++i) {
    const std::vector<int32_t> prompt = make_request(i)->prompt_ids;
    const auto add = [&](const ipc::SequenceResult& sequence) {
      std::vector<int32_t>& text = texts.emplace_back(prompt);
      for (const ipc::TokenInfo& token : sequence.tokens) text.push_back(token.id);
    };
    add(wanted.answers[i].best);
    for (const ipc::SequenceResult& other : wanted.answers[i].others) add(other);
  }
  const int32_t vocab_size = load_model_config(files).config.vocab_size;
  for (const Setting& setting : settings) {
    const Outcome got = run(files, setting.options, tokenizer, count, make_request,
                            std::make_unique<KnowingDrafter>(texts, vocab_size));
    size_t num_different = 0;
    for (size_t i = 0; i < count; ++i) {
      if (same_answer(got.answers[i], wanted.answers[i])) continue;
      UNSCOPED_INFO(setting.name << ", request " << i << ":\n"
                                 << got.answers[i].best.text << "\nwanted:\n"
                                 << wanted.answers[i].best.text);
      ++num_different;
    }
    CHECK(num_different == 0);
    INFO(setting.name);
    // Both kinds of drafts were there, and many of each.
    CHECK(got.counters.num_skipped_tokens > wanted.counters.num_generated_tokens / 5);
    CHECK(got.counters.num_drafted_tokens > 5 * got.counters.num_skipped_tokens / 4);
    CHECK(got.counters.num_generated_tokens == wanted.counters.num_generated_tokens);
    if (setting.options.num_blocks < 100) CHECK(got.counters.num_preemptions > 0);
  }
}

// Something of everything that a client can ask for.
ipc::GenerateRequest any_request(size_t index) {
  std::mt19937 random(static_cast<uint32_t>(index) * 7919 + 1);
  const auto one_in = [&](uint32_t n) { return random() % n == 0; };
  constexpr std::array kBeginnings = {"Once upon a time", "A fox and a bear", "What is tgi?",
                                      "One day the sun",  "tgi tgi tgi tgi",  "the the the cat"};
  ipc::GenerateRequest out;
  out.prompt = kBeginnings[random() % kBeginnings.size()];
  for (auto words = random() % 12; words > 0; --words)
    *out.prompt += std::array{" went", " home", " and", " sang", " 12"}[random() % 5];
  ipc::GenerateParams& params = out.params;
  // Some grow out of what there is room for.
  params.max_new_tokens = static_cast<int64_t>(random() % (index % 8 == 0 ? 120 : 20) + 1);
  params.details = true;
  if (one_in(2)) {
    params.do_sample = true;
    params.seed = random();
    if (one_in(2)) params.temperature = 0.5 + 0.1 * static_cast<double>(random() % 12);
    if (one_in(3)) params.top_k = random() % 40 + 1;
    if (one_in(3)) params.top_p = 0.9;
    if (one_in(4)) params.typical_p = 0.8;
    if (one_in(4)) params.min_p = 0.05;
    if (one_in(5)) params.best_of = 3;
  }
  if (one_in(3)) params.repetition_penalty = 1.3;
  if (one_in(3)) params.frequency_penalty = 0.7;
  if (one_in(4)) params.presence_penalty = -0.4;
  if (one_in(5)) params.watermark = true;
  if (one_in(6)) params.logit_bias = {{.id = 30, .bias = 4}, {.id = 31, .bias = -100}};
  if (one_in(3)) params.top_n_tokens = 4;
  if (one_in(4)) params.stop = {"the", "and a", "."};
  if (one_in(6)) params.prompt_logprobs = true;
  if (one_in(5)) params.ignore_eos = true;
  if (one_in(7)) params.use_prefix_cache = false;
  if (one_in(5)) {
    ipc::GuideParams guide;
    switch (random() % 3) {
      case 0:
        guide.regex = "[a-z ]{3,40}(\\.|!)";
        break;
      case 1:
        guide.choice = {"yes", "no", "a little of both"};
        break;
      default:
        guide.json_schema = ipc::OrderedJson::parse(
            R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}},)"
            R"( "required": ["name"]})");
    }
    params.guide = guide;
    params.max_new_tokens = 40;
  }
  return out;
}

}  // namespace

TEST_CASE("1,000 mixed requests have the same bits with drafts and without") {
  const auto files = open_demo_model();
  const LoadedConfig model = load_model_config(*files);
  const ModelConfig& config = model.config;
  const auto tokenizer = load_tokenizer(*files);
  GuideCompiler guides(*tokenizer, config.vocab_size, config.eos_token_ids);
  const Intake intake({.max_total_tokens = 512, .max_drafts = kMaxDrafts}, *tokenizer, nullptr,
                      config.vocab_size, &guides);
  check_same(*files,
             {{"as usual", {.dtype = DType::kBF16, .max_drafts = kMaxDrafts}},
              {"few blocks and small steps",
               {.dtype = DType::kBF16,
                .num_threads = 1,
                .max_batch_tokens = 40,
                .max_running = 12,
                .num_blocks = 14,
                .max_drafts = kMaxDrafts}}},
             *tokenizer, 1000, [&](size_t i) { return intake.prepare(any_request(i)); });
}

TEST_CASE("mixed requests have the same bits with a draft model, which drafts what they draw") {
  const auto files = open_demo_model();
  const LoadedConfig model = load_model_config(*files);
  const ModelConfig& config = model.config;
  const auto tokenizer = load_tokenizer(*files);
  GuideCompiler guides(*tokenizer, config.vocab_size, config.eos_token_ids);
  const Intake intake({.max_total_tokens = 512, .max_drafts = kMaxDrafts}, *tokenizer, nullptr,
                      config.vocab_size, &guides);
  const FixtureOptions options{.dtype = DType::kBF16, .max_drafts = kMaxDrafts};
  const auto make_request = [&](size_t i) { return intake.prepare(any_request(i)); };
  constexpr size_t kCount = 300;
  const Outcome wanted = run(*files, options, *tokenizer, kCount, make_request, nullptr);
  // Its twin: what differs are grammars, penalties and the like, of which it knows nothing.
  auto twin = std::make_unique<ModelDrafter>(
      load_workers(*files, options).workers,
      ModelDrafterOptions{.num_slots = options.max_running,
                          .max_batch_tokens = options.max_batch_tokens,
                          .max_total_tokens = 512,
                          .num_blocks = options.num_blocks,
                          .vocab_size = config.vocab_size});
  const Outcome got = run(*files, options, *tokenizer, kCount, make_request, std::move(twin));
  size_t num_different = 0;
  for (size_t i = 0; i < kCount; ++i) {
    if (!same_answer(got.answers[i], wanted.answers[i])) ++num_different;
  }
  CHECK(num_different == 0);
  CHECK(got.counters.num_skipped_tokens > wanted.counters.num_generated_tokens / 3);
  CHECK(2 * got.counters.num_skipped_tokens > got.counters.num_drafted_tokens);
}

TEST_CASE("models of every kind of attention have the same bits with drafts and without") {
  const std::string golden = TGI_SOURCE_DIR "/tests/golden/families/";
  for (const char* name : {"gemma3-pattern", "gpt-oss", "deepseek3-odd-sizes"}) {
    INFO(name);
    const auto files = open_folder(golden + name);
    const LoadedConfig model = load_model_config(*files);
    const int32_t vocab_size = model.config.vocab_size;
    const ByteTokenizer tokenizer(vocab_size);
    const auto make_request = [&](size_t index) {
      std::mt19937 random(static_cast<uint32_t>(index) + 40);
      auto request = std::make_unique<Request>();
      request->id = index + 1;
      for (auto length = random() % 40 + 1; length > 0; --length) {
        request->prompt_ids.push_back(
            static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size)));
      }
      request->max_new_tokens = static_cast<int32_t>(random() % 90 + 1);
      request->sampling.do_sample = index % 2 == 1;
      request->sampling.seed = index;
      request->sampling.frequency_penalty = index % 3 == 0 ? 0.4F : 0.0F;
      request->ignore_eos = true;
      request->details = true;
      request->accepted_at = Clock::now();
      return request;
    };
    const KvGroups groups = plan_kv_groups(model.config, FixtureOptions{}.num_blocks * 16).groups;
    check_same(*files,
               {{"as usual", {.dtype = DType::kBF16, .max_drafts = kMaxDrafts}},
                {"few blocks",
                 {.dtype = DType::kBF16,
                  .max_batch_tokens = 48,
                  .num_blocks = 9 * groups.num_groups(),
                  .max_drafts = kMaxDrafts}}},
               tokenizer, 40, make_request);
  }
}

}  // namespace tgi::speculation_test
