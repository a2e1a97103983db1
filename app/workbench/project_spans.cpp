// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_spans.h"

#include <string>

#include "storage/sql.h"
#include "storage/timing.h"

namespace stepscope {
namespace {

constexpr std::size_t kStepsWithSpans = 20;

std::int64_t number(const storage::SqlCell& cell) {
  const auto* n = std::get_if<std::int64_t>(&cell);
  return n ? *n : 0;
}

}  // namespace

void readSpans(const storage::Project& project, const std::vector<storage::StepRow>& steps,
               const std::vector<std::shared_ptr<snapshot::StepRecord>>& records) {
  for (std::size_t i = steps.size() > kStepsWithSpans ? steps.size() - kStepsWithSpans : 0; i < steps.size(); ++i) {
    storage::SqlLimits limits;
    limits.rows = 200'000;
    const auto rows = storage::runSql(
        project, "SELECT instruction, node, begin_ns, ns, thread FROM spans WHERE step_id = " + std::to_string(steps[i].id),
        limits);
    if (!rows) return;
    for (const auto& row : rows->rows) {
      if (row.size() != 5) continue;
      snapshot::InstructionSpan& span = *records[i]->add_spans();
      span.set_instruction(static_cast<int>(number(row[0])));
      span.set_node(static_cast<int>(number(row[1])));
      span.set_begin_ns(number(row[2]));
      span.set_end_ns(number(row[2]) + number(row[3]));
      span.set_thread(static_cast<int>(number(row[4])));
    }
    if (auto device = storage::readDeviceWork(project, steps[i].id); device && device->records_size() > 0)
      *records[i]->mutable_device() = std::move(*device);
  }
}

}  // namespace stepscope
