#include "base/store/store.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/store/stored_job.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

InstalledModel small_model(const std::string& name) {
  return {.name = name,
          .source = "https://huggingface.co",
          .revision = "main",
          .commit = "0123abc",
          .format = "safetensors",
          .path = "/cache/" + name,
          .bytes = 30,
          .files = {{.name = "config.json", .bytes = 10, .hash = "git:aa"},
                    {.name = "model.safetensors", .bytes = 20, .hash = "sha256:bb"}},
          .installed_at = 1000};
}

// Runs `work` in a process of its own; true when it returned.
template <typename Work>
pid_t in_child(Work work) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    work();
    ::_exit(0);
  } catch (const std::exception& error) {
    ::write(STDERR_FILENO, error.what(), std::string_view(error.what()).size());
    ::_exit(1);
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("what is put into the store is there for the next who opens it") {
  const TempFolder folder;
  const std::string path = folder.file("state/store.db");
  Store::open(path).put_model(small_model("org/tiny"));
  const Store store = Store::open(path);
  CHECK_FALSE(store.is_read_only());
  const auto model = store.find_model("org/tiny");
  REQUIRE(model);
  CHECK(model->source == "https://huggingface.co");
  CHECK(model->revision == "main");
  CHECK(model->commit == "0123abc");
  CHECK(model->format == "safetensors");
  CHECK(model->path == "/cache/org/tiny");
  CHECK(model->bytes == 30);
  CHECK(model->installed_at == 1000);
  CHECK(model->last_used_at == 0);
  REQUIRE(model->files.size() == 2);
  CHECK(model->files[0].name == "config.json");
  CHECK(model->files[1].bytes == 20);
  CHECK(model->files[1].hash == "sha256:bb");
  CHECK_FALSE(store.find_model("org/other"));
  CHECK(store.models().size() == 1);
}

TEST_CASE("a model put again replaces itself and keeps its time of last use") {
  const TempFolder folder;
  Store store = Store::open(folder.file("store.db"));
  store.put_model(small_model("org/tiny"));
  store.touch_model("org/tiny");
  store.touch_model("org/unknown");
  const int64_t used = store.find_model("org/tiny")->last_used_at;
  CHECK(used > 1000);
  InstalledModel again = small_model("org/tiny");
  again.commit = "4567def";
  again.files = {{.name = "model.safetensors", .bytes = 5, .hash = ""}};
  store.put_model(again);
  const auto model = store.find_model("org/tiny");
  CHECK(model->commit == "4567def");
  CHECK(model->last_used_at == used);
  CHECK(model->files.size() == 1);
  CHECK(store.models().size() == 1);
}

TEST_CASE("a model that is removed takes the list of its files with it") {
  const TempFolder folder;
  Store store = Store::open(folder.file("store.db"));
  store.put_model(small_model("org/a"));
  store.put_model(small_model("org/b"));
  CHECK(store.remove_model("org/a"));
  CHECK_FALSE(store.remove_model("org/a"));
  CHECK(store.models().size() == 1);
  store.put_model({.name = "org/a"});
  CHECK(store.find_model("org/a")->files.empty());
}

TEST_CASE("a job tells how far it is and how it ended") {
  const TempFolder folder;
  Store store = Store::open(folder.file("store.db"));
  const int64_t first = store.begin_job("download", "org/a", 100);
  const int64_t second = store.begin_job("quantize", "org/b", 0);
  store.update_job(first, "model.safetensors", 40, 100);
  store.update_job(second, "layer 3", 3, 32);
  store.end_job(second, "failed", "no room");
  store.update_job(second, "too late", 9, 32);
  CHECK_THROWS_AS(store.end_job(99, "done", ""), Error);
  const auto jobs = store.jobs(10);
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].id == second);
  CHECK(jobs[0].state == "failed");
  CHECK(jobs[0].phase == "layer 3");
  CHECK(jobs[0].message == "no room");
  CHECK(jobs[0].finished_at >= jobs[0].started_at);
  CHECK(jobs[1].state == "running");
  CHECK(jobs[1].done == 40);
  CHECK(jobs[1].total == 100);
  CHECK(jobs[1].owner_pid == ::getpid());
  CHECK(store.jobs(1).size() == 1);
}

