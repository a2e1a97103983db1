// SPDX-License-Identifier: Apache-2.0
//
// libstepscope: the training engine of Stepscope for other programs, in C11 (or C++).
//
//   cc -std=c11 my_program.c -I FOLDER_OF_THIS_FILE -L FOLDER_OF_THE_LIBRARY -lstepscope
//
// A session is one model with its options, its plan and its state. The usual way:
//
//   ss_open     reads a model; ss_set changes options (those of `stepscope options`)
//   ss_feed     gives the arrays of the coming step; without it the option `data` decides, or synthetic data
//   ss_build    makes the step; the first ss_step or ss_begin_step does it where it was not called
//   ss_step     one micro step at full speed; or ss_begin_step, ss_move … ss_finish_step, instruction by instruction, both
//               ways
//   ss_value, ss_edit, ss_state, ss_set_state, ss_gradient   look at values and state, and change them
//   ss_save     writes the state, with what the program keeps beside it; ss_load goes on from there
//   ss_close    gives everything back
//
// Rules
//   * A function that can fail returns NULL or an error, which the caller frees with ss_error_free. Nothing is thrown over
//     the border, and nothing of a session is lost by an error: step, plan and state stay as they were.
//   * Every struct begins with its size. The caller writes `.size = sizeof(ss_tensor)` before the call, in structs that the
//     library fills too; the library writes no further, so that a program works with later libraries of the same
//     SS_API_MAJOR. Lists are arrays of pointers for the same reason.
//   * Strings are UTF-8, end with 0, and are never NULL unless that is said.
//   * What a function gives out (strings, lists, dims, contents) belongs to the session.
//
// Tags
//   [session]  valid until ss_close                       [next]  valid until the next call with this session
//   All functions of one session are called by one thread at a time, but for ss_cancel, which any thread may call.
#ifndef STEPSCOPE_H
#define STEPSCOPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SS_API_MAJOR 1u  // of this header: functions and fields are only added; see ss_api_version
#define SS_API_MINOR 5u

#if defined(_WIN32)
#define SS_API
#else
#define SS_API __attribute__((visibility("default"), warn_unused_result))
#endif
#if defined(_WIN32)
#define SS_API_VOID
#else
#define SS_API_VOID __attribute__((visibility("default")))
#endif

typedef struct ss_error ss_error;
typedef struct ss_session ss_session;
typedef struct ss_call ss_call;  // one forward pass of the model as a function

// Why something failed.
enum {
  SS_INVALID_ARGUMENT = 1,  // a value the caller gave is outside what is allowed
  SS_NOT_FOUND = 2,         // a named thing does not exist, or is not there now
  SS_UNSUPPORTED = 3,       // well formed, but not available in this build
  SS_LIMIT_EXCEEDED = 4,
  SS_CORRUPT = 5,  // bytes that do not parse
  SS_OUT_OF_MEMORY = 6,
  SS_IO = 7,
  SS_CANCELLED = 8,
  SS_INTERNAL = 9,  // a bug of ours
};

// Element types, by their ONNX numbers.
enum {
  SS_UNDEFINED = 0,
  SS_FLOAT32 = 1,
  SS_UINT8 = 2,
  SS_INT8 = 3,
  SS_UINT16 = 4,
  SS_INT16 = 5,
  SS_INT32 = 6,
  SS_INT64 = 7,
  SS_STRING = 8,  // has no contents here
  SS_BOOL = 9,    // one byte, 0 or 1
  SS_FLOAT16 = 10,
  SS_FLOAT64 = 11,
  SS_UINT32 = 12,
  SS_UINT64 = 13,
  SS_BFLOAT16 = 16,
};

// Contiguous and row-major.
typedef struct ss_tensor {
  uint32_t size;
  int32_t dtype;
  const int64_t* dims;  // `rank` of them
  size_t rank;
  const void* data;
  size_t bytes;  // of data
} ss_tensor;

// An input or a parameter.
typedef struct ss_value_info {
  uint32_t size;
  int32_t dtype;
  const char* name;
  const int64_t* dims;  // -1 where the extent is no number before there is a batch; NULL with rank SIZE_MAX: unknown
  size_t rank;
  const char* text;  // "float32[batch, 8]"
  int32_t trained;   // 1: a parameter that the optimizer changes; known after the build
  int64_t elements;  // of it; -1 where an extent is no number
} ss_value_info;

