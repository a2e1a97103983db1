// Two copies of a model train apart and meet after every round: all parameters of a copy are one piece of memory of this
// program, so averaging them is one loop and copies nothing in or out. Ends with a checkpoint that a third copy goes on
// from.
//
//   average MODEL.onnx DATA.npz STATE.safetensors
#include <stdio.h>
#include <stdlib.h>
#include <stepscope.h>
#include <string.h>

static void check(ss_error* error) {
  if (!error) return;
  fprintf(stderr, "error %d: %s\n", ss_error_code(error), ss_error_message(error));
  ss_error_free(error);
  exit(EXIT_FAILURE);
}

static ss_session* opened(const char* model, const char* data, const char* seed) {
  const char* names[] = {"data", "optimizer", "lr", "lr-schedule", "warmup-steps", "total-steps", "seed"};
  const char* values[] = {data, "adamw", "0.02", "cosine", "4", "16", seed};
  ss_session* session = NULL;
  check(ss_open(model, names, values, 7, &session));
  check(ss_build(session));
  return session;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: average MODEL.onnx DATA.npz STATE.safetensors\n");
    return 2;
  }
  ss_session* copies[2] = {opened(argv[1], argv[2], "0"), opened(argv[1], argv[2], "1")};
  int64_t size = 0;
  check(ss_flat_size(copies[0], 1, &size));
  float* parameters[2];
  for (int c = 0; c < 2; ++c) {
    parameters[c] = calloc((size_t)size, sizeof(float));
    const ss_tensor memory = {sizeof(ss_tensor), SS_FLOAT32, &size, 1, parameters[c], (size_t)size * sizeof(float)};
    check(ss_place_flat(copies[c], 1, &memory, 0));
  }

  ss_step_record record = {.size = sizeof(record)};
  for (int round = 0; round < 4; ++round) {
    for (int c = 0; c < 2; ++c)
      for (int step = 0; step < 2 + c; ++step) check(ss_step(copies[c], &record));
    for (int64_t i = 0; i < size; ++i) parameters[0][i] = parameters[1][i] = (parameters[0][i] + parameters[1][i]) / 2;
    ss_evaluation evaluation = {.size = sizeof(evaluation)};
    check(ss_evaluate(copies[0], NULL, NULL, 0, 0, &evaluation));
    printf("round %d: loss %.6f, %lld of %lld right\n", round, evaluation.loss, (long long)evaluation.correct,
           (long long)evaluation.labels);
  }

  double rate = 0;
  check(ss_learning_rate(copies[0], &rate));
  const ss_property kept = {.size = sizeof(kept), .kind = SS_PROPERTY_DOUBLE, .name = "next rate", .number = rate};
  check(ss_set_property(copies[0], &kept));
  check(ss_save(copies[0], argv[3]));

  ss_session* third = opened(argv[1], argv[2], "0");
  check(ss_load(third, argv[3], 1));
  const ss_property* const* properties = NULL;
  size_t count = 0;
  check(ss_properties(third, &properties, &count));
  const double expected = count == 1 ? properties[0]->number : -1;
  check(ss_step(third, &record));
  printf("goes on at step %lld with rate %.9f\n", (long long)record.step, record.learning_rate);
  for (int c = 0; c < 2; ++c) {
    ss_close(copies[c]);
    free(parameters[c]);
  }
  ss_close(third);
  return record.learning_rate == expected ? EXIT_SUCCESS : EXIT_FAILURE;
}
