// Chat templates of real models against what jinja2 and transformers make of them, and how they are
// found among a model's files.
#include "engine/text/chat_template.h"

#include <filesystem>
#include <map>
#include <thread>

#include "base/files/file_source.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/parser.h"
#include "tests/catch.h"
#include "tests/chat_template/test_support.h"
#include "tests/shared_data.h"

namespace tgi {
namespace {

// Options and messages as one JSON object, like transformers' apply_chat_template takes them.
std::string render_conversation(const ChatTemplate& chat, const OrderedJson& conversation) {
  RenderOptions options;
  options.local_time = &golden_time;
  options.add_generation_prompt = conversation.value("add_generation_prompt", false);
  options.continue_final_message = conversation.value("continue_final_message", false);
  for (const auto& [name, value] : conversation.items()) {
    if (name == "tools") {
      options.tools = &value;
    } else if (name == "documents") {
      options.documents = &value;
    } else if (name == "enable_thinking" || name.find("_token") != std::string::npos) {
      options.extra[name] = value;
    }
  }
  return chat.render(conversation["messages"], options);
}

// The files of a model, by name. REQUIRES: `files` outlives the result.
std::unique_ptr<FileSource> files_of(const std::map<std::string, std::string>& files) {
  std::vector<EmbeddedFile> embedded;
  for (const auto& [name, text] : files) {
    embedded.push_back({name, std::as_bytes(std::span(text.data(), text.size()))});
  }
  return open_embedded("test model", std::move(embedded));
}

std::string load_and_render(const std::map<std::string, std::string>& files,
                            const RenderOptions& options = {}) {
  const auto source = files_of(files);
  const std::optional<ChatTemplate> chat = load_chat_template(*source);
  REQUIRE(chat.has_value());
  return chat->render(one_message(), options);
}

// The template alone, with nothing but the context's members as variables.
std::string render_context(const std::string& source, const OrderedJson& context) {
  const jinja::Limits limits;
  const jinja::Program program = jinja::parse_template(source, limits);
  jinja::Interpreter interpreter(program, limits, &golden_time);
  for (const auto& [name, value] : context.items()) {
    interpreter.set_variable(
        name, [&](jinja::Budget& budget) { return jinja::from_json(value, budget); });
  }
  return interpreter.render();
}

// The goldens were made with the arguments of tool calls as text, as the OpenAI API has them, but
// parsed for the templates in which one of these was found.
bool wants_parsed_arguments(const std::string& source) {
  return source.find("tool_call.arguments | items") != std::string::npos ||
         source.find("tool_call.arguments | tojson") != std::string::npos;
}

void parse_arguments(OrderedJson& messages) {
  for (OrderedJson& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (OrderedJson& call : message["tool_calls"]) {
      OrderedJson& arguments = call["function"]["arguments"];
      arguments = OrderedJson::parse(arguments.get<std::string>());
    }
  }
}

TEST_CASE("renders_the_templates_of_38_models_as_jinja2_does") {
  const std::string folder = "templates/llama.cpp-goldens";
  if (!has_shared_data(folder)) return;
  const std::string root = shared_data_dir() + "/" + folder;
  std::map<std::string, OrderedJson> contexts;
  for (const std::string name : {"simple", "system", "tool_use"}) {
    contexts[name] = OrderedJson::parse(read_text(root + "/contexts/" + name + ".json"));
  }
  size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/goldens")) {
    const std::string golden = entry.path().stem().string();
    const size_t dash = golden.rfind('-');
    const std::string source = read_text(root + "/templates/" + golden.substr(0, dash) + ".jinja");
    OrderedJson context = contexts.at(golden.substr(dash + 1));
    if (wants_parsed_arguments(source)) parse_arguments(context["messages"]);
    INFO(golden);
    CHECK(render_context(source, context) == read_text(entry.path().string()));
    ++compared;
  }
  CHECK(compared >= 86);
}

TEST_CASE("renders_the_templates_of_real_tokenizers_as_transformers_does") {
  const auto goldens =
      OrderedJson::parse(read_text(TGI_SOURCE_DIR "/tests/chat_template/golden/models.json"));
  for (const auto& [model, conversations] : goldens.items()) {
    if (!has_shared_data("tokenizers/" + model)) continue;
    const auto files = open_folder(shared_data_dir() + "/tokenizers/" + model);
    const std::optional<ChatTemplate> chat = load_chat_template(*files);
    REQUIRE(chat.has_value());
    for (const OrderedJson& conversation : conversations) {
      INFO(model << ": " << conversation.dump());
      REQUIRE(conversation.contains("output"));
      CHECK(render_conversation(*chat, conversation) == conversation["output"].get<std::string>());
    }
  }
}

TEST_CASE("a_jinja_file_wins_over_chat_template_json_over_the_tokenizer_config") {
  const std::string config = R"({"chat_template": "config", "bos_token": "<s>"})";
  const std::string json = R"({"chat_template": "json {{ bos_token }}"})";
  CHECK(load_and_render({{"tokenizer_config.json", config}}) == "config");
  CHECK(load_and_render({{"tokenizer_config.json", config}, {"chat_template.json", json}}) ==
        "json <s>");
  CHECK(load_and_render({{"tokenizer_config.json", config},
                         {"chat_template.json", json},
                         {"chat_template.jinja", "file {{ bos_token }}"}}) == "file <s>");
}

TEST_CASE("a_model_without_a_chat_template_gives_none") {
  CHECK_FALSE(load_chat_template(*files_of({})).has_value());
  const std::map<std::string, std::string> files = {
      {"tokenizer_config.json", R"({"bos_token": "<s>"})"}};
  CHECK_FALSE(load_chat_template(*files_of(files)).has_value());
}

TEST_CASE("of_several_templates_tool_use_is_taken_when_there_are_tools") {
  const std::string config = R"({"chat_template": [
      {"name": "default", "template": "plain"},
      {"name": "rag", "template": "rag"},
      {"name": "tool_use", "template": "tools: {{ tools[0].name }}"}]})";
  const OrderedJson tools = OrderedJson::parse(R"([{"name": "f"}])");
  RenderOptions with_tools;
  with_tools.tools = &tools;
  CHECK(load_and_render({{"tokenizer_config.json", config}}) == "plain");
  CHECK(load_and_render({{"tokenizer_config.json", config}}, with_tools) == "tools: f");
  const std::map<std::string, std::string> as_files = {
      {"chat_template.jinja", "plain"}, {"additional_chat_templates/tool_use.jinja", "tools"}};
  CHECK(load_and_render(as_files) == "plain");
  CHECK(load_and_render(as_files, with_tools) == "tools");
  const auto unnamed =
      ChatTemplate::parse(std::vector<ChatTemplate::Named>{{"rag", "a"}, {"tool_use", "b"}});
  const Failure failure = failure_of([&] { unnamed.render(one_message()); });
  CHECK(failure.message.find("rag, tool_use") != std::string::npos);
}

