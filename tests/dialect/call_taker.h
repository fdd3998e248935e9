// Calls of a tool `f` in a dialect: what its grammar takes, and how it is read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/dialect/spoken.h"
#include "tests/dialect/taken.h"

namespace tgi::dialect {

// Whether a call of a tool `f` with these parameters may be written as these words.
class CallTaker {
 public:
  CallTaker(std::string_view dialect, const char* parameters, bool strict = false) {
    const OrderedJson function = {
        {"name", "f"}, {"parameters", OrderedJson::parse(parameters)}, {"strict", strict}};
    form_.dialects.tools = find_tool_dialect(dialect);
    form_.tools = tool_use(checked_tools({{{"type", "function"}, {"function", function}}}),
                           std::nullopt, true);
    form_.tools.must_call = true;
    grammar_ = compiled(form_);
  }
  // What is taken is read as a call, too.
  bool operator()(const std::string& written, size_t num_calls = 1) const {
    if (!takes(grammar_, written)) return false;
    const Heard heard = hear(form_.dialects, form_.tools.tools, written, 1);
    CHECK(heard.calls.size() == num_calls);
    arguments_ = heard.calls.empty() ? "" : heard.calls[0].arguments;
    return true;
  }
  const std::string& arguments() const { return arguments_; }

 private:
  AnswerForm form_;
  std::shared_ptr<const guide::CompiledGrammar> grammar_;
  mutable std::string arguments_;
};

}  // namespace tgi::dialect
