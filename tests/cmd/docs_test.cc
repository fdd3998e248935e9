// What is written from the command table: man pages, completions in the three shells, --help.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/catch.h"
#include "tests/cmd/hub_cache_files.h"
#include "tests/cmd/run_tgi.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

const std::string kSource = TGI_SOURCE_DIR;

struct ShellResult {
  int exit_status = -1;
  std::string out;
};

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// With the tgi under test first on PATH.
ShellResult shell(const std::string& command) {
  const std::string path = std::filesystem::path(tgi_binary()).parent_path().string();
  const std::string whole = "PATH=" + quoted(path) + ":$PATH; " + command;
  ShellResult result;
  FILE* pipe = ::popen(whole.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char bytes[4096];
  for (size_t count = 0; (count = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;) {
    result.out.append(bytes, count);
  }
  const int status = ::pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

bool is_installed(const std::string& program) {
  const bool found = shell("command -v " + program + " >/dev/null").exit_status == 0;
  if (!found) WARN(program << " is not installed: this is not tested");
  return found;
}

// What bash offers for the last word of a command line.
std::string bash_offers(const std::string& words, int index, const std::string& program = "tgi") {
  const std::string script =
      "source '" + kSource + "/completions/" + program + ".bash'; COMP_WORDS=(" + words +
      "); COMP_CWORD=" + std::to_string(index) + "; _" + program + "; echo \"${COMPREPLY[*]}\"";
  return shell("bash -c " + quoted(script) + " 2>/dev/null").out;
}

std::string fish_offers(const std::string& line, const std::string& program = "tgi") {
  const std::string script = "source " + kSource + "/completions/" + program +
                             ".fish; complete -C " + quoted(line) + " | string split -f1 \\t";
  return shell("fish --no-config -c " + quoted(script) + " 2>/dev/null").out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Every command that is not hidden, as the overview has them.
std::vector<std::string> commands() {
  std::vector<std::string> out;
  bool within = false;
  for (const std::string& line : lines_of(Home().run({"--help"}).out)) {
    if (line.empty()) within = false;
    // Not what a long summary goes on in.
    if (within && line[2] != ' ') out.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (line == "Commands:") within = true;
  }
  return out;
}

}  // namespace

TEST_CASE("the committed man pages and completions are those of the command table") {
  const Home home;
  const Ran ran =
      home.run({"docs", "--man", home.file("man"), "--protocol", kSource + "/docs/protocol.md",
                "--completions", home.file("completions")});
  REQUIRE(ran.exit_status == 0);
  for (const char* folder : {"man", "completions"}) {
    const std::vector<std::string> written = names_in(home.file(folder));
    for (const std::string& name : written) {
      const std::string committed = kSource + "/" + folder + "/" + name;
      INFO(committed << " is stale; run: scripts/make_docs");
      CHECK(read_file(committed) == read_file(home.file(folder) + "/" + name));
    }
    for (const std::string& name : names_in(kSource + "/" + folder)) {
      INFO(folder << "/" << name << " belongs to no command any more; remove it");
      CHECK((name.starts_with("tgid.") || std::ranges::binary_search(written, name)));
    }
  }
}

TEST_CASE("man pages name every option and hide the hidden command") {
  const std::string page = read_file(kSource + "/man/tgi-generate.1");
  for (const char* part :
       {"\\fB\\-\\-max\\-new\\-tokens\\fR \\fIN\\fR", "\\fB\\-f\\fR, \\fB\\-\\-file",
        ".SH GENERATION OPTIONS", ".SH COMMON OPTIONS", ".SH EXAMPLES", ".SH EXIT STATUS",
        ".SH ENVIRONMENT", ".SH FILES", ".BR tgid (8)"}) {
    CHECK_THAT(page, Catch::Contains(part));
  }
  const std::string overview = read_file(kSource + "/man/tgi.1");
  CHECK_THAT(overview, Catch::Contains("tgi\\-chat") && Catch::Contains("\\fB130\\fR"));
  CHECK_THAT(overview, !Catch::Contains("docs"));
}

TEST_CASE("pages that others refer to are there") {
  const std::vector<std::string> pages = names_in(kSource + "/man");
  for (const std::string& page : pages) {
    for (const std::string& line : lines_of(read_file(kSource + "/man/" + page))) {
      if (!line.starts_with(".BR ")) continue;
      const size_t open = line.find(" (");
      std::string name = line.substr(4, open - 4);
      for (size_t at; (at = name.find("\\-")) != std::string::npos;) name.erase(at, 1);
      INFO(page << " refers to " << line);
      CHECK(std::ranges::binary_search(pages, name + "." + line[open + 2]));
    }
  }
}

TEST_CASE("man renders every page without a warning") {
  if (!is_installed("man") || !is_installed("groff")) return;
  for (const std::string& page : names_in(kSource + "/man")) {
    const ShellResult ran = shell("LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l " +
                                  quoted(kSource + "/man/" + page) + " 2>&1 >/dev/null");
    CAPTURE(page);
    CHECK(ran.exit_status == 0);
    CHECK(ran.out.empty());
  }
}

TEST_CASE("the page of the protocol has its tables, code and lists") {
  if (!is_installed("man") || !is_installed("groff")) return;
  const std::string text =
      shell("LC_ALL=C.UTF-8 MANWIDTH=80 man -E UTF-8 -l " + kSource + "/man/tgi-ipc.5 | col -bx")
          .out;
  for (const char* part :
       {"           {\"protocol\":1,\"version\":", "       3.  The daemon answers",
        "LIMITS\n       a line 64 MiB\n", "params: none"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
  CHECK_THAT(text, !Catch::Contains("**") && !Catch::Contains("`") && !Catch::Contains("|---"));
}

TEST_CASE("bash completes commands, options and values") {
  CHECK(bash_offers("tgi ge", 1) == "generate\n");
  CHECK(bash_offers("tgi loa", 1) == "load\n");
  CHECK(bash_offers("tgi --socket /x gen", 3) == "generate\n");
  CHECK(bash_offers("tgi --socket = /x -v gen", 5) == "generate\n");
  CHECK(bash_offers("tgi config se", 2) == "set\n");
  CHECK(bash_offers("tgi config set daemon.max-ru", 3) == "daemon.max-running\n");
  CHECK(bash_offers("tgi config --socket /x unset daemon.max-ru", 5) == "daemon.max-running\n");
  CHECK(bash_offers("tgi config set daemon.max-running 4", 4) == "\n");
  CHECK(bash_offers("tgi --no-start generate --max-n", 3) == "--max-new-tokens\n");
  CHECK(bash_offers("tgi --socket " + kSource + "/completions/tgi.b", 2) ==
        kSource + "/completions/tgi.bash\n");
  CHECK(bash_offers("tgi generate --max-n", 2) == "--max-new-tokens\n");
  CHECK(bash_offers("tgi load --dtype b", 3) == "bf16\n");
  CHECK(bash_offers("tgi load --dtype = b", 4) == "bf16\n");
  CHECK(bash_offers("tgi bench --runs 5", 3) == "\n");
  CHECK(bash_offers("tgi load dem", 2) == "demo\n");
  CHECK(bash_offers("tgi load " + kSource + "/complet", 2) == kSource + "/completions\n");
  CHECK(bash_offers("tgi generate -f " + kSource + "/completions/tgi.b", 3) ==
        kSource + "/completions/tgi.bash\n");
  CHECK(bash_offers("tgid --backend c", 2, "tgid") == "cpu cuda\n");
  CHECK(bash_offers("tgid --print-", 1, "tgid") == "--print-config\n");
}

TEST_CASE("flags that the pages for newcomers send them to are there") {
  const std::string known =
      read_file(kSource + "/completions/tgi.bash") + read_file(kSource + "/completions/tgid.bash");
  for (const std::string page : {"vllm", "ollama", "llama_cpp"}) {
    std::istringstream lines(read_file(kSource + "/docs/coming_from_" + page + ".md"));
    int num_flags = 0;
    for (std::string line; std::getline(lines, line);) {
      const size_t second = line.find(" | ");
      if (!line.starts_with("| ") || second == std::string::npos) continue;
      for (size_t at = line.find("--", second); at != std::string::npos;) {
        const size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
        const std::string flag = line.substr(at, end - at);
        CAPTURE(page, flag);
        CHECK(known.find(flag) != std::string::npos);
        ++num_flags;
        at = line.find("--", end);
      }
    }
    CHECK(num_flags > 5);
  }
}

TEST_CASE("bash completes adapters that are installed, and folders") {
  const Home home;
  const HubCacheFiles cache(home.file("hub"));
  cache.add("org--lora", "aaa", "adapter_config.json", "a", "{}");
  cache.add("org--lora", "aaa", "adapter_model.safetensors", "b", "b");
  cache.set_ref("org--lora", "main", "aaa");
  const auto offers = [&](const std::string& words, int index) {
    return bash_offers("); export HF_HUB_CACHE='" + home.file("hub") + "'; COMP_WORDS=(" + words,
                       index);
  };
  CHECK(offers("tgi generate --adapter org/", 3) == "org/lora\n");
  CHECK(offers("tgi adapters --unload org/", 3) == "org/lora\n");
  CHECK(offers("tgi adapters --load " + kSource + "/complet", 3) == kSource + "/completions\n");
  CHECK(offers("tgi generate --adapter dem", 3) == "\n");
}

TEST_CASE("fish completes commands, options and values") {
  if (!is_installed("fish")) return;
  CHECK(fish_offers("tgi ge") == "generate\n");
  CHECK(fish_offers("tgi generate --max-n") == "--max-new-tokens\n");
  CHECK(fish_offers("tgi load --dtype b") == "bf16\n");
  CHECK(fish_offers("tgi load dem") == "demo\n");
  CHECK(fish_offers("tgi --socket /x gen") == "generate\n");
  CHECK(fish_offers("tgi --no-start generate --max-n") == "--max-new-tokens\n");
  CHECK(fish_offers("tgi --no-s") == "--no-start\n");
  CHECK(fish_offers("tgi --socket " + kSource + "/completions/tgi.b") ==
        kSource + "/completions/tgi.bash\n");
  CHECK(fish_offers("tgi config set daemon.max-ru") == "daemon.max-running\n");
  CHECK(fish_offers("tgi run load --syst") == "--system\n");
  CHECK(fish_offers("tgid --backend cu", "tgid") == "cuda\n");
}

TEST_CASE("zsh completes commands, options and values") {
  if (!is_installed("zsh")) return;
  const Home home;
  const std::string folder = home.file("site-functions");
  std::filesystem::create_directories(folder);
  for (const std::string program : {"tgi", "tgid"}) {
    std::filesystem::copy_file(kSource + "/completions/" + program + ".zsh",
                               folder + "/_" + program);
  }
  const auto offers = [&](const std::string& line) {
    return shell("zsh -f " + kSource + "/tests/cmd/zsh_offers.zsh " + folder + " " + quoted(line))
        .out;
  };
  CHECK(offers("tgi ge") == "generate\n");
  CHECK(offers("tgi generate --max-n") == "--max-new-tokens\n");
  CHECK(offers("tgi load --dtype b") == "bf16\n");
  CHECK(offers("tgi load dem") == "demo\n");
  CHECK(offers("tgi --socket /x gen") == "generate\n");
  CHECK(offers("tgi --no-start generate --max-n") == "--max-new-tokens\n");
  CHECK(offers("tgi --no-s") == "--no-start\n");
  CHECK(offers("tgi config set daemon.max-ru") == "daemon.max-running\n");
  CHECK(offers("tgid --backend cu") == "cuda\n");
}

TEST_CASE("--help of every command fits a screen and shows how it is used") {
  const Home home;
  const std::vector<std::string> names = commands();
  REQUIRE(names.size() >= 8);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Ran ran = home.run({name, "--help"});
    CHECK(ran.exit_status == 0);
    CHECK(ran.err.empty());
    CHECK_THAT(ran.out, Catch::Contains("Usage:\n  tgi " + name) &&
                            Catch::Contains("\nExamples:\n  ") &&
                            Catch::Contains("man tgi-" + name));
    const std::vector<std::string> lines = lines_of(ran.out);
    CHECK(lines.size() <= 40);
    for (const std::string& line : lines) CHECK(line.size() <= 80);
  }
}

TEST_CASE("the help of the program shows what every command takes") {
  const Home home;
  const Ran ran = home.run({"-h"});
  CHECK_THAT(ran.out, Catch::Contains("\nOptions of every command:\n      --socket PATH") &&
                          Catch::Contains("\n      --no-start") &&
                          Catch::Contains("\n  -v, --verbose") &&
                          Catch::Contains("\n  -h, --help"));
  for (const std::string& line : lines_of(ran.out)) CHECK(line.size() <= 80);
}

TEST_CASE("--help-all has every option, help COMMAND is --help") {
  const Home home;
  const std::string all = home.run({"serve", "--help-all"}).out;
  CHECK_THAT(all, Catch::Contains("--cors-allow-origin") && Catch::Contains("--socket PATH") &&
                      Catch::Contains("Takes the flags of text-generation-launcher"));
  CHECK_THAT(home.run({"serve", "--help"}).out, !Catch::Contains("--cors-allow-origin"));
  CHECK(home.run({"help", "load"}).out == home.run({"load", "--help"}).out);
  CHECK(home.run({"help"}).out == home.run({"--help"}).out);
}

TEST_CASE("a command or option that is nearly right is suggested") {
  struct Row {
    std::vector<std::string> arguments;
    std::string err;
  };
  const Row row = GENERATE(
      Row{{"genrate"},
          "tgi: no such command: genrate\ndid you mean `tgi generate`? Else see "
          "`tgi --help`\n"},
      Row{{"laod", "x"},
          "tgi: no such command: laod\ndid you mean `tgi load`? Else see "
          "`tgi --help`\n"},
      Row{{"xyzzy"}, "tgi: no such command: xyzzy\nsee `tgi --help`\n"},
      Row{{"generate", "hi", "--temprature=2"},
          "tgi generate: unknown option --temprature=2\ndid you mean --temperature? Else see "
          "`tgi generate --help`\n"},
      Row{{"ps", "--jsno"},
          "tgi ps: unknown option --jsno\ndid you mean --json? Else see "
          "`tgi ps --help`\n"},
      Row{{"load", "m", "--quant"},
          "tgi load: unknown option --quant\ndid you mean --quantize? "
          "Else see `tgi load --help`\n"});
  const Ran ran = Home().run(row.arguments);
  CHECK(ran.exit_status == 2);
  CHECK(ran.err == row.err);
}

TEST_CASE("--version says the version and the backends") {
  const Ran ran = Home().run({"--version"});
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out,
             Catch::Matches("tgi \\d+\\.\\d+\\.\\d+ (\\([0-9a-f]{7,}\\+?\\) )?cpu( cuda)?\n"));
  const std::string cmake = read_file(kSource + "/CMakeLists.txt");
  CHECK_THAT(cmake,
             Catch::Contains("project(tgi VERSION " + ran.out.substr(4, ran.out.find(' ', 4) - 4)));
}

TEST_CASE("colours keep to NO_COLOR, CLICOLOR_FORCE and CLICOLOR") {
  const Home home;
  const auto help = [&](const std::map<std::string, std::string>& environment) {
    return home.run(RunSetup{{"--help"}, "", environment, std::nullopt}).out;
  };
  CHECK_THAT(help({}), !Catch::Contains("\x1b"));  // a pipe
  CHECK_THAT(help({{"CLICOLOR_FORCE", "1"}}), Catch::Contains("\x1b[1mUsage\x1b[0m:\n"));
  CHECK_THAT(help({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}), !Catch::Contains("\x1b"));
  CHECK_THAT(help({{"CLICOLOR_FORCE", "0"}}), !Catch::Contains("\x1b"));
  const auto on_terminal = [&](const std::map<std::string, std::string>& environment) {
    Process process(home, RunSetup{{"--help"}, "", environment, std::nullopt},
                    Process::Kind::kTerminal);
    return process.read_to_end();
  };
  CHECK_THAT(on_terminal({{"TERM", "xterm"}}), Catch::Contains("\x1b[1mUsage"));
  CHECK_THAT(on_terminal({{"TERM", "xterm"}, {"CLICOLOR", "0"}}), !Catch::Contains("\x1b[1m"));
  CHECK_THAT(on_terminal({{"TERM", "dumb"}}), !Catch::Contains("\x1b[1m"));
  const auto wrong = [&](const std::string& word, const std::string& force) {
    return home.run(RunSetup{{word, "--nope"}, "", {{"CLICOLOR_FORCE", force}}, std::nullopt}).err;
  };
  CHECK_THAT(wrong("ps", "1"), Catch::StartsWith("\x1b[31mtgi ps:\x1b[0m unknown option --nope\n"));
  CHECK_THAT(wrong("chta", "1"), Catch::StartsWith("\x1b[31mtgi:\x1b[0m no such command: chta\n"));
  CHECK_THAT(wrong("chta", "0"), Catch::StartsWith("tgi: no such command: chta\n"));
  // One that is mistyped, and not what is missing for that.
  CHECK_THAT(wrong("-V", "0"), Catch::StartsWith("tgi: unknown option -V\n"));
  CHECK_THAT(wrong("run", "0"), Catch::StartsWith("tgi run: unknown option --nope\n"));
}

}  // namespace tgi
