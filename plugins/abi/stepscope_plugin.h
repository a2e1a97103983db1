// SPDX-License-Identifier: Apache-2.0
//
// The plugin ABI of Stepscope: operators, kernels, passes, options and data readers from a shared library, in C11 (or
// C++), with this one header and nothing else.
//
//   cc -std=c11 -Wall -Wextra -O2 -fPIC -shared -I FOLDER_OF_THIS_FILE my_op.c -o my_op.so
//   stepscope plugin check my_op.so
//   stepscope train MODEL.onnx --plugin my_op.so
//
// A library exports one constant, `stepscope_plugin_entry`, of type ssp_plugin. All that it points at stays as it is until
// the library is unloaded, which the host does when no plan, session or registry that knows it is left.
//
// Rules
//   * Every struct begins with its size: `.size = sizeof(ssp_op)`. The host refuses any other size than that of the version
//     which the plugin names in abi_major and abi_minor.
//   * A function returns SSP_OK, or what `fail` of its context returned: SSP_ERROR. Nothing is thrown over the border; an
//     exception that comes out of a plugin function is an error which names plugin and function.
//   * Strings are UTF-8 and end with 0. Handles (ssp_dim, ssp_value, ssp_node) are valid until the function to which they
//     were given returns; 0 is none.
//   * A wrong index or handle is an error of the plugin: the call answers 0, and the host ends the function with the error.
//   * What came with a later minor version says so: "(1.1)". Fields are added at the end of a struct only.
//   * Random numbers depend on seed, micro step, node of the model and element alone, so that a gradient, a replay or
//   another
//     device draws them again: ssp_random_words on both sides, of the call's key on the CPU, of SSP_ARGUMENT_KEY on a GPU.
//
// Tags
//   [static]   valid until the library is unloaded       [call]  valid until the function that got it returns
//   [session]  called by the thread of a session, and never by two at once for one session; several sessions may call at
//   once [any]      called by several threads at once
#ifndef STEPSCOPE_PLUGIN_H
#define STEPSCOPE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SSP_ABI_MAJOR 1u  // another one is refused
#define SSP_ABI_MINOR 2u  // the host takes plugins of this one and older ones

#if defined(__CUDACC__)
#define SSP_ON_BOTH __host__ __device__  // what device functions call too
#else
#define SSP_ON_BOTH
#endif

#if defined(_WIN32)
#define SSP_EXPORT __declspec(dllexport)
#else
#define SSP_EXPORT __attribute__((visibility("default")))
#endif

// Of a function of a plugin.
typedef int32_t ssp_status;
enum {
  SSP_OK = 0,
  SSP_ERROR = 1,        // what `fail` returns
  SSP_UNSUPPORTED = 2,  // ssp_kernel.create only: another kernel may take these operands
};

// Handles; 0 is none.
typedef uint32_t ssp_dim;    // an extent: a number, or an expression of symbols such as "2*batch"
typedef uint32_t ssp_value;  // a tensor of a graph
typedef uint32_t ssp_node;   // a node of a graph

// Element types, by their ONNX numbers.
enum {
  SSP_UNDEFINED = 0,
  SSP_FLOAT32 = 1,
  SSP_UINT8 = 2,
  SSP_INT8 = 3,
  SSP_UINT16 = 4,
  SSP_INT16 = 5,
  SSP_INT32 = 6,
  SSP_INT64 = 7,
  SSP_BOOL = 9,  // one byte, 0 or 1
  SSP_FLOAT16 = 10,
  SSP_FLOAT64 = 11,
  SSP_UINT32 = 12,
  SSP_UINT64 = 13,
  SSP_BFLOAT16 = 16,
};
// For ssp_kernel.dtypes: SSP_DTYPE_BIT(SSP_FLOAT32) | …
#define SSP_DTYPE_BIT(dtype) (UINT32_C(1) << (dtype))

