// Feeds a model with arrays of this program and changes an option on the way: y = 2 x is learned by whatever model has an
// input "x", labels and a loss of its own.
//
//   feed MODEL.onnx     a model as tests/app/api makes it: inputs x and y, float32[batch, 4], output loss
#include <stepscope.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

void check(ss_error* error) {
  if (!error) return;
  std::fprintf(stderr, "error %d: %s\n", ss_error_code(error), ss_error_message(error));
  ss_error_free(error);
  std::exit(EXIT_FAILURE);
}

struct Close {
  void operator()(ss_session* session) const { ss_close(session); }
};

ss_tensor tensorOf(const std::vector<float>& numbers, const std::vector<int64_t>& dims) {
  return {sizeof(ss_tensor), SS_FLOAT32, dims.data(), dims.size(), numbers.data(), numbers.size() * sizeof(float)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: feed MODEL.onnx\n"), 2;
  const char* const names[] = {"optimizer", "lr"};
  const char* const values[] = {"sgd", "0.1"};
  ss_session* opened = nullptr;
  check(ss_open(argv[1], names, values, 2, &opened));
  const std::unique_ptr<ss_session, Close> session(opened);

  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    // Every fifth batch is larger: that makes a second plan, which is kept.
    const int64_t rows = step % 5 == 4 ? 16 : 8;
    const std::vector<int64_t> dims{rows, 4};
    std::vector<float> x(static_cast<std::size_t>(rows) * 4), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::sin(static_cast<float>(i + 7 * static_cast<std::size_t>(step)));
      y[i] = 2 * x[i];
    }
    const ss_tensor inputs[] = {tensorOf(x, dims), tensorOf(y, dims)};
    const ss_tensor* const tensors[] = {&inputs[0], &inputs[1]};
    const char* const inputNames[] = {"x", "y"};
    check(ss_feed(session.get(), inputNames, tensors, 2));
    if (step == 30) check(ss_set(session.get(), "pass.fuse_epilogue", "off"));
    ss_step_record record{};
    record.size = sizeof(record);
    check(ss_step(session.get(), &record));
    if (step == 0) first = record.loss;
    last = record.loss;
  }
  std::printf("loss %.6f -> %.6f\n", first, last);
  return last < first / 10 ? EXIT_SUCCESS : EXIT_FAILURE;
}
