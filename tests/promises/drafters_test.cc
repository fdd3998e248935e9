// Promise 1 and 2 with each kind of drafter: an answer has the bits that it has without, in mixed
// batches, under preemption and when others leave; and what drafts is told the right things.
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "base/files/safetensors_writer.h"
#include "base/known_names.h"
#include "engine/runtime/demo_model.h"
#include "engine/runtime/drafters/drafter_kind.h"
#include "engine/runtime/drafters/model_drafter.h"
#include "engine/text/tokenizer.h"
#include "tests/catch.h"
#include "tests/promises/engine_fixture.h"
#include "tests/temp_folder.h"

namespace tgi::drafters_test {
namespace {

const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/";
constexpr int32_t kMaxDrafts = 3;

// Looks at what heads that add nothing draft: the token that was drawn last, where the likeliest is
// drawn. A layer with a KV cache as large as the model's may have no room for a text: it shares no
// prefixes, which the model does, and reserves blocks for all drafts that are asked for, which the
// model cuts where its cache is full. Then there is no draft; what there is has to be right.
class EchoDrafter final : public Drafter {
 public:
  // `prompts`: whose last token was drawn from nothing. `has_room`: of all texts for blocks of
  // their own.
  EchoDrafter(std::unique_ptr<Drafter> heads,
              std::set<std::vector<int32_t>> prompts,
              bool has_room,
              int64_t& num_echoes)
      : heads_(std::move(heads)),
        prompts_(std::move(prompts)),
        has_room_(has_room),
        num_echoes_(num_echoes) {}
  std::unique_ptr<Memory> start() override { return heads_->start(); }
  bool reads_hidden() const override { return heads_->reads_hidden(); }
  bool reads_rows() const override { return heads_->reads_rows(); }
  void read(std::span<const Computed> computed) override { heads_->read(computed); }
  void draft(std::span<const Wanted> wanted) override {
    heads_->draft(wanted);
    for (const Wanted& each : wanted) {
      REQUIRE(each.sampling != nullptr);
      if (each.sampling->do_sample || each.sampling->has_penalties()) continue;
      if (prompts_.contains({each.token_ids.begin(), each.token_ids.end()})) continue;
      if (has_room_ || !each.draft_ids->empty()) {
        CHECK(each.draft_ids->size() == static_cast<size_t>(each.max_tokens));
      }
      for (const int32_t id : *each.draft_ids) CHECK(id == each.token_ids.back());
      num_echoes_ += each.draft_ids->empty() ? 0 : 1;
    }
  }

