// stepscope.PointwiseSum: chains whose results are added up in double as they are computed. A result is cut into parts by
// the extents alone; each part is added up by one block (along trailing axes) or one thread (along leading ones), then the
// parts in their order. Chains are interpreted where the device has no compiler, else compiled when they first run.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/chain.h"
#include "kernels/pointwise_sum_shape.h"

namespace stepscope::cuda {
inline namespace pointwise_sum_cu {

// The chain's extents seen as [rows, columns].
struct SumPlan {
  std::int64_t rows = 1, columns = 1, parts = 1;
  double count = 1;  // elements of a mean
};

// Element `at` of the chain.
SS_DEVICE float chainAt(const ChainInputs<kMostInputs>& in, const Chain& chain, std::int64_t at) {
  float values[kMostInputs + kMostSteps];
  for (int i = 0; i < kMostInputs && i < chain.inputs; ++i)
    if (in.forms[i] != InputForm::kWalked) values[i] = inputAt(in, i, in.forms[i] == InputForm::kWhole ? at : 0);
  if (in.walked) {
    std::int64_t offsets[kMostInputs];
    in.walk.offsets(at, offsets);
    for (int i = 0; i < kMostInputs && i < chain.inputs; ++i)
      if (in.forms[i] == InputForm::kWalked) values[i] = inputAt(in, i, offsets[i]);
  }
  return runSteps(chain, values);
}

// sums: [parts, rows]. One block per row and part.
SS_GLOBAL void addColumns(ChainInputs<kMostInputs> in, Chain chain, Global<double> sums, SumPlan plan) {
  const std::int64_t row = gpu::blockIndex() % plan.rows, part = gpu::blockIndex() / plan.rows;
  const std::int64_t begin = plan.columns * part / plan.parts, end = plan.columns * (part + 1) / plan.parts;
  double sum = 0;
  for (std::int64_t column = begin + gpu::threadIndex(); column < end; column += gpu::blockSize())
    sum += static_cast<double>(chainAt(in, chain, row * plan.columns + column));
  sum = joinBlock<Plus>(sum);
  if (gpu::threadIndex() == 0) sums[gpu::blockIndex()] = sum;
}

// sums: [parts, columns]. One thread per column and part.
SS_GLOBAL void addRows(ChainInputs<kMostInputs> in, Chain chain, Global<double> sums, SumPlan plan) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= plan.columns * plan.parts) return;
  const std::int64_t column = i % plan.columns, part = i / plan.columns;
  double sum = 0;
  for (std::int64_t row = plan.rows * part / plan.parts; row < plan.rows * (part + 1) / plan.parts; ++row)
    sum += static_cast<double>(chainAt(in, chain, row * plan.columns + column));
  sums[i] = sum;
}

// sums: [parts, results] → y: [results]; Y: float, or the bits of a low type.
template <typename Y>
SS_GLOBAL void addParts(Global<const double> sums, Global<Y> y, SumPlan plan, ChainType type, std::int64_t results) {
  const std::int64_t i = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (i >= results) return;
  double sum = sums[i];
  for (std::int64_t part = 1; part < plan.parts; ++part) sum += static_cast<double>(sums[part * results + i]);
  const auto value = static_cast<float>(sum / plan.count);
  if constexpr (sizeof(Y) == sizeof(float))
    y[i] = value;
  else
    y[i] = roundedBits(value, type);
}

template <typename Y>
Status runParts(Launcher& gpu, const SumPlan& plan, ChainType type, std::int64_t results, std::int64_t sums) {
  return gpu.run("sum of steps", gpu::function<addParts<Y>>, blocksFor(results), kThreads, gpu.readRoom<double>(0, sums),
                 gpu.out<Y>(0), plan, type, results);
}

}  // namespace pointwise_sum_cu

Result<std::unique_ptr<Kernel>> makePointwiseSum(const KernelSpec& spec) {
  const auto result = spec.outputs.size() == 1 ? chainTypeOf(spec.outputs[0]) : std::nullopt;
  if (!result || result == ChainType::kBool) return notTaken(spec, "a result other than a float");
  std::vector<std::size_t> inputs;
  std::vector<ChainType> types;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const auto type = chainTypeOf(spec.inputs[i]);
    if (!type) return notTaken(spec, "operands other than floats and bool");
    inputs.push_back(i);
    types.push_back(*type);
  }
  Chain chain;
  chain.result = *result;
  if (inputs.empty() || inputs.size() > kMostPointwiseInputs || !appendProgram(chain, spec.attrs, masksOf(types)))
    return notTaken(spec, "no chain of steps");
  chain.inputs = static_cast<int>(inputs.size());
  SS_ASSIGN(const PointwiseSumShape shape, pointwiseSumShape(spec));
  if (!shape.ofLeading && !shape.ofTrailing) return notTaken(spec, "sums along axes between those that stay");
  SS_ASSIGN(const ChainInputs<kMostInputs> in, inputsBeside<kMostInputs>(spec, shape.dims, inputs, types));
  const std::int64_t total = elementCount(shape.dims), results = elementCount(spec.outputs[0].dims);
  SumPlan plan;
  plan.rows = shape.ofTrailing ? results : total / results;
  plan.columns = total / plan.rows;
  if (shape.mean) plan.count = static_cast<double>(total / results);
  // Enough parts to fill a GPU where results are few.
  if (shape.ofTrailing && results < 64) plan.parts = std::clamp<std::int64_t>(plan.columns / 4096, 1, 256);
  if (!shape.ofTrailing && results < 16384) plan.parts = std::clamp<std::int64_t>(plan.rows / 64, 1, 64);
  const std::int64_t sums = results * plan.parts;
  const auto function = shape.ofTrailing ? gpu::function<addColumns> : gpu::function<addRows>;
  const std::int64_t blocks = shape.ofTrailing ? sums : blocksFor(sums);
  const int threads = shape.ofTrailing ? threadsForRow(plan.columns / plan.parts) : kThreads;
  ChainForm form = formOf(chain, in, total);
  form.sum = ChainSum{shape.ofTrailing, threads, plan.rows, plan.columns, plan.parts};
  const auto source = std::make_shared<const std::string>(chainSource(form));
  return makeLaunched(
      "sum of " + std::to_string(chain.count) + " steps, or compiled by NVRTC",
      [=, inputs = std::move(inputs)](Launcher& gpu) -> Status {
        SS_ASSIGN(const bool done, runGenerated(*source, "sum of steps: parts, compiled", gpu.call(), inputs,
                                                gpu.call().workspace.data(), blocks, threads));
        if (!done)
          SS_TRY(gpu.run("sum of steps: parts", function, blocks, threads, inputsOf(gpu, in, inputs), chain,
                         gpu.room<double>(0, sums), plan));
        return isLow(chain.result) ? runParts<std::uint16_t>(gpu, plan, chain.result, results, sums)
                                   : runParts<float>(gpu, plan, chain.result, results, sums);
      },
      static_cast<std::size_t>(sums) * sizeof(double));
}

}  // namespace stepscope::cuda
