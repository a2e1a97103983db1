// Random networks, judged: the reference kernels in double are right about the loss, central differences about its slope;
// the planned step must agree in double, in float with all passes and with none, on one thread and on two, and after
// stepping forth and back. A difference counts when it stays after the parameters were drawn anew: kinks and steps are
// everywhere.
//
//   STEPSCOPE_FUZZ_NETWORKS=50000 STEPSCOPE_FUZZ_FIRST=1 networks_test     the long test
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>

#include "engine/autodiff/gradient.h"
#include "engine/build/import.h"
#include "engine/exec/interpreter.h"
#include "engine/passes/pipeline.h"
#include "engine/train/session.h"
#include "tests/engine/onnx/model_builder.h"
#include "tests/fuzz/random_networks.h"

namespace stepscope::testing {
namespace {

constexpr std::uint64_t kNetworks = 200;
constexpr int kDraws = 3;

struct Found {
  double loss = 0;
  std::vector<std::vector<double>> gradients;  // by parameter
};

std::vector<double> elementsOf(const TensorView& view) {
  std::vector<double> elements;
  for (std::int64_t i = 0; i < elementCount(view.dims); ++i) elements.push_back(elementAsDouble(view, i));
  return elements;
}

// Nothing: the same. Numbers are compared with the largest of their tensor.
std::string difference(const std::string& what, const std::vector<double>& expected, const std::vector<double>& found,
                       double tolerance) {
  if (expected.size() != found.size())
    return fmt::format("{}: {} elements; expected {}", what, found.size(), expected.size());
  double scale = 1;
  for (const double value : expected)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool same =
        std::isfinite(expected[i]) ? std::abs(expected[i] - found[i]) <= tolerance * scale : !std::isfinite(found[i]);
    if (!same) return fmt::format("{}[{}]: {}; expected {}", what, i, found[i], expected[i]);
  }
  return {};
}

std::string difference(const std::string& what, const Network& network, const Found& expected, const Found& found,
                       double tolerance) {
  std::string text = difference(what + ": loss", {expected.loss}, {found.loss}, tolerance);
  const auto names = parametersOf(network);
  for (std::size_t p = 0; text.empty() && p < names.size(); ++p)
    text = difference(what + ": gradient of " + names[p], expected.gradients[p], found.gradients[p], tolerance);
  return text;
}

// The imported graph with its gradient, interpreted by the reference kernels.
class Reference {
 public:
  Reference(const Network& network, const std::filesystem::path& file) : names_(parametersOf(network)), file_(file) {}

  Result<Found> run() {
    BuildLog log({});
    SS_ASSIGN(const auto model, importModel(file_, {}, log, nullptr, Registry::builtIn()));
    graph_ = model->graph;
    const ValueId loss = graph_.findValue("loss");
    graph_.mutableOutputs() = {loss};
    forward_ = graph_;
    Inference inference(graph_, builtInOperators(), {.foldElements = -1});
    SS_TRY(inference.run());
    std::vector<ValueId> parameters;
    for (const std::string& name : names_) parameters.push_back(graph_.findValue(name));
    SS_ASSIGN(const GradientReport report, buildGradient(graph_, inference, {loss, parameters}));
    Interpreter interpreter(graph_, builtInOperators(), Backend::kReference);
    SS_TRY(interpreter.run());
    Found found;
    found.loss = elementAsDouble(interpreter.value(loss)->view(), 0);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const Tensor* gradient = report.gradients[p] ? interpreter.value(report.gradients[p]) : nullptr;
      found.gradients.push_back(
          gradient ? elementsOf(gradient->view())
                   : std::vector<double>(static_cast<std::size_t>(graph_.value(parameters[p]).data->elements()), 0.0));
    }
    return found;
  }

