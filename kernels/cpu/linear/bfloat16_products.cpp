#include "kernels/cpu/linear/bfloat16_products.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "kernels/cpu/dnnl_support.h"
#include "kernels/tensor.h"

namespace stepscope::cpu {
namespace {

using dnnl::memory;

// A square product, ready to run.
class Probe {
 public:
  explicit Probe(memory::data_type type) : stream_(dnnlEngine()) {
    constexpr memory::dim kSide = 384;  // three operands of it fit into the cache of a core
    const memory::desc desc({kSide, kSide}, type, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc found(dnnl::matmul::desc(desc, desc, desc), userScratchpad(), dnnlEngine());
    slow_ = std::string(found.impl_info_str()).find("ref") != std::string::npos;
    product_ = dnnl::matmul(found);
    const auto room = [&](int argument, const memory::desc& of) {
      zeros_.emplace_back(DType::kU8, Dims{static_cast<std::int64_t>(of.get_size()) + 64});
      arguments_.emplace(argument, memory(of, dnnlEngine(), zeros_.back().data()));
    };
    for (const int argument : {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}) room(argument, desc);
    room(DNNL_ARG_SCRATCHPAD, found.scratchpad_desc());
  }

  // Of one run. Infinite where nothing fast takes the type.
  double seconds() {
    if (slow_) return std::numeric_limits<double>::infinity();
    const auto begin = std::chrono::steady_clock::now();
    product_.execute(stream_, arguments_);
    stream_.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::vector<Tensor> zeros_;
  std::unordered_map<int, memory> arguments_;
  bool slow_ = false;
};

Result<bool> isWorthIt() {
  Probe wide(memory::data_type::f32), low(memory::data_type::bf16);
  double inWide = std::numeric_limits<double>::infinity(), inLow = inWide;
  for (int round = 0; round < 6; ++round) {
    inWide = std::min(inWide, wide.seconds());
    inLow = std::min(inLow, low.seconds());
  }
  return inLow < std::numeric_limits<double>::infinity() && inWide >= 0.8 * inLow;
}

}  // namespace

bool multipliesBFloat16() {
  static const bool answer = [] {
    if (dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx) return true;
    return guardDnnl("product of bfloat16", 1, isWorthIt).value_or(false);
  }();
  return answer;
}

}  // namespace stepscope::cpu
