// One table of every flag and environment variable of the launchers and routers of TGI and LoRAX
// (TGI 3.3.6, LoRAX at a7394ba), and what becomes of each here. The flags of `tgi serve`, the
// reading of the environment, the refusals and docs/flags_from_tgi.md all come from it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cmd/serve_options.h"

namespace tgi {

enum class FlagUse {
  kSets,     // has a meaning here
  kFixed,    // some values say what holds here anyway and are taken; others are refused
  kRefused,  // has none
};

enum class EnvUse {
  kRead,       // as the flag: a value that is refused stops the start
  kIfAddress,  // as the flag when it is an IP address; otherwise it is not this server that is
               // meant
  kWarns,      // as the flag, but a value that is refused only gives a warning
  kUnread,     // never looked at: other programs use the name too, or nothing here depends on it
  kNone,       // the flag has no variable
};

struct LauncherRow {
  std::string_view flag;  // without the dashes; a variable without a flag: its name in capitals
  std::string_view value_name;  // empty: a switch
  FlagUse use;
  EnvUse env;
  std::string_view text;     // kSets: what it does, unit, default; otherwise why it is refused
  std::string_view instead;  // kFixed, kRefused: what to do
  std::string_view fixed;    // kFixed: the values that are taken, parted by spaces, in lower case
  std::string_view short_name;
  // A variable of another container: not read where this flag or its variable is given. (optional)
  std::string_view in_place_of = "";
  bool is_list = false;  // may be given several times, or once with commas
  // kSets: throws kInvalidArgument or kUnsupported without saying where.
  void (*set)(ServeOptions& options, const std::string& value) = nullptr;

  bool is_switch() const { return value_name.empty(); }
  bool is_variable() const { return flag.front() >= 'A' && flag.front() <= 'Z'; }
};

struct LauncherGroup {
  std::string_view title;
  std::string_view text;  // below the title on the page
  std::string_view help;  // the title in --help of the rows that have a meaning
  std::span<const LauncherRow> rows;
};

std::span<const LauncherGroup> launcher_groups();

// "MAX_BEST_OF" for max-best-of.
std::string launcher_variable(std::string_view flag);

// Why a value is refused and what to do, without the name of the flag.
std::string launcher_refusal(const LauncherRow& row);

// 1, true, yes, on, y, t and their opposites in any case. Throws kInvalidArgument.
bool parse_launcher_switch(const std::string& text);

// docs/flags_from_tgi.md
std::string launcher_flags_page();

}  // namespace tgi
