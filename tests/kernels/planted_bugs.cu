// Kernels with a bug each, which the emulator must find. One line of the table: the bug, how it is launched, what is said.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/support.h"
#include "tests/kernels/planted_bugs.h"

namespace stepscope {
namespace {

using cuda::Access;
using cuda::Global;
using cuda::Launcher;

using X = Global<const float>;
using Y = Global<float>;
constexpr int kN = kPlantedElements;  // of x, y and the workspace

SS_DEVICE int me() { return gpu::threadIndex(); }

// --- barriers
SS_GLOBAL void missingBarrier(X x, Y y) {
  SS_SHARED(float, tile, 64);
  tile[me()] = x[me()];
  y[me()] = tile[63 - me()];
}
SS_GLOBAL void missingBarrierBeforeReuse(X x, Y y) {
  SS_SHARED(float, tile, 64);
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    tile[me()] = x[me()] + static_cast<float>(round);
    gpu::syncThreads();
    sum += tile[63 - me()];
  }
  y[me()] = sum;
}
SS_GLOBAL void barrierInABranch(X x, Y y) {
  if (me() < 16) gpu::syncThreads();
  y[me()] = x[me()];
}
SS_GLOBAL void barrierBehindAnExit(X x, Y y) {
  y[me()] = x[me()];
  if (me() == 63) return;
  gpu::syncThreads();
}
SS_GLOBAL void barriersOfTwoBranches(X x, Y y) {
  if (me() < 32) {
    gpu::syncThreads();
  } else {
    gpu::syncThreads();
  }
  y[me()] = x[me()];
}
SS_GLOBAL void warpWithoutItsBarrier(X x, Y y) {
  SS_SHARED(float, tile, 64);
  tile[me()] = x[me()];
  const float other = tile[me() ^ 1];
  gpu::syncWarp();
  y[me()] = other;
}
// --- shuffles and votes
SS_GLOBAL void shuffleWithAnEndedLane(X x, Y y) {
  y[me()] = x[me()];
  if (me() % 32 >= 24) return;
  y[me()] = gpu::shuffleXor(static_cast<float>(x[me()]), 1);
}
SS_GLOBAL void shuffleInABranch(X x, Y y) {
  float value = x[me()];
  if (me() % 2 == 0) value = gpu::shuffleXor(value, 2);
  gpu::syncThreads();
  y[me()] = value;
}
SS_GLOBAL void shuffleWithoutOwnLane(X x, Y y) { y[me()] = gpu::shuffle(static_cast<float>(x[me()]), 0, 0xffff0000u); }
SS_GLOBAL void shuffleFromOutsideTheMask(X x, Y y) {
  const unsigned half = me() % 32 < 16 ? 0xffffu : 0xffff0000u;
  y[me()] = gpu::shuffleXor(static_cast<float>(x[me()]), 16, half);
}
SS_GLOBAL void shuffleOfAPartialWarp(X x, Y y) { y[me()] = gpu::shuffleXor(static_cast<float>(x[me()]), 1); }
SS_GLOBAL void voteInABranch(X x, Y y) {
  if (x[me()] > 3) y[me()] = gpu::ballot(true) != 0 ? 1.0F : 0.0F;
  gpu::syncThreads();
}
SS_GLOBAL void shufflesOfTwoLines(X x, Y y) {
  float value = x[me()];
  if (me() % 2 == 0)
    value = gpu::shuffleXor(value, 1);
  else
    value = gpu::shuffleXor(value, 1);
  y[me()] = value;
}
// --- bounds
SS_GLOBAL void readsOneTooFar(X x, Y y) { y[me()] = x[me() + 1]; }
SS_GLOBAL void writesOneTooFar(X x, Y y) { y[me() + 1] = x[me()]; }
SS_GLOBAL void leavesTheLastOut(X x, Y y) {
  if (me() < kN - 1) y[me()] = x[me()];
}
SS_GLOBAL void readsBeforeTheBeginning(X x, Y y) { y[me()] = x[me() - 1]; }
SS_GLOBAL void sharedTooFar(X x, Y y) {
  SS_SHARED(float, tile, 63);
  tile[me()] = x[me()];
  gpu::syncThreads();
  y[me()] = tile[me()];
}
SS_GLOBAL void fourTooFar(X x, Y y) {
  const gpu::Four<float> v = x.four(4 * me());
  y[me()] = v.x;
}
SS_GLOBAL void readsAnAbsentOperand(X, X absent, Y y) { y[me()] = absent[0]; }
// --- vectors
SS_GLOBAL void misalignedLoad(X x, Y y) {
  const gpu::Four<float> v = x.four(me() < 60 ? me() : 60);
  y[me()] = v.x;
}
SS_GLOBAL void misalignedStore(X x, Y y) {
  if (me() < 60) y.setFour(me(), {x[me()], x[me()], x[me()], x[me()]});
}
// --- values that are not there
SS_GLOBAL void readsEmptyShared(X x, Y y) {
  SS_SHARED(float, tile, 64);
  if (me() < 32) tile[me()] = x[me()];
  gpu::syncThreads();
  y[me()] = tile[me()];
}
SS_GLOBAL void addsToAResult(X x, Y y) { y[me()] += x[me()]; }
SS_GLOBAL void readsEmptyWorkspace(X x, Y y, Y room) { y[me()] = x[me()] + room[me()]; }
// --- races in global memory
SS_GLOBAL void blocksWriteTheSame(X x, Y y) { y[me()] = x[me()]; }
SS_GLOBAL void threadsWriteTheSame(X x, Y y) { y[me() / 2] = x[me()]; }
SS_GLOBAL void readsAnotherBlocksResult(X x, Y y) {
  const std::int64_t i = gpu::blockIndex() * 32 + me();
  y[i] = x[i];
  gpu::syncThreads();
  if (gpu::blockIndex() == 0) y[i] = y[i] + y[i + 32];
}
SS_GLOBAL void sumsWithoutAtomics(X x, Y y) {
  SS_SHARED(float, sum, 1);
  if (me() == 0) sum[0] = 0;
  gpu::syncThreads();
  sum[0] += x[me()];
  gpu::syncThreads();
  y[me()] = sum[0];
}
SS_GLOBAL void atomicsBesideAStore(X x, Y y) {
  if (me() == 0)
    y[0] = x[0];
  else
    y.atomicAdd(0, x[me()]);
}
SS_GLOBAL void inPlaceFromTheNeighbour(X x, Y y) { y[me()] = x[me() < kN - 1 ? me() + 1 : me()]; }
// --- launches
SS_GLOBAL void sharesTooMuch(X x, Y y) {
  SS_SHARED(float, tile, 16 * 1024);
  tile[me()] = x[me()];
  y[me()] = tile[me()];
}
SS_GLOBAL void copies(X x, Y y) { y[me()] = x[me()]; }
SS_GLOBAL void writesTwoResults(X x, Y y, Y z) {
  y[me()] = x[me()];
  z[me()] = x[me()];
}

template <void (*kKernel)(X, Y)>
Status plain(Launcher& gpu) {
  return gpu.run("planted", gpu::function<kKernel>, 1, kN, gpu.in<float>(0), gpu.out<float>(0));
}
template <void (*kKernel)(X, Y)>
Status part(Launcher& gpu) {
  return gpu.run("planted", gpu::function<kKernel>, 1, kN, gpu.in<float>(0), gpu.out<float>(0, Access::kPart));
}
template <void (*kKernel)(X, Y)>
Status readWrite(Launcher& gpu) {
  return gpu.run("planted", gpu::function<kKernel>, 1, kN, gpu.in<float>(0), gpu.out<float>(0, Access::kReadWrite));
}

}  // namespace

