// Concat and Split: runs of memory, one per outer index and part.
#include <cstring>
#include <vector>

#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/cpu/loops/strided.h"

namespace stepscope::cpu {
namespace {

// One part of the axis: `run` bytes of every outer index, `offset` bytes from the beginning of the whole's run.
struct Part {
  std::size_t operand = 0, run = 0, offset = 0;
};
struct Runs {
  std::int64_t outer = 1;
  std::size_t whole = 0;  // bytes of the whole's run
  std::vector<Part> parts;
};

// Errors (kUnsupported): parts that do not fill the axis.
Result<Runs> layoutOf(const KernelSpec& spec, const OperandSpec& whole, const std::vector<OperandSpec>& parts) {
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(whole.dims.size()));
  if (!axis || whole.dtype == DType::kString) return notTaken(spec, "an axis out of range, or text");
  const auto a = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(whole.dims);
  const std::size_t inner = static_cast<std::size_t>(elementCount(all.subspan(a + 1))) * dtypeSize(whole.dtype);
  Runs layout{elementCount(all.first(a)), inner * static_cast<std::size_t>(whole.dims[a]), {}};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].dtype != whole.dtype || parts[i].dynamic || parts[i].dims.size() != whole.dims.size())
      return notTaken(spec, "parts of other types or ranks");
    for (std::size_t j = 0; j < whole.dims.size(); ++j)
      if (j != a && parts[i].dims[j] != whole.dims[j]) return notTaken(spec, "parts that do not fit");
    const std::size_t run = inner * static_cast<std::size_t>(parts[i].dims[a]);
    if (run > 0) layout.parts.push_back({i, run, offset});
    offset += run;
  }
  if (offset != layout.whole) return notTaken(spec, "parts that do not fill the axis");
  return layout;
}

// The same axis of operands that all lie in nChw16c. Errors (kUnsupported): others.
Result<KernelSpec> lanesLastAlong(const KernelSpec& spec, const std::vector<OperandSpec>& inputs,
                                  const std::vector<OperandSpec>& outputs) {
  KernelSpec seen = spec;
  seen.inputs = inputs;
  seen.outputs = outputs;
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(spec.outputs[0].dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  seen.attrs.set("axis", *axis);
  for (auto* operands : {&seen.inputs, &seen.outputs})
    for (OperandSpec& operand : *operands) {
      if (!isBlocked(operand)) return notTaken(spec, "parts in several layouts");
      operand = lanesLast(operand);
    }
  return seen;
}

// copy(part, outer) for all, split over the outer indices and, where there are few, over the parts.
template <typename Copy>
void forEachRun(const Runs& layout, int threads, Copy&& copy) {
  const auto parts = static_cast<std::int64_t>(layout.parts.size());
  parallelRows(layout.outer * parts, static_cast<std::int64_t>(layout.whole / 4) / std::max<std::int64_t>(parts, 1) + 1,
               threads, [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   copy(layout.parts[static_cast<std::size_t>(i % parts)], static_cast<std::size_t>(i / parts));
               });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeConcat(const KernelSpec& spec) {
  if (spec.outputs.size() != 1 || spec.outputs[0].dynamic) return notTaken(spec, "other than one result of known extents");
  if (anyBlocked(spec)) {
    SS_ASSIGN(const KernelSpec seen, lanesLastAlong(spec, spec.inputs, spec.outputs));
    return makeConcat(seen);
  }
  SS_ASSIGN(Runs layout, layoutOf(spec, spec.outputs[0], spec.inputs));
  return makeBodyKernel("row copies",
                        [layout = std::move(layout), threads = spec.threads](const KernelCall& call) -> Status {
                          forEachRun(layout, threads, [&](const Part& part, std::size_t outer) {
                            std::memcpy(resultBytes(call, 0) + outer * layout.whole + part.offset,
                                        bytesOf(call, part.operand) + outer * part.run, part.run);
                          });
                          return {};
                        });
}

// The sizes are an input or equal shares; the outputs' extents were inferred from them, so they are not read again unless
// they are values that were not known then.
Result<std::unique_ptr<Kernel>> makeSplit(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.inputs[0].dynamic) return notTaken(spec, "extents that depend on data");
  if (spec.inputPresent(1) && !spec.inputs[1].constant.valid()) return notTaken(spec, "sizes that are not constant");
  if (anyBlocked(spec)) {
    // The results' extents say what the sizes would.
    SS_ASSIGN(const KernelSpec seen, lanesLastAlong(spec, {spec.inputs[0]}, spec.outputs));
    return makeSplit(seen);
  }
  SS_ASSIGN(Runs layout, layoutOf(spec, spec.inputs[0], spec.outputs));
  if (spec.inputPresent(1)) {
    const auto sizes = intElements(spec.inputs[1].constant.view());
    const auto axis = static_cast<std::size_t>(
        *normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(spec.inputs[0].dims.size())));
    if (sizes.size() != spec.outputs.size()) return notTaken(spec, "sizes that do not name every part");
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != spec.outputs[i].dims[axis]) return notTaken(spec, "sizes that differ from the results");
  } else if (spec.attrs.integer("num_outputs", static_cast<std::int64_t>(spec.outputs.size())) !=
             static_cast<std::int64_t>(spec.outputs.size())) {
    return notTaken(spec, "results that are left out");
  }
  return makeBodyKernel("row copies",
                        [layout = std::move(layout), threads = spec.threads](const KernelCall& call) -> Status {
                          forEachRun(layout, threads, [&](const Part& part, std::size_t outer) {
                            std::memcpy(resultBytes(call, part.operand) + outer * part.run,
                                        bytesOf(call, 0) + outer * layout.whole + part.offset, part.run);
                          });
                          return {};
                        });
}

}  // namespace stepscope::cpu
