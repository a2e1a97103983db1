// Registries with plugins: who keeps a library loaded, clashes, options, and shapes with symbols.
#include "engine/plugin/plugin_registry.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/build/sha256.h"
#include "engine/plugin/plugin_check.h"
#include "engine/train/session.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/plugin/compile.h"
#include "tests/engine/plugin/noise_model.h"

namespace stepscope {
namespace {

using testing::addFloats;
using testing::addInput;
using testing::addNode;
using testing::addOutput;
using testing::compileGatedNorm;
using testing::compileMyOp;

bool isLoaded(const std::filesystem::path& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

PluginWish wishFor(std::initializer_list<std::filesystem::path> files) {
  PluginWish wish;
  for (const auto& file : files) wish.files.push_back(file.string());
  return wish;
}

// loss = mean(my_op.SoftSign(x w)), x [batch, 3]
std::filesystem::path writeModel(const testing::TemporaryFolder& folder) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto* own = model.add_opset_import();
  own->set_domain("my_op");
  own->set_version(1);
  auto& graph = *model.mutable_graph();
  graph.set_name("soft");
  addInput(graph, "x", {4, 3});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  auto* w = addFloats(graph, "w", {3, 3});
  w->clear_float_data();
  for (int i = 0; i < 9; ++i) w->add_float_data(0.2F * static_cast<float>(i) - 0.7F);
  addNode(graph, "MatMul", {"x", "w"}, {"product"}, "matmul");
  addNode(graph, "SoftSign", {"product"}, {"y"}, "soft")->set_domain("my_op");
  auto* mean = addNode(graph, "ReduceMean", {"y"}, {"loss"}, "mean")->add_attribute();
  mean->set_name("keepdims");
  mean->set_type(onnx::AttributeProto::INT);
  addOutput(graph, "loss");
  return folder.write("soft.onnx", model.SerializeAsString());
}

TEST(PluginLibrary, StaysLoadedAsLongAsASessionKnowsIt) {
  const testing::TemporaryFolder folder;
  const auto file = compileMyOp(folder.path());
  std::unique_ptr<Session> session;
  {
    auto registry = registryWith(wishFor({file}));
    ASSERT_TRUE(registry.has_value()) << registry.error().message;
    EXPECT_EQ(registryWith(wishFor({file}))->get(), registry->get()) << "one registry for one wish";
    ASSERT_EQ(pluginsOf(*registry).size(), 1U);
    auto opened = Session::open(writeModel(folder), {}, {}, nullptr, *registry);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    session = std::move(*opened);
  }
  EXPECT_TRUE(isLoaded(file));
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "dim", "batch=5", "test").has_value());
  ASSERT_TRUE(session->setOptions(options).has_value());
  const Status built = session->build();
  ASSERT_TRUE(built.has_value()) << built.error().message;
  const auto first = session->step();
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_TRUE(std::isfinite(first->loss()));
  const Value& y = session->imported().value(session->imported().findValue("y"));
  EXPECT_EQ(y.type.text(), "float32[batch, 3]") << "the rule ran with symbols";
  session.reset();
  EXPECT_FALSE(isLoaded(file)) << "nobody knows it any more";
}

// Compiles the sample into `file` with y = factor x / (1 + |x|).
void compileScaled(const testing::TemporaryFolder& folder, int factor) {
  std::string source = testing::contents(testing::kSamples + "/my_op/my_op.c");
  for (std::size_t at = source.find("y[i] = x[i]"); at != std::string::npos; at = source.find("y[i] = x[i]", at + 1))
    source.insert(at + std::string("y[i] = ").size(), fmt::format("{} * ", factor));
  testing::compilePlugin(folder.path(), "my_op", folder.write("my_op.c", source).string());
}

