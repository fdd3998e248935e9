#include "base/nlohmann_json.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
TGI_JSON_PARTS(template, tgi::json_parts::Map);
TGI_JSON_PARTS(template, tgi::json_parts::Ordered);
