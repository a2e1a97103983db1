// A fused op with a gradient of its own: RMSNorm over the last axis, gated by SiLU, as gated linear attention and Mamba 2
// end their blocks. And a pass that finds it in the nodes that exporters write for it.
//
//   cc -std=c11 -Wall -Wextra -Werror -O2 -fPIC -shared -I ../../abi gated_rms_norm.c pass.c -o gated_rms_norm.so -lm
//
//   y[r, c] = x[r, c] inv[r] w[c] g[r, c] sigmoid(g[r, c]),   inv[r] = 1 / sqrt(mean_c x[r, c]^2 + epsilon)
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019; Dao and Gu, "Transformers are SSMs", 2024.
#include "gated_rms_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What a kernel knows of its node.
typedef struct {
  int64_t rows, columns;
  float epsilon;
} Extents;

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// ---------------------------------------------------------------------------------------------------------- shapes

// x and gate [..., C], weight [C].
static ssp_status check_operands(ssp_shape_context* c) {
  const int32_t rank = c->input_rank(c, 0);
  if (rank < 0) return SSP_OK;  // not known yet
  if (rank == 0) return c->fail(c, "x is a scalar; expected an axis to normalise");
  const ssp_dim last = c->input_dim(c, 0, (uint32_t)rank - 1);
  if (c->input_rank(c, 1) >= 0 && c->input_rank(c, 1) != rank) return c->fail(c, "x and gate differ in rank");
  for (uint32_t axis = 0; c->input_rank(c, 1) >= 0 && axis < (uint32_t)rank; ++axis)
    if (c->unify(c, c->input_dim(c, 0, axis), c->input_dim(c, 1, axis), "extents of x and gate")) return SSP_ERROR;
  if (c->input_rank(c, 2) < 0) return SSP_OK;
  if (c->input_rank(c, 2) != 1) return c->fail(c, "weight is no vector");
  return c->unify(c, last, c->input_dim(c, 2, 0), "last axis of x and weight");
}

static ssp_status infer_forward(const ssp_op* op, ssp_shape_context* c) {
  (void)op;
  if (check_operands(c)) return SSP_ERROR;
  c->set_output_like(c, 0, 0);
  return SSP_OK;
}

// Inputs x, gate, weight, dy; outputs dx, dgate, dweight.
static ssp_status infer_gradient(const ssp_op* op, ssp_shape_context* c) {
  (void)op;
  if (check_operands(c)) return SSP_ERROR;
  for (uint32_t i = 0; i < 3; ++i)
    if (c->has_output(c, i)) c->set_output_like(c, i, i);
  return SSP_OK;
}

// -------------------------------------------------------------------------------------------------------- gradient

// One node of an op of its own, which reads x and gate once.
static ssp_status gradient(const ssp_op* op, ssp_gradient_context* g) {
  (void)op;
  const ssp_value inputs[4] = {g->x(g, 0), g->x(g, 1), g->x(g, 2), g->dy(g, 0)};
  const ssp_attr* epsilon = g->attr(g, "epsilon");
  ssp_value outputs[3];
  if (g->emit(g, GATED_DOMAIN, "GatedRMSNormGrad", inputs, 4, epsilon, 1, outputs, 3)) return SSP_ERROR;
  for (uint32_t i = 0; i < 3; ++i)
    if (g->needs(g, i)) g->set_gradient(g, i, outputs[i]);
  return SSP_OK;
}

// --------------------------------------------------------------------------------------------------------- kernels

static ssp_status create(const ssp_kernel* kernel, ssp_kernel_context* c, void** instance) {
  const ssp_operand* x = &c->inputs[0];
  Extents* extents = malloc(sizeof *extents);
  if (extents == NULL) return c->fail(c, "no memory");
  extents->columns = x->dims[x->rank - 1];
  extents->rows = 1;
  for (uint32_t axis = 0; axis + 1 < x->rank; ++axis) extents->rows *= x->dims[axis];
  extents->epsilon = c->attr(c, "epsilon")->f;
  *instance = extents;
  c->determinism = SSP_DETERMINISM_FIXED;
  c->determinism_reason = "every row is computed by one thread; the gradient of the weight is summed over fixed parts";
  c->cannot_fail = 1;
  // The gradient of the weight: one row of sums per part.
  if (kernel->user != NULL) c->scratch_bytes = (uint64_t)extents->columns * GATED_PARTS * sizeof(float);
  return SSP_OK;
}

