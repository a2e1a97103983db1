// Keys over real builds: every pass option flipped, and forward values computed again, against the build with defaults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ir/place_key.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::corpusCases;
using testing::TestModel;

// A build with its keys: the graph is a copy, so that another build may follow.
struct Build {
  Graph graph;
  std::vector<NodeId> order;
  std::vector<ValueId> trained;
  std::unique_ptr<KeyIndex> index;
};

std::unique_ptr<Build> keep(const Session& session) {
  auto build = std::make_unique<Build>();
  build->graph = session.runningGraph();
  const auto plan = session.planSnapshot();
  EXPECT_TRUE(plan.has_value());
  for (const auto& instruction : plan->instructions()) {
    const bool computes = instruction.kind() == snapshot::KIND_KERNEL || instruction.kind() == snapshot::KIND_VIEW;
    build->order.push_back(computes ? NodeId{instruction.node()} : NodeId{});  // copies and commits compute nothing
  }
  for (const auto& parameter : session.plans().parameters())
    if (parameter.trained) build->trained.push_back(parameter.value);
  build->index = std::make_unique<KeyIndex>(build->graph);
  return build;
}

bool madeByTheBuild(const Value& value) { return value.role == ValueRole::kConstant; }

// The settings that give another plan of the same model: name, option, value.
std::vector<std::pair<std::string, std::string>> otherSettings() {
  std::vector<std::pair<std::string, std::string>> settings{{"", ""}, {"recompute.budget", "1"}};
  for (const OptionInfo& option : optionTable())
    if (option.name.starts_with("pass.")) settings.emplace_back(option.name, option.defaultValue == "on" ? "off" : "on");
  return settings;
}

std::unique_ptr<Session> build(const TestModel& model, const std::string& option, const std::string& value) {
  // Plain descent: Adam divides by gradients that are almost zero, which makes rounding visible.
  std::map<std::string, std::string> settings{
      {"clip-grad-norm", "1"}, {"accumulate", "2"}, {"optimizer", "sgd"}, {"momentum", "0.9"}};
  if (!option.empty()) settings[option] = value;
  return testing::openSession(model, settings);
}

// The keys of a plan are unique, and each finds the node or value whose key it is, as itself and from its text.
void expectSound(const Build& build) {
  const KeyIndex& index = *build.index;
  std::set<NodeKey> nodes;
  std::set<ValueKey> values;
  for (const NodeId id : build.graph.order()) {
    const auto keys = index.keysOf(id);
    ASSERT_FALSE(keys.empty()) << build.graph.node(id).label();
    EXPECT_EQ(keys.front(), index.keyOf(id));
    for (const NodeKey& key : keys) {
      EXPECT_EQ(index.find(key), id) << key.text();
      EXPECT_TRUE(nodes.insert(key).second) << key.text();
      const auto parsed = NodeKey::parse(key.text());
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
      EXPECT_EQ(*parsed, key) << key.text();
    }
  }
  for (std::size_t i = 0; i < build.graph.valueCapacity(); ++i) {
    const Value& value = build.graph.value({static_cast<std::int32_t>(i)});
    if (!build.graph.alive(value.id)) continue;
    const auto keys = index.keysOf(value.id);
    EXPECT_TRUE(!keys.empty() || madeByTheBuild(value)) << value.name;
    for (const ValueKey& key : keys) {
      EXPECT_EQ(index.find(key), value.id) << key.text();
      EXPECT_TRUE(values.insert(key).second) << key.text();
      const auto parsed = ValueKey::parse(key.text());
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
      EXPECT_EQ(*parsed, key) << key.text();
    }
  }
}

