// Kernels of a device that memory bounds, beside a copy in the same run, and what a launch costs: one by one, and as a
// graph.
//
//   gpu_bench [--device cuda] [--bytes N] [--rounds N]
//
// Bytes are those of operands and results, each counted once; a copy reads and writes. Times are those that the device
// recorded (kernels/activity.h), the median of the rounds; of an operand of N bytes (256 MiB; emulated: 64 KiB, whose times
// say nothing of a GPU). Exit code 1: the device is not there or a kernel failed, with the reason.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/activity.h"
#include "kernels/device_graph.h"
#include "kernels/kernel_registry.h"

namespace stepscope {
namespace {

struct Case {
  std::string name;
  KernelSpec spec;
};

OperandSpec operand(Dims dims, DType dtype = DType::kF32) {
  return {dtype, std::move(dims), false, {}, Layout::kPlain, Space::kDevice};
}

std::vector<Case> cases(std::int64_t bytes) {
  const std::int64_t n = std::max<std::int64_t>(1024, bytes / 4), width = 1024, rows = n / width;
  const Dims flat{rows * width}, matrix{rows, width};
  const auto f = [](const Dims& dims) { return operand(dims); };
  std::vector<Case> all{
      {"Relu", {"", "Relu", {}, {f(flat)}, {f(flat)}}},
      {"Add", {"", "Add", {}, {f(flat), f(flat)}, {f(flat)}}},
      {"Add a row", {"", "Add", {}, {f(matrix), f({width})}, {f(matrix)}}},
      {"Gelu", {"", "Gelu", {}, {f(flat)}, {f(flat)}}},
      {"GeluGrad", {"stepscope", "GeluGrad", {}, {f(flat), f(flat)}, {f(flat)}}},
      {"Cast to bfloat16", {"", "Cast", {{"to", std::int64_t{16}}}, {f(flat)}, {operand(flat, DType::kBF16)}}},
      {"Transpose", {"", "Transpose", {{"perm", Dims{1, 0}}}, {f(matrix)}, {f({width, rows})}}},
      {"Concat", {"", "Concat", {{"axis", std::int64_t{1}}}, {f(matrix), f(matrix)}, {f({rows, 2 * width})}}},
      {"Softmax", {"", "Softmax", {}, {f(matrix)}, {f(matrix)}}},
      {"LayerNormalization", {"", "LayerNormalization", {}, {f(matrix), f({width}), f({width})}, {f(matrix)}}},
      {"ReduceSum of rows", {"", "ReduceSum", {}, {f(matrix), operand({1}, DType::kI64)}, {f({rows, 1})}}},
      {"SquareSum", {"stepscope", "SquareSum", {}, {f(flat)}, {f({})}}},
      {"AdamUpdate",
       {"stepscope",
        "AdamUpdate",
        {},
        {f(flat), f(flat), f(flat), f(flat), f({}), operand({}, DType::kI64)},
        {f(flat), f(flat), f(flat)}}},
  };
  // The axes of a reduction are read on the host.
  for (Case& one : all)
    if (one.spec.op == "ReduceSum") {
      const std::int64_t axis[] = {1};
      one.spec.inputs[1].constant = Tensor::ints(axis);
      one.spec.inputs[1].space = Space::kHost;
    }
  return all;
}

// The sum of the records' times of one call, or nothing where records are missing.
std::optional<std::int64_t> busyNs(ActivitySource& source) {
  const Activity activity = source.takeActivity();
  if (activity.lost > 0) return std::nullopt;
  std::int64_t sum = 0;
  for (const ActivityRecord& record : activity.records) sum += isWork(record.kind) ? record.end - record.begin : 0;
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

template <typename Put>
Result<double> medianNs(Device& device, int rounds, Put&& put) {
  ActivitySource* const source = activityOf(device);
  if (!source) return unsupported(fmt::format("device '{}' does not tell times", device.facts().name));
  std::vector<std::int64_t> times;
  for (int round = 0; round <= rounds; ++round) {
    source->startActivity(ActivityRung::kActivity);
    activityId = 1;
    const Status done = put();
    activityId = 0;
    SS_TRY(done);
    SS_TRY(device.synchronise());
    const auto ns = busyNs(*source);
    if (round > 0 && ns) times.push_back(*ns);  // the first one warms up
  }
  if (times.empty()) return unsupported("no records of what ran");
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return static_cast<double>(times[times.size() / 2]);
}

// Operands of a case in memory of the device; zero.
struct Operands {
  std::vector<Tensor> held;
  std::vector<TensorView> inputs, outputs;
  Tensor room;
  std::int64_t bytes = 0;

  static Result<Operands> of(Device& device, const KernelSpec& spec, const Kernel& kernel) {
    Operands made;
    for (const OperandSpec& input : spec.inputs) {
      if (input.space == Space::kHost) {
        made.inputs.push_back(input.constant.view());
        continue;
      }
      SS_ASSIGN(Tensor there, makeTensor(device, input.dtype, input.dims));
      made.inputs.push_back(there.view());
      made.bytes += static_cast<std::int64_t>(there.bytes());
      made.held.push_back(std::move(there));
    }
    for (const OperandSpec& output : spec.outputs) {
      SS_ASSIGN(Tensor there, makeTensor(device, output.dtype, output.dims));
      made.outputs.push_back(there.view());
      made.bytes += static_cast<std::int64_t>(there.bytes());
      made.held.push_back(std::move(there));
    }
    SS_ASSIGN(made.room, makeTensor(device, DType::kU8, {static_cast<std::int64_t>(kernel.workspaceBytes())}));
    return made;
  }
  Status put(Device& device, Kernel& kernel) {
    return device.launch(kernel, {inputs, outputs, {static_cast<std::byte*>(room.data()), room.bytes()}, {1, 1, 1}, 0, {}});
  }
};

double rate(double bytes, double ns) { return ns > 0 ? bytes / ns : 0; }  // GB/s

Status kernelRates(Device& device, std::int64_t bytes, int rounds) {
  fmt::print("{:<22} {:>14} {:>12} {:>10} {:>8}\n", "kernel", "bytes", "us", "GB/s", "of copy");
  SS_ASSIGN(const DeviceMemory from, device.allocate(bytes));
  SS_ASSIGN(const DeviceMemory to, device.allocate(bytes));
  SS_ASSIGN(const double copyNs, medianNs(device, rounds, [&] { return device.copy(to.data(), from.data(), bytes, 0); }));
  const double copy = rate(2.0 * static_cast<double>(bytes), copyNs);
  fmt::print("{:<22} {:>14} {:>12.2f} {:>10.2f} {:>8}\n", "copy", 2 * bytes, copyNs / 1e3, copy, "");
  for (const Case& one : cases(bytes)) {
    auto kernel = builtInKernels().make(device.facts().kernels, one.spec);
    if (!kernel) return tl::make_unexpected(std::move(kernel).error());
    SS_ASSIGN(Operands operands, Operands::of(device, one.spec, **kernel));
    SS_ASSIGN(const double ns, medianNs(device, rounds, [&] { return operands.put(device, **kernel); }));
    const double own = rate(static_cast<double>(operands.bytes), ns);
    fmt::print("{:<22} {:>14} {:>12.2f} {:>10.2f} {:>8.3f}\n", one.name, operands.bytes, ns / 1e3, own,
               copy > 0 ? own / copy : 0);
  }
  return {};
}

// Time of the host from the first of many small kernels until all have run, for each of them.
Status launchCost(Device& device, int rounds) {
  constexpr int kLaunches = 200;
  const KernelSpec spec{"", "Relu", {}, {operand({1024})}, {operand({1024})}};
  auto kernel = builtInKernels().make(device.facts().kernels, spec);
  if (!kernel) return tl::make_unexpected(std::move(kernel).error());
  SS_ASSIGN(Operands operands, Operands::of(device, spec, **kernel));
  const auto all = [&]() -> Status {
    for (int i = 0; i < kLaunches; ++i) SS_TRY(operands.put(device, **kernel));
    return {};
  };
  const auto timed = [&](const char* name, const std::function<Status()>& put) -> Status {
    std::vector<std::int64_t> times;
    for (int round = 0; round <= rounds; ++round) {
      const std::int64_t begin = hostClock();
      SS_TRY(put());
      SS_TRY(device.synchronise());
      if (round > 0) times.push_back(hostClock() - begin);
    }
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    fmt::print("{:<44} {:>10.3f} us\n", name, static_cast<double>(times[times.size() / 2]) / 1e3 / kLaunches);
    return {};
  };
  SS_TRY(timed("a small kernel, launched one by one", all));
  GraphSource* const graphs = graphsOf(device);
  if (!graphs) return {};
  SS_TRY(graphs->beginGraph(nullptr));
  const Status put = all();
  auto graph = graphs->endGraph();
  SS_TRY(put);
  if (!graph) return tl::make_unexpected(std::move(graph).error());
  return timed("the same as a graph", [&] { return graphs->replay(**graph); });
}

bool numberOf(const char* text, std::int64_t& into) {
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, into);
  return error == std::errc() && at == end && into > 0;
}

int run(int count, char** arguments) {
  std::string name = "cuda";
  std::int64_t bytes = 0, rounds = 20;
  for (int i = 1; i < count; ++i) {
    const std::string option = arguments[i];
    const char* const value = i + 1 < count ? arguments[++i] : "";
    if (option == "--device" && *value) {
      name = value;
    } else if ((option != "--bytes" || !numberOf(value, bytes)) && (option != "--rounds" || !numberOf(value, rounds))) {
      fmt::print(stderr, "error: gpu_bench '{} {}'; expected --device NAME, --bytes N or --rounds N\n", option, value);
      return 2;
    }
  }
  const auto device = findDevice(name);
  if (!device) {
    fmt::print(stderr, "error: {}\n", device.error().message);
    return 1;
  }
  if (bytes == 0) bytes = name.starts_with("emulated") ? 64 << 10 : 256 << 20;
  Status done = kernelRates(**device, bytes, static_cast<int>(rounds));
  if (const ActivitySource* const source = activityOf(**device); done && source)
    fmt::print("times by: {}{}\n", source->rung().name, source->rung().reason.empty() ? "" : ", " + source->rung().reason);
  if (done) done = launchCost(**device, static_cast<int>(rounds));
  if (done) return 0;
  fmt::print(stderr, "error: {}\n", done.error().message);
  return 1;
}

}  // namespace
}  // namespace stepscope

int main(int count, char** arguments) { return stepscope::run(count, arguments); }
