#include "tests/kernels/cuda_agreement.h"

namespace stepscope {

const TestedDevices& testedDevices() {
  static const auto device = findDevice("cuda");
  static const TestedDevices devices{{"cuda", "cuda", "cuda:0"}, device ? "" : device.error().message, true};
  return devices;
}

}  // namespace stepscope
