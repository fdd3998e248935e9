// Turns a conversation into the text a model was trained on, by the Jinja template that came with
// it. Follows transformers' apply_chat_template: its environment, its variables, its rules for
// named templates and for continuing the last message. Does not tokenise; the text names its
// special tokens itself, so it must be tokenised without adding any.
#pragma once

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/nlohmann_json.h"
#include "engine/text/jinja/limits.h"

namespace tgi {

class FileSource;

// Members of messages, tools and documents keep the order they were given in.
using OrderedJson = nlohmann::ordered_json;

struct RenderOptions {
  bool add_generation_prompt = true;  // end with what opens the assistant's answer
  // End right behind the last message's content, so that the model goes on with it. Not together
  // with add_generation_prompt.
  bool continue_final_message = false;
  const OrderedJson* tools = nullptr;         // array of JSON schemas; null: none
  const OrderedJson* documents = nullptr;     // array of objects; null: none
  OrderedJson extra = OrderedJson::object();  // chat_template_kwargs; win over special tokens
  // Lists of parts reach any template as they are. Otherwise a template that only handles texts
  // gets the text of the parts.
  bool keeps_parts = false;
  std::function<std::tm()> local_time;  // for strftime_now; empty: the system's clock
};

// Immutable: may be rendered by several threads at once. Copies share the parsed template.
class ChatTemplate {
 public:
  struct Named {
    std::string name;  // "default", "tool_use", ...
    std::string source;
  };
  // bos_token, eos_token and the like, by these names; the value is a string or a list of strings.
  using SpecialTokens = std::map<std::string, OrderedJson>;

  // Throws kInvalidArgument or kUnsupported, naming the line.
  static ChatTemplate parse(std::string_view source,
                            SpecialTokens tokens = {},
                            const jinja::Limits& limits = {});
  // Several templates: rendering takes "tool_use" when there are tools, else "default".
  static ChatTemplate parse(const std::vector<Named>& sources,
                            SpecialTokens tokens = {},
                            const jinja::Limits& limits = {});

  // `messages`: array of {role, content, ...}; content is a string, null or a list of parts.
  // Members that are null are left out, as transformers does, but for those that the template
  // compares with none, and where it fails without them: such templates were written for a
  // transformers that kept null. A list of parts stays one where the template goes through its
  // parts. Throws kInvalidArgument with the line when the template fails on this conversation, with
  // the template's own words when it refuses it (raise_exception).
  std::string render(const OrderedJson& messages, const RenderOptions& options = {}) const;

  // Whether the template that would be used goes through the parts of a content.
  bool takes_parts(bool has_tools = false) const;

  // Whether the template that would be used mentions a variable, as in "does it know tools?".
  bool mentions(std::string_view variable, bool has_tools = false) const;

  // Whether the source of the template that would be used has the text.
  bool contains(std::string_view text, bool has_tools = false) const;

  const SpecialTokens& special_tokens() const { return tokens_; }
  std::vector<std::string> names() const;

 private:
  struct Parsed;

  ChatTemplate() = default;
  const Parsed& choose(bool has_tools) const;
  std::string render_plain(const Parsed& chosen,
                           OrderedJson plain,
                           const RenderOptions& options) const;

  std::vector<std::shared_ptr<const Parsed>> templates_;
  SpecialTokens tokens_;
  jinja::Limits limits_;
};

// chat_template.jinja (with additional_chat_templates/tool_use.jinja), else the member
// "chat_template" of chat_template.json, else that of tokenizer_config.json: one template or a list
// of named ones. Special tokens come from tokenizer_config.json, from special_tokens_map.json, and
// from the tokenizer's class. Nothing when the model has no template.
// Throws kInvalidArgument or kUnsupported naming the file.
std::optional<ChatTemplate> load_chat_template(const FileSource& files,
                                               const jinja::Limits& limits = {});

}  // namespace tgi
