#include "tests/kernels/cuda_agreement.h"
#include "tests/kernels/fake_gpu/use.h"

namespace stepscope {
namespace {

std::string lacking() {
  if (!useFakeGpu()) return "no fake GPU";
  const auto device = findDevice("cuda");
  return device ? "" : device.error().message;
}

}  // namespace

const TestedDevices& testedDevices() {
  static const TestedDevices devices{{"cuda", "cuda", "cuda:0"}, lacking(), false};
  return devices;
}

}  // namespace stepscope