// Of an attribute; which field of ssp_attr holds the value.
enum {
  SSP_ATTR_INT = 1,     // i
  SSP_ATTR_FLOAT = 2,   // f
  SSP_ATTR_STRING = 3,  // s
  SSP_ATTR_INTS = 4,    // ints, count
  SSP_ATTR_FLOATS = 5,  // floats, count
};

// An attribute of a node: what a plugin reads, and what it gives to nodes that it emits.
typedef struct ssp_attr {
  uint32_t size;
  int32_t kind;
  const char* name;
  int64_t i;
  float f;
  const char* s;
  const int64_t* ints;
  const float* floats;
  uint64_t count;  // elements of ints or floats
} ssp_attr;

// An attribute that an op knows. The host refuses nodes with others, with one of another kind, or without a required one.
typedef struct ssp_attr_info {
  uint32_t size;
  int32_t kind;
  const char* name;
  int32_t required;  // 0: a node without it reads `fallback`; lists are empty then
  int64_t i;         // the fallbacks
  float f;
  const char* s;
} ssp_attr_info;

// ------------------------------------------------------------------------------------------------------------------- ops

enum {
  SSP_CATEGORY_OPTIMIZER = 1,
  SSP_CATEGORY_LOSS,
  SSP_CATEGORY_CONVOLUTION,
  SSP_CATEGORY_MATMUL,
  SSP_CATEGORY_NORMALIZATION,
  SSP_CATEGORY_ACTIVATION,
  SSP_CATEGORY_MOVEMENT,
  SSP_CATEGORY_REDUCTION,
  SSP_CATEGORY_RANDOM,
  SSP_CATEGORY_CONTROL,
  SSP_CATEGORY_ELEMENTWISE,
  SSP_CATEGORY_OTHER,
};

// The type that an op is computed in where a model is trained in float16 or bfloat16.
enum {
  SSP_PRECISION_LOW = 1,  // in the low type: products, which accumulate in float32 by themselves
  SSP_PRECISION_FLOAT32,  // needs float32: exponentials, norms, losses, long sums
  SSP_PRECISION_FOLLOWS,  // whatever its inputs are in
  SSP_PRECISION_WIDE,     // whatever its inputs are in, but what it adds up is kept in float32
};

// Whether the backward phase may compute it again instead of keeping its result.
enum {
  SSP_RECOMPUTE_NEVER = 1,  // it has a side effect
  SSP_RECOMPUTE_CHEAP,
  SSP_RECOMPUTE_COSTLY,
};

#define SSP_MANY UINT32_C(0xffffffff)  // of an arity: any number
#define SSP_BIT(i) (UINT32_C(1) << (i))

