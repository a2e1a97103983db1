// The device `emulated`: the kernels of kernels/cuda, run by fibres on the CPU, in memory that host code cannot touch.
//
// It is an instrument: slow, and strict. Streams run when somebody waits for them, in an order that the seed chooses among
// those that the events allow; threads and blocks too. What a kernel does wrong, and what was ordered to fail, ends in an
// error; after one that a GPU would not survive every further call answers with it (a sticky error).
//
// Its name says how it behaves: "emulated", or "emulated:" and items with commas between:
//
//   seed=N             order of threads, blocks and streams (1)
//   streams=eager      every call runs at once, so that an error has the node's name; else lazy
//   checks=bounds      no search for races, missing values and missing results; else all
//   lacks=OP           takes no nodes of this op; may stand several times
//   fail-allocation=N  the N-th allocation is refused, once
//   fail-launch=N      the N-th launch fails with a sticky error
//   lose-device=N      from the N-th launch on the device is gone
//   drop-records=N     every N-th record of what ran when is lost (kernels/activity.h)
//   memory=N           it has so many bytes; else as many as the system gives
//   no-device, old-driver   it is not found, as on machines without a GPU or with a driver too old
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/device.h"

namespace stepscope {

// Errors: kInvalidArgument for an item that is none of these, kUnsupported for the last two.
Result<std::unique_ptr<Device>> makeEmulatedDevice(const std::string& name);

// The kernels of kernels/cuda, one line per kernel there. Compiled for the emulator in every build.
std::span<const KernelEntry> cudaKernels();

// Whether one of them takes the spec: as it is, or in float32 between casts.
bool cudaTakes(const KernelSpec& spec);

}  // namespace stepscope
