// What the kernels on oneDNN share: engine, errors, memory whose address comes with the call.
//
// Primitives and memory objects are made with the kernel; a run only sets addresses. Scratch memory of primitives is ours
// (scratchpad mode user) and part of the kernel's workspace.
#pragma once

#include <atomic>
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

// Whether the system still gives the memory that the library writes code into: it does not survive a refusal. Makes what the
// library would otherwise make in the first product that runs, where nobody asks any more. Error: kOutOfMemory.
Status roomForCode(std::string_view op);

// Runs `make`, which may throw dnnl::error, and turns what it throws into kUnsupported, which falls back to the reference
// kernel. Error too: roomForCode().
// Primitives are made for `threads`; they are to run under a ThreadScope of as many.
template <typename Make>
auto guardDnnl(std::string_view op, int threads, Make&& make) -> decltype(make()) {
  if (Status room = roomForCode(op); !room) return tl::make_unexpected(std::move(room.error()));
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
// What a kernel that leaves a product or a convolution to the library says.
Determinism libraryOrder();

// An answer of the C interface: kOutOfMemory, kUnsupported, or kInternal with its number for what should not happen. Kernels
// run the library through it, not through the C++ interface, which throws: no exception leaves run() or a parallel region.
Status dnnlStatus(dnnl_status_t status, std::string_view what);

// Runs the primitive; unlike dnnl::primitive::execute it takes nothing from the heap.
Status execute(const dnnl::primitive& primitive, const dnnl::stream& stream,
               const std::unordered_map<int, dnnl::memory>& arguments);
Status wait(const dnnl::stream& stream);

// The last failure among calls of several threads.
class DnnlFailure {
 public:
  void note(dnnl_status_t status) {
    if (status != dnnl_success) status_.store(status, std::memory_order_relaxed);
  }
  Status status(std::string_view what) const { return dnnlStatus(status_.load(std::memory_order_relaxed), what); }

 private:
  std::atomic<dnnl_status_t> status_{dnnl_success};
};

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
