// The samples as a user has them: compiled out of tree, checked, trained with, and a folder of `plugin new`.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/data/npy.h"
#include "engine/data/safetensors.h"
#include "engine/plugin/plugin_registry.h"
#include "engine/train/session.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/engine/plugin/compile.h"

namespace stepscope::testing {
namespace {

// As exporters write a number that nobody trains.
void addScalar(onnx::GraphProto& graph, const std::string& name, float value) {
  auto* attribute = addNode(graph, "Constant", {}, {name}, name)->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  attribute->mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  attribute->mutable_t()->add_float_data(value);
}

// Two layers of h = RMSNorm(x w) * SiLU(x g), in the nodes that exporters write, and a squared error. `keepsNormal`: the
// first normalised value is read by the loss too.
std::filesystem::path writeModel(const TemporaryFolder& folder, bool keepsNormal) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("gated");
  addInput(graph, "x", {6, 16});
  addInput(graph, "target", {6, 16});
  addScalar(graph, "two", 2);
  addScalar(graph, "epsilon", 1e-5F);
  int seed = 0;
  const auto weights = [&](const std::string& name, std::initializer_list<std::int64_t> dims, float around) {
    auto* tensor = addFloats(graph, name, dims);
    std::int64_t count = 1;
    for (const std::int64_t extent : dims) count *= extent;
    tensor->clear_float_data();
    tensor->clear_raw_data();
    ++seed;
    for (std::int64_t i = 0; i < count; ++i)
      tensor->add_float_data(around + 0.25F * static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 3.1 * seed)));
  };
  const auto mean = [&](const std::string& from, const std::string& to, bool last) {
    auto* node = addNode(graph, "ReduceMean", {from}, {to}, to);
    auto* keep = node->add_attribute();
    keep->set_name("keepdims");
    keep->set_type(onnx::AttributeProto::INT);
    keep->set_i(last ? 1 : 0);
    if (!last) return;
    auto* axes = node->add_attribute();
    axes->set_name("axes");
    axes->set_type(onnx::AttributeProto::INTS);
    axes->add_ints(-1);
  };
  std::string x = "x";
  for (const std::string layer : {"a", "b"}) {
    weights(layer + ".w", {16, 16}, 0);
    weights(layer + ".g", {16, 16}, 0);
    weights(layer + ".scale", {16}, 1);
    addNode(graph, "MatMul", {x, layer + ".w"}, {layer + "/h"}, layer + "/h");
    addNode(graph, "MatMul", {x, layer + ".g"}, {layer + "/gate"}, layer + "/gate");
    addNode(graph, "Pow", {layer + "/h", "two"}, {layer + "/square"}, layer + "/square");
    mean(layer + "/square", layer + "/mean", true);
    addNode(graph, "Add", {layer + "/mean", "epsilon"}, {layer + "/sum"}, layer + "/sum");
    addNode(graph, "Sqrt", {layer + "/sum"}, {layer + "/root"}, layer + "/root");
    addNode(graph, "Div", {layer + "/h", layer + "/root"}, {layer + "/unit"}, layer + "/unit");
    addNode(graph, "Mul", {layer + "/unit", layer + ".scale"}, {layer + "/normal"}, layer + "/normal");
    addNode(graph, "Sigmoid", {layer + "/gate"}, {layer + "/sigmoid"}, layer + "/sigmoid");
    addNode(graph, "Mul", {layer + "/gate", layer + "/sigmoid"}, {layer + "/silu"}, layer + "/silu");
    addNode(graph, "Mul", {layer + "/normal", layer + "/silu"}, {layer + "/y"}, layer + "/y");
    x = layer + "/y";
  }
  addNode(graph, "Sub", {x, "target"}, {"difference"}, "difference");
  std::string last = "difference";
  if (keepsNormal) {
    addNode(graph, "Add", {last, "a/normal"}, {"both"}, "both");
    last = "both";
  }
  addNode(graph, "Pow", {last, "two"}, {"error"}, "error");
  mean("error", "loss", false);
  addOutput(graph, "loss");
  return folder.write(keepsNormal ? "kept.onnx" : "gated.onnx", model.SerializeAsString());
}

