// Kernels with a bug each, for the test of the emulator.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope {

namespace gpu {
class Launcher;
}

/// Elements of input 0, output 0 and the workspace, all float32; also threads of the block.
inline constexpr int kPlantedElements = 64;

struct PlantedBug {
  std::string name;
  Status (*run)(gpu::Launcher& gpu);
  // A part of what the emulator says; empty where the order of the threads decides whether it is a value that nobody has
  // written or a race.
  std::string message;
};

const std::vector<PlantedBug>& plantedBugs();
/// Kernels without a bug that look like some of them.
const std::vector<PlantedBug>& soundKernels();
inline void PrintTo(const PlantedBug& bug, std::ostream* out) { *out << bug.name; }
/// The kernel of a line.
std::unique_ptr<Kernel> kernelOf(const PlantedBug& bug);

}  // namespace stepscope