TEST_CASE("special_tokens_are_strings_or_objects") {
  const std::string config = R"({
      "chat_template": "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ unk_token }}|{{ additional_special_tokens }}",
      "bos_token": {"__type": "AddedToken", "content": "<bos>", "lstrip": false},
      "eos_token": "<eos>", "pad_token": null})";
  const std::string map = R"({"unk_token": {"content": "<unk>"},
      "additional_special_tokens": ["<a>", {"content": "<b>"}]})";
  CHECK(load_and_render({{"tokenizer_config.json", config}, {"special_tokens_map.json", map}}) ==
        "<bos>|<eos>||<unk>|['<a>', '<b>']");
}

TEST_CASE("special_tokens_of_a_folder_are_those_that_transformers_finds_in_it") {
  const auto folders =
      OrderedJson::parse(read_text(TGI_SOURCE_DIR "/tests/chat_template/golden/tokens.json"));
  CHECK(folders.size() > 20);
  for (const OrderedJson& folder : folders) {
    INFO(folder.dump());
    std::map<std::string, std::string> files = {{"chat_template.jinja", "{{ bos_token }}"}};
    for (const auto& [name, content] : folder["files"].items()) files[name] = content.dump();
    ChatTemplate::SpecialTokens expected;
    for (const auto& [name, token] : folder["tokens"].items()) expected[name] = token;
    const auto source = files_of(files);
    ChatTemplate::SpecialTokens tokens = load_chat_template(*source)->special_tokens();
    tokens.erase("additional_special_tokens");  // templates of transformers 4 may read it
    CHECK(tokens == expected);
  }
}

