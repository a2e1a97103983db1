#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {
namespace {

using In = ExampleInput;

// Without a random float among the inputs there is nothing to differentiate.
OpExample example(std::string name, std::string op, std::vector<In> inputs, Attributes attrs = {}) {
  OpExample made{std::move(name), "", std::move(op), std::move(inputs), 1, std::move(attrs)};
  made.differentiate =
      std::ranges::any_of(made.inputs, [](const In& in) { return isFloating(in.dtype) && !in.constant.valid(); });
  return made;
}

OpExample inDomain(std::string domain, OpExample made) {
  made.domain = std::move(domain);
  return made;
}

OpExample withOutputs(OpExample made, std::size_t outputs) {
  made.outputs = outputs;
  return made;
}

// For shapes and values only: contents are constants, or the result is random.
OpExample valuesOnly(OpExample made) {
  made.differentiate = false;
  return made;
}

In bools(Dims dims) { return In::integers(std::move(dims), 0, 1, DType::kBool); }
In boolScalar(bool value) { return In::of(Tensor::scalar(DType::kBool, value)); }
In scalar(double value) { return In::of(Tensor::scalar(DType::kF32, value)); }
In floats(Dims dims, std::vector<float> values) { return In::of(Tensor::of<float>(std::move(dims), values)); }

void addUnary(std::vector<OpExample>& all) {
  const auto unary = [&](std::string op, double low, double high, std::vector<double> avoid = {}, Attributes attrs = {}) {
    all.push_back(example(op + "_" + std::to_string(all.size()), op, {In::random({3, 4}, low, high, std::move(avoid))},
                          std::move(attrs)));
  };
  unary("Abs", -2, 2, {0});
  unary("Acos", -0.9, 0.9);
  unary("Acosh", 1.2, 3);
  unary("Asin", -0.9, 0.9);
  unary("Asinh", -2, 2);
  unary("Atan", -2, 2);
  unary("Atanh", -0.9, 0.9);
  unary("Ceil", -3, 3, {-2, -1, 0, 1, 2});
  unary("Celu", -2, 2, {0});
  unary("Celu", -2, 2, {0}, {{"alpha", 0.5f}});
  unary("Cos", -3, 3);
  unary("Cosh", -2, 2);
  unary("Elu", -2, 2, {0});
  unary("Elu", -2, 2, {0}, {{"alpha", 0.3f}});
  unary("Erf", -2, 2);
  unary("Exp", -2, 2);
  unary("Floor", -3, 3, {-2, -1, 0, 1, 2});
  unary("Gelu", -3, 3);
  unary("Gelu", -3, 3, {}, {{"approximate", std::string("tanh")}});
  unary("HardSigmoid", -4, 4, {-2.5, 2.5});
  unary("HardSigmoid", -4, 4, {-1.2, 0.8}, {{"alpha", 0.5f}, {"beta", 0.6f}});
  unary("HardSwish", -5, 5, {-3, 3});
  unary("Identity", -1, 1);
  unary("LeakyRelu", -2, 2, {0});
  unary("LeakyRelu", -2, 2, {0}, {{"alpha", -0.2f}});
  unary("Log", 0.2, 3);
  unary("Mish", -3, 3);
  unary("Neg", -1, 1);
  unary("Reciprocal", 0.5, 2);
  unary("Relu", -2, 2, {0});
  unary("Round", -3, 3, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5});
  unary("Selu", -2, 2, {0});
  unary("Shrink", -2, 2, {-0.5, 0.5});
  unary("Shrink", -2, 2, {-1, 1}, {{"lambd", 1.0f}, {"bias", 0.25f}});
  unary("Sigmoid", -4, 4);
  unary("Sign", -2, 2, {0});
  unary("Sin", -3, 3);
  unary("Sinh", -2, 2);
  unary("Softplus", -4, 4);
  unary("Softsign", -2, 2, {0});
  unary("Sqrt", 0.2, 3);
  unary("Tan", -1, 1);
  unary("Tanh", -2, 2);
  unary("ThresholdedRelu", -2, 2, {1});
  unary("ThresholdedRelu", -2, 2, {0.5}, {{"alpha", 0.5f}});

  const auto ms = [&](std::string op, std::vector<In> inputs, Attributes attrs = {}) {
    all.push_back(inDomain("com.microsoft", example("Microsoft" + op + "_" + std::to_string(all.size()), op,
                                                    std::move(inputs), std::move(attrs))));
  };
  ms("Gelu", {In::random({3, 4}, -3, 3)});
  ms("QuickGelu", {In::random({3, 4}, -3, 3)});
  ms("QuickGelu", {In::random({3, 4}, -3, 3)}, {{"alpha", 1.0f}});
  ms("FastGelu", {In::random({3, 4}, -3, 3)});
  ms("FastGelu", {In::random({2, 3, 4}, -2, 2), In::random({4})});
  ms("BiasGelu", {In::random({2, 3, 4}, -2, 2), In::random({4})});