// What a shape rule sees of its node. Extents may be symbols here; the same rule is called again when a batch has made all
// of them numbers. All functions: [session], within infer_shape only.
typedef struct ssp_shape_context ssp_shape_context;
struct ssp_shape_context {
  uint32_t size;
  uint32_t input_count, output_count;
  int32_t (*has_input)(ssp_shape_context*, uint32_t input);
  int32_t (*has_output)(ssp_shape_context*, uint32_t output);
  int32_t (*input_dtype)(ssp_shape_context*, uint32_t input);  // SSP_UNDEFINED for an absent one
  int32_t (*input_rank)(ssp_shape_context*, uint32_t input);   // -1: not known (yet)
  ssp_dim (*input_dim)(ssp_shape_context*, uint32_t input, uint32_t axis);
  const ssp_attr* (*attr)(ssp_shape_context*, const char* name);  // [call]; of the schema, with its fallback
  // The contents of an integer input where they are known: how many elements, -1 when they are not known or do not fit.
  int32_t (*input_ints)(ssp_shape_context*, uint32_t input, int64_t* out, uint32_t capacity);
  // Arithmetic on extents. Quotients that do not divide become symbols of their own.
  ssp_dim (*number)(ssp_shape_context*, int64_t value);
  ssp_dim (*add)(ssp_shape_context*, ssp_dim a, ssp_dim b);
  ssp_dim (*subtract)(ssp_shape_context*, ssp_dim a, ssp_dim b);
  ssp_dim (*multiply)(ssp_shape_context*, ssp_dim a, ssp_dim b);
  ssp_dim (*floor_divide)(ssp_shape_context*, ssp_dim a, ssp_dim b);
  ssp_dim (*ceil_divide)(ssp_shape_context*, ssp_dim a, ssp_dim b);
  ssp_dim (*fresh)(ssp_shape_context*, uint32_t output, uint32_t axis);   // an extent that is not known
  int32_t (*dim_value)(ssp_shape_context*, ssp_dim dim, int64_t* value);  // 1 when it is a number
  const char* (*dim_text)(ssp_shape_context*, ssp_dim dim);               // [call]: "8", "batch", "sequence+1"
  // Both must be equal: SSP_ERROR when they are different numbers; `what` says of what, for the message.
  ssp_status (*unify)(ssp_shape_context*, ssp_dim a, ssp_dim b, const char* what);
  // The answers: every output that the node has gets one. rank -1: not known.
  void (*set_output)(ssp_shape_context*, uint32_t output, int32_t dtype, int32_t rank, const ssp_dim* dims);
  void (*set_output_like)(ssp_shape_context*, uint32_t output, uint32_t input);  // type and shape of an input
  ssp_status (*fail)(ssp_shape_context*, const char* message);                   // returns SSP_ERROR
};

// What a gradient rule sees and emits. dy(o) is the gradient that arrives at output o; the rule answers with set_gradient
// for each input that needs one. All functions: [session], within `gradient` only.
typedef struct ssp_gradient_context ssp_gradient_context;
struct ssp_gradient_context {
  uint32_t size;
  uint32_t input_count, output_count;
  ssp_value (*x)(ssp_gradient_context*, uint32_t input);
  ssp_value (*y)(ssp_gradient_context*, uint32_t output);
  ssp_value (*dy)(ssp_gradient_context*, uint32_t output);  // zeros where none arrives
  int32_t (*needs)(ssp_gradient_context*, uint32_t input);
  void (*set_gradient)(ssp_gradient_context*, uint32_t input, ssp_value gradient);  // of the type and shape of x(input)
  const ssp_attr* (*attr)(ssp_gradient_context*, const char* name);                 // [call]
  int32_t (*dtype)(ssp_gradient_context*, ssp_value value);
  int32_t (*rank)(ssp_gradient_context*, ssp_value value);  // -1: not known
  // Emits a node with `output_count` outputs, written to `outputs`. Domain "" is ONNX at opset 21; other ops are the
  // plugin's own. An input of 0 is an absent one.
  ssp_status (*emit)(ssp_gradient_context*, const char* domain, const char* op, const ssp_value* inputs,
                     uint32_t input_count, const ssp_attr* attrs, uint32_t attr_count, ssp_value* outputs,
                     uint32_t output_count);
  ssp_value (*scalar)(ssp_gradient_context*, double value, ssp_value like);  // a constant of the type of `like`
  ssp_value (*ints)(ssp_gradient_context*, const int64_t* values, uint32_t count);
  ssp_value (*shape_of)(ssp_gradient_context*, ssp_value value);
  // Sums over the axes along which `like` was broadcast.
  ssp_value (*reduce_to)(ssp_gradient_context*, ssp_value value, ssp_value like);
  ssp_status (*fail)(ssp_gradient_context*, const char* message);  // returns SSP_ERROR
};

// Operands of one node that `stepscope plugin check` runs the op on. Contents are drawn from low to high, whole numbers for
// integers. dtype SSP_UNDEFINED: an absent one.
typedef struct ssp_example_operand {
  uint32_t size;
  int32_t dtype;
  uint32_t rank;
  const int64_t* dims;
  double low, high;
} ssp_example_operand;

typedef struct ssp_example {
  uint32_t size;
  const ssp_example_operand* inputs;
  uint32_t input_count;
  const ssp_attr* attrs;
  uint32_t attr_count;
} ssp_example;

