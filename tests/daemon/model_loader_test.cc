// Loading on demand: who is loaded, who gives way, who waits and what they are told.
#include "daemon/model_loader.h"

#include <future>
#include <map>

#include "tests/catch.h"

namespace tgi::daemon {
namespace {

using std::chrono::milliseconds;

ModelOptions tiny_demo(const std::string& name) {
  ModelOptions out;
  out.name = name;
  out.backend = "cpu";
  out.kv_cache_bytes = int64_t{1} << 20;
  out.max_total_tokens = 64;
  out.num_threads = 1;
  return out;
}

struct Answer {
  std::optional<ModelLease> lease;
  std::optional<Error> error;
};

// The daemon's part that has models, without its I/O thread: look() is called by who waits here.
class Loading {
 public:
  explicit Loading(const ModelLoaderOptions& options) : loader(models, loads_, options) {}
  ~Loading() {
    loader.stop();
    loads_.drop_waiting();
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  void enroll(const std::string& name, ModelTerms terms = {}) {
    // A slot of its own, not the default one's.
    if (models.phase() == "no model") models.load(tiny_demo("first"));
    models.enroll(tiny_demo(name), terms);
  }

  // Asks and does not wait.
  void ask(const std::string& name, uint64_t id, ModelLoader::KeepAlive keep_alive = {}) {
    auto promise = std::make_shared<std::promise<Answer>>();
    answers_[id] = promise->get_future();
    auto lease = loader.lease_or_wait(name, keep_alive, id,
                                      [promise](ModelLease* given, const Error* error) {
                                        Answer answer;
                                        if (given != nullptr) answer.lease = std::move(*given);
                                        if (error != nullptr) answer.error = *error;
                                        promise->set_value(std::move(answer));
                                      });
    if (lease) promise->set_value({.lease = std::move(lease), .error = {}});
  }

  bool is_answered(uint64_t id, milliseconds within = milliseconds(0)) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    do {
      (void)loader.look(std::chrono::steady_clock::now());
      if (answers_.at(id).wait_for(milliseconds(1)) == std::future_status::ready) return true;
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
  }

  Answer answer(uint64_t id) {
    REQUIRE(is_answered(id, std::chrono::seconds(60)));
    return answers_.at(id).get();
  }

  Answer get(const std::string& name, ModelLoader::KeepAlive keep_alive = {}) {
    ask(name, 1000, keep_alive);
    return answer(1000);
  }

  std::string phase(const std::string& name) { return models.find_or_throw(name)->phase(); }

  bool becomes(const std::string& name, const std::string& phase_then) {
    for (int i = 0; i < 20000 && phase(name) != phase_then; ++i) {
      (void)loader.look(std::chrono::steady_clock::now());
      std::this_thread::sleep_for(milliseconds(1));
    }
    return phase(name) == phase_then;
  }

  ModelHost models{milliseconds(0)};
  ModelLoader loader;

 private:
  std::map<uint64_t, std::future<Answer>> answers_;
  Jobs loads_{1};  // last: it ends first
};

}  // namespace

TEST_CASE("a model that is enrolled is loaded when it is asked for") {
  Loading loading({});
  loading.enroll("a");
  CHECK(loading.phase("a") == "not loaded");
  Answer answer = loading.get("a");
  REQUIRE(answer.lease);
  CHECK(answer.lease->model->options().name == "a");
  CHECK(loading.phase("a") == "ready");
  CHECK(loading.phase("first") == "ready");
  CHECK(loading.models.find_or_throw("a")->standing().num_uses == 1);
  answer = {};
  CHECK(loading.models.find_or_throw("a")->standing().num_uses == 0);
}

TEST_CASE("the one unused for longest gives way, and comes back") {
  Loading loading({.max_models = 2});
  loading.enroll("a");
  loading.enroll("b");
  CHECK(loading.get("a").lease);
  CHECK(loading.get("b").lease);  // "first" was never asked for
  CHECK(loading.phase("first") == "not loaded");
  CHECK(loading.phase("a") == "ready");
  CHECK(loading.get("a").lease);
  CHECK(loading.get("first").lease);
  CHECK(loading.phase("b") == "not loaded");
  CHECK(loading.phase("a") == "ready");
}

TEST_CASE("a model in use gives way when its uses have ended, and its requests wait meanwhile") {
  Loading loading({.max_models = 1});
  loading.enroll("a");
  loading.enroll("b");
  Answer first = loading.get("a");
  REQUIRE(first.lease);
  loading.ask("b", 1);
  REQUIRE(loading.becomes("a", "draining"));
  CHECK_FALSE(loading.is_answered(1, milliseconds(20)));
  CHECK(loading.models.find_or_throw("a")->current() != nullptr);
  // No new request gets in front of who waits.
  loading.ask("a", 2);
  CHECK_FALSE(loading.is_answered(2, milliseconds(20)));
  first = {};
  Answer second = loading.answer(1);
  REQUIRE(second.lease);
  CHECK(second.lease->model->options().name == "b");
  CHECK_FALSE(loading.is_answered(2, milliseconds(20)));
  second = {};
  const Answer third = loading.answer(2);
  REQUIRE(third.lease);
  CHECK(third.lease->model->options().name == "a");
}

TEST_CASE("pinned models stay, and the refusal names them") {
  Loading loading({.max_models = 1});
  loading.enroll("a");
  loading.models.find_or_throw("first")->set_terms({.is_pinned = true});
  const Answer answer = loading.get("a");
  REQUIRE(answer.error);
  CHECK(answer.error->code() == Code::kOutOfMemory);
  CHECK_THAT(answer.error->what(),
             Catch::Contains("--max-models is 1") && Catch::Contains("pinned: first"));
  CHECK(loading.phase("first") == "ready");
}

TEST_CASE("nobody is disturbed by a model that would not fit in any case") {
  Loading loading({});
  loading.enroll("a");
  ModelOptions large = tiny_demo("large");
  large.kv_cache_bytes = int64_t{1} << 45;
  loading.models.enroll(large, {});
  CHECK(loading.get("a").lease);
  const Answer answer = loading.get("large");
  REQUIRE(answer.error);
  CHECK(answer.error->code() == Code::kOutOfMemory);
  CHECK_THAT(answer.error->what(), Catch::Contains("loaded beside it: first ") &&
                                       Catch::Contains("would not fit either"));
  CHECK(loading.phase("first") == "ready");
  CHECK(loading.phase("a") == "ready");
}

TEST_CASE("a load that fails is told to all who wait for it, and to nobody else") {
  Loading loading({});
  loading.enroll("a");
  ModelOptions broken = tiny_demo("broken");
  broken.model = "/nowhere/at/all";
  loading.models.enroll(broken, {});
  loading.ask("broken", 1);
  loading.ask("broken", 2);
  loading.ask("a", 3);
  const Answer one = loading.answer(1);
  REQUIRE(one.error);
  CHECK(one.error->code() == Code::kNotFound);
  CHECK(loading.answer(2).error);
  CHECK(loading.answer(3).lease);
  CHECK(loading.phase("broken") == "failed");
  CHECK(loading.models.find_or_throw("broken")->standing().path == broken.model);
  CHECK(loading.get("broken").error);  // it is tried again
}

TEST_CASE("a load that nobody waits for any more is not begun") {
  Loading loading({.max_models = 1});
  loading.enroll("a");
  loading.enroll("b");
  Answer held = loading.get("a");
  loading.ask("b", 1);
  CHECK_FALSE(loading.is_answered(1, milliseconds(50)));
  loading.loader.leave(1);
  // What was to give way stays, and takes requests again.
  CHECK(loading.get("a").lease);
  CHECK(loading.phase("b") == "not loaded");
  held = {};
}

TEST_CASE("a model without requests goes when its time is over") {
  Loading loading({});
  loading.enroll("a", {.keep_alive = milliseconds(0)});
  loading.enroll("b");
  Answer answer = loading.get("a");
  CHECK(loading.phase("a") == "ready");
  answer = {};
  CHECK(loading.becomes("a", "not loaded"));
  // A request may say it otherwise.
  CHECK(loading.get("a", milliseconds(-1)).lease);
  CHECK(loading.get("b", milliseconds(1)).lease);
  CHECK(loading.becomes("b", "not loaded"));
  CHECK(loading.phase("a") == "ready");
  CHECK(loading.models.find_or_throw("b")->standing().last);  // what is known of it stays
}

TEST_CASE("who waits is told that the daemon stops") {
  Loading loading({.max_models = 1});
  loading.enroll("a");
  const Answer held = loading.get("first");
  loading.ask("a", 1);
  CHECK_FALSE(loading.is_answered(1, milliseconds(50)));
  loading.loader.stop();
  const Answer answer = loading.answer(1);
  REQUIRE(answer.error);
  CHECK(answer.error->code() == Code::kOverloaded);
  CHECK_THROWS_AS(loading.ask("a", 2), Error);
}

TEST_CASE("a load that was asked for waits for room as the others do") {
  Loading loading({.max_models = 1});
  loading.enroll("a");
  Answer held = loading.get("a");
  std::promise<bool> done;
  loading.loader.load(tiny_demo("b"), {},
                      [&](const auto& model, const Error*) { done.set_value(model != nullptr); });
  auto loaded = done.get_future();
  CHECK(loaded.wait_for(milliseconds(50)) == std::future_status::timeout);
  held = {};
  while (loaded.wait_for(milliseconds(1)) != std::future_status::ready) {
    (void)loading.loader.look(std::chrono::steady_clock::now());
  }
  CHECK(loaded.get());
  CHECK(loading.phase("a") == "not loaded");
  CHECK(loading.phase("b") == "ready");
}

TEST_CASE("a new version takes new requests when it is ready, and the old one ends its own") {
  Loading loading({});
  loading.enroll("a");
  Answer held = loading.get("a");
  REQUIRE(held.lease);
  const std::weak_ptr<ServedModel> old = held.lease->model;
  held.lease->model.reset();  // as a request that runs: it has the use alone
  std::promise<bool> done;
  loading.loader.load(tiny_demo("a"), {},
                      [&](const auto& model, const Error*) { done.set_value(model != nullptr); });
  REQUIRE(done.get_future().get());
  const Answer next = loading.get("a");
  REQUIRE(next.lease);
  CHECK(next.lease->model != old.lock());
  CHECK(loading.models.find_or_throw("a")->standing().num_uses_before == 1);
  CHECK_FALSE(old.expired());
  held = {};
  for (int i = 0; i < 20000 && !old.expired(); ++i) {
    (void)loading.loader.look(std::chrono::steady_clock::now());
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(old.expired());
  CHECK(loading.models.find_or_throw("a")->standing().num_uses_before == 0);
}

TEST_CASE("where both versions have no room, new requests wait until the old one's have ended") {
  Loading loading({});
  loading.enroll("small");
  // Half of the memory and more, of which nothing is touched.
  const int64_t available = loading.models.current()->status().memory.available;
  ModelOptions large = tiny_demo("large");
  large.kv_cache_bytes = available / 100 * 55;
  loading.models.enroll(large, {});
  Answer held = loading.get("large");
  REQUIRE(held.lease);
  held.lease->model.reset();
  std::promise<bool> done;
  loading.loader.load(large, {},
                      [&](const auto& model, const Error*) { done.set_value(model != nullptr); });
  auto loaded = done.get_future();
  REQUIRE(loading.becomes("large", "draining"));
  CHECK(loaded.wait_for(milliseconds(50)) == std::future_status::timeout);
  loading.ask("large", 1);
  CHECK_FALSE(loading.is_answered(1, milliseconds(20)));
  held = {};
  const Answer next = loading.answer(1);
  REQUIRE(next.lease);
  CHECK(loaded.get());
  CHECK(loading.models.find_or_throw("large")->standing().num_uses_before == 0);
}

TEST_CASE("a name that is unloaded while requests wait for it is none any more") {
  Loading loading({.max_models = 1});
  loading.enroll("a");
  const Answer held = loading.get("first");
  loading.ask("a", 1);
  CHECK_FALSE(loading.is_answered(1, milliseconds(50)));
  loading.loader.unload("a", false);
  const Answer answer = loading.answer(1);
  REQUIRE(answer.error);
  CHECK(answer.error->code() == Code::kNotFound);
  CHECK_THROWS_AS(loading.ask("a", 2), Error);
}

TEST_CASE("where no model is loaded there is none to unload") {
  Loading loading({});
  CHECK_THROWS_WITH(loading.loader.unload({}, false), "no model is loaded");
}

}  // namespace tgi::daemon
