// EXAONE 4.5: a multimodal checkpoint whose text model is EXAONE 4. Source: models/exaone4_5 in
// `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kExaone45Names =
    std::to_array<std::string_view>({"Exaone4_5_ForConditionalGeneration"});
constexpr auto kExaone45Types = std::to_array<std::string_view>({"exaone4_5"});

}  // namespace

extern const Architecture kExaone45;
constexpr Architecture kExaone45 =
    multimodal_of(kExaone45Names, kExaone45Types, R"({"model_type": "exaone4"})");

}  // namespace tgi
