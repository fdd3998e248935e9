// The table of settings drives the flags of `tgi load` and the page of settings.
#include "cmd/load.h"

#include <algorithm>

#include "base/error.h"
#include "cmd/settings_page.h"
#include "ipc/model_settings.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"
#include "tests/ipc/setting_samples.h"

namespace tgi::load_flags_test {
namespace {

// The request of `tgi load m` with these flags.
ipc::OrderedJson load_request(std::vector<std::string> arguments) {
  CLI::App app;
  LoadFlags flags;
  add_load_flags(app, flags);
  arguments.insert(arguments.begin(), "m");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes a vector
  app.parse(arguments);
  return ipc::to_json(ipc::LoadParams{.model = flags.model, .settings = settings_of(flags)});
}

std::string load_refusal(const std::vector<std::string>& arguments) {
  try {
    load_request(arguments);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("load flags: every setting of a load is one, and no other is") {
  for (const ipc::ModelSetting& row : ipc::model_settings()) {
    const std::string flag = "--" + std::string(row.name);
    CAPTURE(flag);
    std::vector<std::string> arguments = {flag};
    if (!row.is_switch()) arguments.push_back(taken_text(row));
    if (!row.is_of_load()) {
      CHECK_THAT(load_refusal(arguments), Catch::Contains(flag));
      continue;
    }
    ipc::ModelSettings settings;
    row.set(settings, taken_text(row));
    ipc::OrderedJson expected = {{"model", "m"}};
    row.write(settings, expected[ipc::field_name(row.name)]);
    CHECK(load_request(arguments) == expected);
    const ipc::LoadParams params = ipc::load_params_from_json(load_request(arguments));
    CHECK(row.get(params.settings.values()) == row.get(settings));
  }
  CHECK(load_request({}) == ipc::OrderedJson{{"model", "m"}});
}

TEST_CASE("load flags: a value that the row refuses is refused with the flag and what it may be") {
  for (const ipc::ModelSetting& row : ipc::model_settings()) {
    if (!row.is_of_load() || row.is_switch() || refused_text(row).empty()) continue;
    const std::string flag = "--" + std::string(row.name);
    const std::string refusal = load_refusal({flag, refused_text(row)});
    CHECK_THAT(refusal, Catch::StartsWith(flag + ": "));
    CHECK_THAT(refusal, Catch::Contains(refused_text(row)));
    for (const std::string_view choice : row.choices) {
      CHECK_THAT(refusal, Catch::Contains(std::string(choice)));
    }
    if (row.choices.empty()) CHECK_THAT(refusal, Catch::Contains(ipc::allowed_values(row)));
  }
}

TEST_CASE("load flags: a file is told by its absolute path") {
  const std::string config = load_request({"--tokenizer-config", "t.json"}).at("tokenizer_config");
  CHECK(config == std::filesystem::absolute("t.json").string());
}

TEST_CASE("the committed page of settings is that of the table") {
  INFO("docs/settings.md is stale; run: scripts/make_docs");
  CHECK(read_file(std::string(TGI_SOURCE_DIR) + "/docs/settings.md") == settings_page());
}

TEST_CASE("load flags: a value that can't be makes a wrong command line") {
  const Home home;
  const auto status_of = [&](const std::string& flag, const std::string& value) {
    return home.run({"load", "demo", "--no-start", flag, value}).exit_status;
  };
  CHECK(status_of("--max-total-tokens", "1") == 2);
  CHECK(status_of("--kv-cache-memory", "5Q") == 2);
  CHECK(status_of("--name", "a b") == 2);
  CHECK(status_of("--keep-alive", "xyz") == 2);
  CHECK(status_of("--keep-alive", "5m") == 8);
}

TEST_CASE("load flags: what the daemon says of the load holds, though the model gave way since") {
  const Home home;
  bool is_loaded = false;
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) {
    const std::string& method = session.request().method;
    if (method == ipc::kLoad) {
      is_loaded = true;
      return session.send(R"({"result": {"model": "demo", "load_seconds": 1.5}})");
    }
    REQUIRE(method == ipc::kStatus);  // nothing that loads it again
    ipc::Status status = ready_status();
    if (is_loaded) {
      status.others.push_back({.name = "a", .phase = "not loaded", .phase_detail = "demo"});
      status.others.back().last_model = status.model;
      status.others.back().last_model->served_name = "a";
    }
    session.send(ipc::encode_result(ipc::to_json(status)));
  });
  const Ran ran = home.run({"load", "demo", "--name", "a"});
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::StartsWith("loaded demo as a (") && Catch::EndsWith(" in 1.50 s\n"));
}

}  // namespace tgi::load_flags_test
