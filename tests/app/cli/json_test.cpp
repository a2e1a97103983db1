// What programs outside this tree read: `--json` as DESIGN §8 says, traces, and the row of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

using Events = std::vector<nlohmann::json>;

Events eventsOfRun(const std::string& arguments, const std::filesystem::path& folder) {
  const Answer answer = run(arguments + " --json", folder);
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  Events events;
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with('{')) events.push_back(nlohmann::json::parse(line));
  return events;
}

const std::string kSample = SS_SAMPLES "/digits/model.onnx --data " SS_SAMPLES "/digits/batches.npz";

TEST(JsonEvents, AreThoseOfTheDesign) {
  const TemporaryFolder folder;
  const std::vector<std::string> phases{"load",
                                        "check",
                                        "inline",
                                        "infer",
                                        "attach loss",
                                        "inspect inputs",
                                        "pre-grad passes",
                                        "gradient",
                                        "post-grad passes",
                                        "optimizer",
                                        "specialise",
                                        "recompute",
                                        "plan",
                                        "bind"};
  for (const std::string command : {"train ", "build "}) {
    const Events events = eventsOfRun(command + kSample, folder.path());
    ASSERT_FALSE(events.empty());
    std::vector<std::string> top;
    int steps = 0;
    for (const auto& event : events) {
      if (event["event"] == "phase") {
        EXPECT_GE(event["ns"].get<std::int64_t>(), 0);
        if (event["depth"] == 0) top.push_back(event["name"]);
        if (event["name"] == "materialise") EXPECT_GT(event["depth"].get<int>(), 0);
      }
      if (event["event"] != "step") continue;
      EXPECT_EQ(event["step"], steps++);
      for (const char* key : {"loss", "ns", "peak_bytes", "planned_bytes"}) EXPECT_TRUE(event[key].is_number()) << key;
    }
    EXPECT_EQ(top, phases);
    EXPECT_EQ(steps, command == "train " ? 1 : 0);
    EXPECT_EQ(events.back()["event"], "done");
    EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const auto& e) { return e["event"] == "done"; }), 1);
  }
}

// Time to start is what is left when the children `materialise` are taken away: reading weights, and filling those that are
// not there.
TEST(JsonEvents, ReadingAndFillingWeightsAreChildrenNamedMaterialise) {
  const TemporaryFolder folder;
  const auto counts = [&](const std::string& arguments) {
    std::vector<std::int64_t> found;
    for (const auto& event : eventsOfRun(arguments, folder.path()))
      if (event["event"] == "phase" && event["name"] == "materialise") {
        EXPECT_EQ(event["depth"], 1);
        found.push_back(event["count"]);
      }
    return found;
  };
  const auto read = counts("build " + kSample);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_GE(read[0], 12) << "tensors in the file";
  auto model = smallModel();
  auto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_float_data();
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = weight.add_external_data();
  location->set_key("location");
  location->set_value("absent.bin");
  const auto file = folder.write("m.onnx", model.SerializeAsString());
  EXPECT_EQ(counts("build " + file.string() + " --loss-fn mse --missing-weights random").back(), 1);
}

// One stream, one object a line, an end that says how it went: for every command, also where it fails.
TEST(JsonEvents, EveryCommandEndsWithDoneOrError) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string(), html = (folder.path() / "r.html").string();
  ASSERT_EQ(run("train " + kSample + " --steps 2 --project " + project, folder.path()).exitCode, 0);
  const std::string model = SS_SAMPLES "/digits/model.onnx";
  const std::string network = (folder.path() / "network.json").string();
  std::ofstream(network) << R"({"levels": [{"name": "here", "latency_ns": 20000, "bytes_per_second": 1e9}]})";
  for (const std::string& command :
       {"run " + kSample, "inspect " + model, "inspect " + project, "report " + project + " -o " + html,
        "compare " + project + " 1 1", "sql " + project + " 'SELECT 1'", "capacity " + model + " --vary batch=1..2",
        "capacity " + model + " --ranks 2..4 --network " + network, "trials " + kSample + " --only cse --rounds 6",
        "ledger " + kSample + " --steps 2", "memory " + kSample, "gradcheck " + kSample + " --node Gemm",
        std::string("options"), std::string("doctor"),
        "recover " + project + " -o " + (folder.path() / "new.stepscope").string(), "forget " + project + " 1"}) {
    const Events events = eventsOfRun(command, folder.path());
    ASSERT_FALSE(events.empty()) << command;
    for (const auto& event : events) EXPECT_TRUE(event.contains("event")) << command << ": " << event;
    EXPECT_EQ(events.back()["event"], "done") << command;
    EXPECT_EQ(events.back().contains("ns"), command.starts_with("run ") || command.starts_with("sql ")) << events.back();
    if (events.back().contains("ns")) EXPECT_GT(events.back()["ns"].get<std::int64_t>(), 0) << command;
    EXPECT_EQ(std::count_if(events.begin(), events.end(), [](const auto& e) { return e["event"] == "done"; }), 1) << command;
  }
}

