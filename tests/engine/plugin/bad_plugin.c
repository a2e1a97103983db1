// A plugin that keeps the contract (bad.Twice, y = 2 x), and with -DBAD=NAME one that breaks it in one place.
// bad_plugins_test.cpp has the list; compiled as C11, and as C++20 where something is thrown.
#include "stepscope_plugin.h"

enum {
  NOTHING,
  ENTRY_SIZE,
  NEWER_MAJOR,
  NEWER_MINOR,
  NAME_WITH_BLANKS,
  NO_VERSION,
  OP_SIZE,
  OP_NULL,
  DOMAIN_TAKEN,
  LATE_VERSION,
  NO_INFER_SHAPE,
  NO_GRADIENT_REASON,
  NO_CATEGORY,
  REPEATED_SIDE_EFFECT,
  KERNEL_SIZE,
  KERNEL_OF_NOTHING,
  NO_RUN,
  OTHER_DEVICE,
  NO_KERNEL,
  SAME_OP_TWICE,
  PASS_PHASE,
  PASS_NAME_TAKEN,
  OPTION_NAME,
  NO_EXAMPLE,
  INIT_FAILS,
  INIT_CRASHES,
  SHAPE_NOT_SET,
  SHAPE_WRONG_INPUT,
  SHAPE_WRONG_EXTENT,
  SHAPE_NEGATIVE,
  SHAPE_FAILS,
  SHAPE_SILENT,
  SHAPE_THROWS,
  GRADIENT_OTHER_SHAPE,
  GRADIENT_UNKNOWN_OP,
  GRADIENT_ARITY,
  GRADIENT_WRONG_VALUE,
  GRADIENT_NO_TYPE,
  GRADIENT_THROWS,
  CREATE_NO_DETERMINISM,
  CREATE_CRASHES,
  RUN_SILENT,
  RUN_THROWS,
  RUN_CRASHES,
  RUN_ABORTS,
  RUN_OVERRUN,
  RUN_UNDERRUN,
  RUN_CHANGES_INPUT,
  RUN_SCRATCH_OVERRUN,
  BODY_THROWS,
  PASS_OTHER_SHAPE,
  PASS_UNKNOWN_OP,
  PASS_WRONG_NODE,
  PASS_OLD_VALUE,
  PASS_CYCLE,
  PASS_THROWS,
  READER_SUFFIX,
  READER_NO_ENTRIES,
  READER_ARRAY_TWICE,
  READER_NO_TYPE,
  READER_SILENT,
  READER_THROWS,
  READER_CRASHES,
};

#ifndef BAD
#define BAD NOTHING
#endif

#ifdef __cplusplus
#define THROW throw 7
#else
#define THROW (void)0
#endif

static void crash(void) {
  volatile int* volatile nowhere = NULL;
  *nowhere = 1;
}

void abort(void);
#if BAD_SYMBOL
void nobody_has_this(void);
#endif

static ssp_status infer_shape(const ssp_op* op, ssp_shape_context* c) {
  (void)op;
  if (BAD == SHAPE_NOT_SET) return SSP_OK;
  if (BAD == SHAPE_WRONG_INPUT) c->set_output(c, 0, c->input_dtype(c, 5), 0, NULL);
  if (BAD == SHAPE_WRONG_EXTENT) {
    const ssp_dim made_up = 77;
    c->set_output(c, 0, SSP_FLOAT32, 1, &made_up);
  }
  if (BAD == SHAPE_NEGATIVE) {
    const ssp_dim negative = c->number(c, -3);
    c->set_output(c, 0, SSP_FLOAT32, 1, &negative);
  }
  if (BAD == SHAPE_FAILS) return c->fail(c, "no such luck");
  if (BAD == SHAPE_SILENT) return SSP_ERROR;
  if (BAD == SHAPE_THROWS) THROW;
  c->set_output_like(c, 0, 0);
  return SSP_OK;
}

static ssp_status gradient(const ssp_op* op, ssp_gradient_context* g) {
  (void)op;
  ssp_value dx = ssp_binary(g, "Mul", g->dy(g, 0), g->scalar(g, 2, g->x(g, 0)));
  if (BAD == GRADIENT_OTHER_SHAPE) dx = ssp_unary(g, "Transpose", dx);
  if (BAD == GRADIENT_UNKNOWN_OP) dx = ssp_unary(g, "Frobnicate", dx);
  if (BAD == GRADIENT_ARITY) dx = ssp_unary(g, "Mul", dx);
  if (BAD == GRADIENT_WRONG_VALUE) dx = 4711;
  if (BAD == GRADIENT_NO_TYPE) dx = ssp_binary(g, "MatMul", dx, dx);
  if (BAD == GRADIENT_THROWS) THROW;
  g->set_gradient(g, 0, dx);
  return SSP_OK;
}

