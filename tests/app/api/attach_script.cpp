// A program that trains with loss and optimizer of its own and offers its loop to a window:
//
//   attach_script MODEL SOCKET NAN_STEP
//
// MODEL: loss = mean((x · w − y)²), x and y float32[batch, 4]. It prints "step N loss L" after each step, as far as its
// output is read, until its standard input ends. From step NAN_STEP on (-1: never) x holds a NaN and nothing is updated.
#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "app/api/stepscope.h"

namespace {

void must(ss_error* error) {
  if (!error) return;
  std::fprintf(stderr, "attach_script: %s\n", ss_error_message(error));
  std::exit(1);
}

bool ready(int fd, short event) {
  pollfd one{fd, event, 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const bool places = argc == 5;  // it says what it does between two passes
  const long nanStep = std::strtol(argv[3], nullptr, 10);
  const char *names[] = {"threads"}, *values[] = {"1"}, *loss[] = {"loss"}, *inputs[] = {"x", "y"};
  ss_session* session = nullptr;
  must(ss_open(argv[1], names, values, 1, &session));
  float w[16], x[8], y[8], one = 1;
  for (int i = 0; i < 16; ++i) w[i] = i % 5 == 0 ? 0.5F : 0.0F;
  const int64_t square[] = {4, 4}, batch[] = {2, 4};
  const ss_tensor memory = {sizeof(ss_tensor), SS_FLOAT32, square, 2, w, sizeof w};
  const ss_tensor seed = {sizeof(ss_tensor), SS_FLOAT32, nullptr, 0, &one, sizeof one};
  must(ss_place(session, "w", &memory, 1));
  must(ss_differentiate(session, loss, 1, nullptr, 0));
  must(ss_attach_open(argv[2], "attach_script"));
  must(ss_attach(session));
  for (long step = 0; !ready(0, POLLIN); ++step) {
    for (int i = 0; i < 8; ++i) {
      x[i] = static_cast<float>((i * 7 + step) % 5) - 2;
      y[i] = 3 * x[i];
    }
    const bool nan = nanStep >= 0 && step >= nanStep;
    if (nan) x[3] = NAN;
    const ss_tensor given[] = {{sizeof(ss_tensor), SS_FLOAT32, batch, 2, x, sizeof x},
                               {sizeof(ss_tensor), SS_FLOAT32, batch, 2, y, sizeof y}};
    const ss_tensor* arrays[] = {&given[0], &given[1]};
    const ss_tensor* gradients[] = {&seed};
    ss_call* call = nullptr;
    must(ss_forward(session, inputs, arrays, 2, 0, &call));
    ss_tensor result{}, gradient{};
    result.size = gradient.size = sizeof(ss_tensor);
    must(ss_call_output(call, "loss", &result));
    const double reached = *static_cast<const float*>(result.data);
    if (places) must(ss_attach_place("attach_script: looks at its loss"));
    must(ss_backward(call, loss, gradients, 1));
    int32_t present = 0;
    must(ss_call_gradient(call, "w", &gradient, &present));
    if (places) must(ss_attach_place("attach_script: w -= 0.01 dw"));
    for (int i = 0; i < 16; ++i)
      if (!nan) w[i] -= 0.01F * static_cast<const float*>(gradient.data)[i];
    ss_call_free(call);
    if (ready(1, POLLOUT)) std::printf("step %ld loss %.9g\n", step, reached);
    std::fflush(stdout);
    usleep(1000);
  }
  ss_attach_close();
  ss_close(session);
  std::puts("done");
  return 0;
}
