// An op with kernels for the CPU and for "cuda": RMSNorm over the last axis, and its gradient with scratch memory and two
// launches.
//
//   y[r, c] = x[r, c] inv[r] w[c],   inv[r] = 1 / sqrt(mean_c x[r, c]^2 + epsilon)
//
// `make` builds it with nvcc where there is one; else the plugin has no GPU code, and runs on the CPU and on the emulator.
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "stepscope_plugin.h"
// Behind it, for the emulator.
#include "kernels.cu"

#ifdef RMS_FATBIN
SSP_IMAGE(kImage, RMS_FATBIN)
#endif

namespace {

constexpr char kDomain[] = "cuda_rms_norm";
constexpr int64_t kParts = 16;  // blocks of the gradient, and rows of sums
constexpr int kThreads = 128;

struct Extents {
  int64_t rows, columns;
  float epsilon;
};

// ---------------------------------------------------------------------------------------------------------- shapes

// x [..., C], w [C].
ssp_status checkOperands(ssp_shape_context* c) {
  const int32_t rank = c->input_rank(c, 0);
  if (rank < 0) return SSP_OK;  // not known yet
  if (rank == 0) return c->fail(c, "x is a scalar; expected an axis to normalise");
  if (c->input_rank(c, 1) < 0) return SSP_OK;
  if (c->input_rank(c, 1) != 1) return c->fail(c, "w is no vector");
  return c->unify(c, c->input_dim(c, 0, static_cast<uint32_t>(rank) - 1), c->input_dim(c, 1, 0), "last axis of x and w");
}
ssp_status inferForward(const ssp_op*, ssp_shape_context* c) {
  if (checkOperands(c) != SSP_OK) return SSP_ERROR;
  c->set_output_like(c, 0, 0);
  return SSP_OK;
}
// Inputs x, w, dy; outputs dx, dw.
ssp_status inferBackward(const ssp_op*, ssp_shape_context* c) {
  if (checkOperands(c) != SSP_OK) return SSP_ERROR;
  for (uint32_t i = 0; i < 2; ++i)
    if (c->has_output(c, i)) c->set_output_like(c, i, i);
  return SSP_OK;
}

ssp_status gradient(const ssp_op*, ssp_gradient_context* g) {
  const ssp_value inputs[3] = {g->x(g, 0), g->x(g, 1), g->dy(g, 0)};
  ssp_value outputs[2];
  if (g->emit(g, kDomain, "RMSNormGrad", inputs, 3, g->attr(g, "epsilon"), 1, outputs, 2) != SSP_OK) return SSP_ERROR;
  for (uint32_t i = 0; i < 2; ++i)
    if (g->needs(g, i)) g->set_gradient(g, i, outputs[i]);
  return SSP_OK;
}

// --------------------------------------------------------------------------------------------------------- kernels

ssp_status create(const ssp_kernel* kernel, ssp_kernel_context* c, void** instance) {
  const ssp_operand& x = c->inputs[0];
  auto* extents = new (std::nothrow) Extents{1, x.dims[x.rank - 1], c->attr(c, "epsilon")->f};
  if (extents == nullptr) return c->fail(c, "no memory");
  for (uint32_t axis = 0; axis + 1 < x.rank; ++axis) extents->rows *= x.dims[axis];
  *instance = extents;
  c->determinism = SSP_DETERMINISM_FIXED;
  c->determinism_reason = "sums over rows and columns are cut into fixed parts, and added in a fixed order";
  c->cannot_fail = 1;
  if (std::strcmp(kernel->op, "RMSNormGrad") == 0)  // one row of sums for each part of the rows
    c->scratch_bytes = static_cast<uint64_t>(kParts * extents->columns) * sizeof(float);
  return SSP_OK;
}
void destroy(void* instance) { delete static_cast<Extents*>(instance); }

// --- for "cuda": what the source above has, listed; and what puts it on the stream

const ssp_device_function kForwardFunctions[] = {ssp::function<rms_norm>("rms_norm")};
const ssp_device_function kBackwardFunctions[] = {ssp::function<rms_norm_grad>("rms_norm_grad"),
                                                  ssp::function<rms_norm_grad_weight>("rms_norm_grad_weight")};

ssp_status runForwardOnDevice(void* instance, const ssp_kernel_call* call) {
  const auto& e = *static_cast<const Extents*>(instance);
  return ssp::launch<rms_norm>(call, kForwardFunctions[0], e.rows, kThreads, ssp::in(0), ssp::in(1), ssp::out(0), e.columns,
                               e.epsilon);
}

ssp_status runBackwardOnDevice(void* instance, const ssp_kernel_call* call) {
  const auto& e = *static_cast<const Extents*>(instance);
  const int64_t blocks = std::min(e.rows, kParts);
  const uint64_t count = static_cast<uint64_t>(blocks * e.columns);
  if (ssp::launch<rms_norm_grad>(call, kBackwardFunctions[0], blocks, kThreads, ssp::in(0), ssp::in(1), ssp::in(2),
                                 ssp::out(0), ssp::scratch(0, count), e.rows, e.columns, e.epsilon) != SSP_OK)
    return SSP_ERROR;
  return ssp::launch<rms_norm_grad_weight>(call, kBackwardFunctions[1], (e.columns + kThreads - 1) / kThreads, kThreads,
                                           ssp::scratch(0, count, SSP_ACCESS_READ), ssp::out(1), blocks, e.columns);
}

// --- for the CPU

struct Job {
  const ssp_kernel_call* call;
  const Extents* extents;
  const float* input(uint32_t i) const { return static_cast<const float*>(call->inputs[i].data); }
  float* output(uint32_t o) const { return static_cast<float*>(call->outputs[o].data); }
  float* sums(int64_t part) const { return static_cast<float*>(call->scratch) + part * extents->columns; }
  // Rows of a part depend on the number of rows alone.
  int64_t firstRow(int64_t part) const { return extents->rows * part / kParts; }
};

float inverseOf(const float* x, const Extents& e) {
  double sum = 0;
  for (int64_t c = 0; c < e.columns; ++c) sum += static_cast<double>(x[c]) * x[c];
  return static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(e.columns) + e.epsilon));
}

