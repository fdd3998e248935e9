// The one definition rule between files, which no linker checks: two types of one name in one
// namespace, outside anonymous ones, are one type to it, whichever it meets first. Not a C++
// parser: it follows braces, namespaces and the heads of types, which is all that definitions at
// namespace scope need.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.h"

namespace tgi {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Where the literal or comment that begins at `i` ends; `i` itself when none does.
size_t skip_text(std::string_view text, size_t i) {
  const auto after = [&](std::string_view end, size_t from) {
    const size_t at = text.find(end, from);
    return at == std::string_view::npos ? text.size() : at + end.size();
  };
  if (text.substr(i, 2) == "//") return std::min(text.find('\n', i), text.size());
  if (text.substr(i, 2) == "/*") return after("*/", i + 2);
  if (text.substr(i, 2) == "R\"" && (i == 0 || !is_word(text[i - 1]))) {
    const size_t open = std::min(text.find('(', i), text.size());
    return after(")" + std::string(text.substr(i + 2, open - i - 2)) + "\"", open);
  }
  const bool is_separator = text[i] == '\'' && i > 0 && is_word(text[i - 1]);  // 1'000
  if (text[i] != '"' && (text[i] != '\'' || is_separator)) return i;
  for (size_t end = i + 1; end < text.size(); ++end) {
    if (text[end] == '\\') {
      ++end;
    } else if (text[end] == text[i]) {
      return end + 1;
    }
  }
  return text.size();
}

// Words, "::" and single other characters; without comments, literals and preprocessor lines.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> out;
  bool at_line_start = true;
  for (size_t i = 0; i < text.size();) {
    if (at_line_start && text[i] == '#') {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
      continue;
    }
    if (text[i] == '\n') at_line_start = true;
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
      continue;
    }
    at_line_start = false;
    if (const size_t end = skip_text(text, i); end != i) {
      i = end;
      continue;
    }
    size_t end = i + 1;
    if (is_word(text[i])) {
      while (end < text.size() && (is_word(text[end]) || text[end] == '\'')) ++end;
    } else if (text.substr(i, 2) == "::") {
      ++end;
    }
    out.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return out;
}

class TypeScanner {
 public:
  explicit TypeScanner(std::string_view text) : tokens_(tokens_of(text)) {}

  // The qualified names of the types that are defined at namespace scope, but in anonymous ones.
  std::set<std::string> scan() {
    while (at_ < tokens_.size()) {
      const std::string& token = tokens_[at_];
      if (token == "namespace" && in_namespaces()) {
        take_namespace();
      } else if (is_type_key(token) && in_namespaces()) {
        take_type();
      } else {
        if (token == "{") {
          // extern "C" opens no scope of names.
          const bool is_linkage = at_ > 0 && tokens_[at_ - 1] == "extern";
          scopes_.push_back({.is_namespace = is_linkage, .name = ""});
        } else if (token == "}" && !scopes_.empty()) {
          scopes_.pop_back();
        }
        ++at_;
      }
    }
    return std::move(found_);
  }

 private:
  struct Scope {
    bool is_namespace = false;
    std::string name;  // "x::y::"
    bool is_anonymous = false;
  };

  static bool is_type_key(const std::string& token) {
    return token == "class" || token == "struct" || token == "union" || token == "enum";
  }
  bool in_namespaces() const {
    return std::all_of(scopes_.begin(), scopes_.end(),
                       [](const Scope& scope) { return scope.is_namespace; });
  }
  bool in_anonymous() const {
    return std::any_of(scopes_.begin(), scopes_.end(),
                       [](const Scope& scope) { return scope.is_anonymous; });
  }
  std::string peek(size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : "";
  }

  void take_namespace() {
    ++at_;
    std::string name;
    while (at_ < tokens_.size() && peek() != "{" && peek() != ";") {
      if (peek() == "=") return;  // an alias
      if (peek() != "inline") name += peek();
      ++at_;
    }
    if (peek() == "{") {
      const bool is_anonymous = name.empty();
      scopes_.push_back({.is_namespace = true, .name = name + "::", .is_anonymous = is_anonymous});
    }
    ++at_;
  }

  // Leaves the body to scan(), which sees its brace.
  void take_type() {
    const bool is_enum = peek() == "enum";
    ++at_;
    if (is_enum && (peek() == "class" || peek() == "struct")) ++at_;
    skip_attributes();
    std::string name;
    while (at_ < tokens_.size() && (is_word(peek()[0]) || peek() == "::") && peek() != "final") {
      // Two words in a row: the type of a variable or of a result, `struct stat status`.
      if (!name.empty() && is_word(name.back()) && peek() != "::") return;
      name += peek();
      ++at_;
    }
    if (peek() == "<") name += take_arguments();  // a specialization is a type of its own
    if (peek() == "final") ++at_;
    bool is_definition = peek() == "{";
    if (peek() == ":") {
      size_t end = 0;
      while (peek(end) != "{" && peek(end) != ";" && !peek(end).empty()) ++end;
      is_definition = peek(end) == "{";
      if (is_definition) at_ += end;
    }
    if (!is_definition || name.empty() || in_anonymous()) return;
    std::string scope;
    for (const Scope& each : scopes_) scope += each.name;
    found_.insert(scope + name);
  }

