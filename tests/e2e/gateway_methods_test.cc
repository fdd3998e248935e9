// What a gateway asks of the daemon, over the socket and with the demo model: metrics, accepted
// events, streams of several sequences, spans, biases, limits of its own, settings of a load.
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "tests/catch.h"
#include "tests/damaged_model.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

std::vector<ipc::MetricFamily> metrics_of(const DaemonProcess& daemon) {
  return ipc::metric_families_from_json(daemon.client().call(ipc::kMetrics));
}

const ipc::MetricSample& sample_of(const std::vector<ipc::MetricFamily>& families,
                                   const std::string& name,
                                   const std::string& label = "") {
  for (const ipc::MetricFamily& family : families) {
    if (family.name != name) continue;
    for (const ipc::MetricSample& sample : family.samples) {
      if (label.empty() || (!sample.labels.empty() && sample.labels[0].second == label)) {
        return sample;
      }
    }
  }
  throw std::runtime_error("there is no " + name + " " + label);
}

ipc::GenerateRequest prompt_of(const std::string& text, int64_t max_new_tokens) {
  ipc::GenerateRequest request;
  request.prompt = text;
  request.params.max_new_tokens = max_new_tokens;
  request.params.ignore_eos = true;
  return request;
}

Code code_of(const std::function<void()>& action, std::string& message) {
  try {
    action();
  } catch (const Error& error) {
    message = error.what();
    return error.code();
  }
  FAIL("nothing was thrown");
  return Code::kInternal;
}

}  // namespace

TEST_CASE("metrics add up to what was asked, and there are none without a model") {
  const Home home;
  const DaemonProcess daemon(home);
  for (int i = 0; i < 3; ++i) (void)daemon.client().generate(prompt_of("Once upon", 11), {});
  REQUIRE(daemon.becomes_idle());
  const auto families = metrics_of(daemon);
  std::set<std::string> names;
  for (const ipc::MetricFamily& family : families) {
    INFO(family.name);
    CHECK(names.insert(family.name).second);
    CHECK_FALSE(family.help.empty());
    CHECK_FALSE(family.samples.empty());
  }
  CHECK(sample_of(families, "tgi_generated_tokens").value == 33);
  CHECK(sample_of(families, "tgi_engine_requests").value == 3);
  CHECK(sample_of(families, "tgi_engine_failed").value == 0);
  CHECK(sample_of(families, "tgi_engine_not_finite").value == 0);
  CHECK(sample_of(families, "tgi_queue_size").value == 0);
  CHECK(sample_of(families, "tgi_kv_blocks", "used").value == 0);
  CHECK(sample_of(families, "tgi_kv_blocks", "used").value +
            sample_of(families, "tgi_kv_blocks", "cached").value +
            sample_of(families, "tgi_kv_blocks", "free").value ==
        static_cast<double>(daemon.status().model->num_blocks));
  CHECK(sample_of(families, "tgi_batch_inference_count", "prefill").value == 3);
  CHECK(sample_of(families, "tgi_batch_inference_count", "decode").value == 30);
  const ipc::MetricSample& times = sample_of(families, "tgi_batch_forward_duration", "decode");
  CHECK(std::accumulate(times.counts.begin(), times.counts.end(), int64_t{0}) == 30);
  CHECK(times.sum > 0);

  CHECK(home.run({"unload"}).exit_status == 0);
  CHECK(metrics_of(daemon).empty());
}