TEST(PluginLibrary, ThatChangesIsTakenInThePausedStep) {
  const testing::TemporaryFolder folder;
  compileScaled(folder, 1);
  const PluginWish wish = wishFor({folder.path() / "my_op.so"});
  auto registry = registryWith(wish);
  ASSERT_TRUE(registry.has_value()) << registry.error().message;
  const std::weak_ptr<const PluginLibrary> first = pluginsOf(*registry).at(0);
  auto opened = Session::open(writeModel(folder), {}, {}, nullptr, *registry);
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  Session& session = **opened;
  registry->reset();
  TrainOptions options;
  ASSERT_TRUE(applySetting(options, "dim", "batch=5", "test").has_value());
  ASSERT_TRUE(session.setOptions(options).has_value());
  ASSERT_TRUE(session.build().has_value());
  ASSERT_TRUE(session.step().has_value());
  ASSERT_TRUE(session.beginStep().has_value());
  const auto paused = session.stepPhase(false);  // behind the forward phase
  ASSERT_TRUE(paused.has_value()) << paused.error().message;
  ASSERT_TRUE(paused->has_loss());

  ASSERT_TRUE(session.applyOptions().has_value());
  EXPECT_FALSE(first.expired()) << "nothing has changed";
  compileScaled(folder, 3);
  const Status taken = session.applyOptions();
  ASSERT_TRUE(taken.has_value()) << taken.error().message;
  EXPECT_TRUE(first.expired()) << "no plan knows it any more";
  const auto there = session.stepInstructions(0);
  ASSERT_TRUE(there.has_value()) << there.error().message;
  EXPECT_EQ(there->in_step(), true);
  EXPECT_EQ(there->step(), paused->step());
  EXPECT_EQ(there->instruction(), paused->instruction());
  EXPECT_NEAR(there->loss(), 3 * paused->loss(), 1e-6) << "replayed by the new kernel";
  EXPECT_EQ(session.nextStep(), 1) << "the step before stays";

  // One that is wrong leaves the other one where it was.
  folder.write("broken.c", "int nothing;");
  testing::compilePlugin(folder.path(), "my_op", (folder.path() / "broken.c").string());
  const Status refused = session.applyOptions();
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("no symbol 'stepscope_plugin_entry'"), std::string::npos)
      << refused.error().message;
  // Nor does one that is gone.
  std::filesystem::remove(folder.path() / "my_op.so");
  EXPECT_TRUE(session.applyOptions().has_value());
  const auto finished = session.finishStep();
  ASSERT_TRUE(finished.has_value()) << finished.error().message;
  EXPECT_NEAR(finished->loss(), 3 * paused->loss(), 1e-6);
}

TEST(PluginLibrary, ClashesAreNamed) {
  const testing::TemporaryFolder folder, other;
  const auto file = compileMyOp(folder.path()), again = compileMyOp(other.path());
  const auto twice = registryWith(wishFor({file, file}));
  ASSERT_FALSE(twice.has_value());
  EXPECT_NE(twice.error().message.find("plugin 'my_op': found twice in option 'plugin'"), std::string::npos)
      << twice.error().message;
  const auto both = registryWith(wishFor({file, again}));
  ASSERT_FALSE(both.has_value());
  EXPECT_NE(both.error().message.find("plugin 'my_op': found in plugin 'my_op' ("), std::string::npos)
      << both.error().message;
  EXPECT_NE(both.error().message.find(again.string()), std::string::npos) << both.error().message;
  // Another plugin with the same op: the name of the op is what clashes.
  std::string source = testing::contents(testing::kSamples + "/my_op/my_op.c");
  const std::string name = ".name = \"my_op\"";
  source.replace(source.find(name), name.size(), ".name = \"other\"");
  const auto renamed = testing::compilePlugin(other.path(), "other", other.write("other.c", source).string());
  const auto same = registryWith(wishFor({file, renamed}));
  ASSERT_FALSE(same.has_value());
  EXPECT_NE(same.error().message.find("op 'my_op.SoftSign since version 1': found in plugin 'my_op' ("), std::string::npos)
      << same.error().message;
  EXPECT_NE(same.error().message.find("and in plugin 'other' ("), std::string::npos) << same.error().message;
  EXPECT_FALSE(isLoaded(file)) << "what failed is given back";
}

TEST(PluginLibrary, TwoSideBySide) {
  const testing::TemporaryFolder folder;
  const auto registry = registryWith(wishFor({compileMyOp(folder.path()), compileGatedNorm(folder.path())}));
  ASSERT_TRUE(registry.has_value()) << registry.error().message;
  EXPECT_NE((*registry)->operators().ops.find("my_op", "SoftSign"), nullptr);
  EXPECT_NE((*registry)->operators().ops.find("sample", "GatedRMSNormGrad"), nullptr);
  EXPECT_EQ(Registry::builtIn()->operators().ops.find("my_op", "SoftSign"), nullptr);
}

