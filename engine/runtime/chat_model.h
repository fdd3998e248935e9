// What a model makes of a conversation: the prompt that its template writes, which tools its answer
// may call, and how the answer is taken apart. Immutable: used by several threads at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/dialect/answer_grammar.h"
#include "engine/dialect/answer_reader.h"
#include "engine/dialect/dialect.h"
#include "engine/dialect/shown_chat.h"
#include "engine/dialect/tools.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "ipc/protocol.h"

namespace tgi {

class ChatModel {
 public:
  using Reasoning = dialect::AnswerForm::Reasoning;

  // Both must outlive it.
  ChatModel(const ChatTemplate& chat_template,
            const Tokenizer& tokenizer,
            const dialect::Dialects& dialects);

  struct Prompt {
    std::string text;
    dialect::ToolUse tools;                  // that the answer may call
    Reasoning reasoning = Reasoning::kNone;  // that it may begin with
    bool has_marks = false;                  // around its text
    bool marks_text = false;                 // the model writes the one before it
  };

  // Throws kTemplate in the template's words, kInvalidArgument and kUnsupported with the place in
  // what the client sent.
  Prompt render(const ipc::GenerateRequest& asked) const;
  std::string render(const ipc::TokenizeParams& asked) const;

  // How answers to the prompt are read; null where they are nothing but text.
  std::shared_ptr<const dialect::AnswerReading> reading(const Prompt& prompt) const;

 private:
  template <typename Asked>
  Prompt shown(const Asked& asked, bool parallel_tool_calls) const;
  void note_begin(Prompt& prompt) const;

  const ChatTemplate& chat_template_;
  const std::shared_ptr<const dialect::ReadDialects> dialects_;
  const std::string_view why_no_tools_;
  const dialect::TemplateFacts facts_;
};

}  // namespace tgi
