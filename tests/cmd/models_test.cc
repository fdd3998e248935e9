// tgi ls, show and rm against a cache and a store of the test.
#include "base/store/store.h"
#include "ipc/model_facts.h"
#include "tests/catch.h"
#include "tests/cmd/hub_cache_files.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using ipc::OrderedJson;

struct Machine {
  Home home;
  HubCacheFiles cache{home.file(".cache/huggingface/hub")};
  std::string store_path = home.state() + "/store.db";

  Store store() const { return Store::open(store_path); }
};

ipc::Status with_model(const std::string& name) {
  ipc::Status status = ready_status();
  status.model->name = name;
  return status;
}

}  // namespace

TEST_CASE("ls lists the built-in model, the cache and the store under one name each") {
  const Machine machine;
  machine.cache.add_two_revisions();
  machine.cache.add("org--part", "ccc", "config.json", "c", "{}");
  fs::create_symlink("../../blobs/none", machine.cache.snapshot("org--part", "ccc") + "/w.bin");
  machine.store().put_model({.name = "org/tiny",
                             .source = "hub",
                             .commit = "bbb",
                             .path = machine.cache.snapshot("org--tiny", "bbb"),
                             .bytes = 302,
                             .last_used_at = 1000});
  machine.store().put_model({.name = "my/model", .path = machine.home.file("nowhere")});
  const Ran names = machine.home.run({"ls", "-q"});
  CHECK(names.err == "");
  CHECK(names.out == "demo\nmy/model\norg/part@ccc\norg/tiny\norg/tiny@v1\n");
  const Ran table = machine.home.run({"ls"});
  CHECK_THAT(table.out, Contains("NAME") && Contains("org/tiny@v1   safetensors") &&
                            Contains("partial") && Contains("missing") && Contains("months ago"));
  const OrderedJson json = OrderedJson::parse(machine.home.run({"ls", "--json"}).out);
  REQUIRE(json.size() == 5);
  CHECK(json[0]["state"] == "built in");
  CHECK(json[1]["state"] == "missing");
  CHECK(json[2]["state"] == "partial");
  CHECK(json[3]["recorded"] == true);
  CHECK(json[3]["last_used_at"] == 1000);
  CHECK(json[4]["recorded"] == false);
  CHECK(json[4]["bytes"] == 302);
  CHECK(json[4]["path"] == machine.cache.snapshot("org--tiny", "aaa"));
}

TEST_CASE("ls says what the weights are quantised with") {
  const Machine machine;
  machine.cache.add("org--q", "aaa", "config.json", "c",
                    R"({"quantization_config": {"quant_method": "gptq"}})");
  machine.cache.add("org--q", "aaa", "model.safetensors", "w", "w");
  machine.cache.set_ref("org--q", "main", "aaa");
  CHECK_THAT(machine.home.run({"ls"}).out, Contains("org/q  gptq"));
}

TEST_CASE("ls goes on where nothing can be written, and refuses a damaged store") {
  const Machine machine;
  machine.cache.write(machine.store_path, std::string(5000, 'x'));
  const Ran ran = machine.home.run({"ls"});
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Contains("not a database") && Contains("mv '"));
}

TEST_CASE("rm frees what no other revision needs and forgets the model") {
  const Machine machine;
  machine.cache.add_two_revisions();
  machine.store().put_model(
      {.name = "org/tiny", .commit = "bbb", .path = machine.cache.snapshot("org--tiny", "bbb")});
  const Ran asked = machine.home.run({"rm", "org/tiny"});
  CHECK(asked.exit_status == 2);
  CHECK_THAT(asked.err, Contains("--yes"));
  const Ran ran = machine.home.run({"rm", "-y", "org/tiny"});
  CHECK(ran.err == "");
  CHECK(ran.out == "removed org/tiny, 300 B freed\n");
  CHECK(machine.store().models().empty());
  CHECK(machine.home.run({"ls", "-q"}).out == "demo\norg/tiny@v1\n");
  CHECK(machine.home.run({"rm", "-y", "org/tiny"}).exit_status == 4);
}

TEST_CASE("rm asks on a terminal and takes only yes for it") {
  const Machine machine;
  machine.cache.add_two_revisions();
  for (const std::string answer : {"n", "y"}) {
    Process process(machine.home, {{"rm", "org/tiny@v1"}, "", {}, std::nullopt},
                    Process::Kind::kTerminal);
    REQUIRE(process.wait_for_output("remove org/tiny@v1, 302 B in 2 files of "));
    process.write(answer + "\n");
    REQUIRE(process.wait_for_output(answer == "y" ? "removed org/tiny@v1" : "org/tiny@v1 stays"));
    CHECK(process.wait() == 0);
    CHECK(fs::exists(machine.cache.snapshot("org--tiny", "aaa")) == (answer == "n"));
  }
}

