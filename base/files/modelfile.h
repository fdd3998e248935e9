// The grammar of a Modelfile, as ollama documents it: lines of an instruction and its value,
// which may go on over lines between quotes. What instructions mean is preset.h's business.
//
//   file        = { blank line | "#" comment | instruction }
//   instruction = WORD value                 WORD in any case
//   value       = text to the end of the line, without blanks at its ends
//               | '"' text '"'               the last quote ends a line
//               | '"""' text '"""'           as it stands, over any lines
// Quotes know no escapes: a backslash is a backslash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tgi {

struct TextPlace {
  size_t line = 1;
  size_t column = 1;  // in characters
};

struct ModelfileLine {
  std::string instruction;  // in capitals
  TextPlace at{};
  std::string argument{};  // of PARAMETER its name, of MESSAGE its role; else ""
  TextPlace argument_at{};
  std::string value{};
  TextPlace value_at{};
};

// Throws kInvalidArgument with "line L, column C: expected ..., got ...".
std::vector<ModelfileLine> parse_modelfile(std::string_view text);

// One instruction as a line that is read back as the same; `head` is the instruction with its
// argument. Throws kInvalidArgument for the rare text that no quotes can hold.
std::string modelfile_line(std::string_view head, std::string_view value);

[[noreturn]] void fail_modelfile(const TextPlace& at, std::string_view message);

}  // namespace tgi