typedef struct ss_option_info {
  uint32_t size;
  uint32_t choice_count;
  const char* name;
  const char* value;
  const char* default_value;
  const char* set_by;  // "default", "api", "environment" …
  const char* doc;
  const char* kind;            // "switch", "choice", "bytes", "count", "number", "text"
  const char* const* choices;  // allowed values; none: any of its kind
} ss_option_info;

typedef struct ss_instruction_info {
  uint32_t size;
  int32_t index;
  const char* name;   // of the node
  const char* op;     // "MatMul", "com.microsoft.FusedMatMul"
  const char* phase;  // "forward", "backward", "recompute", "optimizer"
  double flops;
  int64_t bytes_read, bytes_written;
} ss_instruction_info;

// One micro step that was committed.
typedef struct ss_step_record {
  uint32_t size;
  int32_t has_loss, has_gradient_norm;
  int32_t updated;  // the optimizer ran
  int32_t skipped;  // it did not, because gradients were not finite (loss scaling)
  int64_t step;     // from 0
  double loss, learning_rate;
  double gradient_norm;  // global, before clipping
  double loss_scale;     // 0: none
  int64_t ns;
  int64_t planned_bytes, peak_bytes;
} ss_step_record;

// Where a step stands.
typedef struct ss_position {
  uint32_t size;
  int32_t in_step;      // 0: between two steps
  int32_t instruction;  // the one that would run next
  int32_t has_loss;
  int64_t step;
  double loss;
  const char* stopped_by;  // [next] "step", "breakpoint 3: NaN in 'x'", "end of step", "cancelled"
} ss_position;

// Loss and metrics of some batches. `labels` and `correct` count for a cross entropy: labels that count, and those whose
// class has the largest score; -1 for other losses.
typedef struct ss_evaluation {
  uint32_t size;
  int32_t synthetic;  // the data was
  int64_t batches;
  double loss;  // of a mean over labels weighted by them, else the mean over the batches
  int64_t labels, correct;
  int64_t ns;  // of computing
} ss_evaluation;

// What a program keeps beside the state. Only the field of its kind is looked at.
enum { SS_PROPERTY_INT64 = 1, SS_PROPERTY_DOUBLE = 2, SS_PROPERTY_STRING = 3, SS_PROPERTY_TENSOR = 4 };
typedef struct ss_property {
  uint32_t size;
  int32_t kind;
  const char* name;
  int64_t integer;
  double number;
  const char* text;
  const ss_tensor* tensor;
} ss_property;

// --- library. The version of the API as major × 65536 + minor; refuse another major than SS_API_MAJOR.
SS_API uint32_t ss_api_version(void);
SS_API const char* ss_version(void);  // of the program, with the commit; for people

// --- errors. NULL counts as success: code 0, message "".
SS_API int32_t ss_error_code(const ss_error* error);
SS_API const char* ss_error_message(
    const ss_error* error);  // valid until it is freed; names what was found and what was expected
SS_API_VOID void ss_error_free(ss_error* error);

// --- session. `model`: an .onnx file. `names` and `values`: `count` options to begin with; some (missing-weights,
// loop.max_iterations, plugin) have to be known when the file is read.
SS_API ss_error* ss_open(const char* model, const char* const* names, const char* const* values, size_t count,
                         ss_session** session);
SS_API_VOID void ss_close(ss_session* session);                                                     // NULL is allowed
SS_API ss_error* ss_inputs(ss_session* session, const ss_value_info* const** list, size_t* count);  // [session]

// --- options. After a build they wait for ss_apply, or for the next step to begin. ss_apply builds beside the plan that
// runs: a begun step is replayed to its place under the new plan. On an error options, plan and place stay as they were.
SS_API ss_error* ss_set(ss_session* session, const char* name, const char* value);
SS_API ss_error* ss_apply(ss_session* session);
SS_API ss_error* ss_options(ss_session* session, const ss_option_info* const** list, size_t* count);  // [next]

