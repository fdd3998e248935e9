#include "ipc/line_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "tests/catch.h"
#include "tests/ipc/fake_daemon.h"

namespace tgi::ipc {
namespace {

struct Thrown {
  Code code;
  std::string message;
};

Thrown thrown_by(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  FAIL("nothing was thrown");
  return {Code::kInternal, ""};
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("lines come out the same however the bytes are cut") {
  const std::vector<std::string> lines = {"", "a", "привет", std::string(5000, 'x'), "{}", "😀"};
  std::string bytes;
  for (const std::string& line : lines) bytes += line + "\n";
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    LineReader reader;
    std::vector<std::string> out;
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = std::min<size_t>(1 + random() % (round + 1), bytes.size() - at);
      reader.feed(std::string_view(bytes).substr(at, count));
      at += count;
      while (auto line = reader.next()) out.push_back(*line);
    }
    REQUIRE(out == lines);
    REQUIRE(reader.num_pending_bytes() == 0);
  }
}

TEST_CASE("a line at the limit is taken and a longer one refused before its end") {
  LineReader reader(10);
  reader.feed("0123456789");
  CHECK_FALSE(reader.next());
  reader.feed("\n");
  CHECK(reader.next() == "0123456789");
  reader.feed("0123456789a");
  const Thrown thrown = thrown_by([&] { (void)reader.next(); });
  CHECK(thrown.code == Code::kInvalidArgument);
  CHECK_THAT(thrown.message, Catch::Contains("more than 10 bytes"));
}

TEST_CASE("whole lines before one that is too long still come out") {
  LineReader reader(4);
  reader.feed("ok\n12345678");
  CHECK(reader.next() == "ok");
  CHECK(thrown_by([&] { (void)reader.next(); }).code == Code::kInvalidArgument);
}

TEST_CASE("a line that is not UTF-8 is refused with the place") {
  struct Row {
    std::string bytes;
    size_t valid;
  };
  const Row row = GENERATE(Row{"abc\xFF", 3}, Row{"\xC0\x80", 0}, Row{"a\xE2\x82", 1},
                           Row{"\xED\xA0\x80", 0}, Row{"\xF4\x90\x80\x80", 0},
                           Row{"\xF0\x80\x80\x80", 0}, Row{"\x80", 0}, Row{"é\xC3", 2});
  CHECK(valid_utf8_prefix(row.bytes) == row.valid);
  LineReader reader;
  reader.feed(row.bytes + "\n");
  CHECK_THAT(thrown_by([&] { (void)reader.next(); }).message,
             Catch::EndsWith("not valid UTF-8 at its byte " + std::to_string(row.valid)));
}

TEST_CASE("every character from the first to the last is valid UTF-8") {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | c >> 6), put(0x80 | (c & 63));
    } else if (c < 0x10000) {
      put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    } else {
      put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)),
          put(0x80 | (c & 63));
    }
    if (valid_utf8_prefix(text) != text.size()) FAIL("U+" << std::hex << c);
  }
}

TEST_CASE("the socket and its folder are private from the start") {
  const TempFolder folder;
  const std::string path = folder.file("deep/er/tgid.sock");
  const mode_t umask_before = ::umask(0);
  const UnixListener listener = listen_unix(path);
  ::umask(umask_before);
  CHECK(mode_of(path) == 0600);
  CHECK(mode_of(folder.file("deep/er")) == 0700);
  CHECK(mode_of(path + ".lock") == 0600);
}

TEST_CASE("a client reaches the listener and is known by its user") {
  const TempFolder folder;
  UnixListener listener = listen_unix(folder.file("s"));
  CHECK_FALSE(listener.accept());
  const UniqueFd client = connect_unix(folder.file("s"));
  const std::optional<UniqueFd> server = listener.accept();
  REQUIRE(server);
  CHECK(peer_uid(server->get()) == ::geteuid());
  CHECK(peer_of(client.get()).pid == ::getpid());
  CHECK(may_connect(::geteuid()));
  CHECK(may_connect(0));
  CHECK_FALSE(may_connect(::geteuid() + 12345));

  std::string_view text = "hello\n";
  CHECK(write_from(client.get(), text) == WriteStatus::kDone);
  LineReader reader;
  CHECK(read_into(server->get(), reader) == ReadStatus::kData);
  CHECK(reader.next() == "hello");
  CHECK(read_into(server->get(), reader) == ReadStatus::kWouldBlock);
}

TEST_CASE("a full socket says so and a left one is closed, without a signal") {
  const TempFolder folder;
  UnixListener listener = listen_unix(folder.file("s"));
  UniqueFd client = connect_unix(folder.file("s"));
  std::optional<UniqueFd> server = listener.accept();
  REQUIRE(server);
  const std::string big(8 << 20, 'x');
  std::string_view rest = big;
  CHECK(write_from(server->get(), rest) == WriteStatus::kWouldBlock);
  CHECK(rest.size() < big.size());
  client.reset();
  CHECK(write_from(server->get(), rest) == WriteStatus::kClosed);
  LineReader reader;
  CHECK(read_into(server->get(), reader) == ReadStatus::kClosed);
}

