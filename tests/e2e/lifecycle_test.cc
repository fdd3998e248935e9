// Starting, loading, draining and dying.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {

TEST_CASE("SIGTERM lets running work finish, refuses new work, and exits 0") {
  const Home home;
  DaemonProcess daemon(home);
  RawConnection running(daemon.socket());
  running.send_request(ipc::kGenerate, {{"prompt", "Once upon a time"},
                                        {"stream", true},
                                        {"ignore_eos", true},
                                        {"max_new_tokens", 900}});
  REQUIRE(ipc::decode_reply(running.read_line()).token);
  daemon.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::string refusal;
  try {
    ipc::GenerateRequest late;
    late.prompt = "hi";
    (void)daemon.client().generate(late, {});
  } catch (const Error& error) {
    refusal = error.what();
  }
  ipc::Reply reply;
  do {
    reply = ipc::decode_reply(running.read_line());
  } while (reply.token);
  REQUIRE(reply.done);
  CHECK(reply.done->best.num_generated_tokens == 900);
  CHECK(daemon.wait() == 0);
  INFO(refusal);
  CHECK(refusal.find("stopping") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(daemon.socket()));
}

// Layers are many and small: the load takes long, and not much memory.
TEST_CASE("SIGTERM ends a load that is under way, and those that wait, and tells who asked") {
  const Home home;
  DaemonProcess daemon(home, {"--no-model"});
  std::filesystem::create_directory(home.file("deep"));
  home.write("deep/config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 400,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 300, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128, "torch_dtype": "bfloat16", "hidden_act": "silu"})");
  RawConnection loading(daemon.socket());
  loading.send_request(ipc::kLoad, {{"model", home.file("deep")},
                                    {"load_format", "dummy"},
                                    {"quantize", "int4"},
                                    {"kv_cache_memory", 16 << 20},
                                    {"max_total_tokens", 16}});
  REQUIRE(daemon.wait_for([](const ipc::Status& status) { return status.phase == "loading"; }));
  RawConnection waiting(daemon.socket());
  waiting.send_request(ipc::kUnload, ipc::OrderedJson::object());
  // Behind it, so that it has been taken up.
  CHECK(daemon.status().phase == "loading");
  daemon.signal(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  for (RawConnection* connection : {&waiting, &loading}) {
    const ipc::Reply reply = ipc::decode_reply(connection->read_line(60000));
    REQUIRE(reply.error);
    INFO(reply.error->what());
    CHECK((reply.error->code() == Code::kCancelled || reply.error->code() == Code::kOverloaded));
    CHECK_THAT(reply.error->what(), Catch::Contains("stop"));
  }
  CHECK(daemon.wait() == 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() < 10);
}

// With no session open that could end and so give a descriptor back.
TEST_CASE("a daemon that could not accept accepts again when it can") {
  const Home home;
  const DaemonProcess daemon(home, {"--no-model"});
  rlimit before{};
  REQUIRE(::prlimit(daemon.pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 0;
  REQUIRE(::prlimit(daemon.pid(), RLIMIT_NOFILE, &none, nullptr) == 0);
  const UniqueFd first = ipc::connect_unix(daemon.socket());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double cpu = daemon.cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  CHECK(daemon.cpu_seconds() - cpu < 0.1);  // it waits, it does not spin
  CHECK_THAT(read_file(home.file("tgid.log")), Catch::Contains("can't accept"));
  REQUIRE(::prlimit(daemon.pid(), RLIMIT_NOFILE, &before, nullptr) == 0);
  pollfd greeted{.fd = first.get(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&greeted, 1, 5000) == 1);
  CHECK(daemon.status().phase == "no model");
}

TEST_CASE("the probe reports the instruction set that was asked for, and the threads",
          TGI_NOT_UNDER_SANITIZERS) {
  const Home home;
  for (const std::string isa : {"generic", "nonsense"}) {
    const std::string command =
        "'" + tgid_binary() + "' --cpu-isa " + isa + " --threads 1 --probe 2>&1";
    FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    const int status = ::pclose(pipe);
    INFO(text);
    if (isa == "nonsense") {
      CHECK(status != 0);
      CHECK_THAT(text, Catch::Contains("--cpu-isa") && Catch::Contains("avx2, generic") &&
                           Catch::Contains("\"nonsense\""));
      continue;
    }
    CHECK(status == 0);
    const ipc::OrderedJson cpu = ipc::OrderedJson::parse(text).at("backends").at(0);
    CHECK(cpu.at("name") == "cpu");
    CHECK(cpu.at("isa") == isa);
    CHECK(cpu.at("num_threads") == 1);
    CHECK(cpu.at("left_out").empty());
  }
}

TEST_CASE("past the drain deadline running work gets a final error, never a cut socket") {
  const Home home;
  DaemonProcess daemon(home, {"--drain-timeout", "0"});
  RawConnection running(daemon.socket());
  running.send_request(ipc::kGenerate, {{"prompt", "Once upon a time"},
                                        {"stream", true},
                                        {"ignore_eos", true},
                                        {"max_new_tokens", 1000}});
  REQUIRE(ipc::decode_reply(running.read_line()).token);
  daemon.signal(SIGTERM);
  ipc::Reply reply;
  do {
    const std::string line = running.read_line();
    REQUIRE_FALSE(line.empty());
    reply = ipc::decode_reply(line);
  } while (reply.token);
  REQUIRE(reply.error);
  CHECK(reply.error->code() == Code::kCancelled);
  CHECK(daemon.wait() == 0);
}

TEST_CASE(
    "a daemon killed in the middle of a stream is told as such, and its socket can be taken over") {
  const Home home;
  {
    DaemonProcess daemon(home);
    Process process(home, {{"generate", "Once", "--stream", "--ignore-eos"}, "", {}, std::nullopt},
                    Process::Kind::kPipes);
    REQUIRE(process.wait_for_output(" "));
    daemon.signal(SIGKILL);
    CHECK(process.wait() == 8);
    CHECK(daemon.wait() == 128 + SIGKILL);
  }
  CHECK(std::filesystem::exists(home.socket()));
  const DaemonProcess next(home);
  CHECK(next.status().phase == "ready");
}

TEST_CASE("a second daemon on the same socket is refused and the first goes on") {
  const Home home;
  const DaemonProcess first(home);
  const std::string command =
      tgid_binary() + " --socket " + home.socket() + " > /dev/null 2> " + home.file("second.log");
  CHECK(std::system(command.c_str()) != 0);
  CHECK(read_file(home.file("second.log")).find(home.socket()) != std::string::npos);
  CHECK(first.status().phase == "ready");
}

TEST_CASE("models are loaded, refused with the reason, unloaded and loaded again") {
  const Home home;
  const DaemonProcess daemon(home, {"--no-model"});
  CHECK(daemon.status().phase == "no model");
  CHECK(home.run({"generate", "hi"}).exit_status == 4);
  const Ran missing = home.run({"load", home.file("not-there")});
  CHECK(missing.exit_status == 4);
  CHECK(missing.err.find("not-there") != std::string::npos);

  // One file in the folder is missing or wrong at a time.
  const std::string golden = std::string(TGI_SOURCE_DIR) + "/tests/golden/models/llama";
  const std::string folder = home.file("broken");
  std::filesystem::copy(golden, folder, std::filesystem::copy_options::recursive);
  CHECK(home.run({"load", folder}).err.find("tokenizer") != std::string::npos);
  std::filesystem::remove(folder + "/model.safetensors");
  CHECK(home.run({"load", folder, "--load-format", "dummy"}).exit_status == 0);
  CHECK(home.run({"generate", "hi", "--max-new-tokens", "4"}).exit_status == 0);
  home.write("broken/config.json", R"({"architectures": ["MysteryForCausalLM"]})");
  const Ran unknown = home.run({"load", folder});
  CHECK(unknown.exit_status == 5);
  CHECK(unknown.err.find("MysteryForCausalLM") != std::string::npos);
  // The model that was there goes on.
  CHECK(daemon.status().phase == "ready");
  CHECK(home.run({"generate", "hi", "--max-new-tokens", "4"}).exit_status == 0);

  CHECK(home.run({"load", "demo"}).exit_status == 0);
  CHECK(home.run({"generate", "hi", "--max-new-tokens", "4"}).exit_status == 0);
  const int64_t dense_bytes = daemon.status().model->memory.weights;

  // A group size that can't be is refused before the model gives way.
  const Ran odd = home.run({"load", "demo", "--quantize", "int8", "--quantize-group-size", "100"});
  CHECK(odd.exit_status == 3);
  CHECK(odd.err.find("group size 100") != std::string::npos);
  CHECK(daemon.status().model->quantize == "none");
  for (const auto& [kind, share] : {std::pair{"int8", 0.60}, {"int4", 0.45}}) {
    INFO(kind);
    CHECK(home.run({"load", "demo", "--quantize", kind}).exit_status == 0);
    CHECK(daemon.status().model->quantize == kind);
    CHECK(static_cast<double>(daemon.status().model->memory.weights) <
          share * static_cast<double>(dense_bytes));
    const Ran answer = home.run({"generate", "Once upon a time", "--max-new-tokens", "12"});
    CHECK(answer.exit_status == 0);
    CHECK_FALSE(answer.out.empty());
  }
  CHECK(home.run({"unload"}).exit_status == 0);
  CHECK(daemon.status().phase == "no model");
}

TEST_CASE("an idle daemon with a model uses less than one percent of a processor",
          TGI_NOT_UNDER_SANITIZERS) {
  const Home home;
  const DaemonProcess daemon(home);
  ipc::GenerateRequest request;
  request.prompt = "Once";
  request.params.max_new_tokens = 5;
  (void)daemon.client().generate(request, {});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = daemon.cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  CHECK(daemon.cpu_seconds() - before < 0.03);
}

TEST_CASE("settings come from flags, then the environment, then defaults, and say so") {
  const Home home;
  const std::string command = "TGI_THREADS=1 TGI_MAX_RUNNING=9 " + tgid_binary() +
                              " --max-running 7 --print-config > " + home.file("config");
  CHECK(std::system(command.c_str()) == 0);
  const std::string config = read_file(home.file("config"));
  CHECK(config.find("--max-running)") != std::string::npos);
  CHECK(config.find("TGI_THREADS)") != std::string::npos);
  CHECK(config.find("(default)") != std::string::npos);
  const std::string bad =
      "TGI_THREADS=many " + tgid_binary() + " --print-config > /dev/null 2> " + home.file("error");
  CHECK(WEXITSTATUS(std::system(bad.c_str())) == 3);
  CHECK(read_file(home.file("error")).find("TGI_THREADS") != std::string::npos);
}

TEST_CASE("a daemon that could open too few files refuses to start, with the number it needs") {
  const Home home;
  const std::string command = "ulimit -n 20; exec " + tgid_binary() + " --no-model --socket " +
                              home.socket() + " 2>" + home.file("err");
  const int status = std::system(command.c_str());
  CHECK(WEXITSTATUS(status) == 3);
  CHECK_THAT(read_file(home.file("err")), Catch::Contains("limited to 20, expected at least 64"));
  CHECK_FALSE(std::filesystem::exists(home.socket()));
}

TEST_CASE("a value that a flag of tgid can't have ends it as a wrong command line does") {
  const Home home;
  const auto run = [&](const std::string& words, const std::string& more) {
    const std::string command =
        tgid_binary() + " " + words + " --socket " + home.socket() + " " + more;
    return WEXITSTATUS(std::system(command.c_str()));
  };
  for (const char* words : {"--dtype foo", "--max-running 0", "--nonsense"}) {
    CAPTURE(words);
    CHECK(run(words, "2>" + home.file("err")) == 2);
    CHECK_THAT(read_file(home.file("err")), Catch::StartsWith("tgid: "));
    CHECK(run(words, "2>/dev/full") == 2);
  }
  CHECK(run("--help", ">/dev/full 2>/dev/full") == code_row(Code::kOutOfMemory).exit_status);
}

TEST_CASE("a gateway whose port is taken starts no daemon") {
  const Home home;
  const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(other.get(), any, size) == 0);
  REQUIRE(::listen(other.get(), 1) == 0);
  REQUIRE(::getsockname(other.get(), any, &size) == 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const Ran ran = home.run({"serve", "demo", "--http", "127.0.0.1:" + port});
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::Contains("can't listen on 127.0.0.1 port " + port) &&
                          !Catch::Contains("starting"));
  CHECK_FALSE(std::filesystem::exists(home.socket()));
}

}  // namespace tgi
