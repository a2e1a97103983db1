// Which stashes are found and taken, on small graphs.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope {
namespace {

// y = Gelu(x · w) `layers` times over 64 rows of 64, then its mean; node names carry the module `block.<i>`.
std::string gelus(int layers) {
  std::string text =
      "ir_version: 10 opset_import { version: 20 } graph { name: \"g\" "
      "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { dim_value: 64 } dim { dim_value: 64 } } } } } ";
  std::string value = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    text += "initializer { name: \"w" + n + "\" data_type: 1 dims: 64 dims: 64 raw_data: \"" +
            std::string(std::size_t{4} * 64 * 64, '=') + "\" } ";
    text += "node { op_type: \"MatMul\" name: \"/block." + n + "/MatMul\" input: \"" + value + "\" input: \"w" + n +
            "\" output: \"h" + n + "\" } ";
    text += "node { op_type: \"Gelu\" name: \"/block." + n + "/Gelu\" input: \"h" + n + "\" output: \"y" + n + "\" } ";
    value = "y" + n;
  }
  return text + "node { op_type: \"ReduceMean\" name: \"mean\" input: \"" + value +
         "\" output: \"loss\" attribute { name: \"keepdims\" type: INT i: 0 } } "
         "output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }";
}

struct Built {
  testing::TemporaryFolder folder;
  std::unique_ptr<Session> session;
};

