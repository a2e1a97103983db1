// What a build leaves behind: the graph of every phase, kept as its difference to the one after it, and the verdicts on its
// nodes.
#include <gtest/gtest.h>

#include "storage/blob.h"
#include "storage/queries.h"
#include "storage/recorder.h"
#include "storage/sqlite.h"
#include "storage/verdicts.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

// Graphs of one build: each has more blocks than the one before.
std::vector<snapshot::Graph> sampleStages() {
  std::vector<snapshot::Graph> stages;
  for (int blocks = 1; blocks <= 4; ++blocks) {
    stages.push_back(testing::sampleGraph({blocks, 0}));
    stages.back().set_phase("phase " + std::to_string(blocks));
  }
  return stages;
}

void recordStages(Recorder& recorder, const std::vector<snapshot::Graph>& stages) {
  const int count = static_cast<int>(stages.size());
  recorder.graph(stages.back(), count);
  recorder.plan(testing::samplePlan({4, 0}));
  for (int i = count - 2; i >= 0; --i) recorder.stageGraph(stages[static_cast<std::size_t>(i)], i);
}

std::unique_ptr<Recorder> record(const std::filesystem::path& file) {
  auto recorder = Recorder::start(Project::create(file).value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  return recorder;
}

TEST(GraphChain, EveryPhaseComesBackAsItWas) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  const auto stages = sampleStages();
  auto recorder = record(file);
  recordStages(*recorder, stages);
  recorder->step(testing::sampleStep(testing::samplePlan({4, 0}), 0));
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(file).value();
  const auto rows = listGraphs(project, 1).value();
  ASSERT_EQ(rows.size(), stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(rows[i].phase, stages[i].phase()) << "in the order of the build";
    const auto graph = readGraph(project, 1, stages[i].phase());
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(graph->SerializeAsString(), stages[i].SerializeAsString());
  }
  EXPECT_EQ(readGraph(project, 1)->phase(), stages.back().phase()) << "the newest is the last phase's";
  EXPECT_TRUE(readLost(project, 1)->empty());
}

TEST(GraphChain, EarlierPhasesCostLittleBesideTheLast) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  auto stages = sampleStages();
  stages.push_back(stages.back());  // a phase that changed nothing
  stages.back().set_phase("last");
  auto recorder = record(file);
  recordStages(*recorder, stages);
  ASSERT_TRUE(recorder->close());
  const Connection connection = Connection::open(file.string(), Connection::Mode::kRead).value();
  const auto size = [&](const std::string& phase) {
    return connection.integer("SELECT length(data) FROM graphs WHERE phase = '" + phase + "'").value();
  };
  EXPECT_LT(size("phase 4") * 20, size("last")) << "the same graph is kept once";
  EXPECT_LT((size("phase 1") + size("phase 2") + size("phase 3")) * 2, size("last"));
}

TEST(GraphChain, BuildsKeepApart) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  auto stages = sampleStages();
  auto recorder = record(file);
  recorder->phases(testing::samplePhases());
  recordStages(*recorder, stages);
  recorder->beginBuild();
  recorder->phases(testing::samplePhases());
  for (auto& stage : stages) stage.set_name("again");
  recorder->graph(stages.back(), static_cast<int>(stages.size()));
  recorder->stageGraph(stages[2], 2);  // and the others were never read
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(file).value();
  EXPECT_EQ(readGraph(project, 1, "phase 3")->name(), "again");
  EXPECT_EQ(readGraph(project, 1, "phase 2")->name(), "gpt_small");
  EXPECT_EQ(readGraph(project, 1)->name(), "again");
  const auto rows = listGraphs(project, 1).value();
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[3].build, 0);
  EXPECT_EQ(rows[4].build, 1);
}

TEST(GraphChain, GraphOutOfOrderIsALossAndNoNewestGraph) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  const auto stages = sampleStages();
  auto recorder = record(file);
  recordStages(*recorder, stages);
  recorder->stageGraph(stages[2], 2);
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(file).value();
  EXPECT_EQ(readGraph(project, 1)->phase(), "phase 4");
  ASSERT_EQ(readLost(project, 1)->size(), 1u);
  EXPECT_EQ(readLost(project, 1)->front().what, "graphs");
}