TEST_CASE("rm removes conversions, and forgets a folder of the user without touching it") {
  const Machine machine;
  machine.cache.add("org--bin", "aaa", "pytorch_model.bin", "b", std::string(100, 'b'));
  machine.cache.set_ref("org--bin", "main", "aaa");
  const std::string converted = machine.home.file(".cache/tgi/converted/org--bin/aaa");
  machine.cache.write(converted + "/model.safetensors", std::string(100, 's'));
  machine.cache.write(converted + "/config.json", "{}");
  machine.store().put_model({.name = "org/bin", .commit = "aaa", .path = converted, .bytes = 102});
  const std::string mine = machine.home.file("mine");
  machine.cache.write(mine + "/config.json", "{}");
  machine.store().put_model({.name = "mine", .source = "folder", .path = mine});

  const Ran ran = machine.home.run({"rm", "-y", "org/bin", "mine"});
  CHECK(ran.err == "");
  CHECK_THAT(ran.out, Contains("removed org/bin, 205 B freed\n") && Contains("is yours and stays"));
  CHECK_FALSE(fs::exists(converted));
  CHECK_FALSE(fs::exists(machine.cache.repo("org--bin")));
  CHECK(fs::exists(mine + "/config.json"));
  CHECK(machine.store().models().empty());
  CHECK(machine.home.run({"rm", "-y", mine}).exit_status == 3);
  CHECK(machine.home.run({"rm", "-y", "demo"}).exit_status == 3);
}

TEST_CASE("rm refuses a model that the daemon has loaded, by its name or its folder") {
  const Machine machine;
  machine.cache.add_two_revisions();
  for (const std::string& name :
       {std::string("org/tiny"), machine.cache.snapshot("org--tiny", "bbb")}) {
    const FakeDaemon daemon(machine.home.socket(), [&](FakeSession& session) {
      session.send(ipc::encode_result(ipc::to_json(with_model(name))));
    });
    const Ran ran = machine.home.run({"rm", "-y", "org/tiny@v1", "org/tiny"});
    CHECK(ran.exit_status == 7);
    CHECK_THAT(ran.err, Contains("tgi unload"));
    CHECK(ran.out == "");  // nor the first of the two
  }
  CHECK(machine.home.run({"ls", "-q"}).out == "demo\norg/tiny\norg/tiny@v1\n");
}

TEST_CASE("ls --jobs lists what runs and how it ended") {
  const Machine machine;
  {
    Store store = machine.store();
    const int64_t first = store.begin_job("download", "org/a", 200);
    store.update_job(first, "downloading", 50, 200);
    store.end_job(store.begin_job("quantize", "org/b", 0), "failed", "the disk is full");
  }
  const std::string table = machine.home.run({"ls", "--jobs"}).out;
  CHECK_THAT(table, Contains("download org/a  running  25 %") && Contains("downloading\n") &&
                        Contains("quantize org/b  failed") && Contains("the disk is full\n"));
  const OrderedJson json = OrderedJson::parse(machine.home.run({"ls", "--jobs", "--json"}).out);
  REQUIRE(json.size() == 2);
  CHECK(json[1]["done"] == 50);
  CHECK(json[1]["finished_at"].is_null());
}

TEST_CASE("show puts what the daemon finds beside what is known of the files") {
  const Machine machine;
  machine.cache.add_two_revisions();
  std::string asked;
  const FakeDaemon daemon(machine.home.socket(), [&](FakeSession& session) {
    if (session.request().method != ipc::kInspect) {
      session.send(ipc::encode_result(ipc::to_json(ready_status())));
      return;
    }
    asked = session.request().params.dump();
    ipc::ModelFacts facts;
    facts.architecture = "LlamaForCausalLM";
    facts.num_params = 1'100'000'000;
    facts.licence = "apache-2.0";
    facts.plans = {{.dtype = "bf16",
                    .error = "",
                    .weights = 2 << 20,
                    .workspace = 1 << 20,
                    .kv_bytes_per_token = 1024,
                    .contexts = {{.tokens = 2048, .kv_cache = 2 << 20, .total = 5 << 20}}},
                   {.dtype = "int4", .error = "quantised already", .contexts = {}}};
    session.send(ipc::encode_result(ipc::to_json(facts)));
  });
  const Ran ran = machine.home.run({"show", "org/tiny"});
  CHECK(ran.err == "");
  CHECK(asked == OrderedJson{{"model", machine.cache.snapshot("org--tiny", "bbb")}}.dump());
  CHECK_THAT(ran.out, Contains("model            org/tiny\n") &&
                          Contains("commit           bbb\n") &&
                          Contains("LlamaForCausalLM, 1.10 billion parameters") &&
                          Contains("licence          apache-2.0\n") &&
                          Contains("300 B  model.safetensors\n") && Contains("2048 tokens") &&
                          Contains("5.0 MiB") && Contains("int4: quantised already\n"));
  const OrderedJson json = OrderedJson::parse(machine.home.run({"show", "org/tiny", "--json"}).out);
  CHECK(json["facts"]["plans"][0]["contexts"][0]["total"] == 5 << 20);
  CHECK(json["files"].size() == 2);
  CHECK(json["error"].is_null());
}

