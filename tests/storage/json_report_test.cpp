// The report for programs: types of its members.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "storage/report/report.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using Json = nlohmann::json;

TEST(JsonReport, HasNumbersAsNumbersAndSaysWhatIsLeftOut) {
  const testing::TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "numbers.stepscope").value()).value();
  RunInfo info = testing::sampleRunInfo();
  info.model.mutable_inputs(0)->add_dims("128");
  for (const auto& [name, value, usual] : {std::tuple("threads", "3", "0"), std::tuple("lr", "0.25", "0.001"),
                                           std::tuple("memory.limit", "9007199254740993", "0"), std::tuple("train", "7", ""),
                                           std::tuple("record.batch", "16", "auto")}) {
    snapshot::Option& option = info.options.emplace_back();
    option.set_name(name);
    option.set_value(value);
    option.set_default_value(usual);
  }
  recorder->beginRun(info);
  auto phases = testing::samplePhases();
  for (auto& phase : phases)
    if (phase.has_pass()) {
      for (int i = 0; i < 1200; ++i) phase.mutable_pass()->add_near_misses()->set_condition("rank 3; expected 2");
      break;
    }
  recorder->phases(phases);
  const auto plan = testing::samplePlan({1, 0});
  recorder->plan(plan);
  for (int i = 0; i < 3; ++i) recorder->step(testing::sampleStep(plan, i));
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(folder / "numbers.stepscope").value();
  const auto make = [&](const char* name) {
    EXPECT_TRUE(writeReport(project, 0, folder / name));
    std::ifstream in(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const Json json = Json::parse(make("r.json"));
  EXPECT_EQ(json["model"]["inputs"][0]["dims"], Json({"batch", "sequence", 128}));
  std::map<std::string, Json> values;
  for (const Json& option : json["options"]) values[option["name"]] = option["value"];
  EXPECT_EQ(values["threads"], 3);
  EXPECT_EQ(values["lr"], 0.25);
  EXPECT_EQ(values["memory.limit"].get<std::int64_t>(), 9007199254740993) << "more than a double holds";
  EXPECT_EQ(values["train"], "7") << "a name";
  EXPECT_EQ(values["record.batch"], "16") << "may be no number";
  const auto cut = std::ranges::max_element(json["passes"], {},
                                            [](const Json& pass) { return pass["near_misses_in_all"].get<std::int64_t>(); });
  EXPECT_GE((*cut)["near_misses_in_all"].get<std::int64_t>(), 1200);
  EXPECT_EQ((*cut)["near_misses"].size(), 1000u);
  EXPECT_NE(make("r.html").find(", the first 1,000 of them"), std::string::npos);
  EXPECT_EQ(json["statistics_steps_left_out"], 0);
}

}  // namespace
}  // namespace stepscope::storage
