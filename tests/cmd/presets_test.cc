// tgi create, and ls, show and rm of what it keeps, without a daemon.
#include <filesystem>

#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

std::string kept(const Home& home, const std::string& name) {
  return home.state() + "/presets/" + name + ".modelfile";
}

}  // namespace

TEST_CASE("a preset is kept, listed, written, copied and removed") {
  const Home home;
  const std::string file = home.write("Modelfile",
                                      "FROM demo\nPARAMETER temperature 0.5\n"
                                      "SYSTEM \"\"\"You are\nMario.\"\"\"\n");
  const Ran made = home.run({"create", "mario:latest", "-f", file});
  CHECK(made.err == "");
  CHECK(made.out == "created mario (from demo)\n");
  CHECK(home.run({"ls", "-q"}).out == "demo\nmario\n");
  CHECK_THAT(home.run({"ls"}).out, Contains("mario  preset"));
  const std::string text = home.run({"show", "--modelfile", "mario"}).out;
  CHECK(text == "FROM demo\nPARAMETER temperature 0.5\nSYSTEM \"\"\"You are\nMario.\"\"\"\n");
  CHECK(home.run({"create", "luigi", "-f", "-"}, text).out == "created luigi (from demo)\n");
  CHECK(read_file(kept(home, "luigi")) == text);
  // Of another preset: what it says and the new file does not.
  const Ran over = home.run({"create", "luigi", "-f", "-"}, "FROM mario\nPARAMETER seed 3");
  CHECK(over.out == "replaced luigi (from demo)\n");
  CHECK(read_file(kept(home, "luigi")) ==
        "FROM demo\nPARAMETER temperature 0.5\nPARAMETER seed 3\n"
        "SYSTEM \"\"\"You are\nMario.\"\"\"\n");
  CHECK(home.run({"rm", "-y", "mario:latest"}).out == "removed mario; its model stays\n");
  CHECK(home.run({"ls", "-q"}).out == "demo\nluigi\n");
}

TEST_CASE("a preset is written as TOML too, and kept as the Modelfile that says the same") {
  const Home home;
  const std::string file = home.write("mario.toml", R"(
# A plumber.
from = "demo"
system = """You are
Mario."""
license = ["MIT", "CC0"]
schema.type = "object"
schema.required = ["a"]
schema.properties.z = { type = "number", minimum = 0.5 }
schema.properties.a.type = "string"
schema.properties.a.maxLength = 3
schema.additionalProperties = false

[parameters]
temperature = 0.5
top_k = 7
stop = ["The end", "\n\n"]

[[messages]]
role = "user"
content = "Who are you?"
[[messages]]
role = "assistant"
content = "It is me!"
)");
  const Ran made = home.run({"create", "mario", "-f", file});
  CHECK(made.err == "");
  const std::string text = home.run({"show", "--modelfile", "mario"}).out;
  CHECK_THAT(text, Contains("FROM demo\nPARAMETER temperature 0.5\nPARAMETER top_k 7\n"
                            "PARAMETER stop The end\n") &&
                       Contains("SYSTEM \"\"\"You are\nMario.\"\"\"\n") &&
                       Contains("MESSAGE user Who are you?\nMESSAGE assistant It is me!\n") &&
                       Contains("LICENSE MIT\nLICENSE CC0\n") &&
                       Contains(R"(SCHEMA {"type":"object","required":["a"],"properties":)"
                                R"({"z":{"type":"number","minimum":0.5},)"
                                R"("a":{"type":"string","maxLength":3}},)"
                                R"("additionalProperties":false})"));
  CHECK(home.run({"create", "luigi", "-f", "-"}, text).err == "");
  CHECK(read_file(kept(home, "luigi")) == read_file(kept(home, "mario")));
  const std::pair<std::string, std::string> rows[] = {
      {"from = \"demo\"\nform = 1\n",
       "a.toml: line 2, column 1: expected one of from, parameters, system"},
      {"system = \"a\"\n", "expected a line \"FROM MODEL\""},
      {"from = \"demo\"\nsystem = true\n",
       "line 2, column 10: system: expected a text, got true or false"},
      {"from = \"demo\"\n[parameters]\nwibble = 1\n", "line 3, column 10: expected one of the"},
      {"from = \"demo\"\n[parameters]\ntop_k = [[1]]\n",
       "top_k: expected a number, or a text, got a list"},
      {"from = \"demo\"\n[parameters]\ntop_p = 7\n", "line 3, column 9: top_p: expected a number"},
      {"from = \"demo\"\nparameters = 3\n", "parameters: expected a table, got a number"},
      {"from = \"demo\"\nmessages = [\"a\"]\n",
       "messages: expected a role and a content each, got a text"},
      {"from = \"demo\"\nmessages = [{ role = \"user\", text = \"a\" }]\n",
       "messages: expected a role and a content each, got role, text"},
      {"from = \"demo\"\nschema.const = 2026-01-01\n",
       "schema: expected what JSON has, got a date"},
      {"from = \"demo\"\nschema.const = inf\n", "schema: expected what JSON has, got a number"},
      {"from = \"demo\"\ntemplate = \"{{ .Prompt }}\"\n", "a template in Go's notation"},
      {"from = \n", "a.toml: line 1, column 8: "},
  };
  for (const auto& [bad, error] : rows) {
    const Ran ran = home.run({"create", "bad", "-f", home.write("a.toml", bad)});
    CHECK_THAT(ran.err, Contains(error));
    CHECK(ran.exit_status != 0);
  }
}

