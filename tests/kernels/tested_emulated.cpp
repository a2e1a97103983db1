#include "tests/kernels/cuda_agreement.h"

namespace stepscope {

// Ten orders: three with every check, the others with those of bounds alone, which are faster.
const TestedDevices& testedDevices() {
  static const TestedDevices devices{
      {"emulated", "emulated:seed=77", "emulated:seed=4711,streams=eager", "emulated:seed=4,checks=bounds",
       "emulated:seed=5,checks=bounds", "emulated:seed=6,checks=bounds", "emulated:seed=7,checks=bounds",
       "emulated:seed=8,checks=bounds", "emulated:seed=9,checks=bounds", "emulated:seed=10,checks=bounds"},
      {},
      false};
  return devices;
}

}  // namespace stepscope
