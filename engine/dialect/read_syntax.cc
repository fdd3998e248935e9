#include "engine/dialect/read_syntax.h"

namespace tgi::dialect {
namespace {

void append(const CallParts& parts, const IsSpecialToken& is_special, ReadParts& out) {
  for (const CallPart& part : parts) {
    if (part.kind == CallPart::Kind::kNone) break;
    ReadPart& read = out.emplace_back();
    read.part = part;
    if (part.kind == CallPart::Kind::kMark) {
      read.marks.push_back(marked(part.text, is_special));
      for (const std::string_view other : part.others) {
        if (!other.empty()) read.marks.push_back(marked(other, is_special));
      }
    }
    read.open = marked(part.open, is_special);
    read.middle = marked(part.middle, is_special);
    read.close = marked(part.close, is_special);
  }
}

}  // namespace

ReadSyntax read_syntax(const CallSyntax& syntax, const IsSpecialToken& is_special) {
  ReadSyntax out;
  append(syntax.begin, is_special, out.first_call);
  append(syntax.call, is_special, out.first_call);
  append(syntax.separator, is_special, out.next_call);
  append(syntax.call, is_special, out.next_call);
  append(syntax.end, is_special, out.end);
  out.is_whole_answer = syntax.is_whole_answer;
  out.several = syntax.several;
  return out;
}

const std::vector<std::string>& opening_marks(const ReadParts& parts) {
  static const std::vector<std::string> kNone;
  for (const ReadPart& part : parts) {
    if (part.part.kind == CallPart::Kind::kMark) return part.marks;
    if (part.part.kind != CallPart::Kind::kGap) break;
  }
  return kNone;
}

}  // namespace tgi::dialect
