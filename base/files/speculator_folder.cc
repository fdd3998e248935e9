#include "base/files/speculator_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/json.h"

namespace tgi {

std::optional<std::string> base_of_speculator(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "config.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const auto config = Json::parse(read_regular_file(path.string()), nullptr, false);
  if (!config.is_object()) return std::nullopt;  // whoever loads it says what is wrong
  const Json* const type = config.contains("model_type") ? &config["model_type"] : nullptr;
  const bool is_mlp = type != nullptr && *type == "mlp_speculator";
  if (!is_mlp && !config.contains("medusa_num_heads")) return std::nullopt;
  const auto base = config.find("base_model_name_or_path");
  if (base == config.end() || !base->is_string() || base->get<std::string>().empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: these heads draft for a model, but base_model_name_or_path does "
                            "not say for which; give the model, and this folder with --speculator",
                            path.string()));
  }
  const auto name = base->get<std::string>();
  const std::filesystem::path beside = std::filesystem::path(folder) / name;
  if (!std::filesystem::is_directory(beside, error)) return name;
  return std::filesystem::weakly_canonical(beside).string();
}

}  // namespace tgi
