// Plans of batches whose shapes change, and the build that each belongs to.
#include <gtest/gtest.h>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::testModels;

// Batches whose first axis changes from step to step, cut from those of the model.
class ChangingBatches final : public DataSource {
 public:
  ChangingBatches(Batch whole, std::vector<std::string> cut) : whole_(std::move(whole)), cut_(std::move(cut)) {}
  std::int64_t entries() const override { return 2; }
  Result<Batch> batch(std::int64_t step) override {
    Batch batch = whole_;
    if (step % 2 == 0) return batch;
    for (const std::string& name : cut_) {
      Tensor& tensor = batch.arrays.at(name);
      Dims dims = tensor.dims();
      dims[0] = 1;
      tensor = Tensor(tensor.dtype(), std::move(dims), std::make_shared<Tensor>(tensor), tensor.data());
    }
    return batch;
  }

 private:
  Batch whole_;
  std::vector<std::string> cut_;
};

TEST(SessionVariants, TheBuildOfThePlanThatRunsIsKnownWhenAnEarlierOneRunsAgain) {
  auto session = openSession(testModels().front());
  ASSERT_TRUE(session);
  TrainOptions options = session->options();
  auto source = openData(session->imported(), options, session->registry().operators(), nullptr);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  auto batch = (*source)->batch(0);
  ASSERT_TRUE(batch.has_value());
  std::vector<std::string> cut;
  for (const auto& [name, tensor] : batch->arrays)
    if (!tensor.dims().empty()) cut.push_back(name);
  session->feedFrom(std::make_unique<ChangingBatches>(std::move(*batch), cut));
  std::vector<std::size_t> builds;
  std::vector<std::string> signatures, planned, graphs;
  for (int step = 0; step < 4; ++step) {
    const auto record = session->step();
    ASSERT_TRUE(record.has_value()) << record.error().message;
    builds.push_back(session->plans().build());
    signatures.push_back(session->plans().signature());
    planned.push_back(session->planSnapshot()->signature());
    graphs.push_back(session->graphSnapshot("")->SerializeAsString());
  }
  EXPECT_EQ(builds, (std::vector<std::size_t>{0, 1, 0, 1}));
  EXPECT_EQ(session->log().builds(), 2u) << "nothing is built twice";
  EXPECT_EQ(signatures, planned);
  EXPECT_NE(signatures[0], signatures[1]);
  EXPECT_NE(graphs[0], graphs[1]);
  EXPECT_EQ(graphs[2] == graphs[0] && graphs[3] == graphs[1], true) << "the graph shown is that of the plan that runs";
}

// Whoever listens has every graph before the pass that a build may die of, whichever build it is.
TEST(SessionVariants, ABuildTellsOfTheGraphsThatItBeginsFrom) {
  std::vector<std::string> told;
  Observer observer;
  observer.stage = [&told](const Stage& stage) {
    EXPECT_TRUE(stage.graph);
    told.push_back(stage.phase);
  };
  auto session = openSession(testModels().front(), {}, observer);
  ASSERT_TRUE(session);
  const std::vector<std::string> opened{"load", "inline", "infer"}, built(told.begin() + 3, told.end());
  ASSERT_GT(built.size(), 4u);
  EXPECT_EQ(std::vector<std::string>(told.begin(), told.begin() + 3), opened);
  EXPECT_EQ(std::vector<std::string>(built.begin(), built.begin() + 3), opened) << "the first build begins from the file";

  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "memory.inplace", "off", "test"));
  ASSERT_TRUE(session->setOptions(options));
  told.clear();
  ASSERT_TRUE(session->applyOptions());
  EXPECT_EQ(told, built) << "between steps";

  ASSERT_TRUE(session->beginStep());
  ASSERT_TRUE(session->stepInstructions(3).has_value());
  ASSERT_TRUE(applySetting(options, "memory.inplace", "on", "test"));
  ASSERT_TRUE(session->setOptions(options));
  told.clear();
  ASSERT_TRUE(session->applyOptions());
  EXPECT_EQ(told, built) << "in the middle of a step";
}

TEST(SessionVariants, APlanForOtherShapesTellsOfTheGraphsOfTheStep) {
  std::vector<std::string> told;
  Observer observer;
  observer.stage = [&told](const Stage& stage) { told.push_back(stage.phase); };
  auto session = openSession(testModels().front(), {}, observer);
  ASSERT_TRUE(session);
  const std::vector<std::string> built(told.begin() + 3, told.end());
  auto source = openData(session->imported(), session->options(), session->registry().operators(), nullptr);
  ASSERT_TRUE(source.has_value()) << source.error().message;
  auto batch = (*source)->batch(0);
  ASSERT_TRUE(batch.has_value());
  std::vector<std::string> cut;
  for (const auto& [name, tensor] : batch->arrays)
    if (!tensor.dims().empty()) cut.push_back(name);
  session->feedFrom(std::make_unique<ChangingBatches>(std::move(*batch), cut));
  ASSERT_TRUE(session->step().has_value());
  told.clear();
  const auto record = session->step();
  ASSERT_TRUE(record.has_value()) << record.error().message;
  EXPECT_EQ(told, built);
}

}  // namespace
}  // namespace stepscope
