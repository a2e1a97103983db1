#include "engine/lab/free_memory.h"

#include <gtest/gtest.h>

#include "engine/plan/fits.h"

namespace stepscope {
namespace {

TEST(FreeMemory, OfThisMachineIsAtMostAllOfIt) {
  EXPECT_GT(freeMemoryBytes(), 0);
  EXPECT_LE(freeMemoryBytes(), machineMemoryBytes());
}

}  // namespace
}  // namespace stepscope
