#include "engine/text/unicode/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <cstdlib>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/unicode/regex_syntax.h"
#include "engine/text/unicode/unicode.h"

namespace tgi {
namespace {

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

bool pcre2_knows_unicode_16() {
  char version[64] = "";
  if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) < 0) return false;
  return std::atoi(version) >= 16;
}

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

void Regex::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Regex::Regex(std::string_view pattern) : pattern_(pattern), code_(compile(false)) {
  if (!pcre2_knows_unicode_16()) newer_code_ = compile(true);
}

Regex::CodePointer Regex::compile(bool newer_unicode) const {
  const std::string translated = to_pcre2_syntax(pattern_, newer_unicode);
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw Error(Code::kOutOfMemory, "no memory to compile a pattern");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context.get(), PCRE2_BSR_UNICODE);
  int error = 0;
  PCRE2_SIZE offset = 0;
  CodePointer code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                 &error, &offset, context.get()));
  if (code == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("pattern \"{}\": {} (at byte {} of its PCRE2 form \"{}\")", pattern_,
                            message_of(error), offset, translated));
  }
  // Without a JIT for this machine the search is only slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

void Regex::find_all(std::string_view text, std::vector<TextRange>& matches) const {
  const bool newer = newer_code_ != nullptr && has_newer_characters(text);
  const pcre2_code* code = newer ? newer_code_.get() : code_.get();
  const std::unique_ptr<pcre2_match_data, FreeMatchData> data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) throw Error(Code::kOutOfMemory, "no memory to search a text");
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data.get());
  size_t offset = 0;
  size_t last_end = std::string_view::npos;
  while (offset <= text.size()) {
    int result =
        pcre2_match(code, subject, text.size(), offset, PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its stack on the heap
      result = pcre2_match(code, subject, text.size(), offset, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                           data.get(), nullptr);
    }
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("the text is too much for the tokenizer's pattern \"{}\": {}",
                              pattern_, message_of(result)));
    }
    const TextRange match{found[0], found[1]};
    if (match.begin >= match.end && match.end == last_end) {
      if (offset >= text.size()) return;
      offset += utf8_size(text[offset]);
      continue;
    }
    matches.push_back(match);
    offset = match.end;
    last_end = match.end;
  }
}

}  // namespace tgi