// What the plan does not compute of the imported graph says which pass or phase took it.
void expectReasons(const Graph& imported, const Build& build) {
  std::vector<std::string> names{"attach loss", "specialise", "recompute"};
  for (const OptionInfo& option : optionTable())
    if (option.name.starts_with("pass.")) names.emplace_back(option.name.substr(5));
  const auto namesOne = [&](const std::string& text) {
    return std::any_of(names.begin(), names.end(), [&](const auto& name) { return text.find(name) != std::string::npos; });
  };
  const KeyIndex before(imported), &index = *build.index;
  for (const NodeId id : imported.order()) {
    const NodeKey key = before.keyOf(id);
    const std::string reason = index.absence(key);
    EXPECT_EQ(index.find(key).valid(), reason.empty()) << key.text() << ": " << reason;
    EXPECT_TRUE(reason.empty() || namesOne(reason)) << key.text() << ": " << reason;
    EXPECT_EQ(reason.starts_with("fused"), !index.find(key).valid() && index.carrier(key).valid()) << key.text();
    if (const NodeId carrier = index.carrier(key)) EXPECT_TRUE(build.graph.alive(carrier));
    for (const ValueId out : imported.node(id).outputs) {
      if (!out) continue;
      const ValueKey made = before.keyOf(out);
      EXPECT_TRUE(index.find(made).valid() || namesOne(index.absence(made))) << made.text() << ": " << index.absence(made);
    }
  }
}

void expectSameTypes(const Graph& imported, const Build& a, const Build& b) {
  const KeyIndex before(imported);
  int shared = 0;
  for (std::size_t i = 0; i < imported.valueCapacity(); ++i) {
    const ValueKey key = before.keyOf(ValueId{static_cast<std::int32_t>(i)});
    const ValueId x = key ? a.index->find(key) : ValueId{}, y = key ? b.index->find(key) : ValueId{};
    if (!x || !y) continue;
    ++shared;
    EXPECT_EQ(a.graph.value(x).type.text(), b.graph.value(y).type.text()) << key.text();
  }
  EXPECT_GT(shared, 0);
}

void expectPlaces(const Build& from, const Build& to, bool identical) {
  const std::vector<int> positions = mapPositions(*from.index, from.order, *to.index, to.order);
  ASSERT_EQ(positions.size(), from.order.size() + 1);
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
  EXPECT_EQ(positions.front(), 0);
  EXPECT_EQ(positions.back(), static_cast<int>(to.order.size()));
  // What computes nothing (a commit) belongs to no place of its own.
  for (std::size_t p = 0; identical && p < positions.size(); ++p)
    if (p == from.order.size() || from.order[p]) EXPECT_EQ(positions[p], static_cast<int>(p));
  // Of the instructions that both plans have, most stand before themselves: the order is much the same.
  int both = 0, kept = 0;
  for (std::size_t p = 1; p < from.order.size(); ++p) {
    const NodeId there = to.index->find(from.index->keyOf(from.order[p]));
    if (!there || std::find(to.order.begin(), to.order.end(), there) == to.order.end()) continue;
    ++both;
    const auto place = static_cast<std::size_t>(positions[p]);
    kept += place < to.order.size() && to.order[place] == there;
  }
  EXPECT_GE(kept * 10, both * 9) << kept << " of " << both << "; " << from.order.size() << " and " << to.order.size();
}

class KeysOnModel : public ::testing::TestWithParam<TestModel> {};

TEST_P(KeysOnModel, SurviveEveryOption) {
  const auto session = build(GetParam(), "", "");
  ASSERT_NE(session, nullptr);
  const auto usual = keep(*session);
  for (const auto& [option, value] : otherSettings()) {
    SCOPED_TRACE(option.empty() ? "the same options" : option + "=" + value);
    const auto other = build(GetParam(), option, value);
    ASSERT_NE(other, nullptr);
    const auto changed = keep(*other);
    expectSound(*changed);
    expectReasons(session->imported(), *changed);
    expectSameTypes(session->imported(), *usual, *changed);
    ASSERT_EQ(usual->trained.size(), changed->trained.size());
    for (const ValueId parameter : usual->trained) {
      const ValueKey name = usual->index->keyOf(parameter);
      for (const ValueKey& key : {name, ValueKey::gradient(name), ValueKey::next(name)}) {
        const ValueId a = usual->index->find(key), b = changed->index->find(key);
        ASSERT_TRUE(a.valid()) << key.text() << ": " << usual->index->absence(key);
        ASSERT_TRUE(b.valid()) << key.text() << ": " << changed->index->absence(key);
        EXPECT_EQ(usual->graph.value(a).type.text(), changed->graph.value(b).type.text()) << key.text();
      }
      const NodeKey update = NodeKey::update(name.subject.view());
      EXPECT_TRUE(usual->index->find(update).valid() && changed->index->find(update).valid()) << update.text();
    }
    expectPlaces(*usual, *changed, option.empty());
    expectPlaces(*changed, *usual, option.empty());
    // There and back, by the place that was remembered.
    if (option.empty())
      for (std::size_t p = 0; p <= usual->order.size(); ++p)
        EXPECT_EQ(findPlace(placeOf(*usual->index, usual->order, static_cast<int>(p)), *changed->index, changed->order),
                  static_cast<int>(p));
  }
}

