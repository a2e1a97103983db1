// What the kernels on oneDNN share: engine, errors, memory whose address comes with the call.
//
// Primitives and memory objects are made with the kernel; a run only sets addresses. Scratch memory of primitives is ours
// (scratchpad mode user) and part of the kernel's workspace.
#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/kernel.h"
#include "kernels/threads.h"

namespace stepscope::cpu {

// The process-wide CPU engine. Thread-safe.
const dnnl::engine& dnnlEngine();

// Runs `make`, which may throw dnnl::error, and turns what it throws into kUnsupported, which falls back to the reference
// kernel.
// Primitives are made for `threads`; they are to run under a ThreadScope of as many.
template <typename Make>
auto guardDnnl(std::string_view op, int threads, Make&& make) -> decltype(make()) {
  try {
    const ThreadScope scope(threads);
    return make();
  } catch (const dnnl::error& error) {
    return unsupported(std::string(op) + ": oneDNN refused the operands: " + error.what());
  }
}

// Attributes with scratchpad mode user.
dnnl::primitive_attr userScratchpad();

// A memory object without an address.
dnnl::memory placeholder(const dnnl::memory::desc& desc);

// Row-major descriptor of f32.
dnnl::memory::desc plainDesc(const dnnl::memory::dims& dims);

// "onednn brg:avx512_core"
std::string implementationName(const char* info);

// Runs the primitive; unlike dnnl::primitive::execute it takes nothing from the heap.
void execute(const dnnl::primitive& primitive, const dnnl::stream& stream,
             const std::unordered_map<int, dnnl::memory>& arguments);

// Regions of one workspace, each aligned to 64 bytes.
class WorkspaceLayout {
 public:
  // Offset of a new region.
  std::size_t add(std::size_t bytes) {
    const std::size_t offset = size_;
    size_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

// A primitive with its arguments.
struct Launch {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
  std::size_t scratch = 0;  // offset in the workspace, where arguments has a scratchpad
};

}  // namespace stepscope::cpu
