// The graphs of a build: the same bytes on every run, and each of them loads again; and what a long one costs.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

TEST(Stages, AreTheSameOnEveryRunWhateverTheThreadsAndLoadAgain) {
  for (const char* sample : {"digits", "language_model"}) {
    SCOPED_TRACE(sample);
    const TemporaryFolder folder;
    const std::string build =
        std::string("build " SS_SAMPLES "/") + sample + "/model.onnx --optimizer adamw --clip-grad-norm 1 --save-graphs ";
    const auto first = folder.path() / "first", second = folder.path() / "second";
    ASSERT_EQ(run(build + first.string() + " --threads 1", folder.path()).exitCode, 0);
    ASSERT_EQ(run(build + second.string() + " --threads 2", folder.path()).exitCode, 0);
    int stages = 0;
    for (const auto& entry : std::filesystem::directory_iterator(first)) {
      const auto name = entry.path().filename();
      EXPECT_TRUE(contents(entry.path()) == contents(second / name)) << name << " differs: order, names or symbols changed";
      if (name.extension() != ".onnx") continue;
      ++stages;
      for (const char* command : {"inspect ", "run "}) {
        const Answer again = run(command + entry.path().string(), folder.path());
        EXPECT_EQ(again.exitCode, 0) << command << name << ": " << again.text;
      }
      // Nodes of the update run too: what they compute is no memory that nobody wrote.
      const Answer whole = run("run --json " + entry.path().string(), folder.path());
      const auto at = whole.text.find("\"name\":\"stepscope.gradient_norm\"");
      if (name.string().find("optimizer") == std::string::npos) continue;
      ASSERT_NE(at, std::string::npos) << whole.text;
      const auto max = whole.text.rfind("\"max\":", at);  // keys are in order of the alphabet
      ASSERT_NE(max, std::string::npos) << whole.text;
      EXPECT_GT(std::stod(whole.text.substr(max + 6)), 0.01) << whole.text.substr(max, 200);
    }
    EXPECT_GE(stages, 8);
  }
}

// A chain of Mul, Tanh and Add, one parameter for each three nodes: as deep as it has nodes.
onnx::ModelProto chainOf(int nodes) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto& graph = *model.mutable_graph();
  graph.set_name("chain");
  addInput(graph, "x", {2, 8});
  std::string x = "x";
  for (int i = 0; i < nodes / 3; ++i) {
    const std::string n = std::to_string(i);
    auto& weight = *addFloats(graph, "w" + n, {8});
    for (int k = 0; k < 8; ++k) weight.set_float_data(k, 0.001F * static_cast<float>(k));
    addNode(graph, "Mul", {x, "w" + n}, {"s" + n});
    addNode(graph, "Tanh", {"s" + n}, {"t" + n});
    addNode(graph, "Add", {x, "t" + n}, {"y" + n});
    x = "y" + n;
  }
  auto& keep = *addNode(graph, "ReduceMean", {x}, {"loss"})->add_attribute();
  keep.set_name("keepdims");
  keep.set_type(onnx::AttributeProto::INT);
  keep.set_i(0);
  graph.add_output()->set_name("loss");
  return model;
}

double secondsOfChildren() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// From reading the file to the last step, recorded too: four times the nodes take about four times the work, not sixteen.
TEST(Chains, TrainInTimeThatGrowsWithTheirLength) {
  const TemporaryFolder folder;
  std::vector<double> least;
  for (const int nodes : {3'000, 12'000}) {
    const auto model = folder.write("chain.onnx", chainOf(nodes).SerializeAsString());
    double best = 1e9;
    for (int round = 0; round < 2; ++round) {
      const auto project = folder.path() / "p.stepscope";
      std::filesystem::remove(project);
      const double before = secondsOfChildren();
      const Answer answer =
          run("train " + model.string() + " --threads 1 --steps 2 --set record=steps --project " + project.string(),
              folder.path());
      ASSERT_EQ(answer.exitCode, 0) << answer.text;
      best = std::min(best, secondsOfChildren() - before);
    }
    least.push_back(best);
  }
  EXPECT_LT(least[1], 9 * least[0]) << least[0] << " s and " << least[1] << " s";
}

}  // namespace
}  // namespace stepscope::testing
