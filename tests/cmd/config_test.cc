// tgi config, and the file of settings in the commands that read it.
#include <filesystem>
#include <iterator>
#include <thread>

#include "cmd/config_settings.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"
#include "tests/cmd/serve_line.h"

namespace tgi {
namespace {

RunSetup with_variable(std::vector<std::string> arguments,
                       const std::string& name,
                       const std::string& value) {
  return {std::move(arguments), "", {{name, value}}, std::nullopt};
}

std::string write_config(const Home& home, const std::string& text) {
  std::filesystem::create_directories(home.file(".config/tgi"));
  return home.write(".config/tgi/config.toml", text);
}

}  // namespace

TEST_CASE("a setting that is set is listed with its line, and gone when it is unset") {
  const Home home;
  const std::string path = home.file(".config/tgi/config.toml");
  CHECK(home.run({"config", "path"}).out == path + "\n");
  CHECK(home.run({"config", "get", "max-running"}).out == "auto\n");
  const Ran ran = home.run({"config", "set", "daemon.max-running", "32"});
  CHECK(ran.exit_status == 0);
  CHECK(ran.out.empty());
  CHECK(home.run({"config", "get", "max-running"}).out == "32\n");
  CHECK_THAT(home.run({"config"}).out, Catch::Contains("(file, " + path + ":2)"));
  CHECK_THAT(home.run({"config", "list", "--changed", "--json"}).out,
             Catch::Contains(R"({"name":"daemon.max-running","value":"32","origin":"file")"));
  CHECK_THAT(home.run(with_variable({"config", "list"}, "TGI_MAX_RUNNING", "9")).out,
             Catch::Contains("(environment, TGI_MAX_RUNNING)"));
  CHECK_THAT(
      home.run(with_variable({"config", "set", "max-running", "8"}, "TGI_MAX_RUNNING", "9")).err,
      Catch::Contains("TGI_MAX_RUNNING is set here and goes before the file"));
  CHECK_THAT(home.run({"config", "list", "--no-start"}).out, Catch::Contains("(flag, --no-start)"));
  CHECK(home.run({"config", "unset", "max-running"}).exit_status == 0);
  CHECK(home.run({"config", "list", "--changed"}).out.find("max-running") == std::string::npos);
  CHECK(home.run({"config", "unset", "max-running"}).exit_status == 4);
  CHECK(home.run({"config", "get", "terminal.raw"}).out == "false\n");
}

TEST_CASE("settings that are changed at the same time are all kept") {
  const Home home;
  const std::vector<std::string> names = {"max-running",   "daemon.threads", "daemon.max-best-of",
                                          "serve.threads", "serve.port",     "serve.max-best-of"};
  std::vector<Ran> runs(names.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < names.size(); ++i) {
    threads.emplace_back([&, i] { runs[i] = home.run({"config", "set", names[i], "7"}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i], runs[i].err);
    CHECK(runs[i].exit_status == 0);
    CHECK(home.run({"config", "get", names[i]}).out == "7\n");
  }
  const auto left = std::filesystem::directory_iterator(home.file(".config/tgi"));
  CHECK(std::distance(begin(left), end(left)) == 1);  // neither locks nor halves
}

TEST_CASE("whoever changes a setting of a daemon that runs is told when it holds") {
  const Home home;
  const FakeDaemon daemon(home.socket(), [](FakeSession& session) { (void)session.request(); });
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"config", "set", "daemon.max-running", "8"},
        std::vector<std::string>{"config", "unset", "daemon.max-running"}}) {
    CHECK_THAT(home.run(words).err, Catch::Contains("after `tgi stop` the next one has it"));
  }
}

TEST_CASE("a file of settings that can't be read is an error, not an empty one") {
  const Home home;
  std::filesystem::create_directories(home.file(".config/tgi/config.toml"));
  const Ran ran = home.run({"ps"});
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Catch::Contains("the file of settings: ") && Catch::Contains("folder"));
  CHECK(home.run(with_variable({"ps"}, "TGI_CONFIG", "/dev/null")).exit_status == 8);
}

TEST_CASE("what is wrong is refused when it is set, in the words of the flag") {
  const Home home;
  const Ran bad = home.run({"config", "set", "max-running", "0"});
  CHECK(bad.exit_status == 3);
  CHECK_THAT(bad.err, Catch::Contains("daemon.max-running: expected a whole number of at least 1"));
  CHECK_THAT(home.run({"config", "set", "max-runing", "3"}).err,
             Catch::Contains("did you mean max-running?"));
  CHECK_THAT(home.run({"config", "set", "dtype", "f16"}).err,
             Catch::Contains("expected one of daemon.dtype, serve.dtype"));
  CHECK_THAT(home.run({"config", "set", "serve.trust-remote-code", "true"}).err,
             Catch::Contains("leave it out"));
  CHECK(home.run({"config", "set", "max-running"}).exit_status == 2);
  CHECK(home.run({"config", "set", "max-running", "1", "2"}).exit_status == 2);
  CHECK(home.run({"config", "get"}).exit_status == 2);
  CHECK(home.run({"config", "mend"}).exit_status == 2);
  CHECK(home.run({"config", "set", "raw", "true", "--changed"}).exit_status == 2);
  CHECK(home.run({"config", "path", "--json"}).exit_status == 2);
  CHECK_THAT(home.run({"config", "set", "raw", "yes"}).err,
             Catch::Contains("terminal.raw: expected true or false"));
  CHECK_FALSE(std::filesystem::exists(home.file(".config")));
}

