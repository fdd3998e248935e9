// The grammar of answers: it takes calls as they should be written, refuses wrong ones, and
// what it lets through is read back as a call whose arguments satisfy the schema.
#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "engine/dialect/write_calls.h"
#include "tests/catch.h"
#include "tests/dialect/call_taker.h"
#include "tests/dialect/spoken.h"
#include "tests/dialect/taken.h"

namespace tgi::dialect {
namespace {

bool has_type(const OrderedJson& value, const std::string& type) {
  if (type == "integer")
    return value.is_number_integer() ||
           (value.is_number() && value.get<double>() == std::floor(value.get<double>()));
  return (type == "string" && value.is_string()) || (type == "number" && value.is_number()) ||
         (type == "boolean" && value.is_boolean()) || (type == "null" && value.is_null()) ||
         (type == "object" && value.is_object()) || (type == "array" && value.is_array());
}

// Of the words that the schemas above use.
bool satisfies(const OrderedJson& value, const OrderedJson& schema) {
  if (schema.contains("type") && !has_type(value, schema["type"])) return false;
  if (schema.contains("enum")) {
    const OrderedJson& all = schema["enum"];
    if (std::find(all.begin(), all.end(), value) == all.end()) return false;
  }
  if (schema.contains("anyOf")) {
    const OrderedJson& all = schema["anyOf"];
    const auto fits = [&](const OrderedJson& each) { return satisfies(value, each); };
    if (std::none_of(all.begin(), all.end(), fits)) return false;
  }
  if (value.is_array() && schema.contains("items")) {
    for (const OrderedJson& item : value) {
      if (!satisfies(item, schema["items"])) return false;
    }
  }
  if (!value.is_object()) return true;
  for (const OrderedJson& name : schema.value("required", OrderedJson::array())) {
    if (!value.contains(name.get<std::string>())) return false;
  }
  if (schema.value("properties", OrderedJson::object()).empty()) return true;  // any object
  const OrderedJson properties = schema.value("properties", OrderedJson::object());
  for (const auto& item : value.items()) {
    if (!properties.contains(item.key()) || !satisfies(item.value(), properties[item.key()])) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("a call is taken as it should be written and not otherwise") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  const OrderedJson right = {{"city", "Oslo"}, {"nights", 2}};
  for (const ToolDialect* const dialect : tool_dialects()) {
    AnswerForm form;
    form.dialects.tools = dialect;
    form.tools = {.tools = tools, .must_call = true};
    const auto must = compiled(form);
    form.tools.must_call = false;
    const auto may = compiled(form);
    const auto written = [&](const std::string& name, const OrderedJson& arguments) {
      return write_calls(dialect->syntax, {{.name = name, .arguments = arguments}});
    };
    CAPTURE(dialect->name, written("book", right));
    CHECK(takes(must, written("book", right)));
    CHECK(takes(may, written("book", right)));
    CHECK(takes(must, written("ping", OrderedJson::object())));
    CHECK(takes(may, "It is sunny."));
    CHECK_FALSE(takes(must, "It is sunny."));
    CHECK_FALSE(takes(must, ""));
    CHECK_FALSE(takes(must, "Well. " + written("book", right)));
    const std::string unknown = written("bork", right);
    CHECK_FALSE(takes(must, unknown));
    for (const OrderedJson& wrong :
         {OrderedJson{{"city", "Oslo"}}, OrderedJson{{"city", "Oslo"}, {"nights", "two"}},
          OrderedJson{{"city", "Oslo"}, {"nights", 2}, {"stars", 5}},
          OrderedJson{{"city", "Oslo"}, {"nights", 2}, {"kind", "tent"}}}) {
      CAPTURE(written("book", wrong));
      CHECK_FALSE(takes(must, written("book", wrong)));
      CHECK_FALSE(takes(may, written("book", wrong)));
    }
    std::string broken = written("book", right);
    broken.insert(broken.find("Oslo") + 5, "^");
    CHECK_FALSE(takes(must, broken));
    if (!is_unmarked(dialect->syntax.place)) CHECK_FALSE(takes(may, unknown));
  }
}

TEST_CASE("what the grammar lets through is read back as calls that satisfy the schema") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  std::mt19937 random(7);
  for (const ToolDialect* const dialect : tool_dialects()) {
    AnswerForm form;
    form.dialects.tools = dialect;
    form.tools = {.tools = tools, .must_call = true};
    const auto grammar = compiled(form);
    for (int round = 0; round < 25; ++round) {
      const std::string answer = random_answer(grammar, random);
      CAPTURE(dialect->name, answer);
      for (const size_t chunk : {size_t{1}, answer.size()}) {
        const Heard heard = hear(form.dialects, tools, answer, chunk);
        CHECK(heard.broken.empty());
        CHECK(heard.text == "");
        REQUIRE(!heard.calls.empty());
        for (const ipc::ToolCall& call : heard.calls) {
          const auto tool = std::find_if(tools.begin(), tools.end(),
                                         [&](const Tool& each) { return each.name == call.name; });
          REQUIRE(tool != tools.end());
          CAPTURE(call.arguments);
          CHECK(satisfies(OrderedJson::parse(call.arguments, nullptr, false), tool->parameters));
        }
      }
    }
  }
}

TEST_CASE("arguments whose members stand in branches follow the schema") {
  const auto call = [](const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>";
  };
  const std::string either =
      R"json({"type": "object", "anyOf": [
          {"properties": {"a": {"type": "null"}}, "required": ["a"]},
          {"properties": {"b": {"type": "null"}}, "required": ["b"]}]})json";
  const std::string referred =
      R"json({"type": "object", "$ref": "#/$defs/X", "$defs": {"X": {"type": "object",
          "properties": {"a": {"type": "null"}}, "required": ["a"]}}})json";
  const std::string required = R"json({"type": "object", "required": ["a"]})json";
  for (const std::string& parameters : {either, referred, required}) {
    CAPTURE(parameters);
    const CallTaker takes_call("hermes", parameters.c_str(), /*strict=*/true);
    CHECK(takes_call(call(R"({"a": null})")));
    CHECK_FALSE(takes_call(call("{}")));
  }
  // Arguments are an object whatever the schema says.
  const CallTaker any("hermes", R"({"type": "array"})");
  CHECK(any(call(R"({"x": 1})")));
  CHECK_FALSE(any(call("[]")));
  CHECK_THROWS_WITH(CallTaker("hermes", R"({"type": "array"})", /*strict=*/true),
                    Catch::Contains("tool f: #/type") && Catch::Contains("are an object"));
  const CallTaker perhaps("hermes", R"json({"type": ["object", "null"],
      "properties": {"a": {"type": "null"}}, "required": ["a"]})json");
  CHECK(perhaps(call(R"({"a": null})")));
  CHECK_FALSE(perhaps(call("null")));
  const CallTaker none("hermes", R"({"type": "object", "properties": {}})");
  CHECK(none(call("{}")));
  CHECK_FALSE(none(call(R"({"a": 1})")));
}

