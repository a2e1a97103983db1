// What the kernels of a GPU leave to the CPU: of no model of the corpus a node, in float32 and in mixed precision. A copy to
// the host and back costs a GPU more than most kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::TestModel;

std::vector<TestModel> corpus() {
  std::vector<TestModel> models = testing::corpusCases(
      {"activations", "bert_mlm", "branching", "conv1d_lora", "convnext_dynamo", "gelu_forms", "gpt2_dropout", "gpt2_dynamo",
       "gpt2_lm", "indexing", "llama_lm", "mlp", "mlp_accumulate", "mlp_functions", "qwen_dynamo", "resnet", "resnet_frozen",
       "roberta_classifier", "vit_classifier"});
  return models;
}

class CorpusModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(CorpusModel, LeavesNothingToTheCpu) {
  for (const char* precision : {"fp32", "bf16"}) {
    auto session =
        openSession(GetParam(), {{"device", "emulated:checks=bounds"}, {"precision", precision}, {"clip-grad-norm", "1"}});
    ASSERT_TRUE(session);
    std::map<std::string, int> found;
    const auto plan = session->planSnapshot();
    for (const auto& i : plan->instructions())
      if (!i.on_host().empty() && i.kind() == snapshot::KIND_KERNEL && !i.view()) ++found[i.op()];
    for (const auto& [op, count] : found) ADD_FAILURE() << precision << ": " << count << " " << op << " on the CPU";
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CorpusModel);
INSTANTIATE_TEST_SUITE_P(Models, CorpusModel, ::testing::ValuesIn(corpus()),
                         [](const auto& info) { return info.param.name; });

// A node that a device is told to lack is counted, so an empty list above means something.
TEST(Fallbacks, AreSeenInThePlan) {
  auto session = openSession(testing::digits(), {{"device", "emulated:lacks=Product,lacks=Gemm,lacks=MatMul"}});
  ASSERT_TRUE(session);
  int found = 0;
  const auto plan = session->planSnapshot();
  for (const auto& i : plan->instructions()) found += i.on_host().empty() || i.view() ? 0 : 1;
  EXPECT_GT(found, 0);
  std::string said;
  for (const snapshot::Alert& alert : session->alerts())
    if (alert.code() == "cpu_fallbacks") said = alert.message();
  EXPECT_TRUE(said.starts_with(std::to_string(found) + " node")) << said;
  EXPECT_NE(said.find("Gemm (device 'emulated:lacks=Product,lacks=Gemm,lacks=MatMul' has no kernel for it)"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("copies move"), std::string::npos) << said;
  EXPECT_EQ(said.find(" 0 bytes"), std::string::npos) << said;
}

TEST(Fallbacks, NothingIsSaidWhereNothingIsLeft) {
  for (const char* device : {"emulated", "cpu"}) {
    auto session = openSession(testing::digits(), {{"device", device}});
    ASSERT_TRUE(session);
    for (const snapshot::Alert& alert : session->alerts()) EXPECT_NE(alert.code(), "cpu_fallbacks") << alert.message();
  }
}

}  // namespace
}  // namespace stepscope