// What every value of a step holds, by key, read as soon as it is made: some 500 elements, spread over it.
using Contents = std::unordered_map<ValueKey, std::vector<double>>;
Contents valuesOf(Session& session, const Build& build) {
  Contents values;
  EXPECT_TRUE(session.step().has_value());  // the second micro step updates
  EXPECT_TRUE(session.beginStep().has_value());
  for (std::size_t i = 0; i < build.order.size(); ++i) {
    const auto position = session.runTo(static_cast<int>(i) + 1);
    EXPECT_TRUE(position.has_value()) << position.error().message;
    if (!position) break;
    if (!build.order[i]) continue;
    for (const ValueId out : build.graph.node(build.order[i]).outputs) {
      if (!out || build.graph.value(out).layout != Layout::kPlain) continue;
      const auto view = session.stepper().value(out);
      if (!view || !isFloating(view->dtype)) continue;
      std::vector<double> numbers;
      const std::int64_t elements = elementCount(view->dims);
      for (std::int64_t k = 0; k < elements; k += std::max<std::int64_t>(1, elements / 500))
        numbers.push_back(elementAsDouble(*view, k));
      for (const ValueKey& key : build.index->keysOf(out)) values[key] = numbers;
    }
  }
  EXPECT_TRUE(session.abandonStep().has_value());
  return values;
}

// The instructions of a plan, by key and operator.
std::vector<std::pair<NodeKey, std::string>> stepsOf(const Build& build) {
  std::vector<std::pair<NodeKey, std::string>> steps;
  for (const NodeId id : build.order)
    if (id) steps.emplace_back(build.index->keyOf(id), build.graph.node(id).op);
  return steps;
}

// A key means the same numbers in every plan.
TEST_P(KeysOnModel, NameTheSameNumbersInEveryPlan) {
  const auto session = build(GetParam(), "", "");
  ASSERT_NE(session, nullptr);
  const auto usual = keep(*session);
  const auto expected = valuesOf(*session, *usual);
  int compared = 0;
  for (const auto& [option, value] : otherSettings()) {
    if (option == "pass.choose_winograd") continue;  // its results differ by more than rounding, as it says
    SCOPED_TRACE(option.empty() ? "the same options" : option + "=" + value);
    const auto other = build(GetParam(), option, value);
    ASSERT_NE(other, nullptr);
    const auto changed = keep(*other);
    if (stepsOf(*changed) == stepsOf(*usual)) continue;  // the option changes nothing here
    ++compared;
    std::size_t shared = 0;
    for (const auto& [key, found] : valuesOf(*other, *changed)) {
      const auto it = expected.find(key);
      if (it == expected.end()) continue;
      ++shared;
      ASSERT_EQ(found.size(), it->second.size()) << key.text();
      double largest = 0, worst = 0;
      for (std::size_t k = 0; k < found.size(); ++k) {
        if (!std::isfinite(it->second[k]) && !std::isfinite(found[k])) continue;
        largest = std::max(largest, std::abs(it->second[k]));
        worst = std::max(worst, std::abs(found[k] - it->second[k]));
      }
      // Rounding of float32 within sums; what is zero but for rounding is measured against the step's usual gradients.
      EXPECT_LE(worst, 1e-3 * largest + 1e-6) << key.text();
    }
    EXPECT_GT(shared, expected.size() / 2) << "of " << expected.size();
  }
  EXPECT_GT(compared, 0);
}

std::vector<TestModel> models() {
  std::vector<TestModel> all{testing::digits(), testing::languageModel()};
  for (TestModel& model : corpusCases({"gelu_forms", "gpt2_lm", "llama_lm", "resnet"})) all.push_back(std::move(model));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, KeysOnModel, ::testing::ValuesIn(models()),
                         [](const auto& info) { return info.param.name; });

TEST(KeysOnCorpus, IsThere) {
  if (models().size() < 5) GTEST_SKIP() << "the corpus does not lie beside the source tree; keys were tried on the samples";
}

}  // namespace
}  // namespace stepscope
