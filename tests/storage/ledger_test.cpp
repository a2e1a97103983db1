// A ledger comes back from the file as it was measured, and stands in the report.
#include "storage/ledger.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/recorder.h"
#include "storage/report/report.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

LedgerRecord made(std::int64_t step) {
  LedgerRecord ledger;
  ledger.step = step;
  ledger.signature = "x float32[4, 8]";
  ledger.lines.push_back({7, "forward", "h.0.mlp", "MatMul", "MatMul 'h.0/mlp'", "model.py:12", 900, 50, 30, 20, 800, 70, 60,
                          5, 4000000, 300, 200, 2.5e6});
  ledger.lines.push_back({-1, "", "", "", "", "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5000, 0});
  ledger.advice.push_back({"padding", "tokens that count alone", "pass.eliminate_padding", "on", 1.5e6,
                           "stepscope trials m.onnx --only '^pass.eliminate_padding'"});
  ledger.steps = 5;
  ledger.threads = 2;
  ledger.processor = {12'000'000, 8'000'000, 10'000'000};
  ledger.roofWaiting = 0.7;
  return ledger;
}

std::vector<std::int64_t> numbers(const LedgerRow& row) {
  return {row.instruction, row.flopsUseful, row.flopsPadding, row.flopsIgnored, row.flopsRecomputed, row.bytesPayload,
          row.bytesCast,   row.bytesLayout, row.bytesCopy,    row.nsKernel,     row.nsGap,           row.nsWaiting};
}

std::string textOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Ledgers : ::testing::Test {
  TemporaryFolder folder;
  std::filesystem::path file = folder / "p.stepscope";
  Ledgers() {
    auto recorder = Recorder::start(Project::create(file).value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    recorder->ledger(made(3));
    recorder->ledger(made(4));
    recorder->endRun(RunStatus::kFinished);
    recorder->beginRun(testing::sampleRunInfo());
    recorder->endRun(RunStatus::kFinished);
    EXPECT_TRUE(recorder->close());
  }
};

TEST_F(Ledgers, TheNewestComesBackAsItWas) {
  const Project project = Project::openReadOnly(file).value();
  const auto found = readLedger(project, 1);
  ASSERT_TRUE(found) << found.error().message;
  const LedgerRecord wanted = made(4);
  EXPECT_EQ(found->step, 4);
  EXPECT_EQ(found->signature, wanted.signature);
  ASSERT_EQ(found->lines.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(numbers(found->lines[i]), numbers(wanted.lines[i]));
    EXPECT_EQ(found->lines[i].module, wanted.lines[i].module);
    EXPECT_EQ(found->lines[i].source, wanted.lines[i].source);
    EXPECT_EQ(found->lines[i].roofNs, wanted.lines[i].roofNs);
  }
  ASSERT_EQ(found->advice.size(), 1u);
  EXPECT_EQ(found->advice[0].trial, wanted.advice[0].trial);
  EXPECT_EQ(found->total().ns(), 4005500);
  EXPECT_EQ(found->steps, 5);
  EXPECT_EQ(found->threads, 2);
  EXPECT_EQ(found->processor.cpu, 12'000'000);
  EXPECT_EQ(found->processor.wait, 8'000'000);
  EXPECT_EQ(found->processor.wall, 10'000'000);
  EXPECT_EQ(found->roofWaiting, 0.7);
  // Two threads lost 8 of 20 ms: two fifths of a step, which are in its kernels.
  EXPECT_EQ(found->withoutCore(), 4005500 * 2 / 5);
  EXPECT_TRUE(readLedger(project, 2)->lines.empty()) << "of another run";
}

TEST_F(Ledgers, StandInTheReport) {
  const Project project = Project::openReadOnly(file).value();
  ASSERT_TRUE(writeReport(project, 1, folder / "r.html"));
  ASSERT_TRUE(writeReport(project, 1, folder / "r.json"));
  const std::string html = textOf(folder / "r.html"), json = textOf(folder / "r.json");
  for (const char* part : {"id=\"ledger\"", "h.0.mlp", "pass.eliminate_padding=on", "to confirm it", "of padded tokens"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* part : {"\"flops_padding\": 50", "\"ns_waiting\": 5000", "\"option\": \"pass.eliminate_padding\""})
    EXPECT_NE(json.find(part), std::string::npos) << part;
  for (const char* part : {"its threads without a core", "The machine was busy: 40 %", "The roofs were measured on a busy"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* part : {"\"ns_without_core\": 1602200", "\"busy\": true", "\"roof_waiting\": 0.7"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
  ASSERT_TRUE(writeReport(project, 2, folder / "none.html"));
  EXPECT_EQ(textOf(folder / "none.html").find("id=\"ledger\""), std::string::npos);
}

}  // namespace
}  // namespace stepscope::storage