std::unique_ptr<Built> build(const std::string& text, const std::vector<std::pair<std::string, std::string>>& settings,
                             const std::vector<std::string>& pinned = {}) {
  auto built = std::make_unique<Built>();
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  auto session = Session::open(built->folder.write("model.onnx", model.SerializeAsString()), {}, {});
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return built;
  TrainOptions options;
  for (const auto& [name, value] : settings) {
    const Status status = applySetting(options, name, value, "test");
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
  (*session)->keep(pinned);
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  const Status status = (*session)->build();
  EXPECT_TRUE(status.has_value()) << status.error().message;
  if (status) built->session = std::move(*session);
  return built;
}

std::vector<std::string> repeated(const Session& session) {
  std::vector<std::string> names;
  for (const NodeId id : session.runningGraph().order()) {
    const Node& node = session.runningGraph().node(id);
    if (node.phase == Phase::kRecompute) names.push_back(node.name);
  }
  return names;
}

const snapshot::PassReport& reportOf(const Session& session) {
  const snapshot::PassReport* report = nullptr;
  for (const snapshot::PhaseSpan& span : session.phases())
    if (span.name() == "recompute") report = &span.pass();
  return *report;
}

bool mentions(const snapshot::PassReport& report, const std::string& text) {
  return std::any_of(report.notes().begin(), report.notes().end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(RecomputeChoice, RepeatsNothingUnasked) {
  const auto built = build(gelus(4), {});
  ASSERT_TRUE(built->session);
  EXPECT_TRUE(repeated(*built->session).empty());
  EXPECT_TRUE(mentions(reportOf(*built->session),
                       "pattern 'Gelu+': 3 occurrences, 49152 bytes"));  // the last one is read by the mean alone
}

// ORT's counter stays at 1, so that every count from 1 on means all: reference/ort_graph.md §5.8, quirk 1; Q19.
TEST(RecomputeChoice, HonoursCountsFromTheFrontOfTheModel) {
  const auto two = build(gelus(4), {{"recompute.plan", "Gelu+:1:2"}});
  ASSERT_TRUE(two->session);
  EXPECT_EQ(repeated(*two->session),
            (std::vector<std::string>{"/block.1/Gelu_recompute",
                                      "/block.0/Gelu_recompute"}));  // in the order of the backward phase
  const auto none = build(gelus(4), {{"recompute.plan", "Gelu+:1:0"}}),
             all = build(gelus(4), {{"recompute.plan", "Gelu+:1:-1"}});
  ASSERT_TRUE(none->session && all->session);
  EXPECT_TRUE(repeated(*none->session).empty());
  EXPECT_EQ(repeated(*all->session).size(), 3u);
}

// A clone right before its first reader is what saves memory: reference/ort_graph.md §5.7.
TEST(RecomputeChoice, PutsClonesRightBeforeTheirFirstReader) {
  const auto built = build(gelus(4), {{"recompute.plan", "Gelu+:1:-1"}});
  ASSERT_TRUE(built->session);
  const Graph& graph = built->session->runningGraph();
  for (std::size_t i = 0; i + 1 < graph.order().size(); ++i) {
    const Node& node = graph.node(graph.order()[i]);
    if (node.phase != Phase::kRecompute) continue;
    const Node& next = graph.node(graph.order()[i + 1]);
    EXPECT_TRUE(std::find(next.inputs.begin(), next.inputs.end(), node.outputs[0]) != next.inputs.end())
        << node.name << " before " << next.name;
  }
}

TEST(RecomputeChoice, SaysThatAPatternIsNotThere) {
  const auto built = build(gelus(2), {{"recompute.plan", "Relu+:1:-1"}});
  ASSERT_TRUE(built->session);
  EXPECT_TRUE(mentions(reportOf(*built->session), "requested 'Relu+': no such pattern in this graph"));
  const auto& alerts = built->session->alerts();
  EXPECT_TRUE(std::ranges::any_of(alerts, [](const snapshot::Alert& alert) {
    return alert.message().find("option 'recompute.plan': 'Relu+' is no pattern of this step") != std::string::npos;
  })) << "a plan that does nothing is told, not only noted";
}

// Its names of operators that are one here: the bias belongs to the product.
TEST(RecomputeChoice, UnderstandsThePatternsOfOnnxRuntime) {
  const auto built = build(gelus(4), {{"recompute.plan", "BiasGelu+:1:-1"}});
  ASSERT_TRUE(built->session);
  EXPECT_EQ(repeated(*built->session).size(), 3u);
  EXPECT_TRUE(mentions(reportOf(*built->session), "requested 'BiasGelu+', here 'Gelu+': 3 of 3 occurrences"));
}

TEST(RecomputeChoice, RunsAProductAgainWhenItIsAskedFor) {
  const auto built = build(gelus(4), {{"recompute.plan", "FusedMatMul+:1:2"}});
  ASSERT_TRUE(built->session);
  EXPECT_EQ(repeated(*built->session), (std::vector<std::string>{"/block.1/MatMul_recompute", "/block.0/MatMul_recompute"}));
}

TEST(RecomputeChoice, TakesNoMoreThanTheBudgetNeeds) {
  const auto plain = build(gelus(6), {}), one = build(gelus(6), {{"recompute.plan", "Gelu+:1:1"}});
  ASSERT_TRUE(plain->session && one->session);
  const std::int64_t before = plain->session->planSnapshot()->lower_bound_bytes();
  const auto budgeted = build(gelus(6), {{"recompute.budget", std::to_string(before - 1)}});
  ASSERT_TRUE(budgeted->session);
  EXPECT_EQ(repeated(*budgeted->session).size(), 1u);
  EXPECT_LT(budgeted->session->planSnapshot()->lower_bound_bytes(), before);
  const auto generous = build(gelus(6), {{"recompute.budget", std::to_string(before)}});
  ASSERT_TRUE(generous->session);
  EXPECT_TRUE(repeated(*generous->session).empty());
}

TEST(RecomputeChoice, RunsBlocksAgainWhereSingleStashesAreNotEnough) {
  const auto cheap = build(gelus(12), {{"recompute.plan", "Gelu+:1:-1"}}),
             low = build(gelus(12), {{"recompute.budget", "1"}});
  ASSERT_TRUE(cheap->session && low->session);
  EXPECT_LT(low->session->planSnapshot()->lower_bound_bytes(), cheap->session->planSnapshot()->lower_bound_bytes());
  const auto names = repeated(*low->session);
  EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                          [](const std::string& name) { return name.find("MatMul_recompute") != std::string::npos; }));
}

TEST(RecomputeChoice, LeavesFetchedValuesAlone) {
  const auto built = build(gelus(4), {{"recompute.plan", "Gelu+:1:-1"}}, {"y1"});
  ASSERT_TRUE(built->session);
  EXPECT_EQ(repeated(*built->session).size(), 2u);
  const auto& misses = reportOf(*built->session).near_misses();
  EXPECT_TRUE(std::any_of(misses.begin(), misses.end(), [](const auto& miss) {
    return miss.condition().find("fetched, pinned or an output") != std::string::npos;
  }));
}

// What the report calls costly stays unless its block is chosen.
TEST(RecomputeChoice, NamesWhyAStashStays) {
  const auto built = build(gelus(3), {});
  ASSERT_TRUE(built->session);
  const auto& misses = reportOf(*built->session).near_misses();
  EXPECT_TRUE(std::any_of(misses.begin(), misses.end(),
                          [](const auto& miss) { return miss.condition().find("which is costly") != std::string::npos; }));
}

// ORT counts the last output only: reference/ort_graph.md §5.8, quirk 2; Q20.
TEST(RecomputeChoice, CountsAllStashesOfOneNode) {
  const std::string text =
      "ir_version: 10 opset_import { version: 20 } graph { name: \"g\" input { name: \"x\" type { tensor_type { elem_type: "
      "1 shape { dim { dim_value: 2 } dim { dim_value: 4 } "
      "dim { dim_value: 64 } dim { dim_value: 64 } } } } } initializer { name: \"w\" data_type: 1 dims: 1 float_data: 2 } "
      "node { op_type: \"Mul\" name: \"scale\" input: \"x\" input: \"w\" output: \"s\" } "
      "node { op_type: \"MaxPool\" name: \"pool\" input: \"s\" output: \"p\" attribute { name: \"kernel_shape\" type: INTS "
      "ints: 2 ints: 2 } attribute { name: \"strides\" type: INTS ints: 2 ints: 2 } } "
      "node { op_type: \"Mul\" name: \"square\" input: \"p\" input: \"p\" output: \"q\" } "
      "node { op_type: \"ReduceMean\" name: \"mean\" input: \"q\" output: \"loss\" attribute { name: \"keepdims\" type: INT "
      "i: 0 } } "
      "output { name: \"loss\" type { tensor_type { elem_type: 1 shape { } } } } }";
  const auto built = build(text, {});
  ASSERT_TRUE(built->session);
  // float32[2, 4, 32, 32] and its int64 indices, which the gradient asks for.
  EXPECT_TRUE(mentions(reportOf(*built->session), "pattern 'Mul+MaxPool+': 1 occurrence, 98304 bytes"))
      << reportOf(*built->session).DebugString();
}

}  // namespace
}  // namespace stepscope
