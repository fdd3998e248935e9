// Whether text for people may be coloured, and how: the conventions of no-color.org and
// bixense.com/clicolors.
#pragma once

#include <string>
#include <string_view>

namespace tgi {

// $NO_COLOR (not empty): no. Else $CLICOLOR_FORCE (not empty, not 0): yes. Else $CLICOLOR=0 or
// TERM=dumb: no. Else whether `fd` is a terminal.
bool may_color(int fd);

// Whether the terminal, as $TERM names it, knows control sequences: it is named, and not "dumb".
bool knows_sequences();

enum class Style { kBold, kGreen, kYellow, kRed };

// The text as it is when `on` is false.
std::string styled(std::string_view text, Style style, bool on);

}  // namespace tgi