TEST_CASE("the socket of a dead daemon is replaced") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  const pid_t child = ::fork();
  if (child == 0) {
    UnixListener* leaked = new UnixListener(listen_unix(path));
    ::_exit(leaked->fd() >= 0 ? 0 : 1);  // no destructor runs, as with a kill
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(std::filesystem::exists(path));
  CHECK_FALSE(someone_listens(path));
  CHECK(thrown_by([&] { connect_unix(path); }).code == Code::kUnavailable);

  const UnixListener listener = listen_unix(path);
  CHECK(someone_listens(path));
  CHECK_NOTHROW(connect_unix(path));
}

TEST_CASE("a second daemon at the same path is refused and the first keeps its socket") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  const UnixListener first = listen_unix(path);
  const Thrown thrown = thrown_by([&] { listen_unix(path); });
  CHECK(thrown.code == Code::kOverloaded);
  CHECK_THAT(thrown.message,
             Catch::Contains(path) &&
                 Catch::Contains(fmt::format("another daemon (pid {})", ::getpid())) &&
                 Catch::Contains("`tgi stop`"));
  CHECK_NOTHROW(connect_unix(path));
}

TEST_CASE("a daemon whose socket was removed is named, for no command reaches it") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  const UnixListener first = listen_unix(path);
  ::unlink(path.c_str());
  const Thrown thrown = thrown_by([&] { listen_unix(path); });
  CHECK(thrown.code == Code::kOverloaded);
  CHECK_THAT(thrown.message, Catch::Contains("no socket is there") &&
                                 Catch::Contains(fmt::format("`kill {}`", ::getpid())));
}

TEST_CASE("a daemon whose socket and lock were removed leaves another one's socket alone") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  auto first = std::make_unique<UnixListener>(listen_unix(path));
  ::unlink(path.c_str());
  ::unlink((path + ".lock").c_str());
  const UnixListener second = listen_unix(path);
  first.reset();
  CHECK_NOTHROW(connect_unix(path));
}

TEST_CASE("of many daemons that start at once on a stale socket exactly one wins") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> num_winners = 0;
    std::atomic<bool> go = false;
    std::mutex mutex;
    std::vector<UnixListener> winners;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        try {
          UnixListener listener = listen_unix(path);
          ++num_winners;
          const std::lock_guard lock(mutex);
          winners.push_back(std::move(listener));
        } catch (const Error& error) {
          if (error.code() != Code::kOverloaded) num_winners += 100;
        }
      });
    }
    go = true;
    for (std::thread& thread : threads) thread.join();
    REQUIRE(num_winners == 1);
    REQUIRE(someone_listens(path));
  }
}

TEST_CASE("a program that listens there without our lock is left alone") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  const UnixListener first = listen_unix(path);
  std::filesystem::remove(path + ".lock");
  const Thrown thrown = thrown_by([&] { listen_unix(path); });
  CHECK(thrown.code == Code::kOverloaded);
  CHECK_THAT(thrown.message, Catch::Contains("another program already listens"));
}

TEST_CASE("a path that is too long is refused with its length") {
  const TempFolder folder;
  const std::string path = folder.file(std::string(120, 'x'));
  for (const Thrown& thrown :
       {thrown_by([&] { listen_unix(path); }), thrown_by([&] { connect_unix(path); })}) {
    CHECK(thrown.code == Code::kInvalidArgument);
    CHECK_THAT(thrown.message, Catch::Contains(std::to_string(path.size()) + " bytes") &&
                                   Catch::Contains("1 to 107"));
  }
}

TEST_CASE("a file that is not a socket is not removed") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  std::ofstream(path) << "precious";
  const Thrown thrown = thrown_by([&] { listen_unix(path); });
  CHECK(thrown.code == Code::kInvalidArgument);
  CHECK(std::filesystem::file_size(path) == 8);
}

TEST_CASE("a folder where others may write is refused") {
  const TempFolder folder;
  const std::string open_folder = folder.file("open");
  std::filesystem::create_directory(open_folder);
  REQUIRE(::chmod(open_folder.c_str(), 0777) == 0);
  const Thrown thrown = thrown_by([&] { listen_unix(open_folder + "/s"); });
  CHECK(thrown.code == Code::kInvalidArgument);
  CHECK_THAT(thrown.message, Catch::Contains("others may write to it (mode 777)"));
  REQUIRE(::chmod(open_folder.c_str(), 01777) == 0);  // like /tmp: nobody can replace our file
  CHECK_NOTHROW(listen_unix(open_folder + "/s"));
}

TEST_CASE("connecting where nobody listens says so") {
  const TempFolder folder;
  for (const std::string& path : {folder.file("s"), folder.file("no/such/s")}) {
    const Thrown thrown = thrown_by([&] { connect_unix(path); });
    CHECK(thrown.code == Code::kUnavailable);
    CHECK(thrown.message == "no daemon is running at " + path);
    CHECK_FALSE(someone_listens(path));
  }
}

TEST_CASE("the socket file goes with its listener") {
  const TempFolder folder;
  const std::string path = folder.file("s");
  {
    UnixListener first = listen_unix(path);
    const UnixListener moved = std::move(first);
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace tgi::ipc
