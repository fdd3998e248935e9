// The daemon with the CUDA plugin on emulated GPUs: found, used, refused, and lost.
#include <cstdlib>
#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

// Variables of this process, and so of the daemons it starts, until the end of the test.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) : values_(values) {
    for (const auto& [name, value] : values_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : values_) ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const std::map<std::string, std::string> values_;
};

std::map<std::string, std::string> emulated(const Home& home, int num_gpus) {
  return {{"TGI_PLUGIN_DIR", std::string(TGI_BINARY_DIR) + "/emulated"},
          {"TGI_EMULATED_GPUS", std::to_string(num_gpus)},
          {"TGI_EMULATED_GPU_MEMORY", "4000000000"},
          {"XDG_CACHE_HOME", home.file("cache")}};
}

std::vector<std::string> small_context(const std::string& backend) {
  return {"--backend",          backend, "--max-total-tokens", "256",
          "--max-batch-tokens", "32",    "--max-running",      "8"};
}

std::string generate(const DaemonProcess& daemon, const std::string& prompt, int32_t count) {
  ipc::GenerateRequest request;
  request.prompt = prompt;
  request.params.max_new_tokens = count;
  return daemon.client().generate(request, {}).best.text;
}

std::string load_error(const DaemonProcess& daemon,
                       const std::function<void(ipc::LoadParams&)>& change) {
  ipc::LoadParams params;
  params.model = "demo";
  params.settings.set("backend", "cuda");
  change(params);
  try {
    (void)daemon.client().call(ipc::kLoad, ipc::to_json(params));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a GPU is found and gives the answer that the processor gives") {
  const Home home;
  const Environment environment(emulated(home, 1));
  const DaemonProcess daemon(home, small_context("auto"));
  REQUIRE(daemon.status().model);
  CHECK(daemon.status().model->backend == "cuda");
  CHECK(daemon.status().model->isa == "sm_90");
  CHECK_THAT(daemon.status().model->device, Catch::Contains("Emulated GPU"));
  const std::string text = generate(daemon, "What is tgi?", 12);
  CHECK(daemon.becomes_idle());
  CHECK(daemon.wait_for(
      [](const ipc::Status& status) {
        return status.model && status.model->captured_rows == std::vector<int64_t>{1, 2, 4, 8};
      },
      300000));

  const Home other;
  const DaemonProcess processor(other, small_context("cpu"));
  CHECK(generate(processor, "What is tgi?", 12) == text);
}

TEST_CASE("what the GPU can't do is refused in its terms, and the model that serves stays",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  const Environment environment(emulated(home, 1));
  const DaemonProcess daemon(home, small_context("cuda"));
  CHECK_THAT(
      load_error(daemon, [](ipc::LoadParams& params) { params.settings.set("dtype", "f32"); }),
      Catch::Contains("bf16 or f16") && Catch::Contains("--dtype bf16"));
  CHECK_THAT(
      load_error(daemon, [](ipc::LoadParams& params) { params.settings.set("num-shard", "2"); }),
      Catch::Contains("2") && Catch::Contains("1"));
  CHECK_THAT(
      load_error(daemon,
                 [](ipc::LoadParams& params) { params.settings.set("kv-cache-dtype", "int8"); }),
      Catch::Contains("a KV cache of int8") && Catch::Contains("f8e4m3"));
  CHECK_FALSE(generate(daemon, "What is tgi?", 4).empty());
  CHECK(load_error(daemon, [](ipc::LoadParams& params) {
          params.settings.set("kv-cache-dtype", "f8e4m3");
        }).empty());
  CHECK(daemon.status().model->kv_cache_dtype == "f8e4m3");
  CHECK_FALSE(generate(daemon, "What is tgi?", 4).empty());
  const int64_t plain = daemon.status().model->memory.weights;
  CHECK(load_error(daemon, [](ipc::LoadParams& params) {
          params.settings.set("quantize", "int8");
        }).empty());
  CHECK(daemon.status().model->quantize == "int8");
  CHECK(daemon.status().model->memory.weights < plain * 3 / 4);
  CHECK_FALSE(generate(daemon, "What is tgi?", 4).empty());
}

TEST_CASE("without a GPU the processor serves; asked for by name, the reason is told") {
  const Home home;
  const Environment environment(emulated(home, 0));
  const DaemonProcess daemon(home, small_context("auto"));
  REQUIRE(daemon.status().model);
  CHECK(daemon.status().model->backend == "cpu");
  CHECK_THAT(read_file(home.file("tgid.log")), Catch::Contains("the model runs on the processor"));
  CHECK_THAT(load_error(daemon, [](ipc::LoadParams&) {}), Catch::Contains("no GPU"));
}

TEST_CASE("a plugin that is not there is named with its path") {
  const Home home;
  const Environment environment({{"TGI_PLUGIN_DIR", home.file("nowhere")}});
  const DaemonProcess daemon(home, small_context("auto"));
  CHECK_THAT(load_error(daemon, [](ipc::LoadParams&) {}),
             Catch::Contains("nowhere/libtgi-cuda.so"));
}

TEST_CASE("too little memory of the GPU says what was planned and what is free",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  std::map<std::string, std::string> values = emulated(home, 1);
  values["TGI_EMULATED_GPU_MEMORY"] = "640000000";
  const Environment environment(values);
  const DaemonProcess daemon(home, small_context("auto"));
  CHECK_THAT(
      load_error(daemon,
                 [](ipc::LoadParams& params) { params.settings.set("kv-cache-memory", "1GiB"); }),
      Catch::Contains("does not fit") && Catch::Contains("available"));
}

TEST_CASE("a model that takes another's place gets the memory that this one had",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  std::map<std::string, std::string> values = emulated(home, 1);
  values["TGI_EMULATED_GPU_MEMORY"] = "1400000000";
  const Environment environment(values);
  const DaemonProcess daemon(home, {"--backend", "cuda"});
  const int64_t of_first = daemon.status().model->memory.kv_cache;
  CHECK(of_first > 500'000'000);
  CHECK(load_error(daemon, [](ipc::LoadParams& params) {
          params.settings.set("dtype", "f16");
        }).empty());
  CHECK(daemon.status().model->dtype == "f16");
  CHECK(daemon.status().model->memory.kv_cache > of_first * 9 / 10);
  CHECK_FALSE(generate(daemon, "What is tgi?", 4).empty());
}

TEST_CASE("a small model leaves the GPU's memory to others", TGI_NOT_UNDER_TSAN) {
  const Home home;
  const Environment environment(emulated(home, 1));
  const DaemonProcess daemon(home, small_context("cuda"));
  const ipc::ModelStatus model = *daemon.status().model;
  CHECK(model.num_blocks == 2 * 8 * 256 / 16);
  CHECK(model.memory.kv_cache < model.memory.available / 100);
}

TEST_CASE("a KV cache of a type that the backend has not is refused on a first load too",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  const Environment environment(emulated(home, 1));
  const std::vector<std::string> flags = {"--backend", "cuda", "--kv-cache-dtype", "int8"};
  {
    const DaemonProcess daemon(home, flags);
    const ipc::Status status = daemon.status();
    CHECK(status.phase == "failed");
    CHECK_THAT(status.phase_detail, Catch::Contains("a KV cache of int8"));
    CHECK(home.run({"load", "demo"}).exit_status == 5);
    CHECK(home.run({"load", "demo", "--backend", "cpu", "--kv-cache-dtype", "int8"}).exit_status ==
          0);
  }
  const DaemonProcess daemon(home, {"--no-model"});
  std::vector<std::string> load = {"load", "demo"};
  load.insert(load.end(), flags.begin(), flags.end());
  CHECK_THAT(home.run(load).err, Catch::Contains("a KV cache of int8"));
  const Ran serve = home.run(
      {"serve", "demo", "--backend", "cuda", "--kv-cache-dtype", "int8", "--http", "127.0.0.1:0"});
  CHECK(serve.exit_status == 8);  // it has no model to serve; the reason is the load's
  CHECK_THAT(serve.err, Catch::Contains("a KV cache of int8"));
  CHECK(daemon.status().phase == "failed");
}

}  // namespace tgi