// An operator. Its key is (domain, name, since_version); the domain is the plugin's own, not one of ONNX or Stepscope.
typedef struct ssp_op ssp_op;
struct ssp_op {
  uint32_t size;
  const char* domain;
  const char* name;
  uint32_t since_version;  // from 1 to 21: the version of the domain from which on this definition holds
  const char* doc;         // one line, with the formula
  uint32_t least_inputs, most_inputs, least_outputs, most_outputs;  // those before `least` must be there
  const ssp_attr_info* attrs;
  uint32_t attr_count;
  int32_t category, precision, recompute;  // required
  // Inputs whose contents infer_shape or create read: they are on the host when the kernel is made.
  uint32_t host_inputs;
  uint32_t differentiable_inputs;   // bit i: input i can receive a gradient
  uint32_t differentiable_outputs;  // bit o: output o can carry one
  uint32_t in_place_inputs;         // bit i: output 0 may take over the memory of input i
  uint32_t side_effect;             // 1: never merged with its like, dropped or repeated; needs SSP_RECOMPUTE_NEVER
  // Data traffic, for the bytes of a plan: inputs of which it reads as much as output 0 has; 1: moves elements, no
  // arithmetic to count.
  uint32_t picked_inputs, moves;
  ssp_status (*infer_shape)(const ssp_op*, ssp_shape_context*);  // [session]; required
  // [session]; NULL: not differentiable; no_gradient_reason says why.
  ssp_status (*gradient)(const ssp_op*, ssp_gradient_context*);
  const char* no_gradient_reason;
  const ssp_example* examples;  // at least one, with extents that differ; `plugin check` says which one fails
  uint32_t example_count;
  void* user;
};

// --------------------------------------------------------------------------------------------------------------- kernels

// What the bits of a result depend on besides operands, attributes and instruction set.
enum {
  SSP_DETERMINISM_FIXED = 1,     // nothing
  SSP_DETERMINISM_THREADS,       // the number of threads: sums are cut by it
  SSP_DETERMINISM_KEYED_RANDOM,  // the random key of the call
  SSP_DETERMINISM_UNORDERED,     // the moment
};

// Type and extents of one operand, all numbers, row-major. An absent one has dtype SSP_UNDEFINED.
typedef struct ssp_operand {
  uint32_t size;
  int32_t dtype;
  uint32_t rank;
  const int64_t* dims;
  const void* constant;  // the contents where they are known when the kernel is made, else NULL
} ssp_operand;

// What `create` sees, and what it answers. [session], within create only. Of a kernel for "cuda" too: operands are described
// by their extents alone, `constant` is of the host.
typedef struct ssp_kernel_context ssp_kernel_context;
struct ssp_kernel_context {
  uint32_t size;
  uint32_t input_count, output_count;
  const ssp_operand* inputs;  // [call], as all that it points at
  const ssp_operand* outputs;
  int32_t threads;  // how many the kernel may use: those of `parallel`
  const ssp_attr* (*attr)(ssp_kernel_context*, const char* name);
  ssp_status (*fail)(ssp_kernel_context*, const char* message);  // returns SSP_ERROR
  // Answers. Scratch memory is part of the plan, and comes with every call, 64-byte aligned.
  uint64_t scratch_bytes;
  int32_t determinism;             // required
  const char* determinism_reason;  // required; [static]: "every row is computed by one thread in a fixed order"
  int32_t cannot_fail;             // 1: no contents of operands are an error to it
};

// The memory of one operand in one step, 64-byte aligned unless it is a part of another one.
typedef struct ssp_buffer {
  uint32_t size;
  int32_t dtype;
  void* data;  // inputs are only read; NULL for an absent operand
  uint64_t bytes;
} ssp_buffer;

