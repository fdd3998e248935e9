// Streams from a scripted daemon through the gateway to real sockets.
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "cmd/http/gateway.h"
#include "cmd/http/stream_pump.h"
#include "tests/catch.h"
#include "tests/http_unit/raw_client.h"
#include "tests/http_unit/test_server.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi::http {
namespace {

ApiOptions options() {
  ApiOptions out;
  out.model_id = "m";
  out.max_input_tokens = 31;
  out.max_total_tokens = 32;
  return out;
}

// Everything that `tgi serve` puts together, with a daemon that plays `script`.
struct ScriptedGateway {
  explicit ScriptedGateway(FakeDaemon::Script script, int64_t max_requests = 128)
      : num_permits(max_requests),
        daemon(folder.file("s"), std::move(script)),
        thread([this] { server.run(stop.get()); }) {}

  ~ScriptedGateway() {
    fire(stop);
    thread.join();
  }

  static void fire(const UniqueFd& event) {
    const uint64_t one = 1;
    (void)!::write(event.get(), &one, sizeof one);
  }

  // The answer to a POST.
  RawAnswer post(const std::string& path, const std::string& body) const {
    RawClient client(server.port());
    send(client, path, body);
    return client.answer();
  }
  static void send(RawClient& client, const std::string& path, const std::string& body) {
    client.send("POST " + path +
                " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  const int64_t num_permits;
  TempFolder folder;
  FakeDaemon daemon;
  UniqueFd stop{::eventfd(0, EFD_CLOEXEC)};
  UniqueFd cut_off{::eventfd(0, EFD_CLOEXEC)};
  Metrics metrics{{.max_input_tokens = 31, .max_total_tokens = 32, .trace_counts = {}}};
  RequestLog log{{.json = true, .level = LogLevel::kOff}};
  StreamPumps pumps{2, cut_off.get(), std::chrono::milliseconds(500)};
  Service service{.options = options(),
                  .daemon = {.socket_path = folder.file("s"), .cancel_fd = cut_off.get()},
                  .permits = Permits(num_permits),
                  .metrics = metrics,
                  .log = log,
                  .pumps = &pumps};
  Gateway gateway{{}, service};
  HttpServer server{{.connection = {}}, gateway};
  std::thread thread;
};

ipc::DoneEvent done_with(const std::string& text) {
  ipc::DoneEvent event;
  event.best.text = text;
  return event;
}

// The JSON of each event, [DONE] left out.
std::vector<ipc::OrderedJson> events_of(const std::string& body) {
  std::vector<ipc::OrderedJson> out;
  for (size_t at = 0; (at = body.find("data:", at)) != std::string::npos; ++at) {
    const std::string line = body.substr(at + 5, body.find("\n\n", at) - at - 5);
    if (line.find("[DONE]") == std::string::npos) out.push_back(ipc::OrderedJson::parse(line));
  }
  return out;
}

// Accepts, says the prompt back in three tokens, and ends.
void say_it_back(FakeSession& session) {
  const auto prompt = session.request().params["prompt"].get<std::string>();
  session.send(ipc::encode_accepted_event({.num_prompt_tokens = 1}));
  for (int i = 0; i < 3; ++i) {
    ipc::TokenEvent event;
    event.token.id = i;
    event.text = event.token.text = prompt + std::to_string(i) + " ";
    if (i == 2) event.finish_reason = ipc::FinishReason::kLength;
    session.send(ipc::encode_token_event(event));
  }
  session.send_done(done_with(prompt));
}

}  // namespace

TEST_CASE("many streams at once get each its own tokens, in order, and give their permits back") {
  ScriptedGateway gateway(say_it_back);
  std::vector<std::future<RawAnswer>> answers;
  for (int i = 0; i < 60; ++i) {
    answers.push_back(std::async(std::launch::async, [&gateway, i] {
      return gateway.post("/generate_stream", R"({"inputs":"p)" + std::to_string(i) + R"("})");
    }));
  }
  for (int i = 0; i < 60; ++i) {
    const RawAnswer answer = answers[static_cast<size_t>(i)].get();
    const std::string prompt = "p" + std::to_string(i);
    CHECK(answer.status == 200);
    CHECK(answer.headers.at("content-type") == "text/event-stream");
    const auto events = events_of(answer.body);
    REQUIRE(events.size() == 3);
    for (size_t k = 0; k < 3; ++k) {
      CHECK(events[k]["index"] == k + 1);
      CHECK(events[k]["token"]["id"] == k);
      CHECK(events[k]["token"]["text"] == prompt + std::to_string(k) + " ");
    }
    CHECK(events[2]["generated_text"] == prompt);
  }
  CHECK(soon([&] { return gateway.service.permits.num_taken() == 0; }));
}

TEST_CASE("one after another needs one place, however an answer is sent") {
  ScriptedGateway gateway(say_it_back, 1);
  RawClient client(gateway.server.port());
  const std::string native = R"({"inputs":"x"})";
  const std::string openai = R"({"prompt":"x","stream":true})";
  for (int i = 0; i < 500; ++i) {
    ScriptedGateway::send(client, i % 2 == 0 ? "/generate_stream" : "/v1/completions",
                          i % 2 == 0 ? native : openai);
    // Asks again as soon as the last event is there: the last chunk is still to come.
    REQUIRE(client.wait_for(i % 2 == 0 ? "\"details\":{" : "[DONE]"));
    RawClient next(gateway.server.port());
    ScriptedGateway::send(next, "/generate_stream", native);
    const RawAnswer answer = next.answer();
    REQUIRE(answer.body.find("overloaded") == std::string::npos);
    REQUIRE(client.answer().status == 200);
  }
}

TEST_CASE("a choice that goes on has no finish reason yet") {
  ScriptedGateway gateway(say_it_back);
  const auto events =
      events_of(gateway.post("/v1/completions", R"({"prompt":"x","stream":true})").body);
  REQUIRE(events.size() == 3);
  CHECK(events[0]["choices"][0]["finish_reason"].is_null());
  CHECK(events[1]["choices"][0]["finish_reason"].is_null());
  CHECK(events[2]["choices"][0]["finish_reason"] == "length");
}

TEST_CASE("greedy choices are one sequence, told as often as asked for") {
  // Sessions have threads of their own, and these may not check.
  std::atomic<bool> asked_for_best{false};
  ScriptedGateway gateway([&](FakeSession& session) {
    if (session.request().params.value("best_of", 1) > 1) asked_for_best = true;
    if (session.request().params.value("stream", false)) return say_it_back(session);
    session.send(ipc::encode_accepted_event({.num_prompt_tokens = 1}));
    ipc::DoneEvent done = done_with("same");
    done.best.num_generated_tokens = 3;
    session.send_done(done);
  });
  const auto whole = ipc::OrderedJson::parse(
      gateway.post("/v1/completions", R"({"prompt":["x","x"],"n":3,"temperature":0})").body);
  REQUIRE(whole["choices"].size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    CHECK(whole["choices"][i]["index"] == i);
    CHECK(whole["choices"][i]["text"] == "same");
  }
  CHECK(whole["usage"]["completion_tokens"] == 18);
  const auto events = events_of(
      gateway.post("/v1/completions", R"({"prompt":"x","n":2,"temperature":0,"stream":true})")
          .body);
  REQUIRE(events.size() == 6);
  std::map<int, std::string> texts;
  for (const auto& event : events) {
    texts[event["choices"][0]["index"].get<int>()] += event["choices"][0]["text"];
  }
  CHECK(texts == std::map<int, std::string>{{0, "x0 x1 x2 "}, {1, "x0 x1 x2 "}});
  CHECK_FALSE(asked_for_best);
}

TEST_CASE("log-probabilities of a chat have bytes, and no end token") {
  const auto script = [](FakeSession& session) {
    const bool streams = session.request().params.value("stream", false);
    session.send(ipc::encode_accepted_event({.num_prompt_tokens = 1}));
    ipc::DoneEvent done = done_with("\u00e9!");
    done.best.finish_reason = ipc::FinishReason::kEosToken;
    // Two halves of one character, a character, and the end token.
    for (int i = 0; i < 4; ++i) {
      ipc::TokenEvent event;
      event.token = {.id = i, .text = i < 2 ? "\uFFFD" : (i == 2 ? "!" : "</s>"), .logprob = -1.5};
      if (i < 2) event.token.bytes = {static_cast<uint8_t>(i == 0 ? 0xC3 : 0xA9)};
      event.token.special = i == 3;
      event.top_tokens = {event.token};
      if (i == 3) event.finish_reason = ipc::FinishReason::kEosToken;
      if (streams) session.send(ipc::encode_token_event(event));
      done.best.tokens.push_back(event.token);
      done.best.top_tokens.push_back(event.top_tokens);
    }
    session.send_done(done);
  };
  ScriptedGateway gateway(script);
  const std::string body =
      R"({"messages":[{"role":"user","content":"x"}],"logprobs":true,"top_logprobs":1)";
  const auto whole = ipc::OrderedJson::parse(gateway.post("/v1/chat/completions", body + "}").body);
  const auto& content = whole["choices"][0]["logprobs"]["content"];
  REQUIRE(content.size() == 3);
  CHECK(content[0]["bytes"] == ipc::OrderedJson::parse("[195]"));
  CHECK(content[1]["top_logprobs"][0]["bytes"] == ipc::OrderedJson::parse("[169]"));
  CHECK(content[2]["bytes"] == ipc::OrderedJson::parse("[33]"));
  auto streamed = ipc::OrderedJson::array();
  for (const auto& event :
       events_of(gateway.post("/v1/chat/completions", body + R"(,"stream":true})").body)) {
    const auto& logprobs = event["choices"][0]["logprobs"];
    if (!logprobs.is_null())
      streamed.insert(streamed.end(), logprobs["content"].begin(), logprobs["content"].end());
  }
  CHECK(streamed == content);
}

TEST_CASE("an echo with log-probabilities begins with the prompt's, in a stream too") {
  ScriptedGateway gateway([](FakeSession& session) {
    CHECK_FALSE(session.request().params.value("stream", false));
    session.send(ipc::encode_accepted_event({.num_prompt_tokens = 3}));
    ipc::DoneEvent done = done_with("a \u00e9 b");
    const auto token = [](int32_t id, std::string text, std::optional<double> logprob) {
      return ipc::TokenInfo{.id = id, .text = std::move(text), .logprob = logprob};
    };
    done.prompt_tokens = {token(1, "<s>", {}), token(2, " a", -1.0), token(3, " \uFFFD", -2.0),
                          token(4, "\uFFFD", -3.0)};
    done.prompt_tokens[0].special = true;
    done.prompt_tokens[2].bytes = {' ', 0xC3};
    done.prompt_tokens[3].bytes = {0xA9};
    // Two names for the same bytes: the likelier one counts.
    done.prompt_top_tokens = {{},
                              {token(2, " a", -1.0)},
                              {token(9, "x", -0.5)},
                              {token(8, "y", -0.25), token(7, "y", -4.0)}};
    done.best.tokens = {token(5, " b", -0.125)};
    done.best.top_tokens = {{token(5, " b", -0.125)}};
    done.best.num_generated_tokens = 1;
    session.send_done(done);
  });
  const std::string body = R"({"prompt":[1,2,3,4],"echo":true,"logprobs":2,"max_tokens":1)";
  const auto whole = ipc::OrderedJson::parse(gateway.post("/v1/completions", body + "}").body);
  const auto& choice = whole["choices"][0];
  CHECK(choice["text"] == "a \u00e9 b");
  CHECK(choice["logprobs"] == ipc::OrderedJson::parse(R"({
      "tokens": ["<s>", " a", "bytes:\\x20\\xc3", "bytes:\\xa9", " b"],
      "token_logprobs": [null, -1.0, -2.0, -3.0, -0.125],
      "top_logprobs": [null, {" a": -1.0}, {"x": -0.5, "bytes:\\x20\\xc3": -2.0},
                       {"y": -0.25, "bytes:\\xa9": -3.0}, {" b": -0.125}],
      "text_offset": [0, 0, 1, 3, 3]})"));
  const auto events = events_of(gateway.post("/v1/completions", body + R"(,"stream":true})").body);
  REQUIRE(events.size() == 1);
  CHECK(events[0]["choices"][0]["logprobs"] == choice["logprobs"]);
  CHECK(events[0]["choices"][0]["text"] == choice["text"]);
}

TEST_CASE("a daemon that goes away in the middle ends the stream with an error, whole as HTTP") {
  ScriptedGateway gateway([](FakeSession& session) {
    session.send(ipc::encode_accepted_event({}));
    session.send_text("a ");
    session.send_text("b ");
  });
  const RawAnswer native = gateway.post("/generate_stream", R"({"inputs":"x"})");
  CHECK(native.status == 200);
  const auto events = events_of(native.body);
  REQUIRE(events.size() == 3);
  CHECK(events[1]["token"]["text"] == "b ");
  CHECK(events[2]["error_type"] == "incomplete_generation");
  const RawAnswer openai = gateway.post(
      "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  CHECK(openai.status == 200);
  CHECK(openai.body.ends_with("data: [DONE]\n\n"));
  CHECK(events_of(openai.body).back().contains("error"));
}

TEST_CASE("what the daemon refuses before it takes the request is a status of its own") {
  ScriptedGateway gateway(
      [](FakeSession& session) { session.send_error(Code::kTemplate, "no chat template"); });
  const RawAnswer openai = gateway.post(
      "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  CHECK(openai.status == 422);
  CHECK(ipc::OrderedJson::parse(openai.body)["error"]["message"] ==
        "Template error: no chat template");
  // TGI's own streams tell it in an event.
  const RawAnswer native = gateway.post("/generate_stream", R"({"inputs":"x"})");
  CHECK(native.status == 200);
  CHECK(events_of(native.body).at(0)["error_type"] == "template_error");
}

TEST_CASE(
    "logits that are not finite end a request with an error of the model's, streamed or not") {
  const auto fail = [](FakeSession& session) {
    session.send(ipc::encode_accepted_event({}));
    session.send_text("a ");
    session.send_error(Code::kNotFinite, "the model's logits are not finite");
  };
  const std::string told = "Request failed during generation: the model's logits are not finite";
  ScriptedGateway gateway(fail);
  const RawAnswer native = gateway.post("/generate", R"({"inputs":"x"})");
  CHECK(native.status == 424);
  CHECK(ipc::OrderedJson::parse(native.body) ==
        ipc::OrderedJson({{"error", told}, {"error_type", "generation"}}));
  const RawAnswer openai =
      gateway.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})");
  CHECK(openai.status == 424);
  const auto error = ipc::OrderedJson::parse(openai.body)["error"];
  CHECK(error["message"] == told);
  CHECK(error["type"] == "server_error");
  CHECK(error["code"] == "not_finite");
  const RawAnswer native_stream = gateway.post("/generate_stream", R"({"inputs":"x"})");
  CHECK(native_stream.status == 200);
  CHECK(events_of(native_stream.body).back()["error"] == told);
  CHECK(events_of(native_stream.body).back()["error_type"] == "generation");
  const RawAnswer openai_stream = gateway.post(
      "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  CHECK(events_of(openai_stream.body).back()["error"]["code"] == "not_finite");
}

TEST_CASE("a client that leaves a stream is seen by the daemon at once") {
  std::promise<bool> left;
  ScriptedGateway gateway([&](FakeSession& session) {
    session.send(ipc::encode_accepted_event({}));
    session.send_text("a ");
    session.send_text("b ");
    left.set_value(session.client_leaves_within(10'000));
  });
  RawClient client(gateway.server.port());
  ScriptedGateway::send(client, "/generate_stream", R"({"inputs":"x"})");
  REQUIRE(client.wait_for("\"b \""));
  client.vanish();
  CHECK(left.get_future().get());
  CHECK(soon([&] { return gateway.service.permits.num_taken() == 0; }));
}

TEST_CASE("a client that takes nothing is given up, and the daemon sees it") {
  std::promise<bool> left;
  ScriptedGateway gateway([&](FakeSession& session) {
    session.send(ipc::encode_accepted_event({}));
    const std::string text(1 << 16, 'x');
    for (int i = 0; i < 300; ++i) session.send_text(text);  // more than sockets hold
    left.set_value(session.client_leaves_within(10'000));
  });
  RawClient client(gateway.server.port());
  ScriptedGateway::send(client, "/generate_stream", R"({"inputs":"x"})");
  CHECK(left.get_future().get());
  CHECK(soon([&] { return gateway.service.permits.num_taken() == 0; }));
}

TEST_CASE("when the time to drain is up a stream gets its last words") {
  ScriptedGateway gateway([&](FakeSession& session) {
    session.send(ipc::encode_accepted_event({}));
    session.send_text("a ");
    session.send_text("b ");
    session.client_leaves_within(10'000);
  });
  RawClient client(gateway.server.port());
  ScriptedGateway::send(client, "/generate_stream", R"({"inputs":"x"})");
  REQUIRE(client.wait_for("\"b \""));
  ScriptedGateway::fire(gateway.cut_off);
  const RawAnswer answer = client.answer();
  CHECK(answer.status == 200);
  CHECK(events_of(answer.body).back()["error_type"] == "shutting_down");
}

TEST_CASE("a chat of several choices says each one's role first and ends with its usage") {
  ScriptedGateway gateway([](FakeSession& session) {
    session.send(ipc::encode_accepted_event({}));
    ipc::TokenEvent event;
    for (const int64_t index : {0, 1, 0, 1}) {
      event.index = index;
      event.text = event.token.text = index == 0 ? "zero " : "one ";
      session.send(ipc::encode_token_event(event));
    }
    ipc::DoneEvent done = done_with("zero zero ");
    done.num_prompt_tokens = 4;
    done.best.num_generated_tokens = 2;
    done.others.push_back(done.best);
    session.send_done(done);
  });
  const RawAnswer answer =
      gateway.post("/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"x"}],"n":2,"stream":true,
          "stream_options":{"include_usage":true}})");
  const auto events = events_of(answer.body);
  REQUIRE(events.size() == 7);
  std::map<int, std::string> texts;
  std::map<int, int> num_chunks;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const auto& choice = events[i]["choices"].at(0);
    const int index = choice["index"].get<int>();
    const auto content = choice["delta"]["content"].get<std::string>();
    CHECK(choice["delta"]["role"] == "assistant");
    if (num_chunks[index]++ == 0) CHECK(content.empty());
    texts[index] += content;
    CHECK(events[i]["usage"].is_null());
  }
  CHECK(texts == std::map<int, std::string>{{0, "zero zero "}, {1, "one one "}});
  CHECK(events.back()["choices"].empty());
  CHECK(events.back()["usage"]["prompt_tokens"] == 4);
  CHECK(events.back()["usage"]["completion_tokens"] == 4);
  CHECK(answer.body.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("a stream to HTTP/1.0 has no chunks and the same events") {
  ScriptedGateway gateway(say_it_back);
  RawClient client(gateway.server.port());
  client.send(
      "POST /generate_stream HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: "
      "14\r\n\r\n{\"inputs\":\"q\"}");
  const RawAnswer answer = client.answer();
  CHECK_FALSE(answer.chunked);
  CHECK(events_of(answer.body).size() == 3);
}

}  // namespace tgi::http
