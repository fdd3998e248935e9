// Models that can't be loaded: whatever is wrong with them, the one that serves goes on, and its
// next answer is that of before.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

// A copy of the demo model, to be broken.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {
    fs::remove_all(path_);
    fs::copy(std::string(TGI_SOURCE_DIR) + "/assets/demo", path_);
  }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
  }
  void set(const std::string& name, const std::string& key, const Json& value) const {
    Json json = Json::parse(read_file(file(name)));
    json[key] = value;
    write(name, json.dump());
  }
  void config(const std::string& key, const Json& value) const { set("config.json", key, value); }

  // Changes the header of the weights; the data stay.
  void weights(const std::function<void(Json& header)>& change) const {
    const std::string name = "model.safetensors";
    const std::string all = read_file(file(name));
    uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof length);
    Json header = Json::parse(all.substr(sizeof length, length));
    change(header);
    const std::string text = header.dump();
    const uint64_t new_length = text.size();
    std::string out(reinterpret_cast<const char*>(&new_length), sizeof new_length);
    write(name, out + text + all.substr(sizeof length + length));
  }

  // Something that is no regular file in the place of one.
  void replace(const std::string& name, const std::string& kind) const {
    fs::remove(file(name));
    if (kind == "pipe") REQUIRE(::mkfifo(file(name).c_str(), 0600) == 0);
    if (kind == "folder") fs::create_directory(file(name));
    if (kind == "device") fs::create_symlink("/dev/zero", file(name));
    if (kind == "loop") fs::create_symlink(name, file(name));
    if (kind != "socket") return;
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, file(name).c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

 private:
  const std::string path_;
};

struct Breakage {
  std::string what;
  std::function<void(const Folder&)> make;
  std::string complaint;  // a part of the error
  std::vector<std::string> flags = {};
};

constexpr const char* kQ = "model.layers.0.self_attn.q_proj.weight";
constexpr const char* kUp = "model.layers.0.mlp.up_proj.weight";

const std::vector<Breakage>& breakages() {
  static const std::vector<Breakage> all = {
      {"a layer too many in the file", [](const Folder& f) { f.config("num_hidden_layers", 4); },
       "not of this model: model.layers.4."},
      {"a layer too few in the file", [](const Folder& f) { f.config("num_hidden_layers", 6); },
       "missing: model.layers.5."},
      {"a tensor of another name",
       [](const Folder& f) {
         f.weights([](Json& header) {
           header["model.layers.0.self_attn.queries"] = header[kQ];
           header.erase(kQ);
         });
       },
       kQ},
      {"a shape", [](const Folder& f) { f.config("intermediate_size", 1024); }, "misshapen"},
      {"a transposed tensor",
       [](const Folder& f) { f.weights([](Json& header) {
                               header[kUp]["shape"] = {256, 512};
                             }); },
       "expected (512, 256), got (256, 512)"},
      {"an element type",
       [](const Folder& f) { f.weights([](Json& header) { header[kQ]["dtype"] = "I16"; }); }, kQ},
      {"an element type nobody knows",
       [](const Folder& f) { f.weights([](Json& header) { header[kQ]["dtype"] = "X16"; }); },
       "X16"},
      {"a file cut short",
       [](const Folder& f) { fs::resize_file(f.file("model.safetensors"), 1 << 20); },
       "model.safetensors"},
      {"no weights", [](const Folder& f) { fs::remove(f.file("model.safetensors")); },
       "model.safetensors"},
      {"an index whose shard is not there",
       [](const Folder& f) {
         fs::remove(f.file("model.safetensors"));
         f.write("model.safetensors.index.json", R"({"weight_map": {"a": "b.safetensors"}})");
       },
       "b.safetensors"},
      {"no config", [](const Folder& f) { fs::remove(f.file("config.json")); }, "config.json"},
      {"a config that is no JSON", [](const Folder& f) { f.write("config.json", "{"); },
       "config.json"},
      {"an architecture",
       [](const Folder& f) { f.config("architectures", {"MysteryForCausalLM"}); },
       "MysteryForCausalLM"},
      {"a rope type",
       [](const Folder& f) {
         f.config("rope_scaling", {{"rope_type", "spiral"}, {"factor", 2.0}});
       },
       "spiral"},
      {"heads that no kernel takes",
       [](const Folder& f) { f.config("head_dim", 2048); },
       "head_dim 2048",
       {"--load-format", "dummy", "--backend", "cpu"}},
      {"a quantisation format",
       [](const Folder& f) {
         f.config("quantization_config", {{"quant_method", "alchemy"}});
       },
       "alchemy"},
      {"a quantisation that the weights don't have",
       [](const Folder& f) {
         f.config("quantization_config",
                  {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}});
       },
       "q_proj.qweight"},
      {"no tokenizer", [](const Folder& f) { fs::remove(f.file("tokenizer.json")); }, "tokenizer"},
      {"a tokenizer that is none", [](const Folder& f) { f.write("tokenizer.json", "[1]"); },
       "tokenizer.json"},
      {"a tokenizer of another model", [](const Folder& f) { f.config("vocab_size", 1000); },
       "1000"},
      {"a chat template",
       [](const Folder& f) { f.set("tokenizer_config.json", "chat_template", "{% for"); },
       "tokenizer_config.json"},
      {"end tokens",
       [](const Folder& f) { f.set("generation_config.json", "eos_token_id", "stop"); },
       "generation_config.json"},
      {"ranks that don't come out even", [](const Folder&) {}, "3 ranks", {"--num-shard", "3"}},
      {"groups that don't come out even",
       [](const Folder&) {},
       "group size 96",
       {"--quantize", "int8", "--quantize-group-size", "96"}},
      {"a format that it claims", [](const Folder&) {}, "not quantised", {"--quantize", "awq"}},
      {"random weights for a quantised model",
       [](const Folder& f) {
         f.config("quantization_config",
                  {{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}});
       },
       "quantization_config",
       {"--load-format", "dummy"}},
      {"more weights than memory",
       [](const Folder& f) {
         f.config("hidden_size", 1 << 17);
         f.config("intermediate_size", 1 << 18);
         f.config("num_hidden_layers", 100);
       },
       "does not fit",
       {"--load-format", "dummy"}},
  };
  return all;
}

