// Vectorised loops that move elements: gathers, scatters, windows, parts of an axis, resampling.
#include "tests/kernels/loop_cases.h"

namespace stepscope {
namespace {

auto gather(bool grad, bool added = false) {
  return [=](Random& random, int round, Attributes& attrs) {
    const Dims data = anyDims(random, round);
    const auto axis = static_cast<std::size_t>(setAxis(random, data, attrs, round % 3 == 1));
    const Dims indices = round % 2 ? Dims{1 + below(random, 20)} : Dims{2, 1 + below(random, 9)};
    Dims picked(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
    picked.insert(picked.end(), indices.begin(), indices.end());
    picked.insert(picked.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
    const Tensor index = round % 4 < 2 ? integers<std::int64_t>(random, indices, -data[axis], data[axis] - 1)
                                       : integers<std::int32_t>(random, indices, -data[axis], data[axis] - 1);
    if (added)
      return Operands{{floats(random, picked, -1, 1), index, Tensor::ints(data), floats(random, data, -1, 1)},
                      {{DType::kF32, data}}};
    if (grad) return Operands{{floats(random, picked, -1, 1), index}, {{DType::kF32, data}}};
    return Operands{{floats(random, data, -1, 1), index}, {{DType::kF32, picked}}};
  };
}

// [B, S, rest] and rows of B * S; padding adds rows that are named twice.
auto padding(bool pads) {
  return [=](Random& random, int round, Attributes&) {
    const Dims grid{1 + below(random, 4), 1 + below(random, 9)},
        rest = round % 3 == 0 ? Dims{} : Dims{1 + below(random, 40)};
    const Dims rows{1 + below(random, 20)};
    const auto with = [&rest](Dims dims) {
      dims.insert(dims.end(), rest.begin(), rest.end());
      return dims;
    };
    const std::int64_t places = grid[0] * grid[1];
    const Tensor index = round % 4 < 2 ? integers<std::int64_t>(random, rows, -places, places - 1)
                                       : integers<std::int32_t>(random, rows, -places, places - 1);
    if (pads) return Operands{{floats(random, with(rows), -1, 1), index, Tensor::ints(grid)}, {{DType::kF32, with(grid)}}};
    return Operands{{floats(random, with(grid), -1, 1), index}, {{DType::kF32, with(rows)}}};
  };
}

// Float32 rows added to a table in bfloat16: rounded once more, so within a unit of its last place.
Operands gatherIntoLow(Random& random, int round, Attributes&) {
  const Dims data{1 + below(random, round % 5 == 4 ? 3000 : 60), 1 + below(random, round % 3 == 2 ? 1200 : 40)};
  const Dims indices{2, 1 + below(random, 30)};
  const Tensor table = floats(random, data, -1, 1);
  return {{floats(random, {indices[0], indices[1], data[1]}, -1, 1),
           integers<std::int64_t>(random, indices, -data[0], data[0] - 1), Tensor::ints(data),
           convertTensor(table.view(), DType::kBF16)},
          {{DType::kBF16, data}}};
}

Operands expand(Random& random, int round, Attributes&) {
  const Dims y = anyDims(random, round), x = broadcastOf(random, y);
  return {{floats(random, x, -1, 1), Tensor::ints(y)}, {{DType::kF32, y}}};
}

auto tile(bool grad) {
  return [=](Random& random, int round, Attributes&) {
    const Dims one = anyDims(random, round);
    Dims all = one, repeats;
    for (std::int64_t& extent : all) {
      repeats.push_back(1 + below(random, 3));
      extent *= repeats.back();
    }
    return grad ? Operands{{floats(random, all, -1, 1), Tensor::ints(repeats)}, {{DType::kF32, one}}}
                : Operands{{floats(random, one, -1, 1), Tensor::ints(repeats)}, {{DType::kF32, all}}};
  };
}

// Windows of some axes, with steps that may be negative; `grad`: written into their place.
auto blocks(bool toSpace, const char* mode) {
  return [=](Random& random, int round, Attributes& attrs) {
    const std::int64_t block = 1 + round % 3, n = 1 + below(random, 3), c = 1 + below(random, 5), h = 1 + below(random, 9),
                       w = 1 + below(random, 40);
    attrs.set("blocksize", block);
    if (toSpace) attrs.set("mode", std::string(mode));
    const Dims deep{n, c * block * block, h, w}, wide{n, c, h * block, w * block};
    return Operands{{floats(random, toSpace ? deep : wide, -1, 1)}, {{DType::kF32, toSpace ? wide : deep}}};
  };
}

auto slice(bool grad) {
  return [=](Random& random, int round, Attributes&) {
    const Dims whole = anyDims(random, round);
    Dims part = whole;
    std::vector<std::int64_t> starts, ends, axes, steps;
    for (std::size_t a = 0; a < whole.size(); ++a) {
      if (random() % 2 == 0) continue;
      const std::int64_t length = 1 + below(random, whole[a]), step = round % 2 == 0 ? 1 : 1 + below(random, 3),
                         first = below(random, whole[a] - length + 1);
      const bool back = step > 1 && random() % 2 == 0;
      axes.push_back(static_cast<std::int64_t>(a));
      starts.push_back(back ? first + length - 1 : first);
      ends.push_back(back ? (first == 0 ? INT64_MIN + 1 : first - 1) : first + length);
      steps.push_back(back ? -step : step);
      part[a] = (length - 1) / step + 1;
    }
    Operands o{{floats(random, grad ? part : whole, -1, 1)}, {{DType::kF32, grad ? whole : part}}};
    if (grad) o.inputs.push_back(Tensor::ints(whole));
    for (const auto& list : {starts, ends, axes, steps}) o.inputs.push_back(Tensor::ints(list));
    return o;
  };
}

auto pad(bool grad, const char* mode) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("mode", std::string(mode));
    const Dims data = anyDims(random, round);
    Dims padded = data;
    std::vector<std::int64_t> pads(2 * data.size());
    for (std::size_t a = 0; a < data.size(); ++a)
      if (random() % 2 == 0)
        for (const std::size_t side : {a, a + data.size()}) {
          pads[side] = below(random, 7) - 2;  // negative: removed
          if (padded[a] + pads[side] < 1) pads[side] = 0;
          padded[a] += pads[side];
        }
    if (grad)
      return Operands{{floats(random, padded, -1, 1), Tensor::ints(data), Tensor::ints(pads)}, {{DType::kF32, data}}};
    Operands o{{floats(random, data, -1, 1), Tensor::ints(pads)}, {{DType::kF32, padded}}};
    if (round % 2) o.inputs.push_back(Tensor::scalar(DType::kF32, 1.5));
    return o;
  };
}

// Parts of one axis, some of them empty.
std::vector<Dims> partsOf(Random& random, const Dims& whole, std::int64_t axis) {
  std::vector<Dims> parts;
  for (std::int64_t left = whole[static_cast<std::size_t>(axis)]; left > 0 || parts.empty();) {
    Dims part = whole;
    part[static_cast<std::size_t>(axis)] = parts.size() == 4 ? left : below(random, left + 1);
    left -= part[static_cast<std::size_t>(axis)];
    parts.push_back(part);
  }
  return parts;
}

Operands concat(Random& random, int round, Attributes& attrs) {
  const Dims whole = anyDims(random, round);
  Operands o{{}, {{DType::kF32, whole}}};
  for (const Dims& part : partsOf(random, whole, setAxis(random, whole, attrs, round % 3 == 1)))
    o.inputs.push_back(floats(random, part, -1, 1));
  return o;
}

// Parts of larger tensors, in any order of their axes.
Operands join(Random& random, int round, Attributes& attrs) {
  Operands o = concat(random, round, attrs);
  const Dims& y = o.outputs[0].second;
  attrs.set("axis", *normalizeAxis(attrs.integer("axis", 0), static_cast<std::int64_t>(y.size())));
  std::erase_if(o.inputs, [](const Tensor& part) { return part.elements() == 0; });
  for (std::size_t i = 0; i < o.inputs.size(); ++i) {
    if (below(random, 3) == 0) continue;
    Dims view;
    o.inputs[i] = floats(random, wholeAround(random, o.inputs[i].dims(), true, view), -1, 1);
    attrs.set("view" + std::to_string(i), view);
  }
  return o;
}

Operands split(Random& random, int round, Attributes& attrs) {
  const Dims whole = anyDims(random, round);
  const std::int64_t axis = setAxis(random, whole, attrs, round % 3 == 1);
  std::vector<std::int64_t> sizes;
  Operands o{{floats(random, whole, -1, 1)}, {}};
  for (const Dims& part : partsOf(random, whole, axis)) {
    sizes.push_back(part[static_cast<std::size_t>(axis)]);
    o.outputs.push_back({DType::kF32, part});
  }
  o.inputs.push_back(Tensor::ints(sizes));
  return o;
}

auto gatherElements(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    const Dims data = anyDims(random, round);
    const auto axis = static_cast<std::size_t>(setAxis(random, data, attrs, round % 3 == 1));
    Dims picked = data;
    picked[axis] = 1 + below(random, 9);
    const Tensor indices = integers<std::int64_t>(random, picked, -data[axis], data[axis] - 1);
    if (grad) return Operands{{floats(random, picked, -1, 1), indices}, {{DType::kF32, data}}};
    return Operands{{floats(random, data, -1, 1), indices}, {{DType::kF32, picked}}};
  };
}

Operands oneHot(Random& random, int round, Attributes& attrs) {
  const Dims indices = round % 2 ? Dims{1 + below(random, 30)} : Dims{2, 1 + below(random, 20)};
  const std::int64_t depth = 2 + below(random, 700), axis = below(random, static_cast<std::int64_t>(indices.size()) + 1);
  attrs.set("axis", axis);
  Dims y = indices;
  y.insert(y.begin() + axis, depth);
  return {{integers<std::int64_t>(random, indices, -depth - 2, depth + 1),
           Tensor::scalar(DType::kI64, static_cast<double>(depth)), floats(random, {2}, -1, 1)},
          {{DType::kF32, y}}};
}

Operands trilu(Random& random, int round, Attributes& attrs) {
  Dims dims = anyDims(random, round);
  if (dims.size() == 1) dims.push_back(7);
  attrs.set("upper", std::int64_t{round % 2});
  Operands o{{floats(random, dims, -1, 1)}, {{DType::kF32, dims}}};
  if (round % 3) o.inputs.push_back(Tensor::scalar(DType::kI64, static_cast<double>(below(random, 200) - 100)));
  return o;
}

// Index tuples that name runs of `data`, after batch axes that both share; int32 now and then.
struct TupleShape {
  Dims data, picked;
  Tensor indices;
};
TupleShape tupleShape(Random& random, int round, std::int64_t batchDims) {
  TupleShape s;
  s.data = round % 8 == 7 ? Dims{3, 60, 300} : anyDims(random, round);
  while (static_cast<std::int64_t>(s.data.size()) <= batchDims) s.data.push_back(1 + below(random, 9));
  const auto skip = static_cast<std::size_t>(batchDims),
             length = 1 + static_cast<std::size_t>(below(random, static_cast<std::int64_t>(s.data.size() - skip)));
  Dims outer(s.data.begin(), s.data.begin() + batchDims);
  for (std::int64_t i = 0, more = 1 + below(random, 2); i < more; ++i)
    outer.push_back(1 + below(random, round % 8 == 7 ? 90 : 9));
  s.picked = outer;
  s.picked.insert(s.picked.end(), s.data.begin() + static_cast<std::ptrdiff_t>(skip + length), s.data.end());
  Dims shape = outer;
  shape.push_back(static_cast<std::int64_t>(length));
  s.indices = Tensor(round % 4 < 2 ? DType::kI64 : DType::kI32, shape);
  for (std::int64_t i = 0; i < s.indices.elements(); ++i) {
    const std::int64_t extent = s.data[skip + static_cast<std::size_t>(i) % length];
    storeElement(s.indices.view(), i, static_cast<double>(below(random, 2 * extent) - extent));
  }
  return s;
}

auto gatherNd(bool grad, DType dtype = DType::kF32) {
  return [=](Random& random, int round, Attributes& attrs) {
    const std::int64_t batchDims = round % 3 == 2 ? 1 : 0;
    attrs.set("batch_dims", batchDims);
    const TupleShape s = tupleShape(random, round, batchDims);
    if (grad) return Operands{{floats(random, s.picked, -1, 1), s.indices, Tensor::ints(s.data)}, {{DType::kF32, s.data}}};
    return Operands{{valuesOf(random, dtype, s.data, false), s.indices}, {{dtype, s.picked}}};
  };
}

auto scatterNd(const char* reduction, DType dtype = DType::kF32) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("reduction", std::string(reduction));
    const TupleShape s = tupleShape(random, round, 0);
    return Operands{{valuesOf(random, dtype, s.data, false), s.indices, valuesOf(random, dtype, s.picked, round % 3 == 0)},
                    {{dtype, s.data}}};
  };
}

