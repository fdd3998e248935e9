// The daemon as a service: sockets that are handed over, messages to the manager, who may connect.
// The manager is played by the test: nothing of systemd is needed.
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "ipc/socket_access.h"
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  return address;
}

UniqueFd bound_socket(int type, const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

// Plays systemd for one daemon.
class Manager {
 public:
  explicit Manager(const Home& home)
      : socket_(home.socket()), notify_path_(home.file("notify")), log_(home.file("tgid.log")) {
    notify_ = bound_socket(SOCK_DGRAM, notify_path_);
    listener_ = bound_socket(SOCK_STREAM, socket_);
    REQUIRE(::listen(listener_.get(), 16) == 0);
  }
  ~Manager() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void start(std::vector<std::string> flags, const std::string& watchdog_us = "") {
    flags.insert(flags.begin(), tgid_binary());
    std::vector<char*> arguments;
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      // dup2 clears close-on-exec, but not when the descriptor is 3 already.
      if (::dup2(::dup(listener_.get()), 3) != 3) ::_exit(100);
      ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
      ::setenv("LISTEN_FDS", "1", 1);
      ::setenv("NOTIFY_SOCKET", notify_path_.c_str(), 1);
      if (!watchdog_us.empty()) ::setenv("WATCHDOG_USEC", watchdog_us.c_str(), 1);
      (void)!::freopen(log_.c_str(), "w", stderr);
      ::execv(arguments[0], arguments.data());
      ::_exit(101);
    }
  }

  // Reads messages until one begins with `start`; "" after `timeout_ms`.
  std::string wait_for(const std::string& start, int timeout_ms = 20000) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (std::chrono::steady_clock::now() < deadline) {
      pollfd ready{.fd = notify_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 50) <= 0) continue;
      char bytes[4096];
      const ssize_t count = ::recv(notify_.get(), bytes, sizeof bytes, 0);
      const std::string message(bytes, static_cast<size_t>(std::max<ssize_t>(count, 0)));
      if (message.starts_with(start)) return message;
    }
    return "";
  }

  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ipc::Status status() const { return ipc::Client({.socket_path = socket_}).status(); }
  const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
  std::string notify_path_;
  std::string log_;
  UniqueFd notify_;
  UniqueFd listener_;
  pid_t pid_ = -1;
};

// `tgi ARGUMENTS` as nobody; its exit status, or nothing when that can't be tried here. What it
// writes is appended to `log`.
std::optional<int> tgi_as_nobody(const std::string& arguments,
                                 gid_t group,
                                 const std::string& more_groups = "",
                                 const std::string& log = "/dev/null") {
  const std::string others = more_groups.empty() ? "--clear-groups" : "--groups " + more_groups;
  const std::string prefix = "setpriv --reuid 65534 --regid " + std::to_string(group) + " " +
                             others + " " + tgi_binary() + " ";
  if (::geteuid() != 0 || std::system((prefix + "--version >/dev/null 2>&1").c_str()) != 0) {
    WARN("not root, or the build folder is private: other users' access is not tested");
    return std::nullopt;
  }
  const int status = std::system((prefix + arguments + " >>" + log + " 2>&1").c_str());
  return WEXITSTATUS(status);
}

void open_folder(const std::string& path) {
  std::filesystem::permissions(path, std::filesystem::perms(0711));
}

}  // namespace