std::string answer(const Home& home) {
  const Ran ran = home.run({"generate", "Once upon a time", "--max-new-tokens", "12"});
  INFO(ran.err);
  CHECK(ran.exit_status == 0);
  return ran.out;
}

// A model that was loaded again would count its requests anew.
void check_serves_on(const Home& home, const DaemonProcess& daemon, const std::string& expected) {
  const ipc::Status before = daemon.status();
  CHECK(before.phase == "ready");
  REQUIRE(before.model);
  CHECK(before.model->name == "demo");
  CHECK(answer(home) == expected);
  CHECK(daemon.status().counters.num_requests == before.counters.num_requests + 1);
  CHECK(before.counters.num_requests > 0);
}

}  // namespace

TEST_CASE("whatever is wrong with a model, the one that serves is not touched by its refusal",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  const DaemonProcess daemon(home);
  const std::string expected = answer(home);
  for (const Breakage& breakage : breakages()) {
    INFO(breakage.what);
    const Folder folder(home.file("broken"));
    breakage.make(folder);
    std::vector<std::string> command = {"load", folder.path()};
    command.insert(command.end(), breakage.flags.begin(), breakage.flags.end());
    const Ran ran = home.run(command);
    CHECK(ran.exit_status >= 3);
    CHECK(ran.exit_status <= 6);
    CHECK_THAT(ran.err, Catch::Contains(breakage.complaint));
    CHECK_THAT(ran.err, !Catch::Contains("was loaded again"));
    check_serves_on(home, daemon, expected);
  }
}

