// tgi doctor: what it makes of a machine, of what tgid --probe says, and of a daemon.
#include <sys/stat.h>

#include <filesystem>

#include "base/version.h"
#include "cmd/doctor/backends.h"
#include "cmd/doctor/daemon.h"
#include "cmd/doctor/machine.h"
#include "cmd/doctor_network.h"
#include "tests/catch.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {

using doctor::Finding;
using doctor::Verdict;
using ipc::OrderedJson;

namespace {

// A program in place of tgid, which prints `text` and ends with `status`.
std::string stand_in(const Home& home, const std::string& text, int status) {
  home.write("answer", text);
  const std::string path = home.write("tgid", "#!/bin/sh\ncat '" + home.file("answer") +
                                                  "'\nexit " + std::to_string(status) + "\n");
  ::chmod(path.c_str(), 0755);
  return path;
}

OrderedJson cpu_probe(const std::string& isa, double decode_bytes_per_s) {
  return {{"version", kVersion},
          {"commit", "abc1234"},
          {"backend_abi", 6},
          {"backends",
           {{{"name", "cpu"},
             {"found", true},
             {"device", "A Processor"},
             {"isa", isa},
             {"num_threads", 2},
             {"dtype", "bf16"},
             {"prompt_flops_per_s", 2e11},
             {"decode_bytes_per_s", decode_bytes_per_s}},
            {{"name", "cuda"}, {"found", false}, {"reason", "no driver"}}}}};
}

const Finding& named(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding;
  }
  FAIL("there is no line " << name);
  return findings.front();
}

}  // namespace

TEST_CASE("memory is read from the kernel; little of it is warned of, none told is a failure") {
  const Home home;
  const std::string root = home.file("");
  CHECK(doctor::look_at_memory(root).verdict == Verdict::kFail);
  std::filesystem::create_directories(root + "/proc");
  home.write(
      "proc/meminfo",
      "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapTotal: 1024 kB\nSwapFree: 0 kB\n");
  const Finding fine = doctor::look_at_memory(root);
  CHECK(fine.verdict == Verdict::kOk);
  CHECK(fine.text == "8.00 GiB, 4.00 GiB available, 1.0 MiB in swap");
  home.write("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1000 kB\n");
  const Finding little = doctor::look_at_memory(root);
  CHECK(little.verdict == Verdict::kWarn);
  CHECK_FALSE(little.advice.empty());
}

TEST_CASE("huge pages that are switched off are warned of") {
  const Home home;
  const std::string root = home.file("");
  CHECK(doctor::look_at_huge_pages(root).verdict == Verdict::kUnknown);
  std::filesystem::create_directories(root + "/sys/kernel/mm/transparent_hugepage");
  home.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  CHECK(doctor::look_at_huge_pages(root).text == "transparent: madvise");
  home.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  CHECK(doctor::look_at_huge_pages(root).verdict == Verdict::kWarn);
}

TEST_CASE("a graphics card is seen on the bus, an other device of its maker is none") {
  const Home home;
  const std::string root = home.file("");
  CHECK_FALSE(doctor::has_nvidia_hardware(root));
  const std::string slot = "sys/bus/pci/devices/0000:01:00.0";
  std::filesystem::create_directories(root + "/" + slot);
  home.write(slot + "/vendor", "0x10de\n");
  home.write(slot + "/class", "0x040300\n");  // its sound
  CHECK_FALSE(doctor::has_nvidia_hardware(root));
  home.write(slot + "/class", "0x030200\n");
  CHECK(doctor::has_nvidia_hardware(root));
}

TEST_CASE("a cache is measured without counting links twice") {
  const Home home;
  const std::string cache = home.file("hub");
  CHECK_THAT(doctor::look_at_cache(cache).text, Catch::Contains("not there yet"));
  std::filesystem::create_directories(cache + "/blobs");
  home.write("hub/blobs/a", std::string(3000, 'x'));
  std::filesystem::create_symlink("blobs/a", cache + "/link");
  CHECK(doctor::look_at_cache(cache).data["size_bytes"] == 3000);
}

