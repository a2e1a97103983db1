// Layouts of values: what the pass assign_layouts decides changes where elements lie, and nothing that can be seen.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "engine/step/values.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::TestModel;
using testing::testModels;

std::vector<ValueId> blockedValues(const Session& session) {
  std::vector<ValueId> blocked;
  const Graph& graph = session.runningGraph();
  for (std::size_t i = 0; i < graph.valueCapacity(); ++i) {
    const Value& value = graph.value({static_cast<std::int32_t>(i)});
    if (graph.alive(value.id) && value.layout != Layout::kPlain) blocked.push_back(value.id);
  }
  return blocked;
}

// In bfloat16 channels lie last.
struct Trained {
  TestModel model;
  std::string precision;
  bool low() const { return precision != "fp32"; }
};

std::unique_ptr<Session> open(const Trained& trained, std::map<std::string, std::string> settings = {}) {
  settings.insert({{"optimizer", "sgd"}, {"lr", "0.01"}, {"precision", trained.precision}});
  return testing::openSession(trained.model, settings);
}

class Layouts : public ::testing::TestWithParam<Trained> {};

// Every value of the step, seen right after the instruction that made it, by name.
std::map<std::string, Tensor> everyValue(Session& session) {
  std::map<std::string, Tensor> seen;
  EXPECT_TRUE(session.beginStep().has_value());
  const auto plan = session.planSnapshot();
  for (int i = 0; i < plan->instructions_size(); ++i) {
    EXPECT_TRUE(session.stepInstructions(1).has_value());
    for (const auto& out : plan->instructions(i).outputs()) {
      if (out.value() < 0) continue;
      const auto view = session.stepper().value(ValueId{out.value()});
      if (view && isFloating(view->dtype))
        seen[session.runningGraph().value(ValueId{out.value()}).name] =
            Tensor(view->dtype, view->dims, nullptr, view->data).clone();
    }
  }
  EXPECT_TRUE(session.abandonStep().has_value());
  return seen;
}

TEST_P(Layouts, ChangeNoValueThatCanBeSeen) {
  auto blocked = open(GetParam()), plain = open(GetParam(), {{"pass.assign_layouts", "off"}});
  ASSERT_TRUE(blocked && plain);
  EXPECT_GT(blockedValues(*blocked).size(), 4u);
  EXPECT_TRUE(blockedValues(*plain).empty());
  const auto a = everyValue(*blocked), b = everyValue(*plain);
  // Sums in another order are rounded to other neighbours in bfloat16, in every layer once more.
  const double tolerance = GetParam().low() ? 0.1 : 1e-3;
  std::size_t compared = 0;
  for (const auto& [name, expected] : b) {
    const auto found = a.find(name);
    ASSERT_NE(found, a.end()) << name;
    ASSERT_EQ(found->second.dims(), expected.dims()) << name;
    double scale = 1e-3;
    for (std::int64_t k = 0; k < expected.elements(); ++k)
      scale = std::max(scale, std::abs(elementAsDouble(expected.view(), k)));
    for (std::int64_t k = 0; k < expected.elements(); ++k)
      ASSERT_NEAR(elementAsDouble(found->second.view(), k), elementAsDouble(expected.view(), k), tolerance * scale)
          << name << " element " << k;
    ++compared;
  }
  EXPECT_GT(compared, 30u);
}

TEST_P(Layouts, AreDecisionsWithReasons) {
  auto session = open(GetParam());
  ASSERT_NE(session, nullptr);
  const auto plan = session->planSnapshot();
  std::size_t told = 0;
  for (const auto& buffer : plan->buffers()) told += buffer.decision().find("laid out as n") != std::string::npos;
  EXPECT_EQ(told, blockedValues(*session).size());
  std::size_t last = 0;
  for (const ValueId id : blockedValues(*session)) last += session->runningGraph().value(id).layout == Layout::kChannelsLast;
  // Beside the indices of a MaxPool, which are no bfloat16, sixteen channels stay neighbours.
  EXPECT_EQ(last > 4, GetParam().low() && GetParam().model.name == "resnet");
  bool reported = false;
  for (const auto& span : session->phases())
    if (span.name() == "assign_layouts") {
      reported = true;
      EXPECT_GT(span.pass().matches(), 4);
      for (const auto& miss : span.pass().near_misses()) EXPECT_FALSE(miss.condition().empty());
    }
  EXPECT_TRUE(reported);
}

TEST_P(Layouts, FetchEditAndStepBackInLogicalOrder) {
  auto session = open(GetParam());
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->beginStep().has_value());
  const auto plan = session->planSnapshot();
  int made = -1;
  ValueId value;
  for (int i = 0; i < plan->instructions_size() && made < 0; ++i)
    for (const auto& out : plan->instructions(i).outputs())
      if (out.value() >= 0 && session->runningGraph().value(ValueId{out.value()}).layout != Layout::kPlain) {
        made = i;
        value = ValueId{out.value()};
        break;
      }
  ASSERT_GE(made, 0);
  ASSERT_TRUE(session->runTo(made + 1).has_value());
  const auto before = session->stepper().value(value);
  ASSERT_TRUE(before.has_value());
  const Tensor original = Tensor(before->dtype, before->dims, nullptr, before->data).clone();
  ASSERT_EQ(original.dims().size(), 4u);
  // One element far from the origin: only that one changes.
  std::vector<std::int64_t> index;
  for (const std::int64_t extent : original.dims()) index.push_back(extent - 1);
  index[1] = 5;
  const Dims strides = rowMajorStrides(original.dims());
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) offset += index[axis] * strides[axis];
  ASSERT_TRUE(editValue(session->stepper(), value, index, 123.5, false).has_value());
  const auto check = [&](const char* when) {
    const auto after = session->stepper().value(value);
    ASSERT_TRUE(after.has_value()) << when;
    for (std::int64_t k = 0; k < original.elements(); ++k)
      ASSERT_EQ(elementAsDouble(*after, k), k == offset ? 123.5 : elementAsDouble(original.view(), k))
          << when << ", element " << k;
  };
  check("edited");
  ASSERT_TRUE(session->runTo(plan->instructions_size()).has_value());
  ASSERT_TRUE(session->runTo(made + 1).has_value());
  check("after stepping there and back");
  const auto fetched = fetchValue(session->stepper(), value, index, {1, 1, 1, 1}, true, 1);
  ASSERT_TRUE(fetched.has_value());
  const Tensor element(original.dtype(), {1});
  ASSERT_EQ(fetched->data().size(), element.bytes());
  std::memcpy(element.data(), fetched->data().data(), element.bytes());
  EXPECT_EQ(elementAsDouble(element.view(), 0), 123.5);
}

TEST_P(Layouts, ReferenceKernelsUnderstandThemToo) {
  auto fast = open(GetParam()), reference = open(GetParam(), {{"kernels", "reference"}});
  ASSERT_TRUE(fast && reference);
  const auto a = fast->step(), b = reference->step();
  ASSERT_TRUE(a && b);
  EXPECT_NEAR(a->loss(), b->loss(), (GetParam().low() ? 1e-2 : 1e-4) * std::abs(b->loss()));
}

std::vector<Trained> convolutionModels() {
  std::vector<Trained> models;
  for (const TestModel& model : testModels())
    if (model.name == "digits" || model.name == "resnet")
      for (const char* precision : {"fp32", "bf16"}) models.push_back({model, precision});
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, Layouts, ::testing::ValuesIn(convolutionModels()),
                         [](const auto& info) { return info.param.model.name + "_" + info.param.precision; });

}  // namespace
}  // namespace stepscope