  const float inf = std::numeric_limits<float>::infinity();
  const In odd = floats({5}, {0, inf, -inf, std::nanf(""), -1});
  all.push_back(example("IsNaN", "IsNaN", {odd}));
  all.push_back(example("IsInf", "IsInf", {odd}));
  all.push_back(example("IsInf_positive", "IsInf", {odd}, {{"detect_negative", std::int64_t{0}}}));
  all.push_back(valuesOnly(example("Relu_nan", "Relu", {odd})));
  for (const char* form : {"none", "tanh"})
    all.push_back(inDomain(
        "stepscope", example(std::string("GeluGrad_") + form, "GeluGrad",
                             {In::random({2, 3, 4}), In::random({2, 3, 4}, -3, 3)}, {{"approximate", std::string(form)}})));
  all.push_back({"ReluGrad", "stepscope", "ReluGrad", {In::random({2, 3, 4}), In::random({2, 3, 4})}});
  all.push_back({"ReluGrad_nan", "stepscope", "ReluGrad", {In::random({5}), odd}});
  all.push_back(valuesOnly(example("Softplus_extremes", "Softplus", {floats({4}, {-200, 200, inf, -inf})})));
  all.push_back(valuesOnly(example("Sigmoid_extremes", "Sigmoid", {floats({4}, {-200, 200, inf, -inf})})));
  all.push_back(example("Abs_int", "Abs", {In::integers({5}, -3, 3)}));
  all.push_back(example("Neg_int32", "Neg", {In::integers({5}, -3, 3, DType::kI32)}));
  all.push_back(example("Sign_int8", "Sign", {In::integers({5}, -3, 3, DType::kI8)}));
}

void addClip(std::vector<OpExample>& all) {
  const In x = In::random({3, 4}, -2, 2, {-0.5, 0.7});
  all.push_back(example("Clip_both", "Clip", {x, scalar(-0.5), scalar(0.7)}));
  all.push_back(example("Clip_low", "Clip", {x, scalar(-0.5)}));
  all.push_back(example("Clip_high", "Clip", {x, In::none(), scalar(0.7)}));
  all.push_back(example("Clip_none", "Clip", {x}));
  // Bounds that are no constants (learned ranges) have gradients too.
  all.push_back(example(
      "Clip_trained_bounds", "Clip",
      {In::random({3, 4}, -2, 2, {-0.55, -0.45, 0.65, 0.75}), In::random({}, -0.53, -0.47), In::random({}, 0.67, 0.73)}));
  all.push_back(example("Clip_trained_low", "Clip", {In::random({3, 4}, -2, 2), In::random({}, -0.01, 0.01)}));
  all.push_back(example("Clip_trained_high", "Clip", {In::random({3, 4}, -2, 2), In::none(), In::random({}, -0.01, 0.01)}));
  all.push_back(example("Clip_crossed_bounds", "Clip",
                        {In::random({3, 4}, -2, 2), In::random({}, 0.5, 0.9), In::random({}, -0.9, -0.5)}));
  all.push_back(example("Clip_int", "Clip", {In::integers({6}, -9, 9), In::scalarInt(-2), In::scalarInt(5)}));
}