TEST_CASE("ls shows an adapter as one, and show what the daemon finds in it") {
  const Machine machine;
  machine.cache.add("org--lora", "aaa", "adapter_config.json", "a", "{}");
  CHECK_THAT(machine.home.run({"ls"}).out, Contains("partial"));
  machine.cache.add("org--lora", "aaa", "adapter_model.safetensors", "b", std::string(100, 'b'));
  machine.cache.set_ref("org--lora", "main", "aaa");
  const OrderedJson list = OrderedJson::parse(machine.home.run({"ls", "--json"}).out);
  REQUIRE(list.size() == 2);
  CHECK(list[1]["name"] == "org/lora");
  CHECK(list[1]["format"] == "lora");
  CHECK(list[1]["state"] == "ready");
  const FakeDaemon daemon(machine.home.socket(), [&](FakeSession& session) {
    if (session.request().method != ipc::kInspect) {
      session.send(ipc::encode_result(ipc::to_json(ready_status())));
      return;
    }
    ipc::AdapterFolder adapter;
    adapter.base_model = "org/base";
    adapter.rank = 8;
    adapter.alpha = 16.5;
    adapter.bias = "all";
    adapter.modules = {"q_proj"};
    adapter.max_rank = 8;
    adapter.num_linears = 1;
    adapter.bytes = 2 << 20;
    session.send(ipc::encode_result(ipc::to_json(adapter)));
  });
  // Of those that are loaded, too; this daemon has none.
  CHECK(machine.home.run({"adapters", "--quiet"}).out == "org/lora\n");
  const Ran ran = machine.home.run({"show", "org/lora"});
  CHECK(ran.err == "");
  CHECK_THAT(ran.out, Contains("adapter          org/lora\n") &&
                          Contains("kind             LoRA, trained biases (all)\n") &&
                          Contains("made for         org/base\n") &&
                          Contains("rank             8, alpha 16.5\n") &&
                          Contains("changes          1 linear: q_proj\n") &&
                          Contains("weights          2.0 MiB\n") &&
                          Contains("100 B  adapter_model.safetensors\n"));
  CHECK_THAT(ran.out, !Contains("asked for") && !Contains("Memory for"));
}

TEST_CASE("show of a model that can't be loaded says why and shows its files") {
  const Machine machine;
  machine.cache.add_two_revisions();
  const FakeDaemon daemon(machine.home.socket(), [&](FakeSession& session) {
    if (session.request().method == ipc::kInspect) {
      session.send_error(Code::kUnsupported, "architecture X is not known");
    } else {
      session.send(ipc::encode_result(ipc::to_json(ready_status())));
    }
  });
  const Ran ran = machine.home.run({"show", "org/tiny"});
  CHECK(ran.exit_status == code_row(Code::kUnsupported).exit_status);
  CHECK_THAT(ran.out, Contains("can't be loaded  architecture X is not known\n") &&
                          Contains("model.safetensors"));
  CHECK(machine.home.run({"show", "org/tiny", "--json"}).exit_status == ran.exit_status);
  CHECK(machine.home.run({"show", "org/none"}).exit_status == 4);
}

TEST_CASE("bench --history lists what was kept, newest first") {
  const Machine machine;
  CHECK_THAT(machine.home.run({"bench", "--history"}).out, Contains("no benchmarks yet"));
  BenchmarkRecord record;
  record.kind = "engine";
  record.model = "demo";
  record.backend = "cpu";
  record.isa = "avx2";
  record.dtype = "bf16";
  record.settings = {{"prompt_length", 512}, {"decode_length", 128}};
  record.result = {
      {"batches",
       {{{"batch_size", 4}, {"prefill_tokens_per_s", 100.5}, {"decode_tokens_per_s", 20.25}}}}};
  machine.store().add_benchmark(record);
  record.kind = "serving";
  record.model = "org/tiny";
  record.settings = {{"load", "8 at once"}};
  record.result = {{"output_tokens_per_s", 77.5}};
  machine.store().add_benchmark(record);
  const std::string table = machine.home.run({"bench", "--history"}).out;
  CHECK_THAT(table, Contains("batch of 4, 512 + 128 tokens") && Contains("100.5") &&
                        Contains("8 at once") && Contains("77.5"));
  CHECK(table.find("org/tiny") < table.find("demo"));
  CHECK_THAT(machine.home.run({"bench", "--history", "--model", "demo"}).out,
             !Contains("org/tiny"));
  const Ran json = machine.home.run({"bench", "--history", "--json", "--limit", "1"});
  REQUIRE(OrderedJson::parse(json.out).size() == 1);
  CHECK(OrderedJson::parse(json.out)[0]["result"]["output_tokens_per_s"] == 77.5);
  CHECK(machine.home.run({"bench", "--history", "--runs", "3"}).exit_status == 2);
  CHECK(machine.home.run({"bench", "--limit", "3"}).exit_status == 2);
}

}  // namespace tgi
