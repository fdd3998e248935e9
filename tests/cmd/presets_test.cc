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