void addBinary(std::vector<OpExample>& all) {
  for (const std::string op : {"Add", "Sub", "Mul", "Div"}) {
    const In a = In::random({3, 4}, -2, 2), b = In::random({3, 4}, 0.5, 2);
    all.push_back(example(op, op, {a, b}));
    all.push_back(example(op + "_row", op, {In::random({2, 3, 4}), In::random({4}, 0.5, 2)}));
    all.push_back(example(op + "_outer", op, {In::random({3, 1}), In::random({1, 4}, 0.5, 2)}));
    all.push_back(example(op + "_left", op, {In::random({4}), In::random({2, 1, 4}, 0.5, 2)}));
    all.push_back(example(op + "_scalar", op, {a, In::random({}, 0.5, 2)}));
    all.push_back(example(op + "_int", op, {In::integers({5}, -9, 9), In::integers({5}, 1, 4)}));
    all.push_back(example(op + "_empty", op, {In::integers({0, 3}, 0, 1), In::integers({3}, 1, 4)}));
  }
  all.push_back(example("Mod", "Mod", {In::integers({8}, -9, 9), In::integers({8}, 2, 4)}));
  all.push_back(example("Mod_negative", "Mod", {In::integers({8}, -9, 9), In::scalarInt(-3)}));
  all.push_back(example("Mod_fmod_int", "Mod", {In::integers({8}, -9, 9), In::scalarInt(4)}, {{"fmod", std::int64_t{1}}}));
  all.push_back(example("Mod_fmod", "Mod", {floats({3}, {-4.3f, 7.2f, 5.0f}), In::random({3}, 2.1, 3.2)},
                        {{"fmod", std::int64_t{1}}}));
  all.push_back(example("Mod_fmod_dividend", "Mod", {In::random({4}, 2.5, 3.5), scalar(2)}, {{"fmod", std::int64_t{1}}}));
  all.push_back(example("Mod_floor", "Mod", {In::random({4}, -3.5, -2.5), In::random({4}, 1.8, 2.2)}));

  all.push_back(example("Pow", "Pow", {In::random({3, 4}, 0.3, 2), In::random({3, 4}, -2, 2)}));
  all.push_back(example("Pow_row", "Pow", {In::random({4}, 0.3, 2), In::random({3, 1}, -2, 2)}));
  all.push_back(example("Pow_square", "Pow", {In::random({3, 4}), scalar(2)}));
  all.push_back(example("Pow_cube", "Pow", {In::random({3, 4}), scalar(3)}));
  all.push_back(example("Pow_root", "Pow", {In::random({3, 4}, 0.5, 2), scalar(0.5)}));
  all.push_back(example("Pow_one", "Pow", {In::random({4}), scalar(1)}));
  all.push_back(example("Pow_zero", "Pow", {In::random({4}), scalar(0)}));
  all.push_back(example("Pow_int_exponent", "Pow", {In::random({3, 4}), In::integers({4}, 0, 3)}));
  all.push_back(example("Pow_ints", "Pow", {In::integers({6}, -3, 3), In::integers({6}, 0, 5, DType::kI32)}));

  all.push_back(example("PRelu", "PRelu", {In::random({2, 3, 4}, -1, 1, {0}), In::random({3, 1})}));
  all.push_back(example("PRelu_same", "PRelu", {In::random({3, 4}, -1, 1, {0}), In::random({3, 4})}));
  all.push_back(example("PRelu_one", "PRelu", {In::random({3, 4}, -1, 1, {0}), In::random({1})}));

  for (const std::string op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
    all.push_back(example(op, op, {In::integers({2, 5}, -100, 100, DType::kI32), In::integers({5}, 0, 100, DType::kI32)}));
  }
  all.push_back(example("BitwiseNot", "BitwiseNot", {In::integers({5}, 0, 200, DType::kU8)}));
  for (const std::string direction : {"LEFT", "RIGHT"})
    all.push_back(example("BitShift_" + direction, "BitShift",
                          {In::integers({5}, 0, 200, DType::kU8), In::integers({5}, 0, 9, DType::kU8)},
                          {{"direction", direction}}));
}

void addCompare(std::vector<OpExample>& all) {
  for (const std::string op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    all.push_back(example(op, op, {In::integers({3, 4}, 0, 3), In::integers({4}, 0, 3)}));
    all.push_back(example(op + "_float", op, {In::random({3, 1}), In::random({4})}));
  }
  all.push_back(example("Equal_bool", "Equal", {bools({6}), bools({6})}));
  all.push_back(example("Equal_string", "Equal",
                        {In::of(Tensor::strings({3}, {"a", "b", "c"})), In::of(Tensor::strings({3}, {"a", "x", "c"}))}));
  for (const std::string op : {"And", "Or", "Xor"}) all.push_back(example(op, op, {bools({3, 4}), bools({4})}));
  all.push_back(example("Not", "Not", {bools({3, 4})}));
}

void addVariadic(std::vector<OpExample>& all) {
  for (const std::string op : {"Max", "Mean", "Min", "Sum"}) {
    all.push_back(example(op, op, {In::random({3, 4}), In::random({3, 4}), In::random({3, 4})}));
    all.push_back(example(op + "_broadcast", op, {In::random({4}), In::random({3, 1}), In::random({})}));
    all.push_back(example(op + "_one", op, {In::random({3, 4})}));
  }
  all.push_back(example("Max_int", "Max", {In::integers({5}, -5, 5), In::scalarInt(0)}));
  all.push_back(example("Min_int", "Min", {In::integers({5}, -5, 5, DType::kI32), In::integers({5}, -5, 5, DType::kI32)}));
}

void addChoice(std::vector<OpExample>& all) {
  all.push_back(example("Where", "Where", {bools({3, 4}), In::random({3, 4}), In::random({3, 4})}));
  all.push_back(example("Where_broadcast", "Where", {bools({3, 1}), In::random({4}), In::random({})}));
  all.push_back(example("Where_condition_row", "Where", {bools({4}), In::random({3, 4}), In::random({3, 1})}));
  all.push_back(example("Where_int", "Where", {bools({4}), In::integers({4}, 0, 9), In::scalarInt(-1)}));
  all.push_back(example("Where_string", "Where",
                        {bools({2}), In::of(Tensor::strings({2}, {"a", "b"})), In::of(Tensor::strings({1}, {"none"}))}));
  for (const bool condition : {true, false}) {
    const std::string suffix = condition ? "_true" : "_false";
    all.push_back(inDomain(
        "stepscope", example("Select" + suffix, "Select", {boolScalar(condition), In::random({3, 4}), In::random({3, 4})})));
    all.push_back(inDomain(
        "stepscope", example("Gate_of_a_shape" + suffix, "Gate",
                             {boolScalar(condition), In::random(condition ? Dims{3, 1, 4} : Dims{7}), In::ints({3, 1, 4})},
                             {{"expected", std::int64_t{1}}})));
    all.push_back(inDomain("stepscope", example("Gate" + suffix, "Gate", {boolScalar(condition), In::random({3, 4})},
                                                {{"expected", std::int64_t{1}}})));
  }
}