auto scatterElements(const char* reduction, DType dtype = DType::kF32) {
  return [=](Random& random, int round, Attributes& attrs) {
    attrs.set("reduction", std::string(reduction));
    const Dims data = anyDims(random, round);
    const auto axis = static_cast<std::size_t>(setAxis(random, data, attrs, round % 3 == 1));
    Dims picked = data;
    picked[axis] = 1 + below(random, 9);
    const Tensor indices = integers<std::int64_t>(random, picked, -data[axis], data[axis] - 1);
    return Operands{{valuesOf(random, dtype, data, false), indices, valuesOf(random, dtype, picked, round % 3 == 0)},
                    {{dtype, data}}};
  };
}

// The last axis or the last two, larger and smaller, in every mode.
auto resize(bool grad) {
  return [=](Random& random, int round, Attributes& attrs) {
    Dims x{1 + below(random, 3), 1 + below(random, round % 8 == 7 ? 40 : 5), 1 + below(random, 20), 1 + below(random, 20)},
        y = x;
    if (round % 6 == 5) x.erase(x.begin());
    y = x;
    if (round % 5 != 4) y[y.size() - 2] = round % 3 == 0 ? 2 * x[x.size() - 2] : 1 + below(random, 40);
    y.back() = round % 3 == 0 ? 2 * x.back() : 1 + below(random, 40);
    const char *modes[] = {"nearest", "linear", "cubic"},
               *places[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
    attrs.set("mode", std::string(modes[round % 3 == 0 ? round / 3 % 2 : below(random, 3)]));
    attrs.set("coordinate_transformation_mode", std::string(places[below(random, 4)]));
    if (round % 7 == 6) attrs.set("antialias", std::int64_t{attrs.text("mode", "") != "nearest"});
    const Tensor sizes = Tensor::ints(y);
    if (grad) return Operands{{floats(random, y, -1, 1), Tensor::ints(x), Tensor(), Tensor(), sizes}, {{DType::kF32, x}}};
    return Operands{{floats(random, x, -1, 1), Tensor(), Tensor(), sizes}, {{DType::kF32, y}}};
  };
}

}  // namespace