TEST_CASE("the network is asked only where the last download failed") {
  download::HubSettings settings;
  settings.endpoint = "http://127.0.0.1:1";
  JobRecord last{.kind = "download", .subject = "org/name", .state = "done"};
  for (const auto& job : {std::optional<JobRecord>(), std::optional(last)}) {
    const Finding finding = doctor::look_at_network(job, settings);
    CHECK(finding.verdict == Verdict::kUnknown);
    CHECK(finding.data["asked"] == false);
  }
  last.state = "failed";
  last.message = "no route";
  const Finding failed = doctor::look_at_network(last, settings);
  CHECK(failed.verdict == Verdict::kFail);
  CHECK_THAT(failed.text, Catch::Contains("127.0.0.1:1"));
  CHECK_FALSE(failed.advice.empty());
  settings.offline = true;
  const Finding offline = doctor::look_at_network(last, settings);
  CHECK(offline.verdict == Verdict::kWarn);
  CHECK_THAT(offline.text, Catch::Contains("the last download, org/name, failed: no route"));
  CHECK_THAT(offline.advice, Catch::Contains("HF_HUB_OFFLINE"));
}

TEST_CASE("a download that the network ended is remembered for doctor") {
  const Home home;
  std::filesystem::create_directories(home.file("hub"));
  const std::map<std::string, std::string> environment = {
      {"HF_ENDPOINT", "http://no-such-host.invalid"}, {"HF_HOME", home.file("hub")}};
  const Ran pulled = home.run(RunSetup{{"pull", "org/name"}, "", environment, std::nullopt});
  CHECK(pulled.exit_status == 8);
  CHECK_THAT(pulled.err, Catch::Contains("advice: ") && !Catch::Contains("doctor"));
  const Ran ran = home.run(RunSetup{{"doctor", "--quick"}, "", environment, std::nullopt});
  CHECK_THAT(ran.out, Catch::Contains("fail network") && Catch::Contains("no-such-host.invalid"));
}

TEST_CASE("where no gateway listens nothing is said for it") {
  const Finding finding = doctor::look_at_gateway("0.0.0.0", 1);
  CHECK(finding.verdict == Verdict::kUnknown);
  CHECK_THAT(finding.text, Catch::Contains("none at http://127.0.0.1:1"));
}

TEST_CASE("doctor finds a file of settings that is wrong") {
  const Home home;
  std::filesystem::create_directories(home.file(".config/tgi"));
  home.write(".config/tgi/config.toml", "[daemon]\nmax-running = 0\n");
  const Ran ran = home.run({"doctor", "--quick"});
  CHECK(ran.exit_status == 1);
  CHECK_THAT(ran.out, Catch::Contains("fail settings") && Catch::Contains("config.toml:2: daemon"));
}

TEST_CASE("what the probe says becomes lines; slow memory, a plain processor and a deaf GPU warn") {
  const auto fine = doctor::look_at_probe(cpu_probe("avx512", 2e10), 2.5e10, false);
  CHECK(named(fine, "processor").verdict == Verdict::kOk);
  CHECK(named(fine, "processor").text == "A Processor, avx512, 2 threads");
  CHECK(named(fine, "GPU").text == "none");
  CHECK(named(fine, "matmul cpu").text ==
        "bf16: prompts 200 GFLOP/s, decoding reads 20.0 GB/s (80 % of plain reading)");
  const auto slow = doctor::look_at_probe(cpu_probe("generic", 5e9), 2.5e10, true);
  for (const char* name : {"processor", "GPU", "matmul cpu"}) {
    CAPTURE(name);
    CHECK(named(slow, name).verdict == Verdict::kWarn);
    CHECK_FALSE(named(slow, name).advice.empty());
  }
  CHECK_THAT(named(slow, "GPU").text, Catch::Contains("no driver"));
}

