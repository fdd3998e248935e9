#include "daemon/options.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/files/preset_files.h"
#include "daemon/manual.h"
#include "ipc/model_settings.h"
#include "tests/catch.h"
#include "tests/ipc/setting_samples.h"
#include "tests/temp_folder.h"

namespace tgi::daemon {

TEST_CASE("every setting has its own flag, reads its own default and takes it back") {
  std::set<std::string_view> seen;
  for (const OptionRow& row : option_table()) {
    INFO(row.name);
    CHECK(seen.insert(row.name).second);
    CHECK_FALSE(row.help.empty());
    Options options;
    const std::string text = row.get(options);
    row.set(options, text);
    CHECK(row.get(options) == text);
  }
}

TEST_CASE("a flag beats the environment, which beats the default") {
  ::unsetenv("TGI_MAX_RUNNING");
  CHECK_FALSE(resolve_options({}).options.model.max_running);
  ::setenv("TGI_MAX_RUNNING", "9", 1);
  CHECK(resolve_options({}).options.model.max_running == 9);
  CHECK(resolve_options({{"max-running", "7"}}).options.model.max_running == 7);
  ::setenv("TGI_MAX_RUNNING", "some", 1);
  CHECK_THROWS_WITH(resolve_options({}),
                    Catch::Contains("TGI_MAX_RUNNING") && Catch::Contains("some"));
  ::unsetenv("TGI_MAX_RUNNING");
}

TEST_CASE("a model may be a preset of tgi create, by its name") {
  const TempFolder folder;
  ::setenv("XDG_STATE_HOME", folder.path().c_str(), 1);
  keep_preset("mario", Preset{.from = "demo", .parameters = {}});
  const Options options =
      resolve_options({{"model", "mario"}, {"model", "b=mario"}, {"on-demand", "c=mario:latest"}})
          .options;
  const std::string path = folder.path() + "/tgi/presets/mario.modelfile";
  CHECK(options.model.model == path);
  CHECK(options.models.at(1).model == path);
  CHECK(options.on_demand.at(0).model == path);
  CHECK(resolve_options({{"model", "luigi"}}).options.model.model == "luigi");
  ::unsetenv("XDG_STATE_HOME");
}

TEST_CASE("the file of settings stands between the environment and the default") {
  ::unsetenv("TGI_MAX_RUNNING");
  const TempFolder folder;
  const std::string path = folder.file("config.toml");
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return ipc::read_config(path);
  };
  const ipc::ConfigFile file = read(
      "[daemon]\nmax-running = 5\nno-model = true\nkv-cache-memory = \"2MiB\"\n"
      "model = [\"/a\", \"b=/b\"]\n[serve]\nport = 1\n");
  const ResolvedOptions resolved = resolve_options({}, file);
  CHECK(resolved.options.model.max_running == 5);
  CHECK(resolved.options.no_model);
  CHECK(*resolved.options.model.kv_cache_bytes == 2 << 20);
  CHECK(resolved.options.models.size() == 2);
  CHECK(resolved.options.model.model == "/a");
  CHECK_THAT(print_config(resolved), Catch::Contains("(" + path + ")"));
  ::setenv("TGI_MAX_RUNNING", "9", 1);
  CHECK(resolve_options({}, file).options.model.max_running == 9);
  ::unsetenv("TGI_MAX_RUNNING");
  CHECK(resolve_options({{"max-running", "7"}}, file).options.model.max_running == 7);
  // A flag takes the place of the whole list.
  CHECK(resolve_options({{"model", "/c"}}, file).options.models.size() == 1);