TEST_CASE("a_token_of_the_class_alone_is_one_only_where_the_tokenizer_has_it") {
  const std::string config = R"({"tokenizer_class": "LlamaTokenizerFast",
      "chat_template": "{{ bos_token }}{{ eos_token }}"})";
  const auto render = [&](const std::string& tokenizer) {
    return load_and_render({{"tokenizer_config.json", config}, {"tokenizer.json", tokenizer}});
  };
  CHECK(render(R"({"model": {"vocab": {"<s>": 1, "</s>": 2}}})") == "<s></s>");
  CHECK(render(R"({"model": {"vocab": {"<|begin|>": 1, "</s>": 2}}})") == "</s>");
  CHECK(load_and_render({{"tokenizer_config.json", config}}) == "<s></s>");
}

TEST_CASE("a_malformed_template_names_its_file_and_line") {
  const auto failure = [](const std::map<std::string, std::string>& files) {
    return failure_of([&] { load_chat_template(*files_of(files)); });
  };
  const Failure syntax = failure({{"chat_template.jinja", "a\n{% if x %}\nb"}});
  CHECK(syntax.code == Code::kInvalidArgument);
  CHECK(syntax.message.find("chat_template.jinja") != std::string::npos);
  CHECK(syntax.message.find("line 3") != std::string::npos);
  const Failure type = failure({{"tokenizer_config.json", R"({"chat_template": 5})"}});
  CHECK(type.message.find("tokenizer_config.json") != std::string::npos);
  CHECK(type.message.find("expected a string or a list") != std::string::npos);
  CHECK(failure({{"tokenizer_config.json", R"({"chat_template": [{"name": "x"}]})"}}).has_failed);
  CHECK(failure({{"chat_template.json", "{"}}).has_failed);
  CHECK(failure({{"chat_template.jinja", "\xff\xfe"}}).message.find("UTF-8") != std::string::npos);
}

TEST_CASE("the_request_s_own_variables_win_over_special_tokens_but_not_over_messages") {
  const ChatTemplate chat =
      ChatTemplate::parse("{{ bos_token }} {{ mode }}", {{"bos_token", "<s>"}});
  RenderOptions options;
  options.extra = OrderedJson::parse(R"({"mode": "fast"})");
  CHECK(chat.render(one_message(), options) == "<s> fast");
  options.extra["bos_token"] = "<x>";
  CHECK(chat.render(one_message(), options) == "<x> fast");
  options.extra["messages"] = 5;
  CHECK(failure_of([&] { chat.render(one_message(), options); }).message.find("'messages'") !=
        std::string::npos);
}

TEST_CASE("continues_the_last_message_right_behind_its_content") {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}");
  const ChatTemplate trims = ChatTemplate::parse(
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</end>\n{% endfor %}");
  const ChatTemplate drops =
      ChatTemplate::parse("{% for m in messages[:-1] %}{{ m.content }}{% endfor %}");
  const ChatTemplate parts = ChatTemplate::parse(
      "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}");
  RenderOptions options;
  options.add_generation_prompt = false;
  options.continue_final_message = true;
  const auto messages = OrderedJson::parse(
      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hel  "}])");
  CHECK(chat.render(messages, options) == "<user>Hi</user>\n<assistant>Hel  ");
  CHECK(trims.render(messages, options) == "<user>Hi</end>\n<assistant>Hel");
  CHECK(failure_of([&] { drops.render(messages, options); }).message.find("does not appear") !=
        std::string::npos);
  const auto in_parts = OrderedJson::parse(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}]}])");
  CHECK(parts.render(in_parts, options) == "[a][b");
  const auto without = OrderedJson::parse(R"([{"role": "user", "content": null}])");
  CHECK(failure_of([&] { chat.render(without, options); }).message.find("no content") !=
        std::string::npos);
  options.add_generation_prompt = true;
  CHECK(failure_of([&] { chat.render(messages, options); }).has_failed);
}

