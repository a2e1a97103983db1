// `stepscope memory`: every buffer of the plan, as planned and as a step really touched it.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/open_session.h"
#include "app/cli/output.h"
#include "app/cli/places.h"
#include "app/cli/record_run.h"
#include "app/cli/shared_options.h"
#include "app/cli/terminal.h"
#include "engine/snapshot/units.h"

namespace stepscope::cli {
namespace {

struct Arguments {
  std::string model, project;
  std::int64_t most = 20;
  bool json = false;
  SharedOptions shared;
};

void print(const snapshot::Plan& plan, const std::vector<std::int64_t>& measured, const Arguments& a) {
  std::vector<std::size_t> order;
  std::int64_t planned = 0, touched = 0;
  for (std::size_t b = 0; b < measured.size(); ++b) {
    if (measured[b] < 0) continue;
    order.push_back(b);
    planned += plan.buffers(static_cast<int>(b)).bytes();
    touched += measured[b];
  }
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t b) { return plan.buffers(static_cast<int>(b)).bytes(); });
  if (a.json) {
    for (const std::size_t b : order) {
      const snapshot::Buffer& buffer = plan.buffers(static_cast<int>(b));
      sayJson({{"event", "buffer"},
               {"index", buffer.index()},
               {"name", buffer.name()},
               {"bytes", buffer.bytes()},
               {"measured_bytes", measured[b]},
               {"address", buffer.offset()},
               {"first", buffer.first()},
               {"last", buffer.last()},
               {"decision", buffer.decision()}});
    }
    sayJson({{"event", "memory"},
             {"arena_bytes", plan.arena_bytes()},
             {"buffers", order.size()},
             {"bytes", planned},
             {"measured_bytes", touched}});
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t k = 0; k < std::min(order.size(), static_cast<std::size_t>(a.most)); ++k) {
    const snapshot::Buffer& buffer = plan.buffers(static_cast<int>(order[k]));
    rows.push_back({buffer.name(), units::bytes(buffer.bytes()), units::bytes(measured[order[k]]),
                    fmt::format("{} .. {}", buffer.first(), buffer.last()), buffer.decision()});
  }
  say("{}", table({"buffer", "planned", "touched", "instructions", "why it lies there"}, rows, 5));
  say("\n{} of {} buffers; all of them: {} planned, {} touched by pages; arena {}\n", rows.size(), order.size(),
      units::bytes(planned), units::bytes(touched), units::bytes(plan.arena_bytes()));
}

Status memory(const Arguments& a, const Output& output) {
  SS_ASSIGN(TrainOptions options, a.shared.apply());
  SS_TRY(checkPlace("project", a.project));
  options.ringBytes = 0;
  SS_ASSIGN(const auto session, openSession(a.model, options, output, a.shared.mapWeights));
  SS_TRY(prepare(*session, a.shared));
  SS_TRY(session->build());
  SS_ASSIGN(auto measured, session->lab().bufferBytes());
  SS_ASSIGN(const snapshot::Plan plan, session->planSnapshot());
  if (plan.buffers_size() > 0 && std::ranges::none_of(measured, [](std::int64_t bytes) { return bytes >= 0; }))
    return fail(ErrorCode::kUnsupported,
                fmt::format("memory: device '{}': none of {} buffers lies in memory of the host, whose pages say what was "
                            "touched; hint: --device cpu",
                            options.device, plan.buffers_size()));
  if (!a.project.empty()) {
    SS_ASSIGN(const auto recorder, startRecorder(a.project, a.model, *session));
    recordBuild(*recorder, *session);
    recorder->bufferBytes(measured);
    recorder->endRun(storage::RunStatus::kFinished, {});
    if (const auto closed = recorder->close(); !closed) return fail(ErrorCode::kIo, closed.error().message);
  }
  print(plan, measured, a);
  return {};
}

}  // namespace

Command memoryCommand() {
  auto a = std::make_shared<Arguments>();
  Command command{"memory",
                  "every buffer of the plan: the bytes that it was given and those that a step really touched",
                  {{"MODEL", &a->model, "ONNX file, or a folder of stepscope_capture", {}, true},
                   {"--most", &a->most, "so many of the largest buffers; --json has all [20]", "N"},
                   {"--project", &a->project, "record the plan with it into this project file", "FILE"},
                   {"--json", &a->json, "one JSON object per line"}}};
  a->shared.addTo(command);
  command.run = [a] {
    const Output output(a->json);
    if (const auto wrong = usageError(a->shared)) return *wrong;
    if (a->most < 1 || a->most > 1'000'000) {
      tellError(fmt::format("option 'most': found {}; expected 1 to 1000000", a->most));
      return kUsage;
    }
    if (Status status = memory(*a, output); !status) return report(status.error());
    return kSuccess;
  };
  return command;
}

}  // namespace stepscope::cli