  CHECK_THROWS_WITH(resolve_options({}, read("[daemon]\nmax-runing = 5\n")),
                    path + ":2: daemon.max-runing: no such setting; did you mean max-running?");
  CHECK_THROWS_WITH(
      resolve_options({}, read("[daemon]\n\nmax-running = 0\n")),
      path + ":3: daemon.max-running: expected a whole number of at least 1, or auto, got \"0\"");
  CHECK_THROWS_WITH(resolve_options({}, read("[daemon]\nmax-running = [1, 2]\n")),
                    Catch::Contains("expected one value, got a list"));
  CHECK_THROWS_WITH(resolve_options({}, read("[daemon]\ntokenizer-config = \"t.json\"\n")),
                    Catch::Contains("begins with / or ~/"));
}

TEST_CASE(
    "values that make no sense are refused, naming the flag, what was expected and what came") {
  for (const GivenFlag& bad : std::vector<GivenFlag>{{"max-running", "0"},
                                                     {"max-running", "-3"},
                                                     {"max-running", "7x"},
                                                     {"threads", ""},
                                                     {"kv-cache-memory", "lots"},
                                                     {"kv-cache-memory", "4parsecs"},
                                                     {"target-step-ms", "-1"},
                                                     {"num-shard", "0"},
                                                     {"cuda-memory-fraction", "0"},
                                                     {"cuda-memory-fraction", "1.5"},
                                                     {"target-step-ms", "nan"},
                                                     {"drain-timeout", "soon"},
                                                     {"max-total-tokens", "1"},
                                                     {"no-model", "perhaps"}}) {
    INFO(bad.flag << " = " << bad.value);
    CHECK_THROWS_WITH(resolve_options({bad}),
                      Catch::Contains("--" + bad.flag) && Catch::Contains("expected"));
  }
  CHECK(*resolve_options({{"kv-cache-memory", "1.5GiB"}}).options.model.kv_cache_bytes ==
        1610612736);
}

TEST_CASE("the committed man page and completions of tgid are those of the settings") {
  const auto committed = [](const std::string& path) {
    std::ifstream file(TGI_SOURCE_DIR "/" + path);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  INFO("if one is stale, run: scripts/make_docs");
  CHECK(committed("man/tgid.8") == tgid_man_page());
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    CHECK(committed("completions/tgid." + shell) == tgid_completion(shell));
  }
  CHECK_THROWS_WITH(tgid_completion("tcsh"), Catch::Contains("expected bash, zsh or fish"));
}

TEST_CASE("the choices of a setting are taken by it") {
  for (const OptionRow& row : option_table()) {
    for (const std::string_view choice : row.choices) {
      CAPTURE(row.name, choice);
      CHECK_NOTHROW(resolve_options({{std::string(row.name), std::string(choice)}}));
    }
  }
}

TEST_CASE("every setting of a model is a flag and a variable of tgid, with the same rule") {
  const auto rows = option_table();
  for (const ipc::ModelSetting& setting : ipc::model_settings()) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const OptionRow& one) { return one.name == setting.name; });
    REQUIRE(row != rows.end());
    const std::string variable = ipc::environment_name(*row);
    const std::string flag(setting.name);
    CAPTURE(flag);
    ipc::ModelSettings expected;
    setting.set(expected, taken_text(setting));
    CHECK(setting.get(resolve_options({{flag, taken_text(setting)}}).options.model) ==
          setting.get(expected));
    ::setenv(variable.c_str(), taken_text(setting).c_str(), 1);
    const ResolvedOptions resolved = resolve_options({});
    CHECK(setting.get(resolved.options.model) == setting.get(expected));
    CHECK_THAT(print_config(resolved), Catch::Contains("(" + variable + ")"));
    const std::string bad = refused_text(setting);
    if (!bad.empty()) {
      const std::string said = "expected " + ipc::allowed_values(setting) + ", got \"" + bad + "\"";
      CHECK_THROWS_WITH(resolve_options({{flag, bad}}), "--" + flag + ": " + said);
      ::setenv(variable.c_str(), bad.c_str(), 1);
      CHECK_THROWS_WITH(resolve_options({}), variable + ": " + said);
    }
    ::unsetenv(variable.c_str());
  }
}

}  // namespace tgi::daemon
