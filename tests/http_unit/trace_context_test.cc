#include "cmd/http/trace_context.h"

#include <set>

#include "tests/catch.h"

namespace tgi::http {
namespace {

const std::string kTrace = "0af7651916cd43dd8448eb211c80319c";
const std::string kSpan = "b7ad6b7169203331";
const std::string kValid = "00-" + kTrace + "-" + kSpan + "-01";

}  // namespace

TEST_CASE("traceparent: the standard's example is read") {
  const auto context = parse_traceparent(kValid);
  REQUIRE(context);
  CHECK(context->trace_id == kTrace);
  CHECK(context->span_id == kSpan);
  CHECK(context->sampled);
  CHECK(to_traceparent(*context) == kValid);
}

TEST_CASE("traceparent: only the lowest bit of the flags says sampled") {
  const auto sampled = [](const std::string& flags) {
    return parse_traceparent("00-" + kTrace + "-" + kSpan + "-" + flags).value().sampled;
  };
  CHECK_FALSE(sampled("00"));
  CHECK(sampled("01"));
  CHECK_FALSE(sampled("02"));
  CHECK(sampled("ff"));
  CHECK_FALSE(sampled("0a"));
}

TEST_CASE("traceparent: a later version is read as far as version 00 goes") {
  CHECK(parse_traceparent("cc-" + kTrace + "-" + kSpan + "-01"));
  CHECK(parse_traceparent("cc-" + kTrace + "-" + kSpan + "-01-what-comes-later"));
  CHECK_FALSE(parse_traceparent("cc-" + kTrace + "-" + kSpan + "-01.what"));
  CHECK_FALSE(parse_traceparent("cc-" + kTrace + "-" + kSpan + "-011"));
}

TEST_CASE("traceparent: what is malformed is refused") {
  const std::string zeros(32, '0');
  for (const std::string& header : {
           std::string(),
           std::string("00"),
           kValid.substr(0, 54),
           kValid + "-",
           kValid + "-01",
           kValid + " ",
           " " + kValid,
           "ff-" + kTrace + "-" + kSpan + "-01",
           "0g-" + kTrace + "-" + kSpan + "-01",
           "00-" + zeros + "-" + kSpan + "-01",
           "00-" + kTrace + "-" + zeros.substr(0, 16) + "-01",
           "00-0AF7651916CD43DD8448EB211C80319C-" + kSpan + "-01",
           "00-" + kTrace + "-B7AD6B7169203331-01",
           "00-" + kTrace.substr(1) + "x-" + kSpan + "-01",
           "00_" + kTrace + "-" + kSpan + "-01",
           "00-" + kTrace + "_" + kSpan + "-01",
           "00-" + kTrace + "-" + kSpan + "_01",
           "00-" + kTrace + "-" + kSpan + "-0x",
           "00-" + kTrace + "-" + kSpan + "-0A",
       }) {
    INFO('"' << header << '"');
    CHECK_FALSE(parse_traceparent(header));
  }
}

TEST_CASE("tracestate: entries are kept in order, without outer spaces and empty ones") {
  CHECK(parse_tracestate("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE") ==
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  CHECK(parse_tracestate(" a=1 ,\t b=2, ,") == "a=1,b=2");
  CHECK(parse_tracestate("fw529a3039@dt=x y,1a@s=!") == "fw529a3039@dt=x y,1a@s=!");
  CHECK(parse_tracestate("") == "");
  CHECK(parse_tracestate("a_-*/9=~") == "a_-*/9=~");
}

TEST_CASE("tracestate: one bad entry spoils it") {
  for (const std::string header :
       {"a", "=1", "a=", "A=1", "1a=1", "a =1", "a=1=2", "a=1,b", "a=1,a=2", "a=\x7f", "a=\xc3\xa9",
        "a@=1", "@b=1", "a@1b=1", "a@b@c=1", "a@abcdefghijklmno=1", "a=\x01", "a=1;b=2,c"}) {
    INFO(header);
    CHECK_FALSE(parse_tracestate(header));
  }
  CHECK_FALSE(parse_tracestate(std::string(257, 'a') + "=1"));
  CHECK_FALSE(parse_tracestate("a=" + std::string(257, 'b')));
  CHECK(parse_tracestate(std::string(241, 'a') + "@b=1"));
  CHECK_FALSE(parse_tracestate(std::string(242, 'a') + "@b=1"));
}

TEST_CASE("tracestate: 32 entries at most, and 512 characters of whole entries") {
  std::string header;
  for (int i = 0; i < 32; ++i) header += "k" + std::to_string(i) + "=v,";
  CHECK(parse_tracestate(header));
  CHECK_FALSE(parse_tracestate(header + "one-more=v"));

  const std::string first = "a=" + std::string(250, 'x');
  const std::string second = "b=" + std::string(250, 'x');
  CHECK(parse_tracestate(first + "," + second + ",c=1") == first + "," + second + ",c=1");
  CHECK(parse_tracestate(first + "," + second + ",c=12345678,d=1") == first + "," + second);
}

TEST_CASE("trace context: taken from exactly one traceparent, with the tracestates joined") {
  const std::vector<std::string> one = {kValid};
  const std::vector<std::string> states = {"a=1", "b=2"};
  CHECK(read_trace_context(one, states).value().trace_state == "a=1,b=2");
  CHECK(read_trace_context(one, std::vector<std::string>{"bad"}).value().trace_state.empty());
  CHECK_FALSE(read_trace_context({}, states));
  CHECK_FALSE(read_trace_context(std::vector<std::string>{kValid, kValid}, {}));
  CHECK_FALSE(read_trace_context(std::vector<std::string>{"nonsense"}, states));
  CHECK(read_trace_context(std::vector<std::string>{" " + kValid + "\t"}, {}));
}

TEST_CASE("trace context: a child keeps the trace and gets its own id") {
  TraceContext parent = parse_traceparent("00-" + kTrace + "-" + kSpan + "-00").value();
  parent.trace_state = "a=1";
  const TraceContext child = child_of(parent);
  CHECK(child.trace_id == kTrace);
  CHECK(child.span_id != kSpan);
  CHECK_FALSE(child.sampled);
  CHECK(child.trace_state == "a=1");
  CHECK(parse_traceparent(to_traceparent(child)));
}

TEST_CASE("trace context: without a parent a sampled trace begins, with ids of its own") {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const TraceContext root = child_of(std::nullopt);
    REQUIRE(parse_traceparent(to_traceparent(root)));
    CHECK(root.sampled);
    ids.insert(root.trace_id);
    ids.insert(root.span_id);
  }
  CHECK(ids.size() == 2000);
}

}  // namespace tgi::http
