// An NVRTC that compiles with the host compiler (SS_HOST_COMPILER), for the fake driver: what it calls code is the path of a
// library whose kernel the threads of the fake GPU call. STEPSCOPE_FAKE_NVRTC orders: "refuses": it takes no source.
#include "kernels/cuda_device/nvrtc.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

using namespace stepscope::cuda;

namespace {

// The language of the prelude for a host compiler. Nothing is joined (-ffp-contract=off), as in the emulator.
constexpr char kLanguage[] = R"(
#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(threads)
#define __shared__ static  // one block runs after another
#include "tests/kernels/fake_gpu/compiled_thread.h"
static stepscope::fake::CompiledThread thread;
struct Index { unsigned x; };
#define threadIdx (Index{thread.index(0)})
#define blockIdx (Index{thread.index(1)})
static void __syncthreads() { thread.sync(); }
static double __shfl_xor_sync(unsigned, double value, int lanes) { return thread.shuffleXor(value, lanes); }
struct alignas(16) float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
#include "kernels/half.h"
#define SS_DEVICE inline
namespace stepscope::gpu {
using Half = Float16;
using BFloat = BFloat16;
template <typename T>
struct alignas(4 * sizeof(T)) Four { T x, y, z, w; };
}
)";
constexpr char kEnding[] = R"(
template <typename... P, std::size_t... I>
static void callWith(void (*kernel)(P...), void** values, std::index_sequence<I...>) {
  kernel(*reinterpret_cast<P*>(&values[I])...);
}
template <typename... P>
static int countOf(void (*)(P...)) { return sizeof...(P); }
template <typename... P>
static void call(void (*kernel)(P...), void** values) { callWith(kernel, values, std::index_sequence_for<P...>()); }
extern "C" int fakeParameters(const stepscope::fake::CompiledThread& calls) { thread = calls; return countOf(generated); }
extern "C" void fakeCall(void** values) { call(generated, values); }
)";

struct Program {
  std::string source, log, code;
};
std::int64_t compiled = 0;

}  // namespace

extern "C" {

// For tests: sources that were compiled.
std::int64_t fakeNvrtcCompiled() { return compiled; }

NvrtcStatus nvrtcCreateProgram(NvrtcProgram* made, const char* source, const char*, int headers, const char* const*,
                               const char* const*) {
  if (headers != 0) return 3;
  *made = new Program{source, "", ""};
  return 0;
}
NvrtcStatus nvrtcDestroyProgram(NvrtcProgram* program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
NvrtcStatus nvrtcCompileProgram(NvrtcProgram program, int, const char* const*) {
  auto& one = *static_cast<Program*>(program);
  const char* const orders = std::getenv("STEPSCOPE_FAKE_NVRTC");
  if (orders && std::string(orders) == "refuses") {
    one.log = "generated.cu(1): error: as it was ordered";
    return 6;
  }
  const auto base = std::filesystem::temp_directory_path() /
                    ("stepscope_nvrtc_" + std::to_string(getpid()) + "_" + std::to_string(compiled++));
  const std::string file = base.string() + ".cpp", library = base.string() + ".so", log = base.string() + ".log";
  // What the prelude says of the language is for a GPU; the rest of it are the functions of the steps.
  const std::string text = one.source.substr(one.source.find("}  // namespace stepscope::gpu"));
  std::ofstream(file) << kLanguage << text.substr(text.find('\n')) << kEnding;
  const std::string command =
      std::string(SS_HOST_COMPILER " -std=c++20 -O1 -ffp-contract=off -fPIC -shared -w -I" SS_SOURCE_DIR " -o ") + library +
      " " + file + " 2> " + log;
  const bool done = std::system(command.c_str()) == 0;
  if (!done) {
    std::ifstream said(log);
    one.log.assign(std::istreambuf_iterator<char>(said), {});
  }
  std::filesystem::remove(file);
  std::filesystem::remove(log);
  one.code = "fake GPU library " + library;
  return done ? 0 : 6;
}
NvrtcStatus nvrtcGetCUBINSize(NvrtcProgram program, std::size_t* bytes) {
  *bytes = static_cast<Program*>(program)->code.size() + 1;
  return 0;
}
NvrtcStatus nvrtcGetCUBIN(NvrtcProgram program, char* code) {
  const std::string& made = static_cast<Program*>(program)->code;
  std::memcpy(code, made.c_str(), made.size() + 1);
  return 0;
}
NvrtcStatus nvrtcGetProgramLogSize(NvrtcProgram program, std::size_t* bytes) {
  *bytes = static_cast<Program*>(program)->log.size() + 1;
  return 0;
}
NvrtcStatus nvrtcGetProgramLog(NvrtcProgram program, char* log) {
  const std::string& said = static_cast<Program*>(program)->log;
  std::memcpy(log, said.c_str(), said.size() + 1);
  return 0;
}

}  // extern "C"
