#include "ipc/config_file.h"

#include <cstdlib>
#include <fstream>

#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi::ipc {
namespace {

const std::string kText =
    "# mine\n"
    "[daemon]  # of tgid\n"
    "max-running = 32   # not more\n"
    "threads = 2\n"
    "on-demand = [\n"
    "  \"a=/a\",  # one\n"
    "  \"b=/b\",\n"
    "]\n"
    "\n"
    "[terminal]\n"
    "raw = true\n";

ConfigFile file_of(const std::string& text) {
  const TempFolder folder;
  std::ofstream(folder.file("config.toml")) << text;
  return read_config(folder.file("config.toml"));
}

}  // namespace

TEST_CASE("settings are read as flags take them, with their lines") {
  const ConfigFile file = file_of(kText);
  REQUIRE(file.entries.size() == 4);
  CHECK(file.find("daemon", "max-running")->values == std::vector<std::string>{"32"});
  CHECK(file.find("daemon", "max-running")->line == 3);
  CHECK(file.find("daemon", "on-demand")->values == std::vector<std::string>{"a=/a", "b=/b"});
  CHECK(file.find("terminal", "raw")->values.front() == "true");
  CHECK(file.find("serve", "port") == nullptr);
  CHECK(read_config("/nonexistent/config.toml").entries.empty());
}

TEST_CASE("~ is the home, also behind a name") {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  if (home.empty()) return;
  const ConfigFile file =
      file_of("[daemon]\nmodel = \"~/a\"\non-demand = [\"b=~/b\", \"/c=~/c\", \"d=/~/\"]\n");
  CHECK(file.find("daemon", "model")->values.front() == home + "/a");
  CHECK(file.find("daemon", "on-demand")->values ==
        std::vector<std::string>{"b=" + home + "/b", "/c=~/c", "d=/~/"});
}

TEST_CASE("what is no file of settings is refused with its line") {
  CHECK_THROWS_WITH(file_of("[daemon]\nthreads = \n"), Catch::Contains("config.toml:2: "));
  CHECK_THROWS_WITH(file_of("[demon]\nthreads = 1\n"),
                    Catch::Contains("config.toml:1: [demon]: no such section; expected [daemon]"));
  CHECK_THROWS_WITH(file_of("\nthreads = 1\n"),
                    Catch::Contains("config.toml:2: threads: expected settings below one of"));
  CHECK_THROWS_WITH(file_of("[daemon]\nthreads = 2020-01-01\n"),
                    Catch::Contains("config.toml:2: daemon.threads: expected a text"));
  CHECK_THROWS_WITH(file_of("[daemon]\nthreads = 1\nthreads = 2\n"),
                    Catch::Contains("config.toml:3: "));
}

TEST_CASE("a setting is changed at its place and nothing else moves") {
  const std::string changed = with_setting(kText, "daemon", "max-running", {"8"}, false);
  CHECK_THAT(changed, Catch::Contains("max-running = 8   # not more\n"));
  CHECK(changed.size() == kText.size() - 1);
  CHECK_THAT(with_setting(kText, "daemon", "dtype", {"bf16"}, false),
             Catch::Contains("]\ndtype = \"bf16\"\n\n[terminal]"));
  CHECK_THAT(with_setting(kText, "serve", "port", {"8080"}, false),
             Catch::Contains("raw = true\n\n[serve]\nport = 8080\n"));
  CHECK(with_setting("", "serve", "port", {"80"}, false) == "[serve]\nport = 80\n");
  const std::string list = with_setting(kText, "daemon", "on-demand", {"c=/c \"d\""}, true);
  CHECK_THAT(list, Catch::Contains("on-demand = [\"c=/c \\\"d\\\"\"]\n\n[terminal]"));
  CHECK_THAT(
      with_setting("[serve]\nhostname = \"\u00e4\u00f6\" # x\n", "serve", "hostname", {"u"}, false),
      Catch::Contains("hostname = \"u\" # x\n"));
}

TEST_CASE("a setting is taken out with its lines") {
  CHECK_THAT(without_setting(kText, "daemon", "on-demand"),
             Catch::Contains("threads = 2\n\n[terminal]"));
  CHECK(without_setting(kText, "serve", "port") == kText);
}

TEST_CASE("what can't be changed by line is left to its owner") {
  CHECK_THROWS_WITH(with_setting("daemon.threads = 1\n", "daemon", "dtype", {"bf16"}, false),
                    Catch::Contains("by hand"));
  CHECK_THROWS_WITH(
      without_setting("daemon = { threads = 1, dtype = \"bf16\" }\n", "daemon", "threads"),
      Catch::Contains("by hand"));
}

TEST_CASE("texts that are no numbers stay texts") {
  for (const std::string text : {"007", "1e3", "+5", "4GiB", "true story", ".5", "1.50", "-"}) {
    CAPTURE(text);
    const std::string file = with_setting("", "daemon", "x", {text}, false);
    CHECK(file_of(file).find("daemon", "x")->values.front() == text);
    CHECK_THAT(file, Catch::Contains("\"" + text + "\""));
  }
  CHECK(with_setting("", "daemon", "x", {"0.5"}, false) == "[daemon]\nx = 0.5\n");
}

}  // namespace tgi::ipc
