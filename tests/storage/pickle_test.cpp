#include "storage/pytorch/pickle.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace stepscope::storage {
namespace {

using namespace std::string_literals;

TEST(Pickle, ReadsWhatPythonWrites) {
  // pickle.dumps({"a": [1, -2, 300, 70000, 2**40, -(2**40), 2**63], "b": (1.5, None, True), 7: "x"}, protocol=4)
  const std::string bytes =
      "\x80\x04\x95\x4a\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
      "a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff"
      "\x8a\t\x00\x00\x00\x00\x00\x00\x00\x80\x00"
      "e\x8c\x01"
      "b\x94G?\xf8\x00\x00\x00\x00\x00\x00N\x88\x87\x94K\x07\x8c\x01x\x94u."s;
  const auto json = parsePickle(bytes, "p");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->dump(),
            R"({"7":"x","a":[1,-2,300,70000,1099511627776,-1099511627776,9223372036854775808],"b":[1.5,null,true]})");
}

TEST(Pickle, ReadsWhatIsReferredToTwice) {
  // frame = {"line": 3}; pickle.dumps([frame, frame], protocol=2)
  const auto json = parsePickle(
      "\x80\x02]q\x00(}q\x01X\x04\x00\x00\x00lineq\x02K\x03sh\x01"
      "e."s,
      "p");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->dump(), R"([{"line":3},{"line":3}])");
}

TEST(Pickle, NeverCallsAFunction) {
  // os.system("true"), as pickle.dumps of an object with __reduce__ writes it
  const auto json = parsePickle("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."s, "evil");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().code, ErrorCode::kForeign);
  EXPECT_NE(json.error().message.find("evil"), std::string::npos);
  EXPECT_NE(json.error().message.find("object or function"), std::string::npos) << json.error().message;
}

TEST(Pickle, WhatIsCutOffOrWrongIsAnError) {
  for (const std::string& bytes :
       {""s, "x"s, "\x80"s, "\x80\x04"s, "\x80\x09."s, "\x80\x04."s, "\x80\x04K"s, "\x80\x04h\x05."s, "\x80\x04K\x01K\x02."s,
        "\x80\x04t."s, "\x80\x04K\x01K\x01"s + "a."s, "\x80\x04X\xff\xff\xff\xff."s,
        "\x80\x04\x8a\x0a"s + std::string(10, '\1') + "."s, "\x80\x04\xff."s, "\x80\x04}K\x01s."s, "\x80\x04]"s + "u."s})
    EXPECT_FALSE(parsePickle(bytes, "p")) << ::testing::PrintToString(bytes);
}

TEST(Pickle, NestingAndSharingAreBounded) {
  std::string deep = "\x80\x04)"s, cycle = "\x80\x04]\x94h\x00"s + "a."s, wide = "\x80\x04)\x94"s;
  for (int i = 0; i < 1'000'000; ++i) deep += '\x85';
  EXPECT_EQ(parsePickle(deep + ".", "deep").error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(parsePickle(cycle, "cycle", 10'000).error().code, ErrorCode::kLimitExceeded);
  for (int i = 0; i < 60; ++i) wide += "2\x86"s;  // each holds the one before twice
  EXPECT_EQ(parsePickle(wide + ".", "wide", 10'000).error().code, ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace stepscope::storage