// How a launch uses the memory of an argument. The emulator holds it to it.
enum {
  SSP_ACCESS_READ = 0,    // every element has a value
  SSP_ACCESS_WRITE,       // no element has a value before, every element has one behind
  SSP_ACCESS_PART,        // as WRITE, but other launches may write the rest
  SSP_ACCESS_READ_WRITE,  // every element has a value before and may get another
};

// What an argument of a launch is.
enum {
  SSP_ARGUMENT_INPUT = 1,  // memory of an input: a device address, or 0 for an absent one
  SSP_ARGUMENT_OUTPUT,     // memory of an output
  SSP_ARGUMENT_SCRATCH,    // a part of the scratch memory
  SSP_ARGUMENT_VALUE,      // the bytes of a number or struct
  SSP_ARGUMENT_KEY,        // (1.2) the random key of the node, an ssp_random_key that the host fills in
};

// (1.2) What a parameter for SSP_ARGUMENT_KEY holds; ssp::random_key of stepscope_device.h reads it. The argument needs a
// kernel that says SSP_DETERMINISM_KEYED_RANDOM, and neither value nor index.
typedef struct ssp_random_key {
  uint32_t size;
  uint32_t node;
  uint64_t seed, step;
  // Where memory of the device holds seed and step, two words, while a recorded step is played; NULL: those here hold. On
  // the emulator a handle.
  const void* now;
} ssp_random_key;

// (1.1) An argument of a launch.
typedef struct ssp_argument {
  uint32_t size;
  int32_t kind, access;    // access: of memory; an input is only read
  uint32_t index;          // which input or output
  uint32_t element_bytes;  // of memory: 1, 2, 4, 8 or 16
  uint64_t offset, count;  // of scratch memory: its first byte, a multiple of element_bytes, and how many elements
  const void* value;       // of a value: its bytes, as the parameter has them; [call]
  uint64_t value_bytes;
} ssp_argument;

// (1.1) What a device function sees of the emulator, where it is compiled for the host: stepscope_device.h calls it. [call]
typedef struct ssp_emulator ssp_emulator;

#define SSP_MOST_PARAMETERS 24
// (1.1) A function that the threads of a GPU run, in C linkage (`extern "C" __global__`); stepscope_device.h makes both
// forms from one source.
typedef struct ssp_device_function {
  uint32_t size;
  uint32_t parameter_count;
  const char* name;  // its symbol in the image
  // For the emulator: what one thread does. parameters[i] points at the bytes of parameter i; those of memory are a handle.
  void (*body)(const ssp_emulator*, void* const* parameters);  // [session]
  uint16_t parameter_bytes[SSP_MOST_PARAMETERS];               // 8 for memory
} ssp_device_function;

// (1.1) One launch: blocks and threads are in one dimension.
typedef struct ssp_launch {
  uint32_t size;
  uint32_t threads;                     // of a block, 1 to 1024
  uint64_t blocks;                      // 1 to 2147483647
  const ssp_device_function* function;  // one of those that the kernel lists
  const ssp_argument* arguments;
  uint32_t argument_count;
} ssp_launch;

// One run of a kernel. `run` is [session]; what it gives to `parallel` is [any].
//
// A kernel for "cuda" puts its work on the stream and returns. Buffers and scratch memory are addresses of the device then,
// but for the inputs of `host_inputs`; the host cannot follow them. seed, step and node are 0: what a step does is recorded
// once and played again, so that a launch takes SSP_ARGUMENT_KEY.
typedef struct ssp_kernel_call ssp_kernel_call;
struct ssp_kernel_call {
  uint32_t size;
  uint32_t input_count, output_count;
  const ssp_buffer* inputs;
  const ssp_buffer* outputs;
  void* scratch;
  uint64_t scratch_bytes;
  uint64_t seed, step;  // the random key: a number depends on seed, step, node and element alone
  uint32_t node;
  int32_t threads;
  // Calls body(user, k) for every k below `parts`, by up to `threads` threads, each a fixed range of k; returns when all
  // are done. SSP_ERROR when a body threw; return it.
  ssp_status (*parallel)(const ssp_kernel_call*, uint32_t parts, void (*body)(void* user, uint32_t part), void* user);
  ssp_status (*fail)(const ssp_kernel_call*, const char* message);  // returns SSP_ERROR
  // (1.1) Of a kernel for "cuda"; both NULL on the CPU. The stream is the CUstream (cudaStream_t) of the GPU's primary
  // context, for libraries and launches of its own; NULL on the emulator, which only knows `launch`.
  void* stream;
  ssp_status (*launch)(const ssp_kernel_call*, const ssp_launch*);  // SSP_ERROR: return it
};