 private:
  const std::unique_ptr<Drafter> heads_;
  const std::set<std::vector<int32_t>> prompts_;
  const bool has_room_;
  int64_t& num_echoes_;
};

// A model and what drafts for it.
struct Pair {
  std::string name;
  int64_t* num_echoes = nullptr;      // (optional) the heads add nothing
  std::unique_ptr<FileSource> files;  // of the model
  ipc::ModelSettings settings;
};

std::unique_ptr<Tokenizer> tokenizer_of(const FileSource& files, const ModelConfig& config) {
  if (has_tokenizer(files)) return load_tokenizer(files);
  return std::make_unique<ByteTokenizer>(config.vocab_size);
}

struct Outcome {
  std::vector<ipc::DoneEvent> answers;  // of requests that were not cancelled
  ipc::Counters counters;
};

std::unique_ptr<Request> any_request(size_t index, int32_t vocab_size, bool drafts) {
  std::mt19937 random(static_cast<uint32_t>(index) * 31 + 5);
  auto request = std::make_unique<Request>();
  request->id = index + 1;
  // Some share what they begin with.
  std::mt19937 shared(static_cast<uint32_t>(index % 3));
  for (auto length = random() % 60 + 1; length > 0; --length) {
    auto& from = length > 20 ? shared : random;
    request->prompt_ids.push_back(static_cast<int32_t>(from() % static_cast<uint32_t>(vocab_size)));
  }
  request->max_new_tokens = static_cast<int32_t>(random() % 60 + 1);
  request->sampling.do_sample = index % 2 == 1;
  request->sampling.seed = index;
  if (index % 4 == 1) request->sampling.temperature = 0.6F;
  if (index % 5 == 0) request->sampling.frequency_penalty = 0.4F;
  if (index % 7 == 0) request->sampling.repetition_penalty = 1.2F;
  if (index % 6 == 1) request->best_of = 2;
  if (index % 3 == 0) request->sampling.top_n_tokens = 3;
  if (index % 8 == 0) request->prompt_logprobs = true;
  request->ignore_eos = true;
  request->details = true;
  request->max_drafts = drafts ? kMaxDrafts : 0;
  request->accepted_at = Clock::now();
  return request;
}

Outcome run(const Pair& pair, FixtureOptions options, bool drafts, size_t count) {
  const LoadedConfig model = load_model_config(*pair.files);
  const ModelConfig& config = model.config;
  const auto tokenizer = tokenizer_of(*pair.files, config);
  Backend& backend = options.is_reference ? reference_backend() : cpu_backend();
  std::unique_ptr<FileSource> drafter_files;
  Json json;
  if (!pair.settings.speculator.empty() && pair.settings.speculator != kOwnLayer) {
    drafter_files = open_folder(pair.settings.speculator);
    json = parse_json(drafter_files->require_text("config.json"));
  }
  const AskedDrafter asked{.settings = pair.settings,
                           .model = model,
                           .tokenizer = *tokenizer,
                           .backend = backend,
                           .device = {.num_threads = options.num_threads},
                           .dtype = options.dtype,
                           .kv_dtype = options.dtype,
                           .files = drafter_files.get(),
                           .config = drafter_files != nullptr ? &json : nullptr,
                           .model_files = pair.files.get()};
  std::unique_ptr<PreparedDrafter> prepared;
  for (const DrafterKind* const kind : drafter_kinds()) {
    if (prepared == nullptr && kind->is_asked(asked)) prepared = kind->prepare(asked);
  }
  REQUIRE(prepared != nullptr);
  options.max_drafts = kMaxDrafts;
  if (drafts) options.reported_rows = prepared->reported_rows();
  DraftedModel drafted{.sizes = {.max_running = options.max_running,
                                 .max_batch_tokens = options.max_batch_tokens,
                                 .max_total_tokens = std::min(256, 16 * options.num_blocks),
                                 .num_blocks = options.num_blocks}};
  options.on_first = [&](Worker& worker) {
    if (prepared->reads_hidden()) worker.report_hidden();
    drafted.lm_head = &worker.lm_head();
    drafted.lm_head_bias = worker.lm_head_bias();
    drafted.token_embedding = &worker.token_embedding();
  };
  LoadedFixture loaded = load_workers(*pair.files, options);
  EngineOptions engine_options;
  engine_options.scheduler = {.max_running = options.max_running,
                              .max_batch_tokens = options.max_batch_tokens};
  engine_options.num_blocks = options.num_blocks;
  engine_options.kv_groups = loaded.kv_plan.groups;
  engine_options.vocab_size = config.vocab_size;
  engine_options.drafts_at_any_price = true;
  std::vector<std::unique_ptr<Answer>> answers;
  std::unique_ptr<Drafter> drafter;
  if (drafts) drafter = prepared->load(drafted);
  if (drafts && pair.num_echoes != nullptr) {
    std::set<std::vector<int32_t>> prompts;
    for (size_t i = 0; i < count; ++i) {
      prompts.insert(any_request(i, config.vocab_size, drafts)->prompt_ids);
    }
    const bool has_room = !drafter->reads_rows() || options.num_blocks >= 100;
    drafter = std::make_unique<EchoDrafter>(std::move(drafter), std::move(prompts), has_room,
                                            *pair.num_echoes);
  }
  Engine engine(engine_options, std::move(loaded.workers), *tokenizer, std::move(drafter));
  for (size_t i = 0; i < count; ++i) {
    answers.push_back(std::make_unique<Answer>());
    engine.submit(any_request(i, config.vocab_size, drafts),
                  std::make_unique<AnswerSink>(*answers.back()));
    // Some leave, whenever that is.
    if (i % 9 == 8) engine.cancel(i - 3);
  }
  Outcome out;
  for (size_t i = 0; i < count; ++i) {
    if ((i + 4) % 9 == 8 && i + 4 < count) continue;
    REQUIRE(answers[i]->wait_for_end(300000));
    REQUIRE(answers[i]->done);
    out.answers.push_back(std::move(*answers[i]->done));
  }
  for (int i = 0; i < 1000 && engine.stats().num_running > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  out.counters = engine.stats().counters;
  return out;
}

bool same_tokens(const std::vector<ipc::TokenInfo>& a, const std::vector<ipc::TokenInfo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.id == y.id && x.logprob == y.logprob;
  });
}

bool same_answer(const ipc::DoneEvent& a, const ipc::DoneEvent& b) {
  return a.best.finish_reason == b.best.finish_reason &&
         same_tokens(a.best.tokens, b.best.tokens) &&
         same_tokens(a.prompt_tokens, b.prompt_tokens) &&
         std::equal(a.best.top_tokens.begin(), a.best.top_tokens.end(), b.best.top_tokens.begin(),
                    b.best.top_tokens.end(), same_tokens);
}

// Returns which share of the drafts was drawn.
double check_same(const Pair& pair, const FixtureOptions& options, size_t count) {
  INFO(pair.name);
  const Outcome wanted = run(pair, options, false, count);
  const Outcome got = run(pair, options, true, count);
  REQUIRE(got.answers.size() == wanted.answers.size());
  size_t num_different = 0;
  for (size_t i = 0; i < got.answers.size(); ++i) {
    if (!same_answer(got.answers[i], wanted.answers[i])) ++num_different;
  }
  CHECK(num_different == 0);
  CHECK(wanted.counters.num_drafted_tokens == 0);
  CHECK(got.counters.num_drafted_tokens > 200);
  if (options.num_blocks < 100) CHECK(got.counters.num_preemptions > 0);
  return static_cast<double>(got.counters.num_skipped_tokens) /
         static_cast<double>(got.counters.num_drafted_tokens);
}

// Medusa heads for the golden model that add nothing to what they read.
void write_empty_heads(const TempFolder& folder) {
  std::ofstream(folder.file("config.json")) << R"({"medusa_num_heads": 3, "medusa_num_layers": 1})";
  std::vector<TensorHeader> entries;
  for (const char* head : {"0", "1", "2"}) {
    entries.push_back({std::string(head) + ".0.linear.weight", "F32", {36, 36}});
    entries.push_back({std::string(head) + ".0.linear.bias", "F32", {36}});
  }
  SafetensorsWriter writer(folder.file("medusa_lm_head.safetensors"), entries);
  writer.append(std::vector<std::byte>(size_t{3} * (36 * 36 + 36) * sizeof(float)));
  writer.finish();
}

Pair heads_pair(const std::string& name) {
  Pair out{.name = name,
           .num_echoes = nullptr,
           .files = open_folder(kGolden + "models/llama"),
           .settings = {}};
  out.settings.speculator = kGolden + "drafters/" + name;
  return out;
}

// A model that drafts with its own layer for the next tokens.
Pair mtp_pair(const std::string& name) {
  Pair out{.name = name,
           .num_echoes = nullptr,
           .files = open_folder(kGolden + "drafters/" + name),
           .settings = {}};
  out.settings.speculator = kOwnLayer;
  return out;
}

Pair eagle_pair(const std::string& model, const std::string& name) {
  Pair out{.name = name,
           .num_echoes = nullptr,
           .files = open_folder(kGolden + "drafters/" + model),
           .settings = {}};
  out.settings.speculator = kGolden + "drafters/" + name;
  return out;
}

Pair model_pair(const std::string& model, const std::string& draft) {
  Pair out{.name = draft + " for " + model, .num_echoes = nullptr, .files = {}, .settings = {}};
  out.files = model == kDemoModel ? open_demo_model() : open_folder(kGolden + model);
  out.settings.draft_model = draft == kDemoModel ? draft : kGolden + draft;
  return out;
}

}  // namespace

