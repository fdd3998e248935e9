#include "engine/dialect/read_syntax.h"

namespace tgi::dialect {
namespace {

void append(const CallParts& parts, const IsSpecialToken& is_special, ReadParts& out) {
  for (const CallPart& part : parts) {
    if (part.kind == CallPart::Kind::kNone) break;
    ReadPart& read = out.emplace_back();
    read.part = part;
    const bool has_mark = part.kind == CallPart::Kind::kId && !part.text.empty();
    if (part.kind == CallPart::Kind::kMark || has_mark) {
      read.marks.push_back(marked(part.text, is_special));
      for (const std::string_view other : part.others) {
        if (!other.empty()) read.marks.push_back(marked(other, is_special));
      }
    }
    read.open = marked(part.open, is_special);
    read.middle = marked(part.middle, is_special);
    read.middle_of_json = marked(part.middle_of_json, is_special);
    read.value_open = marked(part.value_open, is_special);
    read.close = marked(part.close, is_special);
    read.type_close = marked(part.type_close, is_special);
    read.section_open = marked(part.section_open, is_special);
    if (!part.section_close.empty()) {
      read.section_end = marked(part.section_close, is_special) + read.close;
    }
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
  out.place = syntax.place;
  out.several = syntax.several;
  return out;
}

const std::vector<std::string>& opening_marks(const ReadParts& parts) {
  static const std::vector<std::string> kNone;
  for (const ReadPart& part : parts) {
    if (part.part.kind == CallPart::Kind::kGap || part.part.may_miss) continue;
    return part.part.kind == CallPart::Kind::kMark ? part.marks : kNone;
  }
  return kNone;
}

std::vector<std::string> all_marks(const ReadParts& parts) {
  std::vector<std::string> out;
  for (const ReadPart& part : parts) {
    out.insert(out.end(), part.marks.begin(), part.marks.end());
    for (const std::string* mark :
         {&part.open, &part.middle, &part.middle_of_json, &part.value_open, &part.close,
          &part.type_close, &part.section_open, &part.section_end}) {
      if (!mark->empty()) out.push_back(*mark);
    }
  }
  return out;
}

}  // namespace tgi::dialect