static uint64_t elements = 0;

static ssp_status create(const ssp_kernel* kernel, ssp_kernel_context* c, void** instance) {
  (void)kernel;
  if (BAD == CREATE_CRASHES) crash();
  elements = 1;
  for (uint32_t axis = 0; axis < c->inputs[0].rank; ++axis) elements *= (uint64_t)c->inputs[0].dims[axis];
  *instance = &elements;
  c->scratch_bytes = 16;
  if (BAD == CREATE_NO_DETERMINISM) return SSP_OK;
  c->determinism = SSP_DETERMINISM_FIXED;
  c->determinism_reason = "one thread";
  return SSP_OK;
}

static void body(void* user, uint32_t part) {
  (void)user;
  (void)part;
  if (BAD == BODY_THROWS) THROW;
}

static ssp_status run(void* instance, const ssp_kernel_call* call) {
  (void)instance;
  float* x = (float*)call->inputs[0].data;
  float* y = (float*)call->outputs[0].data;
  const uint64_t count = call->inputs[0].bytes / sizeof(float);
  for (uint64_t i = 0; i < count; ++i) y[i] = 2 * x[i];
  if (BAD == RUN_SILENT) return SSP_ERROR;
  if (BAD == RUN_THROWS) THROW;
  if (BAD == RUN_CRASHES) crash();
  if (BAD == RUN_ABORTS) abort();
  if (BAD == RUN_OVERRUN) y[count] = 1;
  if (BAD == RUN_UNDERRUN) y[-1] = 1;
  if (BAD == RUN_CHANGES_INPUT) x[0] = 12345;
  if (BAD == RUN_SCRATCH_OVERRUN) ((char*)call->scratch)[call->scratch_bytes] = 1;
  return call->parallel(call, 2, body, NULL);
}

static ssp_status run_pass(const ssp_pass* pass, ssp_pass_context* p) {
  (void)pass;
  if (BAD == PASS_THROWS) THROW;
  if (BAD == PASS_WRONG_NODE) return p->node_op(p, 4711) == NULL ? SSP_ERROR : SSP_OK;
  for (uint32_t k = 0; k < p->node_count; ++k) {
    const ssp_node node = p->node(p, k);
    const char* op = p->node_op(p, node);
    if (op[0] != 'T' || op[1] != 'w') continue;  // Twice
    const ssp_value x = p->input(p, node, 0), y = p->output(p, node, 0);
    ssp_value made = 0;
    if (BAD == PASS_UNKNOWN_OP) p->add_node(p, node, "", "Frobnicate", &x, 1, NULL, 0, &made, 1);
    if (BAD == PASS_OLD_VALUE) p->replace(p, y, x);
    if (BAD == PASS_OTHER_SHAPE) {
      if (p->add_node(p, node, "", "Transpose", &x, 1, NULL, 0, &made, 1)) return SSP_ERROR;
      return p->replace(p, y, made);
    }
    if (BAD == PASS_CYCLE) {
      const ssp_value inputs[2] = {y, y};
      if (p->add_node(p, node, "", "Add", inputs, 2, NULL, 0, &made, 1)) return SSP_ERROR;
      return p->replace(p, y, made);
    }
  }
  return SSP_OK;
}

static const int64_t kEntry[] = {4, 3};
static const ssp_array kArrays[] = {
    {.size = sizeof(ssp_array), .dtype = BAD == READER_NO_TYPE ? 99 : SSP_FLOAT32, .name = "x", .rank = 2, .dims = kEntry},
    {.size = sizeof(ssp_array), .dtype = SSP_FLOAT32, .name = "x", .rank = 2, .dims = kEntry},
};

static ssp_status open_data(const ssp_reader* reader, ssp_reader_context* c, void** instance) {
  (void)reader;
  c->entry_count = BAD == READER_NO_ENTRIES ? 0 : 2;
  c->arrays = kArrays;
  c->array_count = BAD == READER_ARRAY_TWICE ? 2 : 1;
  *instance = &elements;
  return BAD == READER_SILENT ? SSP_ERROR : SSP_OK;
}

static ssp_status read_data(void* instance, ssp_reader_context* c, uint64_t entry, uint32_t array, void* data,
                            uint64_t bytes) {
  (void)instance;
  if (BAD == READER_THROWS) THROW;
  if (BAD == READER_CRASHES) crash();
  for (uint64_t i = 0; i < bytes / sizeof(float); ++i) ((float*)data)[i] = (float)(entry + array);
  return c->size == sizeof *c ? SSP_OK : SSP_ERROR;
}

static void close_data(void* instance) { (void)instance; }