TEST_CASE("a model with a NaN in its weights answers with that, is counted, and fails the doctor") {
  const Home home;
  write_damaged_demo(home.file("damaged"), "model.layers.1.mlp.down_proj.weight", 7, kBf16Nan);
  const DaemonProcess daemon(home, {"--model", home.file("damaged")});
  for (const bool stream : {false, true}) {
    ipc::GenerateRequest request = prompt_of("Once upon", 11);
    request.stream = stream;
    std::string message;
    CHECK(code_of([&] { (void)daemon.client().generate(request, {}); }, message) ==
          Code::kNotFinite);
    CHECK_THAT(message, Catch::Contains("not finite"));
    request.params.prompt_logprobs = true;
    CHECK(code_of([&] { (void)daemon.client().generate(request, {}); }, message) ==
          Code::kNotFinite);
  }
  const Ran ran = home.run({"generate", "Once upon"});
  CHECK(ran.exit_status == 11);
  CHECK(ran.out.empty());
  CHECK_THAT(ran.err, Catch::StartsWith("error: the model's logits after "));
  REQUIRE(daemon.becomes_idle());
  // The engine tells its counts behind a step, and a client its answer before that.
  const auto not_finite = [&] {
    return sample_of(metrics_of(daemon), "tgi_engine_not_finite").value;
  };
  for (int i = 0; i < 500 && not_finite() < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(not_finite() == 5);
  CHECK(sample_of(metrics_of(daemon), "tgi_engine_failed").value == 5);

  const Ran doctor = home.run({"doctor"});
  CHECK(doctor.exit_status == 1);
  CHECK_THAT(doctor.out, Catch::Contains("fail logits ") &&
                             Catch::Contains("weights are damaged") &&
                             !Catch::Contains("divergence 0"));
  // The daemon itself is well.
  CHECK(home.run({"load", "demo"}).exit_status == 0);
  CHECK(home.run({"generate", "Once upon", "--max-new-tokens", "4"}).exit_status == 0);
}

TEST_CASE("a stream of several sequences: accepted first, each whole, each repeatable alone") {
  const Home home;
  const DaemonProcess daemon(home);
  ipc::GenerateRequest request = prompt_of("Once upon a time", 12);
  request.announce = request.stream = true;
  request.params.temperature = 1.2;
  request.params.best_of = 3;
  ipc::Exchange exchange = daemon.client().open(ipc::kGenerate, ipc::to_json(request));
  const std::optional<ipc::Reply> first = exchange.next(20'000);
  REQUIRE((first && first->accepted));
  CHECK(first->accepted->num_prompt_characters == 16);
  CHECK(first->accepted->max_new_tokens == 12);
  std::map<int64_t, std::string> texts;
  std::map<int64_t, int> num_ends;
  std::optional<ipc::DoneEvent> done;
  while (!done) {
    std::optional<ipc::Reply> reply = exchange.next(20'000);
    REQUIRE(reply);
    if (reply->token) {
      texts[reply->token->index] += reply->token->text;
      if (reply->token->finish_reason) ++num_ends[reply->token->index];
    }
    done = std::move(reply->done);
  }
  CHECK(done->num_prompt_tokens == first->accepted->num_prompt_tokens);
  std::vector<ipc::SequenceResult> all = done->others;
  all.push_back(done->best);
  REQUIRE(all.size() == 3);
  REQUIRE(texts.size() == 3);
  for (const ipc::SequenceResult& sequence : all) {
    INFO("sequence " << sequence.index);
    CHECK(texts.at(sequence.index) == sequence.text);
    CHECK(num_ends[sequence.index] == 1);
    ipc::GenerateRequest alone = prompt_of("Once upon a time", 12);
    alone.params.temperature = 1.2;
    alone.params.seed = sequence.draw_seed;
    CHECK(daemon.client().generate(alone, {}).best.text == sequence.text);
  }
}

TEST_CASE("a bias bans and forces tokens, and the asker's limits are kept") {
  const Home home;
  const DaemonProcess daemon(home);
  ipc::GenerateRequest request = prompt_of("Once upon a time", 3);
  request.params.details = true;
  const auto plain = daemon.client().generate(request, {}).best.tokens;
  REQUIRE(plain.size() == 3);
  request.params.logit_bias = {{.id = plain[0].id, .bias = -100}};
  CHECK(daemon.client().generate(request, {}).best.tokens.at(0).id != plain[0].id);
  request.params.logit_bias = {{.id = 65, .bias = 100}};
  for (const ipc::TokenInfo& token : daemon.client().generate(request, {}).best.tokens) {
    CHECK(token.id == 65);
  }
  std::string message;
  request.params.logit_bias = {{.id = 1 << 30, .bias = 1}};
  CHECK(code_of([&] { (void)daemon.client().generate(request, {}); }, message) ==
        Code::kInvalidArgument);
  CHECK_THAT(message, Catch::Contains("is not in the vocabulary"));
  request.params.logit_bias.clear();
  request.params.max_input_tokens = 2;
  CHECK(code_of([&] { (void)daemon.client().generate(request, {}); }, message) ==
        Code::kInvalidArgument);
  CHECK_THAT(message, Catch::StartsWith("`inputs` must have less than 2 tokens. Given: "));
}

TEST_CASE("a prompt's tokens come with where they stand") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::string text = "Once upon a time";
  const auto result = ipc::tokenize_result_from_json(
      daemon.client().call(ipc::kTokenize, {{"prompt", text}, {"add_special", false}}));
  REQUIRE(result.spans.size() == result.tokens.size());
  int64_t at = 0;
  for (size_t i = 0; i < result.spans.size(); ++i) {
    CHECK(result.spans[i].start == at);
    at = result.spans[i].stop;
    CHECK(text.substr(static_cast<size_t>(result.spans[i].start),
                      static_cast<size_t>(at - result.spans[i].start)) == result.tokens[i].text);
  }
  CHECK(at == 16);
}

TEST_CASE("a load takes settings of its own, and refuses those that can't be") {
  const Home home;
  const DaemonProcess daemon(home, {"--no-model"});
  const auto load = [&](OrderedJson params) {
    params["model"] = "demo";
    (void)daemon.client().call(ipc::kLoad, params);
    return *daemon.status().model;
  };
  const ipc::ModelStatus small = load({{"max_total_tokens", 128},
                                       {"max_running", 3},
                                       {"max_batch_tokens", 64},
                                       {"kv_cache_dtype", "f32"},
                                       {"kv_cache_memory", 4 << 20}});
  CHECK(small.max_total_tokens == 128);
  CHECK(small.max_running == 3);
  CHECK(small.max_batch_tokens == 64);
  CHECK(small.kv_cache_dtype == "f32");
  CHECK(small.memory.kv_cache <= 4 << 20);
  CHECK(small.memory.kv_cache > 3 << 20);
  std::string message;
  CHECK(code_of([&] { (void)daemon.client().generate(prompt_of("Once", 128), {}); }, message) ==
        Code::kInvalidArgument);
  CHECK_THAT(message, Catch::Contains("must be <= 128"));

  // A chat template of another file.
  const std::string config =
      home.write("template.json", R"({"chat_template": "{{ messages[0]['content'] }}<>"})");
  CHECK(load({{"tokenizer_config", config}}).has_chat_template);
  const auto chat = ipc::tokenize_result_from_json(daemon.client().call(
      ipc::kTokenize, {{"messages", {{{"role", "user"}, {"content", "hi"}}}}}));
  CHECK(chat.text == "hi<>");
  // Settings that are not given are those the daemon was started with, not the last ones.
  CHECK(daemon.status().model->max_total_tokens > 128);

  CHECK(code_of(
            [&] {
              load({{"quantize_group_size", (int64_t{1} << 32) + 64}});
            },
            message) == Code::kInvalidArgument);
  CHECK_THAT(message, Catch::StartsWith("quantize_group_size"));
  CHECK(daemon.status().phase == "ready");
}

}  // namespace tgi
