#include "kernels/cuda/chain_source.h"

#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <limits>

#include "kernels/cuda/elementwise_step.h"
#include "kernels/cuda/step_functions_text.h"
#include "kernels/generated_kernel.h"

namespace stepscope::cuda {
namespace {

// A compiler at run time has no headers of the toolkit.
constexpr std::string_view kLanguage = R"(#define SS_DEVICE __device__ __forceinline__
namespace stepscope::gpu {
struct Half {
  unsigned short bits;
  SS_DEVICE explicit Half(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  SS_DEVICE explicit operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
struct BFloat {
  unsigned short bits;
  SS_DEVICE explicit BFloat(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  SS_DEVICE explicit operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};
}  // namespace stepscope::gpu
)";

std::string bitsOf(float value) { return fmt::format("__int_as_float({})", std::bit_cast<std::int32_t>(value)); }

class Writer {
 public:
  explicit Writer(const ChainForm& chain) : c_(chain) {}

  std::string write() {
    line("extern \"C\" __global__ void __launch_bounds__({}) {}({}{}* y) {{", kGeneratedThreads, kGeneratedEntry,
         parameters(), c_.maskResult ? "unsigned char" : "float");
    line("  using namespace stepscope::cuda;");
    line("  const long long first = (blockIdx.x * {}LL + threadIdx.x) * {};", kGeneratedThreads, kGeneratedEach);
    line("  if (first >= {}LL) return;", c_.total);
    line("  const int n = {0}LL - first < {1} ? static_cast<int>({0}LL - first) : {1};", c_.total, kGeneratedEach);
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) load(i);
    line("  float result[{}];", kGeneratedEach);
    line("#pragma unroll");
    line("  for (int e = 0; e < {}; ++e) {{", kGeneratedEach);
    line("    if (e >= n) break;");
    walk();
    for (std::size_t s = 0; s < c_.steps.size(); ++s) step(s);
    line("    result[e] = {};", operand(static_cast<int>(c_.inputs.size() + c_.steps.size()) - 1));
    line("  }}");
    store();
    line("}}");
    return std::move(text_);
  }

 private:
  template <typename... A>
  void line(fmt::format_string<A...> text, A&&... values) {
    fmt::format_to(std::back_inserter(text_), text, std::forward<A>(values)...);
    text_ += '\n';
  }

  std::string parameters() const {
    std::string text;
    for (std::size_t i = 0; i < c_.inputs.size(); ++i)
      text += fmt::format("const {}* x{}, ", c_.inputs[i].mask ? "unsigned char" : "float", i);
    return text;
  }

  std::string element(std::size_t i, std::string_view at) const {
    return c_.inputs[i].mask ? fmt::format("(x{}[{}] != 0 ? 1.0F : 0.0F)", i, at) : fmt::format("x{}[{}]", i, at);
  }

  // What does not depend on the element: numbers, and runs of four.
  void load(std::size_t i) {
    const ChainForm::Input& input = c_.inputs[i];
    if (input.lies == ChainForm::Lies::kScalar) line("  const float a{} = {};", i, element(i, "0"));
    if (input.lies != ChainForm::Lies::kAsResult) return;
    line("  float a{}[{}];", i, kGeneratedEach);
    if (!input.mask) {
      line("  if (n == {}) {{", kGeneratedEach);
      line("    const float4 four = *reinterpret_cast<const float4*>(x{} + first);", i);
      line("    a{0}[0] = four.x, a{0}[1] = four.y, a{0}[2] = four.z, a{0}[3] = four.w;", i);
      line("  }} else");
    }
    line("#pragma unroll");
    line("  for (int e = 0; e < {}; ++e)", kGeneratedEach);
    line("    if (e < n) a{}[e] = {};", i, element(i, "first + e"));
  }

  // Where walked inputs have element first + e. Divisions by numbers that the compiler knows.
  void walk() {
    bool any = false;
    for (const ChainForm::Input& input : c_.inputs) any = any || input.lies == ChainForm::Lies::kWalked;
    if (!any) return;
    const bool small = c_.total <= std::numeric_limits<std::int32_t>::max();
    line("    {0} at = static_cast<{0}>(first) + e;", small ? "unsigned" : "unsigned long long");
    for (std::size_t a = c_.extents.size(); a-- > 0;) {
      const char* const suffix = small ? "U" : "ULL";
      line("    const {} i{} = at % {}{};", small ? "unsigned" : "unsigned long long", a, c_.extents[a], suffix);
      line("    at /= {}{};", c_.extents[a], suffix);
    }
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) {
      if (c_.inputs[i].lies != ChainForm::Lies::kWalked) continue;
      std::string at = "0LL";
      for (std::size_t a = 0; a < c_.extents.size(); ++a)
        if (c_.inputs[i].strides[a] != 0)
          at += fmt::format(" + static_cast<long long>(i{}) * {}LL", a, c_.inputs[i].strides[a]);
      line("    const float a{} = {};", i, element(i, at));
    }
  }

  std::string operand(int k) const {
    const auto i = static_cast<std::size_t>(k);
    if (i >= c_.inputs.size()) return fmt::format("s{}", i - c_.inputs.size());
    return c_.inputs[i].lies == ChainForm::Lies::kAsResult ? fmt::format("a{}[e]", i) : fmt::format("a{}", i);
  }

  void step(std::size_t s) {
    const ChainForm::Step& one = c_.steps[s];
    const std::string a = operand(one.operands[0]), b = operand(one.operands[1]), c = operand(one.operands[2]);
    // Rounded by themselves: what multiplies may stand before what adds, as two nodes would.
    switch (static_cast<Step>(one.step)) {
      case Step::kAdd: return line("    const float s{} = __fadd_rn({}, {});", s, a, b);
      case Step::kSub: return line("    const float s{} = __fsub_rn({}, {});", s, a, b);
      case Step::kMul: return line("    const float s{} = __fmul_rn({}, {});", s, a, b);
      default: break;
    }
    line("    const float s{} = stepOf(static_cast<Step>({}), {}, {}, {}, {}, {});", s, one.step, a, b, c, bitsOf(c_.p),
         bitsOf(c_.q));
  }

  void store() {
    if (!c_.maskResult) {
      line("  if (n == {}) {{", kGeneratedEach);
      line("    *reinterpret_cast<float4*>(y + first) = make_float4(result[0], result[1], result[2], result[3]);");
      line("    return;");
      line("  }}");
    }
    line("#pragma unroll");
    line("  for (int e = 0; e < {}; ++e)", kGeneratedEach);
    line("    if (e < n) y[first + e] = static_cast<{}>(result[e]);", c_.maskResult ? "unsigned char" : "float");
  }

  const ChainForm& c_;
  std::string text_;
};

}  // namespace

std::string chainSource(const ChainForm& chain) { return Writer(chain).write(); }

std::string_view chainPrelude() {
  static const std::string kPrelude = fmt::format("{}{}", kLanguage, kStepFunctions);
  return kPrelude;
}

}  // namespace stepscope::cuda