TEST_CASE("Kimi K3 says the type of each argument, and the value has it") {
  const CallTaker takes_call("kimi_k3", R"json({"type": "object", "properties": {
      "city": {"type": "string", "enum": ["Rome", "Oslo"]}, "size": {"type": ["string", "integer"]},
      "left": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}, {"type": "object"}]}}})json");
  const auto written = [](const std::string& key, const char* type, const char* value) {
    return "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"" +
           key + "\" type=\"" + type + "\"<|sep|>" + value +
           "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>";
  };
  CHECK(takes_call(written("city", "string", "Rome")));
  CHECK(takes_call(written("size", "string", "12")));
  CHECK(takes_call.arguments() == R"({"size": "12"})");
  CHECK(takes_call(written("size", "number", "12")));
  CHECK(takes_call.arguments() == R"({"size": 12})");
  CHECK(takes_call(written("left", "number", "9")));
  CHECK(takes_call(written("left", "null", "null")));
  CHECK(takes_call(written("left", "object", "{\"a\": [1]}")));
  CHECK_FALSE(takes_call(written("city", "string", "Bonn")));
  CHECK_FALSE(takes_call(written("city", "number", "1")));
  CHECK_FALSE(takes_call(written("size", "number", "1.5")));
  CHECK_FALSE(takes_call(written("left", "number", "10")));
  CHECK_FALSE(takes_call(written("left", "null", "1")));
  CHECK_FALSE(takes_call(written("left", "string", "1")));
}