void addCasts(std::vector<OpExample>& all) {
  const auto to = [](DType dtype) { return Attributes{{"to", static_cast<std::int64_t>(dtype)}}; };
  const In x = In::random({3, 4}, 0, 9);
  // Fixed sources, since examples promote float32 alone.
  all.push_back(valuesOnly(example("Cast_float_to_double", "Cast", {x}, to(DType::kF64))));
  all.push_back(valuesOnly(example("Cast_float_to_half", "Cast", {floats({3}, {0.5f, -2, 1024})}, to(DType::kF16))));
  all.push_back(example("Cast_to_double", "Cast", {In::random({3, 4})}, to(DType::kF64)));
  all.push_back(valuesOnly(example("Cast_float_to_int", "Cast", {x}, to(DType::kI64))));
  all.push_back(example("Cast_float_to_bool", "Cast", {floats({3}, {0, 1, -0.5f})}, to(DType::kBool)));
  all.push_back(valuesOnly(example("Cast_int_to_float", "Cast", {In::integers({5}, -9, 9)}, to(DType::kF32))));
  all.push_back(valuesOnly(example("Cast_bool_to_float", "Cast", {bools({5})}, to(DType::kF32))));
  all.push_back(example("Cast_int_to_int8", "Cast", {In::integers({5}, -300, 300)}, to(DType::kI8)));
  all.push_back(example("Cast_int_to_string", "Cast", {In::integers({5}, -9, 9)}, to(DType::kString)));
  all.push_back(valuesOnly(
      example("Cast_string_to_float", "Cast", {In::of(Tensor::strings({3}, {"1.5", "-2e3", "INF"}))}, to(DType::kF32))));
  all.push_back(example("Cast_out_of_range", "Cast", {floats({4}, {1e30f, -1e30f, std::nanf(""), -1})}, to(DType::kI32)));
  all.push_back(example("CastLike", "CastLike", {In::random({3, 4}), In::random({1})}));
  all.push_back(
      valuesOnly(example("CastLike_int", "CastLike", {In::random({3, 4}, -5, 5), In::integers({2}, 0, 1, DType::kI32)})));
  all.push_back(example("Identity_int", "Identity", {In::integers({5}, -9, 9)}));
  const In value = In::random({2, 3});
  all.push_back(
      valuesOnly(inDomain("stepscope", example("CustomGradient", "CustomGradient", {value, value, value, value}))));
  all.push_back(inDomain("stepscope", example("GradientOf", "GradientOf", {value})));
  all.push_back(inDomain("stepscope", example("StopGradient", "StopGradient", {In::random({2, 3})})));
}

void addRandom(std::vector<OpExample>& all) {
  const In x = In::random({5, 7});
  all.push_back(withOutputs(example("Dropout_training", "Dropout", {x, scalar(0.4), boolScalar(true)}), 2));
  all.push_back(example("Dropout_training_default_ratio", "Dropout", {x, In::none(), boolScalar(true)}));
  all.push_back(withOutputs(example("Dropout_inference", "Dropout", {x, scalar(0.4), boolScalar(false)}), 2));
  all.push_back(example("Dropout_default", "Dropout", {x}));
  all.push_back(example("Dropout_zero", "Dropout", {x, scalar(0), boolScalar(true)}));
  all.push_back(example("Dropout_one", "Dropout", {x, scalar(1), boolScalar(true)}));
  all.push_back(example("Dropout_mode_from_input", "Dropout", {x, scalar(0.25), In::integers({}, 1, 1, DType::kBool)}));
  all.push_back(example("Dropout_mode_off_from_input", "Dropout",
                        {x, In::random({}, 0.2, 0.3), In::integers({}, 0, 0, DType::kBool)}));
}

// What a place of an axis draws is what it would in the whole value.
void addDropoutPart(std::vector<OpExample>& all) {
  const In x = In::random({2, 3, 5}), places = In::of(Tensor::ints(std::vector<std::int64_t>{4, 0, -2})),
           extent = In::of(Tensor::ints(std::vector<std::int64_t>{6}));
  all.push_back(withOutputs(
      inDomain("stepscope", example("DropoutPart_training", "DropoutPart",
                                    {x, places, extent, scalar(0.4), boolScalar(true)}, {{"axis", std::int64_t{1}}})),
      2));
  all.push_back(
      inDomain("stepscope", example("DropoutPart_inference", "DropoutPart",
                                    {x, places, extent, scalar(0.4), boolScalar(false)}, {{"axis", std::int64_t{1}}})));
}

