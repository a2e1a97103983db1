// Trains a model for some steps, goes through one of them instruction by instruction and back, and saves the state.
//
//   train MODEL.onnx DATA.npz STATE.safetensors
#include <stdio.h>
#include <stdlib.h>
#include <stepscope.h>

// Ends the program with the message of an error.
static void check(ss_error* error) {
  if (!error) return;
  fprintf(stderr, "error %d: %s\n", ss_error_code(error), ss_error_message(error));
  ss_error_free(error);
  exit(EXIT_FAILURE);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: train MODEL.onnx DATA.npz STATE.safetensors\n");
    return 2;
  }
  if (ss_api_version() >> 16 != SS_API_MAJOR) {
    fprintf(stderr, "the library is of another version: %s\n", ss_version());
    return EXIT_FAILURE;
  }
  const char* names[] = {"data", "optimizer", "lr"};
  const char* values[] = {argv[2], "adamw", "0.01"};
  ss_session* session = NULL;
  check(ss_open(argv[1], names, values, 3, &session));

  ss_step_record record = {.size = sizeof(record)};
  for (int i = 0; i < 20; ++i) {
    check(ss_step(session, &record));
    printf("step %lld: loss %.6f, %.3f ms\n", (long long)record.step, record.loss, (double)record.ns / 1e6);
  }

  ss_position position = {.size = sizeof(position)};
  const ss_instruction_info* const* instructions = NULL;
  size_t count = 0;
  check(ss_begin_step(session, &position));
  check(ss_instructions(session, &instructions, &count));
  for (int i = 0; i < 3; ++i) {
    check(ss_move(session, 1, &position));
    printf("ran %s (%s, %s)\n", instructions[i]->name, instructions[i]->op, instructions[i]->phase);
  }
  check(ss_move(session, -2, &position));
  printf("back at instruction %d of %zu\n", position.instruction, count);
  check(ss_finish_step(session, &record));
  printf("step %lld: loss %.6f\n", (long long)record.step, record.loss);

  check(ss_save(session, argv[3]));
  ss_close(session);
  return EXIT_SUCCESS;
}
