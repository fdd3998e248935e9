// The history of benchmarks: settings and results as the JSON that the bench prints.
#include <fmt/format.h>

#include <ctime>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/store/store.h"

namespace tgi {
namespace {

Json kept_json(const std::string& text, const std::string& path) {
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw error.in(fmt::format("store {}: damaged", path));
  }
}

}  // namespace

void Store::add_benchmark(const BenchmarkRecord& benchmark) {
  require_writable();
  const int64_t at = benchmark.measured_at;
  database_
      .prepare(
          "INSERT INTO benchmarks (measured_at, kind, model, backend, isa, dtype, settings, "
          "result, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(1, at != 0 ? at : int64_t{std::time(nullptr)})
      .bind(2, benchmark.kind)
      .bind(3, benchmark.model)
      .bind(4, benchmark.backend)
      .bind(5, benchmark.isa)
      .bind(6, benchmark.dtype)
      .bind(7, benchmark.settings.dump(-1, ' ', false, Json::error_handler_t::replace))
      .bind(8, benchmark.result.dump(-1, ' ', false, Json::error_handler_t::replace))
      .bind(9, benchmark.version)
      .run();
}

std::vector<BenchmarkRecord> Store::benchmarks(const BenchmarkFilter& filter, int64_t limit) const {
  std::vector<BenchmarkRecord> out;
  Statement rows = database_.prepare(
      "SELECT id, measured_at, kind, model, backend, isa, dtype, settings, result, version "
      "FROM benchmarks WHERE (?1 = '' OR kind = ?1) AND (?2 = '' OR model = ?2) "
      "ORDER BY id DESC LIMIT ?3");
  rows.bind(1, filter.kind).bind(2, filter.model).bind(3, limit);
  while (rows.step()) {
    out.push_back({.id = rows.integer(0),
                   .measured_at = rows.integer(1),
                   .kind = rows.text(2),
                   .model = rows.text(3),
                   .backend = rows.text(4),
                   .isa = rows.text(5),
                   .dtype = rows.text(6),
                   .settings = kept_json(rows.text(7), path()),
                   .result = kept_json(rows.text(8), path()),
                   .version = rows.text(9)});
  }
  return out;
}

}  // namespace tgi
