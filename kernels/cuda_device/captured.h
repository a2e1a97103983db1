// Graphs of the driver: what is put on the streams of a device is captured, made executable once, and launched as a whole.
// A capture begins on the first stream; the others join it by an event and are joined back at its end. Around a launch the
// same is done with what lies on the streams, so that a graph is ordered as the calls it was made of would be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

class Captured {
 public:
  // The context of `driver` is current wherever a function of this class is called.
  explicit Captured(const Driver& driver) : driver_(driver) {}
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  // An executable graph, and how many kernels, copies and fills it has.
  struct Made {
    CuGraphExec executable = nullptr;
    std::int64_t operations = 0;
  };
  // Errors: what the driver answers. After begin() has succeeded, end() takes the streams out of the capture whatever it
  // answers.
  CuResult begin(std::span<const CuStream> streams);
  CuResult end(std::span<const CuStream> streams, Made* made);
  CuResult launch(CuGraphExec executable, std::span<const CuStream> streams);

 private:
  using Events = std::vector<CuEvent>;
  CuResult need(Events& events, std::size_t count);
  // The first stream waits for the others; the others wait for the first one. With an event for each stream.
  CuResult join(std::span<const CuStream> streams, const Events& events);
  CuResult fork(std::span<const CuStream> streams, const Events& events);

  const Driver& driver_;
  Events within_, around_;  // of captures, of launches; by stream
};

}  // namespace stepscope::cuda