  // Central difference along a fixed direction, and what the gradients say; nothing where two steps disagree (a kink).
  std::string slopeDifference(const Found& found) {
    const auto along = [&](double by) -> std::optional<double> {
      Interpreter interpreter(forward_, builtInOperators(), Backend::kReference);
      for (std::size_t p = 0; p < names_.size(); ++p) {
        const ValueId id = forward_.findValue(names_[p]);
        Tensor moved = forward_.value(id).data->clone();
        for (std::int64_t k = 0; k < moved.elements(); ++k)
          storeElement(moved.view(), k, elementAsDouble(moved.view(), k) + by * direction(p, k));
        if (!interpreter.feed(id, std::move(moved))) return std::nullopt;
      }
      if (!interpreter.run()) return std::nullopt;
      return elementAsDouble(interpreter.value(forward_.findValue("loss"))->view(), 0);
    };
    double predicted = 0;
    for (std::size_t p = 0; p < names_.size(); ++p)
      for (std::size_t k = 0; k < found.gradients[p].size(); ++k)
        predicted += found.gradients[p][k] * direction(p, static_cast<std::int64_t>(k));
    std::vector<double> slopes;
    for (const double h : {1e-4, 1e-5, 1e-6}) {
      const auto up = along(h), down = along(-h);
      if (!up || !down || !std::isfinite(*up) || !std::isfinite(*down)) return {};
      slopes.push_back((*up - *down) / (2 * h));
    }
    const double size = 1 + std::abs(slopes[1]);
    if (std::abs(slopes[0] - slopes[1]) > 1e-5 * size || std::abs(slopes[1] - slopes[2]) > 1e-5 * size) return {};
    if (std::abs(predicted - slopes[1]) <= 1e-4 * size) return {};
    return fmt::format("slope of the loss along a direction: {}; central differences {}", predicted, slopes[1]);
  }

 private:
  static double direction(std::size_t parameter, std::int64_t k) {
    return std::sin(1.3 + 2.1 * static_cast<double>(k) + 0.7 * static_cast<double>(parameter));
  }
  std::vector<std::string> names_;
  std::filesystem::path file_;
  Graph graph_, forward_;
};

// One step of a session; with `walk` a second one too, half forth, a bit back and on, that must have the same loss.
Result<Found> stepped(const Network& network, const std::filesystem::path& file, bool passes, int threads, bool walk) {
  SS_ASSIGN(const auto session, Session::open(file, {}, {}));
  TrainOptions options;
  std::map<std::string, std::string> settings{
      {"loss", "loss"}, {"lr", "0"}, {"threads", std::to_string(threads)}, {"train", "^p[0-9]$"}};
  if (!passes)
    for (const PassList& list : pipeline())
      for (const Pass& pass : list.passes)
        if (pass.enabled != PassSwitch::kMandatory) settings["pass." + std::string(pass.name)] = "off";
  for (const auto& [name, value] : settings) {
    SS_TRY(applySetting(options, name, value, "test"));
  }
  session->keepGradients(true);
  SS_TRY(session->setOptions(options));
  SS_TRY(session->build());
  SS_ASSIGN(const snapshot::StepRecord record, session->step());
  Found found;
  found.loss = record.loss();
  const auto names = parametersOf(network);
  for (const std::string& name : names) {
    const auto gradient = session->trained().gradient(name);
    found.gradients.push_back(
        gradient ? elementsOf(gradient->view())
                 : std::vector<double>(static_cast<std::size_t>(elementCount(session->trained().named(false).at(name).dims)),
                                       0.0));
  }
  if (!walk) return found;
  SS_ASSIGN(const auto plan, session->planSnapshot());
  const int count = plan.instructions_size();
  SS_TRY(session->beginStep());
  SS_TRY(session->stepInstructions(std::max(1, count / 2)));
  SS_TRY(session->stepInstructions(-std::max(1, count / 4)));
  SS_TRY(session->stepInstructions(1));
  SS_ASSIGN(const snapshot::StepRecord again, session->finishStep());
  if (std::isfinite(found.loss) && again.loss() != found.loss)
    return fail(ErrorCode::kInternal,
                fmt::format("loss {} after stepping forth and back; {} at once", again.loss(), found.loss));
  return found;
}

