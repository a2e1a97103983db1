// The words that the tables use for enumerations of the snapshots.
#pragma once

#include <string_view>

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope::storage {

std::string_view phaseName(snapshot::Phase phase);              // "forward" …
std::string_view roleName(snapshot::ValueRole role);            // "initializer" …
std::string_view bufferClassName(snapshot::BufferClass value);  // "optimizer_state" …
std::string_view severityName(snapshot::Alert::Severity severity);

}  // namespace stepscope::storage