TEST_CASE("FROM and ADAPTER are found beside the Modelfile") {
  const Home home;
  fs::create_directories(home.file("models/base"));
  fs::create_directories(home.file("models/tuned"));
  home.write("models/base/config.json", "{}");
  home.write("models/tuned/adapter_config.json", "{}");
  const std::string file = home.write("models/Modelfile", "FROM ./base\nADAPTER tuned\n");
  CHECK(home.run({"create", "a", "-f", file}).exit_status == 0);
  CHECK(read_file(kept(home, "a")) ==
        "FROM " + home.file("models/base") + "\nADAPTER " + home.file("models/tuned") + "\n");
  fs::remove_all(home.file("models/base"));
  CHECK_THAT(home.run({"ls"}).out, Contains("a     preset (missing)"));
}

TEST_CASE("a file that is no Modelfile is refused with its place and leaves nothing") {
  const Home home;
  struct Row {
    std::string text;
    std::string error;
    int exit_status;
  };
  for (const Row& row : {
           Row{"FROM demo\nRENDERER x\n", "Modelfile: line 2, column 1: expected one of FROM", 3},
           Row{"SYSTEM a\n", "Modelfile: expected a line \"FROM MODEL\"", 3},
           Row{"FROM demo\nTEMPLATE {{ .Prompt }}\n", "line 2, column 10: a template in Go's", 5},
           Row{"FROM ./nothing\n", "FROM ./nothing: there is no such folder or file", 4},
           Row{"FROM demo\nADAPTER a.gguf\n", "a.gguf", 4},
       }) {
    const Ran ran = home.run({"create", "a", "-f", home.write("Modelfile", row.text)});
    CHECK_THAT(ran.err, Contains(row.error));
    CHECK(ran.exit_status == row.exit_status);
    CHECK(ran.out == "");
  }
  CHECK_FALSE(fs::exists(home.state() + "/presets"));
  const Ran name = home.run({"create", "a/b", "-f", home.write("Modelfile", "FROM demo")});
  CHECK_THAT(name.err, Contains("expected a name of letters") && Contains("\"a/b\""));
  CHECK_THAT(home.run({"create", "demo", "-f", "-"}, "FROM demo").err, Contains("other than demo"));
  CHECK_THAT(home.run({"create", "a", "-f", home.file("none")}).err, Contains("none"));
}

}  // namespace tgi