// No gradient: the op is written after it was taken.
void addBiasDropout(std::vector<OpExample>& all) {
  const In x = In::random({3, 4, 5}), row = In::random({5});
  const auto sum = [&](std::string name, std::vector<In> inputs, std::size_t outputs) {
    OpExample added =
        withOutputs(inDomain("stepscope", example("BiasDropout_" + name, "BiasDropout", std::move(inputs))), outputs);
    added.differentiate = false;
    all.push_back(std::move(added));
  };
  sum("row_and_residual", {x, row, x, scalar(0.4), boolScalar(true)}, 2);
  sum("whole_bias", {x, x, In::none(), scalar(0.4), boolScalar(true)}, 1);
  sum("residual", {x, In::none(), x, scalar(0.4), boolScalar(true)}, 2);
  sum("residual_default_ratio", {x, In::none(), x, In::none(), boolScalar(true)}, 1);
  sum("inference", {x, row, x, scalar(0.4), boolScalar(false)}, 2);
  sum("everything_dropped", {x, row, x, scalar(1), boolScalar(true)}, 2);
}

// Attributes of views: an offset, extents, strides.
using Views = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

// No gradient: the op is written after it was taken.
void addPointwise(std::vector<OpExample>& all) {
  const auto chain = [&](std::string name, std::vector<In> inputs, std::vector<std::string> steps, Views views = {}) {
    OpExample added =
        inDomain("stepscope", example("Pointwise_" + name, "Pointwise", std::move(inputs), {{"steps", std::move(steps)}}));
    for (auto& [attribute, numbers] : views) added.attrs.set(attribute, std::move(numbers));
    added.differentiate = false;
    all.push_back(std::move(added));
  };
  const In x = In::random({4, 33}), row = In::random({33}), column = In::random({4, 1}),
           positive = In::random({4, 33}, 0.1, 2);
  const In mask = In::integers({4, 33}, 0, 1, DType::kBool);
  chain("gelu_gradient", {x, x, scalar(0.5)}, {"Mul 1 2", "Erf 3", "Mul 1 1", "Neg 5", "Exp 6", "Mul 7 4", "Mul 0 8"});
  chain("rows_and_columns", {x, row, column}, {"Sub 0 2", "Mul 3 1", "Tanh 4"});
  chain("masks", {x, mask, scalar(0)}, {"Where 1 0 2", "Less 3 2", "Not 4", "Where 5 3 0"});
  chain("every_function", {positive, scalar(3)},
        {"Log 0", "Abs 2", "Sqrt 3", "Sigmoid 4", "Relu 5", "Reciprocal 6", "Pow 7 1", "Max 8 0", "Min 9 1", "Div 10 0",
         "Add 11 2", "Sub 12 0"});
  chain("large", {In::random({5, 40000}), In::random({40000})}, {"Add 0 1", "Mul 2 2"});
  chain("gelu_family", {x, positive, row},
        {"Gelu 0", "GeluTanh 1", "GeluGrad 3 4", "GeluTanhGrad 5 0", "Mish 6", "Mul 7 2", "HardSwish 8", "Softplus 9",
         "Softsign 10", "ReluGrad 11 1"});
  chain("steps_of_numbers", {positive, x}, {"Floor 0", "Ceil 0", "Round 0", "Sign 1", "Add 2 3", "Add 4 5", "Mul 6 7"});
  chain("masks_of_masks", {x, mask, positive}, {"IsNaN 0", "Equal 0 2", "Or 1 3", "And 5 1", "Or 6 4", "FromMask 7"});
  chain("rounded", {x}, {"ToBFloat16 0", "ToFloat16 0", "Add 1 2"});
  chain("any_axes", {In::random({3, 4, 5}), In::random({4, 1}), In::random({3, 1, 5}), In::random({5})},
        {"Add 0 1", "Mul 4 2", "Sub 5 3"});
  chain("any_axes_of_masks",
        {In::random({3, 4, 5, 2}), In::integers({4, 1, 2}, 0, 1, DType::kBool), In::random({3, 1, 5, 1})}, {"Where 1 0 2"});
  chain("compare", {x, positive, row},
        {"Greater 0 1", "Where 3 0 1", "GreaterOrEqual 4 2", "Where 5 4 2", "LessOrEqual 6 0", "Where 7 6 0"});
  // Both halves of rows, rows from the third on, heads beside one another, a part that is broadcast, masks.
  const In packed = In::random({4, 66});
  chain("view_halves", {packed, packed}, {"Sigmoid 0", "Mul 2 1"},
        {{"view0", {0, 4, 33, 66, 1}}, {"view1", {33, 4, 33, 66, 1}}});
  chain("view_rows", {In::random({6, 33}), x, row}, {"Sub 0 1", "Mul 3 2"}, {{"view0", {66, 4, 33, 33, 1}}});
  chain("view_heads", {In::random({2, 5, 36}), In::random({2, 3, 5, 12})}, {"Mul 0 1", "Tanh 2"},
        {{"view0", {0, 2, 3, 5, 12, 180, 12, 36, 1}}});
  chain("view_broadcast", {In::random({3, 4, 5}), In::random({2, 9})}, {"Add 0 1"}, {{"view1", {2, 4, 1, 1, 9}}});
  chain("view_of_mask", {x, In::integers({4, 40}, 0, 1, DType::kBool), scalar(0)}, {"Where 1 0 2"},
        {{"view1", {5, 4, 33, 40, 1}}});
  chain("view_of_one", {x, In::random({3, 5})}, {"Mul 0 1"}, {{"view1", {7, 1, 1, 5, 1}}});
  chain("view_long_rows", {In::random({2, 9000}), In::random({2, 4500})}, {"Add 0 1", "Mul 2 2"},
        {{"view0", {4400, 2, 4500, 9000, 1}}});
}

