// What goes wrong in mixed precision, as a user meets it: each is an error or a warning that names node and value.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/state/state_file.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/passes/small_step.h"

namespace stepscope::testing {
namespace {

const std::string kTwoSteps =
    "train " + std::string(SS_SAMPLES) + "/digits/model.onnx --data " + SS_SAMPLES + "/digits/batches.npz --steps 2 ";

// One after the other in the text.
void says(const Answer& answer, int exitCode, std::initializer_list<const char*> parts) {
  EXPECT_EQ(answer.exitCode, exitCode) << answer.text;
  std::size_t at = 0;
  for (const char* part : parts) {
    at = answer.text.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << answer.text;
  }
}

TEST(LowPrecisionFaults, AnUnknownPrecisionIsNamed) {
  const TemporaryFolder folder;
  says(run(kTwoSteps + "--precision fp8", folder.path()), 2,
       {"error: precision 'fp8': unknown; expected fp32, bf16 or fp16"});
  says(run(kTwoSteps + "--precision fp16 --set precision.force=MatMul:fp8", folder.path()), 2,
       {"error: option 'precision.force': found 'MatMul:fp8'; expected"});
}

TEST(LowPrecisionFaults, AnOverflowInTheFirstStepNamesGradientAndNode) {
  const TemporaryFolder folder;
  says(run(kTwoSteps + "--precision fp16 --set loss-scale.init=1e10", folder.path()), 0,
       {"warning: update skipped: 'head.weight_grad', made by ",
        " is not finite at loss scale 10000000000; it is 5000000000", "step      0", "skipped", "step      1"});
}

TEST(LowPrecisionFaults, AScaleThatLeavesNothingIsSaid) {
  const TemporaryFolder folder;
  for (const char* zero : {"--loss-scale 0", "--set loss-scale.init=0", "--loss-scale -1", "--loss-scale 1e-400"})
    says(run(kTwoSteps + "--precision fp16 " + zero, folder.path()), 2, {"error: option 'loss-scale", "': found '"});
  const Answer tiny = run(kTwoSteps + "--precision fp16 --loss-scale 1e-30", folder.path());
  says(tiny, 0, {"warning: every gradient is 0 at loss scale 1e-30, '", "' of ", "loss-scale=dynamic", "step      0"});
  EXPECT_EQ(tiny.text.find("every gradient", tiny.text.find("every gradient") + 1), std::string::npos) << "said once";
  EXPECT_EQ(run(kTwoSteps + "--precision fp16 --loss-scale 64", folder.path()).text.find("every gradient"),
            std::string::npos);
}

TEST(LowPrecisionFaults, AMasterWeightThatIsNoNumberIsNamed) {
  const TemporaryFolder folder;
  Tensor weight(DType::kF32, {10, 128});
  for (std::int64_t i = 0; i < weight.elements(); ++i) storeElement(weight.view(), i, 0.01);
  storeElement(weight.view(), 5, std::numeric_limits<double>::quiet_NaN());
  const auto state = folder.path() / "nan.safetensors";
  ASSERT_TRUE(saveStateFile(state, {{"head.weight", weight.view()}}, {}).has_value());
  const std::string from = "--init-from " + state.string();
  says(run(kTwoSteps + "--precision fp16 " + from, folder.path()), 1,
       {"warning: step 0: NaN in 'logits', made by ", "'head.weight",
        "warning: update skipped: parameter 'head.weight' holds NaN or infinity", "error: loss: not finite in 2 steps"});
  says(run(kTwoSteps + "--precision bf16 " + from, folder.path()), 1,
       {"warning: step 0: NaN in 'logits', made by ", "'head.weight", "error: loss: not finite in 2 steps"});
}

// In a file in float16, and in one that option precision makes so.
TEST(LowPrecisionFaults, AConstantAboveFloat16IsNamed) {
  const TemporaryFolder folder;
  const auto model = [&](const char* name, const std::string& graph, int type) {
    onnx::ModelProto made;
    const std::string text = fmt::format(
        "ir_version: 8 opset_import {{ version: 17 }} graph {{ name: \"g\" {} output {{ name: \"loss\" type {{ "
        "tensor_type {{ elem_type: {} shape {{ }} }} }} }} }}",
        graph, type);
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &made)) << text;
    return folder.write(name, made.SerializeAsString()).string();
  };
  const std::string operands = floats("x", {2, 4}, std::vector<float>(8, 0.5F)) +
                               floats("w", {4, 3}, std::vector<float>(12, 0.1F)) + floats("big", {}, {1e5F});
  const std::string mean = attribute("keepdims", 0);
  const std::string wide =
      model("wide.onnx",
            operands + node("MatMul", "x w", "y") + node("Mul", "y big", "z") + node("ReduceMean", "z", "loss", mean), 1);
  says(run("train " + wide + " --train ^w$ --precision fp16 --steps 2", folder.path()), 1,
       {"warning: Mul 'Mul_z': 'big' has 100000, which is infinite in float16 (largest 65504); hint: precision.force=",
        "warning: step 0: ", "'big"});
  const auto low = [&](const char* name, const std::string& constant, const std::string& big) {
    return model(name,
                 operands + constant + node("Cast", "x", "xl", attribute("to", 10)) +
                     node("Cast", "w", "wl", attribute("to", 10)) + node("Cast", big, "bl", attribute("to", 10)) +
                     node("MatMul", "xl wl", "y") + node("Mul", "y bl", "z") + node("ReduceMean", "z", "loss", mean),
                 10);
  };
  const std::string constant =
      low("constant.onnx", node("Constant", "", "number", realAttribute("value_float", 1e5)), "number");
  says(run("train " + constant + " --train ^w$ --steps 2", folder.path()), 1,
       {"warning: Cast 'Cast_bl': 'number' has 100000, which is infinite in float16 (largest 65504)",
        "error: loss: not finite"});
  says(run("train " + low("stored.onnx", "", "big") + " --train ^w$ --steps 2", folder.path()), 1,
       {"warning: step 0: Inf in 'loss', made by ", " PointwiseSum; 'big", "error: loss: not finite"});
}

}  // namespace
}  // namespace stepscope::testing
