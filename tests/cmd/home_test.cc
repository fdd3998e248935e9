// A home that can't be written: what is kept goes to a temporary folder, which is said once.
#include <sys/stat.h>

#include <filesystem>

#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

RunSetup without_home(const Home& home, std::vector<std::string> words) {
  return {std::move(words),
          "",
          {{"HOME", "/nonexistent"}, {"XDG_STATE_HOME", ""}, {"TMPDIR", home.file("tmp")}},
          std::nullopt};
}

std::string own_folder(const Home& home) {
  return home.file("tmp/tgi-" + std::to_string(::getuid()));
}

}  // namespace

TEST_CASE("without a home things are kept in a temporary folder, and one line says so once") {
  const Home home;
  fs::create_directories(home.file("tmp"));
  const Ran first = home.run(without_home(home, {"ls"}));
  CHECK(first.exit_status == 0);
  CHECK(first.err == "HOME /nonexistent is not there: what is kept goes to " + own_folder(home) +
                         ", until that is cleaned; XDG_STATE_HOME chooses another folder\n");
  CHECK((fs::status(own_folder(home)).permissions() & fs::perms(077)) == fs::perms::none);
  RunSetup create = without_home(home, {"create", "mario", "-f", "-"});
  create.input = "FROM demo\n";
  const Ran made = home.run(create);
  CHECK(made.err == "");
  CHECK(made.out == "created mario (from demo)\n");
  CHECK_THAT(home.run(without_home(home, {"ls"})).out, Contains("mario"));
  CHECK_THAT(home.run(without_home(home, {"doctor", "--quick"})).out,
             Contains("warn state") && Contains("HOME /nonexistent is not there"));
  RunSetup unset = without_home(home, {"ls", "-q"});
  unset.environment["HOME"] = "";
  CHECK(home.run(unset).out == "demo\nmario\n");
}

TEST_CASE("a temporary folder that others may write to is not used") {
  const Home home;
  fs::create_directories(own_folder(home));
  fs::permissions(own_folder(home), fs::perms(0777));
  const Ran ran = home.run(without_home(home, {"ls"}));
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Contains("expected one that only user") && Contains("XDG_STATE_HOME"));
}

TEST_CASE("nothing is downloaded where there is no home and no variable says where to") {
  const Home home;
  fs::create_directories(home.file("tmp"));
  RunSetup setup = without_home(home, {"pull", "org/name"});
  setup.environment["HF_ENDPOINT"] = "http://127.0.0.1:1";
  const Ran ran = home.run(setup);
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err,
             Contains("org/name: HOME /nonexistent is not there, so that downloads have no "
                      "place to stay; give a folder that can be written with HF_HOME"));
}

}  // namespace tgi