TEST_CASE("what lies in the place of a model's file is never waited for", TGI_NOT_UNDER_TSAN) {
  const Home home;
  DaemonProcess daemon(home);
  const std::string expected = answer(home);
  for (const std::string kind : {"pipe", "folder", "device", "socket", "loop"}) {
    for (const std::string name : {"config.json", "generation_config.json", "tokenizer.json",
                                   "tokenizer_config.json", "model.safetensors"}) {
      INFO(kind << " as " << name);
      const Folder folder(home.file("odd"));
      folder.replace(name, kind);
      const Ran ran = home.run({"load", folder.path()});
      CHECK(ran.exit_status >= 3);
      CHECK(ran.exit_status <= 4);
      CHECK_THAT(ran.err, Catch::Contains(name.substr(0, name.find('.'))));
      check_serves_on(home, daemon, expected);
      // What tgi reads of it itself.
      CHECK(home.run({"show", folder.path()}).exit_status <= 4);
    }
  }
  // Links to files are what the hub's cache consists of.
  const Folder folder(home.file("linked"));
  fs::rename(folder.file("model.safetensors"), home.file("blob"));
  fs::create_symlink(home.file("blob"), folder.file("model.safetensors"));
  CHECK(home.run({"load", folder.path()}).exit_status == 0);
  CHECK(answer(home) == expected);
  daemon.signal(SIGTERM);
  CHECK(daemon.wait() == 0);
}

TEST_CASE("weights that are cut short while they are mapped cost the load, not the daemon",
          TGI_NOT_UNDER_TSAN) {
  const Home home;
  DaemonProcess daemon(home);
  const std::string expected = answer(home);
  // Large enough to be mapped: an embedding of zeros at the end of the file, where a hole keeps it.
  constexpr int64_t kVocab = 100'000;
  const Folder folder(home.file("large"));
  folder.config("vocab_size", kVocab);
  const std::string weights = folder.file("model.safetensors");
  const auto data_bytes = static_cast<int64_t>(fs::file_size(weights));
  folder.weights([&](Json& header) {
    // What was the embedding stays, as a tensor that is known and not needed.
    const std::string embedding = "model.embed_tokens.weight";
    header["model.layers.0.self_attn.rotary_emb.inv_freq"] = header[embedding];
    int64_t end = 0;
    for (const auto& [name, tensor] : header.items()) {
      if (name != "__metadata__") end = std::max(end, tensor["data_offsets"][1].get<int64_t>());
    }
    header[embedding] = {{"dtype", "BF16"},
                         {"shape", {kVocab, 256}},
                         {"data_offsets", {end, end + kVocab * 256 * 2}}};
  });
  fs::resize_file(weights, static_cast<uintmax_t>(static_cast<int64_t>(fs::file_size(weights)) +
                                                  kVocab * 256 * 2));
  REQUIRE(home.run({"load", folder.path()}).exit_status == 0);
  // So large a KV cache for each, of which nothing is touched, that there is no room for both.
  const int64_t more_than_half = daemon.status().model->memory.available / 100 * 55;
  const std::string kv_cache = std::to_string(more_than_half);
  REQUIRE(home.run({"load", "demo", "--kv-cache-memory", kv_cache}).exit_status == 0);

  // The load waits for these, when it has opened and checked the files.
  std::vector<std::unique_ptr<RawConnection>> running;
  for (int i = 0; i < 16; ++i) {
    running.push_back(std::make_unique<RawConnection>(daemon.socket()));
    running.back()->send_request(
        ipc::kGenerate, {{"prompt", "Once"}, {"max_new_tokens", 900}, {"ignore_eos", true}});
  }
  REQUIRE(daemon.wait_for(
      [](const ipc::Status& status) { return status.model && status.model->num_running > 0; }));
  std::optional<Error> failure;
  std::jthread load([&] {
    try {
      ipc::LoadParams params{.model = folder.path()};
      params.settings.set("kv-cache-memory", kv_cache);
      (void)daemon.client().call(ipc::kLoad, ipc::to_json(params));
    } catch (const Error& error) {
      failure = error;
    }
  });
  REQUIRE(daemon.wait_for([](const ipc::Status& status) { return status.phase == "draining"; }));
  fs::resize_file(weights, static_cast<uintmax_t>(data_bytes));
  load.join();
  REQUIRE(failure);
  CHECK(failure->code() == Code::kInvalidArgument);
  CHECK_THAT(failure->what(), Catch::Contains(weights) && Catch::Contains("was cut to") &&
                                  Catch::Contains("demo, which served before, was loaded again"));
  CHECK(daemon.status().phase == "ready");
  CHECK(daemon.status().model->name == "demo");
  CHECK(answer(home) == expected);
}

}  // namespace tgi