// --- data. Arrays of the coming micro step, copied; each feeds the input of its name, with its extents. Numbers are
// converted where none is lost. A batch of other extents than before makes another plan. Once fed, a session takes no batch
// from elsewhere: a step without one is an error.
SS_API ss_error* ss_feed(ss_session* session, const char* const* names, const ss_tensor* const* tensors, size_t count);

// --- building. ss_build_forward: without loss, gradient and optimizer; keeps the values `fetch` for ss_value.
SS_API ss_error* ss_keep_gradients(ss_session* session, int32_t on);  // before the build: for ss_gradient
SS_API ss_error* ss_keep_values(ss_session* session, const char* const* names, size_t count);  // likewise, for ss_value
SS_API ss_error* ss_build(ss_session* session);
SS_API ss_error* ss_build_forward(ss_session* session, const char* const* fetch, size_t count);
SS_API ss_error* ss_instructions(ss_session* session, const ss_instruction_info* const** list, size_t* count);  // [next]

// --- running
SS_API ss_error* ss_step(ss_session* session, ss_step_record* record);  // a begun step is finished instead
SS_API_VOID void ss_cancel(ss_session* session);                        // ends what runs, or runs next, with SS_CANCELLED
SS_API ss_error* ss_begin_step(ss_session* session, ss_position* position);
SS_API ss_error* ss_move(ss_session* session, int32_t instructions, ss_position* position);  // negative: back
SS_API ss_error* ss_run_to(ss_session* session, int32_t instruction, ss_position* position);
SS_API ss_error* ss_run_to_break(ss_session* session, int32_t backwards, ss_position* position);
SS_API ss_error* ss_move_phase(ss_session* session, int32_t backwards, ss_position* position);
SS_API ss_error* ss_finish_step(ss_session* session, ss_step_record* record);
SS_API ss_error* ss_abandon_step(ss_session* session);  // the state is that of before
SS_API ss_error* ss_rewind(ss_session* session, int64_t step);
SS_API ss_error* ss_where(ss_session* session, ss_position* position);
// Replaces all breakpoints. "nan", "inf", "op Softmax", "node NAME", "phase backward", "instruction 12",
// "VALUE FIELD OP NUMBER" such as "loss max > 10".
SS_API ss_error* ss_break_on(ss_session* session, const char* const* conditions, size_t count);

// --- values of the step, by name in the graph that runs. [next]
SS_API ss_error* ss_value(ss_session* session, const char* name, ss_tensor* tensor);
SS_API ss_error* ss_edit(ss_session* session, const char* name, const ss_tensor* contents);  // of its type and extents

// --- state. Parameters are those of the model, trained or not.
SS_API ss_error* ss_parameters(ss_session* session, const ss_value_info* const** list, size_t* count);  // [next]
SS_API ss_error* ss_state(ss_session* session, const char* name, ss_tensor* tensor);          // [next] optimizer state too
SS_API ss_error* ss_gradient(ss_session* session, const char* parameter, ss_tensor* tensor);  // [next] of the newest step
// Between steps: other contents, of the same extents; floats of another type are converted.
SS_API ss_error* ss_set_state(ss_session* session, const char* name, const ss_tensor* contents);
// Between steps: a parameter or state lives in memory of the caller from now on, of its type and extents, valid until
// ss_close. What is written there counts from the next step on, and every step leaves its results there. `take` 1: its
// contents become those of that memory; 0: they are copied into it. A parameter may be placed before the build.
SS_API ss_error* ss_place(ss_session* session, const char* name, const ss_tensor* memory, int32_t take);
// The same for all parameters at once, one after the other in the order of ss_parameters, trained ones alone or all; after
// the build. `memory`: float32[n], n by ss_flat_size. Error SS_UNSUPPORTED: a parameter that is not float32.
SS_API ss_error* ss_flat_size(ss_session* session, int32_t trained_only, int64_t* elements);
SS_API ss_error* ss_place_flat(ss_session* session, int32_t trained_only, const ss_tensor* memory, int32_t take);
// What the coming update takes for parameters without a rate of their own: the option lr by the schedule, from the first
// update on. Setting replaces the option, at once and without a build; the schedule goes on from where it is.
SS_API ss_error* ss_learning_rate(ss_session* session, double* rate);
SS_API ss_error* ss_set_learning_rate(ss_session* session, double base);
// Loss and metrics as the model is used (Dropout hands on, BatchNormalization takes its running statistics); nothing of the
// session changes. `tensors`: `batches` times `count`, batch after batch, for the inputs `names`. `count` 0: of the first
// `batches` entries of the data that the options say, 0 for all.
SS_API ss_error* ss_evaluate(ss_session* session, const char* const* names, const ss_tensor* const* tensors, size_t count,
                             int64_t batches, ss_evaluation* evaluation);
