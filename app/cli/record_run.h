// A run of this program in a project file: what it is, and what was built.
#pragma once

#include <memory>
#include <string>

#include "engine/train/session.h"
#include "storage/recorder.h"

namespace stepscope::cli {

// Opens the project and begins a run of the session's model. Errors: kIo with what the storage says.
Result<std::unique_ptr<storage::Recorder>> startRecorder(const std::string& projectPath, const std::string& model,
                                                         const Session& session);

// The newest build of the session: phases, options, graphs, plan, verdicts, alerts.
void recordBuild(storage::Recorder& recorder, const Session& session);

// Where the times of instructions come from when the run is on a device that is not the host, as an alert; and how many of
// them the device lost, as a row of `lost`. Called when the steps are done.
void recordDeviceTimes(storage::Recorder& recorder, const Session& session);

}  // namespace stepscope::cli
