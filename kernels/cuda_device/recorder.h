// The records of a device: by CUPTI where it records, else by events; with counters where they are asked for and can be had.
// What cannot be had is found out once per rung that is asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda_device/cupti_counters.h"
#include "kernels/cuda_device/recording.h"

namespace stepscope::cuda {

class Recorder {
 public:
  // The context of `driver`, `context`, is current wherever a function of this class is called, its destructor among them.
  Recorder(const Driver& driver, CuContext context, CuDevice device) : driver_(driver), context_(context), device_(device) {}

  void start(CuStream clock, ActivityRung highest);
  // Nothing where nobody has started.
  Activity take(CuStream clock);
  bool isThere() const { return recording_ != nullptr; }
  std::int64_t lost() const { return lost_ + (recording_ ? recording_->lost() : 0); }
  ActivitySource::Rung rung() const { return rung_; }
  // Around the calls of the driver for one piece of work, as Recording has them. `counted`: false where the host must not
  // wait, as in the capture of a graph.
  void begin(CuStream stream, StreamId id, const Recording::Work& work, bool counted = false);
  void end(CuStream stream);
  void drop();

 private:
  // The rung where counting began like that.
  ActivitySource::Rung rungWith(const Status& counting) const;
  // Makes recording_ and counters_ for the rung; says in times_ and rung_ what came of it.
  void choose(CuStream clock, ActivityRung highest);

  const Driver& driver_;
  const CuContext context_;
  const CuDevice device_;
  std::optional<ActivityRung> chosen_;  // for which the rest was made
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<CuptiCounters> counters_;  // null: nothing is counted
  ActivitySource::Rung times_, rung_;        // without counters, and with them
  std::int64_t lost_ = 0;                    // by recordings that are gone
};

}  // namespace stepscope::cuda
