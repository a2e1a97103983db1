// The roofs in the project file: what is recorded, what is measured beside it, and what a report says of it.
#include "storage/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "storage/report/report.h"
#include "storage/sql.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

constexpr int kSteps = 9;
constexpr int kProduct = 1;  // position of the first MatMul of the sample

double cell(const Project& project, const std::string& sql) {
  const auto result = runSql(project, sql, {});
  EXPECT_TRUE(result) << result.error().message;
  if (!result || result->rows.empty()) return -1;
  if (const auto* real = std::get_if<double>(&result->rows[0][0])) return *real;
  const auto* whole = std::get_if<std::int64_t>(&result->rows[0][0]);
  return whole ? static_cast<double>(*whole) : -2;
}

std::string textCell(const Project& project, const std::string& sql) {
  return std::get<std::string>(runSql(project, sql, {})->rows[0][0]);
}

// The median of an instruction over the steps after the first, from the records themselves.
std::int64_t medianOf(const snapshot::Plan& plan, int position) {
  std::vector<std::int64_t> times;
  for (int step = 1; step < kSteps; ++step) {
    const auto record = testing::sampleStep(plan, step);
    times.push_back(record.spans(position).end_ns() - record.spans(position).begin_ns());
  }
  std::sort(times.begin(), times.end());
  return times[(times.size() + 1) / 2 - 1];
}

std::string readAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Roofline, IsATableOfTheProject) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {1, kSteps});
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const auto plan = testing::samplePlan({1, 0});
  const auto roofs =
      std::count_if(plan.instructions().begin(), plan.instructions().end(), [](const auto& i) { return i.has_roof(); });
  EXPECT_EQ(cell(project, "SELECT count(*) FROM roofline"), static_cast<double>(roofs));
  EXPECT_LT(roofs, plan.instructions_size()) << "the sample has views, which have no roof";
  EXPECT_EQ(cell(project, "SELECT count(*) FROM machine_peaks"), 3);
  EXPECT_EQ(cell(project, "SELECT per_second FROM machine_peaks WHERE name = 'compute'"), testing::kSampleOperations);
  EXPECT_EQ(cell(project, "SELECT capacity FROM machine_peaks WHERE name = 'core caches'"), 4.0 * 1024 * 1024);
  // 2 x 256 x 192 x 768 operations at 250 GF/s are 301.99 µs, 3 x 589,824 bytes at 100 GB/s 17.7 µs.
  const std::string row = " FROM roofline WHERE position = " + std::to_string(kProduct);
  EXPECT_NEAR(cell(project, "SELECT roof_ns" + row), 2.0 * 256 * 192 * 768 / 250, 1e-6);
  EXPECT_EQ(textCell(project, "SELECT bound_by" + row), "compute");
  EXPECT_EQ(cell(project, "SELECT bytes" + row), 3 * 589'824);
  EXPECT_EQ(cell(project, "SELECT core_cache_bytes" + row), 3 * 589'824);
  EXPECT_EQ(cell(project, "SELECT memory_bytes" + row), 0);
  EXPECT_NEAR(cell(project, "SELECT intensity" + row), 2.0 * 256 * 192 * 768 / (3 * 589'824), 1e-9);
  EXPECT_EQ(cell(project, "SELECT executions" + row), kSteps - 1) << "the first step of a plan is warm-up";
  EXPECT_EQ(cell(project, "SELECT median_ns" + row), static_cast<double>(medianOf(plan, kProduct)));
  EXPECT_NEAR(cell(project, "SELECT share" + row),
              2.0 * 256 * 192 * 768 / 250 / static_cast<double>(medianOf(plan, kProduct)), 1e-9);
}

TEST(Roofline, OfARunThatWasKilledIsMeasuredByItsReader) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  const auto plan = testing::samplePlan({1, 0});
  recorder->plan(plan);
  for (int step = 0; step < kSteps; ++step) recorder->step(testing::sampleStep(plan, step));
  ASSERT_TRUE(recorder->flush());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(cell(project, "SELECT count(*) FROM roofline WHERE executions > 0"), 0) << "the run has not ended";
  const auto timing = readTiming(project, 1).value();
  const auto roofline = readRoofline(project, timing).value();
  const auto row = std::find_if(roofline.rows.begin(), roofline.rows.end(),
                                [](const RooflineRow& r) { return r.instruction == kProduct; });
  ASSERT_NE(row, roofline.rows.end());
  const auto median = static_cast<double>(medianOf(plan, kProduct));
  EXPECT_NEAR(row->share.value(), row->roofNs / median, 1e-12);
  EXPECT_NEAR(row->aboveNs, median - row->roofNs, 1e-6);
}

TEST(Roofline, WithoutAPeakThereIsNoneAndTheReportSaysHow) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  auto plan = testing::samplePlan({1, 0});
  plan.clear_peak();
  for (auto& i : *plan.mutable_instructions()) i.clear_roof();
  recorder->plan(plan);
  for (int step = 0; step < 3; ++step) recorder->step(testing::sampleStep(plan, step));
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(cell(project, "SELECT count(*) FROM roofline"), 0);
  ASSERT_TRUE(writeReport(project, 0, folder / "r.html"));
  EXPECT_NE(readAll(folder / "r.html").find("--roofline on"), std::string::npos);
  ASSERT_TRUE(writeReport(project, 0, folder / "r.json"));
  EXPECT_TRUE(nlohmann::json::parse(readAll(folder / "r.json"))["roofline"]["peaks"].empty());
}

TEST(Roofline, ReportHasTheChartAndWhatIsFarthestFromItsRoof) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {1, kSteps});
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  ASSERT_TRUE(writeReport(project, 0, folder / "r.html"));
  const std::string page = readAll(folder / "r.html");
  const std::size_t begin = page.find("<section id=\"roofline\""), end = page.find("</section>", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string part = page.substr(begin, end - begin);
  EXPECT_NE(part.find("250 GFLOP/s"), std::string::npos);
  EXPECT_NE(part.find("core caches 100 GB/s"), std::string::npos) << "the line of the chart has a name";
  std::size_t dots = 0;
  for (std::size_t at = part.find("<circle"); at != std::string::npos; at = part.find("<circle", at + 1)) ++dots;
  EXPECT_EQ(dots, static_cast<std::size_t>(cell(project, "SELECT count(*) FROM roofline WHERE intensity > 0")));
  // The first row of the table is the instruction with the most time above its roof.
  const int worst =
      static_cast<int>(cell(project, "SELECT position FROM roofline ORDER BY median_ns - roof_ns DESC LIMIT 1"));
  const std::size_t table = part.find("Most time above their roof");
  ASSERT_NE(table, std::string::npos);
  EXPECT_EQ(part.find("<tr><td>" + std::to_string(worst) + "</td>", table), part.find("<tr><td>", table));

  ASSERT_TRUE(writeReport(project, 0, folder / "r.json"));
  const auto json = nlohmann::json::parse(readAll(folder / "r.json"))["roofline"];
  EXPECT_EQ(json["peaks"].size(), 3u);
  EXPECT_EQ(json["instructions"].size(), static_cast<std::size_t>(cell(project, "SELECT count(*) FROM roofline")));
  EXPECT_NEAR(json["instructions"][1]["share"].get<double>(), cell(project, "SELECT share FROM roofline WHERE position = 1"),
              1e-9);
}

}  // namespace
}  // namespace stepscope::storage
