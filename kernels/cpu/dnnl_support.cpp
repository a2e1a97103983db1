#include "kernels/cpu/dnnl_support.h"

#include <array>

namespace stepscope::cpu {

const dnnl::engine& dnnlEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
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

void execute(const dnnl::primitive& primitive, const dnnl::stream& stream,
             const std::unordered_map<int, dnnl::memory>& arguments) {
  std::array<dnnl_exec_arg_t, 16> list;
  SS_CHECK(arguments.size() <= list.size());
  int count = 0;
  for (const auto& [role, memory] : arguments) list[static_cast<std::size_t>(count++)] = {role, memory.get()};
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(), count, list.data()),
                          "could not execute a primitive");
}

std::string implementationName(const char* info) { return std::string("onednn ") + info; }

}  // namespace stepscope::cpu