// What one call of a kernel hands to its parts.
typedef struct {
  const ssp_kernel_call* call;
  const Extents* extents;
} Job;

static const float* input(const Job* job, uint32_t i) { return job->call->inputs[i].data; }
static float* output(const Job* job, uint32_t o) { return job->call->outputs[o].data; }

// Rows of a part: they depend on the number of rows alone, and not on the number of threads.
static int64_t first_row(const Job* job, uint32_t part) { return job->extents->rows * part / GATED_PARTS; }

static float inverse_norm(const float* x, int64_t columns, float epsilon) {
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += (double)x[c] * x[c];
  return (float)(1.0 / sqrt(sum / (double)columns + epsilon));
}

static void forward_part(void* user, uint32_t part) {
  const Job* job = user;
  const int64_t columns = job->extents->columns;
  const float* weight = input(job, 2);
  for (int64_t row = first_row(job, part); row < first_row(job, part + 1); ++row) {
    const float *x = input(job, 0) + row * columns, *gate = input(job, 1) + row * columns;
    float* y = output(job, 0) + row * columns;
    const float inverse = inverse_norm(x, columns, job->extents->epsilon);
    for (int64_t c = 0; c < columns; ++c) y[c] = x[c] * inverse * weight[c] * gate[c] * sigmoid(gate[c]);
  }
}

static ssp_status run_forward(void* instance, const ssp_kernel_call* call) {
  Job job = {call, instance};
  return call->parallel(call, GATED_PARTS, forward_part, &job);
}

// With n = x inv and s = gate sigmoid(gate):  dw = sum_r dy n s;  dgate = dy n w s';
// dx = inv (d - n mean_c(d n)),  d = dy w s.
static void backward_part(void* user, uint32_t part) {
  const Job* job = user;
  const int64_t columns = job->extents->columns;
  const float* weight = input(job, 2);
  float* sums = (float*)job->call->scratch + (int64_t)part * columns;
  memset(sums, 0, (size_t)columns * sizeof *sums);
  for (int64_t row = first_row(job, part); row < first_row(job, part + 1); ++row) {
    const int64_t begin = row * columns;
    const float *x = input(job, 0) + begin, *gate = input(job, 1) + begin, *dy = input(job, 3) + begin;
    float *dx = output(job, 0) + begin, *dgate = output(job, 1) + begin;
    const float inverse = inverse_norm(x, columns, job->extents->epsilon);
    double projection = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const float share = sigmoid(gate[c]), silu = gate[c] * share, normal = x[c] * inverse;
      projection += (double)dy[c] * weight[c] * silu * normal;
      sums[c] += dy[c] * normal * silu;
      dgate[c] = dy[c] * normal * weight[c] * (share + silu * (1 - share));
    }
    const float mean = (float)(projection / (double)columns);
    for (int64_t c = 0; c < columns; ++c)
      dx[c] = inverse * (dy[c] * weight[c] * gate[c] * sigmoid(gate[c]) - x[c] * inverse * mean);
  }
}

static ssp_status run_backward(void* instance, const ssp_kernel_call* call) {
  const Extents* extents = instance;
  Job job = {call, extents};
  if (call->parallel(call, GATED_PARTS, backward_part, &job)) return SSP_ERROR;
  float* dweight = call->outputs[2].data;
  for (int64_t c = 0; c < extents->columns; ++c) {
    double sum = 0;
    for (int64_t part = 0; part < GATED_PARTS; ++part) sum += ((const float*)call->scratch)[part * extents->columns + c];
    dweight[c] = (float)sum;
  }
  return SSP_OK;
}

// ----------------------------------------------------------------------------------------------------------- entry

static const ssp_attr_info kAttributes[] = {
    {.size = sizeof(ssp_attr_info), .kind = SSP_ATTR_FLOAT, .name = "epsilon", .f = 1e-5f},
};

static const int64_t kMatrix[] = {5, 8}, kBatch[] = {3, 7, 24}, kVector[] = {8}, kLonger[] = {24};

// x, gate, weight, and dy for the gradient.
#define OPERAND(extents, count, least, most) \
  { .size = sizeof(ssp_example_operand), .dtype = SSP_FLOAT32, .rank = count, .dims = extents, .low = least, .high = most }
static const ssp_example_operand kSmall[] = {OPERAND(kMatrix, 2, -2, 2), OPERAND(kMatrix, 2, -2, 2),
                                             OPERAND(kVector, 1, 0.5, 1.5), OPERAND(kMatrix, 2, -1, 1)};
