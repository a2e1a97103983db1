// An op that draws, with kernels for the CPU and for "cuda": multiplicative noise.
//
//   y[i] = x[i] (1 + strength (2 u[i] - 1)),   u[i] in [0, 1) by seed, micro step, node of the model and i
//
// Its gradient is the op itself, on dy: a node that a gradient emits has the key of the node that it is of, and draws the
// same numbers. So nothing is kept for the backward phase, and a replay, a recomputed node and another device agree.
#include <new>

#include "stepscope_plugin.h"
// Behind it, for the emulator.
#include "kernels.cu"

#ifdef NOISE_FATBIN
SSP_IMAGE(kImage, NOISE_FATBIN)
#endif

namespace {

constexpr char kDomain[] = "cuda_noise";
constexpr uint32_t kParts = 16;
constexpr int kThreads = 128;

struct Node {
  int64_t count;
  float strength;
};

ssp_status infer(const ssp_op*, ssp_shape_context* c) {
  c->set_output_like(c, 0, 0);
  return SSP_OK;
}

ssp_status gradient(const ssp_op*, ssp_gradient_context* g) {
  const ssp_value dy = g->dy(g, 0);
  ssp_value dx = 0;
  if (g->emit(g, kDomain, "Noise", &dy, 1, g->attr(g, "strength"), 1, &dx, 1) != SSP_OK) return SSP_ERROR;
  g->set_gradient(g, 0, dx);
  return SSP_OK;
}

ssp_status create(const ssp_kernel*, ssp_kernel_context* c, void** instance) {
  auto* node = new (std::nothrow) Node{1, c->attr(c, "strength")->f};
  if (node == nullptr) return c->fail(c, "no memory");
  for (uint32_t axis = 0; axis < c->inputs[0].rank; ++axis) node->count *= c->inputs[0].dims[axis];
  *instance = node;
  c->determinism = SSP_DETERMINISM_KEYED_RANDOM;
  c->determinism_reason = "numbers are drawn by seed, micro step, node and element";
  c->cannot_fail = 1;
  return SSP_OK;
}
void destroy(void* instance) { delete static_cast<Node*>(instance); }

// --- for "cuda"

const ssp_device_function kFunctions[] = {ssp::function<noise>("noise")};

ssp_status runOnDevice(void* instance, const ssp_kernel_call* call) {
  const auto& node = *static_cast<const Node*>(instance);
  const int64_t blocks = (node.count + 4 * kThreads - 1) / (4 * kThreads);
  return ssp::launch<noise>(call, kFunctions[0], blocks, kThreads, ssp::in(0), ssp::out(0), ssp::key(), node.count,
                            node.strength);
}

// --- for the CPU

struct Job {
  const ssp_kernel_call* call;
  const Node* node;
};

void part(void* user, uint32_t part) {
  const Job& job = *static_cast<const Job*>(user);
  const auto* x = static_cast<const float*>(job.call->inputs[0].data);
  auto* y = static_cast<float*>(job.call->outputs[0].data);
  const int64_t end = job.node->count * (part + 1) / kParts;
  for (int64_t i = job.node->count * part / kParts; i < end; ++i)
    y[i] = x[i] * noise_factor(ssp_uniform_of(job.call, static_cast<uint64_t>(i)), job.node->strength);
}
ssp_status run(void* instance, const ssp_kernel_call* call) {
  Job job{call, static_cast<const Node*>(instance)};
  return call->parallel(call, kParts, part, &job);
}

// --- entry

const ssp_attr_info kAttributes[] = {
    {.size = sizeof(ssp_attr_info), .kind = SSP_ATTR_FLOAT, .name = "strength", .required = 0, .i = 0, .f = 0.1f, .s = ""}};

const int64_t kMatrix[] = {5, 9}, kBatch[] = {3, 7, 130};
const ssp_example_operand kSmall = {sizeof(ssp_example_operand), SSP_FLOAT32, 2, kMatrix, -2, 2},
                          kLarge = {sizeof(ssp_example_operand), SSP_FLOAT32, 3, kBatch, -1, 1};
const ssp_example kExamples[] = {{sizeof(ssp_example), &kSmall, 1, nullptr, 0},
                                 {sizeof(ssp_example), &kLarge, 1, nullptr, 0}};

const ssp_op kNoise = [] {
  ssp_op op = {};
  op.size = sizeof(ssp_op);
  op.domain = kDomain;
  op.name = "Noise";
  op.since_version = 1;
  op.doc = "y = x (1 + strength (2 u - 1)), u uniform in [0, 1)";
  op.least_inputs = op.most_inputs = op.least_outputs = op.most_outputs = 1;
  op.attrs = kAttributes;
  op.attr_count = 1;
  op.category = SSP_CATEGORY_RANDOM;
  op.precision = SSP_PRECISION_FOLLOWS;
  op.recompute = SSP_RECOMPUTE_CHEAP;
  op.differentiable_inputs = op.differentiable_outputs = SSP_BIT(0);
  op.in_place_inputs = SSP_BIT(0);
  op.infer_shape = infer;
  op.gradient = gradient;
  op.examples = kExamples;
  op.example_count = 2;
  return op;
}();

ssp_kernel kernelOf(const char* device, const char* implementation) {
  ssp_kernel kernel = {};
  kernel.size = sizeof(ssp_kernel);
  kernel.domain = kDomain;
  kernel.op = "Noise";
  kernel.device = device;
  kernel.implementation = implementation;
  kernel.dtypes = SSP_DTYPE_BIT(SSP_FLOAT32);
  kernel.create = create;
  kernel.run = run;
  kernel.destroy = destroy;
  return kernel;
}
const ssp_kernel kOnHost = kernelOf("cpu", "plain loops");
const ssp_kernel kOnDevice = [] {
  ssp_kernel kernel = kernelOf("cuda", "a thread for four elements");
  kernel.run = runOnDevice;
  kernel.functions = kFunctions;
  kernel.function_count = 1;
#ifdef NOISE_FATBIN
  kernel.image = kImage;
  kernel.image_bytes = static_cast<uint64_t>(kImage_end - kImage);
#endif
  return kernel;
}();

const ssp_op* const kOps[] = {&kNoise};
const ssp_kernel* const kKernels[] = {&kOnHost, &kOnDevice};

ssp_plugin entry() {
  ssp_plugin plugin = {};
  plugin.size = sizeof(ssp_plugin);
  plugin.abi_major = SSP_ABI_MAJOR;
  plugin.abi_minor = SSP_ABI_MINOR;
  plugin.name = "cuda_noise";
  plugin.version = "1.0.0";
  plugin.doc = "multiplicative noise, drawn by the key of a node, on the CPU and on CUDA";
  plugin.ops = kOps;
  plugin.op_count = 1;
  plugin.kernels = kKernels;
  plugin.kernel_count = 2;
  return plugin;
}

}  // namespace

extern "C" const ssp_plugin stepscope_plugin_entry = entry();
