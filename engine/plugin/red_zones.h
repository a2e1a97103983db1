// Copies of a kernel's operands between zones of a known pattern, in its workspace. Option plugin.check.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "plugins/abi/stepscope_plugin.h"

namespace stepscope {

class RedZones {
 public:
  // For operands of these types and extents, and so many bytes of scratch memory.
  RedZones(const KernelSpec& spec, std::uint64_t scratch);
  std::size_t bytes() const { return bytes_; }  // of the workspace that it needs

  // Before a run: copies the inputs, points `buffers` (inputs, then outputs) at the copies, and returns the address of the
  // scratch memory. Outputs begin as NaN, so that an element that is not written shows.
  void* fill(std::span<std::byte> workspace, std::vector<ssp_buffer>& buffers, std::size_t inputs);
  // After it: what was written that may not be, in words; empty when nothing was. For the buffers of the last fill().
  std::string check(const KernelCall& call) const;
  void copyOut(const KernelCall& call) const;  // the outputs to where they belong

 private:
  struct Part {
    std::size_t at = 0, bytes = 0;  // within the workspace, behind its first zone
    std::string name;               // "input 0", "output 1", "scratch memory"
  };
  std::string zoneProblem(const Part& part) const;

  std::vector<Part> parts_;  // inputs, outputs, scratch
  std::size_t inputs_ = 0, bytes_ = 0;
  std::byte* begin_ = nullptr;
};

}  // namespace stepscope
