// Catch2, for every test: version 2 (Debian 12), whose one header is large, or version 3 (Debian
// 13), of which the parts in use are read. The tests keep to the names of version 2.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

using Catch::Approx;

namespace Catch {

using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::Matches;
using Matchers::StartsWith;

inline auto Contains(const std::string& part) {
  return Matchers::ContainsSubstring(part);
}

}  // namespace Catch

#else

#include <catch2/catch.hpp>

#endif

// A tag for tests that would take minutes under ThreadSanitizer and show it no thread that others
// do not: there they are left out.
#ifdef __SANITIZE_THREAD__
#define TGI_NOT_UNDER_TSAN "[.]"
#else
#define TGI_NOT_UNDER_TSAN ""
#endif

// The same for what measures, and for what compares results of code that another test runs too:
// under any sanitizer that takes minutes and shows it nothing new.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TGI_NOT_UNDER_SANITIZERS "[.]"
#else
#define TGI_NOT_UNDER_SANITIZERS ""
#endif

namespace tgi {

// For tests that run the same code many times over to compare results: a sanitizer sees all that
// it can see in fewer of these runs.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kUnderSanitizers = true;
#else
inline constexpr bool kUnderSanitizers = false;
#endif

}  // namespace tgi