// A kernel of an op of this plugin. Each op has one for "cpu"; it may have one for "cuda" (1.1), which `--device emulated`
// runs too. A GPU without code for it falls back to the CPU, between copies that the plan shows.
typedef struct ssp_kernel ssp_kernel;
struct ssp_kernel {
  uint32_t size;
  const char* domain;
  const char* op;
  const char* device;          // "cpu" or "cuda"
  const char* implementation;  // what does the work, for people: "gated rms norm, scalar loops"
  uint32_t dtypes;             // of the first operand that is there; float16 and bfloat16 are cast around float32
  // Makes what one node of these shapes needs; *instance is handed to run and destroy. SSP_UNSUPPORTED: not these operands.
  ssp_status (*create)(const ssp_kernel*, ssp_kernel_context*, void** instance);  // [session]
  ssp_status (*run)(void* instance, const ssp_kernel_call*);                      // [session]; allocates nothing
  void (*destroy)(void* instance);                                                // [session]; NULL: nothing to free
  void* user;
  // (1.1) For "cuda": what `launch` may name, and the GPU code of all of them. [static]
  const ssp_device_function* functions;
  const void* image;     // a fat binary or cubin, or PTX that ends with 0; NULL: runs on the emulator alone
  uint64_t image_bytes;  // with the 0 of PTX
  uint32_t function_count;
};

// ---------------------------------------------------------------------------------------------------------------- passes

// The graph as the pass found it, and its edits. What reads a replaced value reads the new one when the pass has returned;
// nodes that nobody reads any more go then. All functions: [session], within `run` only; strings [call].
typedef struct ssp_pass_context ssp_pass_context;
struct ssp_pass_context {
  uint32_t size;
  uint32_t node_count;
  ssp_node (*node)(ssp_pass_context*, uint32_t k);  // in an order in which producers stand before consumers
  const char* (*node_name)(ssp_pass_context*, ssp_node);
  const char* (*node_domain)(ssp_pass_context*, ssp_node);
  const char* (*node_op)(ssp_pass_context*, ssp_node);
  uint32_t (*input_count)(ssp_pass_context*, ssp_node);
  ssp_value (*input)(ssp_pass_context*, ssp_node, uint32_t i);  // 0: absent, or there are not so many
  uint32_t (*output_count)(ssp_pass_context*, ssp_node);
  ssp_value (*output)(ssp_pass_context*, ssp_node, uint32_t o);
  const ssp_attr* (*attr)(ssp_pass_context*, ssp_node, const char* name);  // NULL: the node does not have it
  int32_t (*same_branch)(ssp_pass_context*, ssp_node a, ssp_node b);       // 1: they run under the same conditions
  ssp_node (*producer)(ssp_pass_context*, ssp_value);                      // 0: an input, a parameter or a constant
  uint32_t (*reader_count)(ssp_pass_context*, ssp_value);
  ssp_node (*reader)(ssp_pass_context*, ssp_value, uint32_t k);
  int32_t (*is_kept)(ssp_pass_context*, ssp_value);  // 1: an output of the graph, or the next contents of a state
  const char* (*value_name)(ssp_pass_context*, ssp_value);
  int32_t (*dtype)(ssp_pass_context*, ssp_value);
  int32_t (*rank)(ssp_pass_context*, ssp_value);                                      // -1: not known
  int32_t (*extent)(ssp_pass_context*, ssp_value, uint32_t axis, int64_t* extent);    // 1 when it is a number
  int32_t (*constant)(ssp_pass_context*, ssp_value, double* out, uint32_t capacity);  // elements; -1: no such constant
  const char* (*option)(ssp_pass_context*, const char* name);                         // its value; NULL: not set
  // A node made from `from`, in its phase and under its conditions.
  ssp_status (*add_node)(ssp_pass_context*, ssp_node from, const char* domain, const char* op, const ssp_value* inputs,
                         uint32_t input_count, const ssp_attr* attrs, uint32_t attr_count, ssp_value* outputs,
                         uint32_t output_count);
  // `with` has the type and shape of `value`, whose name it bears from then on.
  ssp_status (*replace)(ssp_pass_context*, ssp_value value, ssp_value with);
  void (*match)(ssp_pass_context*);
  void (*miss)(ssp_pass_context*, ssp_node, const char* condition);  // it almost applied; the first condition that failed
  void (*note)(ssp_pass_context*, const char* text);
  ssp_status (*fail)(ssp_pass_context*, const char* message);  // returns SSP_ERROR: the build ends
};

