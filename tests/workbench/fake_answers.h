// SPDX-License-Identifier: GPL-3.0-or-later
// What the made-up worker says of its model, its build, its options and what could be computed again.
#pragma once

#include <map>
#include <string>

#include "engine/snapshot/worker.pb.h"
#include "tests/workbench/fake_model.h"

namespace stepscope {

// An error for a path that holds "missing".
void describeModel(const FakeModel& fake, const snapshot::OpenModel& open, snapshot::Response* r);
void describeBuild(const FakeModel& fake, snapshot::BuildReply* reply);
void describeOptions(const std::map<std::string, std::string>& values, snapshot::OptionList* list);
void describeRecompute(const snapshot::GetRecompute& asked, snapshot::RecomputeReport* r);

}  // namespace stepscope
