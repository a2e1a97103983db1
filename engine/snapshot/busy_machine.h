// Whether something else ran on the machine while times were taken: the one rule, and its one sentence, for window, terminal
// and reports.
#pragma once

#include <cstdint>
#include <string>

namespace stepscope {

// Sums over the timed steps, in nanoseconds.
struct ProcessorTimes {
  std::int64_t cpu = 0;   // processor time of the process
  std::int64_t wait = 0;  // its threads were ready to run and had no core, summed up over them
  std::int64_t wall = 0;

  // Of the processor time that the threads asked for, what they waited for, 0..1.
  double waitShare() const { return cpu + wait > 0 ? static_cast<double>(wait) / static_cast<double>(cpu + wait) : 0; }
  double processors() const { return wall > 0 ? static_cast<double>(cpu) / static_cast<double>(wall) : 0; }
  bool busy() const { return waitShare() >= kBusy; }  // something else ran on the machine, and the times are longer for it

  static constexpr double kBusy = 0.1;
};

// "49 % of the processor time that the steps asked for was spent waiting for a core (computed 24 ms, waited 23 ms, in 23.4
// ms by the clock)"; empty where the machine was not busy.
std::string busyText(const ProcessorTimes& times);

// How long a thread had no core on average, as a part of `ns`, which is spread over the timed steps like all of their time.
// Not more than `ns`; 0 where nothing is known.
std::int64_t withoutCore(const ProcessorTimes& times, int threads, std::int64_t ns);

// Peaks whose threads had no core for more than this share of the time are too low to trust: roofs that they give may be
// above the least time.
inline constexpr double kMostQueuedShare = 0.05;
inline bool peaksDisturbed(double waiting) { return waiting > kMostQueuedShare; }
// "measured on a busy machine: its threads had no core for 70 % of the time, so the machine may do more"; empty where they
// were not disturbed.
std::string disturbedText(double waiting);

}  // namespace stepscope
