// What the I/O thread does with a request line, and what it leaves to others.
#include "daemon/dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <future>

#include "base/error.h"
#include "ipc/quantize_job.h"
#include "tests/catch.h"

namespace tgi::daemon {
namespace {

constexpr uint64_t kSession = 17;
constexpr gid_t kUseGroup = 800;

// The daemon without its sockets. The one intake thread can be held up.
class Daemon {
 public:
  Daemon() = default;
  ~Daemon() { release(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Until release() no intake job begins.
  void hold() {
    intake_.post([held = released_.get_future().share()] { held.wait(); });
    is_held_ = true;
  }
  void release() {
    if (is_held_) released_.set_value();
    is_held_ = false;
  }

  void ask(std::string line, const ipc::Credentials& client = {.uid = 0}) {
    dispatch(services_, {.session = kSession, .client = client, .ended = ended_.get_token()},
             std::move(line));
  }

  // What was sent since the last call, as the I/O thread would take it.
  std::vector<Outgoing> sent() {
    std::vector<Outgoing> out;
    outbox_.drain(out);
    return out;
  }

  // The first message that is not for the daemon itself.
  Outgoing answer() {
    for (int i = 0; i < 1000; ++i) {
      for (Outgoing& outgoing : sent()) {
        if (const auto* decoded = std::get_if<Decoded>(&outgoing.message)) {
          was_decoded_ = true;
          decoded->act();
        } else if (!std::holds_alternative<AttachedJob>(outgoing.message)) {
          return std::move(outgoing);
        }
      }
      outbox_.wait(20);
    }
    FAIL("no answer");
    return {};
  }

  Error error() {
    Outgoing last = answer();
    REQUIRE(std::holds_alternative<Error>(last.message));
    return std::get<Error>(last.message);
  }

  Jobs& intake() { return intake_; }
  Jobs& loads() { return loads_; }
  ModelHost& models() { return models_; }
  void end_session() { ended_.request_stop(); }
  bool was_decoded() const { return was_decoded_; }
  bool was_stopped() const { return was_stopped_; }

 private:
  Options options_;
  const AccessRules access_{{.owner = 1, .use_group = AccessRules::Group{kUseGroup, "users"}}};
  Mailbox<Outgoing> outbox_{1000};
  ModelHost models_{std::chrono::milliseconds(0)};
  ModelLoader loader_{models_, loads_, {}};
  QuantizeJobs quantize_jobs_{outbox_,
                              [](const auto&, const auto&, const auto&) -> ipc::OrderedJson {
                                return {{"quantized", true}};
                              }};
  bool was_stopped_ = false;
  bool was_decoded_ = false;
  Services services_{.options = options_,
                     .access = access_,
                     .models = models_,
                     .loader = loader_,
                     .intake_jobs = intake_,
                     .merge_jobs = merges_,
                     .load_jobs = loads_,
                     .quantize_jobs = quantize_jobs_,
                     .outbox = outbox_,
                     .started_at = std::chrono::steady_clock::now(),
                     .stop = [this] { was_stopped_ = true; }};
  std::stop_source ended_;
  std::promise<void> released_;
  bool is_held_ = false;
  Jobs intake_{1};  // last: they end first
  Jobs loads_{1};
  Jobs merges_{1};
};

std::string large_line(const std::string& method, const std::string& tail) {
  return R"({"method": ")" + method + R"(", "params": {"prompt": ")" +
         std::string(kMaxInlineBytes, 'x') + "\"" + tail;
}

}  // namespace

TEST_CASE("a large request is decoded by a job, never by the thread that has the sockets") {
  Daemon daemon;
  daemon.hold();
  daemon.ask(large_line("generate", R"(, "promt": 1}})"));
  CHECK(daemon.sent().empty());
  // Others are answered meanwhile.
  daemon.ask(R"({"method": "status"})");
  CHECK(std::holds_alternative<ipc::OrderedJson>(daemon.answer().message));
  daemon.release();
  const Error error = daemon.error();
  CHECK(error.code() == Code::kInvalidArgument);
  CHECK_THAT(error.what(), Catch::Contains("promt"));
}

TEST_CASE("what a large request asks for is done on the I/O thread, with the same answers") {
  for (const bool is_large : {false, true}) {
    CAPTURE(is_large);
    const std::string padding = is_large ? std::string(kMaxInlineBytes, ' ') : "";
    const auto ask = [&](Daemon& daemon, const std::string& line) {
      daemon.ask(line + padding);
      return daemon.answer();
    };
    Daemon daemon;
    CHECK(std::holds_alternative<ipc::OrderedJson>(ask(daemon, R"({"method": "status"})").message));
    CHECK(daemon.was_decoded() == is_large);
    ask(daemon, R"({"method": "stop"})");
    CHECK(daemon.was_stopped());
    const auto code_of = [&](const std::string& line) {
      const Outgoing last = ask(daemon, line);
      REQUIRE(std::holds_alternative<Error>(last.message));
      return std::get<Error>(last.message).code();
    };
    CHECK(code_of("nonsense") == Code::kInvalidArgument);
    CHECK(code_of(R"({"method": "explode"})") == Code::kNotFound);
    CHECK(code_of(R"({"method": "generate", "params": {"prompt": "hi"}})") == Code::kNotFound);
    CHECK(code_of(R"({"method": "tokenize", "params": {"prompt": "hi"}})") == Code::kNotFound);
  }
}

TEST_CASE("a large request whose client has left is dropped") {
  Daemon daemon;
  daemon.hold();
  daemon.ask(large_line("generate", "}}"));
  daemon.end_session();
  daemon.release();
  std::promise<void> behind;
  daemon.intake().post([&] { behind.set_value(); });
  behind.get_future().wait();
  CHECK(daemon.sent().empty());
}

TEST_CASE("methods without parameters refuse any, by name") {
  for (const std::string method : {"status", "metrics", "unload", "stop", "check"}) {
    CAPTURE(method);
    Daemon daemon;
    daemon.ask(R"({"method": ")" + method + R"(", "params": {"forcce": true}})");
    const Error error = daemon.error();
    CHECK(error.code() == Code::kInvalidArgument);
    CHECK_THAT(error.what(), Catch::Contains("forcce: unknown field"));
    CHECK_FALSE(daemon.was_stopped());
  }
}

TEST_CASE(
    "each method is of one of two classes, and who may only use the daemon meets the border") {
  const std::vector<std::string> use = {"generate",   "embed",   "classify", "status", "tokenize",
                                        "detokenize", "metrics", "adapters", "keep"};
  const std::vector<std::string> manage = {"load",    "unload",       "stop",
                                           "inspect", "check",        "quantize",
                                           "merge",   "load_adapter", "unload_adapter"};
  const ipc::Credentials user{.pid = 1, .uid = 1000000, .gid = kUseGroup};
  const auto refused = [&](const std::string& method, const ipc::Credentials& client) {
    Daemon daemon;
    daemon.ask(R"({"method": ")" + method + "\"}", client);
    const Outgoing last = daemon.answer();
    const auto* error = std::get_if<Error>(&last.message);
    const bool forbidden = error != nullptr && error->code() == Code::kForbidden;
    if (forbidden) {
      CHECK_THAT(error->what(), Catch::StartsWith(method + ": "));
      CHECK_FALSE(daemon.was_stopped());
    }
    return forbidden;
  };
  for (const std::string& method : use) CHECK_FALSE(refused(method, user));
  for (const std::string& method : manage) {
    CAPTURE(method);
    CHECK(refused(method, user));
    CHECK_FALSE(refused(method, {.pid = 1, .uid = 1}));  // the daemon's own user
    CHECK_FALSE(refused(method, {.pid = 1, .uid = 0}));
  }
  // No method has been forgotten here.
  Daemon daemon;
  daemon.ask(R"({"method": "?"})", user);
  std::string known(daemon.error().what());
  known = known.substr(known.find("there are: ") + 11);
  CHECK(std::count(known.begin(), known.end(), ',') + 1 ==
        static_cast<int64_t>(use.size() + manage.size()));
}

TEST_CASE("who may only use the daemon may name adapters, not folders") {
  const ipc::Credentials user{.pid = 1, .uid = 1000000, .gid = kUseGroup};
  const auto code_of = [&](const std::string& more, const ipc::Credentials& client) {
    Daemon daemon;
    daemon.ask(R"({"method": "generate", "params": {"prompt": "a", "adapter": "x")" + more + "}}",
               client);
    return daemon.error().code();
  };
  CHECK(code_of("", user) != Code::kForbidden);
  CHECK(code_of(R"(, "adapter_path": "/tmp")", user) == Code::kForbidden);
  const auto code_of_merged = [&](const std::string& more) {
    Daemon daemon;
    daemon.ask(R"({"method": "generate", "params": {"prompt": "a", "merged_adapters": )"
               R"({"ids": ["x", "y"])" +
                   more + "}}}",
               user);
    return daemon.error().code();
  };
  CHECK(code_of_merged("") != Code::kForbidden);
  CHECK(code_of_merged(R"(, "paths": ["", "/tmp"])") == Code::kForbidden);
  CHECK(code_of(R"(, "adapter_path": "/tmp")", {.pid = 1, .uid = 1}) != Code::kForbidden);
  CHECK(code_of(R"(, "adapter_path": "here")", {.pid = 1, .uid = 1}) == Code::kInvalidArgument);
}

TEST_CASE("when the daemon stops, those whose jobs wait are told at once") {
  std::promise<void> begun;  // these outlive the thread of the jobs
  std::promise<void> released;
  Daemon daemon;
  daemon.loads().post([&] {
    begun.set_value();
    released.get_future().wait();
  });
  begun.get_future().wait();
  for (const std::string method : {"check", "unload"}) {
    daemon.ask(R"({"method": ")" + method + "\"}");
  }
  CHECK(daemon.sent().empty());
  daemon.loads().drop_waiting();
  const std::vector<Outgoing> told = daemon.sent();
  REQUIRE(told.size() == 2);
  for (const Outgoing& outgoing : told) {
    REQUIRE(std::holds_alternative<Error>(outgoing.message));
    CHECK(std::get<Error>(outgoing.message).code() == Code::kOverloaded);
    CHECK_THAT(std::get<Error>(outgoing.message).what(), Catch::Contains("stopping"));
  }
  released.set_value();
}

}  // namespace tgi::daemon
