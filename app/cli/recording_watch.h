// Says while a run goes on what its recording loses, and that steps wait for it: when it begins, when it is over, and how
// much at the end.
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/output.h"
#include "kernels/status.h"
#include "storage/recorder.h"

namespace stepscope::cli {

class RecordingWatch {
 public:
  RecordingWatch(storage::Recorder& recorder, const Output& output) : recorder_(recorder), output_(output) {}

  // After a step; looks ten times a second at most. What it says becomes an alert of the run too.
  void look();
  // Closes the recorder. Error: steps that are not in the project, how many of `steps`, and why.
  Status close(std::int64_t steps);

 private:
  void say(const char* code, std::string message);

  storage::Recorder& recorder_;
  const Output& output_;
  storage::RecorderState::Health health_ = storage::RecorderState::Health::kRecording;
  bool drops_ = false, waits_ = false;
  std::int64_t lookedAt_ = 0;  // ns
};

}  // namespace stepscope::cli
