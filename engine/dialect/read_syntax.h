// A call syntax as the readers of answers use it: its marks as they stand in marked text.
#pragma once

#include <string>
#include <vector>

#include "engine/dialect/call_syntax.h"
#include "engine/dialect/marked_text.h"

namespace tgi::dialect {

struct ReadPart {
  CallPart part;
  std::vector<std::string> marks;  // kMark: any of these; kId: the mark before it
  std::string open;                // kParameters
  std::string middle;
  std::string middle_of_json;
  std::string value_open;
  std::string close;
  std::string type_close;
  std::string section_open;
  std::string section_end;  // what ends the section, and the mark behind the value
};
using ReadParts = std::vector<ReadPart>;

struct ReadSyntax {
  ReadParts first_call;  // what begins the calls, and a call
  ReadParts next_call;   // what separates it from the one before, and a call
  ReadParts end;
  CallPlace place = CallPlace::kBehindText;
  bool several = true;
};

ReadSyntax read_syntax(const CallSyntax& syntax, const IsSpecialToken& is_special);

// The marks that the parts may begin with; empty where they begin with something else. Gaps and
// what may be left out are passed over.
const std::vector<std::string>& opening_marks(const ReadParts& parts);

// Every mark of the parts.
std::vector<std::string> all_marks(const ReadParts& parts);

}  // namespace tgi::dialect
