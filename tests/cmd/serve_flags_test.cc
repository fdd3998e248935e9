#include "cmd/serve_flags.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/cmd/serve_line.h"

namespace tgi {

TEST_CASE("serve flags: nothing given means TGI's defaults, on the loopback address") {
  const ServeOptions options = resolve({});
  CHECK(options == ServeOptions{});
  CHECK(options.host == "127.0.0.1");
  CHECK(options.port == 3000);
  CHECK(options.max_concurrent_requests == 128);
  CHECK(options.max_best_of == 2);
  CHECK(options.max_stop_sequences == 4);
  CHECK(options.max_top_n_tokens == 5);
  CHECK(options.max_client_batch_size == 4);
  CHECK(options.payload_limit == 2'000'000);
  CHECK(options.graceful_termination_timeout == 90);
  CHECK(options.engine.empty());
}

TEST_CASE("serve flags: a flag goes before its variable, an empty variable is none") {
  CHECK(resolve({"--port", "8080"}, {{"PORT", "9090"}}).port == 8080);
  CHECK(resolve({"-p", "8080"}).port == 8080);
  CHECK(resolve({}, {{"PORT", ""}}).port == 3000);
  CHECK(resolve({"--max-batch-size", "4"}, {{"MAX_BATCH_SIZE", "8"}}).engine ==
        std::vector<EngineSetting>{{"max-running", "4"}});
}

TEST_CASE("serve flags: HOSTNAME is an address or somebody else's") {
  CHECK(resolve({}, {{"HOSTNAME", "3f2a9c0d11aa"}}) == ServeOptions{});
  CHECK(resolve({}, {{"HOSTNAME", "localhost"}}).host == "127.0.0.1");
  CHECK(resolve({}, {{"HOSTNAME", "0.0.0.0"}}).host == "0.0.0.0");
  CHECK(resolve({}, {{"HOSTNAME", "::"}}).host == "::");
  CHECK(resolve({"--hostname", "localhost"}, {{"HOSTNAME", "0.0.0.0"}}).host == "localhost");
}

TEST_CASE("serve flags: a name is that of one adapter") {
  CHECK(refusal({"--lora-adapters", "a=/one,a=/two"}) ==
        "--lora-adapters: two adapters have the name a: /one and /two");
  CHECK(refusal({"--lora-adapters", "a=/one", "--lora-adapters", "a=/two"}).find("name a") !=
        std::string::npos);
  CHECK(refusal({"--lora-adapters", "O/A@v1,O/A@v2"}).find("name O/A: O/A@v1 and O/A@v2") !=
        std::string::npos);
  CHECK(refusal({"--lora-adapters", "a=/one", "--preloaded-adapter-ids", "a=/two"}) ==
        "--preloaded-adapter-ids: two adapters have the name a: /one and /two");
  CHECK(refusal({"--lora-adapters", "a=/one", "--adapter-id", "a=/two"}) ==
        "--adapter-id: two adapters have the name a: /one and /two");
  CHECK(refusal({"--lora-adapters", "a=/one,b=/one,a=/one"}).empty());
  CHECK(refusal({"O/M", "--lora-adapters", "O/M=/one"}) ==
        "--lora-adapters: O/M is the name of a model, and requests with it mean that; give the "
        "adapter another: NAME=/one");
  CHECK(refusal({"O/M", "--model", "second=/two", "--preloaded-adapter-ids", "second=/one"})
            .find("second is the name of a model") != std::string::npos);
}

TEST_CASE("serve flags: Vertex AI says where to listen and which paths it asks") {
  const ServeOptions options = resolve({}, {{"AIP_HTTP_PORT", "8080"},
                                            {"AIP_PREDICT_ROUTE", "/predict"},
                                            {"AIP_HEALTH_ROUTE", "/alive"},
                                            {"AIP_MODE", "PREDICTION"}});
  CHECK(options.port == 8080);
  CHECK(options.host == "0.0.0.0");
  CHECK(options.route_aliases ==
        std::vector<RouteAlias>{{"/predict", "/vertex"}, {"/alive", "/health"}});
  CHECK(options.warnings.size() == 1);  // that anyone can use it
  CHECK(resolve({}, {{"AIP_HTTP_PORT", "8080"}, {"PORT", "9090"}}).port == 9090);
  CHECK(resolve({"--port", "70"}, {{"AIP_HTTP_PORT", "8080"}}).port == 70);
  const ServeOptions http = resolve({"--http", ":90"}, {{"AIP_HTTP_PORT", "8080"}});
  CHECK(http.port == 90);
  CHECK(http.host == "127.0.0.1");
  CHECK_THROWS_WITH(resolve({}, {{"AIP_PREDICT_ROUTE", "predict"}}),
                    "AIP_PREDICT_ROUTE: expected a path that begins with /, got \"predict\"");
}

TEST_CASE("serve flags: SageMaker's variables stand for TGI's where these are not given") {
  const ServeOptions options =
      resolve({}, {{"HF_MODEL_ID", "demo"}, {"HF_MODEL_QUANTIZE", "int8"}, {"SM_NUM_GPUS", "2"}});
  CHECK(options.model == "demo");
  CHECK(options.engine == std::vector<EngineSetting>{{"quantize", "int8"}, {"num-shard", "2"}});
  CHECK(resolve({}, {{"SM_NUM_GPUS", "2"}, {"NUM_SHARD", "4"}}).engine ==
        std::vector<EngineSetting>{{"num-shard", "4"}});
  CHECK(resolve({}, {{"HF_MODEL_ID", "/nowhere/at/all"}, {"MODEL_ID", "demo"}}).model == "demo");
  CHECK(resolve({"demo"}, {{"HF_MODEL_ID", "/nowhere/at/all"}}).model == "demo");
}

TEST_CASE("serve flags: what listens for others is said") {
  CHECK(resolve({"--hostname", "127.0.0.2"}).warnings.empty());
  CHECK(resolve({"--hostname", "::1"}).warnings.empty());
  CHECK(resolve({"--http", "localhost:80"}).warnings.empty());
  const ServeOptions open = resolve({"--hostname", "0.0.0.0"});
  REQUIRE(open.warnings.size() == 1);
  CHECK_THAT(open.warnings[0], Catch::Contains("http://0.0.0.0:3000"));
  CHECK(resolve({}, {{"HOSTNAME", "0.0.0.0"}}).warnings == open.warnings);

  const Variables key = {{"API_KEY", "k"}};
  const ServeOptions with_key = resolve({}, key);
  CHECK(with_key.host == "0.0.0.0");
  REQUIRE(with_key.warnings.size() == 1);
  CHECK_THAT(with_key.warnings[0], Catch::Contains("--hostname 127.0.0.1"));
  CHECK(resolve({"--http", ":80"}, key).host == "0.0.0.0");
  CHECK(resolve({"--hostname", "0.0.0.0"}, key).warnings.empty());
  CHECK(resolve({"--hostname", "127.0.0.1"}, key).warnings.empty());
  CHECK_THAT(resolve({"--http", "[::1]:1", "--api-key", "k"}).warnings[0],
             Catch::Contains("API_KEY"));
}

TEST_CASE("serve flags: --http says host and port") {
  struct Case {
    std::string text, host;
    uint16_t port;
    std::string url;
  };
  for (const Case& c : {Case{":8080", "127.0.0.1", 8080, "http://127.0.0.1:8080"},
                        Case{"10.0.0.1:0", "10.0.0.1", 0, "http://10.0.0.1:0"},
                        Case{"localhost:65535", "localhost", 65535, "http://localhost:65535"},
                        Case{"[::1]:3000", "::1", 3000, "http://[::1]:3000"}}) {
    INFO(c.text);
    const ServeOptions options = resolve({"--http", c.text});
    CHECK(options.host == c.host);
    CHECK(options.port == c.port);
    CHECK(http_url(options.host, options.port) == c.url);
  }
  CHECK(resolve({"--hostname", "[::1]"}).host == "::1");
  for (const char* text : {"8080", "localhost", "::1:80", "", "[]:80", ":", ":x", ":65536", ":-1",
                           "a b:80", "http://a:80", "[::1]", "[::1]:"}) {
    INFO(text);
    CHECK_THAT(refusal({"--http", text}), Catch::StartsWith("--http"));
  }
}

TEST_CASE("serve flags: --http goes before the variables and excludes the flags") {
  const ServeOptions options =
      resolve({"--http", ":8080"}, {{"PORT", "tcp://10.0.0.1:80"}, {"HOSTNAME", "0.0.0.0"}});
  CHECK(options.port == 8080);
  CHECK(options.host == "127.0.0.1");
  CHECK(options.warnings.empty());
  CHECK_THAT(refusal({"--http", ":1", "--port", "2"}), Catch::Contains("--port exclude"));
  CHECK_THAT(refusal({"--http", ":1", "--hostname", "::"}), Catch::Contains("--hostname exclude"));
}

TEST_CASE("serve flags: a wrong value names flag, what was expected and what came") {
  struct Case {
    std::string flag, value, expected;
  };
  for (const Case& c : {
           Case{"--port", "65536", "a whole number from 0 to 65535"},
           Case{"--port", "3000x", "a whole number from 0 to 65535"},
           Case{"--max-best-of", "0", "a whole number of at least 1"},
           Case{"--max-concurrent-requests", "-1", "a whole number of at least 1"},
           Case{"--max-concurrent-requests", "99999999999", "a whole number of at least 1"},
           Case{"--payload-limit", "2MB", "a whole number of at least 1"},
           Case{"--waiting-served-ratio", "nan", "a number of at least 0"},
           Case{"--dtype", "int8", "float16, bfloat16, float32 or auto"},
           Case{"--quantize", "q4", "int8, int4 or none"},
           Case{"--otlp-endpoint", "localhost:4318", "a URL such as http://127.0.0.1:4318"},
           Case{"--tokenizer-config-path", "/no/such/file", "a file"},
           Case{"--hostname", "a/b", "an address or the name of a host"},
       }) {
    INFO(c.flag << " " << c.value);
    CHECK(refusal({c.flag, c.value}) ==
          fmt::format("{}: expected {}, got \"{}\"", c.flag, c.expected, c.value));
    CHECK(code_of({c.flag, c.value}) == std::nullopt);  // a usage error
  }
  CHECK(refusal({}, {{"PORT", "tcp://1.2.3.4:80"}}) ==
        "PORT: expected a whole number from 0 to 65535, got \"tcp://1.2.3.4:80\"");
  CHECK(code_of({}, {{"MAX_BEST_OF", "two"}}) == Code::kInvalidArgument);
  CHECK_THAT(refusal({}, {{"JSON_OUTPUT", "maybe"}}), Catch::Contains("expected true or false"));
  CHECK_THAT(refusal({"--port", "1", "--port", "2"}), Catch::Contains("--port"));
  for (const char* origin :
       {"example.org", "", ",", "https://a.example/", "https://", "https://*.a.example"}) {
    INFO(origin);
    CHECK_THAT(refusal({"--cors-allow-origin", origin}), Catch::Contains("expected an origin"));
  }
}

TEST_CASE("serve flags: an odd LOG_LEVEL is another program's") {
  const ServeOptions options = resolve({}, {{"LOG_LEVEL", "text_generation_router=debug"}});
  CHECK(options.log_level == "info");
  REQUIRE(options.warnings.size() == 1);
  CHECK_THAT(options.warnings[0],
             Catch::StartsWith("LOG_LEVEL has no effect: expected one of debug"));
}

TEST_CASE("serve flags: the API key is in no message") {
  for (const std::string& key : {std::string("sesame\n"), std::string("ses ame"),
                                 std::string("sesam\xc3\xa9"), std::string("sesame\t")}) {
    const std::string message = refusal({}, {{"API_KEY", key}});
    CHECK_THAT(message, Catch::StartsWith("API_KEY: expected printable"));
    CHECK_THAT(message, !Catch::Contains("ses"));
    CHECK_THAT(refusal({"--api-key", key}), !Catch::Contains("ses"));
  }
  CHECK_THAT(refusal({"--api-key", ""}), Catch::StartsWith("--api-key: expected printable"));
  for (const std::string& line : resolve({"--api-key", "sesame"}).warnings) {
    CHECK_THAT(line, !Catch::Contains("sesame"));
  }
}

TEST_CASE("serve flags: both names of the input length are an error, and so is input above total") {
  for (const auto& arguments :
       {std::vector<std::string>{"--max-input-tokens", "5", "--max-input-length", "5"},
        std::vector<std::string>{"--max-input-tokens", "5"}}) {
    CHECK_THAT(refusal(arguments, {{"MAX_INPUT_LENGTH", "5"}}), Catch::Contains("are the same"));
  }
  CHECK_THAT(refusal({"--max-input-length", "9", "--max-total-tokens", "9"}),
             Catch::Contains("expected less than max-total-tokens, which is 9, got 9"));
  const ServeOptions options = resolve({"--max-input-length", "8", "--max-total-tokens", "9"});
  CHECK(options.max_input_tokens == 8);
  CHECK(options.max_total_tokens == 9);
}

TEST_CASE("serve flags: the model is a folder or demo, given once") {
  const std::string folder = TGI_SOURCE_DIR;
  CHECK(resolve({folder}).model == folder);
  CHECK(resolve({"--model-id", folder}).model == folder);
  CHECK(resolve({"demo"}, {{"MODEL_ID", "bigscience/bloom-560m"}}).model == "demo");
  CHECK_THAT(refusal({"demo", "--model-id", "demo"}), Catch::Contains("give one of them"));
  CHECK(resolve({"org/name@v1"}).model == "org/name@v1");
  CHECK(resolve({}, {{"MODEL_ID", "org/name"}, {"REVISION", "v1"}}).revision == "v1");
  CHECK(resolve({"s3://bucket/model"}).model == "s3://bucket/model");
  CHECK(refusal({}, {{"MODEL_ID", "org/no/name"}}) == "MODEL_ID: there is no folder org/no/name");
  CHECK(refusal({"/no/such"}) == "MODEL: there is no folder /no/such");
}

TEST_CASE("serve flags: TGI's and LoRAX's quantisations are refused with what to use") {
  for (const char* kind : {"marlin", "fp8-kv", "hqq-4bit", "hqq-3bit", "hqq-2bit"}) {
    INFO(kind);
    CHECK(code_of({"--quantize", kind}) == Code::kUnsupported);
    CHECK_THAT(refusal({"--quantize", kind}),
               Catch::StartsWith("--quantize: " + std::string(kind) + ": ") &&
                   Catch::Contains("--quantize int"));
    CHECK_THAT(refusal({}, {{"QUANTIZE", kind}}), Catch::StartsWith("QUANTIZE: "));
  }
  for (const char* kind : {"int4", "none", "awq", "compressed-tensors", "gptq", "fp8", "eetq",
                           "exl2", "bitsandbytes", "bitsandbytes-nf4", "bitsandbytes-fp4"}) {
    CHECK(resolve({"--quantize", kind}).engine == std::vector<EngineSetting>{{"quantize", kind}});
  }
  CHECK(resolve({"--quantize", "int8"}).engine == std::vector<EngineSetting>{{"quantize", "int8"}});
  CHECK(code_of({"--kv-cache-dtype", "fp8_e5m2"}) == Code::kUnsupported);
}

TEST_CASE("serve flags: origins may be repeated or parted by commas") {
  const std::vector<std::string> both = {"https://a.example", "http://b.example:81"};
  CHECK(
      resolve({"--cors-allow-origin", both[0], "--cors-allow-origin", both[1]}).cors_allow_origin ==
      both);
  CHECK(resolve({}, {{"CORS_ALLOW_ORIGIN", both[0] + ", " + both[1]}}).cors_allow_origin == both);
  CHECK(resolve({"--cors-allow-origin", "*", "demo"}).model == "demo");
}

}  // namespace tgi
