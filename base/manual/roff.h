// The few pieces of troff's man macros (man(7)) that our pages are made of: plain enough for every
// reader of them. Text is UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/manual/program_doc.h"

namespace tgi {

// Text as it stands: dashes stay dashes, a dot in front is no macro.
std::string roff_escape(std::string_view text);
std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

// ".TH ..." and the NAME section. `manual` is the heading of its part: "User Commands".
std::string roff_title(std::string_view name,
                       int section,
                       std::string_view manual,
                       std::string_view summary);

// ".SH NAME IN CAPITALS\n"
std::string roff_section(std::string_view heading);

// Lines of a paragraph are joined by the reader; an empty line parts paragraphs.
std::string roff_paragraphs(std::string_view text);

// One paragraph with a hanging head, which is troff already.
std::string roff_item(std::string_view head, std::string_view text);

// A section of such items with bold heads; nothing when there are none.
std::string roff_terms(std::string_view heading, std::span<const TermDoc> terms);

// "SEE ALSO" of "tgid(8)" and the like.
std::string roff_see_also(const std::vector<std::string>& pages);

}  // namespace tgi