// Each command of the help, once in a way that fails.
TEST(JsonEvents, EveryCommandThatFailsSaysSoInAnEvent) {
  const TemporaryFolder folder;
  const std::vector<std::string> commands{"train none.onnx",
                                          "build none.onnx",
                                          "precision none.onnx",
                                          "evaluate none.onnx",
                                          "trials none.onnx",
                                          "bisect none.onnx",
                                          "capacity none.onnx",
                                          "artifacts none.onnx -o none",
                                          "import none.stepscope --kineto none.json",
                                          "policy none.stepscope -o none",
                                          "ledger none.onnx",
                                          "memory none.onnx",
                                          "gradcheck none.onnx",
                                          "run none.onnx",
                                          "inspect none.onnx",
                                          "inspect none.stepscope",
                                          "verify none",
                                          "report none -o r.html",
                                          "compare none 1 2",
                                          "sql none 'SELECT 1'",
                                          "recover none -o x",
                                          "forget none 1",
                                          "options --set nonsense",
                                          "plugin check none",
                                          "plugin new Nonsense",
                                          "plugin nonsense none",
                                          "manual nonsense",
                                          "open none.onnx",
                                          "worker nonsense",
                                          "doctor --nonsense",
                                          "train",
                                          "nonsense"};
  std::istringstream help(run("--help", folder.path()).text);
  bool listed = false;
  int known = 0;
  for (std::string line; std::getline(help, line); listed |= line.starts_with("Subcommands")) {
    if (!listed || line.size() < 3 || line[2] == ' ') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2) + " ";
    EXPECT_TRUE(std::any_of(commands.begin(), commands.end(), [&](const auto& c) { return c.starts_with(name); })) << name;
    ++known;
  }
  EXPECT_GT(known, 20);
  for (const std::string& command : commands) {
    const Answer answer = run(command + " --json", folder.path());
    EXPECT_NE(answer.exitCode, 0) << command;
    nlohmann::json event;  // the last one; the text for people goes to the other stream
    std::istringstream lines(answer.text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with('{')) event = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(event.is_object()) << command << ": " << answer.text;
    EXPECT_EQ(event["event"], "error") << command;
    EXPECT_FALSE(event["message"].get<std::string>().empty()) << command;
  }
}

TEST(JsonEvents, NumbersAreNumbersAndNullIsNull) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  ASSERT_EQ(run("train " + kSample + " --project " + project, folder.path()).exitCode, 0);
  const Events rows = eventsOfRun("sql " + project + " \"SELECT 1, 2.5, 'x', NULL, x'00ff'\"", folder.path());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["values"], nlohmann::json::parse(R"([1, 2.5, "x", null, {"blob_bytes": 2}])"));
  EXPECT_EQ(rows[2]["cut"], false);
  const Events many =
      eventsOfRun("sql " + project + " 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'",
                  folder.path());
  EXPECT_EQ(many.back()["cut"], true);
  EXPECT_EQ(many.back()["rows"], many.size() - 2);
  const auto model = eventsOfRun("inspect " SS_SAMPLES "/digits/model.onnx", folder.path())[0];
  EXPECT_TRUE(model["file_bytes"].is_number_integer() && model["parameters"][0]["bytes"].is_number_integer());
  EXPECT_TRUE(model["parameters"][0]["dims"][0].is_number_integer() && model["opsets"].is_object());
  // Extents of inputs are numbers where they are no symbols.
  EXPECT_EQ(model["inputs"][0]["dims"], nlohmann::json::parse(R"(["batch", 1, 8, 8])"));
  for (const auto& option : eventsOfRun("options --set threads=3 --set record.batch=7", folder.path())) {
    if (option.value("name", "") == "threads") EXPECT_EQ(option["value"], 3) << option;
    if (option.value("name", "") == "ring.bytes") EXPECT_EQ(option["default"], 268435456) << option;
    if (option.value("name", "") == "record.batch") EXPECT_EQ(option["value"], "7") << "may also be auto: " << option;
    for (const char* number : {"cuda.streams", "checkpoint.seconds", "checkpoint.keep", "record.keep"})
      if (option.value("name", "") == number) EXPECT_TRUE(option["default"].is_number()) << option;
  }
  const auto machine = eventsOfRun("doctor", folder.path())[0];
  EXPECT_TRUE(machine["memory_bytes"].is_number_integer() && machine["peak"]["levels"][0]["capacity"].is_number_integer());
}

