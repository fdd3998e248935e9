// The table of settings drives the codec of a load; tests/daemon and tests/cmd have the flags.
#include "ipc/model_settings.h"

#include <set>

#include "ipc/protocol.h"
#include "tests/catch.h"
#include "tests/ipc/setting_samples.h"

namespace tgi::ipc::model_settings_test {
namespace {

std::string load_refusal(const std::string& field, const OrderedJson& value) {
  try {
    load_params_from_json(OrderedJson{{"model", "m"}, {field, value}});
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("every setting has a name of its own, words, and a default that it takes itself") {
  std::set<std::string_view> seen;
  for (const ModelSetting& row : model_settings()) {
    CAPTURE(row.name);
    CHECK(seen.insert(row.name).second);
    CHECK(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos);
    CHECK_FALSE(row.help.empty());
    CHECK(row.is_switch() == row.value_name.empty());
    CHECK(find_model_setting(row.name) == &row);
  }
  CHECK_NOTHROW(check_model_settings(ModelSettings()));
  CHECK(find_model_setting("no-such-setting") == nullptr);
}

TEST_CASE("every setting of a load is a field of its request, and no other is") {
  for (const ModelSetting& row : model_settings()) {
    CAPTURE(row.name);
    ModelSettings settings;
    row.set(settings, taken_text(row));
    CHECK(row.get(settings) != row.get(ModelSettings()));
    OrderedJson request = {{"model", "m"}};
    row.write(settings, request[field_name(row.name)]);
    if (!row.is_of_load()) {
      CHECK_THAT(load_refusal(field_name(row.name), 1),
                 Catch::StartsWith(field_name(row.name) + ": unknown field; known are model, "));
      continue;
    }
    const LoadParams params = load_params_from_json(request);
    CHECK(to_json(params) == request);
    CHECK(params.settings.has(row.name));
    ModelSettings taken;
    params.settings.apply_to(taken);
    CHECK(row.get(taken) == row.get(settings));
  }
}

TEST_CASE("what a row says that the status tells, it tells by that name") {
  Status status;
  status.model.emplace();
  const OrderedJson model = to_json(status).at("model");
  for (const ModelSetting& row : model_settings()) {
    CAPTURE(row.name);
    if (row.in_status) CHECK(model.contains(field_name(row.name)));
  }
}

TEST_CASE("a field with a value that its row refuses is refused with its name and what it may be") {
  for (const ModelSetting& row : model_settings()) {
    if (!row.is_of_load()) continue;
    const std::string refusal = load_refusal(field_name(row.name), refused_json(row));
    CHECK_THAT(refusal, Catch::StartsWith(field_name(row.name) + ": expected "));
    for (const std::string_view choice : row.choices) {
      CHECK_THAT(refusal, Catch::Contains(std::string(choice)));
    }
  }
}

TEST_CASE("what a load does not say stays, but for what is of one model") {
  ModelSettings daemon;
  daemon.dtype = "f32";
  daemon.max_running = 9;
  daemon.load_format = "dummy";
  daemon.max_total_tokens = 100;
  daemon.cpu_isa = "generic";
  GivenSettings given;
  given.set("max-running", "3");
  given.set("max-total-tokens", "auto");
  ModelSettings out = daemon;
  given.apply_to(out);
  CHECK(out.dtype == "f32");
  CHECK(out.max_running == 3);
  CHECK(out.load_format == "auto");
  CHECK_FALSE(out.max_total_tokens);
  CHECK(out.cpu_isa == "generic");
  // The same over the wire, where null counts as absent and can't say it.
  OrderedJson fields = {{"model", "m"}};
  given.write(fields);
  CHECK(fields == OrderedJson{{"model", "m"}, {"max_total_tokens", "auto"}, {"max_running", 3}});
  fields["dtype"] = nullptr;
  ModelSettings over_wire = daemon;
  load_params_from_json(fields).settings.apply_to(over_wire);
  CHECK_FALSE(over_wire.max_total_tokens);
  CHECK(over_wire.dtype == "f32");
  CHECK(over_wire.max_running == 3);
}

TEST_CASE("settings that come from elsewhere are checked by the same rows") {
  ModelSettings settings;
  settings.kv_cache_dtype = "f8e4m3";
  CHECK_NOTHROW(check_model_settings(settings));
  settings.dtype = "f8e4m3";
  CHECK_THROWS_WITH(check_model_settings(settings),
                    "dtype: expected one of auto, f32, bf16, f16, got \"f8e4m3\"");
  settings = {};
  settings.max_waiting = 0;
  CHECK_THROWS_WITH(check_model_settings(settings),
                    "max_waiting: expected a whole number of at least 1, got \"0\"");
}

TEST_CASE("numbers of settings are read whole, inside their range and finite") {
  const auto refuses = [](std::string_view name, const std::string& text) {
    ModelSettings settings;
    try {
      find_model_setting(name)->set(settings, text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refuses("max-waiting", "7x") == "expected a whole number of at least 1, got \"7x\"");
  CHECK_FALSE(refuses("max-waiting", "4294967297").empty());
  CHECK_FALSE(refuses("max-waiting", "").empty());
  CHECK_FALSE(refuses("max-waiting", "auto").empty());
  CHECK(refuses("max-total-tokens", "auto").empty());
  CHECK(refuses("max-total-tokens", "1") ==
        "expected a whole number of at least 2, or auto, got \"1\"");
  CHECK(refuses("quantize-group-size", "257") ==
        "expected a whole number from 0 to 256, got \"257\"");
  CHECK(refuses("cuda-memory-fraction", "0") == "expected a number above 0, at most 1, got \"0\"");
  for (const char* text : {"nan", "inf", "-1", "1e10"}) {
    CAPTURE(text);
    CHECK_FALSE(refuses("target-step-ms", text).empty());
    CHECK_FALSE(refuses("slow-reader-timeout", text).empty());
  }
  for (const char* text : {"0", "0.5", "-4GiB", "4 GiB", "1e30", "GiB", ""}) {
    CAPTURE(text);
    CHECK_FALSE(refuses("kv-cache-memory", text).empty());
  }
  CHECK(refuses("kv-cache-memory", "1.5GiB").empty());
}

}  // namespace tgi::ipc::model_settings_test
