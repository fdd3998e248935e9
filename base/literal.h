// A text as a template argument: find<"gptq">().
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tgi {

struct Literal {
  static constexpr size_t kMaxSize = 40;

  template <size_t kSize>
  consteval Literal(const char (&from)[kSize])  // NOLINT: that is what it is for
      : Literal(std::string_view(from, kSize - 1)) {}
  consteval explicit Literal(std::string_view from) {
    std::copy(from.begin(), from.end(), text.begin());  // no constant expression when it is longer
  }

  constexpr std::string_view view() const {
    return {text.data(),
            static_cast<size_t>(std::find(text.begin(), text.end(), '\0') - text.begin())};
  }

  std::array<char, kMaxSize> text{};  // filled up with zeros
};

}  // namespace tgi