// A pass; option pass.<name> switches it.
typedef struct ssp_pass ssp_pass;
struct ssp_pass {
  uint32_t size;
  const char* name;  // in snake_case
  const char* doc;
  // "pre-grad passes" (the forward graph, symbolic extents), "post-grad passes" (with the backward phase) or "fold" (all
  // extents are numbers). It runs behind the built-in ones of that phase.
  const char* phase;
  int32_t off;                                            // 1: a person switches it on
  ssp_status (*run)(const ssp_pass*, ssp_pass_context*);  // [session]
  void* user;
};

// An option of `stepscope options`, read by ssp_pass_context.option. Its name begins with the plugin's: "my_op.mode".
typedef struct ssp_option {
  uint32_t size;
  const char* name;
  const char* default_value;
  const char* doc;
  const char* const* choices;  // NULL: any text
  uint32_t choice_count;
} ssp_option;

// --------------------------------------------------------------------------------------------------------------- readers

// An array of one entry of a data file: what feeds the graph input of that name in one step.
typedef struct ssp_array {
  uint32_t size;
  int32_t dtype;
  const char* name;
  uint32_t rank;
  const int64_t* dims;
} ssp_array;

// What `open` sees, and what it answers; `read` has it for fail. [session]
typedef struct ssp_reader_context ssp_reader_context;
struct ssp_reader_context {
  uint32_t size;
  const char* path;                                              // of the file; [call]
  ssp_status (*fail)(ssp_reader_context*, const char* message);  // returns SSP_ERROR
  // Answers of `open`. Step k takes entry k, starting over when the steps outnumber the entries.
  uint64_t entry_count;
  const ssp_array* arrays;  // valid until `close`, as all that it points at
  uint32_t array_count;
};

// Reads a kind of data file, told by the end of its name: `--data FILE`.
typedef struct ssp_reader ssp_reader;
struct ssp_reader {
  uint32_t size;
  const char* name;                                                             // "tar of npy files"
  const char* suffix;                                                           // ".tar"; none of .npz, .safetensors, .pb
  ssp_status (*open)(const ssp_reader*, ssp_reader_context*, void** instance);  // [session]
  // Writes all elements of an array of an entry to `data`, which has `bytes` bytes.
  ssp_status (*read)(void* instance, ssp_reader_context*, uint64_t entry, uint32_t array, void* data,
                     uint64_t bytes);  // [session]
  void (*close)(void* instance);       // [session]; after an `open` that returned SSP_OK
  void* user;
};

// ----------------------------------------------------------------------------------------------------------------- entry

// What the host tells of itself. [static]
typedef struct ssp_host {
  uint32_t size;
  uint32_t abi_major, abi_minor;
  const char* version;  // of Stepscope
} ssp_host;