TEST(GraphChain, DamagedChainIsAnError) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  auto recorder = record(file);
  recordStages(*recorder, sampleStages());
  ASSERT_TRUE(recorder->close());
  for (const char* damage :
       {"UPDATE graphs SET base = id WHERE phase = 'phase 2'", "UPDATE graphs SET base = 1 WHERE phase = 'phase 2'",
        "UPDATE graphs SET base = 999 WHERE phase = 'phase 2'", "UPDATE graphs SET data = x'00' WHERE phase = 'phase 3'",
        "UPDATE graphs SET data = (SELECT data FROM graphs WHERE phase = 'phase 1') WHERE phase = 'phase 3'"}) {
    const auto copy = folder / "damaged.stepscope";
    std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
    ASSERT_TRUE(Connection::open(copy.string(), Connection::Mode::kWrite).value().execute(damage));
    const auto project = Project::openReadOnly(copy);
    ASSERT_TRUE(project) << project.error().message;
    const auto graph = readGraph(*project, 1, "phase 2");
    ASSERT_FALSE(graph) << damage;
    EXPECT_EQ(graph.error().code, ErrorCode::kCorrupt) << damage;
    EXPECT_TRUE(readGraph(*project, 1)) << "the newest stands alone";
  }
}

TEST(GraphChain, GraphZeroIsAnError) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  auto recorder = record(file);
  recorder->graph(sampleStages().back(), 1);
  ASSERT_TRUE(recorder->close());
  ASSERT_TRUE(Connection::open(file.string(), Connection::Mode::kWrite).value().execute("UPDATE graphs SET id = 0"));
  const auto graph = readGraph(Project::openReadOnly(file).value(), 1);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kCorrupt) << graph.error().message;
}

TEST(GraphChain, BlobAfterAnotherNeedsIt) {
  std::string before, bytes;
  for (int i = 0; i < 50'000; ++i) before += static_cast<char>(i * 2654435761u >> 13);
  bytes = before.substr(100, 40'000) + "and more";
  const std::string blob = compressAfter(before, bytes);
  EXPECT_LT(blob.size(), 200u);
  EXPECT_EQ(decompressAfter(before, blob).value(), bytes);
  EXPECT_FALSE(decompressAfter("", blob));
}

snapshot::Determinism verdict(int node, const char* text, const char* reason) {
  snapshot::Determinism d;
  d.set_node(node);
  d.set_verdict(text);
  d.set_reason(reason);
  return d;
}

TEST(Verdicts, ComeBackInTheOrderOfThePlan) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  const snapshot::Plan plan = testing::samplePlan({2, 0});
  std::vector<snapshot::Determinism> nodes;
  for (const auto& in : plan.instructions())
    nodes.push_back(in.index() % 3 == 0 ? verdict(in.node(), "depends on thread count", "onednn")
                                        : verdict(in.node(), "deterministic", "fixed order"));
  auto recorder = record(file);
  recorder->plan(plan);
  recorder->determinism({verdict(0, "unknown", "told too early")});
  recorder->determinism(nodes);
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(file).value();
  const auto read = readDeterminism(project, 1).value();
  ASSERT_EQ(read.size(), nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(read[i].SerializeAsString(), nodes[i].SerializeAsString());
  const Connection connection = Connection::open(file.string(), Connection::Mode::kRead).value();
  EXPECT_EQ(connection.integer("SELECT count(*) FROM determinism").value(), 2)
      << "a row for each verdict, not for each node";
  EXPECT_EQ(connection.integer("SELECT sum(node_count) FROM determinism").value(), static_cast<std::int64_t>(nodes.size()));
}

TEST(Verdicts, WhatIsNoListOfNodesGivesNone) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  auto recorder = record(file);
  recorder->plan(testing::samplePlan({1, 0}));
  recorder->determinism({verdict(1, "deterministic", "fixed order")});
  ASSERT_TRUE(recorder->close());
  for (const char* nodes : {"'[[[['", "'{}'", "'[\"a\", 1e99, null]'", "''"}) {
    ASSERT_TRUE(Connection::open(file.string(), Connection::Mode::kWrite)
                    .value()
                    .execute(std::string("UPDATE determinism SET nodes = ") + nodes));
    const auto read = readDeterminism(Project::openReadOnly(file).value(), 1);
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->empty()) << nodes;
  }
}

}  // namespace
}  // namespace stepscope::storage