// Sums of such chains along axes, of extents `shape`.
void addPointwiseSums(std::vector<OpExample>& all) {
  const auto sum = [&](std::string name, std::vector<In> inputs, std::vector<std::string> steps,
                       std::vector<std::int64_t> axes, std::vector<std::int64_t> shape, std::int64_t mean = 0,
                       Views views = {}) {
    OpExample added = inDomain(
        "stepscope", example("PointwiseSum_" + name, "PointwiseSum", std::move(inputs),
                             {{"steps", std::move(steps)}, {"axes", std::move(axes)}, {"shape", std::move(shape)}}));
    if (mean != 0) added.attrs.set("mean", mean);
    for (auto& [attribute, numbers] : views) added.attrs.set(attribute, std::move(numbers));
    added.differentiate = false;
    all.push_back(std::move(added));
  };
  const In x = In::random({6, 33}), row = In::random({33}), column = In::random({6, 1});
  const In mask = In::integers({6, 33}, 0, 1, DType::kBool);
  sum("bias_gradient", {x, x}, {"GeluGrad 0 1"}, {0}, {33});
  sum("scale_gradient", {x, column, row}, {"Mul 0 1", "Mul 3 2"}, {0}, {1, 33});
  sum("rows", {x, row}, {"Mul 0 1", "Mul 2 2"}, {1}, {6, 1}, 1);
  sum("loss", {x, row}, {"Sub 0 1", "Mul 2 2"}, {0, 1}, {}, 1);
  sum("masks", {x, mask, scalar(0.25)}, {"Where 1 0 2"}, {1}, {6});
  sum("rounded", {x}, {"ToBFloat16 0", "ToFloat16 0", "Add 1 2"}, {0}, {33});
  sum("large", {In::random({40, 3000}), In::random({3000})}, {"Add 0 1", "Mul 2 2"}, {0}, {3000}, 1);
  sum("large_rows", {In::random({2, 40000}), In::random({40000})}, {"Add 0 1", "Mul 2 2"}, {1}, {2}, 1);
  sum("any_axes", {In::random({3, 4, 5}), In::random({4, 1}), In::random({3, 1, 5})}, {"Add 0 1", "Mul 3 2"}, {0, 1}, {5});
  sum("between", {In::random({3, 4, 5})}, {"Neg 0"}, {1}, {3, 5});
  sum("view_of_columns", {x, In::random({6, 70})}, {"Mul 0 1"}, {0}, {33}, 0, {{"view1", {30, 6, 33, 70, 1}}});
  sum("view_of_rows", {In::random({9, 33}), x}, {"Mul 0 1"}, {1}, {6}, 1, {{"view0", {99, 6, 33, 33, 1}}});
}