TEST_CASE("instruction sets that failed their trial are warned of, from the probe and the daemon") {
  OrderedJson probe = cpu_probe("generic", 2e10);
  probe["backends"][0]["left_out"] = {
      {{"isa", "avx2"}, {"kernel", "rms_norm"}, {"reason", "segmentation fault (SIGSEGV)"}}};
  const auto findings = doctor::look_at_probe(probe, 2.5e10, false);
  const Finding& line = named(findings, "left out");
  CHECK(line.verdict == Verdict::kWarn);
  CHECK(line.text == "avx2: rms_norm: segmentation fault (SIGSEGV)");
  CHECK_FALSE(line.advice.empty());
  CHECK(line.data["isa"] == "avx2");
  // It is no processor without AVX2.
  CHECK(named(findings, "processor").verdict == Verdict::kOk);

  const Home home;
  ipc::Status status = ready_status();
  status.model->left_out = {{"amx", "pack of int8", "did not end within 2000 ms"}};
  const FakeDaemon daemon(home.socket(), [&](FakeSession& session) {
    session.send(ipc::encode_result(ipc::to_json(status)));
  });
  const Ran ran = home.run({"doctor", "--quick", "--json"});
  bool found = false;
  const OrderedJson report = OrderedJson::parse(ran.out);
  for (const OrderedJson& one : report["findings"]) {
    if (one["name"] != "left out") continue;
    found = true;
    CHECK(one["verdict"] == "warn");
    CHECK(one["text"] == "amx: pack of int8: did not end within 2000 ms");
  }
  CHECK(found);
}

TEST_CASE("a logit check is judged by how the weights are kept") {
  const auto judge = [](double mean_kl, const std::string& quantize) {
    return doctor::judge_check(
               {{"num_positions", 48}, {"mean_kl", mean_kl}, {"greedy_agreement", 0.98}}, quantize)
        .verdict;
  };
  CHECK(judge(1e-4, "none") == Verdict::kOk);
  CHECK(judge(0.05, "none") == Verdict::kWarn);
  CHECK(judge(0.5, "none") == Verdict::kFail);
  CHECK(judge(0.03, "int8") == Verdict::kOk);
  CHECK(judge(0.3, "int4") == Verdict::kOk);
  CHECK(judge(3, "int4") == Verdict::kFail);
}

TEST_CASE("a logit check without a number is a failure") {
  for (const OrderedJson& result :
       {OrderedJson{{"num_positions", 48}, {"mean_kl", nullptr}, {"greedy_agreement", 1.0}},
        OrderedJson{{"num_positions", 48}, {"mean_kl", 0.0}}, OrderedJson::object()}) {
    const doctor::Finding finding = doctor::judge_check(result, "none");
    CHECK(finding.verdict == Verdict::kFail);
    CHECK_THAT(finding.text, Catch::Contains("not a number"));
  }
}

TEST_CASE("doctor fails a model whose logits are not finite, and says what to do") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_error(Code::kNotFinite, "the logits are not finite");
                          }));
  const std::string program = stand_in(home, cpu_probe("avx2", 1e12).dump(), 0);
  const Ran ran = home.run(RunSetup{{"doctor"}, "", {{"TGI_DAEMON", program}}, std::nullopt});
  CHECK(ran.exit_status == 1);
  CHECK_THAT(ran.out, Catch::Contains("fail logits       the logits are not finite\n") &&
                          Catch::Contains("-> where the weights are damaged"));
}

TEST_CASE("doctor without a daemon looks at the rest, starts none and ends with 0") {
  const Home home;
  const std::string daemon = stand_in(home, cpu_probe("avx2", 1e12).dump(), 0);
  const Ran ran = home.run(RunSetup{{"doctor"}, "", {{"TGI_DAEMON", daemon}}, std::nullopt});
  CHECK(ran.exit_status == 0);
  CHECK(ran.err.empty());
  for (const char* part : {"\nok   tgid         ", "(abc1234), backend interface 6\n",
                           "\nok   processor    A Processor, avx2",
                           "\nok   limits       open files", "\nskip daemon       none is running",
                           "\nskip network      not asked", "\nok   settings     "}) {
    CHECK_THAT(ran.out, Catch::Contains(part));
  }
  CHECK_FALSE(std::filesystem::exists(home.socket()));
}

