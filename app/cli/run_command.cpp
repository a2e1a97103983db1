#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/data/npy.h"
#include "engine/onnx/tensor_pb.h"
#include "engine/profile/tensor_data.h"
#include "engine/snapshot/number_rule.h"
#include "engine/snapshot/units.h"
#include "engine/train/forward.h"

namespace stepscope::cli {
namespace {

struct RunArguments {
  std::string model, expect;
  std::vector<std::string> fetch;
  double rtol = 1e-3, atol = 1e-5;
  bool json = false;
  SharedOptions shared;
};

struct Difference {
  std::int64_t differing = 0;
  std::string worst;
};

// By the rule of engine/snapshot/number_rule.h; what is expected is b.
Difference compareWithin(const TensorView& found, const TensorView& expected, double rtol, double atol) {
  Difference difference;
  double worst = -1;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    if (expected.dtype == DType::kString) {
      const auto& a = found.as<std::string>()[static_cast<std::size_t>(i)];
      const auto& b = expected.as<std::string>()[static_cast<std::size_t>(i)];
      if (a == b) continue;
      if (difference.differing++ == 0) difference.worst = fmt::format("element {}: found '{}'; expected '{}'", i, a, b);
      continue;
    }
    if (isInteger(expected.dtype) && elementAsInt(found, i) == elementAsInt(expected, i)) continue;
    const double a = elementAsDouble(found, i), b = elementAsDouble(expected, i);
    if (agreeWithin(a, b, rtol, atol)) continue;
    ++difference.differing;
    if (const double gap = numberDistance(a, b); gap > worst) {
      worst = gap;
      difference.worst = fmt::format("element {}: found {:g}; expected {:g}", i, units::signless(a), units::signless(b));
    }
  }
  return difference;
}

Status compareAll(const RunArguments& a, const std::vector<std::pair<std::string, Tensor>>& outputs) {
  std::vector<std::string> problems;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::filesystem::path file = std::filesystem::path(a.expect) / fmt::format("output_{}.pb", k);
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      if (k == 0)
        return fail(ErrorCode::kIo,
                    fmt::format("expect '{}': no output_0.pb; expected a directory of output_*.pb", a.expect));
      continue;
    }
    const auto& [name, found] = outputs[k];
    SS_ASSIGN(const auto expected, readTensorFile(file));
    if (!found.valid()) {
      problems.push_back(fmt::format("output '{}': not computed", name));
    } else if (found.dtype() != expected.tensor.dtype() || found.dims() != expected.tensor.dims()) {
      problems.push_back(fmt::format("output '{}': found {}{}; expected {}{}", name, dtypeName(found.dtype()),
                                     dimsText(found.dims()), dtypeName(expected.tensor.dtype()),
                                     dimsText(expected.tensor.dims())));
    } else if (const Difference d = compareWithin(found.view(), expected.tensor.view(), a.rtol, a.atol); d.differing > 0) {
      problems.push_back(
          fmt::format("output '{}': {} of {} elements differ, worst {}", name, d.differing, found.elements(), d.worst));
    }
  }
  if (problems.empty()) return {};
  std::string text = problems.front();
  for (std::size_t i = 1; i < problems.size(); ++i) text += "\n  " + problems[i];
  return fail(ErrorCode::kInvalidArgument, text);
}

// `ns`: wall-clock time of the forward pass.
Status run(const RunArguments& a, const Output& output, std::int64_t& ns) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_ASSIGN(const auto fetches, parseFetches(a.fetch));
  for (const auto& [value, file] : fetches) SS_TRY(checkPlace("fetch", file));
  std::vector<std::string> names;
  for (const auto& [value, file] : fetches) names.push_back(value);
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights));
  SS_TRY(prepare(*session, a.shared));
  const auto begin = std::chrono::steady_clock::now();
  SS_ASSIGN(const auto outputs, runForward(*session, names));
  ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto& [name, tensor] = outputs[k];
    if (!tensor.valid()) continue;
    const auto s = tensor.dtype() == DType::kString ? snapshot::TensorStatistics{} : tensorStatistics(tensor.view());
    if (a.json)
      sayJson({{"event", "output"},
               {"name", name},
               {"dtype", std::string(dtypeName(tensor.dtype()))},
               {"dims", tensor.dims()},
               {"min", s.min()},
               {"max", s.max()},
               {"mean", s.mean()},
               {"nan", s.nan()},
               {"inf", s.inf()}});
    else if (a.expect.empty())
      say("{}  {}{}  min {:.6g}  max {:.6g}  mean {:.6g}  NaN {}  Inf {}\n", name, dtypeName(tensor.dtype()),
          dimsText(tensor.dims()), s.min(), s.max(), s.mean(), s.nan(), s.inf());
  }
  for (const auto& [value, file] : fetches)
    for (const auto& [name, tensor] : outputs)
      if (name == value) SS_TRY(writeNpy(file, tensor.view()));
  if (!a.expect.empty()) {
    SS_TRY(compareAll(a, outputs));
    if (!a.json) say("outputs agree\n");
  }
  return {};
}

}  // namespace

Command runCommand() {
  auto a = std::make_shared<RunArguments>();
  Command command{"run",
                  "forward only; --expect compares with stored outputs",
                  {{"MODEL", &a->model, "ONNX file", {}, true},
                   {"--expect", &a->expect, "directory of output_*.pb to agree with", "DIR"},
                   {"--rtol", &a->rtol, "relative tolerance [1e-3]", "X"},
                   {"--atol", &a->atol, "absolute tolerance [1e-5]", "X"},
                   {"--fetch", &a->fetch, "VALUE=FILE.npy: any value"},
                   {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared, a->fetch)) return *wrong;
    std::int64_t ns = 0;
    if (Status status = run(*a, output, ns); !status) return report(status.error());
    if (a->json) output.finished(1, ns);
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
