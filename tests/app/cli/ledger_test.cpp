// `stepscope ledger` as a user runs it: the tables, the events, what it refuses.
#include <gtest/gtest.h>

#include <fstream>
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

TEST(LedgerCommand, StandsInAProjectForSqlAndReports) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string(), html = (folder.path() / "r.html").string();
  const Answer answer = run(kLedger + "--json --project " + project, folder.path());
  ASSERT_EQ(answer.exitCode, 0) << answer.text;
  nlohmann::json total;
  std::istringstream lines(answer.text);
  for (std::string text; std::getline(lines, text);)
    if (text.starts_with("{"))
      if (const auto event = nlohmann::json::parse(text); event["event"] == "ledger") total = event;
  const Answer sum = run("sql " + project +
                             " \"SELECT 'ns' || sum(ns_kernel + ns_gap + ns_waiting), 'flops' || sum(flops_useful + "
                             "flops_padding + flops_ignored + flops_recomputed) FROM ledger\"",
                         folder.path());
  ASSERT_EQ(sum.exitCode, 0) << sum.text;
  std::int64_t flops = 0;
  for (const char* part : {"flops_useful", "flops_padding", "flops_ignored", "flops_recomputed"})
    flops += total[part].get<std::int64_t>();
  EXPECT_GT(flops, 0);
  for (const std::string& wanted : {"ns" + std::to_string(total["ns"].get<std::int64_t>()), "flops" + std::to_string(flops)})
    EXPECT_NE(sum.text.find(wanted), std::string::npos) << sum.text << "\n" << wanted;
  // A row belongs to the instruction that the plan of the run has there.
  const Answer joined = run("sql " + project +
                                " \"SELECT 'all ' || (count(*) = (SELECT count(*) FROM ledger WHERE instruction >= 0)) FROM "
                                "ledger l JOIN instructions i ON i.position = l.instruction AND i.op = l.op\"",
                            folder.path());
  EXPECT_NE(joined.text.find("all 1"), std::string::npos) << joined.text;
  const Answer report = run("report " + project + " -o " + html, folder.path());
  ASSERT_EQ(report.exitCode, 0) << report.text;
  std::ifstream file(html);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("id=\"ledger\""), std::string::npos);
}

TEST(LedgerCommand, NoStepsAreNoLedger) {
  const TemporaryFolder folder;
  const Answer answer = run(kLedger + "--steps 0", folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("option 'steps': found 0; expected 1 or more"), std::string::npos) << answer.text;
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
