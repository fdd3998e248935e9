#include "ipc/model_settings.h"

#include "base/error.h"
#include "base/nlohmann_json.h"

namespace tgi::ipc {
namespace {

size_t place_of(const ModelSetting& row) {
  return static_cast<size_t>(&row - kModelSettings.data());
}

}  // namespace

const ModelSetting* find_model_setting(std::string_view name) {
  for (const ModelSetting& row : kModelSettings) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

void check_model_settings(const ModelSettings& settings) {
  for (const ModelSetting& row : kModelSettings) {
    try {
      ModelSettings scratch;
      row.set(scratch, row.get(settings));
    } catch (const Error& error) {
      throw error.in(field_name(row.name));
    }
  }
}

void GivenSettings::set(std::string_view name, const std::string& text) {
  const ModelSetting* row = find_model_setting(name);
  TGI_CHECK(row != nullptr && row->is_of_load());
  row->set(values_, text);
  is_given_[place_of(*row)] = true;
}

void GivenSettings::read(const nlohmann::ordered_json& fields) {
  for (size_t i = 0; i < kModelSettings.size(); ++i) {
    const ModelSetting& row = kModelSettings[i];
    const auto field = fields.find(field_name(row.name));
    if (!row.is_of_load() || field == fields.end() || field->is_null()) continue;
    row.set_json(values_, *field);
    is_given_[i] = true;
  }
}

void GivenSettings::write(nlohmann::ordered_json& fields) const {
  for (size_t i = 0; i < kModelSettings.size(); ++i) {
    const ModelSetting& row = kModelSettings[i];
    if (is_given_[i]) row.write(values_, fields[field_name(row.name)]);
  }
}

void GivenSettings::apply_to(ModelSettings& settings) const {
  for (size_t i = 0; i < kModelSettings.size(); ++i) {
    const ModelSetting& row = kModelSettings[i];
    if (is_given_[i] || row.scope == SettingScope::kModel) row.copy(values_, settings);
  }
}

bool GivenSettings::has(std::string_view name) const {
  const ModelSetting* row = find_model_setting(name);
  return row != nullptr && is_given_[place_of(*row)];
}

}  // namespace tgi::ipc