TEST_CASE("answers have the same bits with heads that draft and without") {
  for (const char* name : {"medusa1", "medusa2", "mlp", "mlp-tied"}) {
    check_same(heads_pair(name), {.dtype = DType::kBF16}, 60);
    check_same(heads_pair(name),
               {.dtype = DType::kBF16, .max_batch_tokens = 40, .max_running = 8, .num_blocks = 14},
               60);
  }
  check_same(heads_pair("medusa2"), {.is_reference = true}, 12);
}

TEST_CASE("heads read what the last token was drawn from") {
  const TempFolder folder;
  write_empty_heads(folder);
  for (const bool is_tight : {false, true}) {
    int64_t num_echoes = 0;
    Pair pair = heads_pair("medusa2");
    pair.settings.speculator = folder.path();
    pair.num_echoes = &num_echoes;
    FixtureOptions options{.dtype = DType::kBF16};
    if (is_tight) {
      options.max_batch_tokens = 40;
      options.max_running = 8;
      options.num_blocks = 14;
    }
    check_same(pair, options, 60);
    CHECK(num_echoes > 100);
  }
}

TEST_CASE("a layer for the next tokens reads what the last token was drawn from") {
  for (const bool is_tight : {false, true}) {
    int64_t num_echoes = 0;
    Pair pair = mtp_pair("mtp-echo");
    pair.num_echoes = &num_echoes;
    FixtureOptions options{.dtype = DType::kF32};
    if (is_tight) {
      options.max_batch_tokens = 40;
      options.max_running = 8;
      options.num_blocks = 14;
    }
    check_same(pair, options, 60);
    CHECK(num_echoes > 100);
  }
}