void forwardPart(void* user, uint32_t part) {
  const Job& job = *static_cast<const Job*>(user);
  const Extents& e = *job.extents;
  for (int64_t row = job.firstRow(part); row < job.firstRow(part + 1); ++row) {
    const float *x = job.input(0) + row * e.columns, *w = job.input(1), inverse = inverseOf(x, e);
    for (int64_t c = 0; c < e.columns; ++c) job.output(0)[row * e.columns + c] = x[c] * inverse * w[c];
  }
}
ssp_status runForward(void* instance, const ssp_kernel_call* call) {
  Job job{call, static_cast<const Extents*>(instance)};
  return call->parallel(call, kParts, forwardPart, &job);
}

void backwardPart(void* user, uint32_t part) {
  const Job& job = *static_cast<const Job*>(user);
  const Extents& e = *job.extents;
  float* const sums = job.sums(part);
  std::fill_n(sums, e.columns, 0.0f);
  for (int64_t row = job.firstRow(part); row < job.firstRow(part + 1); ++row) {
    const float *x = job.input(0) + row * e.columns, *w = job.input(1), *dy = job.input(2) + row * e.columns;
    const float inverse = inverseOf(x, e);
    double projection = 0;
    for (int64_t c = 0; c < e.columns; ++c) projection += static_cast<double>(dy[c]) * w[c] * x[c] * inverse;
    const float mean = static_cast<float>(projection / static_cast<double>(e.columns));
    for (int64_t c = 0; c < e.columns; ++c) {
      sums[c] += dy[c] * x[c] * inverse;
      job.output(0)[row * e.columns + c] = inverse * (dy[c] * w[c] - x[c] * inverse * mean);
    }
  }
}
ssp_status runBackward(void* instance, const ssp_kernel_call* call) {
  Job job{call, static_cast<const Extents*>(instance)};
  if (call->parallel(call, kParts, backwardPart, &job) != SSP_OK) return SSP_ERROR;
  for (int64_t c = 0; c < job.extents->columns; ++c) {
    double sum = 0;
    for (int64_t part = 0; part < kParts; ++part) sum += job.sums(part)[c];
    job.output(1)[c] = static_cast<float>(sum);
  }
  return SSP_OK;
}

// ----------------------------------------------------------------------------------------------------------- entry

const ssp_attr_info kAttributes[] = {
    {.size = sizeof(ssp_attr_info), .kind = SSP_ATTR_FLOAT, .name = "epsilon", .required = 0, .i = 0, .f = 1e-5f, .s = ""}};

const int64_t kMatrix[] = {5, 8}, kBatch[] = {3, 7, 130}, kVector[] = {8}, kLonger[] = {130};
constexpr ssp_example_operand operand(const int64_t* dims, uint32_t rank, double low, double high) {
  return {sizeof(ssp_example_operand), SSP_FLOAT32, rank, dims, low, high};
}
const ssp_example_operand kSmall[] = {operand(kMatrix, 2, -2, 2), operand(kVector, 1, 0.5, 1.5), operand(kMatrix, 2, -1, 1)},
                          kLarge[] = {operand(kBatch, 3, -1, 1), operand(kLonger, 1, -1, 1), operand(kBatch, 3, -1, 1)};
