// Synthetic data of a session whose registry has an operator that no built-in list has.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "engine/build/attach_loss.h"
#include "engine/build/registry.h"
#include "engine/ops/shape_context.h"
#include "engine/train/data.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope {
namespace {

using testing::addFloats;
using testing::addInput;
using testing::addNode;
using testing::addOutput;

// acme.EveryOther: rows 0, 2, 4 … of x. How many there are is known once those of x are a number.
Status everyOtherShape(ShapeContext& c) {
  Shape shape = *c.inputShape(0);
  shape[0] = shape[0].known() ? Dim((shape[0].value() + 1) / 2) : c.freshDim(0, 0);
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

class EveryOther final : public Kernel {
 public:
  Status run(const KernelCall& call) override {
    const TensorView &x = call.inputs[0], &y = call.outputs[0];
    const std::int64_t width = x.dims[1];
    for (std::int64_t i = 0; i < y.elements(); ++i)
      storeElement(y, i, elementAsDouble(x, i / width * 2 * width + i % width));
    return {};
  }
  std::string implementation() const override { return "acme reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }
};

Result<std::unique_ptr<Kernel>> makeEveryOther(const KernelSpec&) { return std::make_unique<EveryOther>(); }

const OpDef kEveryOther{.name = "EveryOther",
                        .domain = "acme",
                        .sinceVersion = 1,
                        .doc = "rows 0, 2, 4 … of x",
                        .inputs = {1, 1},
                        .outputs = {1, 1},
                        .category = OpCategory::kMovement,
                        .precision = Precision::kFollows,
                        .hostInputs = kNoInputs,
                        .inferShape = everyOtherShape,
                        .noGradientReason = "it reads data"};
const OpDef* const kRowOps[] = {&kEveryOther};
const KernelEntry kRowKernels[] = {{"acme", "EveryOther", makeEveryOther, false, kAnyDType, nullptr}};

std::shared_ptr<const Registry> withEveryOther() {
  RegistryBuilder builder;
  EXPECT_TRUE(builder.addOps(kRowOps).has_value());
  EXPECT_TRUE(builder.addKernels(kReferenceDevice, kRowKernels).has_value());
  return std::move(builder).build();
}

// y [?, 2] = EveryOther(x) w with x [batch, 3].
onnx::ModelProto rowsModel() {
  onnx::ModelProto model = testing::acmeModel("rows");
  auto& graph = *model.mutable_graph();
  addInput(graph, "x", {1, 3});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  addFloats(graph, "w", {3, 2});
  addNode(graph, "EveryOther", {"x"}, {"rows"}, "rows")->set_domain("acme");
  addNode(graph, "MatMul", {"rows", "w"}, {"y"}, "matmul");
  addOutput(graph, "y");
  return model;
}

// The target of a loss behind it has the extents that its shape rule says, which only the session's own registry knows.
TEST(DataOfARegistry, ASyntheticTargetBehindAnAddedOpHasItsExtents) {
  const testing::TemporaryFolder folder;
  const auto registry = withEveryOther();
  auto session = Session::open(folder.write("m.onnx", rowsModel().SerializeAsString()), {}, {}, nullptr, registry);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  for (const auto& [name, value] : {std::pair{"loss-fn", "mse"}, std::pair{"dim", "batch=9"}, std::pair{"train", "^w$"},
                                    std::pair{"threads", "1"}, std::pair{"seed", "3"}})
    ASSERT_TRUE(applySetting(options, name, value, "test", registry->options()).has_value()) << name;

  Graph graph = (*session)->imported();
  Inference inference(graph, registry->operators());
  ASSERT_TRUE(inference.run().has_value());
  ASSERT_TRUE(attachLoss(graph, inference, options, registry).has_value());
  const auto target = [&](const Operators& operators) {
    const auto batch = emptyBatch(graph, options, operators);
    EXPECT_TRUE(batch.has_value()) << batch.error().message;
    return batch ? batch->arrays.at("labels").dims() : Dims{};
  };
  EXPECT_EQ(target(registry->operators()), (Dims{5, 2}));
  EXPECT_EQ(target(builtInOperators()), (Dims{2, 2})) << "the default of a symbol, where nothing is known of the op";

  ASSERT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  ASSERT_TRUE(built.has_value()) << built.error().message;
  const auto step = (*session)->step();
  ASSERT_TRUE(step.has_value()) << step.error().message;
  EXPECT_GT(step->loss(), 0);
  EXPECT_TRUE(std::isfinite(step->loss()));
}

}  // namespace
}  // namespace stepscope
