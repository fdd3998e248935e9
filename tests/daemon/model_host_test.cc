// Several models in one daemon: which one a name means, and that what happens to one changes
// nothing of another.
#include "daemon/model_host.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "daemon/metrics.h"
#include "daemon/options.h"
#include "tests/catch.h"

namespace tgi::daemon {
namespace {

ModelOptions small_demo(const std::string& name) {
  ModelOptions out;
  out.name = name;
  out.backend = "cpu";
  out.kv_cache_bytes = int64_t{1} << 20;
  out.max_total_tokens = 64;
  out.num_threads = 1;
  return out;
}

std::optional<Error> error_of(const auto& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a model beside the default one is asked for by its name") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo(""));
  host.load(small_demo("second"));
  CHECK(host.require() == host.current());
  CHECK(host.require("demo") == host.current());
  const auto second = host.require("second");
  CHECK(second != host.current());
  CHECK(second->status().served_name == "second");
  const auto error = error_of([&] { (void)host.require("third"); });
  REQUIRE(error);
  CHECK(error->code() == Code::kNotFound);
  CHECK_THAT(error->what(), Catch::Contains("third") && Catch::Contains("demo, second"));
}

TEST_CASE("unloading one model leaves the others, and its name is free again") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo(""));
  host.load(small_demo("second"));
  const ServedModel* const before = host.current().get();  // who holds it keeps it from its end
  host.unload("second");
  CHECK(host.beside().empty());
  CHECK(host.current().get() == before);
  CHECK(error_of([&] { host.unload("second"); })->code() == Code::kNotFound);
  host.load(small_demo("second"));
  host.unload();
  CHECK(host.current() == nullptr);
  CHECK(host.require("second") != nullptr);
  CHECK(error_of([&] { (void)host.require(); })->code() == Code::kNotFound);
}

TEST_CASE("a load without a name takes the default one's place, one with its name that one's") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo("first"));
  CHECK(host.require("first") == host.current());  // where there was none it is the default one
  host.load(small_demo("second"));
  const auto second = host.require("second");
  host.load(small_demo("first"));
  CHECK(host.require("first") == host.current());
  CHECK(host.beside().size() == 1);
  host.load(small_demo(""));
  CHECK(error_of([&] { (void)host.require("first"); })->code() == Code::kNotFound);
  CHECK(host.require("second") == second);
}

TEST_CASE("a model that does not fit is refused with what the others hold, and they go on") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo(""));
  const auto before = host.current();
  ModelOptions large = small_demo("large");
  large.kv_cache_bytes = int64_t{1} << 45;
  const auto error = error_of([&] { host.load(large); });
  REQUIRE(error);
  CHECK(error->code() == Code::kOutOfMemory);
  CHECK_THAT(error->what(), Catch::Contains("loaded beside it: demo ") && Catch::Contains("MiB"));
  CHECK(host.beside().empty());
  CHECK(host.require() == before);
}

TEST_CASE("the KV cache that another model has not touched yet is not planned a second time") {
  ipc::ModelStatus status;
  CHECK(untouched_kv_bytes(status) == 0);
  status.num_blocks = 100;
  status.num_blocks_used = 20;
  status.num_blocks_cached = 5;
  status.memory.kv_cache = 100 * 4096;
  CHECK(untouched_kv_bytes(status) == 75 * 4096);

  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo(""));
  CHECK(host.current()->options().promised_bytes == 0);
  host.load(small_demo("second"));
  const int64_t of_first = untouched_kv_bytes(host.current()->status());
  CHECK(of_first > 0);
  CHECK(host.require("second")->options().promised_bytes == of_first);
  // What takes a place is not asked for room for what stood there.
  host.load(small_demo("second"));
  CHECK(host.require("second")->options().promised_bytes == of_first);
}

TEST_CASE("metrics have the name of a model that has one") {
  ModelHost host(std::chrono::milliseconds(0));
  CHECK(collect_metrics(host).empty());
  host.load(small_demo(""));
  const size_t num_families = collect_metrics(host).size();
  host.load(small_demo("second"));
  const auto families = collect_metrics(host);
  CHECK(families.size() == num_families);
  using Labels = std::vector<std::pair<std::string, std::string>>;
  REQUIRE(families.front().samples.size() == 2);
  CHECK(families.front().samples[0].labels.empty());
  CHECK(families.front().samples[1].labels == Labels{{"model", "second"}});
}

TEST_CASE("--model may be given more than once, each but the first with a name") {
  const auto models_of = [](const std::vector<GivenFlag>& flags) {
    return resolve_options(flags).options;
  };
  const Options both = models_of({{"model", "/m/one"}, {"model", "b=/m/two=2"}});
  CHECK(both.model.model == "/m/one");
  CHECK(both.model.name.empty());
  REQUIRE(both.models.size() == 2);
  CHECK(both.models[1].name == "b");
  CHECK(both.models[1].model == "/m/two=2");
  CHECK(models_of({{"model", "a=demo"}}).model.name == "a");
  CHECK(models_of({{"model", "/with=equals"}}).model.model == "/with=equals");
  for (const std::vector<GivenFlag>& bad :
       std::vector<std::vector<GivenFlag>>{{{"model", "demo"}, {"model", "demo"}},
                                           {{"model", "a=demo"}, {"model", "a=demo"}},
                                           {{"model", "a="}},
                                           {{"model", "with blank=demo"}}}) {
    CHECK_THROWS_WITH(resolve_options(bad),
                      Catch::Contains("--model") && Catch::Contains("expected"));
  }
}

