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
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T x, y, z, w;
};
}  // namespace stepscope::gpu
)";

std::string bitsOf(float value) { return fmt::format("__int_as_float({})", std::bit_cast<std::int32_t>(value)); }

const char* nameOf(ChainType type) {
  switch (type) {
    case ChainType::kFloat: return "float";
    case ChainType::kBool: return "unsigned char";
    case ChainType::kFloat16: return "stepscope::gpu::Half";
    case ChainType::kBFloat16: return "stepscope::gpu::BFloat";
  }
  return "";
}

class Writer {
 public:
  explicit Writer(const ChainForm& chain) : c_(chain) {}

  std::string write() {
    line("extern \"C\" __global__ void __launch_bounds__({}) {}({}{}) {{", c_.sum ? c_.sum->threads : kGeneratedThreads,
         kGeneratedEntry, parameters(), c_.sum ? "double* sums" : fmt::format("{}* y", nameOf(c_.result)));
    line("  using namespace stepscope::cuda;");
    if (c_.sum)
      writeSum(*c_.sum);
    else
      writeElements();
    line("}}");
    return std::move(text_);
  }

 private:
  template <typename... A>
  void line(fmt::format_string<A...> text, A&&... values) {
    fmt::format_to(std::back_inserter(text_), text, std::forward<A>(values)...);
    text_ += '\n';
  }

