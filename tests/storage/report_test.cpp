#include "storage/report/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "engine/snapshot/units.h"
#include "storage/report/data.h"
#include "storage/sqlite.h"
#include "storage/weights_mark.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using Json = nlohmann::json;
constexpr const char* kEvil = "<script>alert(1)</script>\"'&,\n=x";

std::string readAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Report : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TemporaryFolder;
    testing::recordSample(*folder_ / "a.stepscope", {2, 50});
    recordEvil(*folder_ / "evil.stepscope");
  }
  static void TearDownTestSuite() { delete folder_; }

  // A run in which every text is hostile, with a NaN.
  static void recordEvil(const std::filesystem::path& path) {
    auto recorder = Recorder::start(Project::create(path).value()).value();
    RunInfo info = testing::sampleRunInfo();
    info.name = info.lossName = info.weights = info.optimizer = info.device = info.precision = kEvil;
    info.modelPath = std::string("/home/somebody/") + "<script>alert(1)<\\script>.onnx";
    for (auto& option : info.options) {
      option.set_name(kEvil);
      option.set_value(kEvil);
      option.set_doc(kEvil);
      option.set_effect(kEvil);
      option.set_set_by(kEvil);
    }
    info.machine.set_cpu(kEvil);
    info.model.set_producer(kEvil);
    info.model.mutable_inputs(0)->set_name(kEvil);
    recorder->beginRun(info);
    auto phases = testing::samplePhases();
    for (auto& phase : phases) {
      phase.set_name(kEvil);
      phase.set_error(kEvil);
      if (!phase.has_pass()) continue;
      phase.mutable_pass()->set_name(kEvil);
      phase.mutable_pass()->add_notes(kEvil);
      phase.mutable_pass()->add_near_misses()->set_condition(kEvil);
    }
    recorder->phases(phases);
    auto graph = testing::sampleGraph({1, 0});
    for (auto& node : *graph.mutable_nodes()) {
      node.set_name(kEvil);
      node.set_category(kEvil);
      node.mutable_provenance()->set_module_path(kEvil);
    }
    recorder->graph(graph);
    auto plan = testing::samplePlan({1, 0});
    plan.set_signature(kEvil);
    for (auto& i : *plan.mutable_instructions()) {
      i.set_op(kEvil);
      i.set_label(kEvil);
      i.set_implementation(kEvil);
      if (i.has_roof()) i.mutable_roof()->set_bound_by(kEvil);
    }
    plan.mutable_peak()->mutable_levels(0)->set_name(kEvil);
    for (auto& b : *plan.mutable_buffers()) {
      b.set_name(kEvil);
      b.set_decision(kEvil);
      b.set_refusals(0, kEvil);
    }
    for (auto& owner : *plan.mutable_peak_owners()) owner.set_owner(kEvil);
    recorder->plan(plan);
    for (int i = 0; i < 5; ++i) {
      auto step = testing::sampleStep(plan, i);
      step.set_batch(kEvil);
      if (i == 3) step.set_loss(std::nan(""));
      recorder->step(step);
    }
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::ERROR);
    alert.set_code(kEvil);
    alert.set_message(kEvil);
    recorder->alert(alert);
    snapshot::TrialsReport trials;
    for (const int rounds : {15, 0}) {
      snapshot::Trial& trial = *trials.add_trials();
      trial.set_option(kEvil);
      trial.set_from(kEvil);
      trial.set_to(kEvil);
      trial.set_note(kEvil);
      trial.set_verdict(rounds > 0 ? kEvil : "failed");
      trial.set_identical(rounds == 0);
      trial.mutable_parity()->set_compared(true);
      trial.mutable_parity()->set_worst(kEvil);
      trial.mutable_parity()->set_cosine(std::nan(""));
      trial.set_rounds(rounds);
    }
    recorder->trials(trials);
    LedgerRecord ledger;
    ledger.signature = kEvil;
    for (const std::int64_t ns : {1000, 0}) {
      LedgerRow& line = ledger.lines.emplace_back();
      line.phase = line.module = line.op = line.label = line.source = kEvil;
      line.nsKernel = ns;
    }
    ledger.advice.push_back({kEvil, kEvil, kEvil, kEvil, std::nan(""), kEvil});
    recorder->ledger(ledger);
    recorder->endRun(RunStatus::kFailed, kEvil);
    (void)recorder->close();
  }

  static std::string make(const char* project, const char* name) {
    const auto opened = Project::openReadOnly(*folder_ / project);
    EXPECT_TRUE(opened);
    const Status status = writeReport(*opened, 0, *folder_ / name);
    EXPECT_TRUE(status) << status.error().message;
    return readAll(*folder_ / name);
  }

  static testing::TemporaryFolder* folder_;
};
testing::TemporaryFolder* Report::folder_ = nullptr;

