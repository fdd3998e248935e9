#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

std::string shell(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char bytes[4096];
  for (size_t count = 0; (count = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;) {
    out.append(bytes, count);
  }
  CHECK(::pclose(pipe) == 0);
  return out;
}

// What bash offers for the last word of a command line.
std::string bash_offers(const std::string& words, int index) {
  const std::string script =
      "source '" + std::string(TGI_SOURCE_DIR) + "/completions/tgi.bash'; COMP_WORDS=(" + words +
      "); COMP_CWORD=" + std::to_string(index) + "; _tgi; echo \"${COMPREPLY[*]}\"";
  return shell("bash -c '" + [&] {
    std::string quoted;
    for (const char c : script) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return quoted;
  }() + "' 2>/dev/null");
}

}  // namespace

TEST_CASE("the committed man pages and completions are those of the command table") {
  const Home home;
  const std::string man = home.file("man");
  const std::string completions = home.file("completions");
  REQUIRE(home.run({"docs", "--man", man, "--completions", completions}).exit_status == 0);
  int num_files = 0;
  for (const std::string& folder : {std::string("man"), std::string("completions")}) {
    for (const auto& entry : std::filesystem::directory_iterator(home.file(folder))) {
      const std::string name = entry.path().filename().string();
      const std::string committed = std::string(TGI_SOURCE_DIR) + "/" + folder + "/" + name;
      INFO(committed << " is stale; run: tgi docs --man man --completions completions");
      CHECK(read_file(committed) == read_file(entry.path().string()));
      ++num_files;
    }
  }
  CHECK(num_files == 1 + 12 + 3);
}

TEST_CASE("man pages name every option and hide the hidden command") {
  const std::string page = read_file(std::string(TGI_SOURCE_DIR) + "/man/tgi-generate.1");
  for (const char* part :
       {"\\fB\\-\\-max\\-new\\-tokens\\fR \\fIN\\fR", "\\fB\\-f\\fR, \\fB\\-\\-file",
        ".SH GENERATION OPTIONS", ".SH COMMON OPTIONS"}) {
    CHECK_THAT(page, Catch::Contains(part));
  }
  const std::string overview = read_file(std::string(TGI_SOURCE_DIR) + "/man/tgi.1");
  CHECK_THAT(overview, Catch::Contains("tgi\\-chat") && Catch::Contains("\\fB130\\fR"));
  CHECK_THAT(overview, !Catch::Contains("docs"));
}

TEST_CASE("bash completes commands, options and values") {
  CHECK(bash_offers("tgi ge", 1) == "generate\n");
  CHECK(bash_offers("tgi lo", 1) == "load\n");
  CHECK(bash_offers("tgi generate --max", 2) == "--max-new-tokens\n");
  CHECK(bash_offers("tgi load --dtype b", 3) == "bf16\n");
  CHECK(bash_offers("tgi bench --runs 5", 3) == "\n");
  CHECK_THAT(bash_offers("tgi load " + std::string(TGI_SOURCE_DIR) + "/completions/tgi.b", 2),
             Catch::EndsWith("completions/tgi.bash\n"));
}

}  // namespace tgi