void addOptimizers(std::vector<OpExample>& all) {
  const auto update = [&](std::string name, std::string op, std::vector<In> inputs, std::size_t outputs,
                          Attributes attrs = {}) {
    all.push_back(inDomain(
        "stepscope", withOutputs(example(std::move(name), std::move(op), std::move(inputs), std::move(attrs)), outputs)));
  };
  const In tensor = In::random({3, 4}), square = In::random({3, 4}, 0, 0.1), lr = scalar(0.1), scale = scalar(0.5);
  const In first = In::scalarInt(1), third = In::scalarInt(3);
  update("SgdUpdate", "SgdUpdate", {tensor, tensor, In::none(), lr}, 1);
  update("SgdUpdate_momentum", "SgdUpdate", {tensor, tensor, tensor, lr, scale, third}, 2,
         {{"momentum", 0.9f}, {"dampening", 0.1f}, {"weight_decay", 0.01f}});
  update("SgdUpdate_nesterov", "SgdUpdate", {tensor, tensor, tensor, lr, In::none(), first}, 2,
         {{"momentum", 0.9f}, {"nesterov", std::int64_t{1}}});
  update("AdamUpdate", "AdamUpdate", {tensor, tensor, tensor, square, lr, third}, 3, {{"weight_decay", 0.01f}});
  update("AdamUpdate_decoupled", "AdamUpdate", {tensor, tensor, tensor, square, lr, first, scale}, 3,
         {{"weight_decay", 0.01f}, {"decoupled", std::int64_t{1}}});
  const In row = In::random({5}), rowSquare = In::random({5}, 0, 0.1);
  update("AdamUpdates", "AdamUpdates", {lr, third, In::none(), tensor, tensor, tensor, square, row, row, row, rowSquare}, 6,
         {{"weight_decay", 0.01f}});
  update("AdamUpdates_scaled", "AdamUpdates", {lr, first, scale, row, row, row, rowSquare}, 3,
         {{"decoupled", std::int64_t{1}}});
  update("SgdUpdates", "SgdUpdates", {lr, scale, third, tensor, tensor, tensor, row, row, row}, 4, {{"momentum", 0.9f}});
  update("SgdUpdates_first", "SgdUpdates", {lr, In::none(), first, tensor, tensor, tensor, row, row, row}, 4,
         {{"momentum", 0.9f}, {"nesterov", std::int64_t{1}}});
  update("LambUpdate", "LambUpdate", {tensor, tensor, tensor, square, lr, third, scale}, 3, {{"weight_decay", 0.01f}});
  update("Accumulate", "Accumulate", {tensor, tensor, In::scalarBool(false)}, 2);
  update("Accumulate_first", "Accumulate", {tensor, tensor, In::scalarBool(true)}, 1);
  update("AllReduce", "AllReduce", {tensor, square, row}, 3, {{"average", std::int64_t{1}}});
  const auto rank = [](std::int64_t rank, std::int64_t ranks) { return Attributes{{"rank", rank}, {"ranks", ranks}}; };
  update("RankPart", "RankPart", {tensor}, 1, rank(1, 2));
  update("RankPart_behind_the_end", "RankPart", {row}, 1, rank(2, 3));
  update("ReduceScatter", "ReduceScatter", {tensor, row}, 2, rank(0, 2));
  update("AllGather", "AllGather", {tensor, row, In::random({6}), In::random({3})}, 2, rank(1, 2));
  Attributes parts = rank(1, 3);
  parts.set("extents", std::vector<std::int64_t>{2, 3, 4, 1, 5, 0});
  update("AllGather_of_parts", "AllGather", {In::random({4}), In::random({2}), In::random({1})}, 3, parts);
  update("Broadcast", "Broadcast", {tensor}, 1, {{"root", std::int64_t{0}}});
  update("Broadcast_bool", "Broadcast", {In::integers({5}, 0, 1, DType::kBool)}, 1);
  update("Reduce", "Reduce", {tensor}, 1);
  update("Reduce_int64", "Reduce", {In::integers({5}, -9, 9)}, 1);
  update("AllToAll", "AllToAll", {tensor}, 1);
  update("AllGatherRows", "AllGatherRows", {tensor}, 1, rank(1, 3));
  update("ReduceScatterRows", "ReduceScatterRows", {tensor}, 1, rank(2, 3));
  const Attributes ends{{"from", std::int64_t{0}}, {"to", std::int64_t{0}}, {"tag", std::int64_t{3}}};
  update("Send", "Send", {tensor}, 1, ends);
  update("Recv", "Recv", {tensor}, 1, ends);
  Attributes said = ends;
  said.set("shape", std::vector<std::int64_t>{3, -1});
  update("Recv_shape", "Recv", {tensor}, 1, said);
  update("SquareSum", "SquareSum", {tensor}, 1);
}

void addGenerators(std::vector<OpExample>& all) {
  const Attributes attrs{{"shape", std::vector<std::int64_t>{3, 4}}, {"dtype", static_cast<std::int64_t>(DType::kF64)}};
  all.push_back(example("RandomNormal", "RandomNormal", {}, attrs));
  all.push_back(example("RandomUniform", "RandomUniform", {}, attrs));
  all.push_back(example("RandomUniform_float", "RandomUniform", {},
                        {{"shape", std::vector<std::int64_t>{5}}, {"low", -2.0f}, {"high", 3.0f}}));
  all.push_back(example("RandomNormalLike", "RandomNormalLike", {In::random({3, 4})}, {{"mean", 1.0f}, {"scale", 0.5f}}));
  all.push_back(
      example("RandomUniformLike", "RandomUniformLike", {In::integers({3, 4}, 0, 1)}, {{"dtype", std::int64_t{1}}}));
  all.push_back(example("Bernoulli", "Bernoulli", {In::random({30}, 0, 1)}));
  all.push_back(example("Bernoulli_bool", "Bernoulli", {In::random({30}, 0, 1)},
                        {{"dtype", static_cast<std::int64_t>(DType::kBool)}}));
  for (const auto& [name, type] : {std::pair("StochasticRound_half", DType::kF16), {"StochasticRound_bfloat", DType::kBF16}})
    all.push_back(inDomain("stepscope", example(name, "StochasticRound", {In::random({3, 50}, -2, 2)},
                                                {{"to", static_cast<std::int64_t>(type)}, {"stream", std::int64_t{5}}})));
  all.push_back(example("Multinomial", "Multinomial", {In::random({2, 5}, -2, 2)}, {{"sample_size", std::int64_t{6}}}));
}

