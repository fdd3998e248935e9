#include "cmd/download/gguf_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/ascii.h"
#include "base/error.h"
#include "base/files/split_name.h"

namespace tgi::download {
namespace {

constexpr std::string_view kEnding = ".gguf";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// Without ".gguf" and the number of a part.
std::string stem_of(std::string_view path) {
  if (const auto split = split_name(std::string(path))) return split->stem;
  return std::string(path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) : path);
}

// Upper case: Q4_K_M, IQ2_XXS, TQ1_0, BF16, MXFP4_MOE, UD-Q4_K_XL.
bool is_quantization(std::string_view name) {
  constexpr std::array<std::string_view, 8> kOthers = {"F16",  "F32",   "BF16",      "FP16",
                                                       "FP32", "MXFP4", "MXFP4_MOE", "NVFP4"};
  if (name.starts_with("UD-")) name.remove_prefix(3);
  if (std::ranges::find(kOthers, name) != kOthers.end()) return true;
  if (name.starts_with('I') || name.starts_with('T')) name.remove_prefix(1);
  if (name.size() < 2 || name[0] != 'Q' || !is_digit(name[1])) return false;
  return std::ranges::all_of(
      name, [](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z') || c == '_'; });
}

// The longest end of `stem` that is one, else the last part between dashes and dots.
std::string quantization_in(const std::string& stem) {
  constexpr std::string_view kSeparators = "-._";
  const std::string name = ascii_upper(stem);
  for (size_t begin = 0; begin < name.size();) {
    if (is_quantization(std::string_view(name).substr(begin))) return name.substr(begin);
    const size_t separator = name.find_first_of(kSeparators, begin);
    if (separator == std::string::npos) break;
    begin = separator + 1;
  }
  std::string found;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find_first_of("-.", begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (is_quantization(part)) found = part;
    begin = end + 1;
  }
  return found;
}

bool is_beside_a_model(std::string_view path) {
  const std::string name = ascii_upper(file_name(path));
  return name.starts_with("MMPROJ") || name.find("IMATRIX") != std::string::npos;
}

std::string list_of(const std::vector<GgufModel>& models) {
  std::string out;
  for (const GgufModel& model : models) {
    if (out.size() > 600) return out + ", ...";
    out += (out.empty() ? "" : ", ") + model.tag;
  }
  return out;
}

// The one that people mean who name none: small and good first.
const GgufModel* find_usual(const std::vector<GgufModel>& models) {
  constexpr std::array<std::string_view, 14> kUsual = {
      "Q4_K_M", "UD-Q4_K_XL", "Q4_K_S", "Q4_0",       "MXFP4", "MXFP4_MOE", "IQ4_XS",
      "Q5_K_M", "Q5_K_S",     "Q6_K",   "UD-Q8_K_XL", "Q8_0",  "BF16",      "F16"};
  for (const std::string_view usual : kUsual) {
    const auto at = std::ranges::find(models, usual, &GgufModel::tag);
    if (at != models.end()) return &*at;
  }
  return models.size() == 1 ? &models.front() : nullptr;
}

bool has_file(const GgufModel& model, const std::string& tag) {
  return std::ranges::any_of(model.files, [&](const RemoteFile& file) {
    return file.path == tag || file_name(file.path) == tag;
  });
}

std::vector<GgufModel> matching(const std::vector<GgufModel>& models, const std::string& tag) {
  std::vector<GgufModel> out;
  const auto collect = [&](auto&& matches) {
    if (out.empty()) std::ranges::copy_if(models, std::back_inserter(out), matches);
  };
  if (is_gguf(tag)) {
    collect([&](const GgufModel& model) { return model.files.front().path == tag; });
    collect([&](const GgufModel& model) { return has_file(model, tag); });
    return out;
  }
  const std::string wanted = ascii_upper(tag);
  collect([&](const GgufModel& model) { return model.tag == wanted; });
  collect(
      [&](const GgufModel& model) { return quantization_of(model.files.front().path) == wanted; });
  collect([&](const GgufModel& model) {
    const std::string stem = ascii_upper(stem_of(model.files.front().path));
    return stem.ends_with("-" + wanted) || stem.ends_with("." + wanted);
  });
  return out;
}

}  // namespace

int64_t GgufModel::bytes() const {
  int64_t sum = 0;
  for (const RemoteFile& file : files) sum += std::max<int64_t>(file.size, 0);
  return sum;
}

bool is_gguf(std::string_view path) {
  return path.ends_with(kEnding);
}

std::string quantization_of(std::string_view path) {
  const std::string stem = stem_of(path);
  std::string found = quantization_in(std::string(file_name(stem)));
  if (!found.empty()) return found;
  const size_t slash = stem.rfind('/');
  if (slash == std::string::npos) return "";
  return quantization_in(std::string(file_name(stem.substr(0, slash))));
}

std::vector<GgufModel> gguf_models(const std::vector<RemoteFile>& files) {
  std::vector<GgufModel> models;
  std::map<std::string, size_t> model_of_stem;
  std::map<std::string, int> num_of_quantization;
  for (const RemoteFile& file : files) {
    if (!is_gguf(file.path) || is_beside_a_model(file.path)) continue;
    const auto split = split_name(file.path);
    const std::string key = split ? fmt::format("{}/{}", split->stem, split->count) : file.path;
    const auto [at, is_new] = model_of_stem.emplace(key, models.size());
    if (is_new) {
      models.push_back({.tag = quantization_of(file.path), .files = {}, .num_parts = 1});
      if (split) models.back().num_parts = split->count;
      ++num_of_quantization[models.back().tag];
    }
    models[at->second].files.push_back(file);
  }
  for (GgufModel& model : models) {
    std::ranges::sort(model.files, {}, &RemoteFile::path);
    const bool is_plain = !model.tag.empty() && num_of_quantization[model.tag] == 1;
    if (!is_plain) model.tag = model.files.front().path;
  }
  return models;
}

GgufModel choose_gguf(const std::vector<RemoteFile>& files, const std::string& tag) {
  const std::vector<GgufModel> models = gguf_models(files);
  if (models.empty()) {
    throw Error(Code::kNotFound, fmt::format("there is no GGUF file{}, as \":{}\" asks for",
                                             files.empty() ? "" : " among its files", tag));
  }
  std::vector<GgufModel> found;
  if (tag.empty() || tag == "latest") {
    if (const GgufModel* usual = find_usual(models)) found.push_back(*usual);
    if (found.empty()) found = models;
  } else {
    found = matching(models, tag);
  }
  if (found.empty()) {
    throw Error(Code::kNotFound, fmt::format("there is no GGUF file of \"{}\"; there are: {}", tag,
                                             list_of(models)));
  }
  if (found.size() > 1) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("several GGUF files fit; add one of them after a colon: {}", list_of(found)));
  }
  GgufModel& model = found.front();
  if (!model.has_all_parts()) {
    throw Error(Code::kNotFound,
                fmt::format("{} has {} parts, of which {} are there", model.files.front().path,
                            model.num_parts, model.files.size()));
  }
  return std::move(model);
}

}  // namespace tgi::download
