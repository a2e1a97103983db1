// Kernels of shared libraries (kernels/library_code.h), loaded into the context of one GPU. A module goes when somebody asks
// after its code has gone.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda_device/driver.h"
#include "kernels/library_code.h"

namespace stepscope::cuda {

class LibraryFunctions {
 public:
  // The context of `driver` is current wherever a function of this class is called.
  explicit LibraryFunctions(const Driver& driver) : driver_(driver) {}
  ~LibraryFunctions();
  LibraryFunctions(const LibraryFunctions&) = delete;
  LibraryFunctions& operator=(const LibraryFunctions&) = delete;

  // All functions of the code, in its order. Loads what is not loaded, if `mayLoad`. Errors: kUnsupported: there is no code
  // for this GPU; kCorrupt: the driver does not take the image, or the image lacks a function; kInternal: what the driver
  // answers else. The same as the first time for code that is known.
  Result<std::span<const CuFunction>> of(const std::shared_ptr<const LibraryCode>& code, bool mayLoad);

 private:
  struct Loaded {
    std::weak_ptr<const LibraryCode> code;
    CuModule module = nullptr;
    std::vector<CuFunction> functions;
    Status status;
  };
  Status load(const LibraryCode& code, Loaded& loaded);
  void dropGone();

  const Driver& driver_;
  std::map<const LibraryCode*, Loaded> known_;
};

}  // namespace stepscope::cuda