TEST_CASE("Olmo 3 writes a call a line and JSON's words") {
  const CallTaker takes("olmo3", R"({"type": "object", "properties": {
      "on": {"type": ["boolean", "null"]}, "all": {"type": "object"}}})");
  CHECK(takes("<function_calls>f(on=true, all={\"a\": [null]})</function_calls>"));
  CHECK(takes.arguments() == R"({"on": true, "all": {"a": [null]}})");
  CHECK(takes("<function_calls>f(on=null)</function_calls>"));
  CHECK_FALSE(takes("<function_calls>f(on=None)</function_calls>"));
  CHECK_FALSE(takes("<function_calls>f(on=True)</function_calls>"));
  CHECK_FALSE(takes("<function_calls>f()f()</function_calls>"));
  CHECK_FALSE(takes("<function_calls>f(), f()</function_calls>"));
  // What no grammar guides is read as Python, too.
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  const Dialects dialects{.tools = find_tool_dialect("olmo3")};
  const Heard heard =
      hear(dialects, tools,
           "<function_calls>\nbook(city='Oslo', late=True)\n\nping()\n</function_calls>", 1);
  REQUIRE(heard.calls.size() == 2);
  CHECK(heard.calls[0].arguments == R"({"city": "Oslo", "late": true})");
  CHECK(heard.calls[1].name == "ping");
  CHECK(heard.text.empty());
}

TEST_CASE("calls are read as others say that models write them") {
  struct Written {
    const char* dialect;
    const char* answer;
  };
  constexpr Written kWritten[] = {
      {"longcat",
       "<longcat_tool_call>\n{\"name\": \"book\", \"arguments\": {\"city\": \"Oslo\", "
       "\"nights\": 2}}\n</longcat_tool_call>"},
      {"longcat_keys",
       "<longcat_tool_call>book\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Oslo"
       "</longcat_arg_value>\n<longcat_arg_key>nights</longcat_arg_key>\n<longcat_arg_value>2"
       "</longcat_arg_value>\n</longcat_tool_call>"},
      {"step3",
       "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke "
       "name=\"book\">\n<steptml:parameter name=\"city\">Oslo</steptml:parameter>\n"
       "<steptml:parameter name=\"nights\">2</steptml:parameter>\n</steptml:invoke>"
       "<｜tool_call_end｜>\n<｜tool_calls_end｜>"},
      {"dots",
       "<dots_function_call>\n<invoke name=\"book\">\n<parameter name=\"city\">Oslo</parameter>\n"
       "<parameter name=\"nights\">2</parameter>\n</invoke>\n</dots_function_call>"},
      {"deepseek_v41",
       "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"book\">\n<｜DSML｜ parameter name=\"city\" "
       "string=\"true\">Oslo</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"nights\" "
       "string=\"false\">2</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"},
      {"solar_open2",
       "<|tool_call:start|>book\n<|tool_arg:start|>city<|tool_arg:value|>Oslo<|tool_arg:end|>\n"
       "<|tool_arg:start|>nights<|tool_arg:value|>2<|tool_arg:end|>\n<|tool_call:end|>"},
      {"iquest_q1",
       "<iquest_tool_call>book\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>"
       "nights</arg_key><arg_value>2</arg_value></iquest_tool_call>"},
      {"glm45",  // as GLM 4.7 and 5, Ling 3, Spark 2.5 and Laguna
       "<tool_call>book<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>nights</arg_key>"
       "<arg_value>2</arg_value></tool_call>"},
      {"qwen3_coder",  // as MiMo 2
       "<tool_call>\n<function=book>\n<parameter=city>\nOslo\n</parameter>\n<parameter=nights>\n2\n"
       "</parameter>\n</function>\n</tool_call>"},
      {"command_r7b",  // as Command A Plus
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"book\", \"parameters\": "
       "{\"city\": \"Oslo\", \"nights\": 2}}\n]<|END_ACTION|>"},
      {"hermes",  // as ERNIE 4.5 and Trinity
       "<tool_call>\n{\"name\": \"book\", \"arguments\": {\"city\": \"Oslo\", \"nights\": 2}}\n"
       "</tool_call>"},
      {"hunyuan",  // as Jamba
       "<tool_calls>[\n    {\"name\": \"book\", \"arguments\": {\"city\": \"Oslo\", \"nights\": "
       "2}}\n"
       "]</tool_calls>"}};
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  for (const auto& [name, answer] : kWritten) {
    CAPTURE(name);
    AnswerForm form;
    form.dialects.tools = find_tool_dialect(name);
    form.tools = {.tools = tools, .must_call = true};
    CHECK(takes(compiled(form), answer));
    const Heard heard = hear(form.dialects, tools, std::string("So: ") + answer, 1);
    REQUIRE(heard.calls.size() == 1);
    CHECK(heard.calls[0].name == "book");
    CHECK(OrderedJson::parse(heard.calls[0].arguments) ==
          OrderedJson{{"city", "Oslo"}, {"nights", 2}});
    CHECK(stripped(heard.text) == "So:");
  }
}