TEST_CASE("the job of a process that died is shown as interrupted") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  Store::open(path);
  const pid_t child = in_child([&] {
    Store store = Store::open(path);
    store.update_job(store.begin_job("download", "org/a", 100), "half", 50, 100);
    ::raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(wait_for(child)));
  const auto jobs = Store::open(path).jobs(10);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].state == "interrupted");
  CHECK(jobs[0].done == 50);
}

TEST_CASE("a stored job is told from its beginning to its end, and goes on without a store") {
  const TempFolder folder;
  ::setenv("TGI_STORE", folder.file("store.db").c_str(), 1);
  StoredJob("download", "org/a", 100).update("half", 50, 100);
  {
    StoredJob failed("download", "org/b", 0);
    failed.end(std::make_exception_ptr(Error(Code::kOutOfMemory, "the disk is full")));
    StoredJob stopped("download", "org/c", 0);
    stopped.end(std::make_exception_ptr(Error(Code::kCancelled, "Ctrl-C")));
  }
  try {
    const StoredJob unwound("download", "org/d", 0);
    throw std::runtime_error("away");
  } catch (const std::runtime_error&) {
  }
  const auto jobs = Store::open().jobs(10);
  REQUIRE(jobs.size() == 4);
  CHECK(jobs[0].state == "failed");
  CHECK(jobs[1].state == "cancelled");
  CHECK(jobs[2].state == "failed");
  CHECK(jobs[2].message == "the disk is full");
  CHECK(jobs[3].state == "done");
  CHECK(jobs[3].done == 50);

  ::setenv("TGI_STORE", folder.path().c_str(), 1);
  std::string trouble;
  StoredJob job("download", "org/a", 1, [&](const std::string& text) { trouble = text; });
  job.update("on", 1, 1);
  job.end();
  CHECK_THAT(trouble, Catch::Contains("is a folder"));
  ::unsetenv("TGI_STORE");
}

TEST_CASE("old jobs that have ended make room, running ones stay") {
  const TempFolder folder;
  Store store = Store::open(folder.file("store.db"));
  const int64_t kept = store.begin_job("download", "runs on", 1);
  for (int64_t i = 0; i < Store::kMaxJobs + 5; ++i) {
    store.end_job(store.begin_job("download", "short", 1), "done", "");
  }
  const auto jobs = store.jobs(2 * Store::kMaxJobs);
  CHECK(jobs.size() == Store::kMaxJobs + 1);
  CHECK(jobs.back().id == kept);
}

TEST_CASE("benchmarks come back newest first, by model and kind") {
  const TempFolder folder;
  Store store = Store::open(folder.file("store.db"));
  for (const char* model : {"demo", "org/a", "demo"}) {
    store.add_benchmark({.kind = "engine",
                         .model = model,
                         .backend = "cpu",
                         .isa = "avx2",
                         .dtype = "bf16",
                         .settings = {{"batch_sizes", {1, 4}}},
                         .result = {{"tokens_per_second", 12.5}},
                         .version = "0.1.0"});
  }
  store.add_benchmark({.kind = "serving", .model = "demo"});
  const auto of_demo = store.benchmarks({.kind = "engine", .model = "demo"}, 10);
  REQUIRE(of_demo.size() == 2);
  CHECK(of_demo[0].id > of_demo[1].id);
  CHECK(of_demo[0].settings["batch_sizes"][1] == 4);
  CHECK(of_demo[0].result["tokens_per_second"] == 12.5);
  CHECK(of_demo[0].isa == "avx2");
  CHECK(of_demo[0].measured_at > 1'000'000'000);
  CHECK(store.benchmarks({}, 10).size() == 4);
  CHECK(store.benchmarks({}, 3).size() == 3);
}

TEST_CASE("many processes create, open and write one store at once") {
  const TempFolder folder;
  const std::string path = folder.file("new/store.db");
  constexpr int kProcesses = 8;
  constexpr int kModels = 20;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(in_child([&] {
      for (int i = 0; i < kModels; ++i) {
        Store store = Store::open(path);
        store.put_model(small_model(std::to_string(process) + "/" + std::to_string(i)));
        store.end_job(store.begin_job("download", "x", 1), "done", "");
      }
    }));
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  const Store store = Store::open(path);
  CHECK(store.models().size() == kProcesses * kModels);
  CHECK(store.jobs(1000).size() == kProcesses * kModels);
}

}  // namespace tgi
