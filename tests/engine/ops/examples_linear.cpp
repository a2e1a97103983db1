#include <limits>

#include "tests/engine/ops/op_example.h"

namespace stepscope::testing {
namespace {

using In = ExampleInput;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kOne = 1;

void addAttention(std::vector<OpExample>& all) {
  const Attributes heads{{"permQ", Ints{0, 2, 1, 3}},
                         {"permK", Ints{0, 2, 1, 3}},
                         {"permV", Ints{0, 2, 1, 3}},
                         {"permY", Ints{0, 2, 1, 3}},
                         {"scale", 0.5F}};
  const auto with = [](Attributes attrs, std::initializer_list<std::pair<std::string, AttrValue>> more) {
    for (const auto& [name, value] : more) attrs.set(name, value);
    return attrs;
  };
  const auto attention = [&](std::string name, std::vector<In> inputs, Attributes attrs, std::size_t outputs = 1) {
    all.push_back({"FusedAttention_" + name, "stepscope", "FusedAttention", std::move(inputs), outputs, std::move(attrs)});
  };
  const In q = In::random({2, 4, 3, 5}), k = In::random({2, 6, 3, 5}), v = In::random({2, 6, 3, 4});
  attention("plain", {In::random({3, 4}), In::random({5, 4}), In::random({5, 2})}, {});
  attention("batches", {In::random({2, 3, 4}), In::random({2, 5, 4}), In::random({2, 5, 4})}, {{"scale", 2.0F}});
  attention("heads_in_place", {q, k, v}, heads);
  attention("stored_by_columns", {In::random({2, 4, 3}), In::random({2, 4, 5}), In::random({2, 6, 5})},
            {{"permQ", Ints{0, 2, 1}}, {"permK", Ints{0, 2, 1}}, {"permV", Ints{0, 2, 1}}, {"permY", Ints{0, 2, 1}}});
  attention("no_neighbours", {In::random({3, 5, 4}), In::random({3, 5, 6}), In::random({2, 5, 6})},
            {{"permQ", Ints{1, 2, 0}}, {"permK", Ints{1, 2, 0}}, {"permV", Ints{1, 2, 0}}});
  attention("mask_added", {q, k, v, In::random({4, 6})}, heads);
  attention("mask_of_keys", {q, k, v, In::random({2, 1, 1, 6})}, heads);
  attention("mask_of_rows", {q, k, v, In::random({2, 3, 4, 1})}, heads);
  // Causal with a number that leaves nothing, so that columns are skipped; the mask is data, with no slope to measure.
  const auto bools = [](Dims dims, const std::vector<int>& contents) {
    const Tensor mask(DType::kBool, std::move(dims));
    for (std::size_t i = 0; i < contents.size(); ++i) static_cast<bool*>(mask.data())[i] = contents[i] != 0;
    return In::of(mask);
  };
  const In causal = bools({4, 6}, {1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0}),
           deadRow = bools({4, 6}, {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0});
  attention("causal", {q, k, v, causal}, with(heads, {{"fill", -3.4e38F}}));
  attention("row_without_keys", {q, k, v, deadRow}, with(heads, {{"fill", -1e30F}}));
  attention("dead_row", {q, k, v, deadRow},
            with(heads, {{"fill", -std::numeric_limits<float>::infinity()}, {"safe", kOne}}));
  attention("inverted", {q, k, v, causal}, with(heads, {{"fill", -1.0F}, {"invert", kOne}}));
  attention("dropout", {q, k, v, causal}, with(heads, {{"fill", -1e4F}, {"dropout", 0.25F}}));
  attention("bounded", {q, k, v, In::random({4, 6})}, with(heads, {{"softcap", 0.7F}}));
  attention("bounded_and_causal", {q, k, v, causal}, with(heads, {{"softcap", 2.0F}, {"fill", -3.4e38F}}));
  // Three groups of two heads, which share keys and values; all heads share them.
  const Attributes groups{{"permQ", Ints{0, 2, 3, 1, 4}},
                          {"permK", Ints{0, 2, 3, 1, 4}},
                          {"permV", Ints{0, 2, 3, 1, 4}},
                          {"permY", Ints{0, 3, 1, 2, 4}},
                          {"scale", 0.5F}};
  const In grouped = In::random({2, 4, 3, 2, 5}), sharedK = In::random({2, 6, 3, 1, 5}),
           sharedV = In::random({2, 6, 3, 1, 4});
  attention("groups", {grouped, sharedK, sharedV}, groups);
  attention("groups_bounded", {grouped, sharedK, sharedV, causal}, with(groups, {{"softcap", 1.5F}, {"fill", -1e30F}}));
  attention("groups_dropped", {grouped, sharedK, sharedV, causal}, with(groups, {{"fill", -1e4F}, {"dropout", 0.25F}}));
  // The same as an attribute: heads of q stay one axis.
  const Attributes three = with(heads, {{"groups", std::int64_t{3}}});
  const In six = In::random({2, 4, 6, 5}), twoK = In::random({2, 6, 2, 5}), twoV = In::random({2, 6, 2, 4});
  attention("grouped_heads", {six, twoK, twoV}, three);
  attention("grouped_heads_bounded", {six, twoK, twoV, causal}, with(three, {{"softcap", 1.5F}, {"fill", -1e30F}}));
  std::vector<int> each;
  for (int i = 0; i < 6 * 4 * 6; ++i) each.push_back(i % 5 != 0);
  attention("grouped_heads_masked_apart", {six, twoK, twoV, bools({6, 4, 6}, each)}, with(three, {{"fill", -1.0F}}));
  attention("grouped_heads_dropped", {In::random({6, 3, 5}), In::random({3, 4, 5}), In::random({3, 4, 2})},
            {{"groups", std::int64_t{2}}, {"dropout", 0.25F}});
  // Three rows of the first batch entry and two of the second; with groups, dropout and a mask that drops columns.
  const auto numbers = [](const Ints& values) { return In::of(Tensor::ints(values)); };
  const In kept = numbers({0, 2, 5});
  attention("kept_rows", {q, k, v, In(), kept}, heads);
  attention("kept_rows_masked", {q, k, v, causal, kept}, with(heads, {{"fill", -3.4e38F}, {"dropout", 0.25F}}));
  attention("kept_rows_grouped", {six, twoK, twoV, causal, numbers({3, 1})}, with(three, {{"fill", -1e30F}}));
  attention("one_key_head", {In::random({3, 2, 4, 5}), In::random({1, 1, 6, 5}), In::random({1, 1, 6, 4})}, {});
  // Parts of one packed projection each; gradients are of the parts. No gradient: views are of passes after it.
  const Attributes views = with(heads, {{"viewQ", Ints{0, 2, 4, 3, 5, 144, 36, 5, 1}},
                                        {"viewK", Ints{15, 2, 6, 3, 5, 216, 36, 5, 1}},
                                        {"viewV", Ints{21, 2, 6, 3, 4, 216, 36, 4, 1}},
                                        {"dropout", 0.25F}});
  const In packed = In::random({2, 6, 36});
  all.push_back({"FusedAttention_views",
                 "stepscope",
                 "FusedAttention",
                 {In::random({2, 4, 36}), packed, packed, causal},
                 2,
                 with(views, {{"fill", -3.4e38F}}),
                 1e-6,
                 false});
  all.push_back({"FusedAttentionGrad_views",
                 "stepscope",
                 "FusedAttentionGrad",
                 {In::random({2, 4, 3, 4}), In::random({2, 3, 4, 2}, 0.5, 1), In::random({2, 4, 36}), packed, packed},
                 3,
                 views,
                 1e-6,
                 false});
  all.push_back({"FusedAttentionGrad_views_grouped",
                 "stepscope",
                 "FusedAttentionGrad",
                 {In::random({2, 4, 6, 4}), In::random({2, 6, 4, 2}, 0.5, 1), In::random({2, 4, 30}), packed, packed},
                 3,
                 with(heads, {{"viewQ", Ints{0, 2, 4, 6, 5, 120, 30, 5, 1}},
                              {"viewK", Ints{2, 2, 6, 2, 5, 216, 36, 5, 1}},
                              {"viewV", Ints{12, 2, 6, 2, 4, 216, 36, 4, 1}},
                              {"groups", std::int64_t{3}}}),
                 1e-6,
                 false});
  // Several tiles of rows and more draws than one block. In f64 the finite differences of so many elements take too long.
  all.push_back({"FusedAttention_tiles",
                 "stepscope",
                 "FusedAttention",
                 {In::random({2, 70, 8}), In::random({2, 3000, 8}), In::random({2, 3000, 4})},
                 2,
                 {{"dropout", 0.5F}},
                 1e-6,
                 false});
  all.push_back({"FusedAttentionGrad_tiles",
                 "stepscope",
                 "FusedAttentionGrad",
                 {In::random({2, 70, 4}), In::random({2, 70, 2}, 0.5, 1), In::random({2, 70, 8}), In::random({2, 3000, 8}),
                  In::random({2, 3000, 4}), In::random({70, 1})},
                 3,
                 {{"scale", 0.3F}, {"dropout", 0.5F}},
                 1e-6,
                 false});
}

void addProducts(std::vector<OpExample>& all) {
  all.push_back({"MatMul_2d", "", "MatMul", {In::random({3, 4}), In::random({4, 5})}});
  all.push_back({"MatMul_3d_by_weight", "", "MatMul", {In::random({2, 3, 4}), In::random({4, 5})}});
  all.push_back({"MatMul_broadcast_batches", "", "MatMul", {In::random({2, 1, 3, 4}), In::random({3, 4, 2})}});
  all.push_back({"MatMul_vectors", "", "MatMul", {In::random({4}), In::random({4})}});
  all.push_back({"MatMul_vector_left", "", "MatMul", {In::random({4}), In::random({2, 4, 3})}});
  all.push_back({"MatMul_vector_right", "", "MatMul", {In::random({2, 3, 4}), In::random({4})}});
  all.push_back({"MatMul_weight_left", "", "MatMul", {In::random({3, 4}), In::random({2, 4, 5})}});
  all.push_back({"MatMul_no_inner", "", "MatMul", {In::random({2, 0}), In::random({0, 3})}});
  all.push_back({"MatMul_int32",
                 "",
                 "MatMul",
                 {In::integers({3, 4}, -9, 9, DType::kI32), In::integers({4, 2}, -9, 9, DType::kI32)},
                 1,
                 {},
                 1e-6,
                 false});  // integers carry no gradient
  for (const std::int64_t transA : {0, 1})
    for (const std::int64_t transB : {0, 1}) {
      const std::string suffix = std::string(transA ? "_At" : "_A") + (transB ? "Bt" : "B");
      const Dims a = transA ? Dims{2, 4, 3} : Dims{2, 3, 4}, b = transB ? Dims{5, 4} : Dims{4, 5};
      all.push_back({"BatchedMatMul" + suffix,
                     "stepscope",
                     "BatchedMatMul",
                     {In::random(a), In::random(b)},
                     1,
                     {{"transA", transA}, {"transB", transB}, {"alpha", 0.5f}}});
      all.push_back({"FusedMatMul" + suffix,
                     "com.microsoft",
                     "FusedMatMul",
                     {In::random(a), In::random({2, b[0], b[1]})},
                     1,
                     {{"transA", transA}, {"transB", transB}, {"alpha", 2.0f}}});
      all.push_back({"Gemm" + suffix,
                     "",
                     "Gemm",
                     {In::random(transA ? Dims{4, 3} : Dims{3, 4}), In::random(b), In::random({5})},
                     1,
                     {{"transA", transA}, {"transB", transB}, {"alpha", 0.5f}, {"beta", 2.0f}}});
    }
  // Rows in which blocks end, an odd number of elements, a vector.
  const auto fourBit = [&](const std::string& name, Dims x, std::int64_t n, std::int64_t k, std::int64_t block,
                           std::int64_t kind, std::int64_t transB) {
    all.push_back({"MatMulBnb4_" + name,
                   "com.microsoft",
                   "MatMulBnb4",
                   {In::random(std::move(x)), In::integers({(n * k + 1) / 2}, 0, 255, DType::kU8),
                    In::random({(n * k + block - 1) / block}, 0.1, 2)},
                   1,
                   {{"N", n}, {"K", k}, {"block_size", block}, {"quant_type", kind}, {"transB", transB}}});
  };
  fourBit("nf4", {2, 3, 20}, 7, 20, 16, 1, 1);
  fourBit("fp4", {3, 21}, 5, 21, 16, 0, 1);
  fourBit("backwards", {2, 3, 7}, 7, 20, 32, 1, 0);
  fourBit("vector", {9}, 3, 9, 64, 1, 1);
  // No gradient: the op is written after it was taken.
  const auto product = [&](std::string name, std::vector<In> inputs, Attributes attrs) {
    all.push_back({"Product_" + name, "stepscope", "Product", std::move(inputs), 1, std::move(attrs), 1e-6, false});
  };
  product("heads_in_place", {In::random({2, 5, 3, 4}), In::random({2, 6, 3, 4})},
          {{"permA", Ints{0, 2, 1, 3}}, {"permB", Ints{0, 2, 3, 1}}, {"alpha", 0.5f}});
  // Parts of packed projections: queries and keys of the first half, values by columns.
  product("views_of_heads", {In::random({2, 5, 24}), In::random({2, 6, 30})},
          {{"viewA", Ints{12, 2, 5, 3, 4, 120, 24, 4, 1}},
           {"viewB", Ints{6, 2, 6, 3, 4, 180, 30, 4, 1}},
           {"permA", Ints{0, 2, 1, 3}},
           {"permB", Ints{0, 2, 3, 1}}});
  product("views_stored_by_columns", {In::random({9, 6}), In::random({9, 7})},
          {{"viewA", Ints{12, 5, 6, 6, 1}}, {"viewB", Ints{22, 5, 5, 7, 1}}, {"permA", Ints{1, 0}}, {"permY", Ints{1, 0}}});
  product("view_of_rows", {In::random({6, 4}), In::random({4, 5}), In::random({5})}, {{"viewA", Ints{8, 3, 4, 4, 1}}});
  product("context_in_place", {In::random({2, 3, 5, 6}), In::random({2, 6, 3, 4})},
          {{"permB", Ints{0, 2, 1, 3}}, {"permY", Ints{0, 2, 1, 3}}});
  product("stored_by_columns", {In::random({7, 3}), In::random({7, 5})}, {{"permA", Ints{1, 0}}, {"permY", Ints{1, 0}}});
  product("bias", {In::random({2, 3, 4}), In::random({5, 4}), In::random({5})}, {{"permB", Ints{1, 0}}});
  product("bias_and_alpha", {In::random({3, 4}), In::random({4, 5}), In::random({5})}, {{"alpha", 0.25f}});
  product("bias_of_batches", {In::random({2, 3, 4}), In::random({2, 4, 5}), In::random({5})}, {});
  product("residual_and_relu", {In::random({2, 3, 4}), In::random({4, 5}), In::random({5}), In::random({2, 3, 5})},
          {{"activation", std::string("Relu")}});
  product("addend_and_alpha", {In::random({3, 4}), In::random({4, 5}), In::none(), In::random({3, 5})}, {{"alpha", 0.5f}});
  product("addend_of_batches", {In::random({2, 3, 4}), In::random({2, 5, 4}), In::none(), In::random({2, 3, 5})},
          {{"permB", Ints{0, 2, 1}}});
  product("no_neighbours", {In::random({3, 5, 4}), In::random({4, 5})},
          {{"permA", Ints{2, 0, 1}}, {"permB", Ints{1, 0}}, {"permY", Ints{1, 2, 0}}});
  const auto epilogue = [&](std::string name, std::vector<In> inputs, std::size_t outputs, Attributes attrs) {
    all.push_back({"EpilogueProduct_" + name, "stepscope", "EpilogueProduct", std::move(inputs), outputs, std::move(attrs),
                   1e-6, false});
  };
  const std::string gelu = "Gelu", slope = "GeluGrad";
  epilogue("gelu", {In::random({2, 3, 4}), In::random({4, 8}), In::random({8})}, 2, {{"activation", gelu}});
  epilogue("gelu_alone", {In::random({3, 4}), In::random({5, 4})}, 1,
           {{"activation", gelu}, {"permB", Ints{1, 0}}, {"alpha", 0.5F}});
  epilogue("slope", {In::random({2, 3, 4}), In::random({8, 4}), In::none(), In::random({2, 3, 8})}, 1,
           {{"activation", slope}, {"permB", Ints{1, 0}}});
  epilogue("sums_of_b", {In::random({6, 3}), In::random({6, 5})}, 2, {{"permA", Ints{1, 0}}, {"sums", std::string("b")}});
  epilogue("sums_of_a", {In::random({6, 3}), In::random({5, 6})}, 2,
           {{"permA", Ints{1, 0}}, {"permB", Ints{1, 0}}, {"sums", std::string("a")}});
  all.push_back({"Gemm_no_bias", "", "Gemm", {In::random({3, 4}), In::random({4, 5})}});
  all.push_back({"Gemm_scalar_bias", "", "Gemm", {In::random({3, 4}), In::random({4, 5}), In::random({})}});
  all.push_back({"Gemm_column_bias", "", "Gemm", {In::random({3, 4}), In::random({4, 5}), In::random({3, 1})}});
  all.push_back({"MatMulInteger_zero_points",
                 "",
                 "MatMulInteger",
                 {In::integers({3, 4}, 0, 255, DType::kU8), In::integers({4, 2}, -128, 127, DType::kI8),
                  In::integers({1}, 0, 255, DType::kU8), In::integers({2}, -128, 127, DType::kI8)}});
  const auto byte = [](Dims dims) { return In::integers(std::move(dims), 0, 255, DType::kU8); };
  all.push_back({"QLinearMatMul_u8",
                 "",
                 "QLinearMatMul",
                 {byte({2, 4}), In::random({}, 0.01, 0.02), byte({}), byte({4, 3}), In::random({}, 0.01, 0.02), byte({}),
                  In::random({}, 0.5, 0.6), byte({})}});
}

void addConvolutions(std::vector<OpExample>& all) {
  const auto conv = [&](const std::string& name, Dims x, Dims w, Attributes attrs, bool bias = true) {
    std::vector<In> inputs{In::random(x), In::random(w)};
    if (bias) inputs.push_back(In::random({w[0]}));
    all.push_back({"Conv_" + name, "", "Conv", inputs, 1, std::move(attrs)});
  };
  conv("1d", {2, 3, 7}, {4, 3, 3}, {{"pads", Ints{1, 0}}});
  conv("2d_strides", {2, 3, 7, 6}, {4, 3, 3, 2}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}});
  conv("2d_dilations", {1, 2, 8, 8}, {3, 2, 3, 3}, {{"dilations", Ints{2, 2}}, {"pads", Ints{2, 1, 0, 2}}}, false);
  conv("2d_groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {{"group", std::int64_t{2}}});
  conv("2d_depthwise", {2, 3, 5, 5}, {3, 1, 3, 3}, {{"group", std::int64_t{3}}, {"pads", Ints{1, 1, 1, 1}}});
  conv("2d_same_upper", {1, 2, 6, 5}, {2, 2, 2, 3}, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}});
  conv("2d_same_lower", {1, 2, 6, 5}, {2, 2, 2, 2}, {{"auto_pad", std::string("SAME_LOWER")}});
  conv("2d_valid", {1, 2, 5, 5}, {2, 2, 3, 3}, {{"auto_pad", std::string("VALID")}});
  conv("3d", {1, 2, 4, 4, 3}, {2, 2, 2, 3, 2}, {{"pads", Ints{0, 1, 0, 1, 1, 1}}});
  const auto internal = [&](const std::string& op, const std::string& forward, Dims first, Dims second, Ints shape,
                            Attributes attrs) {
    all.push_back({op + "_" + forward,
                   "stepscope",
                   op,
                   {In::random(first), In::random(second), In::ints(shape)},
                   1,
                   std::move(attrs)});
  };
  const Attributes strided{{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 1}}, {"group", std::int64_t{2}}};
  internal("ConvInputGrad", "strided_groups", {1, 4, 3, 3}, {4, 2, 3, 2}, {1, 4, 6, 6}, strided);
  internal("ConvWeightGrad", "strided_groups", {1, 4, 3, 3}, {1, 4, 6, 6}, {4, 2, 3, 2}, strided);
  internal("ConvTransposeInputGrad", "strided_groups", {1, 6, 6, 5}, {4, 3, 3, 2}, {1, 4, 3, 3}, strided);
  internal("ConvTransposeWeightGrad", "strided_groups", {1, 6, 6, 5}, {1, 4, 3, 3}, {4, 3, 3, 2}, strided);
  const auto transpose = [&](const std::string& name, Dims x, Dims w, std::int64_t channels, Attributes attrs) {
    all.push_back({"ConvTranspose_" + name,
                   "",
                   "ConvTranspose",
                   {In::random(x), In::random(w), In::random({channels})},
                   1,
                   std::move(attrs)});
  };
  transpose("1d", {1, 2, 4}, {2, 3, 3}, 3, {{"strides", Ints{2}}, {"pads", Ints{1, 0}}});
  transpose("2d_output_padding", {2, 2, 3, 3}, {2, 3, 3, 3}, 3,
            {{"strides", Ints{2, 2}}, {"output_padding", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
  transpose("2d_groups_dilations", {1, 4, 3, 3}, {4, 2, 2, 2}, 4, {{"group", std::int64_t{2}}, {"dilations", Ints{2, 1}}});
  transpose("2d_output_shape", {1, 2, 3, 3}, {2, 2, 3, 3}, 2, {{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}});
  transpose("2d_same_lower", {1, 2, 3, 3}, {2, 2, 3, 3}, 2,
            {{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_LOWER")}});
  const auto byte = [](Dims dims) { return In::integers(std::move(dims), 0, 255, DType::kU8); };
  all.push_back(
      {"ConvInteger_zero_point", "", "ConvInteger", {byte({1, 2, 4, 4}), byte({3, 2, 2, 2}), byte({}), byte({3})}});
  all.push_back({"QLinearConv_u8",
                 "",
                 "QLinearConv",
                 {byte({1, 2, 4, 4}), In::random({}, 0.01, 0.02), byte({}), byte({3, 2, 2, 2}), In::random({3}, 0.01, 0.02),
                  byte({3}), In::random({}, 0.5, 0.6), byte({}), In::integers({3}, -100, 100, DType::kI32)}});
}

void addPools(std::vector<OpExample>& all) {
  const auto pool = [&](const std::string& op, const std::string& name, Dims x, Attributes attrs, std::size_t outputs = 1) {
    all.push_back({op + "_" + name, "", op, {In::random(std::move(x))}, outputs, std::move(attrs)});
  };
  pool("MaxPool", "1d", {2, 2, 7}, {{"kernel_shape", Ints{3}}});
  pool("MaxPool", "2d_pads", {2, 2, 6, 5},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}});
  pool("MaxPool", "2d_ceil", {1, 2, 6, 6}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", kOne}}, 2);
  pool("MaxPool", "2d_dilations", {1, 1, 6, 6}, {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 3}}});
  pool("MaxPool", "2d_column_major", {1, 2, 4, 6},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"storage_order", kOne}}, 2);
  pool("MaxPool", "3d_same", {1, 1, 4, 3, 3}, {{"kernel_shape", Ints{2, 2, 2}}, {"auto_pad", std::string("SAME_UPPER")}});
  pool("AveragePool", "1d", {2, 2, 7}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}});
  for (const std::int64_t counted : {0, 1})
    pool("AveragePool", counted ? "2d_ceil_counting_pads" : "2d_ceil", {1, 2, 6, 5},
         {{"kernel_shape", Ints{3, 2}},
          {"strides", Ints{2, 2}},
          {"pads", Ints{1, 0, 1, 1}},
          {"ceil_mode", kOne},
          {"count_include_pad", counted}});
  pool("AveragePool", "2d_dilations", {1, 1, 6, 6}, {{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 2}}});
  pool("AveragePool", "3d", {1, 2, 3, 4, 3}, {{"kernel_shape", Ints{2, 2, 2}}});
  pool("LpPool", "2d", {1, 2, 5, 5}, {{"kernel_shape", Ints{2, 3}}, {"p", std::int64_t{3}}, {"pads", Ints{1, 1, 0, 0}}});
  pool("GlobalAveragePool", "2d", {2, 3, 4, 5}, {});
  pool("GlobalMaxPool", "2d", {2, 3, 4, 5}, {});
  pool("GlobalLpPool", "2d", {2, 3, 3, 2}, {{"p", std::int64_t{2}}});
  all.push_back({"MaxPoolGrad_overlapping",
                 "stepscope",
                 "MaxPoolGrad",
                 {In::random({1, 1, 3}), In::of(Tensor::of<std::int64_t>({1, 1, 3}, Ints{1, 1, 4})), In::ints({1, 1, 5})}});
  all.push_back({"AveragePoolGrad_1d",
                 "stepscope",
                 "AveragePoolGrad",
                 {In::random({1, 2, 4}), In::ints({1, 2, 5})},
                 1,
                 {{"kernel_shape", Ints{2}}}});
  all.push_back({"LpPoolGrad_1d",
                 "stepscope",
                 "LpPoolGrad",
                 {In::random({1, 2, 4}), In::random({1, 2, 5}), In::random({1, 2, 4}, 1, 2)},
                 1,
                 {{"kernel_shape", Ints{2}}}});
  all.push_back(
      {"GlobalMaxPoolGrad_2d", "stepscope", "GlobalMaxPoolGrad", {In::random({2, 3, 1, 1}), In::random({2, 3, 2, 2})}});
  const In indices = In::of(Tensor::of<std::int64_t>({1, 1, 2, 2}, Ints{5, 7, 13, 15}));
  all.push_back({"MaxUnpool_2d",
                 "",
                 "MaxUnpool",
                 {In::random({1, 1, 2, 2}), indices},
                 1,
                 {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}});
  all.push_back({"MaxUnpoolGrad_2d",
                 "stepscope",
                 "MaxUnpoolGrad",
                 {In::random({1, 1, 5, 5}), indices},
                 1,
                 {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}});
  all.push_back({"MaxUnpool_output_shape",
                 "",
                 "MaxUnpool",
                 {In::random({1, 1, 2, 2}), indices, In::ints({1, 1, 5, 5})},
                 1,
                 {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}});
}