TEST_CASE("MiniCPM 5 writes a text that would confuse its reader in a section") {
  const CallTaker takes_call("minicpm5", R"json({"type": "object", "properties": {
      "code": {"type": "string"}, "count": {"type": "integer"}}})json");
  const auto written = [](const std::string& value, const char* key = "code") {
    return std::string("<function name=\"f\"><param name=\"") + key + "\">" + value +
           "</param></function>";
  };
  CHECK(takes_call(written("plain \"text\"")));
  CHECK(takes_call.arguments() == R"({"code": "plain \"text\""})");
  CHECK(takes_call(written("<![CDATA[a <b> & </param>\nc]]>")));
  CHECK(takes_call.arguments() == R"({"code": "a <b> & </param>\nc"})");
  CHECK(takes_call(written("<![CDATA[]]>")));
  CHECK(takes_call(written("12", "count")));
  CHECK_FALSE(takes_call(written("a <b>")));
  CHECK_FALSE(takes_call(written("a\nb")));
  CHECK_FALSE(takes_call(written("twelve", "count")));
  CHECK_FALSE(takes_call(written("<![CDATA[12]]>", "count")));
}

TEST_CASE("arguments in MiniMax's elements follow the schema as far as it goes") {
  const char* const parameters = R"json({"type": "object", "properties": {
      "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
      "tree": {"$ref": "#/$defs/node"}, "unit": {"enum": ["C", 7]}, "free": {"type": "object"},
      "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "deep": {"type": "array", "items": {
        "type": "array", "items": {"type": "integer"}, "minItems": 1}}},
      "$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"},
      "next": {"$ref": "#/$defs/node"}}, "required": ["name"]}}})json";
  const CallTaker takes_call("minimax_m3", parameters);
  const auto marked_tags = [](std::string text) {
    const std::string mark = "]<]minimax[>[";
    for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += mark.size() + 1) {
      text.insert(at, mark);
    }
    return text;
  };
  const auto written = [&](const std::string& inside) {
    return marked_tags("<tool_call>\n<invoke name=\"f\">" + inside + "</invoke>\n</tool_call>");
  };
  const std::pair<const char*, const char*> kRight[] = {
      {"", "{}"},
      {"<tags></tags>", R"({"tags": []})"},
      {"<tags><item>a > b</item><item></item></tags>", R"({"tags": ["a > b",""]})"},
      {"<tree><name>a</name><next><name>5</name></next></tree>",
       R"({"tree": {"name":"a","next":{"name":"5"}}})"},
      {"<unit>7</unit>", R"({"unit": 7})"},
      {"<unit>C</unit><note>null</note>", R"({"unit": "C", "note": null})"},
      {"<free></free>", R"({"free": {}})"},
      {"<free><a><item>1</item></a></free>", R"({"free": {"a":[1]}})"},
      {"<deep><item><item>1</item><item>-2</item></item></deep>", R"({"deep": [[1,-2]]})"},
  };
  for (const auto& [inside, arguments] : kRight) {
    CAPTURE(inside);
    const bool is_sorted = std::string_view(inside) != "<unit>C</unit><note>null</note>";
    CHECK(takes_call(written(inside)));
    if (is_sorted) CHECK(takes_call.arguments() == arguments);
  }
  for (const char* const wrong :
       {"<tags>a</tags>", "<tags><item>a</item><item>b</item><item>c</item></tags>",
        "<tree></tree>", "<tree><next><name>a</name></next></tree>", "<unit>K</unit>",
        "<other>1</other>", "<tags><item>a</tags></item>", "<deep><item></item></deep>",
        "<deep><item><item>x</item></item></deep>"}) {
    CAPTURE(wrong);
    CHECK_FALSE(takes_call(written(wrong)));
  }
  CHECK_NOTHROW(CallTaker("minimax_m3", parameters, /*strict=*/true));
  CHECK_THROWS_WITH(
      CallTaker("minimax_m3",
                R"json({"type": "object", "properties": {"a": {"type": "null"}}})json",
                /*strict=*/true),
      Catch::Contains("tool f: #/properties/a: can't be enforced"));
}