static const ssp_example_operand kLarger[] = {OPERAND(kBatch, 3, -1, 1), OPERAND(kBatch, 3, -4, 4),
                                              OPERAND(kLonger, 1, -1, 1), OPERAND(kBatch, 3, -1, 1)};
#define EXAMPLE(operands, count) \
  { .size = sizeof(ssp_example), .inputs = operands, .input_count = count }
static const ssp_example kForwardExamples[] = {EXAMPLE(kSmall, 3), EXAMPLE(kLarger, 3)};
static const ssp_example kBackwardExamples[] = {EXAMPLE(kSmall, 4), EXAMPLE(kLarger, 4)};

static const ssp_op kForward = {
    .size = sizeof(ssp_op),
    .domain = GATED_DOMAIN,
    .name = "GatedRMSNorm",
    .since_version = 1,
    .doc = "y = x / sqrt(mean(x^2) + epsilon) * weight * silu(gate), over the last axis",
    .least_inputs = 3,
    .most_inputs = 3,
    .least_outputs = 1,
    .most_outputs = 1,
    .attrs = kAttributes,
    .attr_count = 1,
    .category = SSP_CATEGORY_NORMALIZATION,
    .precision = SSP_PRECISION_FLOAT32,
    .recompute = SSP_RECOMPUTE_CHEAP,
    .differentiable_inputs = SSP_BIT(0) | SSP_BIT(1) | SSP_BIT(2),
    .differentiable_outputs = SSP_BIT(0),
    .in_place_inputs = SSP_BIT(0) | SSP_BIT(1),  // a row is read before it is written
    .infer_shape = infer_forward,
    .gradient = gradient,
    .examples = kForwardExamples,
    .example_count = 2,
};

static const ssp_op kBackward = {
    .size = sizeof(ssp_op),
    .domain = GATED_DOMAIN,
    .name = "GatedRMSNormGrad",
    .since_version = 1,
    .doc = "dx, dgate, dweight of GatedRMSNorm from x, gate, weight, dy",
    .least_inputs = 4,
    .most_inputs = 4,
    .least_outputs = 3,
    .most_outputs = 3,
    .attrs = kAttributes,
    .attr_count = 1,
    .category = SSP_CATEGORY_NORMALIZATION,
    .precision = SSP_PRECISION_FLOAT32,
    .recompute = SSP_RECOMPUTE_COSTLY,
    .infer_shape = infer_gradient,
    .no_gradient_reason = "a gradient itself; second derivatives are not written",
    .examples = kBackwardExamples,
    .example_count = 2,
};

static const int kNeedsSums = 1;

static const ssp_kernel kForwardKernel = {
    .size = sizeof(ssp_kernel),
    .domain = GATED_DOMAIN,
    .op = "GatedRMSNorm",
    .device = "cpu",
    .implementation = "gated rms norm, plain loops",
    .dtypes = SSP_DTYPE_BIT(SSP_FLOAT32),
    .create = create,
    .run = run_forward,
    .destroy = free,
};

static const ssp_kernel kBackwardKernel = {
    .size = sizeof(ssp_kernel),
    .domain = GATED_DOMAIN,
    .op = "GatedRMSNormGrad",
    .device = "cpu",
    .implementation = "gradient of gated rms norm, plain loops",
    .dtypes = SSP_DTYPE_BIT(SSP_FLOAT32),
    .create = create,
    .run = run_backward,
    .destroy = free,
    .user = (void*)&kNeedsSums,
};

static const ssp_op* const kOps[] = {&kForward, &kBackward};
static const ssp_kernel* const kKernels[] = {&kForwardKernel, &kBackwardKernel};
static const ssp_pass* const kPasses[] = {&fuse_gated_rms_norm};
static const ssp_option* const kOptions[] = {&least_columns};

const ssp_plugin stepscope_plugin_entry = {
    .size = sizeof(ssp_plugin),
    .abi_major = SSP_ABI_MAJOR,
    .abi_minor = SSP_ABI_MINOR,
    .name = "gated_rms_norm",
    .version = "1.0.0",
    .doc = "RMSNorm gated by SiLU in one node, its gradient, and a pass that finds it",
    .ops = kOps,
    .op_count = 2,
    .kernels = kKernels,
    .kernel_count = 2,
    .passes = kPasses,
    .pass_count = 1,
    .options = kOptions,
    .option_count = 1,
};
