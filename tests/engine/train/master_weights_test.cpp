// The type in which parameters are kept: files in float16 and bfloat16, float32 masters of them, and weights in a low type
// with updates that round at random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "engine/state/state_file.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;
using testing::stateBits;
using testing::TemporaryFolder;
using testing::TestModel;

// What PyTorch exports after .half() or .bfloat16(): every float of the file in the low type, inputs and results too.
TestModel inLowType(const TestModel& model, const TemporaryFolder& folder, DType dtype) {
  std::ifstream file(model.model, std::ios::binary);
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(std::string(std::istreambuf_iterator<char>(file), {})));
  const int code = dtype == DType::kF16 ? onnx::TensorProto::FLOAT16 : onnx::TensorProto::BFLOAT16;
  for (onnx::TensorProto& tensor : *proto.mutable_graph()->mutable_initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT) continue;
    Dims dims(tensor.dims().begin(), tensor.dims().end());
    Tensor wide(DType::kF32, dims);
    EXPECT_EQ(tensor.raw_data().size(), wide.bytes());
    std::copy_n(tensor.raw_data().data(), wide.bytes(), static_cast<char*>(wide.data()));
    const Tensor low = convertTensor(wide.view(), dtype);
    tensor.set_data_type(code);
    tensor.set_raw_data(std::string(static_cast<const char*>(low.data()), low.bytes()));
  }
  for (auto* values : {proto.mutable_graph()->mutable_input(), proto.mutable_graph()->mutable_output()})
    for (onnx::ValueInfoProto& value : *values)
      if (auto& type = *value.mutable_type()->mutable_tensor_type(); type.elem_type() == onnx::TensorProto::FLOAT)
        type.set_elem_type(code);
  return {model.name, folder.write(fmt::format("{}_{}.onnx", model.name, dtypeName(dtype)), proto.SerializeAsString()),
          model.data, model.loss};
}

DType typeOf(const Session& session, const std::string& name) {
  const auto state = session.trained().named(true);
  const auto it = state.find(name);
  return it == state.end() ? DType::kUndefined : it->second.dtype;
}

bool notes(const Session& session, std::string_view text) {
  return std::ranges::any_of(session.phases(), [&](const snapshot::PhaseSpan& span) {
    return std::ranges::any_of(span.pass().notes(), [&](const std::string& note) { return note.find(text) != note.npos; });
  });
}

class LowFile : public ::testing::TestWithParam<DType> {};

// As PyTorch trains a module after .half(): parameters and moments in the type of the file, which is said.
TEST_P(LowFile, TrainsAsItIs) {
  const TemporaryFolder folder;
  auto wide = openSession(testing::digits()), low = openSession(inLowType(testing::digits(), folder, GetParam()));
  ASSERT_TRUE(wide && low);
  EXPECT_EQ(typeOf(*low, "head.weight"), GetParam());
  EXPECT_EQ(typeOf(*low, "head.weight.exp_avg"), GetParam());
  EXPECT_TRUE(notes(*low, "as the file has them; master-weights=fp32 keeps float32 of them"));
  for (int step = 0; step < 3; ++step) {
    const auto a = wide->step(), b = low->step();
    ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
    EXPECT_NEAR(b->loss(), a->loss(), 0.02 * std::abs(a->loss())) << "step " << step;
  }
}

// The norm of gradients of float16 is right although its square leaves the type.
TEST_P(LowFile, ClipsWithANormThatItsTypeCannotHold) {
  const TemporaryFolder folder;
  auto wide = openSession(testing::digits(), {{"clip-grad-norm", "1"}}),
       low = openSession(inLowType(testing::digits(), folder, GetParam()), {{"clip-grad-norm", "1"}}),
       rounds =
           openSession(inLowType(testing::digits(), folder, GetParam()), {{"clip-grad-norm", "1"}, {"accumulate", "2"}});
  ASSERT_TRUE(wide && low && rounds);
  const auto a = wide->step(), b = low->step();
  ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
  EXPECT_GT(a->gradient_norm(), 0);
  EXPECT_NEAR(b->gradient_norm(), a->gradient_norm(), 0.02 * a->gradient_norm());
  ASSERT_TRUE(rounds->step() && rounds->step());
}

