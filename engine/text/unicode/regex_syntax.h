// Rewrites a regular expression of tokenizer.json for PCRE2. Those are in Oniguruma's Ruby syntax
// (github.com/kkos/oniguruma, doc/RE), where a nested or intersected character class, \h, \v, ^,
// (?m), {n,m}+ and the Unicode classes mean something else than in PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace tgi {

// newer_unicode: spell out the characters since Unicode 14 in the classes that hold them, for a
// PCRE2 that does not know them. Throws kUnsupported naming the construct and where it is. The
// result is for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE with newline LF.
std::string to_pcre2_syntax(std::string_view pattern, bool newer_unicode);

}  // namespace tgi
