// AdapterStore: adapters that are made of others.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/lora/merge_adapters.h"
#include "engine/runtime/adapter_store.h"
#include "engine/runtime/opened_adapter.h"

namespace tgi {
namespace {

double weight_of(const ipc::MergedAdapters& asked, size_t index) {
  return asked.weights.empty() ? 1.0 : asked.weights[index];
}

bool is_linear(const ipc::MergedAdapters& asked) {
  return asked.merge_strategy == kMergeStrategyNames.front();
}

// "ties(a, 0.5 * b; density 0.2, total)": another one for each way to merge them.
std::string name_of(const ipc::MergedAdapters& asked) {
  std::string out = asked.merge_strategy + "(";
  for (size_t i = 0; i < asked.ids.size(); ++i) {
    if (i > 0) out += ", ";
    if (weight_of(asked, i) != 1.0) out += fmt::format("{} * ", weight_of(asked, i));
    out += asked.ids[i];
  }
  if (!is_linear(asked)) {
    out += fmt::format("; density {}, {}", *asked.density, asked.majority_sign_method);
  }
  return out + ")";
}

}  // namespace

std::shared_ptr<const HostAdapter> AdapterStore::merged(const ipc::MergedAdapters& asked,
                                                        std::stop_token stop) {
  std::vector<std::shared_ptr<const HostAdapter>> adapters;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < asked.ids.size(); ++i) {
    const bool has_path = !asked.paths.empty() && !asked.paths[i].empty();
    adapters.push_back(has_path ? load(asked.ids[i], asked.paths[i]) : find(asked.ids[i]));
    ids.push_back(adapters.back()->id);
  }
  if (adapters.size() == 1 && is_linear(asked) && weight_of(asked, 0) == 1.0) {
    return adapters.front();
  }
  const std::string name = name_of(asked);
  // Who wants the same meanwhile finds it.
  const std::lock_guard merging(merging_mutex_);
  {
    const std::lock_guard lock(merges_mutex_);
    const auto it = std::ranges::find_if(
        merges_, [&](const Merge& merge) { return merge.name == name && merge.adapters == ids; });
    if (it != merges_.end()) {
      merges_.splice(merges_.begin(), merges_, it);
      return it->adapter;
    }
  }
  auto made = make_merged(asked, name, adapters, std::move(stop));
  return keep({.name = name, .adapters = ids, .adapter = std::move(made)});
}

std::shared_ptr<const HostAdapter> AdapterStore::make_merged(
    const ipc::MergedAdapters& asked,
    const std::string& name,
    const std::vector<std::shared_ptr<const HostAdapter>>& adapters,
    std::stop_token stop) {
  std::vector<MergeInput> inputs;
  for (size_t i = 0; i < adapters.size(); ++i) {
    // All that the store makes have such files.
    const auto& files = static_cast<const OpenedAdapter&>(*adapters[i]->files);
    inputs.push_back({.name = asked.ids[i],
                      .adapter = &files.adapter,
                      .weight = static_cast<float>(weight_of(asked, i))});
  }
  MergeOptions options{
      .on_factors = merges_factors_,
      .num_threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency() / 2)),
      .stop = std::move(stop)};
  options.rule.strategy = merge_strategy_from_name(asked.merge_strategy).value();
  options.rule.majority_sign = majority_sign_from_name(asked.majority_sign_method).value();
  options.rule.density = asked.density.value_or(1.0);
  try {
    auto files = std::make_shared<OpenedAdapter>();
    files->adapter = merge_adapters(inputs, options);
    for (const auto& adapter : adapters) adapter->files->check_intact();
    auto out = std::make_shared<HostAdapter>();
    out->id = ++last_id_;
    out->name = name;
    out->parts = parts_of_ranks(files->adapter, model_, weights_, num_ranks_);
    out->device_bytes = engine_.adapter_bytes(out->parts);
    out->files = std::move(files);
    return out;
  } catch (const std::exception& error) {
    if (options.stop.stop_requested()) throw;
    throw Error(Code::kAdapter, fmt::format("adapter {}: {}", name, error.what()));
  }
}

std::shared_ptr<const HostAdapter> AdapterStore::keep(Merge merge) {
  const std::lock_guard lock(merges_mutex_);
  std::erase_if(merges_, [&](const Merge& other) {
    if (other.name != merge.name) return false;
    engine_.forget_adapter(other.adapter->id);
    return true;
  });
  merges_.push_front(std::move(merge));
  if (merges_.size() > kMaxMergesKept) {
    engine_.forget_adapter(merges_.back().adapter->id);
    merges_.pop_back();
  }
  return merges_.front().adapter;
}

}  // namespace tgi
