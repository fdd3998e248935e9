// Modelfiles: what their grammar takes, what presets refuse and where, and the way back.
#include "base/files/preset.h"
#include "base/error.h"
#include "tests/catch.h"

namespace tgi {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    (void)parse_preset(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a Modelfile says a model, its parameters and its texts") {
  const Preset preset = parse_preset(
      "\xEF\xBB\xBF# a comment\r\n"
      "from  ./model dir \r\n"
      "\n"
      "PARAMETER temperature 0.7\n"
      "  Parameter\ttop_k\t0\n"
      "PARAMETER stop \"AI: \"\n"
      "PARAMETER stop \"\"\"\n\n\"\"\"\n"
      "SYSTEM \"\"\"You are \"Mario\".\n# no comment\n\"\"\"  \n"
      "TEMPLATE {{ messages[0]['content'] }}\n"
      "MESSAGE user \"say\n\"hi\"\"\n"
      "MESSAGE assistant\n"
      "LICENSE a\nLICENSE b");
  CHECK(preset.from == "./model dir");
  CHECK(preset.parameters.temperature == 0.7);
  CHECK(preset.parameters.top_k == 0);
  CHECK_FALSE(preset.parameters.top_p);
  CHECK(preset.parameters.stop == std::vector<std::string>{"AI: ", "\n\n"});
  CHECK(preset.system == "You are \"Mario\".\n# no comment\n");
  CHECK(preset.chat_template == "{{ messages[0]['content'] }}");
  CHECK(preset.messages == std::vector<PresetMessage>{{"user", "say\n\"hi\""}, {"assistant", ""}});
  CHECK(preset.licenses == std::vector<std::string>{"a", "b"});
}

TEST_CASE("what a Modelfile can't say here is refused with its place") {
  struct Row {
    std::string text;
    std::string refusal;
  };
  for (const Row& row : {
           Row{"", "expected a line \"FROM MODEL\", there is none"},
           Row{"FROM\n", "line 1, column 5: expected a value of FROM, got none"},
           Row{"FROM a\n\nRENDERER x",
               "line 3, column 1: expected one of FROM, PARAMETER, SYSTEM, TEMPLATE, ADAPTER, "
               "MESSAGE, LICENSE, SCHEMA, SPECULATOR, DRAFT, got RENDERER"},
           Row{"FROM a\nPARAMETER mirostat 1",
               "line 2, column 11: expected one of the parameters temperature, top_k, top_p, "
               "min_p, typical_p, repeat_penalty, presence_penalty, frequency_penalty, seed, "
               "num_predict, num_ctx, speculate, stop, got mirostat; leave it out"},
           Row{"FROM a\nPARAMETER top_p  1.5",
               "line 2, column 18: top_p: expected a number above 0 and at most 1, got \"1.5\""},
           Row{"FROM a\nPARAMETER top_p 0", "line 2, column 17: top_p: expected a number above 0"},
           Row{"FROM a\nPARAMETER top_k 1.5",
               "line 2, column 17: top_k: expected a whole number of at least 0, got \"1.5\""},
           Row{"FROM a\nPARAMETER temperature nan", "line 2, column 23: temperature: expected a"},
           Row{"FROM a\nPARAMETER temperature",
               "line 2, column 22: expected a value of PARAMETER temperature, got none"},
           Row{"FROM a\nPARAMETER seed 1\nPARAMETER seed 2",
               "line 3, column 1: PARAMETER seed is given again, first in line 2"},
           Row{"FROM a\nFROM b", "line 2, column 1: FROM is given again, first in line 1"},
           Row{"FROM a\nMESSAGE tool x",
               "line 2, column 9: expected a role: system, user, assistant, got tool"},
           Row{"FROM a\nSYSTEM \"\"\"b\n", "line 2, column 8: expected a closing \"\"\""},
           Row{"FROM a\nSYSTEM \"b\nc", "line 2, column 8: expected a closing \""},
           Row{"FROM a\nSYSTEM \"\"\"\xC3\xA4\"\"\" b",
               "line 2, column 16: expected the end of the line after \"\"\", got b"},
           Row{"FROM a\nSYSTEM \xC3\xA4\xFF", "line 2, column 9: expected UTF-8"},
           Row{"FROM a\nTEMPLATE {{ .System }} {{ .Prompt }}",
               "line 2, column 10: a template in Go's notation"},
           Row{"FROM a\nTEMPLATE {{- if .System }}a{{ end }}", "line 2, column 10: a template in"},
           Row{"FROM a\nTEMPLATE {{- $m := 1 }}", "line 2, column 10: a template in Go's"},
       }) {
    INFO(row.text);
    const std::string refusal = refusal_of(row.text);
    CHECK_THAT(refusal, Catch::StartsWith(row.refusal));
  }
}

TEST_CASE("a preset that is written is read as the same") {
  Preset preset{.from = "/models/a \"b\"", .parameters = {}};
  preset.parameters.temperature = 0.1;
  preset.parameters.top_k = 40;
  preset.parameters.seed = 9007199254740993;
  preset.parameters.stop = {" a ", "\"", "b\r", "\n", "x \"\"\" y"};
  preset.system = "";
  preset.chat_template = "{% for m in messages %}\n{{ m.content }}\n{% endfor %}";
  preset.adapter = "/adapters/a";
  preset.messages = {{"user", "\"\"hi\"\""}, {"assistant", "# no comment"}};
  preset.licenses = {"line\n\nline\n"};
  const std::string text = to_modelfile(preset);
  INFO(text);
  const Preset back = parse_preset(text);
  CHECK(back.from == preset.from);
  CHECK(back.parameters.temperature == 0.1);
  CHECK(back.parameters.top_k == 40);
  CHECK(back.parameters.seed == 9007199254740993);
  CHECK(back.parameters.stop == preset.parameters.stop);
  CHECK(back.system == "");
  CHECK(back.chat_template == preset.chat_template);
  CHECK(back.adapter == preset.adapter);
  CHECK(back.messages == preset.messages);
  CHECK(back.licenses == preset.licenses);
  CHECK(to_modelfile(back) == text);
  preset.system = "a\n\"\"\"";
  CHECK_THROWS_WITH(to_modelfile(preset), Catch::Contains("SYSTEM: a text over several lines"));
}

TEST_CASE("a whole number may be written as a real one") {
  const PresetParameters read =
      parse_preset("FROM demo\nPARAMETER top_k 40.0\nPARAMETER seed -1.0\n").parameters;
  CHECK(read.top_k == 40);
  CHECK(read.seed == -1);
  CHECK_THROWS_WITH(parse_preset("FROM demo\nPARAMETER top_k 1e30\n"),
                    Catch::Contains("top_k: expected a whole number"));
}

TEST_CASE("a schema and what drafts are read, written and checked") {
  const std::string text =
      "FROM demo\nDRAFT /small\nPARAMETER speculate 4\n"
      "SCHEMA \"\"\"{\n \"type\": \"object\"}\"\"\"\n";
  const Preset preset = parse_preset(text);
  CHECK(preset.draft_model == "/small");
  CHECK(preset.parameters.speculate == 4);
  CHECK(preset.schema == "{\n \"type\": \"object\"}");
  CHECK(to_modelfile(preset) == text);
  const auto failure = [](const std::string& line) {
    try {
      (void)parse_preset("FROM demo\n" + line);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(failure("SCHEMA {\"type\": "), Catch::Contains("line 2, column 8: a JSON schema: "));
  CHECK_THAT(failure("SCHEMA [1]"), Catch::Contains("expected an object"));
  CHECK_THAT(failure("PARAMETER speculate 65"), Catch::Contains("speculate: expected a whole"));
  CHECK_THAT(failure("DRAFT /a\nSPECULATOR mtp"), Catch::Contains("one of them drafts, not both"));
  // Another drafter takes the place of the base's.
  const Preset other{.from = "/a", .parameters = {}, .speculator = "mtp"};
  const Preset both = over(preset, other);
  CHECK(both.speculator == "mtp");
  CHECK(both.draft_model.empty());
  CHECK(both.schema == preset.schema);
}

TEST_CASE("a preset over another one takes what it says and leaves the rest") {
  Preset base{.from = "/a", .parameters = {}};
  base.parameters.temperature = 0.5;
  base.parameters.top_k = 3;
  base.parameters.stop = {"a", "b"};
  base.system = "be brief";
  Preset preset{.from = "base", .parameters = {}};
  preset.parameters.top_k = 9;
  preset.system = "";
  const Preset both = over(base, preset);
  CHECK(both.from == "/a");
  CHECK(both.parameters.temperature == 0.5);
  CHECK(both.parameters.top_k == 9);
  CHECK(both.parameters.stop.size() == 2);
  CHECK(both.system == "");
}

}  // namespace tgi
