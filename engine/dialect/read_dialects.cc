#include "engine/dialect/read_dialects.h"

namespace tgi::dialect {

ReadDialects::ReadDialects(const Dialects& dialects, const IsSpecialToken& is_special)
    : tools(dialects.tools), reasoning(dialects.reasoning) {
  if (tools != nullptr) {
    calls.push_back(read_syntax(tools->syntax, is_special));
    for (const CallSyntax& also : tools->also) calls.push_back(read_syntax(also, is_special));
    for (const ReadSyntax& syntax : calls) {
      for (const ReadParts* parts : {&syntax.first_call, &syntax.next_call, &syntax.end}) {
        const std::vector<std::string> marks = all_marks(*parts);
        call_marks.insert(call_marks.end(), marks.begin(), marks.end());
      }
    }
  }
  before_text = marked(dialects.before_text(), is_special);
  for (const std::string_view mark : dialects.dropped()) {
    dropped.push_back(marked(mark, is_special));
  }
  if (reasoning == nullptr) return;
  for (size_t i = 0; i < calls.size() && tools != nullptr && tools->ends_reasoning; ++i) {
    if (calls[i].place != CallPlace::kBehindText) continue;
    for (const std::string& each : opening_marks(calls[i].first_call)) {
      if (each.front() == kTokenBorder) calls_in_reasoning.push_back({.mark = each, .syntax = i});
    }
  }
  for (const std::string_view each : reasoning->begins()) {
    reasoning_begins.push_back(marked(each, is_special));
  }
  for (const std::string_view each : reasoning->ends()) {
    reasoning_ends.push_back(marked(each, is_special));
  }
}

const ReadParts& parts_in_text(const ReadSyntax& syntax) {
  return syntax.place == CallPlace::kMessages ? syntax.next_call : syntax.first_call;
}

}  // namespace tgi::dialect