TEST_CASE("an EAGLE-3 drafter reads what the last token was drawn from") {
  for (const bool is_tight : {false, true}) {
    int64_t num_echoes = 0;
    Pair pair = eagle_pair("eagle3-echo-model", "eagle3-echo");
    pair.num_echoes = &num_echoes;
    FixtureOptions options{.dtype = DType::kF32};
    if (is_tight) {
      options.max_batch_tokens = 40;
      options.max_running = 8;
      options.num_blocks = 14;
    }
    check_same(pair, options, 60);
    CHECK(num_echoes > 100);
  }
}

TEST_CASE("answers have the same bits with a draft model and without") {
  // One that knows nothing of the model's text, one whose layers have windows, and the model.
  check_same(model_pair("models/mistral-window", "models/qwen2"), {.dtype = DType::kBF16}, 60);
  check_same(model_pair("models/qwen2", "models/mistral-window"), {.dtype = DType::kBF16}, 60);
  const Pair twins = model_pair("demo", "demo");
  CHECK(check_same(twins, {.dtype = DType::kBF16}, 60) > 0.8);
  check_same(twins,
             {.dtype = DType::kBF16, .max_batch_tokens = 40, .max_running = 8, .num_blocks = 14},
             60);
  CHECK(check_same(model_pair("models/llama", "models/llama"), {.is_reference = true}, 12) > 0.8);
}

TEST_CASE("answers have the same bits with a layer for the next tokens and without") {
  FixtureOptions tight{.dtype = DType::kBF16};
  tight.max_batch_tokens = 40;
  tight.max_running = 8;
  tight.num_blocks = 14;
  for (const char* name : {"mtp-glm4-moe", "mtp-deepseek3", "mtp-glm4-moe-lite", "mtp-hy3"}) {
    check_same(mtp_pair(name), {.dtype = DType::kBF16}, 60);
    check_same(mtp_pair(name), tight, 60);
  }
  // Of layers with windows and without a request takes a block each.
  FixtureOptions grouped = tight;
  grouped.num_blocks = 30;
  check_same(mtp_pair("mtp-mellum"), {.dtype = DType::kBF16}, 60);
  check_same(mtp_pair("mtp-mellum"), grouped, 60);
  check_same(mtp_pair("mtp-deepseek3"), {.is_reference = true}, 12);
  // What the next token follows from is known to the layer as well.
  const Pair certain = mtp_pair("mtp-certain");
  CHECK(check_same(certain, {.dtype = DType::kBF16}, 60) > 0.8);
  CHECK(check_same(certain, tight, 60) > 0.8);
  CHECK(check_same(certain, {.is_reference = true}, 12) > 0.8);
}

