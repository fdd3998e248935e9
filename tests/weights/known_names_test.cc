// The lists of names that everybody sees, against what there is.
#include "base/known_names.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "engine/weights/weight_encoder.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"

namespace tgi::known_names_test {
namespace {

using Strings = std::vector<std::string_view>;

Strings listed(Names names) {
  return {names.begin(), names.end()};
}

template <typename Rows>
Strings names_of(const Rows& rows) {
  Strings out;
  for (const auto* row : rows) out.push_back(row->name);
  return out;
}

}  // namespace

TEST_CASE("the formats of weights are those of the list, each under its own name") {
  Strings expected = listed(kWeightFormatNames);
  expected.insert(expected.begin(), "dense");
  CHECK(names_of(weight_formats()) == expected);
  for (const WeightFormat* format : weight_formats()) {
    CHECK(format->is_quantised == (format->name != "dense"));
  }
  CHECK(names_of(weight_encoders()) == listed(kEncoderNames));
}

TEST_CASE("each element type and each rounding has one name in the lists") {
  Strings types = listed(joined(kDTypeNames, kCacheOnlyDTypeNames));
  Strings known;
  for (const DType dtype : kDTypes) known.push_back(dtype_name(dtype));
  std::sort(types.begin(), types.end());
  std::sort(known.begin(), known.end());
  CHECK(types == known);
  for (const std::string_view name : kDTypeNames) CHECK(dtype_from_name(name).has_value());
  for (const std::string_view name : kCacheOnlyDTypeNames) CHECK_FALSE(dtype_from_name(name));
  for (const Quantization kind : {Quantization::kNone, Quantization::kInt8, Quantization::kInt4}) {
    CHECK(quantization_from_name(quantization_name(kind)) == kind);
  }
  Strings roundings = {"none"};
  roundings.insert(roundings.end(), kRoundingNames.begin(), kRoundingNames.end());
  // The last one only comes out of checkpoints.
  CHECK(roundings == Strings(std::begin(kQuantizationNames), std::begin(kQuantizationNames) + 3));
  CHECK_FALSE(quantization_from_name("mxfp4"));
  CHECK_FALSE(quantization_from_name("gptq"));
  for (const RoundingAlias& alias : kRoundingAliases) {
    CHECK(std::ranges::find(kRoundingNames, alias.rounding) != kRoundingNames.end());
    const bool is_format =
        std::ranges::find(kWeightFormatNames, alias.name) != kWeightFormatNames.end();
    CHECK((std::ranges::find(kRoundingAliasNames, alias.name) != kRoundingAliasNames.end()) ==
          !is_format);
  }
}

}  // namespace tgi::known_names_test
