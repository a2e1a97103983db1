#include "kernels/cpu/dnnl_support.h"

#include <sys/mman.h>

#include <array>
#include <vector>

namespace stepscope::cpu {

const dnnl::engine& dnnlEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Status roomForCode(std::string_view op) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;  // the largest kernels of one primitive take less
  void* const room = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    return fail(ErrorCode::kOutOfMemory,
                std::string(op) + ": the system gave no more memory; expected room for the code of its kernel");
  munmap(room, kBytes);
  static const dnnl_status_t made = [] {
    // The library writes the code of a product when one of its form runs first, also within other primitives.
    constexpr dnnl_dim_t kSide = 32;  // smaller ones are products with a vector, which have code of their own
    const std::vector<float> a(kSide * kSide), b(kSide * kSide);
    std::vector<float> product(kSide * kSide);
    for (const dnnl_dim_t columns : {dnnl_dim_t{1}, kSide})
      for (const char left : {'N', 'T'})
        for (const char right : {'N', 'T'})
          for (const float beta : {0.0F, 1.0F})
            if (const dnnl_status_t status = dnnl_sgemm(left, right, kSide, columns, kSide, 1, a.data(), kSide, b.data(),
                                                        kSide, beta, product.data(), kSide);
                status != dnnl_success)
              return status;
    return dnnl_success;
  }();
  return dnnlStatus(made, "product");
}

dnnl::primitive_attr userScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::memory placeholder(const dnnl::memory::desc& desc) { return {desc, dnnlEngine(), DNNL_MEMORY_NONE}; }

dnnl::memory::desc plainDesc(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, dnnl::memory::data_type::f32, strides};
}

Status dnnlStatus(dnnl_status_t status, std::string_view what) {
  if (status == dnnl_success) return {};
  const std::string text = std::string(what) + ": oneDNN ";
  if (status == dnnl_out_of_memory) return fail(ErrorCode::kOutOfMemory, text + "found no memory");
  if (status == dnnl_unimplemented) return unsupported(text + "does not implement it");
  return fail(ErrorCode::kInternal, text + "answered " + std::to_string(static_cast<int>(status)) + "; expected success");
}

Status execute(const dnnl::primitive& primitive, const dnnl::stream& stream,
               const std::unordered_map<int, dnnl::memory>& arguments) {
  std::array<dnnl_exec_arg_t, 16> list;
  SS_CHECK(arguments.size() <= list.size());
  int count = 0;
  for (const auto& [role, memory] : arguments) list[static_cast<std::size_t>(count++)] = {role, memory.get()};
  return dnnlStatus(dnnl_primitive_execute(primitive.get(), stream.get(), count, list.data()), "primitive");
}

Status wait(const dnnl::stream& stream) { return dnnlStatus(dnnl_stream_wait(stream.get()), "stream"); }

Determinism libraryOrder() { return Determinism::perThread("oneDNN may cut sums by the number of threads"); }

std::string implementationName(const char* info) { return std::string("onednn ") + info; }

}  // namespace stepscope::cpu