// Properties are written by ss_save, copied; those of a file that is loaded replace those of their names.
SS_API ss_error* ss_set_property(ss_session* session, const ss_property* property);
SS_API ss_error* ss_drop_property(ss_session* session, const char* name);
SS_API ss_error* ss_properties(ss_session* session, const ss_property* const** list, size_t* count);  // [next] by name
SS_API ss_error* ss_save(ss_session* session, const char* path);  // safetensors: parameters, optimizer state, counters
SS_API ss_error* ss_load(ss_session* session, const char* path, int32_t resume);  // resume: optimizer state and counters too

// --- the model as a function, for a program that computes the loss itself. Options, parameters (placed ones too) and
// statistics are the session's; several calls may be open at once, each with activations of its own. A signature of inputs
// is a plan. Calls are freed before ss_close. Tensors that are given are borrowed until the function returns.
//
// `outputs`: floats of the model whose gradients ss_backward is given; none: there is no backward pass. `inputs`: floats
// whose gradients are wanted besides those of trained parameters; names of parameters among them are the trained ones.
SS_API ss_error* ss_differentiate(ss_session* session, const char* const* outputs, size_t output_count,
                                  const char* const* inputs, size_t input_count);
// Writes running statistics and what else of the state the forward pass changes. `seed`: of Dropout, in both passes.
SS_API ss_error* ss_forward(ss_session* session, const char* const* names, const ss_tensor* const* tensors, size_t count,
                            uint64_t seed, ss_call** call);
SS_API ss_error* ss_call_output(ss_call* call, const char* name, ss_tensor* tensor);  // until ss_call_free
// Once: activations are given up on the way. Gradients that are not given are zero.
SS_API ss_error* ss_backward(ss_call* call, const char* const* names, const ss_tensor* const* tensors, size_t count);
// Until ss_call_free. `present` 0: no output with a gradient depends on it; SS_PRESENT_ALONE: its memory is no other
// gradient's, output's or parameter's, and may be written to until then.
enum { SS_PRESENT = 1, SS_PRESENT_ALONE = 2 };
SS_API ss_error* ss_call_gradient(ss_call* call, const char* name, ss_tensor* tensor, int32_t* present);
SS_API_VOID void ss_call_free(ss_call* call);  // NULL is allowed

// --- a window at the loop of this program (`stepscope open --attach PID`): it sees the passes of ss_forward and ss_backward
// and may hold them, before an instruction and at the end of a pass, where the calling thread then waits. One window at a
// time, of this user; nothing waits without one. Calls into attached sessions run one at a time while there is one. A child
// process after fork() is not attached.
//
// `path`: of a Unix socket; NULL: PID.sock in $XDG_RUNTIME_DIR/stepscope or /tmp/stepscope-UID. `script`: what the window
// calls the program; NULL: nothing. One place for a process: the same one again changes nothing.
SS_API ss_error* ss_attach_open(const char* path, const char* script);
// A window may look at it, from its next ss_forward on. Error SS_NOT_FOUND: nothing is open.
SS_API ss_error* ss_attach(ss_session* session);
SS_API ss_error* ss_attach_path(const char** path);  // until ss_attach_close; NULL where nothing is open
// Between two passes: the program is about to do something of its own, which the window shows in these words ("train.py:31:
// optimizer.step()"). The calling thread waits there while the window holds the loop and steps; else it goes on at once.
SS_API ss_error* ss_attach_place(const char* what);
SS_API ss_error* ss_attach_steps(
    int32_t* steps);                     // whether ss_attach_place() may wait: places that cost something are left out else
SS_API_VOID void ss_attach_close(void);  // the window is told, and what it holds goes on; also when a program ends

#ifdef __cplusplus
}
#endif
#endif
