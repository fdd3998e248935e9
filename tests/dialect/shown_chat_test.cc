// Conversations in the form that a template was written for.
#include "engine/dialect/shown_chat.h"

#include <string>

#include "tests/catch.h"
#include "tests/dialect/spoken.h"

namespace tgi::dialect {
namespace {

// As K2 Horizon's: an earlier answer without a word on its reasoning is refused.
constexpr const char* kNeedsReasoning =
    "{% for m in messages %}[{{ m.role }}]"
    "{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content is not string %}{{ raise_exception('no thinking field') }}{% endif "
    "%}"
    "<ifm|think>{{ m.reasoning_content }}</ifm|think>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<ifm|tool_call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments | items %}<ifm|arg_key>{{ k }}</ifm|arg_key>"
    "<ifm|arg_value>{{ v }}</ifm|arg_value>{% endfor %}</ifm|tool_call>{% endfor %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}{% if tools %}{% endif %}";

std::string shown(const ChatTemplate& chat_template, const OrderedJson& messages) {
  const TemplateFacts facts = template_facts(chat_template);
  const ShownChat chat = shown_chat(messages, {}, facts, find_tool_dialect("k2_horizon"));
  return chat_template.render(chat.messages, {});
}

}  // namespace

TEST_CASE("an answer without reasoning is shown to a template that demands some") {
  const ChatTemplate chat_template = ChatTemplate::parse(kNeedsReasoning);
  const TemplateFacts facts = template_facts(chat_template);
  CHECK(facts.needs_reasoning);
  CHECK(facts.shows_calls);
  const OrderedJson call = {{"id", "c"},
                            {"type", "function"},
                            {"function", {{"name", "f"}, {"arguments", "{\"a\": \"b\"}"}}}};
  CHECK(shown(chat_template,
              {{{"role", "user"}, {"content", "Hi."}},
               {{"role", "assistant"}, {"content", "Hello."}},
               {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
               {{"role", "tool"}, {"tool_call_id", "c"}, {"content", "1"}},
               {{"role", "assistant"}, {"content", "One."}, {"reasoning", "I see."}}}) ==
        "[user]Hi.[assistant]<ifm|think></ifm|think>Hello.[assistant]<ifm|think></ifm|think>"
        "<ifm|tool_call>f<ifm|arg_key>a</ifm|arg_key><ifm|arg_value>b</ifm|arg_value>"
        "</ifm|tool_call>[tool]1[assistant]<ifm|think>I see.</ifm|think>One.");
}

TEST_CASE("a template that asks for no reasoning is shown none") {
  const ChatTemplate chat_template =
      ChatTemplate::parse("{% for m in messages %}{{ m.keys() | list }}{% endfor %}");
  CHECK_FALSE(template_facts(chat_template).needs_reasoning);
  CHECK(shown(chat_template, {{{"role", "assistant"}, {"content", "Hello."}}}).find("reasoning") ==
        std::string::npos);
}

}  // namespace tgi::dialect
