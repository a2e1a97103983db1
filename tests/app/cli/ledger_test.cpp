// `stepscope ledger` as a user runs it: the tables, the events, what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kLedger =
    "ledger " SS_SAMPLES "/language_model/model.onnx --data " SS_SAMPLES "/language_model/batches.npz --steps 3 ";

TEST(LedgerCommand, SaysWhereTheStepWent) {
  const TemporaryFolder folder;
  for (const char* column : {"phase", "op"}) {
    const Answer answer = run(kLedger + "--by " + column, folder.path());
    ASSERT_EQ(answer.exitCode, 0) << answer.text;
    for (const char* part : {"flops: useful", "bytes: payload", "time: kernels", "time: waiting", "roof", column})
      EXPECT_NE(answer.text.find(part), std::string::npos) << part << "\n" << answer.text;
  }
}

TEST(LedgerCommand, TheEventsOfInstructionsSumToThatOfTheStep) {
  const TemporaryFolder folder;
  const Answer answer = run(kLedger + "--json", folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  std::map<std::string, std::int64_t> sums;
  nlohmann::json total;
  std::istringstream lines(answer.text);
  for (std::string text; std::getline(lines, text);) {
    if (!text.starts_with("{")) continue;
    const auto event = nlohmann::json::parse(text);
    if (event["event"] == "ledger") total = event;
    if (event["event"] != "ledger_line") continue;
    for (const auto& [key, value] : event.items())
      if (key.starts_with("flops_") || key.starts_with("bytes_") || key.starts_with("ns_"))
        sums[key] += value.get<std::int64_t>();
  }
  ASSERT_TRUE(total.is_object()) << answer.text;
  ASSERT_EQ(sums.size(), 11u);
  for (const auto& [key, sum] : sums) EXPECT_EQ(total[key].get<std::int64_t>(), sum) << key;
  EXPECT_EQ(sums["ns_kernel"] + sums["ns_gap"] + sums["ns_waiting"], total["ns"].get<std::int64_t>());
  EXPECT_GT(total["roof_ns"].get<double>(), 0);
}

TEST(LedgerCommand, AnUnknownColumnIsWrongUsage) {
  const TemporaryFolder folder;
  const Answer answer = run(kLedger + "--by colour", folder.path());
  EXPECT_EQ(answer.exitCode, 2);
  EXPECT_NE(answer.text.find("option 'by': found 'colour'; expected phase, module, op or source"), std::string::npos)
      << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
