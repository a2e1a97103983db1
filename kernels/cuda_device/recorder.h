// The records of a device: by CUPTI where it records, else by events. Which rung, is chosen when somebody first asks.
#pragma once

#include <memory>

#include "kernels/cuda_device/recording.h"

namespace stepscope::cuda {

class Recorder {
 public:
  // The context of `driver` is current wherever a function of this class is called, its destructor among them.
  explicit Recorder(const Driver& driver) : driver_(driver) {}

  void start(CuStream clock);
  // Nothing where nobody has started.
  Activity take(CuStream clock);
  bool isThere() const { return recording_ != nullptr; }
  std::int64_t lost() const { return recording_ ? recording_->lost() : 0; }
  ActivitySource::Rung rung() const { return rung_; }
  // Around the calls of the driver for one piece of work, as Recording has them.
  void begin(CuStream stream, StreamId id, const Recording::Work& work) {
    if (recording_) recording_->begin(stream, id, work);
  }
  void end(CuStream stream) {
    if (recording_) recording_->end(stream);
  }
  void drop() { recording_.reset(); }

 private:
  const Driver& driver_;
  std::unique_ptr<Recording> recording_;  // null until somebody asks for activity
  ActivitySource::Rung rung_;
};

}  // namespace stepscope::cuda
