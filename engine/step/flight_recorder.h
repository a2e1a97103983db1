// The flight recorder: what the newest steps looked like, kept in memory for the moment when a number turns bad.
//
// Of every micro step at full speed it notes the largest absolute value and what is not finite of every trained parameter
// (before the step), every gradient as accumulated, and the output of every module. Values are looked at where they lie,
// right after the instruction that computes them, in one pass over their bits; neither plan nor numbers change. The looks
// may take kShare of a step: the recorder measures what they take and lets the largest tensors be read in parts, other parts
// in every step, so that after some steps all of it was seen. Small tensors are always read whole; steps that are too short
// for that are left out in turns. The first step is read whole.
//
// Only where the memory of the device is host memory: elsewhere reading values back would cost far more than the share.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/step/step_notes.h"

namespace stepscope {

// The bits of what was seen of a tensor.
struct FlightLook {
  std::int64_t step = -1;
  double largest = 0;               // absolute, of the finite ones
  std::int64_t nan = 0, inf = 0;    // elements
  std::int64_t looked = 0, of = 0;  // elements: fewer than all where a part was read
  bool finite() const { return nan == 0 && inf == 0; }
};

// Reads the elements whose block of 4096 falls on `part` of `parts`; parts == 1 reads all. Not for strings and integers.
FlightLook lookAt(const TensorView& view, std::int64_t parts = 1, std::int64_t part = 0);

// One tensor over the steps. What `of` and `kind` name is the same in every plan of a run.
struct FlightTrack {
  std::string kind, of;          // "parameter", "gradient", "output" and its parameter or module
  std::deque<FlightLook> looks;  // the newest FlightRecorder::kKept, oldest first
};

// What a plan lets the recorder see, in the order of the instructions; made once for a plan.
struct FlightPlan {
  struct Place {
    int instruction = -1;  // that computes it; -1: it is there before the first one
    ValueId value;
    std::size_t track = 0;
    std::int64_t bytes = 0;
  };
  std::vector<Place> places;
  std::int64_t bytes = 0;  // of all
};

// That the numbers of a step are far from those of the steps before it.
struct FlightJump {
  std::string kind, of;  // of the first tensor, in the order of the step, that is far off
  double now = 0, before = 0;
  double gradientNow = 0, gradientBefore = 0;  // largest element of all gradients
};

class FlightRecorder {
 public:
  static constexpr double kShare = 0.008;      // of a step
  static constexpr double kListeningNs = 150;  // that an instruction takes longer when somebody listens
  static constexpr std::size_t kKept = 32;
  static constexpr double kJump = 1000;  // so many times the largest gradient of the steps before is a jump

  explicit FlightRecorder(bool on = false) : on_(on) {}
  bool on() const { return on_; }
  // Nothing was seen: the state is another one, or the numbers mean something else from here on.
  void forget();

  FlightPlan planFor(const Executor& executor, const NotePlan& notes);
  void begin(const Executor& executor, const FlightPlan* plan, std::int64_t step);
  bool listens() const { return plan_ != nullptr; }  // whether after() is wanted in this step
  void after(int instruction, bool computed);
  void finish(std::int64_t ns);  // the step took `ns`, looks included
  // What the newest finished step gave it: its looks by the clock, and kListeningNs for each instruction that it was told
  // of.
  std::int64_t spentNs() const { return spent_; }
  void drop();  // the step was taken back: its looks stay until it runs again

  const std::vector<FlightTrack>& tracks() const { return tracks_; }
  // The first gradient of the running step that is not finite, in the order of the step; null: none was seen.
  const FlightTrack* badGradient() const;
  // Of the newest step that was finished.
  const FlightJump* jump() const { return jumped_ ? &jump_ : nullptr; }
  // The largest element of all parameters at the start of `step`; negative: not looked at. Infinite when one is not finite.
  double largestParameter(std::int64_t step) const;
  // What the newest steps looked like, a line each, newest last.
  std::vector<std::string> trail(std::size_t most = 4) const;

 private:
  void look(const FlightPlan::Place& place);
  void share(const FlightPlan& plan);
  void findJump();

  bool on_;
  std::vector<FlightTrack> tracks_;
  const Executor* executor_ = nullptr;
  const FlightPlan* plan_ = nullptr;
  std::size_t next_ = 0;
  std::int64_t step_ = -1, steps_ = 0;
  std::int64_t wholeBytes_ = -1;    // tensors up to this size are read whole; -1: all
  std::int64_t ns_ = 0, read_ = 0;  // of this step
  std::int64_t spent_ = 0;
  double credit_ = 0;  // nanoseconds that may be spent
  bool jumped_ = false;
  FlightJump jump_;
};

}  // namespace stepscope
