#include "cmd/editor_keys.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace tgi {
namespace {

constexpr const char* kNothing = "tgi-nothing";
constexpr const char* kNextWord = "em-next-word";
constexpr const char* kPreviousWord = "ed-prev-word";

unsigned char do_nothing(EditLine* /*editor*/, wint_t /*key*/) {
  return CC_NORM;
}

struct Key {
  std::string_view code;  // of its sequence
  const char* plain;      // what it does, alone or with Shift
  const char* by_word;    // with Ctrl or Alt
};

// ESC [ 1 ; MODIFIERS CODE. Without modifiers libedit knows them from the terminal's description.
constexpr std::array kLetterKeys = {Key{"A", "ed-prev-history", "ed-prev-history"},
                                    Key{"B", "ed-next-history", "ed-next-history"},
                                    Key{"C", "ed-next-char", kNextWord},
                                    Key{"D", "ed-prev-char", kPreviousWord},
                                    Key{"H", "ed-move-to-beg", "ed-move-to-beg"},
                                    Key{"F", "ed-move-to-end", "ed-move-to-end"},
                                    Key{"P", kNothing, kNothing},
                                    Key{"Q", kNothing, kNothing},
                                    Key{"R", kNothing, kNothing},
                                    Key{"S", kNothing, kNothing}};

// ESC [ CODE ~, or with modifiers ESC [ CODE ; MODIFIERS ~. The rest of the numbers means nothing.
constexpr std::array kNumberKeys = {Key{"1", "ed-move-to-beg", "ed-move-to-beg"},
                                    Key{"3", "ed-delete-next-char", "em-delete-next-word"},
                                    Key{"4", "ed-move-to-end", "ed-move-to-end"},
                                    Key{"7", "ed-move-to-beg", "ed-move-to-beg"},
                                    Key{"8", "ed-move-to-end", "ed-move-to-end"}};
constexpr int kMostNumber = 34;

// Whole sequences: rxvt's arrows with Ctrl, arrows behind the ESC that some terminals send for Alt,
// and Shift with Tab.
constexpr std::array<std::array<const char*, 2>, 5> kOtherKeys = {{{"\\eOc", kNextWord},
                                                                   {"\\eOd", kPreviousWord},
                                                                   {"\\e\\e[C", kNextWord},
                                                                   {"\\e\\e[D", kPreviousWord},
                                                                   {"\\e[Z", kNothing}}};

// 1 + 1 for Shift, 2 for Alt, 4 for Ctrl, 8 for Meta.
constexpr int kFirstModifiers = 2;
constexpr int kLastModifiers = 16;

bool is_by_word(int modifiers) {
  return modifiers > kFirstModifiers;  // Shift alone changes nothing
}

void bind_sequence(EditLine* editor, const std::string& sequence, const char* function) {
  ::el_set(editor, EL_BIND, sequence.c_str(), function, nullptr);
}

void bind_number(EditLine* editor, const Key& key) {
  bind_sequence(editor, fmt::format("\\e[{}~", key.code), key.plain);
  for (int modifiers = kFirstModifiers; modifiers <= kLastModifiers; ++modifiers) {
    bind_sequence(editor, fmt::format("\\e[{};{}~", key.code, modifiers),
                  is_by_word(modifiers) ? key.by_word : key.plain);
  }
}

}  // namespace

void bind_keys(EditLine* editor) {
  // As wide characters: of narrow ones it makes copies that nobody frees.
  ::el_wset(editor, EL_ADDFN, L"tgi-nothing", L"do nothing", &do_nothing);
  for (int number = 1; number <= kMostNumber; ++number) {
    bind_number(editor, {std::to_string(number), kNothing, kNothing});
  }
  for (const Key& key : kNumberKeys) bind_number(editor, key);
  for (const Key& key : kLetterKeys) {
    for (int modifiers = kFirstModifiers; modifiers <= kLastModifiers; ++modifiers) {
      bind_sequence(editor, fmt::format("\\e[1;{}{}", modifiers, key.code),
                    is_by_word(modifiers) ? key.by_word : key.plain);
    }
  }
  for (const auto& [sequence, function] : kOtherKeys) bind_sequence(editor, sequence, function);
}

}  // namespace tgi