const ssp_example kForwardExamples[] = {{sizeof(ssp_example), kSmall, 2, nullptr, 0},
                                        {sizeof(ssp_example), kLarge, 2, nullptr, 0}},
                  kBackwardExamples[] = {{sizeof(ssp_example), kSmall, 3, nullptr, 0},
                                         {sizeof(ssp_example), kLarge, 3, nullptr, 0}};

ssp_op opOf(const char* name, const char* doc, uint32_t inputs, uint32_t outputs, const ssp_example* examples) {
  ssp_op op = {};
  op.size = sizeof(ssp_op);
  op.domain = kDomain;
  op.name = name;
  op.since_version = 1;
  op.doc = doc;
  op.least_inputs = op.most_inputs = inputs;
  op.least_outputs = op.most_outputs = outputs;
  op.attrs = kAttributes;
  op.attr_count = 1;
  op.category = SSP_CATEGORY_NORMALIZATION;
  op.precision = SSP_PRECISION_FLOAT32;
  op.recompute = SSP_RECOMPUTE_CHEAP;
  op.examples = examples;
  op.example_count = 2;
  return op;
}
const ssp_op kForward = [] {
  ssp_op op = opOf("RMSNorm", "y = x / sqrt(mean(x^2) + epsilon) * w, over the last axis", 2, 1, kForwardExamples);
  op.differentiable_inputs = SSP_BIT(0) | SSP_BIT(1);
  op.differentiable_outputs = SSP_BIT(0);
  op.in_place_inputs = SSP_BIT(0);  // a row is read before it is written
  op.infer_shape = inferForward;
  op.gradient = gradient;
  return op;
}();
const ssp_op kBackward = [] {
  ssp_op op = opOf("RMSNormGrad", "dx, dw of RMSNorm from x, w, dy", 3, 2, kBackwardExamples);
  op.infer_shape = inferBackward;
  op.no_gradient_reason = "a gradient itself; second derivatives are not written";
  return op;
}();

using Run = ssp_status (*)(void*, const ssp_kernel_call*);
ssp_kernel kernelOf(const char* op, const char* device, const char* implementation, Run run) {
  ssp_kernel kernel = {};
  kernel.size = sizeof(ssp_kernel);
  kernel.domain = kDomain;
  kernel.op = op;
  kernel.device = device;
  kernel.implementation = implementation;
  kernel.dtypes = SSP_DTYPE_BIT(SSP_FLOAT32);
  kernel.create = create;
  kernel.run = run;
  kernel.destroy = destroy;
  return kernel;
}
ssp_kernel deviceKernelOf(const char* op, Run run, const ssp_device_function* functions, uint32_t count) {
  ssp_kernel kernel = kernelOf(op, "cuda", "a block per row", run);
  kernel.functions = functions;
  kernel.function_count = count;
#ifdef RMS_FATBIN
  kernel.image = kImage;
  kernel.image_bytes = static_cast<uint64_t>(kImage_end - kImage);
#endif
  return kernel;
}
const ssp_kernel kForwardKernel = kernelOf("RMSNorm", "cpu", "plain loops", runForward),
                 kBackwardKernel = kernelOf("RMSNormGrad", "cpu", "plain loops", runBackward),
                 kForwardOnDevice = deviceKernelOf("RMSNorm", runForwardOnDevice, kForwardFunctions, 1),
                 kBackwardOnDevice = deviceKernelOf("RMSNormGrad", runBackwardOnDevice, kBackwardFunctions, 2);

const ssp_op* const kOps[] = {&kForward, &kBackward};
const ssp_kernel* const kKernels[] = {&kForwardKernel, &kBackwardKernel, &kForwardOnDevice, &kBackwardOnDevice};

ssp_plugin entry() {
  ssp_plugin plugin = {};
  plugin.size = sizeof(ssp_plugin);
  plugin.abi_major = SSP_ABI_MAJOR;
  plugin.abi_minor = SSP_ABI_MINOR;
  plugin.name = "cuda_rms_norm";
  plugin.version = "1.0.0";
  plugin.doc = "RMSNorm and its gradient, for the CPU and for CUDA";
  plugin.ops = kOps;
  plugin.op_count = 2;
  plugin.kernels = kKernels;
  plugin.kernel_count = 4;
  return plugin;
}

}  // namespace

extern "C" const ssp_plugin stepscope_plugin_entry = entry();