// What is wrong with the network, or nothing. What is refused as unsupported is no failure.
std::string judge(const Network& network, std::uint64_t draw, std::size_t* refused) {
  const TemporaryFolder folder;
  const auto inDouble = folder.write("double.onnx", modelOf(network, DType::kF64, draw).SerializeAsString());
  const auto inFloat = folder.write("float.onnx", modelOf(network, DType::kF32, draw).SerializeAsString());
  Reference reference(network, inDouble);
  const auto refuses = [&](const Error& error) {
    if (error.code == ErrorCode::kUnsupported && refused != nullptr) ++*refused;
    return error.code == ErrorCode::kUnsupported;
  };
  const auto expected = reference.run();
  if (!expected) return refuses(expected.error()) ? "" : "reference: " + expected.error().message;
  if (auto text = reference.slopeDifference(*expected); !text.empty()) return text;
  struct Way {
    const char* name;
    std::filesystem::path file;
    bool passes;
    int threads;
    double tolerance;
  };
  for (const Way& way :
       {Way{"double, all passes", inDouble, true, 2, 1e-8}, Way{"float, all passes", inFloat, true, 2, 2e-3},
        Way{"float, no passes", inFloat, false, 1, 2e-3}}) {
    const auto found = stepped(network, way.file, way.passes, way.threads, way.threads == 2);
    if (!found && refuses(found.error())) return {};
    if (!found) return fmt::format("{}: {}", way.name, found.error().message);
    if (auto text = difference(way.name, network, *expected, *found, way.tolerance); !text.empty()) return text;
  }
  return {};
}

// A failure that stays with other parameters.
std::string lastingFailure(const Network& network, std::size_t* refused = nullptr) {
  std::string text;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw)
    if (text = judge(network, draw, draw == 0 ? refused : nullptr); text.empty()) return {};
  return text;
}

std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(RandomNetworks, AgreeHoweverTheyRun) {
  const std::uint64_t first = fromEnvironment("STEPSCOPE_FUZZ_FIRST", 1),
                      count = fromEnvironment("STEPSCOPE_FUZZ_NETWORKS", kNetworks);
  std::size_t refused = 0, failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 10; ++seed) {
    if (std::getenv("STEPSCOPE_FUZZ_VERBOSE") != nullptr) std::cerr << "network " << seed << std::endl;
    const Network network = randomNetwork(seed);
    if (lastingFailure(network, &refused).empty()) continue;
    ++failures;
    const Network small = shrunk(network, [](const Network& n) { return !lastingFailure(n).empty(); });
    std::string text;
    google::protobuf::TextFormat::PrintToString(modelOf(small, DType::kF64, 0).graph(), &text);
    ADD_FAILURE() << "network " << seed << ", shrunk to " << small.units.size() << " units: " << lastingFailure(small)
                  << "\n"
                  << text;
  }
  EXPECT_LT(refused, count / 4) << "most networks must be of what the engine trains";
  std::cout << count << " networks, " << refused << " refused as unsupported\n";
}

// The generator reaches what it should: most operators of the registry, and every shape of unit.
TEST(RandomNetworks, AreMadeOfMostOperators) {
  std::set<std::string> ops;
  for (const OpExample& example : usableExamples()) ops.insert(example.domain + "." + example.op);
  EXPECT_GT(ops.size(), 140u);
  const Network network = randomNetwork(5);
  EXPECT_EQ(modelOf(network, DType::kF32, 1).SerializeAsString(),
            modelOf(randomNetwork(5), DType::kF32, 1).SerializeAsString());
}

// Shrinking keeps what makes a network fail, and nothing else.
TEST(RandomNetworks, AreShrunkToTheUnitThatMatters) {
  Network network = randomNetwork(11);
  ASSERT_GE(network.units.size(), 2u);
  const std::uint64_t guilty = network.units[1].seed;
  const Network small = shrunk(network, [&](const Network& n) {
    return std::any_of(n.units.begin(), n.units.end(), [&](const Unit& unit) { return unit.seed == guilty; });
  });
  ASSERT_EQ(small.units.size(), 1u);
  EXPECT_EQ(small.units[0].seed, guilty);
}

}  // namespace
}  // namespace stepscope::testing