TEST_CASE("null_members_count_as_absent_and_reasoning_has_one_name") {
  const ChatTemplate chat = ChatTemplate::parse(
      "{{ messages[0].tool_calls is defined }} {{ messages[0].reasoning_content }} "
      "{{ messages[0].thinking }}");
  const auto messages = OrderedJson::parse(
      R"([{"role": "assistant", "content": "4", "tool_calls": null, "reasoning": "2+2"}])");
  CHECK(chat.render(messages) == "False 2+2 2+2");
}

TEST_CASE("a_null_member_is_none_where_the_template_asks_or_fails_without") {
  const auto calls = OrderedJson::parse(
      R"([{"role": "assistant", "content": null, "tool_calls": [{"name": "f"}]}])");
  const auto render = [&](const std::string& source) {
    return ChatTemplate::parse(source).render(calls);
  };
  const std::string loop = "{% for m in messages %}";
  const std::string end = "{% endfor %}";
  for (const std::string asks :
       {"m.content is none", "m['content'] is none", "m.content == none", "none == m['content']",
        "m.get('content') is none", "m.content is sameas none", "not m.content is not none",
        "(m.content if true else 1) is none"}) {
    INFO(asks);
    CHECK(render(loop + "{{ 'call' if " + asks + " else 'text' }}" + end) == "call");
  }
  CHECK(render(loop + "{% set c = m.content %}{% if c is none %}call{% endif %}" + end) == "call");
  CHECK(render("{% macro f(a, b) %}{{ b is none }}{% endmacro %}" + loop +
               "{{ f(1, m.content) }}{{ f(1, b=m.content) }}" + end) == "TrueTrue");
  CHECK(render("{% set ns = namespace() %}" + loop +
               "{% set ns.last = m.content %}{% endfor %}{{ ns.last is none }}") == "True");
  // Otherwise as transformers: left out.
  CHECK(render(loop + "[{{ m.content }}]{{ m.content is defined }}" + end) == "[]False");
  // Asks for another member.
  CHECK(render(loop + "{{ m.name is none }}{{ 'content' in m }}" + end) == "FalseFalse");
  // As LFM2 has it: can't be rendered without the member.
  CHECK(render(loop +
               "{% set c = m.content %}{% if c is not string %}{% set c = c | tojson %}"
               "{% endif %}{{ c + '!' }}" +
               end) == "null!");
  const Failure failure = failure_of([&] { render(loop + "{{ m.content + 'x' }}" + end); });
  CHECK(failure.message.find("has no attribute 'content'") != std::string::npos);
}

TEST_CASE("a_list_of_parts_stays_one_where_the_template_goes_through_it") {
  const auto messages = OrderedJson::parse(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
  const auto render = [&](const std::string& source) {
    return ChatTemplate::parse(source).render(messages);
  };
  const std::string loop = "{% for m in messages %}";
  const std::string end = "{% endfor %}";
  for (const std::string parts : {
           "{% for p in m.content %}[{{ p.text }}]{% endfor %}",
           "{% for p in m['content'] %}{% if p['type'] == 'text' %}[{{ p['text'] }}]{% endif %}{% "
           "endfor %}",
           "{% set c = m.content %}{% for p in c if p.type == 'text' %}[{{ p.text }}]{% endfor %}",
           "{% if m.content is string %}{{ m.content }}{% else %}{% for content in m.content %}"
           "[{{ content['text'] }}]{% endfor %}{% endif %}",
           "[{{ m.content[0].text }}][{{ m['content'][-1]['text'] }}]",
           "[{{ (m.content|first).text }}][{{ (m.content|last)['text'] }}]",
           "[{{ m.content | map(attribute='text') | join('][') }}]",
           "{% for p in m.content | selectattr('type', 'equalto', 'text') %}[{{ p.text }}]{% "
           "endfor %}",
           "{% for p in m.get('content') or [] %}[{{ p.text }}]{% endfor %}",
       }) {
    INFO(parts);
    CHECK(ChatTemplate::parse(loop + parts + end).takes_parts());
    CHECK(render(loop + parts + end) == "[a][b]");
  }
  CHECK(render("{% macro show(content) %}{% for p in content %}[{{ p.text }}]{% endfor %}{% "
               "endmacro %}" +
               loop + "{{ show(m.content) }}" + end) == "[a][b]");
  for (const std::string text : {
           "{{ m.content }}",
           "{{ m['content'] | trim }}",
           "{{ m.content if m.content is string }}",
           "{% set c = m.content %}{{ c.split('x')[-1] }}",
           "{% if m.content is string %}{{ m.content }}{% else %}{{ m.content | tojson }}{% endif "
           "%}",
           "{% for call in m.content if m.role == 'tool' %}{{ call.function }}{% endfor %}{{ "
           "m.content }}",
       }) {
    INFO(text);
    CHECK_FALSE(ChatTemplate::parse(loop + text + end).takes_parts());
    CHECK(render(loop + text + end) == "ab");
  }
  const auto image = OrderedJson::parse(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}])");
  const Failure failure =
      failure_of([&] { ChatTemplate::parse("{{ messages[0].content }}").render(image); });
  CHECK(failure.code == Code::kInvalidArgument);
  CHECK(failure.message.find("messages[0].content[1]: expected a part of type text") == 0);
  CHECK(ChatTemplate::parse("{% for p in messages[0].content %}{{ p.type }} {% endfor %}")
            .render(image) == "text image ");
}