  void skip_attributes() {
    for (;;) {
      if (peek() == "[" && peek(1) == "[") {
        while (at_ < tokens_.size() && !(peek() == "]" && peek(1) == "]")) ++at_;
        at_ += 2;
      } else if ((peek() == "alignas" || peek() == "__align__" || peek() == "__attribute__") &&
                 peek(1) == "(") {
        int depth = 0;
        for (++at_; at_ < tokens_.size(); ++at_) {
          if (peek() == "(") ++depth;
          if (peek() == ")" && --depth == 0) break;
        }
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string take_arguments() {
    std::string out;
    int depth = 0;
    for (; at_ < tokens_.size() && peek() != "{" && peek() != ";"; ++at_) {
      out += peek();
      if (peek() == "<") ++depth;
      if (peek() == ">" && --depth == 0) {
        ++at_;
        break;
      }
    }
    return out;
  }

  const std::vector<std::string> tokens_;
  size_t at_ = 0;
  std::vector<Scope> scopes_;
  std::set<std::string> found_;
};

std::set<std::string> types_in(std::string_view text) {
  return TypeScanner(text).scan();
}

// "tests/cmd/run_tgi.cc" is "tests/cmd"; all that is not of the tests is one program to this test.
std::string program_of(const std::string& path) {
  if (!path.starts_with("tests/")) return "";
  return path.substr(0, path.rfind('/'));
}

bool may_meet(const std::string& one, const std::string& other) {
  const std::string first = program_of(one);
  const std::string second = program_of(other);
  return first.empty() || second.empty() || first == second;
}

}  // namespace

TEST_CASE("the types that a source defines are found, and nothing else") {
  using Names = std::set<std::string>;
  CHECK(types_in("namespace tgi { class A { struct Inner {}; }; struct B : A {}; }") ==
        Names{"tgi::A", "tgi::B"});
  CHECK(types_in("namespace a::b { enum class E : int { kOne }; union U { int i; }; }") ==
        Names{"a::b::E", "a::b::U"});
  CHECK(types_in("namespace t { namespace { struct Hidden {}; } struct Seen final {}; }") ==
        Names{"t::Seen"});
  CHECK(types_in("struct A; enum E : int; struct stat status{}; A make(struct A* a) { return *a; }")
            .empty());
  CHECK(types_in("template <class T> struct P {}; template <> struct P<int> {};") ==
        Names{"P", "P<int>"});
  CHECK(types_in("void f() { struct Local {}; if (x) { class Deep {}; } } struct After {};") ==
        Names{"After"});
  CHECK(types_in("struct [[nodiscard]] alignas(64) C {}; struct Outer::Inner {};") ==
        Names{"C", "Outer::Inner"});
  CHECK(types_in(
            "// struct X {};\n/* struct Y {}; */ const char* s = \"struct Z {\"; struct W {};") ==
        Names{"W"});
  CHECK(
      types_in(
          "auto r = R\"x(namespace { struct Q {)x\"; int i = 1'000; char c = '{'; struct V {};") ==
      Names{"V"});
  CHECK(types_in("#define M struct D { \\\n  int i;\nstruct N {};") == Names{"N"});
  CHECK(types_in("extern \"C\" { struct K {}; } namespace f = std; namespace g { struct H {}; }") ==
        Names{"K", "g::H"});
}

TEST_CASE("no two files that can meet in a program define types of one name") {
  const std::filesystem::path root = TGI_SOURCE_DIR;
  std::map<std::string, std::vector<std::string>> defined;  // name to files
  for (const char* room : {"base", "ipc", "engine", "cuda", "daemon", "cmd", "tests"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room)) {
      constexpr std::array<std::string_view, 5> kSources = {".h", ".cc", ".inc", ".cu", ".cuh"};
      const std::string extension = entry.path().extension().string();
      if (std::find(kSources.begin(), kSources.end(), extension) == kSources.end()) continue;
      std::ifstream file(entry.path());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const std::string path = std::filesystem::relative(entry.path(), root).string();
      for (const std::string& name : types_in(text)) defined[name].push_back(path);
    }
  }
  CHECK(defined.size() > 500);  // it looked
  for (const auto& [name, files] : defined) {
    for (size_t i = 0; i < files.size(); ++i) {
      for (size_t j = i + 1; j < files.size(); ++j) {
        if (!may_meet(files[i], files[j])) continue;
        FAIL_CHECK(
            name << " is defined in " << files[i] << " and in " << files[j]
                 << ": give a room's own types its namespace (tgi::bench, tgi::http), or one "
                    "of them a better name");
      }
    }
  }
}

}  // namespace tgi
