// An op of your own: my_op.SoftSign, y = x / (1 + |x|), with a gradient of public ops and a kernel for the CPU.
//
//   make            builds my_op.so with nothing but stepscope_plugin.h
//   make check      stepscope plugin check: shapes, gradient by finite differences, aliasing, threads, speed
//   stepscope train MODEL.onnx --plugin ./my_op.so
//
// What to change: the domain (yours), the name, the two formulas, and the examples.
#include <math.h>
#include <stdlib.h>

#include "stepscope_plugin.h"

#define DOMAIN "my_op"
#define PARTS 8u  // what may run side by side

// The result is typed and shaped like x. Called with symbols in place of extents first.
static ssp_status infer_shape(const ssp_op* op, ssp_shape_context* c) {
  (void)op;
  c->set_output_like(c, 0, 0);
  return SSP_OK;
}

// dx = dy / (1 + |x|)^2
static ssp_status gradient(const ssp_op* op, ssp_gradient_context* g) {
  (void)op;
  const ssp_value x = g->x(g, 0);
  const ssp_value below = ssp_binary(g, "Add", ssp_unary(g, "Abs", x), g->scalar(g, 1.0, x));
  g->set_gradient(g, 0, ssp_binary(g, "Div", g->dy(g, 0), ssp_binary(g, "Mul", below, below)));
  return SSP_OK;
}

// What the kernel knows of one node.
typedef struct {
  int64_t elements;
  int32_t dtype;
} Node;

static ssp_status create(const ssp_kernel* kernel, ssp_kernel_context* c, void** instance) {
  (void)kernel;
  Node* node = malloc(sizeof *node);
  if (node == NULL) return c->fail(c, "no memory");
  node->elements = 1;
  for (uint32_t axis = 0; axis < c->inputs[0].rank; ++axis) node->elements *= c->inputs[0].dims[axis];
  node->dtype = c->inputs[0].dtype;
  *instance = node;
  c->determinism = SSP_DETERMINISM_FIXED;
  c->determinism_reason = "every element is computed by one thread";
  c->cannot_fail = 1;
  return SSP_OK;
}

typedef struct {
  const Node* node;
  const ssp_kernel_call* call;
} Job;

static void run_part(void* user, uint32_t part) {
  const Job* job = user;
  const int64_t begin = job->node->elements * part / PARTS, end = job->node->elements * (part + 1) / PARTS;
  if (job->node->dtype == SSP_FLOAT64) {
    const double* x = job->call->inputs[0].data;
    double* y = job->call->outputs[0].data;
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] / (1 + fabs(x[i]));
  } else {
    const float* x = job->call->inputs[0].data;
    float* y = job->call->outputs[0].data;
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] / (1 + fabsf(x[i]));
  }
}

static ssp_status run(void* instance, const ssp_kernel_call* call) {
  Job job = {instance, call};
  return call->parallel(call, PARTS, run_part, &job);
}

static const int64_t kFlat[] = {11}, kBlock[] = {3, 5, 7};
static const ssp_example_operand kFloats[] = {
    {.size = sizeof(ssp_example_operand), .dtype = SSP_FLOAT32, .rank = 1, .dims = kFlat, .low = -3, .high = 3}};
static const ssp_example_operand kDoubles[] = {
    {.size = sizeof(ssp_example_operand), .dtype = SSP_FLOAT64, .rank = 3, .dims = kBlock, .low = -1, .high = 1}};
static const ssp_example kExamples[] = {
    {.size = sizeof(ssp_example), .inputs = kFloats, .input_count = 1},
    {.size = sizeof(ssp_example), .inputs = kDoubles, .input_count = 1},
};

static const ssp_op kOp = {
    .size = sizeof(ssp_op),
    .domain = DOMAIN,
    .name = "SoftSign",
    .since_version = 1,
    .doc = "y = x / (1 + |x|)",
    .least_inputs = 1,
    .most_inputs = 1,
    .least_outputs = 1,
    .most_outputs = 1,
    .category = SSP_CATEGORY_ACTIVATION,
    .precision = SSP_PRECISION_FOLLOWS,
    .recompute = SSP_RECOMPUTE_CHEAP,
    .differentiable_inputs = SSP_BIT(0),
    .differentiable_outputs = SSP_BIT(0),
    .in_place_inputs = SSP_BIT(0),
    .infer_shape = infer_shape,
    .gradient = gradient,
    .examples = kExamples,
    .example_count = 2,
};

static const ssp_kernel kKernel = {
    .size = sizeof(ssp_kernel),
    .domain = DOMAIN,
    .op = "SoftSign",
    .device = "cpu",
    .implementation = "soft sign, plain loop",
    .dtypes = SSP_DTYPE_BIT(SSP_FLOAT32) | SSP_DTYPE_BIT(SSP_FLOAT64),
    .create = create,
    .run = run,
    .destroy = free,
};

static const ssp_op* const kOps[] = {&kOp};
static const ssp_kernel* const kKernels[] = {&kKernel};

const ssp_plugin stepscope_plugin_entry = {
    .size = sizeof(ssp_plugin),
    .abi_major = SSP_ABI_MAJOR,
    .abi_minor = SSP_ABI_MINOR,
    .name = "my_op",
    .version = "0.1.0",
    .doc = "one op, to begin with",
    .ops = kOps,
    .op_count = 1,
    .kernels = kKernels,
    .kernel_count = 1,
};
