// What the pass makes of graphs: the type of every op by its class, one cast per value, numbers that do not widen.
#include "tests/engine/passes/sketch.h"

namespace stepscope {
namespace {

using testing::Sketch;

class AssignPrecision : public ::testing::Test {
 protected:
  PassResult apply(const char* precision) {
    PassContext context(*sketch.inference);
    if (precision) context.options["precision"] = precision;
    for (const Pass& pass : passesOf("pre-grad passes").passes)
      if (pass.name == "assign_precision") {
        const Status status = pass.run(sketch.graph, context);
        EXPECT_TRUE(status.has_value()) << status.error().message;
      }
    for (const std::string& problem : sketch.graph.verify()) ADD_FAILURE() << problem;
    return context.result;
  }
  DType typeOf(ValueId id) const { return sketch.graph.value(id).type.dtype; }
  // Of the operand that the maker of `id` reads now.
  DType operandType(ValueId id, std::size_t i) const {
    return typeOf(sketch.graph.node(sketch.graph.value(id).producer).inputs[i]);
  }
  std::size_t casts() const {
    std::size_t count = 0;
    for (const NodeId id : sketch.graph.order()) count += sketch.graph.node(id).op == "Cast";
    return count;
  }
  Sketch sketch;
};

TEST_F(AssignPrecision, Float32ChangesNothing) {
  const ValueId x = sketch.input("x", {4, 4});
  const ValueId y = sketch.op("MatMul", {x, x});
  sketch.finish({y});
  const std::uint64_t version = sketch.graph.version();
  EXPECT_EQ(apply(nullptr).matches, 0u);
  EXPECT_EQ(apply("fp32").matches, 0u);
  EXPECT_EQ(sketch.graph.version(), version);
}

TEST_F(AssignPrecision, EveryClassHasItsType) {
  const ValueId x = sketch.input("x", {4, 4}), w = sketch.input("w", {4, 4});
  const ValueId product = sketch.op("MatMul", {x, w}), relu = sketch.op("Relu", {product});
  const ValueId soft = sketch.op("Softmax", {relu}), exponential = sketch.op("Exp", {relu});
  const ValueId again = sketch.op("MatMul", {soft, w}), joined = sketch.op("Add", {again, exponential});
  const ValueId loss = sketch.op("ReduceMean", {again}, {{"keepdims", std::int64_t{0}}});
  sketch.finish({loss, joined, relu});
  apply("bf16");
  EXPECT_EQ(operandType(product, 0), DType::kBF16);
  EXPECT_EQ(operandType(product, 1), DType::kBF16);
  EXPECT_EQ(typeOf(product), DType::kBF16);
  EXPECT_EQ(typeOf(relu), DType::kBF16);          // follows
  EXPECT_EQ(operandType(soft, 0), DType::kBF16);  // between two products
  EXPECT_EQ(typeOf(soft), DType::kBF16);
  EXPECT_EQ(operandType(exponential, 0), DType::kF32);  // needs float32
  EXPECT_EQ(typeOf(exponential), DType::kF32);
  EXPECT_EQ(typeOf(again), DType::kBF16);
  EXPECT_EQ(operandType(joined, 0), DType::kF32);  // the widest of bfloat16 and float32
  EXPECT_EQ(typeOf(joined), DType::kF32);
  EXPECT_EQ(typeOf(loss), DType::kF32);  // would follow, but makes the loss
  // x, w once for both products, relu for Exp, again once for Add and the mean.
  EXPECT_EQ(casts(), 4u);
}

TEST_F(AssignPrecision, SoftmaxIsInFloat32WhereItsResultIs) {
  const ValueId x = sketch.input("x", {4, 4});
  const ValueId product = sketch.op("MatMul", {x, x}), kept = sketch.op("Softmax", {product}),
                summed = sketch.op("Softmax", {product}), first = sketch.op("Softmax", {x});
  const ValueId sum = sketch.op("Add", {sketch.op("MatMul", {summed, x}), sketch.op("Exp", {summed})}),
                second = sketch.op("MatMul", {sketch.op("Transpose", {first}), x});
  sketch.finish({sketch.op("ReduceMean", {sum}, {{"keepdims", std::int64_t{0}}}), kept, second});
  apply("bf16");
  EXPECT_EQ(typeOf(kept), DType::kF32) << "an output of the model";
  EXPECT_EQ(typeOf(summed), DType::kF32) << "Exp reads it";
  EXPECT_EQ(typeOf(first), DType::kF32) << "its scores are float32";
}

TEST_F(AssignPrecision, NumbersThatFloat16LacksAreNamed) {
  const ValueId x = sketch.input("x", {4, 4});
  const ValueId product = sketch.op("MatMul", {x, x});
  const ValueId large = sketch.op("Add", {product, sketch.constant(1e5)}),
                fits = sketch.op("Add", {large, sketch.constant(6e4)});
  sketch.finish({sketch.op("ReduceMean", {fits}, {{"keepdims", std::int64_t{0}}}), fits});
  const PassResult result = apply("fp16");
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].find("which is infinite in float16 (largest 65504); hint: precision.force="),
            std::string::npos)
      << result.warnings[0];
}