TEST_CASE(
    "a client that waits in a socket handed over is answered; the socket outlives the daemon") {
  const Home home;
  Manager manager(home);
  // Asked before there is a daemon: that is what activation is for.
  ipc::Status early;
  std::jthread client([&] { early = manager.status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  manager.start({"--no-model"});
  CHECK(manager.wait_for("READY=1") == "READY=1");
  client.join();
  CHECK(early.socket == manager.socket());
  CHECK(early.phase == "no model");
  manager.signal(SIGTERM);
  CHECK(manager.wait() == 0);
  CHECK(std::filesystem::exists(manager.socket()));
  manager.start({"--no-model"});
  CHECK(manager.wait_for("READY=1") == "READY=1");
  CHECK(manager.status().phase == "no model");
}

TEST_CASE("the manager is told what the daemon does, and how long draining may take") {
  const Home home;
  Manager manager(home);
  manager.start({"--model", "demo", "--drain-timeout", "200"});
  CHECK(manager.wait_for("READY=1") == "READY=1");
  CHECK(manager.wait_for("STATUS=ready") != "");
  const Ran unloaded = home.run({"unload"});
  CHECK(unloaded.exit_status == 0);
  CHECK(manager.wait_for("STATUS=no model") == "STATUS=no model");
  manager.signal(SIGTERM);
  const std::string stopping = manager.wait_for("STOPPING=1\nEXTEND_TIMEOUT_USEC=");
  REQUIRE(stopping != "");
  CHECK(std::stoll(stopping.substr(stopping.find('=', 11) + 1)) >= 200'000'000);
  CHECK(manager.wait() == 0);
}

TEST_CASE("an idle daemon gives the watchdog its sign of life, and does not without one") {
  const Home home;
  {
    Manager manager(home);
    manager.start({"--no-model"}, "400000");
    REQUIRE(manager.wait_for("READY=1") != "");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i) CHECK(manager.wait_for("WATCHDOG=1", 2000) == "WATCHDOG=1");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    CHECK(took.count() > 0.4);  // it is no busy loop
  }
  const Home other;
  Manager manager(other);
  manager.start({"--no-model"});
  REQUIRE(manager.wait_for("READY=1") != "");
  CHECK(manager.wait_for("WATCHDOG=1", 500) == "");
}

TEST_CASE("a device that hangs under a request costs the sign of life, an idle one does not") {
  const Home home;
  const std::string hang = home.file("hang");
  ::setenv("TGI_PLUGIN_DIR", TGI_BINARY_DIR "/emulated", 1);
  ::setenv("TGI_EMULATED_GPU_HANG", hang.c_str(), 1);
  Manager manager(home);
  manager.start({"--model", "demo", "--backend", "cuda", "--max-total-tokens", "256",
                 "--max-batch-tokens", "32", "--max-running", "2", "--stall-timeout", "1"},
                "400000");
  ::unsetenv("TGI_PLUGIN_DIR");
  ::unsetenv("TGI_EMULATED_GPU_HANG");
  REQUIRE(manager.wait_for("STATUS=ready", 60000) != "");
  // Longer than the time that a step may take.
  for (int i = 0; i < 8; ++i) CHECK(manager.wait_for("WATCHDOG=1", 5000) == "WATCHDOG=1");
  REQUIRE(std::system(("touch " + hang).c_str()) == 0);
  std::string text;
  std::jthread client([&] {
    ipc::GenerateRequest request;
    request.prompt = "Once";
    request.params.max_new_tokens = 4;
    text = ipc::Client({.socket_path = manager.socket()}).generate(request, {}).best.text;
  });
  bool has_stopped = false;
  for (int i = 0; i < 100 && !has_stopped; ++i)
    has_stopped = manager.wait_for("WATCHDOG=1", 2500) == "";
  CHECK(has_stopped);
  CHECK(manager.status().phase == "ready");  // its I/O is well
  std::filesystem::remove(hang);
  CHECK(manager.wait_for("WATCHDOG=1", 20000) == "WATCHDOG=1");
  client.join();
  CHECK_FALSE(text.empty());
}

TEST_CASE("what is handed over must be one listening Unix socket; another process's is not ours") {
  const Home home;
  const std::string tail = " --no-model --socket " + home.socket() + " 2>" + home.file("log");
  // $$ is the shell, which `timeout` replaces; tgid is its child: the variables are not for it.
  const std::string others =
      "bash -c 'export LISTEN_PID=$$ LISTEN_FDS=3; exec timeout 2 " + tgid_binary() + tail + "'";
  CHECK(WEXITSTATUS(std::system(others.c_str())) == 124);
  const std::string direct = "bash -c 'export LISTEN_PID=$$ LISTEN_FDS=COUNT; exec " +
                             tgid_binary() + tail + " 3</dev/null'";
  const auto with_count = [&](const std::string& count) {
    std::string command = direct;
    command.replace(command.find("COUNT"), 5, count);
    return WEXITSTATUS(std::system(command.c_str()));
  };
  CHECK(with_count("2") == 3);
  CHECK_THAT(read_file(home.file("log")), Catch::Contains("hands over 2 sockets, expected one"));
  CHECK(with_count("1") == 3);
  CHECK_THAT(read_file(home.file("log")), Catch::Contains("not a listening Unix stream socket"));
}

TEST_CASE("a socket that was handed over lets in whom its mode does") {
  const Home home;
  open_folder(home.file(""));
  Manager manager(home);
  open_folder(std::filesystem::path(manager.socket()).parent_path().string());
  manager.start({"--no-model"});
  REQUIRE(manager.wait_for("READY=1") != "");
  const std::string ask = "ps --socket " + manager.socket();
  std::filesystem::permissions(manager.socket(), std::filesystem::perms(0600));
  const std::optional<int> kept_out = tgi_as_nobody(ask, 65534);
  if (!kept_out) return;
  CHECK(*kept_out == 8);
  REQUIRE(::chown(manager.socket().c_str(), 0, 65534) == 0);
  std::filesystem::permissions(manager.socket(), std::filesystem::perms(0660));
  CHECK(tgi_as_nobody(ask, 65534) == 0);
}

TEST_CASE("--allow-group lets in the members of the group and nobody else") {
  const group* entry = ::getgrgid(65534);
  if (entry == nullptr) return;
  const Home home;
  open_folder(home.file(""));
  const std::string ask = "ps --socket " + home.socket();
  {
    const DaemonProcess daemon(home, {"--no-model"});
    const std::optional<int> kept_out = tgi_as_nobody(ask, 65534);
    if (!kept_out) return;
    CHECK(*kept_out == 8);
  }
  const DaemonProcess daemon(home, {"--no-model", "--allow-group", entry->gr_name});
  CHECK(tgi_as_nobody(ask, 65534) == 0);
  CHECK(tgi_as_nobody(ask, 12345) == 8);
  struct stat status {};
  REQUIRE(::stat(home.socket().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0660);
}

TEST_CASE("--manage-group parts those who may use the daemon from those who may manage it") {
  const group* use = ::getgrgid(65534);
  const std::string use_name = use == nullptr ? "" : use->gr_name;
  constexpr gid_t kManagers = 2;  // bin, whatever its name is
  const group* manage = ::getgrgid(kManagers);
  if (use_name.empty() || manage == nullptr) return;
  const std::string manage_name = manage->gr_name;
  const Home home;
  open_folder(home.file(""));
  const DaemonProcess daemon(
      home, {"--no-model", "--allow-group", use_name, "--manage-group", manage_name});
  const std::string on = " --socket " + home.socket();
  const std::string log = home.file("refusals");
  const std::optional<int> used = tgi_as_nobody("ps" + on, 65534);
  if (!used) return;
  CHECK(*used == 0);
  for (const std::string command :
       {"load demo", "unload", "stop", "quantize demo /tmp/none --format int8"}) {
    CAPTURE(command);
    CHECK(tgi_as_nobody(command + on, 65534, "", log) == 10);
  }
  CHECK_THAT(read_file(log), Catch::Contains("load: you may use this daemon, but not manage it") &&
                                 Catch::Contains(manage_name) && Catch::Contains("quantize: "));
  CHECK(daemon.status().phase == "no model");
  CHECK(tgi_as_nobody("load demo" + on, 65534, std::to_string(kManagers)) == 0);
  CHECK(tgi_as_nobody("generate hi --max-new-tokens 2" + on, 65534) == 0);
  CHECK(tgi_as_nobody("unload" + on, 65534) == 10);
  CHECK(home.run({"unload"}).exit_status == 0);  // the daemon's own user
  CHECK(tgi_as_nobody("stop" + on, 65534, std::to_string(kManagers)) == 0);
}

TEST_CASE("whom a service manager's socket lets in may use the daemon, not manage it") {
  const Home home;
  open_folder(home.file(""));
  Manager manager(home);
  open_folder(std::filesystem::path(manager.socket()).parent_path().string());
  manager.start({"--no-model"});
  REQUIRE(manager.wait_for("READY=1") != "");
  std::filesystem::permissions(manager.socket(), std::filesystem::perms(0666));
  const std::string on = " --socket " + manager.socket();
  const std::optional<int> used = tgi_as_nobody("ps" + on, 65534);
  if (!used) return;
  CHECK(*used == 0);
  CHECK(tgi_as_nobody("stop" + on, 65534) == 10);
  CHECK(manager.status().phase == "no model");
}

TEST_CASE("a group that does not exist ends the daemon with 3 and is named") {
  const Home home;
  const std::string command = tgid_binary() + " --no-model --allow-group no-such-group --socket " +
                              home.socket() + " 2>" + home.file("log");
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 3);
  CHECK_THAT(read_file(home.file("log")), Catch::Contains("there is no group no-such-group"));
}

TEST_CASE("a client trusts a service's user only where root alone could have put it") {
  using ipc::may_trust;
  const ipc::Peer service{.pid = 1, .uid = 65534};
  CHECK(may_trust({.pid = 1, .uid = ::geteuid()}, "/anywhere/s"));
  CHECK(may_trust({.pid = 1, .uid = 0}, "/anywhere/s"));
  const Home home;  // below /tmp, where everybody may write
  CHECK_FALSE(may_trust(service, home.file("s")));
  CHECK_FALSE(may_trust(service, "/nonexistent/s"));
  CHECK_FALSE(may_trust(service, "/run/s"));  // root's folder: not its own
  std::string folder = "/run/tgi-test.XXXXXX";
  if (::geteuid() != 0 || ::mkdtemp(folder.data()) == nullptr) return;
  REQUIRE(::chown(folder.c_str(), service.uid, 0) == 0);
  CHECK(may_trust(service, folder + "/s"));
  CHECK_FALSE(may_trust({.pid = 1, .uid = 65533}, folder + "/s"));
  std::filesystem::permissions(folder, std::filesystem::perms(0777));
  CHECK_FALSE(may_trust(service, folder + "/s"));
  std::filesystem::remove(folder);
}

}  // namespace tgi