TEST_CASE("a message to a tool follows one to the user where the dialect has both") {
  const std::vector<Tool> tools = tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  struct Messages {
    const char* dialect;
    const char* before_text;
    const char* behind_text;  // before a call
    const char* ping;
  };
  for (const Messages& each :
       {Messages{"functionary_v32", "all\n", ">>>", "ping\n{}"},
        Messages{"functionary_v22", "all\n<|content|>", "\n<|from|>assistant\n<|recipient|>",
                 "ping\n<|content|>{}"},
        Messages{"inkling", "<|content_text|>", "<|end_message|><|message_model|>",
                 "ping<|content_invoke_tool_json|>{\"name\":\"ping\",\"args\":{}}<|end_message|>"},
        Messages{"muse_glimmer", " to=user<|message|>", "<|eom|><|start|>assistant",
                 " to=ping<|message|><atem:function_calls>\n<atem:invoke name=\"ping\">\n"
                 "</atem:invoke>\n</atem:function_calls>"}}) {
    AnswerForm form;
    form.dialects.tools = find_tool_dialect(each.dialect);
    form.tools = {.tools = tools};
    form.marks_text = true;
    const auto may = compiled(form);
    const std::string said = std::string(each.before_text) + "I look. >>> x = 1\n";
    const std::string call = each.behind_text + std::string(each.ping);
    CAPTURE(said, call);
    CHECK(takes(may, said));
    CHECK(takes(may, said + call));
    CHECK(takes(may, said + call + call));
    CHECK(takes(may, each.ping));
    CHECK_FALSE(takes(may, "I look."));
    std::string broken = call;
    broken.insert(broken.find("ping") + 4, "s");
    if (!broken.starts_with(">>>")) CHECK_FALSE(takes(may, said + broken));
    for (const size_t chunk : {size_t{1}, size_t{100}}) {
      const Heard heard = hear(form.dialects, tools, said + call + call, chunk);
      CHECK(heard.text == "I look. >>> x = 1");
      CHECK(heard.calls.size() == 2);
    }
  }
}

