// A model with operators that nobody knows: told at once, with places and help, and the graphs up to there are kept.
#include <gtest/gtest.h>

#include "storage/queries.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// loss = ReduceMean(Bar(Foo(x w))), and Baz beside the way to the loss; the exporter named the nodes after their modules.
onnx::ModelProto unknownOperators() {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  graph.clear_node();
  graph.clear_output();
  auto* domain = model.add_opset_import();
  domain->set_domain("my.ops");
  domain->set_version(1);
  addNode(graph, "MatMul", {"x", "w"}, {"a"}, "/encoder/proj/MatMul");
  addNode(graph, "Foo", {"a"}, {"b"}, "/encoder/foo/Foo")->set_domain("my.ops");
  addNode(graph, "Bar", {"b"}, {"c"}, "/head/bar/Bar")->set_domain("my.ops");
  auto* mean = addNode(graph, "ReduceMean", {"c"}, {"loss"}, "/ReduceMean");
  auto* keep = mean->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  for (const char* name : {"b", "c"}) {
    auto* info = graph.add_value_info();
    *info = graph.input(0);
    info->set_name(name);
  }
  addOutput(graph, "loss");
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  return model;
}

TEST(MissingRules, AreToldAtOnceAndTheGraphsUpToThereAreKept) {
  const TemporaryFolder folder;
  folder.write("m.onnx", unknownOperators().SerializeAsString());
  const auto project = folder.path() / "p.stepscope", graphs = folder.path() / "graphs";
  const Answer answer = run("train " + (folder.path() / "m.onnx").string() + " --loss loss --steps 1 --project " +
                                project.string() + " --save-graphs " + graphs.string(),
                            folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  for (const char* part : {"2 nodes on the way to the loss", "my.ops.Foo '/encoder/foo/Foo'", "my.ops.Bar '/head/bar/Bar'",
                           "module encoder.foo", "module head.bar", "to 'loss': Bar → ReduceMean\n",
                           "module head.bar; to 'loss': ReduceMean;", "hint: export"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << " is not in:\n" << answer.text;
  int saved = 0;
  for (const auto& entry : std::filesystem::directory_iterator(graphs)) {
    const Answer again = run("inspect " + entry.path().string(), folder.path());  // every stage loads again
    EXPECT_EQ(again.exitCode, 0) << again.text;
    ++saved;
  }
  EXPECT_GE(saved, 3) << "load, inline, infer";
  const Answer kept = run("sql " + project.string() + " \"SELECT group_concat(phase) FROM graphs\"", folder.path());
  EXPECT_NE(kept.text.find("infer"), std::string::npos) << kept.text;
  const auto opened = storage::Project::openReadOnly(project);
  ASSERT_TRUE(opened);
  const auto runs = storage::listRuns(*opened);
  ASSERT_TRUE(runs && runs->size() == 1);
  EXPECT_EQ(runs->front().status, "failed");
}

// loss = ReduceMean(Foo(Product(x w) w)): a product that a pass wrote, whose gradient nobody can take, and an operator that
// nobody knows.
TEST(MissingRules, AnOperatorWithoutGradientIsToldWithTheUnknownOnes) {
  auto model = unknownOperators();
  auto& graph = *model.mutable_graph();
  auto* own = model.add_opset_import();
  own->set_domain("stepscope");
  own->set_version(1);
  auto& product = *graph.mutable_node(0);
  product.set_op_type("Product");
  product.set_domain("stepscope");
  product.set_name("/encoder/proj/Product");
  const TemporaryFolder folder;
  const auto file = folder.write("both.onnx", model.SerializeAsString());
  const Answer both = run("build " + file.string() + " --loss loss", folder.path());
  EXPECT_EQ(both.exitCode, 1) << both.text;
  EXPECT_NE(both.text.find("my.ops.Bar '/head/bar/Bar'"), std::string::npos) << both.text;

  for (int i : {1, 2}) {  // known ones now
    graph.mutable_node(i)->clear_domain();
    graph.mutable_node(i)->set_op_type(i == 1 ? "Relu" : "Exp");
  }
  const auto graphs = folder.path() / "graphs";
  const Answer answer = run("build " + folder.write("m.onnx", model.SerializeAsString()).string() +
                                " --loss loss --save-graphs " + graphs.string(),
                            folder.path());
  EXPECT_EQ(answer.exitCode, 1) << answer.text;
  for (const char* part : {"1 node on the way to the loss cannot be differentiated",
                           "stepscope.Product '/encoder/proj/Product': no gradient rule for 'stepscope.Product'",
                           "module encoder.proj", "to the loss: Relu → Exp → ReduceMean", "hint: freeze"})
    EXPECT_NE(answer.text.find(part), std::string::npos) << part << " is not in:\n" << answer.text;
  EXPECT_GE(std::distance(std::filesystem::directory_iterator(graphs), {}), 5)
      << "load, inline, infer, attach loss, pre-grad passes";
}

TEST(MissingRules, AnOperatorWithoutKernelIsToldBeforeAnythingIsBuilt) {
  const TemporaryFolder folder;
  folder.write("m.onnx", unknownOperators().SerializeAsString());
  const Answer answer = run("run " + (folder.path() / "m.onnx").string(), folder.path());
  EXPECT_EQ(answer.exitCode, 1);
  EXPECT_NE(answer.text.find("unknown operator 'my.ops.Foo'"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("unknown operator 'my.ops.Bar'"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace stepscope::testing
