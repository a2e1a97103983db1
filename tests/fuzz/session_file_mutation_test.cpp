// Damaged files that a session reads: batches (.npz and what lies in it), states to resume from, weights beside a model.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/onnx/writer.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/fuzz/damages.h"
#include "tests/support/sessions.h"

namespace stepscope::testing {
namespace {

struct Outcome {
  int fine = 0, refused = 0;
  void add(const Status& status) {
    if (!status) EXPECT_FALSE(status.error().message.empty());
    ++(status ? fine : refused);
  }
};

TEST(Mutation, BatchesNeverCrash) {
  const TemporaryFolder folder;
  const std::string whole = slurp(digits().data);
  Outcome outcome;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto data = folder.write("b.npz", damaged(whole, seed));
    auto session = Session::open(digits().model, {}, {});
    ASSERT_TRUE(session.has_value());
    TrainOptions options;
    ASSERT_TRUE(applySetting(options, "data", data.string(), "test").has_value());
    ASSERT_TRUE(applySetting(options, "threads", "1", "test").has_value());
    ASSERT_TRUE((*session)->setOptions(options).has_value());
    Status status = (*session)->build();
    for (int i = 0; status && i < 3; ++i)
      if (auto stepped = (*session)->step(); !stepped) status = tl::make_unexpected(stepped.error());
    outcome.add(status);
  }
  EXPECT_GT(outcome.refused, 20);
  EXPECT_GT(outcome.fine, 0);
}

TEST(Mutation, StatesNeverCrash) {
  const TemporaryFolder folder;
  const auto session = openSession(digits(), {{"threads", "1"}});
  ASSERT_TRUE(session && session->step());
  const auto path = folder.path() / "state.safetensors";
  ASSERT_TRUE(session->trained().save(path).has_value());
  const std::string whole = slurp(path);
  Outcome outcome;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const std::string before = stateBits(*session);
    const Status loaded = session->trained().load(folder.write("s.safetensors", damaged(whole, seed)), seed % 2 == 0);
    outcome.add(loaded);
    if (!loaded) EXPECT_EQ(stateBits(*session), before) << "seed " << seed << ": half of a refused state was taken over";
  }
  EXPECT_GT(outcome.refused, 100);
  EXPECT_TRUE(session->trained().load(path, true).has_value());
  EXPECT_TRUE(session->step().has_value());
}

TEST(Mutation, WeightsBesideAModelNeverCrash) {
  const TemporaryFolder folder;
  onnx::ModelProto model = smallModel();
  auto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_float_data();
  weight.clear_raw_data();
  std::string bytes(9 * 4, '\x3f');
  setExternal(weight, "w.bin", "0", "36");
  Outcome outcome;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    folder.write("w.bin", damaged(bytes, seed));
    const auto path =
        folder.write("m.onnx", seed % 2 == 0 ? model.SerializeAsString() : damaged(model.SerializeAsString(), seed));
    const auto session = Session::open(path, {}, {});
    outcome.add(session ? Status() : tl::make_unexpected(session.error()));
  }
  EXPECT_GT(outcome.refused, 50);
  EXPECT_GT(outcome.fine, 0);
}

}  // namespace
}  // namespace stepscope::testing