TEST_CASE("variables_that_are_not_the_request_s_to_give_are_refused") {
  const ChatTemplate chat = ChatTemplate::parse("{{ enable_thinking }}");
  for (const char* name : {"messages", "tools", "documents", "add_generation_prompt",
                           "continue_final_message", "chat_template", "tokenize"}) {
    RenderOptions options;
    options.extra[name] = true;
    const Failure failure = failure_of([&] { chat.render(one_message(), options); });
    INFO(name);
    CHECK(failure.code == Code::kInvalidArgument);
    CHECK(failure.message.find(std::string("'") + name + "' is reserved") != std::string::npos);
  }
}

TEST_CASE("refuses_messages_that_are_none") {
  const ChatTemplate chat = ChatTemplate::parse("x");
  for (const char* messages : {"[]", "{}", "\"a\"", "[1]", "[[]]", "[null]"}) {
    INFO(messages);
    const Failure failure = failure_of([&] { chat.render(OrderedJson::parse(messages)); });
    CHECK(failure.has_failed);
    CHECK(failure.code == Code::kInvalidArgument);
    CHECK(failure.message.find("messages") != std::string::npos);
  }
}

TEST_CASE("tells_which_variables_a_template_mentions") {
  const ChatTemplate chat = ChatTemplate::parse("{% if tools %}{{ tools|tojson }}{% endif %}");
  CHECK(chat.mentions("tools"));
  CHECK_FALSE(chat.mentions("documents"));
}

TEST_CASE("keeps_the_order_of_members_in_tools") {
  const ChatTemplate chat = ChatTemplate::parse("{{ tools|tojson }}");
  const OrderedJson tools = OrderedJson::parse(R"([{"z": 1, "a": {"y": [true, null], "b": 1.0}}])");
  RenderOptions options;
  options.tools = &tools;
  CHECK(chat.render(one_message(), options) == R"([{"z": 1, "a": {"y": [true, null], "b": 1.0}}])");
}

TEST_CASE("one_template_is_rendered_by_many_threads_at_once") {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% set ns = namespace(n=0) %}{% macro add(x) %}{{ x + 1 }}{% endmacro %}"
      "{% for i in range(200) %}{% set ns.n = ns.n + add(i)|int %}{% endfor %}"
      "{{ ns.n }} {{ messages[0].content }}");
  std::vector<std::string> results(8);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        const auto messages =
            OrderedJson::array({{{"role", "user"}, {"content", std::to_string(i)}}});
        for (int round = 0; round < 20; ++round) results[i] = chat.render(messages);
      });
    }
  }
  for (size_t i = 0; i < results.size(); ++i) CHECK(results[i] == "20100 " + std::to_string(i));
}

}  // namespace
}  // namespace tgi