void addEinsums(std::vector<OpExample>& all) {
  const auto einsum = [&](const std::string& name, const std::string& equation, std::vector<Dims> shapes) {
    std::vector<In> inputs;
    for (Dims& shape : shapes) inputs.push_back(In::random(shape));
    all.push_back({"Einsum_" + name, "", "Einsum", inputs, 1, {{"equation", equation}}});
  };
  einsum("matmul", "ij,jk->ik", {{3, 4}, {4, 2}});
  einsum("attention", "bhid,bhjd->bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}});
  einsum("ellipsis", "...ij, ...jk -> ...ik", {{2, 1, 3, 4}, {3, 4, 2}});
  einsum("summed_ellipsis", "...i,i->i", {{2, 3}, {3}});
  einsum("implicit", "ba", {{2, 3}});
  einsum("diagonal", "...ii->...i", {{2, 3, 3}});
  einsum("trace", "ii->", {{3, 3}});
  einsum("row_sums", "ij->i", {{2, 3}});
  einsum("three", "i,j,k->ijk", {{2}, {3}, {2}});
  einsum("inner", "i,i", {{4}, {4}});
  einsum("broadcast_letter", "ij,jk->ik", {{3, 1}, {4, 2}});
  all.push_back({"EinsumGrad_diagonal",
                 "stepscope",
                 "EinsumGrad",
                 {In::random({3}), In::ints({3, 3})},
                 1,
                 {{"equation", std::string("ii->i")}, {"operand", std::int64_t{0}}}});
}

void addResizes(std::vector<OpExample>& all) {
  const auto text = [](const char* value) { return std::string(value); };
  const auto scaled = [&](const std::string& name, Dims x, std::vector<float> scales, Attributes attrs) {
    const Tensor tensor = Tensor::of<float>({static_cast<std::int64_t>(scales.size())}, std::span<const float>(scales));
    all.push_back(
        {"Resize_" + name, "", "Resize", {In::random(std::move(x)), In::none(), In::of(tensor)}, 1, std::move(attrs)});
  };
  const auto sized = [&](const std::string& name, Dims x, Ints sizes, Attributes attrs, In roi = In::none()) {
    all.push_back(
        {"Resize_" + name, "", "Resize", {In::random(std::move(x)), roi, In::none(), In::ints(sizes)}, 1, std::move(attrs)});
  };
  scaled("nearest_up", {1, 1, 2, 3}, {1, 1, 2, 3}, {});
  for (const char* mode : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    scaled(std::string("nearest_") + mode, {1, 1, 4, 5}, {1, 1, 0.6f, 1.7f},
           {{"nearest_mode", text(mode)}, {"coordinate_transformation_mode", text("asymmetric")}});
  for (const char* transform : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"})
    for (const char* mode : {"linear", "cubic"})
      scaled(std::string(mode) + "_" + transform, {1, 1, 4, 3}, {1, 1, 0.6f, 2.3f},
             {{"mode", text(mode)}, {"coordinate_transformation_mode", text(transform)}});
  sized("nearest_tf_half_pixel_for_nn", {1, 1, 4, 5}, {1, 1, 3, 2},
        {{"coordinate_transformation_mode", text("tf_half_pixel_for_nn")}});
  for (const char* mode : {"linear", "cubic"})
    sized(std::string(mode) + "_antialias", {1, 1, 7, 6}, {1, 1, 3, 4},
          {{"mode", text(mode)}, {"antialias", kOne}, {"exclude_outside", kOne}});
  const std::vector<float> roi{0.2f, 0.1f, 0.9f, 1.2f};
  sized("crop", {1, 1, 5, 4}, {3, 4},
        {{"mode", text("linear")},
         {"axes", Ints{2, 3}},
         {"coordinate_transformation_mode", text("tf_crop_and_resize")},
         {"extrapolation_value", 2.0f}},
        In::of(Tensor::of<float>({4}, std::span<const float>(roi))));
  sized("not_larger", {1, 1, 4, 6}, {8, 7},
        {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", text("not_larger")}, {"mode", text("linear")}});
  sized("not_smaller", {1, 1, 4, 6}, {7, 7}, {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", text("not_smaller")}});
  all.push_back({"ResizeGrad_linear",
                 "stepscope",
                 "ResizeGrad",
                 {In::random({1, 1, 4}), In::ints({1, 1, 2}), In::none(), In::none(), In::ints({1, 1, 4})},
                 1,
                 {{"mode", text("linear")}}});
}

// X [3, 2, 2], hidden size 3.
void addSampling(std::vector<OpExample>& all) {
  for (const std::int64_t corners : {0, 1}) {
    all.push_back({corners ? "AffineGrid_2d_corners" : "AffineGrid_2d",
                   "",
                   "AffineGrid",
                   {In::random({2, 2, 3}), In::ints({2, 1, 3, 4})},
                   1,
                   {{"align_corners", corners}}});
    all.push_back({corners ? "AffineGrid_3d_corners" : "AffineGrid_3d",
                   "",
                   "AffineGrid",
                   {In::random({1, 3, 4}), In::ints({1, 1, 2, 1, 3})},
                   1,
                   {{"align_corners", corners}}});
  }
  const auto text = [](const char* value) { return std::string(value); };
  for (const char* padding : {"zeros", "border", "reflection"})
    for (const char* mode : {"linear", "cubic", "nearest"}) {
      const bool corners = text(mode) == "cubic";
      const Attributes attrs{
          {"mode", text(mode)}, {"padding_mode", text(padding)}, {"align_corners", std::int64_t{corners}}};
      // Kinks lie at whole and half positions of the extents 4 and 3.
      std::vector<double> kinks;
      for (int k = -8; k <= 8; ++k)
        for (const int parts : {3, 4, 6}) kinks.push_back(static_cast<double>(k) / parts);
      const In grid = In::random({1, 2, 2, 2}, -1.4, 1.4, kinks);
      const std::string name = text("_") + mode + "_" + padding;
      all.push_back({"GridSample" + name, "", "GridSample", {In::random({1, 2, 4, 3}), grid}, 1, attrs});
      all.push_back({"GridSampleInputGrad" + name,
                     "stepscope",
                     "GridSampleInputGrad",
                     {In::random({1, 2, 2, 2}), grid, In::ints({1, 2, 4, 3})},
                     1,
                     attrs});
      all.push_back({"GridSampleGridGrad" + name,
                     "stepscope",
                     "GridSampleGridGrad",
                     {In::random({1, 2, 2, 2}), In::random({1, 2, 4, 3}), grid},
                     1,
                     attrs});
    }
  all.push_back({"GridSample_3d", "", "GridSample", {In::random({2, 1, 2, 3, 4}), In::random({2, 1, 2, 2, 3}, 0.05, 0.2)}});
  // No gradient: there is no element to compare.
  all.push_back(
      {"GridSample_no_points", "", "GridSample", {In::random({2, 1, 3, 4}), In::random({2, 0, 2, 2})}, 1, {}, 1e-6, false});
  const In rois = In::of(Tensor::of<float>({3, 4}, std::vector<float>{0.5f, 1, 6.5f, 7, 2, 2, 9, 8.5f, 3, 1, 3.2f, 1.1f}));
  const In images = In::of(Tensor::of<std::int64_t>({3}, Ints{1, 0, 1}));
  for (const char* transformation : {"half_pixel", "output_half_pixel"})
    for (const std::int64_t ratio : {0, 2}) {
      const Attributes attrs{{"coordinate_transformation_mode", text(transformation)},
                             {"output_height", std::int64_t{2}},
                             {"output_width", std::int64_t{3}},
                             {"sampling_ratio", ratio},
                             {"spatial_scale", 0.5f}};
      const std::string name = text("_") + transformation + (ratio ? "_2" : "_adaptive");
      all.push_back({"RoiAlign" + name, "", "RoiAlign", {In::random({2, 2, 5, 4}), rois, images}, 1, attrs});
      all.push_back({"RoiAlignGrad" + name,
                     "stepscope",
                     "RoiAlignGrad",
                     {In::random({3, 2, 2, 3}), rois, images, In::ints({2, 2, 5, 4})},
                     1,
                     attrs});
    }
  // No gradient: the rule refuses mode max.
  all.push_back(
      {"RoiAlign_max", "", "RoiAlign", {In::random({2, 2, 5, 4}), rois, images}, 1, {{"mode", text("max")}}, 1e-6, false});
}

void addRecurrent(std::vector<OpExample>& all) {
  const auto text = [](const char* value) { return std::string(value); };
  const auto add = [&](const std::string& op, const std::string& name, std::int64_t gates, Attributes attrs, bool full) {
    const std::int64_t d = attrs.text("direction", "forward") == "bidirectional" ? 2 : 1;
    const bool lstm = op == "LSTM", batchFirst = attrs.integer("layout", 0) != 0;
    attrs.set("hidden_size", std::int64_t{3});
    std::vector<In> inputs{In::random(batchFirst ? Dims{2, 3, 2} : Dims{3, 2, 2}), In::random({d, gates * 3, 2}),
                           In::random({d, gates * 3, 3})};
    if (full) {
      const Dims state = batchFirst ? Dims{2, d, 3} : Dims{d, 2, 3};
      const std::vector<std::int32_t> lengths{3, 2};
      inputs.push_back(In::random({d, 2 * gates * 3}));
      inputs.push_back(In::of(Tensor::of<std::int32_t>({2}, std::span<const std::int32_t>(lengths))));
      inputs.push_back(In::random(state));
      if (lstm) {
        inputs.push_back(In::random(state));
        inputs.push_back(In::random({d, 9}));
      }
    }
    all.push_back({op + "_" + name, "", op, inputs, lstm ? std::size_t{3} : std::size_t{2}, std::move(attrs)});
  };
  for (const auto& [op, gates] : {std::pair<std::string, std::int64_t>{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    add(op, "plain", gates, {}, false);
    add(op, "all_inputs", gates, {}, true);
    add(op, "reverse_batch_first", gates, {{"direction", text("reverse")}, {"layout", kOne}}, true);
    add(op, "bidirectional", gates, {{"direction", text("bidirectional")}}, true);
    std::vector<std::string> names{"Softsign", "ScaledTanh", "Elu"};
    names.resize(op == "LSTM" ? 3 : op == "GRU" ? 2 : 1);
    add(op, "other_activations", gates,
        {{"activations", names},
         {"activation_alpha", std::vector<float>{0.7f, 0.5f}},
         {"activation_beta", std::vector<float>{1.2f}}},
        true);
    const Dims y{3, 1, 2, 3}, w{1, gates * 3, 2}, r{1, gates * 3, 3};
    all.push_back({op + "Grad_forward",
                   "stepscope",
                   op + "Grad",
                   {In::random(y), In::none(), In::none(), In::random({3, 2, 2}), In::random(w), In::random(r)},
                   7,
                   {{"hidden_size", std::int64_t{3}}}});
  }
  add("LSTM", "coupled_gates", 4, {{"input_forget", kOne}}, true);
  add("GRU", "linear_before_reset", 3, {{"linear_before_reset", kOne}}, true);
}

}  // namespace

std::span<const OpExample> linearExamples() {
  static const std::vector<OpExample> all = [] {
    std::vector<OpExample> examples;
    addProducts(examples);
    addAttention(examples);
    addConvolutions(examples);
    addPools(examples);
    addEinsums(examples);
    addResizes(examples);
    addSampling(examples);
    addRecurrent(examples);
    return examples;
  }();
  return all;
}

}  // namespace stepscope::testing
