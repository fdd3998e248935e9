#include "base/files/speculator_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/bounded_json.h"
#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/json.h"

namespace tgi {

std::optional<std::string> base_of_speculator(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "config.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const auto config = json_or_discarded<Json>(read_regular_file(path.string()));
  if (!config.is_object()) return std::nullopt;  // whoever loads it says what is wrong
  const Json* const type = config.contains("model_type") ? &config["model_type"] : nullptr;
  const bool is_mlp = type != nullptr && *type == "mlp_speculator";
  const bool is_of_speculators = config.contains("speculators_model_type");
  if (!is_mlp && !is_of_speculators && !config.contains("medusa_num_heads")) return std::nullopt;
  const Json::json_pointer field(is_of_speculators ? "/speculators_config/verifier/name_or_path"
                                                   : "/base_model_name_or_path");
  const Json base = config.contains(field) ? config.at(field) : Json();
  if (!base.is_string() || base.get<std::string>().empty()) {
    std::string path_of_field = field.to_string().substr(1);
    std::ranges::replace(path_of_field, '/', '.');
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: these heads draft for a model, but {} does not say for which; "
                            "give the model, and this folder with --speculator",
                            path.string(), path_of_field));
  }
  const auto name = base.get<std::string>();
  const std::filesystem::path beside = std::filesystem::path(folder) / name;
  if (!std::filesystem::is_directory(beside, error)) return name;
  return std::filesystem::weakly_canonical(beside).string();
}

}  // namespace tgi