std::vector<nlohmann::json> events(const std::string& text, const std::string& kind) {
  std::vector<nlohmann::json> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const auto event = nlohmann::json::parse(line, nullptr, false);
        event.is_object() && event.value("event", "") == kind)
      found.push_back(event);
  return found;
}

TEST(GatedNorm, TrainsAsTheNodesItStandsFor) {
  const TemporaryFolder folder;
  const auto plugin = compileGatedNorm(folder.path()), model = writeModel(folder, false);
  const auto train = [&](const std::string& arguments) {
    return run(fmt::format("train {} --json --steps 12 --lr 0.05 --optimizer adam --seed 5 {}", model.string(), arguments),
               folder.path());
  };
  const Answer fused = train("--plugin " + plugin.string()), plain = train(""),
               off = train("--set pass.fuse_gated_rms_norm=off --plugin " + plugin.string()),
               checked = train("--set plugin.check=on --plugin " + plugin.string());
  for (const Answer* answer : {&fused, &plain, &off, &checked}) ASSERT_EQ(answer->exitCode, 0) << answer->text;
  const auto a = events(fused.text, "step"), b = events(plain.text, "step"), c = events(checked.text, "step");
  ASSERT_EQ(a.size(), 12U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].at("loss").get<double>(), b[i].at("loss").get<double>(), 1e-4) << "step " << i;
    EXPECT_EQ(a[i].at("loss"), c[i].at("loss")) << "the checking mode changes no bit";
  }
  EXPECT_LT(a.back().at("loss").get<double>(), 0.9 * a.front().at("loss").get<double>()) << "it learns";
}

std::unique_ptr<Session> open(const std::filesystem::path& model, const std::shared_ptr<const Registry>& registry,
                              const std::map<std::string, std::string>& settings = {}) {
  auto session = Session::open(model, {}, {}, nullptr, registry);
  if (!session) throw std::runtime_error(session.error().message);
  TrainOptions options;
  for (const auto& [name, value] : settings)
    EXPECT_TRUE(applySetting(options, name, value, "test", registry->options()).has_value()) << name;
  EXPECT_TRUE((*session)->setOptions(options).has_value());
  const Status built = (*session)->build();
  EXPECT_TRUE(built.has_value()) << (built ? "" : built.error().message);
  return std::move(*session);
}

const snapshot::PassReport* reportOf(const Session& session, const std::string& pass) {
  const snapshot::PassReport* found = nullptr;
  for (const snapshot::PhaseSpan& span : session.phases())
    if (span.has_pass() && span.pass().name() == pass) found = &span.pass();
  return found;
}

int nodesOf(const Session& session, const std::string& op) {
  int count = 0;
  for (const NodeId id : session.runningGraph().order()) count += session.runningGraph().node(id).op == op ? 1 : 0;
  return count;
}