std::vector<LoopCase> movementLoops() {
  std::vector<LoopCase> cases = {
      {"", "Concat", concat, 0, -1, ""},
      {"stepscope", "Join", join, 0, -1, ""},
      {"", "Expand", expand, 0, -1, ""},
      {"", "Gather", gather(false), 0, -1, ""},
      {"", "GatherElements", gatherElements(false), 0, -1, ""},
      {"", "GatherND", gatherNd(false), 0, -1, ""},
      {"", "GatherND", gatherNd(false, DType::kI64), 0, -1, "Ints"},
      {"", "GatherND", gatherNd(false, DType::kBool), 0, -1, "Bools"},
      {"", "OneHot", oneHot, 0, -1, ""},
      {"", "Resize", resize(false), 2e-6, -1, ""},
      {"", "ScatterElements", scatterElements("none", DType::kI64), 0, 0, "Ints"},
      {"", "ScatterND", scatterNd("none", DType::kI64), 0, 0, "Ints"},
      {"", "DepthToSpace", blocks(true, "CRD"), 0, -1, "Crd"},
      {"", "DepthToSpace", blocks(true, "DCR"), 0, -1, "Dcr"},
      {"", "Slice", slice(false), 0, -1, ""},
      {"", "SpaceToDepth", blocks(false, ""), 0, -1, ""},
      {"", "Split", split, 0, -1, ""},
      {"", "Tile", tile(false), 0, -1, ""},
      {"", "Trilu", trilu, 0, 0, ""},
      {"com.microsoft", "FlattenAndUnpad", padding(false), 0, -1, ""},
      {"com.microsoft", "PadAndUnflatten", padding(true), 1e-6, -1, ""},
      {"com.microsoft", "ShrunkenGather", gather(false), 0, -1, ""},
      {"stepscope", "GatherElementsGrad", gatherElements(true), 1e-6, -1, ""},
      {"stepscope", "GatherGrad", gather(true), 1e-6, -1, ""},
      {"stepscope", "GatherGrad", gather(true, true), 1e-6, 3, "Added"},
      {"stepscope", "GatherGrad", gatherIntoLow, 8e-3, 3, "AddedToLow"},
      {"stepscope", "GatherNDGrad", gatherNd(true), 1e-6, -1, ""},
      {"stepscope", "ResizeGrad", resize(true), 1e-5, -1, ""},
      {"stepscope", "SliceGrad", slice(true), 0, -1, ""},
      {"stepscope", "TileGrad", tile(true), 5e-6, -1, ""},
  };
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    cases.push_back({"", "Pad", pad(false, mode), 0, -1, mode});
    cases.push_back({"stepscope", "PadGrad", pad(true, mode), 2e-6, -1, mode});
  }
  for (const char* how : {"none", "add", "mul", "min", "max"}) {
    cases.push_back({"", "ScatterElements", scatterElements(how), 1e-6, 0, std::string("By_") + how});
    cases.push_back({"", "ScatterND", scatterNd(how), 1e-6, 0, std::string("By_") + how});
  }
  return cases;
}

}  // namespace stepscope
