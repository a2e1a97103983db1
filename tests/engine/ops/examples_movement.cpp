#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {
namespace {

using In = ExampleInput;

In longs(Dims dims, std::vector<std::int64_t> values) {
  return In::of(Tensor::of<std::int64_t>(std::move(dims), std::span<const std::int64_t>(values)));
}
std::vector<std::int64_t> list(std::initializer_list<std::int64_t> values) { return values; }
constexpr std::int64_t operator""_i(unsigned long long value) { return static_cast<std::int64_t>(value); }
In numbers(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return In::of(Tensor::of<float>({count}, std::span<const float>(values)));
}

In bools(std::vector<bool> values) {
  Tensor tensor(DType::kBool, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as<bool>()[i] = values[i];
  return In::of(tensor);
}

const Tensor& seven() {
  static const Tensor tensor = [] {
    Tensor one(DType::kI64, {1});
    one.as<std::int64_t>()[0] = 7;
    return one;
  }();
  return tensor;
}

std::vector<OpExample> makeExamples() {
  return {
      {"Concat_axis1", "", "Concat", {In::random({2, 3}), In::random({2, 1}), In::random({2, 2})}, 1, {{"axis", 1_i}}},
      {"Concat_negativeAxis", "", "Concat", {In::random({2, 3, 1}), In::random({2, 3, 2})}, 1, {{"axis", -1_i}}},
      {"Concat_one", "", "Concat", {In::random({2, 3})}, 1, {{"axis", 0_i}}},
      {"Concat_empty", "", "Concat", {In::random({0, 3}), In::random({2, 3})}, 1, {{"axis", 0_i}}},
      {"Constant_value", "", "Constant", {}, 1, {{"value", Tensor::ints(list({1, 2, 3}))}}},
      {"Constant_float", "", "Constant", {}, 1, {{"value_float", 1.5f}}},
      {"Constant_ints", "", "Constant", {}, 1, {{"value_ints", list({4, 5})}}},
      {"ConstantOfShape_zero", "", "ConstantOfShape", {In::ints({2, 3})}},
      {"ConstantOfShape_value", "", "ConstantOfShape", {In::ints({2, 3})}, 1, {{"value", seven()}}},
      {"ConstantOfShape_scalar", "", "ConstantOfShape", {In::ints({})}, 1, {{"value", seven()}}},
      {"Expand_rows", "", "Expand", {In::random({2, 1, 3}), In::ints({2, 4, 1})}},
      {"Expand_newAxes", "", "Expand", {In::random({3}), In::ints({2, 4, 3})}},
      {"Expand_scalar", "", "Expand", {In::random({}), In::ints({2, 2})}},
      {"EyeLike_above", "", "EyeLike", {In::random({3, 4})}, 1, {{"k", 1_i}}},
      {"EyeLike_dtype", "", "EyeLike", {In::random({3, 2})}, 1, {{"k", -1_i}, {"dtype", 7_i}}},
      {"Flatten_axis2", "", "Flatten", {In::random({2, 3, 4})}, 1, {{"axis", 2_i}}},
      {"Flatten_axis0", "", "Flatten", {In::random({2, 3})}, 1, {{"axis", 0_i}}},
      {"Gather_rows", "", "Gather", {In::random({4, 3}), longs({2, 2}, {0, 3, 3, -1})}},
      {"Gather_axis1", "", "Gather", {In::random({2, 4, 3}), longs({3}, {1, 1, 2})}, 1, {{"axis", 1_i}}},
      {"Gather_scalarIndex", "", "Gather", {In::random({2, 4}), In::scalarInt(-2)}, 1, {{"axis", -1_i}}},
      {"GatherGrad_added", "stepscope", "GatherGrad", {In::random({2, 2, 3}), longs({2, 2}, {0, 3, 3, -1}), In::ints({4, 3}), In::random({4, 3})}},
      {"GatherGrad_rows", "stepscope", "GatherGrad", {In::random({2, 2, 3}), longs({2, 2}, {0, 3, 3, -1}), In::ints({4, 3})}},
      {"GatherElements_axis1", "", "GatherElements", {In::random({2, 3}), longs({2, 2}, {0, 0, -1, 1})}, 1, {{"axis", 1_i}}},
      {"GatherElements_fewerRows", "", "GatherElements", {In::random({3, 3}), longs({1, 2}, {2, 0})}},
      {"GatherElementsGrad_axis1",
       "stepscope",
       "GatherElementsGrad",
       {In::random({2, 2}), longs({2, 2}, {0, 0, -1, 1}), In::ints({2, 3})},
       1,
       {{"axis", 1_i}}},
      {"GatherND_runs", "", "GatherND", {In::random({2, 3, 2}), longs({3, 2}, {0, 1, 1, -1, 0, 1})}},
      {"GatherND_batch", "", "GatherND", {In::random({2, 3, 2}), longs({2, 2, 1}, {0, 2, 1, 1})}, 1, {{"batch_dims", 1_i}}},
      {"GatherNDGrad_runs", "stepscope", "GatherNDGrad", {In::random({3, 2}), longs({3, 2}, {0, 1, 1, -1, 0, 1}), In::ints({2, 3, 2})}},
      {"NonZero_matrix", "", "NonZero", {numbers({0, 1, 0, 3})}},
      {"NonMaxSuppression_corners",
       "",
       "NonMaxSuppression",
       {In::random({2, 5, 4}, 0, 1), In::random({2, 3, 5}, 0, 1), In::scalarInt(3), numbers({0.3f}), numbers({0.2f})}},
      {"OneHot_last", "", "OneHot", {longs({3}, {0, -1, 7}), In::scalarInt(4), In::random({2})}},
      {"OneHot_axis0", "", "OneHot", {longs({2, 2}, {0, 1, 2, 1}), In::scalarInt(3), In::random({2})}, 1, {{"axis", 0_i}}},
      {"Pad_constant", "", "Pad", {In::random({2, 3}), In::ints({1, 0, 0, 2}), In::random({})}},
      {"Pad_crop", "", "Pad", {In::random({3, 4}), In::ints({-1, 1, 0, -2}), In::random({})}},
      {"Pad_axes", "", "Pad", {In::random({2, 3}), In::ints({1, 2}), In::none(), In::ints({-1})}},
      {"Pad_reflect", "", "Pad", {In::random({3, 4}), In::ints({2, 1, 1, 3})}, 1, {{"mode", std::string("reflect")}}},
      {"Pad_edge", "", "Pad", {In::random({2, 3}), In::ints({2, 1, 1, 3})}, 1, {{"mode", std::string("edge")}}},
      {"Pad_wrap", "", "Pad", {In::random({2, 3}), In::ints({2, 1, 1, 4})}, 1, {{"mode", std::string("wrap")}}},
      {"Pad_reflectAxes",
       "",
       "Pad",
       {In::random({2, 4}), In::ints({1, 2}), In::none(), In::ints({1})},
       1,
       {{"mode", std::string("reflect")}}},
      {"PadGrad_edge", "stepscope", "PadGrad", {In::random({3, 4}), In::ints({2, 3}), In::ints({1, 0, 0, 1})}, 1, {{"mode", std::string("edge")}}},
      {"Range_ints", "", "Range", {In::scalarInt(1), In::scalarInt(10), In::scalarInt(3)}},
      {"Range_down", "", "Range", {In::scalarInt(5), In::scalarInt(-2), In::scalarInt(-2)}},
      {"Range_empty", "", "Range", {In::scalarInt(5), In::scalarInt(5), In::scalarInt(1)}},
      {"Reshape_infer", "", "Reshape", {In::random({2, 3, 4}), In::ints({0, -1})}},
      {"Reshape_scalar", "", "Reshape", {In::random({1, 1}), In::ints({})}},
      {"Reshape_allowzero", "", "Reshape", {In::random({0, 3}), In::ints({3, 0})}, 1, {{"allowzero", 1_i}}, 1e-6, false},  // no element to move
      {"ScatterElements_none", "", "ScatterElements", {In::random({3, 3}), longs({2, 3}, {1, 0, 2, 1, 2, -1}), In::random({2, 3})}},
      {"ScatterElements_add",
       "",
       "ScatterElements",
       {In::random({2, 3}), longs({2, 2}, {1, 1, 0, 2}), In::random({2, 2})},
       1,
       {{"axis", 1_i}, {"reduction", std::string("add")}}},
      {"ScatterElements_mul",
       "",
       "ScatterElements",
       {In::random({2, 3}), longs({2, 3}, {1, 1, 1, 0, 2, 0}), In::random({2, 3})},
       1,
       {{"axis", 1_i}, {"reduction", std::string("mul")}}},
      {"ScatterElements_max",
       "",
       "ScatterElements",
       {In::random({2, 3}), longs({2, 2}, {1, 1, 0, 2}), In::random({2, 2})},
       1,
       {{"axis", 1_i}, {"reduction", std::string("max")}}},
      {"ScatterElements_min",
       "",
       "ScatterElements",
       {In::random({4}), longs({3}, {1, 1, 3}), In::random({3})},
       1,
       {{"reduction", std::string("min")}}},
      {"ScatterND_none", "", "ScatterND", {In::random({4, 2}), longs({3, 1}, {1, 3, 1}), In::random({3, 2})}},
      {"ScatterND_add", "", "ScatterND", {In::random({4, 2}), longs({3, 1}, {1, 3, 1}), In::random({3, 2})}, 1, {{"reduction", std::string("add")}}},
      {"ScatterND_mul", "", "ScatterND", {In::random({4, 2}), longs({3, 1}, {1, 3, 1}), In::random({3, 2})}, 1, {{"reduction", std::string("mul")}}},
      {"ScatterND_max", "", "ScatterND", {In::random({2, 3}), longs({2, 2}, {0, 1, 1, -1}), In::random({2})}, 1, {{"reduction", std::string("max")}}},
      {"ScatterND_min", "", "ScatterND", {In::random({2, 3}), longs({2, 2}, {0, 1, 0, 1}), In::random({2})}, 1, {{"reduction", std::string("min")}}},
      {"Shape_all", "", "Shape", {In::random({2, 3, 4})}},
      {"Shape_part", "", "Shape", {In::random({2, 3, 4})}, 1, {{"start", 1_i}, {"end", -1_i}}},
      {"Size_matrix", "", "Size", {In::random({2, 3})}},
      {"Slice_steps", "", "Slice", {In::random({5, 6}), In::ints({1, -1}), In::ints({4, -6}), In::ints({0, 1}), In::ints({2, -2})}},
      {"Slice_clamped", "", "Slice", {In::random({3, 4}), In::ints({-100}), In::ints({INT64_MAX}), In::ints({-1})}},
      {"Slice_reversed", "", "Slice", {In::random({4}), In::ints({INT64_MAX}), In::ints({INT64_MIN}), In::ints({0}), In::ints({-1})}},
      {"Slice_noAxes", "", "Slice", {In::random({3, 4}), In::ints({1, 1}), In::ints({3, 3})}},
      {"Reorder", "stepscope", "Reorder", {In::random({2, 16, 3})}},
      {"SliceGrad_steps",
       "stepscope",
       "SliceGrad",
       {In::random({2, 3}), In::ints({5, 6}), In::ints({1, -1}), In::ints({4, -6}), In::ints({0, 1}), In::ints({2, -2})}},
      {"Split_sizes", "", "Split", {In::random({2, 6}), In::ints({1, 3, 2})}, 3, {{"axis", 1_i}}},
      {"Split_uneven", "", "Split", {In::random({7, 2})}, 3, {{"num_outputs", 3_i}}},
      {"Squeeze_axes", "", "Squeeze", {In::random({1, 3, 1, 2}), In::ints({0, -2})}},
      {"Squeeze_all", "", "Squeeze", {In::random({1, 3, 1})}},
      {"StringNormalizer_lower",
       "",
       "StringNormalizer",
       {In::of(Tensor::strings({3}, {"Monday", "tuesday", "Friday"}))},
       1,
       {{"case_change_action", std::string("LOWER")}, {"stopwords", std::vector<std::string>{"Tuesday"}}}},
      {"Tile_matrix", "", "Tile", {In::random({2, 3}), In::ints({2, 3})}},
      {"TileGrad_matrix", "stepscope", "TileGrad", {In::random({4, 9}), In::ints({2, 3})}},
      {"TopK_largest", "", "TopK", {In::random({3, 5}), In::ints({2})}, 2},
      {"TopK_smallestAxis0", "", "TopK", {In::random({4, 3}), In::ints({3})}, 2, {{"axis", 0_i}, {"largest", 0_i}}},
      {"Transpose_perm", "", "Transpose", {In::random({2, 3, 4})}, 1, {{"perm", list({2, 0, 1})}}},
      {"Transpose_reverse", "", "Transpose", {In::random({2, 3, 4})}},
      {"Transpose_heads", "", "Transpose", {In::random({2, 3, 2, 4})}, 1, {{"perm", list({0, 2, 1, 3})}}},
      {"Trilu_upper", "", "Trilu", {In::random({2, 3, 4}), In::scalarInt(1)}},
      {"Trilu_lower", "", "Trilu", {In::random({4, 3})}, 1, {{"upper", 0_i}}},
      {"CenterCropPad_both", "", "CenterCropPad", {In::random({5, 2, 3}), In::ints({2, 5, 3})}},
      {"CenterCropPad_axes", "", "CenterCropPad", {In::random({3, 4}), In::ints({7})}, 1, {{"axes", list({-1})}}},
      {"Col2Im_overlap",
       "",
       "Col2Im",
       {In::random({1, 8, 9}), In::ints({4, 4}), In::ints({2, 2})}},
      {"Col2Im_pads",
       "",
       "Col2Im",
       {In::random({2, 8, 6}), In::ints({5, 5}), In::ints({2, 2})},
       1,
       {{"pads", list({0, 1, 1, 0})}, {"strides", list({2, 2})}, {"dilations", list({1, 2})}}},
      {"Col2ImGrad_overlap", "stepscope", "Col2ImGrad", {In::random({1, 2, 4, 4}), In::ints({1, 8, 9}), In::ints({2, 2})}},
      {"Compress_axis", "", "Compress", {In::random({3, 4}), bools({true, false, true})}, 1, {{"axis", 1_i}}},
      {"Compress_flat", "", "Compress", {In::random({2, 3}), bools({false, true, true, false, true})}},
      {"ConcatTraining_lengths",
       "com.microsoft",
       "ConcatTraining",
       {In::random({2, 3}), In::random({2, 1})},
       2,
       {{"axis", 1_i}}},
      {"DepthToSpace_dcr", "", "DepthToSpace", {In::random({2, 8, 2, 3})}, 1, {{"blocksize", 2_i}}},
      {"DepthToSpace_crd", "", "DepthToSpace", {In::random({2, 8, 2, 3})}, 1, {{"blocksize", 2_i}, {"mode", std::string("CRD")}}},
      {"FlattenAndUnpad_rows", "com.microsoft", "FlattenAndUnpad", {In::random({2, 3, 2}), longs({3}, {5, 0, 2})}, 2},
      {"PadAndUnflatten_rows", "com.microsoft", "PadAndUnflatten", {In::random({3, 2}), longs({3}, {5, 0, 2}), In::ints({2, 3})}},
      {"ReverseSequence_time0", "", "ReverseSequence", {In::random({4, 3, 2}), longs({3}, {1, 4, 3})}},
      {"ReverseSequence_time1",
       "",
       "ReverseSequence",
       {In::random({3, 4}), longs({3}, {0, 2, 4})},
       1,
       {{"batch_axis", 0_i}, {"time_axis", 1_i}}},
      {"ShrunkenGather_rows", "com.microsoft", "ShrunkenGather", {In::random({4, 3}), longs({2}, {3, 1})}},
      {"SpaceToDepth_block", "", "SpaceToDepth", {In::random({2, 2, 4, 6})}, 1, {{"blocksize", 2_i}}},
      {"SplitTraining_sizes", "com.microsoft", "SplitTraining", {In::random({2, 6}), In::ints({1, 3, 2})}, 3, {{"axis", 1_i}}},
      {"Unique_flat", "", "Unique", {longs({6}, {2, 1, 1, 3, 4, 3})}, 4, {}, 1e-6, false},  // integers
      {"Unique_rows", "", "Unique", {In::random({3, 2})}, 4, {{"axis", 0_i}, {"sorted", 0_i}}},
      {"Unsqueeze_axes", "", "Unsqueeze", {In::random({2, 3}), In::ints({0, -1})}},
  };
}

}  // namespace

std::span<const OpExample> movementExamples() {
  static const std::vector<OpExample> examples = makeExamples();
  return examples;
}

}  // namespace stepscope::testing