TEST_CASE("a file that is wrong stops commands with its line, and can be mended by config") {
  const Home home;
  const std::string path = write_config(home, "[terminal]\nraw = true\ncolour = \"never\"\n");
  const Ran ran = home.run({"ps"});
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err,
             Catch::Contains(path + ":3: terminal.colour: no such setting; did you mean color?"));
  CHECK(home.run({"version"}).exit_status == 0);
  CHECK(home.run({"config", "unset", "terminal.colour"}).exit_status == 0);
  CHECK(read_file(path) == "[terminal]\nraw = true\n");
  write_config(home, "[terminal]\ncontext = \"grow\"\n");
  CHECK_THAT(home.run({"ps"}).err,
             Catch::Contains(path + ":2: terminal.context: expected one of stop, slide"));
  write_config(home, "[terminal\n");
  CHECK_THAT(home.run({"config", "set", "raw", "true"}).err, Catch::Contains(path + ":1: "));
}

TEST_CASE("commands follow the terminal's settings") {
  const Home home;
  write_config(home, "[terminal]\nno-start = true\ncolor = \"always\"\n");
  const Ran ran = home.run({"generate", "Once"});
  CHECK(ran.exit_status == 8);
  CHECK(ran.err.find("/nonexistent/tgid") == std::string::npos);
  CHECK_THAT(ran.err, Catch::Contains("\x1b[31merror:"));
  CHECK_THAT(home.run({"pss"}).err, Catch::StartsWith("\x1b[31mtgi:"));
  CHECK(home.run(with_variable({"ps"}, "NO_COLOR", "1")).err.find('\x1b') == std::string::npos);
}

TEST_CASE("commands look for the daemon where the file has it listen") {
  const Home home;
  write_config(home, "[daemon]\nsocket = \"/nonexistent/one.sock\"\n");
  RunSetup setup{{"ps"}, "", {{"TGI_SOCKET", ""}, {"XDG_RUNTIME_DIR", home.file("x")}}, {}};
  CHECK_THAT(home.run(setup).err, Catch::Contains("/nonexistent/one.sock"));
  CHECK_THAT(home.run({"ps"}).err, Catch::Contains(home.socket()));
}

TEST_CASE("serve has its settings from flag, variable and file, in this order") {
  const Home home;
  const ipc::ConfigFile file = ipc::read_config(
      home.write("config.toml", "[serve]\nport = 8080\nmodel-id = \"demo\"\nmax-best-of = 7\n"));
  const auto resolved = [&](std::vector<std::string> arguments, const Variables& variables) {
    CLI::App app;
    ServeFlags flags;
    add_serve_flags(app, flags);
    std::ranges::reverse(arguments);
    app.parse(arguments);
    const auto environment = [&](const std::string& name) {
      const auto it = variables.find(name);
      return it == variables.end() ? std::nullopt : std::optional(it->second);
    };
    return resolve_serve_flags(flags, environment, file);
  };
  CHECK(resolved({}, {}).port == 8080);
  CHECK(resolved({}, {}).model == "demo");
  CHECK(resolved({}, {{"PORT", "81"}}).port == 81);
  CHECK(resolved({"--port", "82"}, {{"PORT", "81"}}).port == 82);
  CHECK(resolved({"--http", ":83"}, {}).port == 83);
  CHECK(resolved({}, {}).max_best_of == 7);
}

TEST_CASE("a key in the file is never listed, and the file is its owner's alone") {
  const Home home;
  CHECK(home.run({"config", "set", "api-key", "hush"}).exit_status == 0);
  const Ran ran = home.run({"config", "list"});
  CHECK(ran.out.find("hush") == std::string::npos);
  CHECK_THAT(ran.out, Catch::Contains("serve.api-key"));
  const auto mode = std::filesystem::status(home.file(".config/tgi/config.toml")).permissions();
  CHECK(mode == std::filesystem::perms(0600));
}

TEST_CASE("a path that is set holds wherever a program runs") {
  const Home home;
  std::filesystem::create_directories(home.file("models/small"));
  CHECK(home.run({"config", "set", "on-demand", "small=" + home.file("models/../models/small"),
                  "demo2=demo"})
            .exit_status == 0);
  CHECK(home.run({"config", "get", "on-demand"}).out ==
        "small=" + home.file("models/../models/small") + ", demo2=demo\n");
}

TEST_CASE("each setting takes its own default") {
  for (const ConfigSetting& setting : config_settings()) {
    CAPTURE(setting.full_name());
    if (setting.default_value) CHECK_NOTHROW(setting.check({*setting.default_value}));
    if (setting.section == "daemon") CHECK(setting.variable.starts_with("TGI_"));
  }
}

}  // namespace tgi