TEST(GatedNorm, PassTellsMatchesAndNearMisses) {
  const TemporaryFolder folder;
  PluginWish wish;
  wish.files = {compileGatedNorm(folder.path()).string()};
  const auto registry = registryWith(wish);
  ASSERT_TRUE(registry.has_value()) << registry.error().message;
  const auto both = open(writeModel(folder, false), *registry);
  ASSERT_NE(reportOf(*both, "fuse_gated_rms_norm"), nullptr);
  EXPECT_EQ(reportOf(*both, "fuse_gated_rms_norm")->matches(), 2);
  EXPECT_EQ(nodesOf(*both, "GatedRMSNorm"), 2);
  EXPECT_EQ(nodesOf(*both, "GatedRMSNormGrad"), 2);
  const auto one = open(writeModel(folder, true), *registry);
  const snapshot::PassReport& report = *reportOf(*one, "fuse_gated_rms_norm");
  EXPECT_EQ(report.matches(), 1);
  ASSERT_EQ(report.near_misses_size(), 1);
  EXPECT_EQ(report.near_misses(0).condition(), "the normalised value is read elsewhere too");
  EXPECT_EQ(nodesOf(*one, "GatedRMSNorm"), 1);
  // Its option is read by the pass.
  const auto none = open(writeModel(folder, false), *registry, {{"gated_rms_norm.least_columns", "64"}});
  EXPECT_EQ(reportOf(*none, "fuse_gated_rms_norm")->matches(), 0);
  EXPECT_EQ(reportOf(*none, "fuse_gated_rms_norm")->near_misses_size(), 2);
}

// x and target of three entries, side by side in a .safetensors file, and one by one in an archive.
TEST(NpyTar, FeedsWhatTheSameArraysFeed) {
  const TemporaryFolder folder;
  const auto plugin = compileNpyTar(folder.path()), model = writeModel(folder, false);
  std::filesystem::create_directory(folder.path() / "shards");
  std::map<std::string, Tensor> whole{{"x", Tensor(DType::kF32, {3, 6, 16})}, {"target", Tensor(DType::kF32, {3, 6, 16})}};
  std::map<std::string, TensorView> views;
  for (auto& [name, tensor] : whole) {
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      storeElement(tensor.view(), i, std::sin(0.7 * static_cast<double>(i) + static_cast<double>(name.size())));
    views[name] = tensor.view();
    for (std::size_t entry = 0; entry < 3; ++entry) {
      // The archive has one of them as float64, which is rounded to the input's type.
      TensorView part{tensor.as<float>().data() + entry * 96, DType::kF32, {6, 16}};
      const Tensor wide = convertTensor(part, DType::kF64);
      const auto file = folder.path() / "shards" / fmt::format("00{}.{}.npy", entry, name);
      ASSERT_TRUE(writeNpy(file, name == "x" ? wide.view() : part).has_value());
    }
  }
  ASSERT_TRUE(writeSafetensors(folder.path() / "whole.safetensors", views, {}).has_value());
  const std::string in = folder.path().string();
  ASSERT_EQ(std::system(fmt::format("cd {}/shards && tar --format=ustar -cf ../data.tar *.npy", in).c_str()), 0);
  const auto train = [&](const std::string& data) {
    return run(fmt::format("train {} --json --steps 7 --lr 0.05 --plugin {} --data {}/{}", model.string(), plugin.string(),
                           in, data),
               folder.path());
  };
  const Answer archive = train("data.tar"), file = train("whole.safetensors");
  ASSERT_EQ(archive.exitCode, 0) << archive.text;
  ASSERT_EQ(file.exitCode, 0) << file.text;
  const auto a = events(archive.text, "step"), b = events(file.text, "step");
  ASSERT_EQ(a.size(), 7U);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].at("loss"), b[i].at("loss")) << "step " << i;
  EXPECT_NE(a[0].at("loss"), a[1].at("loss"));

  // What an archive may have wrong.
  const auto broken = [&](const std::string& make) {
    EXPECT_EQ(std::system(fmt::format("cd {}/shards && {}", in, make).c_str()), 0) << make;
    return train("broken.tar");
  };
  const Answer lacking = broken("tar --format=ustar -cf ../broken.tar 000.*.npy 001.x.npy 002.*.npy"),
               cut = broken("head -c 4800 ../data.tar > ../broken.tar"), text = broken("echo no > ../broken.tar"),
               other = broken("cp 000.x.npy 003.y.npy && tar --format=ustar -cf ../broken.tar 000.*.npy 003.*.npy");
  for (const auto& [answer, message] : {std::pair{&lacking, "file '001': lacks an array that the first entry has"},
                                        {&cut, "file '001.x.npy': ends before its elements"},
                                        {&text, "holds no KEY.NAME.npy"},
                                        {&other, "file '003.y.npy': is an array that the first entry lacks"}}) {
    EXPECT_EQ(answer->exitCode, 1) << answer->text;
    EXPECT_NE(answer->text.find("open of reader 'tar of npy files': "), std::string::npos) << answer->text;
    EXPECT_NE(answer->text.find(message), std::string::npos) << answer->text;
  }
}

