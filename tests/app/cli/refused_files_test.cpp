// Files that parse and cannot be run: the message names the thing, what was found and what is expected.
#include <gtest/gtest.h>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// The input of smallModel() under another name.
std::string withInput(const std::string& name) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  for (auto& input : *graph.mutable_input())
    if (input.name() == "x") input.set_name(name);
  for (auto& node : *graph.mutable_node())
    for (auto& input : *node.mutable_input())
      if (input == "x") input = name;
  return model.SerializeAsString();
}

TEST(RefusedFiles, AnInputThatTheStepFeedsItselfIsNamed) {
  const TemporaryFolder folder;
  for (const char* name : {"stepscope.update", "stepscope.learning_rate.0"}) {
    folder.write("m.onnx", withInput(name));
    for (const char* command : {"run ", "build "}) {
      const Answer answer = run(command + (folder.path() / "m.onnx").string(), folder.path());
      EXPECT_EQ(answer.exitCode, 1) << answer.text;
      EXPECT_NE(answer.text.find("input '" + std::string(name) + "': a training step feeds inputs of this name itself"),
                std::string::npos)
          << answer.text;
    }
  }
}

TEST(RefusedFiles, OtherNamesOfTheDomainAreFedLikeAnyInput) {
  const TemporaryFolder folder;
  folder.write("m.onnx", withInput("stepscope.x"));
  const Answer own = run("run --json " + (folder.path() / "m.onnx").string(), folder.path());
  EXPECT_EQ(own.exitCode, 0) << own.text;
  EXPECT_EQ(own.text.find("\"max\":0.0,"), std::string::npos) << "fed zeros: " << own.text;
  EXPECT_NE(own.text.find("\"event\":\"output\""), std::string::npos) << own.text;
}

TEST(RefusedFiles, ACastToATypeOfEightBitsIsNamed) {
  const TemporaryFolder folder;
  auto model = smallModel();
  auto* cast = addNode(*model.mutable_graph(), "Cast", {"x"}, {"small"}, "to_small");
  auto* to = cast->add_attribute();
  to->set_name("to");
  to->set_type(onnx::AttributeProto::INT);
  to->set_i(17);
  addOutput(*model.mutable_graph(), "small");
  folder.write("m.onnx", model.SerializeAsString());
  const Answer answer = run("run " + (folder.path() / "m.onnx").string(), folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  for (const char* part : {"Cast 'to_small'", "17 (float8e4m3fn)", "expected float32, float64"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << " is not in:\n" << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
