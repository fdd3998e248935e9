// Presets with a real daemon: what they say holds where requests say nothing else.
#include "tests/catch.h"
#include "tests/e2e/daemon_process.h"

namespace tgi {
namespace {

using Catch::Contains;
using ipc::OrderedJson;

constexpr const char* kModelfile =
    "FROM demo\nPARAMETER temperature 3\nPARAMETER seed 7\nPARAMETER num_predict 6\n"
    "SYSTEM You are Mario.\nMESSAGE user Hello\nMESSAGE assistant It is me!\n";

std::string create(const Home& home, const std::string& name, const std::string& text) {
  const Ran ran = home.run({"create", name, "-f", "-"}, text);
  CHECK(ran.err == "");
  REQUIRE(ran.exit_status == 0);
  return home.state() + "/presets/" + name + ".modelfile";
}

}  // namespace

TEST_CASE("a preset is loaded by its name and fills in what requests leave out") {
  const Home home;
  const std::string path = create(home, "mario", kModelfile);
  const DaemonProcess daemon(home);
  const auto json = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"generate", "Once", "--json", "--details"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = home.run(words);
    CHECK(ran.err == "");
    return OrderedJson::parse(ran.out);
  };
  const OrderedJson greedy = json({"--max-new-tokens", "6"});
  const OrderedJson drawn = json({"--temperature", "3", "--seed", "7", "--max-new-tokens", "6"});
  REQUIRE(drawn["text"] != greedy["text"]);
  REQUIRE(home.run({"load", "mario"}).out.starts_with("loaded mario (LlamaForCausalLM"));
  CHECK(daemon.status().model->name == path);
  CHECK_THAT(home.run({"ps"}).out, Contains("mario"));
  CHECK(json({})["text"] == drawn["text"]);
  CHECK(json({"--top-k", "1"})["text"] == greedy["text"]);
  CHECK(json({"--max-new-tokens", "2"})["tokens"].size() == 2);
  const std::string rendered = home.run({"render", "hi"}).out;
  CHECK_THAT(rendered, Contains("You are Mario.") && Contains("It is me!"));
  const std::string others = home.run({"render", "hi", "--system", "You are Luigi."}).out;
  CHECK_THAT(others, Contains("You are Luigi.") && Contains("It is me!") && !Contains("Mario"));
  // The same as asked for by hand.
  REQUIRE(home.run({"load", "demo"}).exit_status == 0);
  CHECK_THAT(home.run({"render", "hi"}).out, !Contains("Mario"));
  CHECK(json({"--max-new-tokens", "6"})["text"] == greedy["text"]);
}

TEST_CASE("a preset's context, template and loading on demand") {
  const Home home;
  const std::string path = create(home, "small",
                                  "FROM demo\nPARAMETER num_ctx 64\nTEMPLATE {% for m in messages "
                                  "%}<{{ m.role }}>{{ m.content }}{% endfor %}\nSYSTEM be brief\n");
  const DaemonProcess daemon(home, {"--on-demand", "small=" + path});
  CHECK(home.run({"render", "hi", "-m", "small"}).out == "<system>be brief<user>hi");
  CHECK(daemon.status().model->name == "demo");
  const ipc::OtherModelStatus small = ipc::find_model(daemon.status(), "small");
  REQUIRE(small.model);
  CHECK(small.model->max_total_tokens == 64);
  const Ran shown = home.run({"show", "small"});
  CHECK_THAT(shown.out, Contains("from             demo") && Contains("num_ctx          64") &&
                            Contains("system           be brief") && Contains("LlamaForCausalLM"));
}

TEST_CASE("a preset's schema holds where a request asks for no form, and its drafts for loads") {
  const Home home;
  const std::string path = create(home, "form",
                                  "FROM demo\nPARAMETER speculate 3\n"
                                  "SCHEMA {\"type\": \"array\", \"items\": {\"enum\": [1, 2]}, "
                                  "\"minItems\": 2, \"maxItems\": 2}\n");
  const DaemonProcess daemon(home, {"--model", path});
  CHECK(daemon.status().model->name == path);
  CHECK(daemon.status().model->speculate == 3);
  const OrderedJson answer = OrderedJson::parse(home.run({"generate", "Once"}).out);
  CHECK(answer.size() == 2);
  CHECK(home.run({"generate", "Once", "--regex", "[a]{3}"}).out == "aaa\n");
  CHECK_THAT(home.run({"show", "form"}).out, Contains("schema           {\"type\""));
  create(home, "loose",
         "FROM demo\nSCHEMA {\"type\": \"array\", \"uniqueItems\": true, \"items\": "
         "{\"multipleOf\": 7}}\n");
  const Ran refused = home.run({"load", "loose"});
  CHECK(refused.exit_status != 0);
  CHECK_THAT(refused.err, Contains("loose.modelfile: SCHEMA"));
  CHECK(daemon.status().model->name == path);
  CHECK(home.run({"load", "form", "--speculate", "0"}).exit_status == 0);
  CHECK(daemon.status().model->speculate == 0);
}

TEST_CASE("a preset that can't be used is refused with what is wrong, and the model serves on") {
  const Home home;
  const DaemonProcess daemon(home);
  const std::string bad = home.write("bad.modelfile", "FROM demo\nNOTHING x\n");
  const Ran ran = home.run({"load", bad});
  CHECK(ran.exit_status == 3);
  CHECK_THAT(ran.err, Contains("bad.modelfile: line 2, column 1"));
  const Ran relative = home.run({"load", home.write("rel.modelfile", "FROM ./model\n")});
  CHECK_THAT(relative.err, Contains("expected an absolute path; `tgi create NAME -f"));
  const std::string wrong = create(home, "wrong", "FROM demo\nTEMPLATE {% if %}\n");
  CHECK_THAT(home.run({"load", "wrong"}).err, Contains("wrong.modelfile: TEMPLATE"));
  create(home, "wide", "FROM demo\nPARAMETER num_ctx 100000000\n");
  CHECK(home.run({"load", "wide"}).exit_status != 0);
  CHECK(daemon.status().model->name == "demo");
}

}  // namespace tgi