TEST_CASE("answers have the same bits with an EAGLE-3 drafter and without") {
  FixtureOptions tight{.dtype = DType::kBF16};
  tight.max_batch_tokens = 40;
  tight.max_running = 8;
  tight.num_blocks = 14;
  for (const char* name : {"eagle3-plain", "eagle3-speculators", "eagle3-shared"}) {
    check_same(eagle_pair("eagle3-model", name), {.dtype = DType::kBF16}, 60);
    check_same(eagle_pair("eagle3-model", name), tight, 60);
  }
  check_same(eagle_pair("eagle3-model", "eagle3-plain"), {.is_reference = true}, 12);
  // What the next token follows from is known to the drafter as well.
  const Pair certain = eagle_pair("eagle3-certain-model", "eagle3-certain");
  CHECK(check_same(certain, {.dtype = DType::kBF16}, 60) > 0.8);
  CHECK(check_same(certain, tight, 60) > 0.8);
  CHECK(check_same(certain, {.is_reference = true}, 12) > 0.8);
}

TEST_CASE("a draft model drafts the same with little room, which texts take from each other") {
  const auto files = open_folder(kGolden + "models/llama");
  const int32_t vocab_size = load_model_config(*files).config.vocab_size;
  const auto make = [&](int32_t num_slots, int32_t num_blocks, int32_t max_batch_tokens) {
    FixtureOptions options{.dtype = DType::kBF16};
    options.max_running = num_slots;
    options.num_blocks = num_blocks;
    options.max_batch_tokens = max_batch_tokens;
    return std::make_unique<ModelDrafter>(load_workers(*files, options).workers,
                                          ModelDrafterOptions{.num_slots = num_slots,
                                                              .max_batch_tokens = max_batch_tokens,
                                                              .max_total_tokens = 16 * num_blocks,
                                                              .num_blocks = num_blocks,
                                                              .vocab_size = vocab_size});
  };
  const auto roomy = make(8, 64, 512);
  const auto tight = make(2, 9, 24);
  std::mt19937 random(3);
  const auto any_id = [&] {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(vocab_size));
  };
  struct Text {
    std::vector<int32_t> ids;
    std::unique_ptr<Drafter::Memory> roomy;
    std::unique_ptr<Drafter::Memory> tight;
  };
  std::vector<Text> texts;
  for (int i = 0; i < 4; ++i) {
    texts.push_back({{}, roomy->start(), tight->start()});
    for (int j = 0; j < 20 + 8 * i; ++j) texts.back().ids.push_back(any_id());
  }
  int num_same = 0;
  for (int turn = 0; turn < 150; ++turn) {
    std::vector<std::vector<int32_t>> wanted(2);
    std::vector<std::vector<int32_t>> got(2);
    std::vector<Drafter::Wanted> of_roomy;
    std::vector<Drafter::Wanted> of_tight;
    const auto num_tokens = static_cast<int32_t>(random() % 4 + 1);
    // The same two for a while: what is long has to be read in several turns.
    for (size_t i = 0; i < 2; ++i) {
      Text& text = texts[(static_cast<size_t>(turn) / 8 + i) % texts.size()];
      of_roomy.push_back({.memory = text.roomy.get(),
                          .token_ids = text.ids,
                          .max_tokens = num_tokens,
                          .draft_ids = &wanted[i]});
      of_tight.push_back({.memory = text.tight.get(),
                          .token_ids = text.ids,
                          .max_tokens = num_tokens,
                          .draft_ids = &got[i]});
    }
    roomy->draft(of_roomy);
    tight->draft(of_tight);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(wanted[i].size() == static_cast<size_t>(num_tokens));
      if (got[i].empty()) continue;
      CHECK(got[i] == wanted[i]);
      ++num_same;
    }
    // Some of the drafts were drawn, and then something else.
    for (size_t i = 0; i < 2; ++i) {
      Text& text = texts[(static_cast<size_t>(turn) / 8 + i) % texts.size()];
      const auto num_right = random() % (wanted[i].size() + 1);
      text.ids.insert(text.ids.end(), wanted[i].begin(),
                      wanted[i].begin() + static_cast<ptrdiff_t>(num_right));
      text.ids.push_back(any_id());
      if (text.ids.size() > 100) {
        text = {{any_id(), any_id()}, roomy->start(), tight->start()};
      }
    }
  }
  CHECK(num_same > 100);
}

}  // namespace tgi::drafters_test