TEST_CASE("models that are loaded on demand have a name of their own, and times are as ollama's") {
  const auto options_of = [](const std::vector<GivenFlag>& flags) {
    return resolve_options(flags).options;
  };
  const Options given = options_of({{"model", "demo"},
                                    {"on-demand", "a=/m/one"},
                                    {"on-demand", "b=/m/two"},
                                    {"keep-alive", "1h30m"},
                                    {"max-models", "2"}});
  CHECK(given.on_demand == std::vector<ipc::NamedModel>{{"a", "/m/one"}, {"b", "/m/two"}});
  CHECK(given.keep_alive == std::chrono::minutes(90));
  CHECK(given.max_models == 2);
  CHECK(options_of({{"keep-alive", "-5"}}).keep_alive == std::chrono::milliseconds(-1));
  for (const std::vector<GivenFlag>& bad :
       std::vector<std::vector<GivenFlag>>{{{"on-demand", "/m/one"}},
                                           {{"model", "a=demo"}, {"on-demand", "a=/m"}},
                                           {{"on-demand", "a=/m"}, {"on-demand", "a=/m"}},
                                           {{"keep-alive", "soon"}},
                                           {{"max-models", "-1"}}}) {
    CHECK_THROWS_WITH(resolve_options(bad), Catch::Contains("expected"));
  }
}

TEST_CASE("a model that is not loaded yet does not become the default one") {
  ModelHost host(std::chrono::milliseconds(0));
  host.enroll(small_demo("later"), {});
  CHECK(host.phase() == "no model");
  CHECK(host.find_or_throw("later")->phase() == "not loaded");
  const auto error = error_of([&] { (void)host.require("later"); });
  REQUIRE(error);
  CHECK_THAT(error->what(), Catch::Contains("the next request that asks for it loads it"));
  host.load(small_demo("first"));
  CHECK(host.require() == host.require("first"));
}

TEST_CASE("two models that are given one name at once get two, and nothing is overwritten") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo("tiny"));
  const auto model_at = [](const std::string& path) {
    ModelOptions out = small_demo("tiny");
    out.model = path;
    return out;
  };
  constexpr int kNumEach = 8;
  std::vector<ModelHost::Enrolled> given(size_t{2} * kNumEach);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2 * kNumEach; ++i) {
      threads.emplace_back([&, i] {
        const std::string path = i % 2 == 0 ? "/m/even" : "/m/odd";
        given[static_cast<size_t>(i)] = host.enroll_beside(model_at(path), {});
      });
    }
  }
  CHECK(std::ranges::count_if(given, &ModelHost::Enrolled::is_new) == 2);
  for (size_t i = 2; i < given.size(); ++i) CHECK(given[i].name == given[i % 2].name);
  CHECK(given[0].name != given[1].name);
  for (size_t i = 0; i < 2; ++i) {
    CHECK((given[i].name == "tiny-2" || given[i].name == "tiny-3"));
    CHECK(host.find_or_throw(given[i].name)->standing().path == (i == 0 ? "/m/even" : "/m/odd"));
  }
  CHECK(host.enroll_beside(small_demo("tiny"), {}).name == "tiny");  // it is there
}

TEST_CASE("a name that means the default model is passed over once, and numbers go on") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo(""));  // without a name of its own: clients know it by its path
  std::vector<std::string> names;
  for (const char* path : {"/m/one", "/m/two", "/m/one"}) {
    ModelOptions options = small_demo("tiny");
    options.model = path;
    names.push_back(host.enroll_beside(options, {}, true).name);
  }
  CHECK(names == std::vector<std::string>{"tiny-2", "tiny-3", "tiny-2"});
}

TEST_CASE("no two models have one name, the default one's path among them") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo(""));
  CHECK(host.place_of(small_demo("demo")).slot == host.find_or_throw({}));
  CHECK(host.place_of(small_demo("other"), true).slot == host.find_or_throw({}));
  CHECK(host.enroll_beside(small_demo("demo"), {}).name == "demo-2");
  host.unload("demo-2");
  host.load(small_demo("demo"));  // a new version of it
  CHECK(host.beside().empty());
  CHECK(host.require("demo") == host.current());
  host.load(small_demo("first"));
  CHECK(host.beside().size() == 1);
}

TEST_CASE("a model without a name is refused where its path is another's name") {
  ModelHost host(std::chrono::milliseconds(0));
  host.load(small_demo("first"));
  host.load(small_demo("demo"));
  const auto before = host.current();
  const auto error = error_of([&] { host.load(small_demo("")); });
  REQUIRE(error);
  CHECK(error->code() == Code::kInvalidArgument);
  CHECK_THAT(error->what(), Catch::Contains("tgi unload demo"));
  CHECK(host.current() == before);
}

}  // namespace tgi::daemon