// What the engine goes by: it knows no other difference between a plugin's op and one of its own.
TEST(PluginOps, AreOfTheClassesThatTheySay) {
  const testing::TemporaryFolder folder;
  const auto registry = registryWith(
      wishFor({compileGatedNorm(folder.path()), compileMyOp(folder.path()), testing::compileCudaNoise(folder.path())}));
  ASSERT_TRUE(registry.has_value()) << registry.error().message;
  const auto& ops = (*registry)->operators().ops;
  struct Said {
    const char *domain, *op;
    OpCategory category;
    Precision precision;
    Recompute recompute;
    std::uint32_t inPlace;
  };
  for (const Said& said :
       {Said{"sample", "GatedRMSNorm", OpCategory::kNormalization, Precision::kF32, Recompute::kCheap, 3},
        Said{"sample", "GatedRMSNormGrad", OpCategory::kNormalization, Precision::kF32, Recompute::kCostly, 0},
        Said{"my_op", "SoftSign", OpCategory::kActivation, Precision::kFollows, Recompute::kCheap, 1},
        Said{"cuda_noise", "Noise", OpCategory::kRandom, Precision::kFollows, Recompute::kCheap, 1}}) {
    const OpDef* op = ops.find(said.domain, said.op);
    ASSERT_NE(op, nullptr) << said.op;
    EXPECT_EQ(op->category, said.category) << said.op;
    EXPECT_EQ(op->precision, said.precision) << said.op;
    EXPECT_EQ(op->recompute, said.recompute) << said.op;
    EXPECT_EQ(op->inPlaceInputs, said.inPlace) << said.op;
    EXPECT_EQ(op->sideEffect, SideEffect::kNone) << said.op;
  }
}

// And of a node that draws, the reason stands in the list of what a step's bits depend on.
TEST(PluginOps, SayWhatTheirBitsDependOn) {
  const testing::TemporaryFolder folder;
  const auto registry = registryWith(wishFor({testing::compileCudaNoise(folder.path())}));
  ASSERT_TRUE(registry.has_value()) << registry.error().message;
  auto session = Session::open(testing::writeNoiseModel(folder), {}, {}, nullptr, *registry);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  ASSERT_TRUE((*session)->build().has_value());
  bool found = false;
  for (const snapshot::Determinism& one : (*session)->determinism())
    found = found || one.reason().find("drawn by seed, micro step, node and element") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST(PluginOptions, TellNameVersionHashAndPath) {
  const testing::TemporaryFolder folder;
  const auto file = compileGatedNorm(folder.path());
  PluginWish wish = wishFor({"gated_rms_norm"});
  wish.folders = {"/nowhere", folder.path().string()};
  const auto registry = registryWith(wish);
  ASSERT_TRUE(registry.has_value()) << registry.error().message;
  const auto library = pluginsOf(*registry).at(0);
  EXPECT_EQ(library->hash().size(), 64U);
  std::map<std::string, std::string> values;
  for (const OptionInfo& info : (*registry)->options()) values[std::string(info.name)] = info.defaultValue;
  EXPECT_EQ(values.at("plugin"), "gated_rms_norm");
  EXPECT_EQ(values.at("plugin.path"), "/nowhere:" + folder.path().string());
  EXPECT_EQ(values.at("plugin.loaded.gated_rms_norm"), fmt::format("1.0.0 sha256:{} {}", library->hash(), file.string()));
  EXPECT_EQ(values.at("gated_rms_norm.least_columns"), "1");
  EXPECT_EQ(values.at("pass.fuse_gated_rms_norm"), "on");
  TrainOptions options;
  const Status changed = applySetting(options, "plugin", "other.so", "test", (*registry)->options());
  ASSERT_FALSE(changed.has_value());
  EXPECT_NE(changed.error().message.find("the session was opened with 'gated_rms_norm', which stays"), std::string::npos)
      << changed.error().message;
  EXPECT_TRUE(applySetting(options, "gated_rms_norm.least_columns", "64", "test", (*registry)->options()).has_value());
}

TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// What plugin check finds: the gradient of a rule that is wrong by a factor.
TEST(PluginCheck, FindsAWrongGradient) {
  const testing::TemporaryFolder folder;
  const auto right = checkPlugins(wishFor({compileMyOp(folder.path())}));
  ASSERT_TRUE(right.has_value()) << right.error().message;
  EXPECT_EQ(right->size(), 12U);
  for (const PluginFinding& finding : *right) EXPECT_NE(finding.verdict, PluginFinding::Verdict::kFailed) << finding.detail;
  std::string source = testing::contents(testing::kSamples + "/my_op/my_op.c");
  const std::string formula = "fabsf(x[i])";
  source.replace(source.find(formula), formula.size(), "fabsf(2 * x[i])");
  const auto wrong =
      checkPlugins(wishFor({testing::compilePlugin(folder.path(), "wrong", folder.write("wrong.c", source).string())}));
  ASSERT_TRUE(wrong.has_value()) << wrong.error().message;
  int failed = 0;
  for (const PluginFinding& finding : *wrong)
    if (finding.verdict == PluginFinding::Verdict::kFailed) {
      ++failed;
      EXPECT_EQ(finding.check + std::to_string(finding.example), "gradient0") << finding.detail;
      EXPECT_NE(finding.detail.find("gradient of input 0 at element 0: found "), std::string::npos) << finding.detail;
    }
  EXPECT_EQ(failed, 1);
}

}  // namespace
}  // namespace stepscope
