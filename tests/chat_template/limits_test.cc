// Bad templates: each is an error that says where and why, soon and without using up the machine.
#include <chrono>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/chat_template/test_support.h"

namespace tgi {
namespace {

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

void check_fails(const std::string& source,
                 Code code,
                 const std::string& part,
                 const jinja::Limits& limits = {}) {
  const Failure failure = failure_of_template(source, limits);
  INFO("template: " << source.substr(0, 200));
  INFO("message: " << failure.message);
  CHECK(failure.has_failed);
  CHECK(failure.code == code);
  CHECK(failure.message.find(part) != std::string::npos);
}

void check_invalid(const std::string& source,
                   const std::string& part,
                   const jinja::Limits& limits = {}) {
  check_fails(source, Code::kInvalidArgument, part, limits);
}

TEST_CASE("syntax_errors_name_the_line_and_what_was_expected") {
  check_invalid("a\nb\n{{ 1 + }}", "chat template: line 3: unexpected end of print statement");
  check_invalid("\n{% if x %}\n\n{% for y in z %}\n{% endif %}",
                "line 5: unknown tag 'endif'; looking for else or endfor of the block opened on "
                "line 4");
  check_invalid("\n{% if x %}\n",
                "line 2: the template ends, but the block of line 2 has no 'endif'");
  check_invalid("x\n\n{{ 'abc }}", "line 3: unexpected character ''': the string has no end");
  check_invalid("{{ a\n\n | nope }}", "line 3: no filter named 'nope'");
  check_invalid("\n{{ a is nope }}", "line 2: no test named 'nope'");
  check_invalid("{# x\n\n", "line 1: missing end of comment tag");
  check_invalid("\n{% raw %}", "line 2: missing end of raw directive");
  check_invalid("{{ (1 }}", "unexpected '}', expected ')'");
  check_invalid("{% set 5 = 1 %}", "can't assign to '5'");
  check_invalid("{% break %}", "'break' outside of a loop");
  check_invalid("\n{{ 9999999999999999999999999999999999999999 }}",
                "line 2: this integer is too large");
}

TEST_CASE("errors_while_rendering_name_the_line_and_the_value") {
  check_invalid("a\n{{ missing.x }}", "line 2: 'missing' is undefined");
  check_invalid("\n\n{{ messages[0].nope.x }}", "line 3: 'dict object' has no attribute 'nope'");
  check_invalid("{% macro m(a) %}\n{{ a.b.c }}\n{% endmacro %}\n\n{{ m({}) }}",
                "line 2: 'dict object' has no attribute 'b'");
  check_invalid("\n{{ 1 + 'a' }}", "line 2: unsupported operand types for +: 'int' and 'str'");
  check_invalid("{{ messages.append(1) }}",
                "access to attribute 'append' of 'list' object is unsafe");
  check_invalid("{{ 'a'.join([1]) }}", "join() wants strings, got int");
  check_invalid("{{ range(100001) }}", "range() has 100001 elements: at most 100000 are allowed");
}

TEST_CASE("a_template_s_own_refusal_is_passed_on_word_for_word") {
  const std::string text = "Conversation roles must alternate user/assistant/...!";
  const Failure failure = failure_of_template("\n{{ raise_exception('" + text + "') }}");
  CHECK(failure.code == Code::kInvalidArgument);
  CHECK(failure.message == text);
}

TEST_CASE("what_is_understood_but_not_offered_says_so") {
  for (const char* tag : {"include 'a'", "import 'a' as b", "from 'a' import b", "extends 'a'"}) {
    check_fails(std::string("\n{% ") + tag + " %}", Code::kUnsupported, "line 2: {% ");
  }
  check_fails("{{ 'x' | urlize }}", Code::kUnsupported, "the filter 'urlize' is not supported");
  check_fails("{% autoescape true %}{% endautoescape %}", Code::kUnsupported, "autoescape");
  check_fails("{{ lipsum() }}", Code::kUnsupported, "lipsum()");
  check_fails("{{ 'x'.encode() }}", Code::kUnsupported, "encode()");
}

TEST_CASE("endless_work_is_cut_short") {
  const std::string loop = "{% for i in range(100000) %}";
  const std::string end = "{% endfor %}";
  jinja::Limits small;
  small.max_steps = 3'000'000;
  jinja::Limits brief;
  brief.max_seconds = 0.2;
  const auto start = std::chrono::steady_clock::now();
  check_invalid(repeated(loop, 4) + repeated(end, 4), "more than 0.2 seconds of processor time",
                brief);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  CHECK(seconds.count() < 100);
  check_invalid(repeated(loop, 4) + repeated(end, 4), "more than 3000000 steps", small);
  check_invalid("{% set ns = namespace(s='x') %}" + loop + "{% set ns.s = ns.s ~ ns.s %}" + end,
                "is too long");
  check_invalid("{% set ns = namespace(l=[1]) %}" + loop + "{% set ns.l = ns.l + ns.l %}" + end,
                "too much work", small);
  check_invalid("{% set s = 'x' * 1000000 %}" + repeated(loop, 2) + "{% set t = s|upper %}" +
                    repeated(end, 2),
                "too much work", small);
  check_invalid("{% set s = 'x' * 1000000 %}" + repeated(loop, 2) + "{{ s }}" + repeated(end, 2),
                "too much work", small);
}

TEST_CASE("huge_values_are_refused_before_they_are_built") {
  for (const char* expression : {
           "'a' * 10**9",
           "[1] * 10**12",
           "'ab' * 10**30",
           "'x'.center(10**9)",
           "'x'.ljust(10**15)",
           "'x'.zfill(10**9)",
           "'a\tb'.expandtabs(10**9)",
           "'%1000000000d' % 5",
           "'%*d' % (10**12, 5)",
           "'{:>1000000000}'.format(1)",
           "'x' | center(10**9)",
           "'x\ny' | indent(10**9)",
           "[1] | tojson(indent=10**9)",
           "('x' * 10**6).replace('', 'y' * 1000)",
           "[1] | batch(10**9, 0) | list",
           "[1] | slice(10**9) | list",
           "(('x,' * 10**6).split(',') * 1000) | join",
           "['y' * 10**6] * 1000 | join",
           "(['y' * 10**6] * 1000) | join('z' * 10**6)",
           "(('x' * 10**6)|list * 40)|list",
       }) {
    const Failure failure = failure_of_template(std::string("{{ ") + expression + " }}");
    INFO(expression);
    INFO(failure.message);
    CHECK(failure.has_failed);
    CHECK(failure.code == Code::kInvalidArgument);
  }
  check_invalid("{{ 10 ** 100 }}", "too large for an integer");
  check_invalid("{{ 2 ** (2 ** 100) }}", "too large for an integer");
  check_invalid("{{ '%.100000f' % 1.5 }}", "precision of 100000 is too large");
}

TEST_CASE("recursion_is_bounded") {
  check_invalid("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "macros call each other deeper");
  check_invalid(
      "{% macro a(x) %}{{ b(x) }}{% endmacro %}{% macro b(x) %}{{ a(x) ~ a(x) }}"
      "{% endmacro %}{{ a(1) }}",
      "macros call each other deeper");
  check_invalid(
      "{% macro m(n) %}{% call m(n) %}{{ caller() }}{% endcall %}{{ caller() }}"
      "{% endmacro %}{% call m(1) %}{% endcall %}",
      "macros call each other deeper");
  check_invalid("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
                "macros call each other deeper");
  const std::string ifs = repeated("{% if true %}", 60) + "{{ m() }}" + repeated("{% endif %}", 60);
  check_invalid("{% macro m() %}" + ifs + "{% endmacro %}{{ m() }}", "nests deeper");
  check_invalid("{{ 'a' | map(*(['map'] * 3000)) | list }}", "nests deeper");
  check_invalid("{{ 'a' | map(*(['map'] * 20000)) | list }}", "nests deeper");
}

TEST_CASE("deep_nesting_in_the_source_is_refused") {
  check_invalid("{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}",
                "nested deeper");
  check_invalid("{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}", "nested deeper");
  check_invalid("{{ " + repeated("{'a':", 100000) + " }}", "nested deeper");
  check_invalid("{{ " + repeated("-", 100000) + "1 }}", "nested deeper");
  check_invalid("{{ " + repeated("not ", 100000) + "1 }}", "nested deeper");
  check_invalid("{{ " + repeated("1 if 1 else ", 50000) + "1 }}", "nested deeper");
  check_invalid("{{ " + repeated("1 + ", 100000) + "1 }}", "levels");
  check_invalid("{{ x" + repeated(".a", 100000) + " }}", "levels");
  check_invalid("{{ x" + repeated("|upper", 100000) + " }}", "levels");
  check_invalid("{{ x" + repeated("()", 100000) + " }}", "levels");
  check_invalid(repeated("{% if x %}", 50000), "nested deeper");
  check_invalid("{% for " + repeated("(", 100000) + "x", "nested deeper");
  CHECK(render_simple("{{ " + repeated("(", 100) + "1" + repeated(")", 100) + " }}") == "1");
  CHECK(render_simple("{{ " + repeated("1 + ", 100) + "1 }}") == "101");
  CHECK(render_simple("{{ " + repeated("'a' ~ ", 5000) + "'a' }}").size() == 5001);
  check_invalid(std::string(2 << 20, 'x'), "at most 1048576 are allowed");
}

TEST_CASE("deeply_nested_values_are_refused") {
  check_invalid(
      "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}"
      "{% set ns.x = [ns.x] %}{% endfor %}",
      "nest deeper than");
  check_invalid(
      "{% set ns = namespace(x={}) %}{% for i in range(1000) %}"
      "{% set ns.x = {'a': ns.x} %}{% endfor %}",
      "nest deeper than");
  check_invalid(
      "{% set ns = namespace(x=joiner()) %}{% for i in range(100000) %}"
      "{% set ns.x = joiner(ns.x) %}{% endfor %}",
      "nest deeper than");
  check_invalid(
      "{% set ns = namespace() %}{% for i in range(1000) %}"
      "{% set ns = namespace(a=ns) %}{{ ns }}{% set ns.b = [ns] %}{% endfor %}"
      "{% set top = namespace(a=0) %}{% for i in range(1000) %}"
      "{% set n = namespace(a=top.a) %}{% set top.a = n %}{% endfor %}{{ top }}",
      "namespaces nest deeper");
  OrderedJson deep = 1;
  for (int i = 0; i < 5000; ++i) deep = OrderedJson::array({std::move(deep)});
  const auto messages = OrderedJson::array({{{"role", "user"}, {"content", std::move(deep)}}});
  const ChatTemplate chat = ChatTemplate::parse("{{ messages[0].content }}");
  RenderOptions options;
  options.keeps_parts = true;
  CHECK(failure_of([&] { chat.render(messages, options); }).message.find("nest deeper") !=
        std::string::npos);
}

TEST_CASE("shared_parts_of_a_value_can_t_blow_up_what_walks_over_it") {
  jinja::Limits small;
  small.max_steps = 3'000'000;
  const std::string doubled =
      "{% set ns = namespace(x=[1, 2]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  check_invalid(doubled + "{{ ns.x }}", "too much work", small);
  check_invalid(doubled + "{{ ns.x | tojson }}", "too much work", small);
  check_invalid(doubled + "{{ ns.x == ns.x }}", "too much work", small);
  check_invalid(doubled + "{{ ns.x < ns.x }}", "too much work", small);
}

TEST_CASE("values_that_refer_to_each_other_are_let_go") {
  // Leaks and use after free show under the address sanitizer.
  CHECK(render_simple("{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.l = [ns, ns] %}x") ==
        "x");
  CHECK(render_simple("{% set ns = namespace() %}{% for i in range(3) %}{% set old = ns.f %}"
                      "{% macro g() %}{{ old() if old else 'end' }}{{ i }}{% endmacro %}"
                      "{% set ns.f = g %}{% endfor %}{{ ns.f() }}") == "end012");
  CHECK(render_simple("{% set ns = namespace() %}{% for i in [1, 2] %}{% set ns.l = loop %}"
                      "{% endfor %}{{ ns.l.index }}") == "2");
  check_invalid(
      "{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}{% endfor %}"
      "{{ ns.l.changed(ns.l) }}",
      "this loop is over");
  check_invalid(
      "{% set ns = namespace() %}{% for i in [1] recursive %}{% set ns.l = loop %}"
      "{% endfor %}{{ ns.l([1]) }}",
      "this loop is over");
  CHECK(render_simple("{% for i in [1, 2] %}{{ loop.changed(loop) }}{% endfor %}") == "TrueFalse");
}

TEST_CASE("memory_is_bounded_however_it_is_taken") {
  jinja::Limits small;
  small.max_memory_bytes = 8 << 20;
  small.max_seconds = 60;
  const std::string loop = "{% for i in range(100000) %}";
  const std::string end = "{% endfor %}";
  const std::vector<std::string> sources = {
      "{% set ns = namespace(l=[1]) %}" + loop + "{% set ns.l = ns.l + ns.l %}" + end,
      "{{ 'x' * 9000000 }}",
      "{{ ['y' * 1000000, 'y' * 2000000, 'y' * 3000000, 'y' * 4000000] | length }}",
      // What macros and namespaces keep to the end.
      loop + "{% set a = 'x' * 100000 %}{% macro m() %}{{ a }}{% endmacro %}" + end,
      loop + "{% set n = namespace(a='x' * 100000) %}" + end,
      loop + "{% set n = namespace() %}" + end,
      // Blocks inside each other.
      "{% set a %}" + loop + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" + end +
          "{% set b %}" + loop + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" + end +
          "{% endset %}{% endset %}",
  };
  for (const std::string& source : sources) {
    check_invalid(source, "too much memory: at most 8388608 bytes are allowed at one time", small);
  }
  // What was let go doesn't count.
  CHECK(render_simple("{% for i in range(1000) %}{% set a = 'x' * 100000 %}{% endfor %}x", small) ==
        "x");
}

TEST_CASE("adding_to_a_text_leaves_its_other_holders_as_they_were") {
  CHECK(render_simple("{% set a = 'x' ~ 'y' %}{% set b = a + 'z' + a %}{% set c = b + b + b %}"
                      "{{ a }},{{ b }},{{ c }}") == "xy,xyzxy,xyzxyxyzxyxyzxy");
  CHECK(render_simple("{% set l = ['a' ~ 'b'] %}{{ l[0] + 'c' + 'd' }}{{ l[0] }}"
                      "{{ (l | first) + 'e' }}{{ l }}") == "abcdababe['ab']");
  CHECK(render_simple("{% for i in [1, 2] %}{{ 'k' + 'l' + 'm' }}{% endfor %}") == "klmklm");
  CHECK(render_simple("{{ (('<' | safe) + '>' + 'x') | escape }}") == "&lt;&gt;x");
}

TEST_CASE("limits_can_be_set") {
  jinja::Limits limits;
  limits.max_steps = 100;
  CHECK(failure_of_template("{% for i in range(1000) %}{% endfor %}", limits).message.find("100") !=
        std::string::npos);
  limits = {};
  limits.max_text_bytes = 10;
  CHECK(render_simple("0123456789", limits) == "0123456789");
  CHECK(failure_of_template("0123456789a", limits).has_failed);
  limits = {};
  limits.max_macro_depth = 2;
  const std::string nested =
      "{% macro a() %}a{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}"
      "{% macro c() %}{{ b() }}{% endmacro %}";
  CHECK(render_simple(nested + "{{ b() }}", limits) == "a");
  CHECK(failure_of_template(nested + "{{ c() }}", limits).has_failed);
  limits = {};
  limits.max_nesting = 3;
  CHECK(failure_of_template("{{ ((((1)))) }}", limits).has_failed);
}

TEST_CASE("a_long_conversation_is_rendered_within_the_limits") {
  OrderedJson messages = OrderedJson::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                        {"content", std::string(2000, static_cast<char>('a' + i % 26))}});
  }
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + (m['content'] | trim) + '<|end|>\n' }}"
      "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}{% endfor %}");
  CHECK(chat.render(messages).size() > 4'000'000);
}

// 800 turns of which each is copied into a text that grows, as templates of DeepSeek do.
TEST_CASE("a_conversation_of_800_messages_is_within_the_limits") {
  OrderedJson messages = OrderedJson::array();
  for (int i = 0; i < 800; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                        {"content", std::string(1500, static_cast<char>('a' + i % 26))}});
  }
  const ChatTemplate chat = ChatTemplate::parse(
      "{% set ns = namespace(text='') %}{% for m in messages %}"
      "{% set ns.text = ns.text + '<' + m.role + '>' + m.content %}{% endfor %}{{ ns.text }}");
  CHECK(chat.render(messages).size() > 1'200'000);
}

}  // namespace
}  // namespace tgi
