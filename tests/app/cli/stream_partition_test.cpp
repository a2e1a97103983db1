// `build --streams-out` and option streams.partition: which stream nodes run on is written, changed and taken, and no number
// changes by it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kModel = SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz --threads 1 ";
const std::string kDevice = "--device emulated --set cuda.streams=3 ";

class StreamPartitions : public ::testing::Test {
 protected:
  Answer go(const std::string& arguments) const { return run(arguments, folder_.path()); }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  const TemporaryFolder folder_;
};

TEST_F(StreamPartitions, AreWrittenChangedAndTakenWithTheSameBits) {
  const Answer written = go("build " + kModel + kDevice + "--streams-out " + path("plan.json"));
  ASSERT_EQ(written.exitCode, 0) << written.text;
  auto json = nlohmann::json::parse(contents(path("plan.json")));
  EXPECT_EQ(json["streams"], 3);
  ASSERT_GT(json["nodes"].size(), 10U);
  int turn = 0;
  for (auto& [key, stream] : json["nodes"].items()) stream = turn++ % 3;
  std::ofstream(path("mine.json")) << json.dump();
  const std::string mine = "--set streams.partition=" + path("mine.json") + " ";
  const Answer again = go("build " + kModel + kDevice + mine + "--streams-out " + path("again.json"));
  ASSERT_EQ(again.exitCode, 0) << again.text;
  EXPECT_EQ(nlohmann::json::parse(contents(path("again.json"))), json);
  const std::string train = "train " + kModel + kDevice + "--lr 0.05 --steps 2 ";
  const Answer plain = go(train + "--dump-params " + path("plain"));
  ASSERT_EQ(plain.exitCode, 0) << plain.text;
  const Answer moved = go(train + mine + "--dump-params " + path("moved"));
  ASSERT_EQ(moved.exitCode, 0) << moved.text;
  EXPECT_EQ(contents(path("plain")), contents(path("moved")));
}

TEST_F(StreamPartitions, AreTriedNextToTheAutomaticPlan) {
  ASSERT_EQ(go("build " + kModel + kDevice + "--streams-out " + path("plan.json")).exitCode, 0);
  const Answer tried = go("trials " + kModel + kDevice + "--lr 0.05 --set streams.partition=" + path("plan.json") +
                          " --only streams.partition= --rounds 6");
  EXPECT_EQ(tried.exitCode, 0) << tried.text;
  EXPECT_NE(tried.text.find("streams.partition"), std::string::npos) << tried.text;
}

TEST_F(StreamPartitions, ThatAreWrongAreRefused) {
  const auto refused = [&](const std::string& text, const std::string& more = "") {
    std::ofstream(path("wrong.json")) << text;
    const Answer answer = go("build " + kModel + kDevice + "--set streams.partition=" + path("wrong.json") + more);
    EXPECT_NE(answer.exitCode, 0) << answer.text;
    return answer.text;
  };
  EXPECT_NE(refused("{").find("found no JSON; expected an object"), std::string::npos);
  EXPECT_NE(refused(R"({"streams": 2, "nodes": {"a": 2}})").find("node 'a': found 2; expected a whole number from 0 to 1"),
            std::string::npos);
  const std::string many = refused(R"({"streams": 4, "nodes": {}})");
  EXPECT_NE(many.find("made for 4 streams; expected at most 3, the option cuda.streams"), std::string::npos) << many;
  const Answer missing = go("build " + kModel + kDevice + "--set streams.partition=/nowhere.json");
  EXPECT_NE(missing.text.find("streams '/nowhere.json': no such file; expected JSON"), std::string::npos) << missing.text;
  const Answer place = go("build " + kModel + kDevice + "--streams-out /nowhere/x.json");
  EXPECT_NE(place.exitCode, 0) << place.text;
  // A key that no node has does nothing.
  std::ofstream(path("other.json")) << R"({"streams": 2, "nodes": {"nothing is called so": 1}})";
  EXPECT_EQ(go("build " + kModel + kDevice + "--set streams.partition=" + path("other.json")).exitCode, 0);
}

}  // namespace
}  // namespace stepscope::testing