std::size_t countOf(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Every start tag is closed in order; names come from a fixed list.
void expectWellFormed(const std::string& page) {
  const std::set<std::string> allowed = {"html", "head",    "title",    "style",   "body",   "div",   "nav",  "b",    "a",
                                         "main", "header",  "h1",       "h2",      "h3",     "p",     "span", "dl",   "dt",
                                         "dd",   "small",   "section",  "table",   "thead",  "tbody", "tr",   "th",   "td",
                                         "i",    "details", "summary",  "ul",      "li",     "svg",   "g",    "rect", "line",
                                         "text", "circle",  "polyline", "polygon", "footer", "meta",  "br"};
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z0-9]+)([^>]*)>");
  const std::size_t body = page.find("</style>");
  for (std::sregex_iterator it(page.begin() + static_cast<std::ptrdiff_t>(body) + 8, page.end(), tag), end; it != end;
       ++it) {
    const std::string name = (*it)[2];
    ASSERT_TRUE(allowed.contains(name)) << (*it)[0];
    const bool closing = (*it)[1].length() > 0;
    const bool selfClosing = std::string((*it)[3]).ends_with("/");
    if (closing && (name == "head" || name == "html")) continue;
    if (closing) {
      ASSERT_FALSE(open.empty()) << (*it)[0];
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    } else if (!selfClosing && name != "br" && name != "meta") {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST_F(Report, HtmlIsOneFileWithoutNetworkOrScript) {
  const std::string page = make("a.stepscope", "r.html");
  EXPECT_EQ(countOf(page, "<script"), 0u);
  EXPECT_EQ(countOf(page, "src="), 0u);
  EXPECT_EQ(countOf(page, "http://") + countOf(page, "https://") + countOf(page, "url("), 0u);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
  expectWellFormed(page);
}

TEST_F(Report, HtmlHasEveryPart) {
  const std::string page = make("a.stepscope", "r.html");
  for (const char* id : {"alerts", "loss", "time", "ops", "instructions", "roofline", "memory", "startup", "passes",
                         "options", "machine", "steps"})
    EXPECT_NE(page.find("<section id=\"" + std::string(id) + "\""), std::string::npos) << id;
  EXPECT_NE(page.find("gpt_small.onnx"), std::string::npos);
  EXPECT_NE(page.find("tokens/s"), std::string::npos);
  EXPECT_NE(page.find("lower bound"), std::string::npos);
  EXPECT_EQ(page.find("somebody"), std::string::npos) << "no folder of the user";
}

TEST_F(Report, HtmlEscapesEveryName) {
  const std::string page = make("evil.stepscope", "evil.html");
  EXPECT_EQ(countOf(page, "<script"), 0u);
  EXPECT_GT(countOf(page, "&lt;script&gt;"), 20u);
  expectWellFormed(page);
}

// The same document in words: every section, tables whose columns stand below each other, nothing that a terminal obeys.
TEST_F(Report, TextHasEveryPart) {
  const std::string page = make("a.stepscope", "r.txt");
  for (const char* title : {"Alerts", "Training", "Step time", "Operators", "Instructions", "Roofline", "Memory", "Start-up",
                            "Passes", "Options", "Model and machine", "Steps"})
    EXPECT_NE(page.find(fmt::format("\n{}\n{}\n", title, std::string(std::string_view(title).size(), '-'))),
              std::string::npos)
        << title;
  EXPECT_NE(page.find("Loss over steps: "), std::string::npos) << "a chart in words";
  const std::string evil = make("evil.stepscope", "evil.txt");
  EXPECT_NE(evil.find("<script>"), std::string::npos) << "text is no markup";
  for (const char c : evil) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
}

// Whoever looks for an instruction of the list in the graph needs its whole name.
TEST_F(Report, TheSlowestInstructionsHaveTheirWholeNames) {
  const std::string name = "/transformer/" + std::string(150, 'x') + "/end";
  auto recorder = Recorder::start(Project::create(*folder_ / "long.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  auto plan = testing::samplePlan({1, 0});
  recorder->graph(testing::sampleGraph({1, 0}));
  plan.mutable_instructions(0)->set_label("MatMul '" + name + "'");
  recorder->plan(plan);
  for (int i = 0; i < 4; ++i) {
    auto step = testing::sampleStep(plan, i);
    for (auto& span : *step.mutable_spans())
      if (span.instruction() == 0) span.set_end_ns(span.begin_ns() + 1'000'000'000);
    recorder->step(step);
  }
  recorder->endRun(RunStatus::kFinished);
  ASSERT_TRUE(recorder->close());
  EXPECT_NE(make("long.stepscope", "long.html").find(name), std::string::npos);
}

TEST_F(Report, HtmlOfAnEmptyRunSaysWhatIsMissing) {
  auto recorder = Recorder::start(Project::create(*folder_ / "empty.stepscope").value()).value();
  recorder->beginRun({});
  ASSERT_TRUE(recorder->close());
  const std::string page = make("empty.stepscope", "empty.html");
  EXPECT_NE(page.find("No step was recorded"), std::string::npos);
  EXPECT_NE(page.find("No phase was recorded"), std::string::npos);
  expectWellFormed(page);
}

TEST_F(Report, JsonParsesAndIsComplete) {
  for (const char* project : {"a.stepscope", "evil.stepscope"}) {
    const Json json = Json::parse(make(project, "r.json"));
    for (const char* key : {"version", "run", "machine", "model", "options", "phases", "passes", "plan", "timing",
                            "roofline", "steps", "alerts", "lost"})
      EXPECT_TRUE(json.contains(key)) << key;
  }
  const Json json = Json::parse(make("a.stepscope", "r.json"));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["steps"].size(), 50u);
  EXPECT_EQ(json["phases"][1]["parent"], json["phases"][0]["id"]);
  EXPECT_EQ(json["plan"]["buffers"].size(), static_cast<std::size_t>(testing::samplePlan({2, 0}).buffers_size()));
  const Json evil = Json::parse(make("evil.stepscope", "r.json"));
  EXPECT_EQ(evil["steps"][3]["loss"], "NaN");
  EXPECT_EQ(evil["ledger"]["advice"][0]["gain_ns"], "NaN");
}

// The sample's batches have 256 tokens, of which 200 and a few are no padding.
TEST_F(Report, ThroughputCountsWhatIsTrainedOn) {
  const Json step = Json::parse(make("a.stepscope", "r.json"))["steps"][3];
  EXPECT_EQ(step["tokens"], 256);
  EXPECT_EQ(step["trained_tokens"], 203);
  EXPECT_EQ(step["padding_tokens"], 53);
  const auto data = readReportData(*Project::openReadOnly(*folder_ / "a.stepscope"), 0);
  ASSERT_TRUE(data) << data.error().message;
  double trained = 0, seconds = 0;
  for (std::size_t i = 0; i < data->steps.size(); ++i) {
    if (!data->steps[i].judged) continue;
    trained += static_cast<double>(200 + data->steps[i].step % 7);
    seconds += static_cast<double>(data->steps[i].ns) * 1e-9;
  }
  const std::string page = make("a.stepscope", "r.txt");
  EXPECT_NE(page.find(units::count(static_cast<std::int64_t>(trained / seconds)) + " tokens/s"), std::string::npos);
  EXPECT_NE(page.find(" % padding"), std::string::npos);
}

// Reads RFC 4180.
std::vector<std::vector<std::string>> parseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (quoted || (c != ',' && c != '\r' && c != '\n'))
      rows.back().back() += c;
    else if (c == ',')
      rows.back().push_back("");
    else if (c == '\n')
      rows.push_back({""});
  }
  rows.pop_back();
  return rows;
}

TEST_F(Report, CsvTablesAreRectangular) {
  const std::map<std::string, std::size_t> expected = {
      {"r.csv", 51}, {"r.ops.csv", 0}, {"r.instructions.csv", 43}, {"r.roofline.csv", 41}, {"r.phases.csv", 16}};
  for (const char* project : {"a.stepscope", "evil.stepscope"}) {
    for (const auto& [name, rows] : expected) {
      const auto table = parseCsv(make(project, name.c_str()));
      EXPECT_TRUE(rows == 0 || project[0] != 'a' || table.size() == rows) << name << " has " << table.size();
      ASSERT_GT(table.size(), 1u);
      for (const auto& row : table) EXPECT_EQ(row.size(), table[0].size()) << name;
    }
  }
  const auto steps = parseCsv(make("evil.stepscope", "r.csv"));
  EXPECT_EQ(steps[4][1], "NaN");
  EXPECT_EQ(steps[1].back(), kEvil);
  EXPECT_EQ(steps[1][steps[0].size() - 4], kEvil) << "the batch, before its tokens and the mark of its weights";
}

// Numbers of a run whose weights were made up must not pass for a training result, in whatever form they travel.
TEST_F(Report, WeightsThatAreNotTheModelsAreMarkedInEveryForm) {
  {
    auto recorder = Recorder::start(Project::create(*folder_ / "random.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    const auto plan = testing::samplePlan({1, 0});
    recorder->phases(testing::samplePhases());
    recorder->plan(plan);
    for (int i = 0; i < 3; ++i) recorder->step(testing::sampleStep(plan, i));
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("missing_weights");
    alert.set_message("2 initializers have no data in the file");
    recorder->alert(alert);
    recorder->endRun(RunStatus::kFinished, "");
    ASSERT_TRUE(recorder->close());
  }
  EXPECT_EQ(RunInfo().weights, kWeightsOfTheModel);
  const std::string mark = kRandomWeights;
  for (const char* name : {"m.html", "m.txt", "m.json", "m.csv", "m.ops.csv", "m.instructions.csv", "m.roofline.csv",
                           "m.phases.csv", "m.trace.json"}) {
    EXPECT_NE(make("random.stepscope", name).find(mark), std::string::npos) << name;
    EXPECT_EQ(make("a.stepscope", name).find("random, external"), std::string::npos) << name;
  }
  for (const char* name : {"m.csv", "m.ops.csv", "m.instructions.csv", "m.roofline.csv", "m.phases.csv"}) {
    const auto table = parseCsv(make("random.stepscope", name));
    EXPECT_EQ(table[0].back(), "weights") << name;
    for (std::size_t i = 1; i < table.size(); ++i) {
      ASSERT_EQ(table[i].size(), table[0].size()) << name;
      EXPECT_EQ(table[i].back(), mark) << name;
    }
  }
}

TEST_F(Report, TraceHasTheFieldsOfKineto) {
  const std::string text = make("a.stepscope", "r.trace.json");
  EXPECT_TRUE(std::regex_search(text, std::regex("\"rank\":\\s+(\\d+)"))) << "HTA reads the rank as text";
  const Json json = Json::parse(text);
  EXPECT_EQ(json["schemaVersion"], 1);
  std::map<std::string, int> kinds;
  std::set<std::int64_t> starts, ends;
  int steps = 0;
  std::map<int, std::vector<std::pair<double, double>>> lanes;
  for (const Json& event : json["traceEvents"]) {
    const std::string kind = event["ph"];
    ++kinds[kind];
    ASSERT_TRUE(event.contains("pid") && event.contains("tid") && event.contains("ts") && event.contains("name"));
    if (kind == "s") starts.insert(event["id"].get<std::int64_t>());
    if (kind == "f") {
      ends.insert(event["id"].get<std::int64_t>());
      EXPECT_EQ(event["bp"], "e");
    }
    if (kind != "X") continue;
    ASSERT_TRUE(event.contains("cat") && event.contains("dur") && event.contains("args"));
    lanes[event["tid"]].emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
    if (event["cat"] == "cpu_op") {
      EXPECT_TRUE(event["args"].contains("External id") && event["args"].contains("Ev Idx"));
      const Json dims = event["args"]["Input Dims"], types = event["args"]["Input type"];
      ASSERT_TRUE(dims.is_array() && types.is_array());
      EXPECT_EQ(dims.size(), types.size());
      for (const Json& shape : dims) EXPECT_TRUE(shape.is_array());
    }
    if (std::regex_search(event["name"].get<std::string>(), std::regex("ProfilerStep\\s*#\\s*(\\d+)"))) ++steps;
  }
  EXPECT_EQ(steps, 50);
  EXPECT_EQ(starts, ends);
  EXPECT_GT(starts.size(), 0u);
  EXPECT_GT(kinds["M"], 3);
  EXPECT_GT(kinds["C"], 0);
  // Events of one lane nest strictly, or viewers move them elsewhere.
  for (auto& [lane, events] : lanes) {
    std::sort(events.begin(), events.end(),
              [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; });
    std::vector<double> open;
    for (const auto& [begin, end] : events) {
      while (!open.empty() && open.back() <= begin + 1e-6) open.pop_back();
      ASSERT_TRUE(open.empty() || end <= open.back() + 1e-6) << "lane " << lane;
      open.push_back(end);
    }
  }
}

TEST_F(Report, TraceOfHostileNamesParses) {
  EXPECT_FALSE(Json::parse(make("evil.stepscope", "evil.trace.json"))["traceEvents"].empty());
}

// Somebody who stops in a step and reads for a minute did not make the training slow.
TEST_F(Report, AStepStoppedInTakesNoPartInTheTimes) {
  auto recorder = Recorder::start(Project::create(*folder_ / "stopped.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  const auto plan = testing::samplePlan({1, 0});
  recorder->graph(testing::sampleGraph({1, 0}));
  recorder->plan(plan);
  for (int i = 0; i < 5; ++i) {
    auto step = testing::sampleStep(plan, i);
    step.set_warm_up(i == 0);
    step.set_tokens(100);
    step.set_ns(i == 3 ? 60'000'000'000 : 10'000'000);
    recorder->step(step);
  }
  snapshot::Alert alert;
  alert.set_code("stopped");
  alert.set_message("stopped 7 times (breakpoint 3)");
  alert.set_step(3);
  recorder->alert(alert);
  recorder->endRun(RunStatus::kFinished);
  ASSERT_TRUE(recorder->close());
  const auto data = readReportData(*Project::openReadOnly(*folder_ / "stopped.stepscope"), 0);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->timing.step.n, 3);
  EXPECT_EQ(data->timing.step.max, 10'000'000);
  const std::string page = make("stopped.stepscope", "stopped.html");
  EXPECT_NE(page.find("10,000 <small>tokens/s"), std::string::npos);
  EXPECT_NE(make("stopped.stepscope", "stopped.txt").find("10,000 tokens/s"), std::string::npos);
  EXPECT_NE(page.find("without warm-up and stops"), std::string::npos);
  EXPECT_EQ(countOf(page, ">stopped</span>"), 1U);
  EXPECT_NE(page.find("stopped 7 times (breakpoint 3)"), std::string::npos);
  expectWellFormed(page);
}

TEST_F(Report, UnknownEndingAndRunAreNamed) {
  const auto project = Project::openReadOnly(*folder_ / "a.stepscope").value();
  EXPECT_EQ(writeReport(project, 0, *folder_ / "r.docx").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(writeReport(project, 99, *folder_ / "r.html").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(writeReport(project, 0, *folder_ / "no/such/folder/r.html").error().code, ErrorCode::kIo);
}

TEST_F(Report, IsTheSameEveryTime) {
  for (const char* name : {"r.html", "r.txt", "r.json", "r.csv", "r.trace.json"})
    EXPECT_EQ(make("a.stepscope", name), make("a.stepscope", name)) << name;
}

// As any program with SQLite could write them.
TEST(HostileReport, PhaseOfAnInstructionIsText) {
  const testing::TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  testing::recordSample(file, {1, 3});
  ASSERT_TRUE(Connection::open(file.string(), Connection::Mode::kWrite)
                  .value()
                  .execute("UPDATE instructions SET phase = 'x\", \"forged\": \"' || char(10)"));
  const auto project = Project::openReadOnly(file).value();
  ASSERT_TRUE(writeReport(project, 0, folder / "r.trace.json"));
  const Json trace = Json::parse(readAll(folder / "r.trace.json"), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  int found = 0;
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_FALSE(event.contains("args") && event["args"].contains("forged"));
    found += event.contains("args") && event["args"].contains("phase") ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace stepscope::storage
