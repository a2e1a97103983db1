// Tests that link stepscope_fake_gpu find the fake driver as libcuda.so.1; this gives it code to load.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace stepscope {

/// From now on devices `cuda` are made on the fake GPU, with what `orders` says (fake_gpu/gpu.h). False, with a failure,
/// where the driver that is found is not the fake one.
inline bool useFakeGpu(const std::string& orders = "") {
  using Each = void (*)(const char*, void*);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto kernels = driver ? reinterpret_cast<void (*)(Each, void*)>(dlsym(driver, "fakeGpuKernels")) : nullptr;
  if (!kernels) {
    ADD_FAILURE() << "libcuda.so.1 is not the fake one: " << (driver ? "it is a real driver" : dlerror());
    return false;
  }
  const auto folder = std::filesystem::path(testing::TempDir()) / ("fake_gpu_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "fake.fatbin") << "fake GPU code";
  std::ofstream names(folder / "fake.names");
  kernels([](const char* name, void* data) { *static_cast<std::ofstream*>(data) << name << '\n'; }, &names);
  setenv("STEPSCOPE_GPU_CODE", folder.c_str(), 1);
  setenv("STEPSCOPE_FAKE_GPU", orders.c_str(), 1);
  return true;
}

}  // namespace stepscope