static ssp_status init(const ssp_host* host) {
  if (BAD == INIT_CRASHES) crash();
#if BAD_SYMBOL
  nobody_has_this();
#endif
  return BAD == INIT_FAILS || host->abi_major != SSP_ABI_MAJOR ? SSP_ERROR : SSP_OK;
}

static const int64_t kExtents[] = {4, 3};
static const ssp_example_operand kOperand[] = {
    {.size = sizeof(ssp_example_operand), .dtype = SSP_FLOAT32, .rank = 2, .dims = kExtents, .low = -1, .high = 1}};
static const ssp_example kExample[] = {{.size = sizeof(ssp_example), .inputs = kOperand, .input_count = 1}};

static const ssp_op kOp = {
    .size = BAD == OP_SIZE ? 8 : sizeof(ssp_op),
    .domain = BAD == DOMAIN_TAKEN ? "com.microsoft" : "bad",
    .name = "Twice",
    .since_version = BAD == LATE_VERSION ? 22 : 1,
    .doc = "y = 2 x",
    .least_inputs = 1,
    .most_inputs = 1,
    .least_outputs = 1,
    .most_outputs = 1,
    .category = BAD == NO_CATEGORY ? 0 : SSP_CATEGORY_ELEMENTWISE,
    .precision = SSP_PRECISION_FOLLOWS,
    .recompute = SSP_RECOMPUTE_CHEAP,
    .differentiable_inputs = BAD == NO_GRADIENT_REASON ? 0 : SSP_BIT(0),
    .differentiable_outputs = SSP_BIT(0),
    .side_effect = BAD == REPEATED_SIDE_EFFECT,
    .infer_shape = BAD == NO_INFER_SHAPE ? NULL : infer_shape,
    .gradient = BAD == NO_GRADIENT_REASON ? NULL : gradient,
    .examples = kExample,
    .example_count = BAD == NO_EXAMPLE ? 0 : 1,
};

static const ssp_kernel kKernel = {
    .size = BAD == KERNEL_SIZE ? sizeof(ssp_kernel) + 8 : sizeof(ssp_kernel),
    .domain = "bad",
    .op = BAD == KERNEL_OF_NOTHING ? "Thrice" : "Twice",
    .device = BAD == OTHER_DEVICE ? "abacus" : "cpu",
    .implementation = "plain loop",
    .dtypes = SSP_DTYPE_BIT(SSP_FLOAT32),
    .create = create,
    .run = BAD == NO_RUN ? NULL : run,
};

static const ssp_pass kPass = {
    .size = sizeof(ssp_pass),
    .name = BAD == PASS_NAME_TAKEN ? "cse" : "look_at_twice",
    .doc = "looks at the nodes",
    .phase = BAD == PASS_PHASE ? "after lunch" : "pre-grad passes",
    .run = run_pass,
};

static const ssp_option kOption = {
    .size = sizeof(ssp_option),
    .name = BAD == OPTION_NAME ? "lr" : "bad.mode",
    .default_value = "calm",
    .doc = "how it is",
};

static const ssp_reader kReader = {
    .size = sizeof(ssp_reader),
    .name = "nothing",
    .suffix = BAD == READER_SUFFIX ? ".npz" : ".bad",
    .open = open_data,
    .read = read_data,
    .close = close_data,
};

static const ssp_op* const kOps[] = {BAD == OP_NULL ? NULL : &kOp, &kOp};
static const ssp_kernel* const kKernels[] = {&kKernel};
static const ssp_pass* const kPasses[] = {&kPass};
static const ssp_option* const kOptions[] = {&kOption};
static const ssp_reader* const kReaders[] = {&kReader};

#if BAD_ENTRY
#define ENTRY other_entry
extern SSP_EXPORT const ssp_plugin other_entry;
#else
#define ENTRY stepscope_plugin_entry
#endif

const ssp_plugin ENTRY = {
    .size = BAD == ENTRY_SIZE ? 40 : sizeof(ssp_plugin),
    .abi_major = BAD == NEWER_MAJOR ? SSP_ABI_MAJOR + 1 : SSP_ABI_MAJOR,
    .abi_minor = BAD == NEWER_MINOR ? SSP_ABI_MINOR + 1 : SSP_ABI_MINOR,
    .name = BAD == NAME_WITH_BLANKS ? "so bad" : "bad",
    .version = BAD == NO_VERSION ? "" : "1.0",
    .doc = "breaks the contract",
    .ops = kOps,
    .op_count = BAD == SAME_OP_TWICE ? 2 : 1,
    .kernels = kKernels,
    .kernel_count = BAD == NO_KERNEL ? 0 : 1,
    .passes = kPasses,
    .pass_count = 1,
    .options = kOptions,
    .option_count = 1,
    .readers = kReaders,
    .reader_count = 1,
    .init = init,
};
