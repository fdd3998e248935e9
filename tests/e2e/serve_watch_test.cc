// What a gateway does about its daemon while it serves.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(static_cast<uint16_t>(port));
  return address;
}

int free_port() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = local(0);
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ::ntohs(address.sin_port);
}

struct Answer {
  int status = 0;  // 0: nobody answers
  std::string body;
  Json json() const { return Json::parse(body, nullptr, false); }
};

Answer ask(int port, const std::string& request) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = local(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string all;
  char bytes[4096];
  for (ssize_t count = 0; (count = ::recv(fd.get(), bytes, sizeof bytes, 0)) > 0;) {
    all.append(bytes, static_cast<size_t>(count));
  }
  const size_t end = all.find("\r\n\r\n");
  if (all.size() < 12 || end == std::string::npos) return {};
  return {.status = std::stoi(all.substr(9, 3)), .body = all.substr(end + 4)};
}

Answer get(int port, const std::string& path) {
  return ask(port, "GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
}

Answer post(int port, const std::string& path, const Json& json) {
  const std::string body = json.dump();
  return ask(port, "POST " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" +
                       "Content-Type: application/json\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body);
}

bool eventually(const std::function<bool()>& holds, int seconds = 60) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

// A gateway that starts its daemon, which is ended with it.
class Gateway {
 public:
  explicit Gateway(const Home& home, const std::vector<std::string>& flags = {"demo"})
      : client_({.socket_path = home.socket()}), port_(free_port()) {
    RunSetup setup;
    setup.arguments = {"serve"};
    setup.arguments.insert(setup.arguments.end(), flags.begin(), flags.end());
    setup.arguments.insert(setup.arguments.end(), {"--http", "127.0.0.1:" + std::to_string(port_)});
    setup.environment = {{"TGI_DAEMON", tgid_binary()}};
    process_.emplace(home, setup, Process::Kind::kPipes);
    REQUIRE(eventually([this] { return get(port_, "/health").status == 200; }));
  }
  ~Gateway() {
    ::kill(process_->pid(), SIGTERM);
    (void)process_->wait();
    const pid_t daemon = daemon_pid();
    if (daemon > 0) ::kill(daemon, SIGKILL);
  }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  int port() const { return port_; }
  pid_t daemon_pid() const {
    try {
      return static_cast<pid_t>(client_.status().pid);
    } catch (const Error&) {
      return 0;
    }
  }
  ipc::Client client() const { return client_; }

 private:
  const ipc::Client client_;
  const int port_;
  std::optional<Process> process_;
};

int generate(const Gateway& gateway) {
  return post(gateway.port(), "/generate",
              {{"inputs", "Once"}, {"parameters", {{"max_new_tokens", 3}}}})
      .status;
}

}  // namespace

TEST_CASE("a gateway starts its daemon again when it was killed, and says so") {
  const Home home;
  const Gateway gateway(home);
  CHECK(generate(gateway) == 200);
  for (int round = 0; round < 2; ++round) {
    const pid_t before = gateway.daemon_pid();
    REQUIRE(before > 0);
    REQUIRE(::kill(before, SIGKILL) == 0);
    std::string reason;
    REQUIRE(eventually([&] {
      const Answer health = get(gateway.port(), "/health");
      if (health.status == 503 && health.json().contains("reason"))
        reason = health.json()["reason"];
      return !reason.empty() || gateway.daemon_pid() > 0;
    }));
    if (!reason.empty()) CHECK_THAT(reason, Catch::Contains("was killed by signal 9"));
    REQUIRE(eventually([&] { return get(gateway.port(), "/health").status == 200; }));
    CHECK(gateway.daemon_pid() != before);
    CHECK(generate(gateway) == 200);
  }
}

TEST_CASE("a gateway loads the model that was served last again") {
  const Home home;
  const std::string folder = home.file("mine");
  std::filesystem::copy(std::string(TGI_SOURCE_DIR) + "/assets/demo", folder);
  const Gateway gateway(home);
  REQUIRE(home.run({"load", folder}).exit_status == 0);
  REQUIRE(eventually([&] { return get(gateway.port(), "/info").json()["model_id"] == folder; }));
  REQUIRE(::kill(gateway.daemon_pid(), SIGKILL) == 0);
  REQUIRE(eventually([&] { return get(gateway.port(), "/health").status != 200; }));
  REQUIRE(eventually([&] { return get(gateway.port(), "/health").status == 200; }));
  CHECK(gateway.client().status().model->name == folder);
}

TEST_CASE("models that come back with a new daemon stay as long as before") {
  const Home home;
  const Gateway gateway(home);
  REQUIRE(home.run({"load", "demo", "--pin"}).exit_status == 0);
  REQUIRE(home.run({"load", "demo", "--name", "kept", "--pin"}).exit_status == 0);
  REQUIRE(home.run({"load", "demo", "--name", "brief", "--keep-alive", "9m"}).exit_status == 0);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the gateway looks several times
  const pid_t before = gateway.daemon_pid();
  REQUIRE(::kill(before, SIGKILL) == 0);
  // How long a model stays is settled when it has been loaded.
  REQUIRE(eventually([&] {
    const pid_t now = gateway.daemon_pid();
    if (now <= 0 || now == before) return false;
    const ipc::Status status = gateway.client().status();
    return status.others.size() == 2 && status.stay.pinned &&
           ipc::find_model(status, "kept").stay.pinned &&
           ipc::find_model(status, "brief").stay.keep_alive_seconds == 540;
  }));
  CHECK_FALSE(ipc::find_model(gateway.client().status(), "brief").stay.pinned);
}

TEST_CASE("a daemon that was told to stop, or that another started, is not started again") {
  const Home home;
  {
    const Gateway gateway(home);
    REQUIRE(home.run({"stop"}).exit_status == 0);
    REQUIRE(eventually([&] {
      const Answer health = get(gateway.port(), "/health");
      return health.status == 503 && health.json().contains("reason");
    }));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    CHECK(gateway.daemon_pid() == 0);
    CHECK_THAT(get(gateway.port(), "/health").json()["reason"].get<std::string>(),
               Catch::Contains("told to stop"));
  }
  DaemonProcess daemon(home);
  const Gateway gateway(home);
  daemon.signal(SIGKILL);
  (void)daemon.wait();
  REQUIRE(eventually([&] { return get(gateway.port(), "/health").status == 503; }));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  CHECK(gateway.daemon_pid() == 0);
  CHECK_FALSE(get(gateway.port(), "/health").json().contains("reason"));
}

TEST_CASE("answers name the model that is loaded now, and keep its limits") {
  const Home home;
  const std::string folder = home.file("short");
  std::filesystem::copy(std::string(TGI_SOURCE_DIR) + "/assets/demo", folder);
  Json config = Json::parse(read_file(folder + "/config.json"));
  config["max_position_embeddings"] = 64;
  home.write("short/config.json", config.dump());
  const Gateway gateway(home);
  const auto chat = [&] {
    return post(gateway.port(), "/v1/chat/completions",
                {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"max_tokens", 3}})
        .json();
  };
  CHECK(get(gateway.port(), "/info").json()["max_total_tokens"] == 1024);
  CHECK(chat()["model"] == "demo");
  REQUIRE(home.run({"load", folder}).exit_status == 0);
  REQUIRE(
      eventually([&] { return get(gateway.port(), "/info").json()["model_id"] == folder; }, 10));
  const Json info = get(gateway.port(), "/info").json();
  CHECK(info["max_total_tokens"] == 64);
  CHECK(info["max_input_tokens"] == 63);
  CHECK(get(gateway.port(), "/v1/models").json()["data"][0]["id"] == folder);
  CHECK(chat()["model"] == folder);
  REQUIRE(home.run({"load", "demo"}).exit_status == 0);
  REQUIRE(
      eventually([&] { return get(gateway.port(), "/info").json()["model_id"] == "demo"; }, 10));
  CHECK(get(gateway.port(), "/info").json()["max_total_tokens"] == 1024);
}

}  // namespace tgi