TEST_CASE("a daemon's program that is missing, fails or is another's release is told, with 1") {
  const Home home;
  const auto doctor_with = [&](const std::string& daemon) {
    return home.run(RunSetup{{"doctor"}, "", {{"TGI_DAEMON", daemon}}, std::nullopt});
  };
  const Ran missing = doctor_with("/nonexistent/tgid");
  CHECK(missing.exit_status == 1);
  CHECK_THAT(missing.out, Catch::Contains("fail tgid         $TGI_DAEMON is /nonexistent/tgid"));
  const Ran failing = doctor_with(stand_in(home, "first\nIllegal instruction\n", 132));
  CHECK(failing.exit_status == 1);
  CHECK_THAT(failing.out, Catch::Contains("exit status 132: Illegal instruction\n"));
  OrderedJson other = cpu_probe("avx2", 1e12);
  other["version"] = "9.9.9";
  const Ran newer = doctor_with(stand_in(home, other.dump(), 0));
  CHECK(newer.exit_status == 0);
  CHECK_THAT(newer.out, Catch::Contains("warn tgid") && Catch::Contains("install both from one"));
}

TEST_CASE(
    "doctor asks the daemon to check its model, says what that takes, and judges the answer") {
  const Home home;
  const FakeDaemon daemon(
      home.socket(), ready_model([](FakeSession& session) {
        session.send(ipc::encode_result(
            {{"num_positions", 48}, {"mean_kl", 0.7}, {"greedy_agreement", 0.25}}));
      }));
  const std::string program = stand_in(home, cpu_probe("avx2", 1e12).dump(), 0);
  const std::map<std::string, std::string> environment = {{"TGI_DAEMON", program}};
  const Ran ran = home.run(RunSetup{{"doctor"}, "", environment, std::nullopt});
  CHECK(ran.exit_status == 1);
  CHECK(ran.err == "comparing the model with a float32 copy of 3.8 MiB ...\n");
  CHECK_THAT(ran.out,
             Catch::Contains("fail logits       against float32: mean divergence 0.7, same greedy "
                             "token at 25 % of 48 positions\n                  -> "));
  const Ran json = home.run(RunSetup{{"doctor", "--json"}, "", environment, std::nullopt});
  const OrderedJson report = OrderedJson::parse(json.out);
  CHECK(report["ok"] == false);
  bool found = false;
  for (const OrderedJson& finding : report["findings"]) {
    if (finding["name"] != "logits") continue;
    found = true;
    CHECK(finding["verdict"] == "fail");
    CHECK(finding["data"]["mean_kl"] == 0.7);
  }
  INFO(ran.out);
  CHECK(found);
  const Ran quick = home.run(RunSetup{{"doctor", "--quick"}, "", environment, std::nullopt});
  CHECK(quick.exit_status == 0);
  CHECK_THAT(quick.out, !Catch::Contains("logits") && !Catch::Contains("matmul"));
}

TEST_CASE("a model that could not be loaded is a failure; a check without room is none") {
  const Home home;
  {
    const FakeDaemon daemon(home.socket(), [](FakeSession& session) {
      ipc::Status status;
      status.phase = "failed";
      status.phase_detail = "config.json is not there";
      session.send(ipc::encode_result(ipc::to_json(status)));
    });
    const Ran ran = home.run({"doctor", "--quick"});
    CHECK(ran.exit_status == 1);
    CHECK_THAT(ran.out, Catch::Contains("fail daemon") && Catch::Contains("config.json is not"));
  }
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_error(Code::kOutOfMemory, "takes 9 GiB and 1 is free");
                          }));
  const std::string program = stand_in(home, cpu_probe("avx2", 1e12).dump(), 0);
  const Ran ran = home.run(RunSetup{{"doctor"}, "", {{"TGI_DAEMON", program}}, std::nullopt});
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::Contains("warn logits       not checked: takes 9 GiB and 1 is free"));
}

TEST_CASE("a check that only others may ask for is no failure of the model") {
  const Home home;
  const FakeDaemon daemon(home.socket(), ready_model([](FakeSession& session) {
                            session.send_error(Code::kForbidden, "check: root may");
                          }));
  const std::string program = stand_in(home, cpu_probe("avx2", 1e12).dump(), 0);
  const Ran ran = home.run(RunSetup{{"doctor"}, "", {{"TGI_DAEMON", program}}, std::nullopt});
  CHECK(ran.exit_status == 0);
  CHECK_THAT(ran.out, Catch::Contains("warn logits       not checked: check: root may"));
}

}  // namespace tgi
