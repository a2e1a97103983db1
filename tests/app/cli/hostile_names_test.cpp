// Names from files on their way to a terminal: an escape sequence would clear the screen, a newline would forge a line.
#include <gtest/gtest.h>

#include "app/cli/terminal.h"
#include "storage/recorder.h"
#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/fuzz/damages.h"

namespace stepscope::testing {
namespace {

const std::string kHostile = "w\x1b[2J\x07\r\nerror: forged\nwarning: forged\u202e\u009b31m";

void expectHarmless(const std::string& text, const std::string& what) {
  for (const char* part : {"\x1b", "\x07", "\r", "\x7f", "\u202e", "\u009b"})
    EXPECT_EQ(text.find(part), std::string::npos) << what << ":\n" << cli::visible(text);
  for (const char* line : {"\nerror: forged", "\nwarning: forged"})
    EXPECT_EQ(("\n" + text).find(line), std::string::npos) << what << ":\n" << cli::visible(text);
}

// Every name is hostile; x → MatMul → op → loss.
onnx::ModelProto hostileModel(const std::string& op) {
  auto model = smallModel();
  auto& graph = *model.mutable_graph();
  model.set_producer_name(kHostile);
  graph.clear_node();
  graph.clear_output();
  graph.mutable_input(0)->set_name(kHostile + "x");
  graph.mutable_initializer(0)->set_name(kHostile + "w");
  addNode(graph, "MatMul", {kHostile + "x", kHostile + "w"}, {kHostile + "a"}, kHostile + "/MatMul");
  addNode(graph, op, {kHostile + "a"}, {kHostile + "b"}, kHostile + "/op");
  auto* keep = addNode(graph, "ReduceMean", {kHostile + "b"}, {kHostile}, kHostile + "/mean")->add_attribute();
  keep->set_name("keepdims");
  keep->set_type(onnx::AttributeProto::INT);
  keep->set_i(0);
  addOutput(graph, kHostile);
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  return model;
}

TEST(Visible, EscapesWhatATerminalObeys) {
  using cli::visible;
  EXPECT_EQ(visible("plain µ → 漢"), "plain µ → 漢");
  EXPECT_EQ(visible("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(visible("\x1b[2J\x07\x7f"), "\\x1b[2J\\x07\\x7f");
  EXPECT_EQ(visible("\u009b31m \u202e \u2066 \u200b \ufeff \u2028"),
            "\\u{009b}31m \\u{202e} \\u{2066} \\u{200b} \\u{feff} \\u{2028}");
  EXPECT_EQ(visible("\xff \xc0\x80 \xed\xa0\x80 \xe2\x82"), "\\xff \\xc0\\x80 \\xed\\xa0\\x80 \\xe2\\x82");
  EXPECT_EQ(visible(std::string("a\0b", 3)), "a\\x00b");
}

TEST(HostileNames, ReachTheTerminalEscaped) {
  const TemporaryFolder folder;
  for (const char* op : {"Relu", "Frob"}) {  // Frob is unknown: error messages with names
    const std::string model = folder.write("m.onnx", hostileModel(op).SerializeAsString()).string();
    for (const std::string command : {"inspect", "build", "train --steps 2", "run", "inspect --json", "build --json",
                                      "train --json --steps 2", "run --json"}) {
      const auto space = command.find(' ');
      const std::string arguments =
          command.substr(0, space) + " " + model + (space == std::string::npos ? "" : command.substr(space));
      const Answer answer = run(arguments, folder.path());
      EXPECT_FALSE(answer.text.empty());
      expectHarmless(answer.text, arguments);
    }
  }
}

TEST(HostileNames, OfAProjectToo) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  {
    auto recorder = storage::Recorder::start(storage::Project::create(project).value()).value();
    for (int run = 0; run < 2; ++run) {
      storage::RunInfo info;
      info.name = info.modelPath = info.optimizer = kHostile;
      snapshot::Option option;
      option.set_name(kHostile);
      option.set_value(kHostile + std::to_string(run));
      info.options.push_back(option);
      recorder->beginRun(std::move(info));
      snapshot::PhaseSpan phase;
      phase.set_name(kHostile);
      recorder->phases({phase});
      snapshot::Plan plan;
      plan.set_signature(kHostile);
      plan.add_instructions()->set_op(kHostile);
      plan.mutable_instructions(0)->set_label(kHostile);
      recorder->plan(plan);
      snapshot::StepRecord step;
      auto* span = step.add_spans();
      span->set_end_ns(1000);
      recorder->step(step);
    }
    ASSERT_TRUE(recorder->close());
  }
  for (const std::string& arguments :
       {"inspect " + project, "inspect --json " + project, "compare " + project + " 1 2",
        "compare --json " + project + " 1 2", "sql " + project + " 'SELECT name, model_path FROM runs'",
        "sql --json " + project + " 'SELECT name FROM runs'", "sql " + project + " 'SELECT 1 AS \"" + kHostile + "\"'",
        "sql --json " + project + " 'SELECT 1 AS \"" + kHostile + "\"'"}) {
    const Answer answer = run(arguments, folder.path());
    EXPECT_EQ(answer.exitCode, 0) << answer.text;
    expectHarmless(answer.text, arguments);
  }
}

// A matcher that recurses needs a stack frame for each letter; one that tries all ways needs 2^40 of them.
TEST(LongNames, CostNoStackAndNoPatience) {
  const TemporaryFolder folder;
  const std::string name(60'000, 'a');
  auto model = hostileModel("Relu");
  auto& graph = *model.mutable_graph();
  graph.mutable_initializer(0)->set_name(name);
  graph.mutable_node(0)->set_input(1, name);
  const std::string file = folder.write("m.onnx", model.SerializeAsString()).string();
  EXPECT_EQ(run("inspect " + file, folder.path()).exitCode, 0);
  for (const char* option :
       {"--train '.*'", "--train '^a+$'", "--freeze '(a*)*b'", "--freeze '(a|aa)+$b'", "--group '(a*)*b:lr=1'"}) {
    const Answer answer = run("train " + file + " --steps 1 " + option, folder.path());
    EXPECT_EQ(answer.exitCode, 0) << option << ": " << answer.text.substr(0, 2000);
  }
  const Answer large = run("train " + file + " --steps 1 --train " + name.substr(0, 50'000), folder.path());
  EXPECT_EQ(large.exitCode, 2) << large.text.substr(0, 2000);
  EXPECT_NE(large.text.find("of 50000 bytes; expected at most 2000"), std::string::npos) << large.text.substr(0, 2000);
  const Answer backwards = run("train " + file + " --freeze '(a)\\1'", folder.path());
  EXPECT_EQ(backwards.exitCode, 2);
  EXPECT_NE(backwards.text.find("neither back-references nor look-around"), std::string::npos) << backwards.text;
}

// A folder's description is a file like any other.
TEST(HostileFiles, DescriptionsOfCaptures) {
  const TemporaryFolder folder;
  folder.write("model.onnx", contents(SS_SAMPLES "/digits/model.onnx"));
  const std::string whole =
      R"({"loss": "loss", "losses": [2.5, 1.5], "parameters": [{"name": "w", "trained": false}, {"name": "b", "trained": true}]})";
  std::vector<std::string> all{R"({"parameters": [{"name": "w", "trained": "no"}]})",
                               R"({"parameters": [{"name": 1}, 2, null]})",
                               R"({"loss": 7, "losses": {"a": 1}, "parameters": {}})",
                               R"({"losses": [null]})",
                               "[[[[",
                               ""};
  for (std::uint64_t seed = 0; seed < 40; ++seed) all.push_back(damaged(whole, seed));
  for (const std::string& text : all) {
    folder.write("capture.json", text);
    const Answer answer = run("train " + folder.path().string() + " --steps 1", folder.path());
    EXPECT_TRUE(answer.exitCode >= 0 && answer.exitCode <= 2) << text << "\n" << answer.text;
    EXPECT_EQ(answer.text.find("internal"), std::string::npos) << text << "\n" << answer.text;
    EXPECT_TRUE(answer.exitCode == 0 || answer.text.find("error: ") != std::string::npos) << text << "\n" << answer.text;
    expectHarmless(answer.text, text);
  }
}

TEST(HostileNames, OfArgumentsInErrors) {
  const TemporaryFolder folder;
  for (const std::string command : {"inspect", "train", "report -o x.html", "sql x"})
    expectHarmless(run(command + " $'" + "a\\x1b[2J\\nerror: forged" + "'", folder.path()).text, command);
}

}  // namespace
}  // namespace stepscope::testing