const std::vector<PlantedBug>& plantedBugs() {
  static const std::vector<PlantedBug> kBugs{
      {"MissingBarrier", plain<missingBarrier>, ""},  // a value that is not there yet, or a race,
      {"MissingBarrierBeforeReuse", plain<missingBarrierBeforeReuse>, "with no barrier between"},
      {"BarrierInABranch", plain<barrierInABranch>, "has ended"},
      {"BarrierBehindAnExit", plain<barrierBehindAnExit>, "but thread 63 has ended"},
      {"BarriersOfTwoBranches", plain<barriersOfTwoBranches>, "threads meet at two barriers"},
      {"WarpWithoutItsBarrier", plain<warpWithoutItsBarrier>, ""},  // as above,
      {"ShuffleWithAnEndedLane", plain<shuffleWithAnEndedLane>, "has ended"},
      {"ShuffleInABranch", plain<shuffleInABranch>, "of its mask waits at the barrier"},
      {"ShuffleWithoutOwnLane", plain<shuffleWithoutOwnLane>, "leaves the thread's own lane"},
      {"ShuffleFromOutsideTheMask", plain<shuffleFromOutsideTheMask>, "in a shuffle whose mask is"},
      {"ShuffleOfAPartialWarp",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<shuffleOfAPartialWarp>, 1, 48, gpu.in<float>(0),
                        gpu.out<float>(0, Access::kPart));
       },
       "which a block of 48 threads has not"},
      {"VoteInABranch", part<voteInABranch>, "in the vote of line"},
      {"ShufflesOfTwoLines", plain<shufflesOfTwoLines>, "meet at two places"},
      {"ReadsOneTooFar", plain<readsOneTooFar>, "input 0: element 64 of 64"},
      {"WritesOneTooFar", part<writesOneTooFar>, "output 0: element 64 of 64"},
      {"LeavesTheLastOut", plain<leavesTheLastOut>, "element 63 of 64 was never written"},
      {"ReadsBeforeTheBeginning", plain<readsBeforeTheBeginning>, "input 0: element -1 of 64"},
      {"SharedTooFar", plain<sharedTooFar>, "shared array 1: element 63 of 63"},
      {"FourTooFar", plain<fourTooFar>, "of 64"},
      {"ReadsAnAbsentOperand",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<readsAnAbsentOperand>, 1, kN, gpu.in<float>(0), gpu.in<float>(9),
                        gpu.out<float>(0));
       },
       "an operand that is absent"},
      {"MisalignedLoad", plain<misalignedLoad>, "whose address is no multiple of 16"},
      {"MisalignedStore", part<misalignedStore>, "whose address is no multiple of 16"},
      {"ReadsEmptyShared", plain<readsEmptyShared>, "which nobody has written"},
      {"AddsToAResult", plain<addsToAResult>, "which nobody has written"},
      {"ReadsEmptyWorkspace",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<readsEmptyWorkspace>, 1, kN, gpu.in<float>(0), gpu.out<float>(0),
                        gpu.room<float>(0, kN, Access::kPart));
       },
       "which nobody has written"},
      {"BlocksWriteTheSame",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<blocksWriteTheSame>, 2, kN, gpu.in<float>(0), gpu.out<float>(0));
       },
       "with no barrier between"},
      {"ThreadsWriteTheSame", part<threadsWriteTheSame>, "with no barrier between"},
      {"ReadsAnotherBlocksResult",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<readsAnotherBlocksResult>, 2, 32, gpu.in<float>(0), gpu.out<float>(0));
       },
       ""},  // as above
      {"SumsWithoutAtomics", plain<sumsWithoutAtomics>, "with no barrier between"},
      {"AtomicsBesideAStore", readWrite<atomicsBesideAStore>, "with no barrier between"},
      {"InPlaceFromTheNeighbour",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<inPlaceFromTheNeighbour>, 1, kN, gpu.readOut<float>(0), gpu.out<float>(0));
       },
       "with no barrier between"},
      {"SharesTooMuch", plain<sharesTooMuch>, "65536 bytes of shared memory"},
      {"BlockTooLarge",
       [](Launcher& gpu) { return gpu.run("planted", gpu::function<copies>, 1, 2048, gpu.in<float>(0), gpu.out<float>(0)); },
       "blocks of 2048 threads"},
      {"NoBlocks",
       [](Launcher& gpu) { return gpu.run("planted", gpu::function<copies>, 0, kN, gpu.in<float>(0), gpu.out<float>(0)); },
       "0 blocks"},
      {"ResultsOverEachOther",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<writesTwoResults>, 1, kN, gpu.in<float>(0), gpu.out<float>(0),
                        gpu.out<float>(0));
       },
       "lie over each other and both are written"},
      {"WorkspaceTooSmall",
       [](Launcher& gpu) {
         return gpu.run("planted", gpu::function<writesTwoResults>, 1, kN, gpu.in<float>(0), gpu.out<float>(0),
                        gpu.room<float>(8192, kN));
       },
       "of a workspace of 256 bytes"},
  };
  return kBugs;
}

const std::vector<PlantedBug>& soundKernels() {
  static const std::vector<PlantedBug> kSound{
      {"Copy", plain<copies>, ""},
      {"InPlace",
       [](Launcher& gpu) {
         return gpu.run("sound", gpu::function<copies>, 1, kN, gpu.readOut<float>(0), gpu.out<float>(0));
       },
       ""},
  };
  return kSound;
}

std::unique_ptr<Kernel> kernelOf(const PlantedBug& bug) {
  return cuda::makeLaunched(
      bug.name, [run = bug.run](Launcher& gpu) { return run(gpu); }, kN * sizeof(float));
}

}  // namespace stepscope