// Updates below the resolution of the low type add up in float32 masters; without them they are lost.
TEST_P(LowFile, MastersKeepWhatTheLowTypeLoses) {
  const TemporaryFolder folder;
  const TestModel model = inLowType(testing::digits(), folder, GetParam());
  const std::map<std::string, std::string> tiny{{"optimizer", "sgd"}, {"lr", "1e-6"}};
  auto with = tiny;
  with["master-weights"] = "fp32";
  auto plain = openSession(model, tiny), masters = openSession(model, with);
  ASSERT_TRUE(plain && masters);
  EXPECT_EQ(typeOf(*masters, "head.weight"), DType::kF32);
  EXPECT_TRUE(notes(*masters, "kept in float32, cast for their readers"));
  const auto weight = [](const Session& session) {
    return convertTensor(session.trained().named(false).at("head.weight"), DType::kF64);
  };
  const Tensor before = weight(*plain), same = weight(*masters);
  for (std::int64_t i = 0; i < before.elements(); ++i)
    ASSERT_EQ(elementAsDouble(before.view(), i), elementAsDouble(same.view(), i));
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(plain->step() && masters->step());
  const auto moved = [&](const Session& session) {
    const Tensor after = weight(session);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < after.elements(); ++i)
      count += elementAsDouble(after.view(), i) != elementAsDouble(before.view(), i) ? 1 : 0;
    return count;
  };
  EXPECT_LT(moved(*plain), before.elements() / 4);
  EXPECT_GT(moved(*masters), before.elements() / 2);
}

INSTANTIATE_TEST_SUITE_P(Types, LowFile, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(dtypeName(info.param)); });

class Lean : public ::testing::TestWithParam<const char*> {
 protected:
  DType low() const { return std::string(GetParam()) == "bf16" ? DType::kBF16 : DType::kF16; }
};

// Half the memory of weights, no cast of them in the step, moments in float32; trains as float32 does.
TEST_P(Lean, KeepsWeightsInTheLowType) {
  auto wide = openSession(testing::languageModel()),
       lean = openSession(testing::languageModel(),
                          {{"precision", GetParam()}, {"master-weights", "off"}, {"clip-grad-norm", "1"}});
  ASSERT_TRUE(wide && lean);
  std::string matrix;
  for (const auto& [name, view] : lean->trained().named(false))
    if (view.dims.size() == 2 && name.find("mlp") != std::string::npos) matrix = name;
  ASSERT_FALSE(matrix.empty());
  EXPECT_EQ(typeOf(*lean, matrix), low());
  EXPECT_EQ(typeOf(*lean, matrix + ".exp_avg"), DType::kF32);
  const Graph& graph = lean->stepper().graph();
  const UseTable uses = graph.uses();
  for (const Use& use : uses.of(graph.findValue(matrix))) {
    if (use.input == SIZE_MAX) continue;
    EXPECT_TRUE(graph.node(use.node).op != "Cast" || graph.node(use.node).phase == Phase::kOptimizer)
        << graph.node(use.node).label();
  }
  for (int step = 0; step < 4; ++step) {
    const auto a = wide->step(), b = lean->step();
    ASSERT_TRUE(a && b) << (b ? "" : b.error().message);
    EXPECT_NEAR(b->loss(), a->loss(), 0.02 * std::abs(a->loss())) << "step " << step;
  }
}

// Updates far below the distance of neighbours move a part of the weights, in the right mean; another seed moves others.
TEST_P(Lean, SmallUpdatesAreNotLostOnAverage) {
  std::map<std::string, std::string> settings{{"precision", GetParam()}, {"optimizer", "adamw"},    {"lr", "1e-5"},
                                              {"weight-decay", "0"},     {"master-weights", "off"}, {"eps", "1e-12"}};
  auto lean = openSession(testing::languageModel(), settings);
  settings["seed"] = "7";
  auto other = openSession(testing::languageModel(), settings);
  settings.erase("master-weights");
  settings["seed"] = "0";
  auto masters = openSession(testing::languageModel(), settings);
  ASSERT_TRUE(lean && other && masters);
  const auto contents = [](const Session& session) {
    std::map<std::string, Tensor> found;
    for (const auto& [name, view] : session.trained().named(false))
      if (view.elements() > 1000) found[name] = convertTensor(view, DType::kF64);
    return found;
  };
  const auto leanBefore = contents(*lean), mastersBefore = contents(*masters);
  ASSERT_TRUE(lean->step() && other->step() && masters->step());
  const auto leanAfter = contents(*lean), mastersAfter = contents(*masters);
  double size = 0, wanted = 0;
  std::int64_t unmoved = 0, count = 0;
  for (const auto& [name, after] : leanAfter)
    for (std::int64_t i = 0; i < after.elements(); ++i) {
      const double step =
          elementAsDouble(mastersAfter.at(name).view(), i) - elementAsDouble(mastersBefore.at(name).view(), i);
      const double made = elementAsDouble(after.view(), i) - elementAsDouble(leanBefore.at(name).view(), i);
      // Along the direction of the update, so that it does not cancel.
      size += step < 0 ? -made : made;
      wanted += std::abs(step);
      unmoved += made == 0 ? 1 : 0;
      ++count;
    }
  EXPECT_GT(unmoved, count / 4);
  EXPECT_NEAR(size, wanted, 0.1 * wanted);
  EXPECT_NE(stateBits(*lean), stateBits(*other));
}