  void writeElements() {
    line("  const long long first = (blockIdx.x * {}LL + threadIdx.x) * {};", kGeneratedThreads, kGeneratedEach);
    line("  if (first >= {}LL) return;", c_.total);
    line("  const int n = {0}LL - first < {1} ? static_cast<int>({0}LL - first) : {1};", c_.total, kGeneratedEach);
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) load(i);
    line("  float result[{}];", kGeneratedEach);
    line("#pragma unroll");
    line("  for (int e = 0; e < {}; ++e) {{", kGeneratedEach);
    line("    if (e >= n) break;");
    walk("first + e");
    steps();
    line("    result[e] = {};", last());
    line("  }}");
    store();
  }

  // In the order of additions of pointwise_sum.cu.
  void writeSum(const ChainSum& sum) {
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) loadNumber(i);
    line("  double sum = 0;");
    if (sum.alongColumns) {
      line("  const long long row = blockIdx.x % {0}LL, part = blockIdx.x / {0}LL;", sum.rows);
      line("  const long long end = {}LL * (part + 1) / {}LL;", sum.columns, sum.parts);
      line("  for (long long column = {}LL * part / {}LL + threadIdx.x; column < end; column += {}) {{", sum.columns,
           sum.parts, sum.threads);
    } else {
      line("  const long long i = blockIdx.x * {}LL + threadIdx.x;", sum.threads);
      line("  if (i >= {}LL) return;", sum.columns * sum.parts);
      line("  const long long column = i % {0}LL, part = i / {0}LL;", sum.columns);
      line("  const long long end = {}LL * (part + 1) / {}LL;", sum.rows, sum.parts);
      line("  for (long long row = {}LL * part / {}LL; row < end; ++row) {{", sum.rows, sum.parts);
    }
    line("    const long long place = row * {}LL + column;", sum.columns);
    for (std::size_t i = 0; i < c_.inputs.size(); ++i)
      if (c_.inputs[i].lies == ChainForm::Lies::kAsResult) line("    const float a{} = {};", i, element(i, "place"));
    walk("place");
    steps();
    line("    sum += static_cast<double>({});", last());
    line("  }}");
    if (sum.alongColumns)
      joinBlock(sum.threads / 32);
    else
      line("  sums[i] = sum;");
  }

  // As joinBlock of block_sums.h.
  void joinBlock(int warps) {
    line("  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, lanes);");
    if (warps > 1) {
      line("  __shared__ double ofWarp[{}];", warps);
      line("  if (threadIdx.x % 32 == 0) ofWarp[threadIdx.x / 32] = sum;");
      line("  __syncthreads();");
      line("  sum = ofWarp[0];");
      line("  for (int w = 1; w < {}; ++w) sum += ofWarp[w];", warps);
    }
    line("  if (threadIdx.x == 0) sums[blockIdx.x] = sum;");
  }

  std::string parameters() const {
    std::string text;
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) text += fmt::format("const {}* x{}, ", nameOf(c_.inputs[i].type), i);
    return text;
  }

  std::string element(std::size_t i, std::string_view at) const {
    switch (c_.inputs[i].type) {
      case ChainType::kFloat: return fmt::format("x{}[{}]", i, at);
      case ChainType::kBool: return fmt::format("(x{}[{}] != 0 ? 1.0F : 0.0F)", i, at);
      default: return fmt::format("static_cast<float>(x{}[{}])", i, at);
    }
  }

  // What does not depend on the element: numbers, and runs of four.
  void load(std::size_t i) {
    const ChainForm::Input& input = c_.inputs[i];
    loadNumber(i);
    if (input.lies != ChainForm::Lies::kAsResult) return;
    line("  float a{}[{}];", i, kGeneratedEach);
    if (input.type != ChainType::kBool) {
      line("  if (n == {}) {{", kGeneratedEach);
      line("    const auto four = *reinterpret_cast<const {}*>(x{} + first);", fourOf(input.type), i);
      line("    a{0}[0] = float(four.x), a{0}[1] = float(four.y), a{0}[2] = float(four.z), a{0}[3] = float(four.w);", i);
      line("  }} else");
    }
    line("#pragma unroll");
    line("  for (int e = 0; e < {}; ++e)", kGeneratedEach);
    line("    if (e < n) a{}[e] = {};", i, element(i, "first + e"));
  }
  void loadNumber(std::size_t i) {
    if (c_.inputs[i].lies == ChainForm::Lies::kScalar) line("  const float a{} = {};", i, element(i, "0"));
  }
  // What has four neighbours, and is moved at once.
  static std::string fourOf(ChainType type) {
    return type == ChainType::kFloat ? "float4" : fmt::format("stepscope::gpu::Four<{}>", nameOf(type));
  }

  // Where walked inputs have the element. Divisions by numbers that the compiler knows.
  void walk(std::string_view element) {
    bool any = false;
    for (const ChainForm::Input& input : c_.inputs) any = any || input.lies == ChainForm::Lies::kWalked;
    if (!any) return;
    const bool small = c_.total <= std::numeric_limits<std::int32_t>::max();
    line("    {0} at = static_cast<{0}>({1});", small ? "unsigned" : "unsigned long long", element);
    for (std::size_t a = c_.extents.size(); a-- > 0;) {
      const char* const suffix = small ? "U" : "ULL";
      line("    const {} i{} = at % {}{};", small ? "unsigned" : "unsigned long long", a, c_.extents[a], suffix);
      line("    at /= {}{};", c_.extents[a], suffix);
    }
    for (std::size_t i = 0; i < c_.inputs.size(); ++i) {
      if (c_.inputs[i].lies != ChainForm::Lies::kWalked) continue;
      std::string at = fmt::format("{}LL", c_.inputs[i].start);
      for (std::size_t a = 0; a < c_.extents.size(); ++a)
        if (c_.inputs[i].strides[a] != 0)
          at += fmt::format(" + static_cast<long long>(i{}) * {}LL", a, c_.inputs[i].strides[a]);
      line("    const float a{} = {};", i, this->element(i, at));
    }
  }

  std::string operand(int k) const {
    const auto i = static_cast<std::size_t>(k);
    if (i >= c_.inputs.size()) return fmt::format("s{}", i - c_.inputs.size());
    return c_.inputs[i].lies == ChainForm::Lies::kAsResult && !c_.sum ? fmt::format("a{}[e]", i) : fmt::format("a{}", i);
  }

  std::string last() const { return operand(static_cast<int>(c_.inputs.size() + c_.steps.size()) - 1); }

  void steps() {
    for (std::size_t s = 0; s < c_.steps.size(); ++s) step(s);
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
    const std::string type = nameOf(c_.result);
    if (c_.result != ChainType::kBool) {
      line("  if (n == {}) {{", kGeneratedEach);
      line("    *reinterpret_cast<{0}*>(y + first) = {0}{{{1}(result[0]), {1}(result[1]), {1}(result[2]), {1}(result[3])}};",
           fourOf(c_.result), type);
      line("    return;");
      line("  }}");
    }
    line("#pragma unroll");
    line("  for (int e = 0; e < {}; ++e)", kGeneratedEach);
    line("    if (e < n) y[first + e] = static_cast<{}>(result[e]);", type);
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
