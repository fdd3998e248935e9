// The log of a daemon that a command has started is put aside before it fills the disk.
#include "daemon/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi::daemon {
namespace {

using namespace std::chrono_literals;

// One that logs, as a daemon does after a command opened the file for it.
class Logging {
 public:
  explicit Logging(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)),
        log_(path, fd_.get(), 10) {}

  void write(const std::string& text) {
    REQUIRE(::write(fd_.get(), text.data(), text.size()) == std::ssize(text));
    now_ += 2s;
    log_.look(now_);
  }

 private:
  UniqueFd fd_;
  LogFile::Clock::time_point now_{1h};
  LogFile log_;
};

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("a log that is full is put aside, and one before it is kept") {
  const TempFolder folder;
  const std::string path = folder.file("tgid.log");
  Logging one(path);
  one.write("0123456789");  // as much as may be
  CHECK(names_in(folder.path()) == std::vector<std::string>{"tgid.log"});
  one.write("first\n");
  CHECK(text_of(path).empty());
  CHECK(text_of(path + ".1") == "0123456789first\n");
  one.write("second, longer\n");
  one.write("third\n");
  CHECK(text_of(path + ".1") == "second, longer\n");
  CHECK(text_of(path) == "third\n");
  CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::others_all) ==
        std::filesystem::perms::none);
}

TEST_CASE("daemons that share a log go on in the same one") {
  const TempFolder folder;
  const std::string path = folder.file("tgid.log");
  Logging one(path);
  Logging other(path);
  one.write("of one, long enough\n");
  CHECK(text_of(path).empty());
  other.write("still the old one\n");  // and sees that it is
  other.write("both\n");
  one.write("it\n");
  CHECK(text_of(path) == "both\nit\n");
}

TEST_CASE("what is not that log is left alone") {
  const TempFolder folder;
  const std::string path = folder.file("tgid.log");
  const UniqueFd elsewhere(
      ::open(folder.file("other").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::write(elsewhere.get(), "more than ten bytes", 19) == 19);
  LogFile log(path, elsewhere.get(), 10);
  log.look(LogFile::Clock::time_point(1h));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"other"});
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  LogFile(path, null.get(), 10).look(LogFile::Clock::time_point(1h));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"other"});
}

}  // namespace tgi::daemon