// JSON has no NaN: a null would say that there is no loss.
TEST(JsonEvents, NumbersThatAreNotFiniteAreWords) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  (void)run("train " + kSample + " --lr 1e30 --steps 4 --project " + project, folder.path());
  const auto event = eventsOfRun("inspect " + project, folder.path())[0];
  ASSERT_EQ(event["event"], "run");
  EXPECT_TRUE(event["first_loss"].is_number()) << event;
  EXPECT_TRUE(event["last_loss"] == "NaN" || event["last_loss"] == "Infinity") << event;
}

// Settings are what `options --json` has them as, wherever a command tells of them.
TEST(JsonEvents, SettingsThatCountAreNumbers) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  for (const char* settings : {" --threads 1 --lr 0.5", " --threads 2 --lr 0.25 --set pass.cse=off"})
    ASSERT_EQ(run("train " + kSample + settings + " --project " + project, folder.path()).exitCode, 0);
  std::map<std::string, nlohmann::json> differ;
  const auto comparison = eventsOfRun("compare " + project + " 1 2", folder.path())[0];
  for (const auto& option : comparison["options"]) differ[option["name"]] = {option["a"], option["b"]};
  EXPECT_EQ(differ["threads"], nlohmann::json({1, 2}));
  EXPECT_EQ(differ["lr"], nlohmann::json({0.5, 0.25}));
  EXPECT_EQ(differ["pass.cse"], nlohmann::json({"on", "off"}));
}

// Throughput is of what is trained on; the rest of the batch has its name.
TEST(JsonEvents, StepsSayWhatOfTheirTokensIsPadding) {
  const TemporaryFolder folder;
  const std::string padded = "train " SS_SAMPLES "/padding --steps 2";
  for (const auto& event : eventsOfRun(padded, folder.path())) {
    if (event["event"] != "step") continue;
    EXPECT_GT(event["padding_tokens"].get<std::int64_t>(), 0) << event;
    EXPECT_LT(event["trained_tokens"].get<std::int64_t>(), event["tokens"].get<std::int64_t>()) << event;
  }
  const std::string text = run(padded, folder.path()).text;
  EXPECT_NE(text.find(" % padding"), std::string::npos) << text;
}

// What a command does not use stands in no help of it; it is taken all the same, as scripts of before give it.
TEST(Help, ListsWhatACommandUses) {
  const TemporaryFolder folder;
  const std::string inspect = run("inspect --help", folder.path()).text, options = run("options --help", folder.path()).text;
  EXPECT_NE(inspect.find("--freeze"), std::string::npos);
  EXPECT_EQ(inspect.find("--lr"), std::string::npos);
  EXPECT_NE(options.find("--set"), std::string::npos);
  EXPECT_EQ(options.find("--optimizer"), std::string::npos);
  EXPECT_NE(run("options --lr 0.5", folder.path()).text.find("0.5"), std::string::npos);
}

// The sample run of the storage tests has no operands; a real one has.
TEST(TraceReport, SaysWhatEveryOperatorWasGiven) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string(), trace = (folder.path() / "r.trace.json").string();
  ASSERT_EQ(run("train " + kSample + " --steps 2 --project " + project, folder.path()).exitCode, 0);
  ASSERT_EQ(run("report " + project + " -o " + trace, folder.path()).exitCode, 0);
  const auto json = nlohmann::json::parse(contents(trace));
  int convolutions = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event.value("cat", "") != "cpu_op" || event["name"] != "Conv" || event["args"]["module"] != "stages.0.conv")
      continue;
    ++convolutions;
    EXPECT_EQ(event["args"]["Input Dims"][0], nlohmann::json({32, 1, 8, 8}));
    EXPECT_EQ(event["args"]["Input type"][0], "float32");
  }
  EXPECT_EQ(convolutions, 2);
}

// A project says how its run came about: the report of another day, by another person, needs no memory of it.
TEST(ProjectRow, SaysHowTheRunWasStarted) {
  const TemporaryFolder folder;
  const std::string project = (folder.path() / "p.stepscope").string();
  ASSERT_EQ(run("train " + kSample + " --freeze 'no such, name' --project " + project, folder.path()).exitCode, 0);
  const Answer row = run("sql " + project + " 'SELECT command_line, loss_name, threads > 0 FROM runs'", folder.path());
  EXPECT_NE(row.text.find(std::string(SS_PROGRAM) + " train " SS_SAMPLES "/digits/model.onnx --data "), std::string::npos)
      << row.text;
  EXPECT_NE(row.text.find("--freeze 'no such, name' --project " + project), std::string::npos) << row.text;
  EXPECT_NE(row.text.find("loss  "), std::string::npos) << row.text;
}

}  // namespace
}  // namespace stepscope::testing