// The entry. Lists are arrays of pointers.
typedef struct ssp_plugin {
  uint32_t size;
  uint32_t abi_major, abi_minor;  // SSP_ABI_MAJOR, SSP_ABI_MINOR
  const char* name;               // in snake_case; unique among the plugins of a session
  const char* version;
  const char* doc;
  const ssp_op* const* ops;
  uint32_t op_count;
  const ssp_kernel* const* kernels;
  uint32_t kernel_count;
  const ssp_pass* const* passes;
  uint32_t pass_count;
  const ssp_option* const* options;
  uint32_t option_count;
  const ssp_reader* const* readers;
  uint32_t reader_count;
  ssp_status (*init)(const ssp_host*);  // [session], once after loading; NULL: nothing to do. SSP_ERROR: not loaded
  void (*deinit)(void);                 // [session], once before unloading, when init returned SSP_OK; NULL: nothing to do
} ssp_plugin;

// To be defined by the plugin:  const ssp_plugin stepscope_plugin_entry = {.size = sizeof(ssp_plugin), …};
extern SSP_EXPORT const ssp_plugin stepscope_plugin_entry;

// ----------------------------------------------------------------------------------------------------------- short forms

static inline ssp_attr ssp_int_attr(const char* name, int64_t value) {
  const ssp_attr attr = {(uint32_t)sizeof(ssp_attr), SSP_ATTR_INT, name, value, 0, NULL, NULL, NULL, 0};
  return attr;
}
static inline ssp_attr ssp_float_attr(const char* name, float value) {
  const ssp_attr attr = {(uint32_t)sizeof(ssp_attr), SSP_ATTR_FLOAT, name, 0, value, NULL, NULL, NULL, 0};
  return attr;
}
static inline ssp_attr ssp_ints_attr(const char* name, const int64_t* values, uint64_t count) {
  const ssp_attr attr = {(uint32_t)sizeof(ssp_attr), SSP_ATTR_INTS, name, 0, 0, NULL, values, NULL, count};
  return attr;
}
// An op of ONNX with one output and one or two inputs; 0 when it could not be emitted.
static inline ssp_value ssp_unary(ssp_gradient_context* g, const char* op, ssp_value a) {
  ssp_value y = 0;
  g->emit(g, "", op, &a, 1, NULL, 0, &y, 1);
  return y;
}
static inline ssp_value ssp_binary(ssp_gradient_context* g, const char* op, ssp_value a, ssp_value b) {
  const ssp_value inputs[2] = {a, b};
  ssp_value y = 0;
  g->emit(g, "", op, inputs, 2, NULL, 0, &y, 1);
  return y;
}

// (1.2) The random words of elements 4 * block … 4 * block + 3: Philox4x32-10 (Salmon et al., SC 2011), on the CPU and on a
// device the same, and those that Dropout of Stepscope draws for the same key.
SSP_ON_BOTH static inline void ssp_random_words(uint64_t seed, uint64_t step, uint32_t node, uint64_t block,
                                                uint32_t words[4]) {
  const uint64_t mixed = seed ^ (step * UINT64_C(0x9E3779B97F4A7C15));
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = node, c3 = (uint32_t)step;
  uint32_t k0 = (uint32_t)mixed, k1 = (uint32_t)(mixed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += UINT32_C(0x9E3779B9);
    k1 += UINT32_C(0xBB67AE85);
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}
// (1.2) Uniform in [0, 1), 24 bits of a word.
SSP_ON_BOTH static inline float ssp_uniform(uint32_t word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }
// (1.2) The uniform number of one element, by the key of a call on the CPU.
static inline float ssp_uniform_of(const ssp_kernel_call* call, uint64_t element) {
  uint32_t words[4];
  ssp_random_words(call->seed, call->step, call->node, element / 4, words);
  return ssp_uniform(words[element % 4]);
}

#ifdef __cplusplus
}
#endif

#endif  // STEPSCOPE_PLUGIN_H
