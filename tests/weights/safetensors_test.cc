#include "engine/weights/safetensors.h"

#include "base/error.h"
#include "tests/catch.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi {
namespace {

// Parses and gives the message of the kInvalidArgument it must throw.
std::string refusal(const std::string& file) {
  try {
    parse_safetensors(as_bytes(file), "x.safetensors");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    CHECK_THAT(error.what(), Catch::StartsWith("x.safetensors: "));
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

// One tensor "a" with these three members, over `data`.
std::string one(const std::string& dtype,
                const std::string& shape,
                const std::string& offsets,
                const std::string& data) {
  return raw_safetensors(
      "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}",
      data);
}

TEST_CASE("reads names, shapes, types and bytes") {
  const std::string file = build_safetensors({
      {"b", "F32", "[2, 3]", f32_bytes({1, 2, 3, 4, 5, 6})},
      {"a", "BF16", "[2]", std::string("\x80\x3f\x00\x40", 4)},
      {"scalar", "F32", "[]", f32_bytes({7})},
      {"none", "F16", "[0, 5]", ""},
      {"mask", "BOOL", "[3]", std::string("\1\0\1", 3)},
  });
  const auto entries = parse_safetensors(as_bytes(file), "x");
  REQUIRE(entries.size() == 5);
  CHECK(entries[0].name == "a");
  CHECK(entries[0].dtype->native == DType::kBF16);
  CHECK(entries[1].shape == std::vector<int64_t>{2, 3});
  float last = 0;
  std::memcpy(&last, entries[1].bytes.data() + 20, 4);
  CHECK(last == 6.0F);
  CHECK(entries[2].name == "mask");
  CHECK(entries[2].dtype->name == "BOOL");
  CHECK_FALSE(entries[2].dtype->native);
  CHECK(entries[3].bytes.empty());
  CHECK(entries[4].shape.empty());
  CHECK(entries[4].bytes.size() == 4);
}

TEST_CASE("a header may be padded and a file may hold no tensor") {
  CHECK(parse_safetensors(as_bytes(raw_safetensors("{}      ", "")), "x").empty());
  CHECK(parse_safetensors(as_bytes(raw_safetensors("{\"__metadata__\":{\"a\":\"b\"}}", "")), "x")
            .empty());
}

TEST_CASE("truncated files are refused with the numbers") {
  CHECK_THAT(refusal(""), Catch::Contains("0 bytes"));
  CHECK_THAT(refusal("1234567"), Catch::Contains("7 bytes"));
  const std::string good = build_safetensors({{"a", "F32", "[2]", f32_bytes({1, 2})}});
  CHECK_THAT(refusal(good.substr(0, 20)), Catch::Contains("only 12 follow"));
  CHECK_THAT(refusal(good.substr(0, good.size() - 1)),
             Catch::Contains("tensor a") && Catch::Contains("end 8 is past the 7 data bytes"));
  // Every shorter file is refused, none crashes.
  for (size_t size = 0; size < good.size(); ++size) refusal(good.substr(0, size));
}

TEST_CASE("an absurd header length is refused before anything is allocated") {
  CHECK_THAT(refusal(std::string(8, '\xff')), Catch::Contains("18446744073709551615"));
  std::string big(16, '\0');
  big[4] = 1;  // 4 GiB
  CHECK_THAT(refusal(big), Catch::Contains("4294967296 is over the limit"));
}

TEST_CASE("a header that is not one JSON object is refused") {
  CHECK_THAT(refusal(raw_safetensors("", "")), Catch::Contains("not valid JSON"));
  CHECK_THAT(refusal(raw_safetensors("{\"a\":", "")), Catch::Contains("not valid JSON"));
  CHECK_THAT(refusal(raw_safetensors("{} x", "")), Catch::Contains("not valid JSON"));
  CHECK_THAT(refusal(raw_safetensors("{\"\xff\":{}}", "")), Catch::Contains("not valid JSON"));
  CHECK_THAT(refusal(raw_safetensors("[1]", "")), Catch::Contains("not a JSON object but array"));
  CHECK_THAT(refusal(raw_safetensors("{\"a\":5}", "")), Catch::Contains("expected an object"));
  const std::string deep = "{\"a\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}";
  CHECK_THAT(refusal(raw_safetensors(deep, "")), Catch::Contains("deeper"));
}

TEST_CASE("a name that stands twice is refused") {
  const std::string entry = "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}";
  CHECK_THAT(refusal(raw_safetensors("{\"a\":" + entry + ",\"a\":" + entry + "}", "x")),
             Catch::Contains("'a' twice"));
  CHECK_THAT(
      refusal(raw_safetensors(
          "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x")),
      Catch::Contains("'dtype' twice"));
}

TEST_CASE("members that are missing or of the wrong type are refused") {
  CHECK_THAT(refusal(raw_safetensors("{\"a\":{\"shape\":[],\"data_offsets\":[0,0]}}", "")),
             Catch::Contains("tensor a: dtype is missing"));
  CHECK_THAT(refusal(raw_safetensors("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", "")),
             Catch::Contains("shape is missing"));
  CHECK_THAT(refusal(raw_safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", "")),
             Catch::Contains("data_offsets is missing"));
  CHECK_THAT(refusal(one("5", "[1]", "[0,1]", "x")), Catch::Contains("dtype: expected a string"));
  CHECK_THAT(refusal(one("\"F99\"", "[1]", "[0,1]", "x")), Catch::Contains("'F99'"));
  CHECK_THAT(refusal(one("\"U8\"", "1", "[0,1]", "x")), Catch::Contains("shape"));
  CHECK_THAT(refusal(one("\"U8\"", "[1]", "[0]", "x")), Catch::Contains("array of two"));
  CHECK_THAT(refusal(one("\"U8\"", "[1]", "[0,1,1]", "x")), Catch::Contains("array of two"));
  CHECK_THAT(refusal(one("\"U8\"", "[1]", "[0,1.0]", "x")), Catch::Contains("whole number"));
  CHECK_THAT(refusal(one("\"U8\"", "[1]", "[-1,0]", "x")), Catch::Contains("-1"));
  CHECK_THAT(refusal(raw_safetensors("{\"__metadata__\":[]}", "")),
             Catch::Contains("__metadata__"));
  CHECK_THAT(refusal(raw_safetensors("{\"__metadata__\":{\"a\":1}}", "")),
             Catch::Contains("__metadata__.a"));
}

TEST_CASE("shapes that are negative, overflow or don't match their bytes are refused") {
  CHECK_THAT(refusal(one("\"U8\"", "[-1]", "[0,1]", "x")), Catch::Contains("-1"));
  CHECK_THAT(refusal(one("\"U8\"", "[1.5]", "[0,1]", "x")), Catch::Contains("1.5"));
  CHECK_THAT(refusal(one("\"U8\"", "[\"1\"]", "[0,1]", "x")), Catch::Contains("whole number"));
  CHECK_THAT(refusal(one("\"F32\"", "[4294967296, 4294967296]", "[0,0]", "")),
             Catch::Contains("overflows"));
  CHECK_THAT(refusal(one("\"F32\"", "[2305843009213693952, 8]", "[0,0]", "")),
             Catch::Contains("overflows"));
  CHECK_THAT(refusal(one("\"U8\"", "[18446744073709551615]", "[0,1]", "x")),
             Catch::Contains("too large"));
  CHECK_THAT(refusal(one("\"U8\"", "[99999999999999999999999]", "[0,1]", "x")),
             Catch::Contains("whole number"));
  CHECK_THAT(refusal(one("\"F32\"", "[2]", "[0,4]", "1234")),
             Catch::Contains("(2) of F32 takes 8 bytes") && Catch::Contains("hold 4"));
  CHECK_THAT(refusal(one("\"F4\"", "[3]", "[0,2]", "12")), Catch::Contains("whole bytes"));
}

TEST_CASE("offsets that run backwards, past the end, overlap or leave a hole are refused") {
  CHECK_THAT(refusal(one("\"U8\"", "[1]", "[2,1]", "123")), Catch::Contains("begin 2 is after"));
  CHECK_THAT(refusal(one("\"U8\"", "[9]", "[0,9]", "123")), Catch::Contains("past the 3"));
  CHECK_THAT(refusal(one("\"U8\"", "[1]", "[18446744073709551615,18446744073709551615]", "x")),
             Catch::Contains("past the 1"));
  CHECK_THAT(refusal(one("\"U8\"", "[2]", "[1,3]", "123")), Catch::Contains("belong to no tensor"));
  CHECK_THAT(refusal(one("\"U8\"", "[2]", "[0,2]", "123")),
             Catch::Contains("end at data byte 2, but the file has 3"));
  const std::string a = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},";
  CHECK_THAT(refusal(raw_safetensors(
                 a + "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", "123456")),
             Catch::Contains("tensor b: begins at data byte 2, inside tensor a"));
  CHECK_THAT(refusal(raw_safetensors(
                 a + "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "1234")),
             Catch::Contains("inside tensor"));
  CHECK_THAT(refusal(raw_safetensors(
                 a + "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[5,6]}}", "123456")),
             Catch::Contains("bytes from 4 on belong to no tensor"));
}

TEST_CASE("tensors need not be aligned") {
  const std::string file =
      build_safetensors({{"a", "U8", "[3]", "xyz"}, {"b", "F32", "[1]", f32_bytes({2.5F})}});
  const auto entries = parse_safetensors(as_bytes(file), "x");
  float value = 0;
  std::memcpy(&value, entries[1].bytes.data(), 4);
  CHECK(value == 2.5F);
}

}  // namespace
}  // namespace tgi