void addQuantisation(std::vector<OpExample>& all) {
  const auto bytes = [](Dims dims) { return In::integers(std::move(dims), 0, 255, DType::kU8); };
  const In x = In::random({3, 4}, -2, 2), zero = In::of(Tensor::scalar(DType::kU8, 128));
  const Attributes axis0{{"axis", std::int64_t{0}}}, blocks{{"axis", std::int64_t{1}}, {"block_size", std::int64_t{3}}};
  all.push_back(example("QuantizeLinear", "QuantizeLinear", {x, scalar(0.02), zero}));
  all.push_back(example("QuantizeLinear_no_zero", "QuantizeLinear", {x, scalar(0.02)},
                        {{"output_dtype", static_cast<std::int64_t>(DType::kI8)}}));
  all.push_back(example("QuantizeLinear_axis", "QuantizeLinear", {x, In::random({3}, 0.01, 0.1), bytes({3})}, axis0));
  all.push_back(example("QuantizeLinear_blocks", "QuantizeLinear", {x, In::random({3, 2}, 0.01, 0.1)}, blocks));
  all.push_back(example("DequantizeLinear", "DequantizeLinear", {bytes({3, 4}), In::random({}, 0.01, 0.1), zero}));
  all.push_back(example("DequantizeLinear_one", "DequantizeLinear", {bytes({3, 4}), In::random({1}, 0.01, 0.1)}));
  all.push_back(
      example("DequantizeLinear_axis", "DequantizeLinear", {bytes({2, 3, 4}), In::random({3}, 0.01, 0.1), bytes({3})}));
  all.push_back(example("DequantizeLinear_last_axis", "DequantizeLinear", {bytes({2, 3, 4}), In::random({4}, 0.01, 0.1)},
                        {{"axis", std::int64_t{-1}}}));
  // Blocks have no gradient.
  all.push_back(valuesOnly(
      example("DequantizeLinear_blocks", "DequantizeLinear", {bytes({3, 4}), In::random({3, 2}, 0.01, 0.1)}, blocks)));
  all.push_back(withOutputs(example("DynamicQuantizeLinear", "DynamicQuantizeLinear", {x}), 3));
  all.push_back(withOutputs(example("DynamicQuantizeLinear_zeros", "DynamicQuantizeLinear", {floats({2}, {0, 0})}), 3));
  // The straight-through gradient is not the derivative.
  all.push_back(valuesOnly(
      inDomain("stepscope", example("StraightThrough", "StraightThrough", {x, x, In::random({4}, 0.01, 0.1), bytes({4})}))));
  all.push_back(valuesOnly(
      inDomain("com.microsoft", withOutputs(example("FakeQuant", "FakeQuant", {x, scalar(0.013), scalar(100)}), 2))));
}

void addPreviewOptimizers(std::vector<OpExample>& all) {
  const In x = In::random({3}), wide = In::random({2, 2}), squares = In::random({3}, 0, 1),
           wideSquares = In::random({2, 2}, 0, 1);
  const In rate = scalar(0.1), step = In::scalarInt(2);
  const auto preview = [&](std::string name, std::string op, std::vector<In> inputs, std::size_t outputs, Attributes attrs) {
    all.push_back(
        inDomain("ai.onnx.preview.training",
                 withOutputs(example(std::move(name), std::move(op), std::move(inputs), std::move(attrs)), outputs)));
  };
  for (const std::string mode : {"standard", "nesterov"})
    preview("PreviewMomentum_" + mode, "Momentum", {rate, step, x, wide, x, wide, x, wide}, 4,
            {{"alpha", 0.9f}, {"beta", 0.8f}, {"norm_coefficient", 0.01f}, {"mode", mode}});
  preview("PreviewAdagrad", "Adagrad", {rate, step, x, wide, x, wide, squares, wideSquares}, 4, {{"decay_factor", 0.1f}});
  preview("PreviewAdam", "Adam", {rate, step, x, x, x, squares}, 3,
          {{"norm_coefficient", 0.01f}, {"norm_coefficient_post", 0.1f}});
}

}  // namespace

std::span<const OpExample> elementwiseExamples() {
  static const std::vector<OpExample> all = [] {
    std::vector<OpExample> examples;
    addUnary(examples);
    addClip(examples);
    addBinary(examples);
    addCompare(examples);
    addVariadic(examples);
    addChoice(examples);
    addCasts(examples);
    addRandom(examples);
    addDropoutPart(examples);
    addBiasDropout(examples);
    addOptimizers(examples);
    addPointwise(examples);
    addPointwiseSums(examples);
    addGenerators(examples);
    addQuantisation(examples);
    addPreviewOptimizers(examples);
    examples.push_back(example("StringConcat", "StringConcat",
                               {In::of(Tensor::strings({2}, {"a", "b"})), In::of(Tensor::strings({1}, {"!"}))}));
    return examples;
  }();
  return all;
}

}  // namespace stepscope::testing