TEST(PluginCommand, ChecksTheSamples) {
  const TemporaryFolder folder;
  for (const auto& plugin : {compileGatedNorm(folder.path()), compileMyOp(folder.path())}) {
    const Answer answer = run(fmt::format("plugin check {} --json", plugin.string()), folder.path());
    ASSERT_EQ(answer.exitCode, 0) << answer.text;
    int gradients = 0;
    for (const auto& event : events(answer.text, "check")) {
      EXPECT_NE(event.at("verdict"), "failed") << event;
      gradients += event.at("check") == "gradient" ? 1 : 0;
    }
    EXPECT_EQ(gradients, 2);
    EXPECT_EQ(events(answer.text, "done").size(), 1U);
  }
  const Answer none = run(fmt::format("plugin check {}", compileNpyTar(folder.path()).string()), folder.path());
  EXPECT_EQ(none.exitCode, 0) << none.text;
  EXPECT_NE(none.text.find("loads; it has no ops to check"), std::string::npos) << none.text;
}

TEST(PluginCommand, WritesAFolderThatBuildsAndPasses) {
  const TemporaryFolder folder;
  const auto place = folder.path() / "squash";
  const std::string make = fmt::format("plugin new squash -o {}", place.string());
  const Answer made = run(make, folder.path());
  ASSERT_EQ(made.exitCode, 0) << made.text;
  EXPECT_EQ(contents(place / "stepscope_plugin.h"), contents(SS_SOURCE_DIR "/plugins/abi/stepscope_plugin.h"));
  ASSERT_EQ(std::system(fmt::format("make -s -C {}", place.string()).c_str()), 0);
  const Answer checked = run(fmt::format("plugin check {}", (place / "squash.so").string()), folder.path());
  EXPECT_EQ(checked.exitCode, 0) << checked.text;
  EXPECT_NE(checked.text.find("squash.SoftSign"), std::string::npos) << checked.text;
  const Answer again = run(make, folder.path()), named = run("plugin new 'a b'", folder.path());
  EXPECT_EQ(again.exitCode, 1);
  EXPECT_NE(again.text.find("is there already; expected a new folder"), std::string::npos) << again.text;
  EXPECT_EQ(named.exitCode, 2);
  EXPECT_NE(named.text.find("plugin 'a b': found a name that is taken or not in snake_case"), std::string::npos)
      << named.text;
}

// Version, hash and path stand in the project beside the other options of the run.
TEST(GatedNorm, IsStoredWithTheRun) {
  const TemporaryFolder folder;
  const auto plugin = compileGatedNorm(folder.path());
  const auto project = folder.path() / "p.stepscope";
  const Answer trained = run(fmt::format("train {} --steps 2 --plugin {} --project {}", writeModel(folder, false).string(),
                                         plugin.string(), project.string()),
                             folder.path());
  ASSERT_EQ(trained.exitCode, 0) << trained.text;
  const Answer rows =
      run(fmt::format("sql {} \"SELECT name, value FROM options WHERE name LIKE 'plugin%'\" --json", project.string()),
          folder.path());
  EXPECT_EQ(rows.exitCode, 0) << rows.text;
  EXPECT_NE(rows.text.find("1.0.0 sha256:"), std::string::npos) << rows.text;
  EXPECT_NE(rows.text.find(plugin.string()), std::string::npos) << rows.text;
}

}  // namespace
}  // namespace stepscope::testing
