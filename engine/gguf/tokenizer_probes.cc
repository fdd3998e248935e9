#include "engine/gguf/tokenizer_probes.h"

#include <cstdint>
#include <iterator>

namespace tgi::gguf {
namespace {

// One of each class that patterns tell apart in any order: what stands beside what decides too.
std::string random_soup(uint32_t seed) {
  static constexpr const char* kParts[] = {
      " ",      " ",      " ",       "\n",     "\n",     "\r",     "\t",     "\u00A0",
      "\u3000", "a",      "e",       "s",      "t",      "l",      "l",      "d",
      "S",      "T",      "L",       "L",      "'",      "'",      "\u2019", "!",
      ".",      "/",      "_",       "-",      "1",      "2",      "3",      "4",
      "\u00E9", "\u00C9", "e\u0301", "\u4F60", "\u3042", "\u0E01", "\u0663", "\U0001F600"};
  constexpr int kNumParts = 1500;
  std::string out;
  for (int i = 0; i < kNumParts; ++i) {
    seed = seed * 1664525U + 1013904223U;
    out += kParts[(seed >> 8) % std::size(kParts)];
  }
  return out;
}

}  // namespace

// Of each kind that patterns tell apart: contractions in both cases, runs of digits, punctuation
// before letters, white space of every kind and length, line ends after punctuation, scripts
// without spaces, marks, letters that change under NFC, emoji, source code.
const std::vector<std::string>& tokenizer_probes() {
  static const std::vector<std::string> kProbes = {
      random_soup(1),
      random_soup(2),
      random_soup(3),
      "Hello, world! I'm sure they'd've said it's what we'll DO, isn't it? YOU'LL see: HE'S here.",
      "1 12 123 1234 12345 123456 1234567 3.14159 1,234,567.89 0x1F 2024-01-31 v1.2.3 a1b22c333",
      " leading, trailing ",
      "  two  and   three    spaces     everywhere      ",
      "tab\tand\t\ttabs\nline\n\nlines\n\n\nmore\r\nwindows\r\n\r\nend \n \n  indented\n\tboth "
      "\t\n",
      "snake_case camelCase PascalCase HTTPServer kebab-case path/to/file.txt C:\\dir "
      "user@host.org",
      "(round) [square] {curly} <angle> \"double\" 'single' `back` ... --- === *** !!! ??? "
      "#$%&@^~|",
      "if (x == 1) {\n    return y[0] + \"text\\n\";  // done\n}\n\ndef f(a, *b):\n\treturn a**2\n",
      "caf\u00E9 cafe\u0301 na\u00EFve \u00C5ngstr\u00F6m A\u030A \uFB01ne \u1E9B\u0323",
      "\u4F60\u597D\uFF0C\u4E16\u754C\u3002\u3053\u3093\u306B\u3061\u306F\u30AB\u30BF\u30AB\u30CA "
      "\uD55C\uAD6D\uC5B4 \uC548\uB155\uD558\uC138\uC694",
      "\u041F\u0440\u0438\u0432\u0435\u0442, \u043C\u0438\u0440! \u0645\u0631\u062D\u0628\u0627 "
      "\u0E2A\u0E27\u0E31\u0E2A\u0E14\u0E35 \u0928\u092E\u0938\u094D\u0924\u0947",
      "\u0663\u0664\u0665 \u2167 \u00BD \u00B2 \u2460 emoji \U0001F600\U0001F680"
      "\U0001F468\u200D\U0001F469\u200D\U0001F467 \u2764\uFE0F",
      "\u00A0nbsp\u00A0\u00A0two \u2003em \u200Bzero\u2028line\u3000wide",
      "I'M 'Tis 'twas o'clock rock'n'roll \u2019s it\u2019s \u201Cquoted\u201D \u2014 dash \u2026",
      "a",
      " a",
      "  a",
      "\n",
      "\n\n",
      " ",
      "   ",
      "\t",
      "!",
      " !",
      "!a",
      " !a",
      ".\n",
      ".\n\nA",
      "AAAAAAAAaaaaaaaa1111 aaaaBBBBccccDDDD \u00DF\u1E9E \u01C5 \u0130i\u0131I",
      // Without spaces beside them: what such a token does to those has no place in files.
      "<s>a</s>b<unk>c<pad>d<|endoftext|>e<|im_start|>user<|im_end|>f[INST]x[/INST]",
  };
  return kProbes;
}

}  // namespace tgi::gguf