TEST_CASE("arguments in Gemma's notation follow the schema as far as it goes") {
  const OrderedJson parameters = OrderedJson::parse(R"json({"type": "object", "properties": {
      "unit": {"enum": ["C", "F", 7, null]}, "pair": {"type": "array", "items": {"type": "integer"},
      "minItems": 2, "maxItems": 2}, "tree": {"$ref": "#/$defs/node"}, "code": {"type": "string", "pattern": "^[a-z]{3}$"},
      "size": {"type": ["integer", "null"], "minimum": 1, "maximum": 9}, "free": {}, "map": {"type": "object"},
      "tags": {"type": "array", "items": {"enum": ["a", "b", 1, "a"]}, "uniqueItems": true, "minItems": 2},
      "months": {"type": "array", "items": {"enum": [1,2,3,4,5,6,7,8,9,10,11,12]}, "uniqueItems": true, "maxItems": 3}},
      "$defs": {"node": {"type": "object", "properties": {"name": {"type": "string"},
      "next": {"$ref": "#/$defs/node"}}, "required": ["name"]}}})json");
  const auto tool = [&](bool strict) {
    return tool_use(
               checked_tools({{{"type", "function"},
                               {"function",
                                {{"name", "f"}, {"parameters", parameters}, {"strict", strict}}}}}),
               std::nullopt, true)
        .tools;
  };
  AnswerForm form;
  form.dialects.tools = find_tool_dialect("gemma4");
  form.tools = {.tools = tool(false), .must_call = true};
  const auto grammar = compiled(form);
  const auto taken = [&](const std::string& arguments) {
    return takes(grammar, "<|tool_call>call:f{" + arguments + "}<tool_call|>");
  };
  for (const char* const right : {"",
                                  "unit:<|\"|>C<|\"|>",
                                  "unit:7",
                                  "unit:null",
                                  "pair:[1,2]",
                                  "pair:[1, 2],unit:7",
                                  "tree:{name:<|\"|>a, b} <|\"|>}",
                                  "tree:{name:<|\"|><|\"|>,next:{name:<|\"|>b<|\"|>}}",
                                  "tree:{next:{name:<|\"|>b<|\"|>},name:<|\"|>a<|\"|>}",
                                  "code:<|\"|>abc<|\"|>",
                                  "size:9",
                                  "size:null",
                                  "free:{a:[1,{b:<|\"|>x<|\"|>}],c:-1.5}",
                                  "map:{}",
                                  "map:{x:true}",
                                  "tags:[1,<|\"|>b<|\"|>]",
                                  "tags:[<|\"|>b<|\"|>,<|\"|>a<|\"|>, 1]",
                                  "months:[]",
                                  "months:[12]",
                                  "months:[1,2,11]"}) {
    CAPTURE(right);
    // Names come in their order, as templates sort them.
    const bool is_sorted =
        std::string_view(right) != "tree:{next:{name:<|\"|>b<|\"|>},name:<|\"|>a<|\"|>}";
    CHECK(taken(right) == is_sorted);
  }
  for (const char* const wrong : {"unit:C",
                                  "unit:<|\"|>K<|\"|>",
                                  "pair:[1]",
                                  "pair:[1,2,3]",
                                  "tree:{}",
                                  "tree:{name:1}",
                                  "code:<|\"|>abcd<|\"|>",
                                  "size:10",
                                  "size:<|\"|>1<|\"|>",
                                  "other:1",
                                  "unit:7,",
                                  "unit:7 unit:7",
                                  "free:x",
                                  "unit:7,pair:[1,2]",
                                  "tags:[1]",
                                  "tags:[1,1]",
                                  "tags:[1,<|\"|>b<|\"|>,1]",
                                  "tags:[1,<|\"|>b<|\"|>,<|\"|>a<|\"|>,<|\"|>a<|\"|>]",
                                  "months:[1,1]",
                                  "months:[2,1]",
                                  "months:[1,2,3,4]"}) {
    CAPTURE(wrong);
    CHECK_FALSE(taken(wrong));
  }

  form.tools.tools = tool(true);
  CHECK_NOTHROW(compiled(form));
  form.tools.tools.front().parameters["properties"]["pair"]["uniqueItems"] = true;
  try {
    (void)compiled(form);
    FAIL("a word that can't be enforced was passed over");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kUnsupported);
    CHECK_THAT(error.what(), Catch::Contains("tool f: #/properties/pair/uniqueItems"));
  }
}

}  // namespace tgi::dialect