TEST_F(AssignPrecision, ACastThereAndBackIsTheValueItself) {
  const ValueId low = sketch.graph.addValue("low", {ValueKind::kTensor, DType::kBF16, Shape{4, 4}}, ValueRole::kInitializer);
  sketch.graph.mutableValue(low).data = std::make_shared<const Tensor>(DType::kBF16, Dims{4, 4});
  const ValueId wide = sketch.op("Cast", {low}, {{"to", std::int64_t{1}}}), x = sketch.input("x", {4, 4});
  const ValueId product = sketch.op("MatMul", {x, wide}), exponential = sketch.op("Exp", {wide});
  sketch.finish({sketch.op("ReduceMean", {product}, {{"keepdims", std::int64_t{0}}}), product, exponential});
  apply("bf16");
  EXPECT_EQ(sketch.graph.node(sketch.graph.value(product).producer).inputs[1], low);
  EXPECT_EQ(operandType(exponential, 0), DType::kF32);
}

TEST_F(AssignPrecision, NumbersTakeTheTypeOfTensors) {
  const ValueId x = sketch.input("x", {4, 4});
  const ValueId product = sketch.op("MatMul", {x, x});
  const ValueId half = sketch.op("Mul", {product, sketch.constant(0.5)});
  const ValueId wide = sketch.op("Mul", {x, sketch.constant(0.5)});
  sketch.finish({sketch.op("ReduceMean", {half}, {{"keepdims", std::int64_t{0}}}), half, wide});
  apply("bf16");
  EXPECT_EQ(typeOf(half), DType::kBF16);
  EXPECT_EQ(operandType(half, 1), DType::kBF16);
  EXPECT_EQ(typeOf(wide), DType::kF32);
}

// Linear with bias, as exporters write it; a parameter that scales an activation still widens it.
TEST_F(AssignPrecision, TheBiasOfAProductBelongsToIt) {
  const ValueId x = sketch.input("x", {3, 4}), w = sketch.input("w", {4, 4});
  const ValueId bias = sketch.graph.addValue("bias", {ValueKind::kTensor, DType::kF32, Shape{4}}, ValueRole::kInitializer);
  sketch.graph.mutableValue(bias).data =
      std::make_shared<const Tensor>(Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4}));
  const ValueId layer = sketch.op("Add", {bias, sketch.op("MatMul", {x, w})});
  const ValueId relu = sketch.op("Relu", {layer}), shifted = sketch.op("Add", {relu, bias});
  sketch.finish({sketch.op("ReduceMean", {shifted}, {{"keepdims", std::int64_t{0}}}), layer, shifted});
  apply("bf16");
  EXPECT_EQ(typeOf(layer), DType::kBF16);
  EXPECT_EQ(operandType(layer, 0), DType::kBF16);
  EXPECT_EQ(typeOf(shifted), DType::kF32);
}

TEST_F(AssignPrecision, WhatTheHostReadsStays) {
  const ValueId x = sketch.input("x", {1, 1, 4, 4});
  const ValueId scales = sketch.graph.addConstant("scales", Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 2}));
  const ValueId product = sketch.op("MatMul", {x, x}), larger = sketch.op("Resize", {product, {}, scales});
  sketch.finish({sketch.op("ReduceMean", {larger}, {{"keepdims", std::int64_t{0}}}), larger});
  apply("bf16");
  EXPECT_EQ(sketch.graph.node(sketch.graph.value(larger).producer).inputs[2], scales);
  EXPECT_EQ(typeOf(larger), DType::kF32);
}

}  // namespace
}  // namespace stepscope