// There and back, from a file, and with other numbers of threads: the same bits.
TEST_P(Lean, StepsBothWaysAndResumesBitForBit) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> settings{
      {"precision", GetParam()}, {"master-weights", "off"}, {"accumulate", "2"}};
  auto straight = openSession(testing::digits(), settings), walked = openSession(testing::digits(), settings),
       resumed = openSession(testing::digits(), settings);
  ASSERT_TRUE(straight && walked && resumed);
  const auto path = folder.path() / "lean.safetensors";
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(straight->step().has_value());
    ASSERT_TRUE(walked->beginStep().has_value());
    const int count = walked->stepper().count();
    for (const int place : {count, count / 2, count - 1, 1}) ASSERT_TRUE(walked->runTo(place).has_value());
    ASSERT_TRUE(walked->finishStep().has_value());
    EXPECT_EQ(stateBits(*straight) == stateBits(*walked), true) << "step " << step;
    if (step == 1) {
      ASSERT_TRUE(straight->trained().save(path).has_value());
      const Status loaded = resumed->trained().load(path, true);
      ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    } else if (step > 1) {
      ASSERT_TRUE(resumed->step().has_value());
      EXPECT_EQ(stateBits(*straight) == stateBits(*resumed), true) << "step " << step;
    }
  }
}

// A run goes on with what it has trained when the option changes, and a file of one type is read into another.
TEST_P(Lean, TheTypeChangesWithoutLosingTheRun) {
  const TemporaryFolder folder;
  auto session = openSession(testing::digits(), {{"precision", GetParam()}, {"lr", "0.01"}});
  ASSERT_TRUE(session);
  const auto weight = [&] { return convertTensor(session->trained().named(false).at("head.weight"), DType::kF32); };
  const Tensor first = weight();
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session->step().has_value());
  const Tensor trained = weight();
  ASSERT_TRUE(session->trained().save(folder.path() / "wide.safetensors").has_value());
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "master-weights", "off", "test").has_value());
  ASSERT_TRUE(session->setOptions(options) && session->applyOptions());
  EXPECT_EQ(typeOf(*session, "head.weight"), low());
  const Tensor kept = weight();
  double toTrained = 0, toFirst = 0;
  for (std::int64_t i = 0; i < kept.elements(); ++i) {
    toTrained = std::max(toTrained, std::abs(elementAsDouble(kept.view(), i) - elementAsDouble(trained.view(), i)));
    toFirst = std::max(toFirst, std::abs(elementAsDouble(kept.view(), i) - elementAsDouble(first.view(), i)));
  }
  EXPECT_LT(toTrained, 0.1 * toFirst);
  ASSERT_TRUE(session->step().has_value());
  const Status loaded = session->trained().load(folder.path() / "wide.safetensors", true);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const Tensor again = weight();
  EXPECT_TRUE(std::equal(static_cast<const char*>(again.data()), static_cast<const char*>(again.data()) + again.bytes(),
                         static_cast<const char*>(kept.data())));
}

INSTANTIATE_TEST_SUITE_P(Types, Lean, ::testing::Values("bf16", "fp16"), [](const auto& info) { return info.param; });

// A weight below 2^-126 stays, or is zero from the first step on, with any number of threads.
TEST(Subnormals, StayOrAreFlushed) {
  const TemporaryFolder folder;
  for (const auto& [choice, kept] : {std::pair("keep", true), {"flush", false}})
    for (const char* threads : {"1", "3"}) {
      auto session =
          openSession(testing::digits(), {{"optimizer", "sgd"}, {"lr", "0"}, {"subnormals", choice}, {"threads", threads}});
      ASSERT_TRUE(session);
      Tensor tiny(DType::kF32, session->trained().named(false).at("head.bias").dims);
      for (std::int64_t i = 0; i < tiny.elements(); ++i) storeElement(tiny.view(), i, 1e-40);
      ASSERT_TRUE(saveStateFile(folder.path() / "tiny", {{"head.bias", tiny.view()}}, {}).has_value());
      ASSERT_TRUE(session->trained().load(folder.path() / "tiny", false).has_value());
      ASSERT_TRUE(session->step().has_value());
      EXPECT_EQ(elementAsDouble(session->trained().named(false).at("head.bias"), 3) > 0, kept) << choice << " " << threads;
      EXPECT_GT(1e-40F * static_cast<float>(session->nextStep()), 0) << "the caller's own arithmetic";
    }
}

TEST(MasterWeights, WhatHasNoEffectIsSaid) {
  for (const auto& [value, why] : std::map<std::string, std::string>{
           {"fp32", "option 'master-weights': fp32; every parameter is float32 already"},
           {"off", "option 'master-weights': off; precision is fp32, and no parameter is float16 or bfloat16"}}) {
    auto session = openSession(testing::digits(), {{"master-weights", value}});
    ASSERT_TRUE(session);
    EXPECT_TRUE(std::ranges::any_of(session->alerts(), [&](const snapshot::Alert& alert) { return alert.message() == why; }))
        << value;
  }
  TrainOptions options;
  EXPECT_FALSE(applySetting(options, "master-weights", "bf16", "test").has_value());
}

}  // namespace
}  // namespace stepscope
