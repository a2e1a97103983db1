// Tests that link stepscope_fake_gpu find the fake driver as libcuda.so.1; this gives it code to load.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace stepscope {

/// A folder of this process, gone when it ends.
class CodeFolder {
 public:
  explicit CodeFolder(const std::string& name)
      : path_(std::filesystem::path(::testing::TempDir()) / (name + "_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~CodeFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CodeFolder(const CodeFolder&) = delete;
  CodeFolder& operator=(const CodeFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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
  static const CodeFolder folder("fake_gpu");
  std::ofstream(folder.path() / "fake.fatbin") << "fake GPU code";
  std::ofstream names(folder.path() / "fake.names");
  kernels([](const char* name, void* data) { *static_cast<std::ofstream*>(data) << name << '\n'; }, &names);
  setenv("STEPSCOPE_GPU_CODE", folder.path().c_str(), 1);
  setenv("STEPSCOPE_FAKE_GPU", orders.c_str(), 1);
  for (const char* library : {"STEPSCOPE_CUPTI", "STEPSCOPE_CUBLASLT", "STEPSCOPE_NCCL", "STEPSCOPE_NVRTC"})
    if (!std::getenv(library)) setenv(library, "off", 1);
  return true;
}

}  // namespace stepscope
