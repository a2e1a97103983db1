// A plugin with a kernel for "cuda" that keeps the contract (bad.Twice, y = 2 x), and with -DBAD=NAME one that breaks it in
// one place. device_test.cpp has the list. IMAGE: what the driver is given.
#include "stepscope_device.h"

enum Breach {
  NOTHING,
  OF_1_1,
  CPU_ALONE,
  TAKES_NOTHING,
  NO_CPU_KERNEL,
  OLDER_VERSION,
  NO_FUNCTIONS,
  FUNCTION_SIZE,
  FUNCTION_NAME,
  NO_BODY,
  NO_IMAGE_END,
  KEY_IN_1_1,
  LAUNCH_KEY,
  LAUNCH_SIZE,
  LAUNCH_OTHER,
  LAUNCH_BLOCKS,
  LAUNCH_THREADS,
  LAUNCH_COUNT,
  LAUNCH_BYTES,
  LAUNCH_INPUT,
  LAUNCH_OUTPUT,
  LAUNCH_SCRATCH,
  LAUNCH_WRITES_INPUT,
  RUN_PARALLEL,
  RUN_FOLLOWS,
  RUN_DEVICE_THROWS,
  BODY_OUT_OF_BOUNDS,
  BODY_BEFORE,
  BODY_UNWRITTEN,
  BODY_READS_NOTHING,
  BODY_RACE,
  BODY_BARRIER,
  BODY_SHUFFLE,
  BODY_DEVICE_THROWS,
  BODY_CRASHES,
};

#ifndef BAD
#define BAD NOTHING
#endif
#ifndef IMAGE
#define IMAGE "PTX that nobody loads"
#endif

