// One field of a format: a number or text in a given width, sign and notation. What both of
// Python's notations for formats (format.h) come down to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

// What a conversion asks for; both notations come down to it.
struct FieldStyle {
  std::string fill = " ";
  char align = '\0';  // < > ^, = puts the padding behind the sign
  char sign = '-';    // + - or a space
  bool alternate = false;
  char grouping = '\0';  // , or _
  size_t width = 0;
  std::optional<size_t> precision;
  char type = '\0';
};

// Reads digits at `at`. Numbers beyond any sensible one stay large instead of overflowing.
size_t read_number(std::string_view text, size_t& at);

// Throws kInvalidArgument for one that no number needs.
void check_precision(const FieldStyle& style);

std::string format_integer(Int value, const FieldStyle& style, Budget& budget);
std::string format_float(double value, const FieldStyle& style, Budget& budget);
std::string format_text(std::string text,
                        const FieldStyle& style,
                        char default_align,
                        Budget& budget);

}  // namespace tgi::jinja