SSP_KERNEL twice(ssp::memory<const float> x, ssp::memory<float> y, ssp::memory<float> scratch, int64_t count) {
  SSP_SHARED(float, block, 64);
  const int64_t i = ssp::block_index() * ssp::block_size() + ssp::thread_index();
  if (BAD == BODY_DEVICE_THROWS && i == 3) throw 7;
  if (BAD == BODY_CRASHES && i == 3) {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  if (BAD == BODY_READS_NOTHING && i == 0) y[0] = scratch[1];
  if (BAD == BODY_BARRIER && i == 1) ssp::sync_threads();
  if (BAD == BODY_SHUFFLE && i % 2 == 0) block[0] = ssp::shuffle_xor(1.0f, 1);
  block[ssp::thread_index()] = 2.0f;
  if (BAD != BODY_RACE) ssp::sync_threads();
  const float factor = block[(ssp::thread_index() + 1) % 16];
  if (i >= (BAD == BODY_OUT_OF_BOUNDS ? count + 1 : BAD == BODY_UNWRITTEN ? count - 1 : count)) return;
  y[BAD == BODY_BEFORE ? i - 1 : i] = factor * x[i];
}

SSP_KERNEL draws(ssp::memory<float> y, ssp::random_key key, int64_t count) {
  const int64_t i = ssp::block_index() * ssp::block_size() + ssp::thread_index();
  if (i < count) y[i] = key.uniform(i);
}

SSP_KERNEL unlisted(ssp::memory<const float>, ssp::memory<float>, ssp::memory<float>, int64_t) {}

namespace {

ssp_device_function functionOf() {
  ssp_device_function made = ssp::function<twice>("twice");
  if (BAD == FUNCTION_SIZE) made.size = 8;
  if (BAD == FUNCTION_NAME) made.name = "twice<float>";
  if (BAD == NO_BODY) made.body = nullptr;
  return made;
}
const ssp_device_function kFunctions[] = {functionOf(), ssp::function<draws>("draws")},
                          kOther[] = {ssp::function<unlisted>("unlisted")};

int64_t elements = 0;

ssp_status create(const ssp_kernel* kernel, ssp_kernel_context* c, void** instance) {
  const bool cuda = kernel->device[1] == 'u';
  if (BAD == TAKES_NOTHING && cuda) return SSP_UNSUPPORTED;
  elements = 1;
  for (uint32_t axis = 0; axis < c->inputs[0].rank; ++axis) elements *= c->inputs[0].dims[axis];
  *instance = &elements;
  c->scratch_bytes = 64;
  c->determinism = BAD == KEY_IN_1_1 && cuda ? SSP_DETERMINISM_KEYED_RANDOM : SSP_DETERMINISM_FIXED;
  c->determinism_reason = "one thread for each element";
  return SSP_OK;
}

ssp_status runOnHost(void*, const ssp_kernel_call* call) {
  for (int64_t i = 0; i < elements; ++i)
    static_cast<float*>(call->outputs[0].data)[i] = 2 * static_cast<const float*>(call->inputs[0].data)[i];
  return SSP_OK;
}

ssp_status runOnDevice(void*, const ssp_kernel_call* call) {
  if (BAD == RUN_PARALLEL)
    return call->parallel(
        call, 1, [](void*, uint32_t) {}, nullptr);
  if (BAD == RUN_DEVICE_THROWS) throw 7;
  if (BAD == RUN_FOLLOWS) return runOnHost(nullptr, call);
  if (BAD == LAUNCH_KEY) return ssp::launch<draws>(call, kFunctions[1], 1, 16, ssp::out(0), ssp::key(), elements);
  const ssp_argument scratch = ssp::scratch(BAD == LAUNCH_SCRATCH ? 32 : 0, 16, SSP_ACCESS_PART);
  const ssp_argument in = BAD == LAUNCH_WRITES_INPUT ? ssp::out(0) : ssp::in(BAD == LAUNCH_INPUT ? 3 : 0);
  if (BAD == LAUNCH_BYTES || BAD == LAUNCH_COUNT || BAD == LAUNCH_SIZE || BAD == LAUNCH_WRITES_INPUT) {
    const int32_t count = 12;
    ssp_argument list[] = {in, ssp::out(0), scratch, {}};
    for (ssp_argument& one : list) one.element_bytes = 4;
    if (BAD == LAUNCH_WRITES_INPUT) list[0].kind = SSP_ARGUMENT_INPUT;
    list[3] = {sizeof(ssp_argument), SSP_ARGUMENT_VALUE, 0, 0, 0, 0, 0, &count, sizeof(count)};
    const ssp_launch one = {BAD == LAUNCH_SIZE ? 8u : static_cast<uint32_t>(sizeof(ssp_launch)),
                            16,
                            1,
                            kFunctions,
                            list,
                            BAD == LAUNCH_COUNT ? 3u : 4u};
    return call->launch(call, &one);
  }
  return ssp::launch<twice>(call, BAD == LAUNCH_OTHER ? kOther[0] : kFunctions[0], BAD == LAUNCH_BLOCKS ? 0 : 1,
                            BAD == LAUNCH_THREADS ? 2048 : 16, in, ssp::out(BAD == LAUNCH_OUTPUT ? 1 : 0), scratch,
                            elements);
}

ssp_status inferShape(const ssp_op*, ssp_shape_context* c) {
  c->set_output_like(c, 0, 0);
  return SSP_OK;
}
ssp_status gradient(const ssp_op*, ssp_gradient_context* g) {
  g->set_gradient(g, 0, ssp_binary(g, "Mul", g->dy(g, 0), g->scalar(g, 2, g->x(g, 0))));
  return SSP_OK;
}

const int64_t kExtents[] = {4, 3};
const ssp_example_operand kOperand[] = {{sizeof(ssp_example_operand), SSP_FLOAT32, 2, kExtents, -1, 1}};
const ssp_example kExample[] = {{sizeof(ssp_example), kOperand, 1, nullptr, 0}};

const ssp_op kOp = [] {
  ssp_op op = {};
  op.size = sizeof(ssp_op);
  op.domain = "bad", op.name = "Twice", op.since_version = 1, op.doc = "y = 2 x";
  op.least_inputs = op.most_inputs = op.least_outputs = op.most_outputs = 1;
  op.category = SSP_CATEGORY_ELEMENTWISE, op.precision = SSP_PRECISION_FOLLOWS, op.recompute = SSP_RECOMPUTE_CHEAP;
  op.differentiable_inputs = op.differentiable_outputs = SSP_BIT(0);
  op.infer_shape = inferShape, op.gradient = gradient;
  op.examples = kExample, op.example_count = 1;
  return op;
}();

constexpr char kNoEnd[] = {'n', 'o', ' ', 'P', 'T', 'X'};

ssp_kernel kernelOf(const char* device) {
  ssp_kernel kernel = {};
  kernel.size = BAD == OLDER_VERSION ? offsetof(ssp_kernel, functions) : sizeof(ssp_kernel);
  kernel.domain = "bad", kernel.op = "Twice", kernel.device = device;
  kernel.implementation = "a thread for each element", kernel.dtypes = SSP_DTYPE_BIT(SSP_FLOAT32);
  kernel.create = create, kernel.run = device[1] == 'u' ? runOnDevice : runOnHost;
  if (kernel.run == runOnHost) return kernel;
  kernel.functions = kFunctions, kernel.function_count = BAD == NO_FUNCTIONS ? 0 : BAD == LAUNCH_KEY ? 2 : 1;
  kernel.image = BAD == NO_IMAGE_END ? kNoEnd : IMAGE;
  kernel.image_bytes = BAD == NO_IMAGE_END ? sizeof(kNoEnd) : sizeof(IMAGE);
  return kernel;
}
const ssp_kernel kOnHost = kernelOf("cpu"), kOnDevice = kernelOf("cuda");
const ssp_op* const kOps[] = {&kOp};
const ssp_kernel* const kKernels[] = {BAD == NO_CPU_KERNEL ? &kOnDevice : &kOnHost, &kOnDevice};

ssp_plugin entry() {
  ssp_plugin plugin = {};
  plugin.size = sizeof(ssp_plugin);
  plugin.abi_major = SSP_ABI_MAJOR;
  plugin.abi_minor = BAD == OLDER_VERSION ? 0 : BAD == KEY_IN_1_1 || BAD == OF_1_1 ? 1 : SSP_ABI_MINOR;
  plugin.name = "bad", plugin.version = "1.0", plugin.doc = "breaks the contract on a device";
  plugin.ops = kOps, plugin.op_count = 1;
  plugin.kernels = kKernels, plugin.kernel_count = BAD == CPU_ALONE || BAD == NO_CPU_KERNEL ? 1 : 2;
  return plugin;
}

}  // namespace

extern "C" const ssp_plugin stepscope_plugin_entry = entry();
