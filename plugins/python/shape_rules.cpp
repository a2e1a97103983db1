// SPDX-License-Identifier: Apache-2.0
#include "plugins/python/shape_rules.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include "plugins/python/host_process.h"

namespace stepscope::python {
namespace {

using Extents = std::vector<std::int64_t>;

// "[2, 5]"
std::string listed(const Extents& extents) {
  std::string text = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(extents[i]);
  return text + "]";
}

std::string listed(const std::vector<Extents>& shapes) {
  std::string text;
  for (const Extents& shape : shapes) text += (text.empty() ? "" : ", ") + listed(shape);
  return text;
}

// The shapes that `ranks` and `extents` describe; false where the extents are too few.
bool readShapes(const ssp_attr* ranks, const ssp_attr* extents, std::vector<Extents>& shapes) {
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < ranks->count; ++i) {
    if (ranks->ints[i] < 0 || next + static_cast<std::uint64_t>(ranks->ints[i]) > extents->count) return false;
    shapes.emplace_back(extents->ints + next, extents->ints + next + ranks->ints[i]);
    next += static_cast<std::uint64_t>(ranks->ints[i]);
  }
  return true;
}

// Shapes of the inputs; false unless each extent is a number.
bool inputShapes(ssp_shape_context* c, std::vector<Extents>& shapes) {
  for (std::uint32_t i = 0; i < c->input_count; ++i) {
    if (c->input_rank(c, i) < 0) return false;
    Extents shape(static_cast<std::size_t>(c->input_rank(c, i)));
    for (std::uint32_t axis = 0; axis < shape.size(); ++axis)
      if (c->dim_value(c, c->input_dim(c, i, axis), &shape[axis]) == 0) return false;
    shapes.push_back(shape);
  }
  return true;
}

// Asks Python for the shapes of the results. Empty when all is well, else what is wrong.
std::string askShapes(const ssp_op* op, ssp_shape_context* c, const std::vector<Extents>& inputs,
                      std::vector<Extents>& results) {
  std::string request = std::string("{\"kind\":\"") + (std::strcmp(op->name, "Function") == 0 ? "function" : "aten") + "\"";
  for (const char* name : {"call", "file", "module"}) {
    const ssp_attr* attr = c->attr(c, name);
    request += std::string(",\"") + name + "\":" + quoted(attr != nullptr && attr->s != nullptr ? attr->s : "");
  }
  request += std::string(",\"arguments\":") + c->attr(c, "arguments")->s + ",\"inputs\":[";
  for (std::uint32_t i = 0; i < c->input_count; ++i)
    request += (i == 0 ? "[" : ",[") + std::to_string(c->input_dtype(c, i)) + "," + listed(inputs[i]) + "]";
  std::string answer;
  if (std::string wrong = HostProcess::instance().shapes(request + "]}", answer); !wrong.empty()) return wrong;
  std::istringstream numbers(answer);  // of each result its rank and extents
  for (std::size_t rank = 0; numbers >> rank;) {
    Extents shape(rank);
    for (std::int64_t& extent : shape) numbers >> extent;
    results.push_back(shape);
  }
  return "";
}

}  // namespace

std::string quoted(const char* text) {
  std::string json = "\"";
  for (const char* c = text; *c != '\0'; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(*c)));
      json += code;
      continue;
    }
    if (*c == '"' || *c == '\\') json += '\\';
    json += *c;
  }
  return json + "\"";
}

ssp_status inferResults(const ssp_op* op, ssp_shape_context* c) {
  const ssp_attr *types = c->attr(c, "types"), *ranks = c->attr(c, "ranks");
  std::vector<Extents> captured, results, found;
  if (types->count != c->output_count || ranks->count != c->output_count)
    return c->fail(c, "attributes types and ranks: their number; expected one of each per result");
  if (!readShapes(ranks, c->attr(c, "shapes"), results))
    return c->fail(c, "attribute shapes: too few extents for the ranks");
  if (!readShapes(c->attr(c, "input_ranks"), c->attr(c, "input_shapes"), captured) ||
      (!captured.empty() && captured.size() != c->input_count))
    return c->fail(c, "attributes input_ranks and input_shapes: expected a rank per input and an extent per axis");
  const bool known = captured.empty() || inputShapes(c, found);  // a file may not say what its inputs were
  if (known && !captured.empty() && found != captured) {
    const std::vector<Extents> expected = std::exchange(results, {});
    std::string wrong = askShapes(op, c, found, results);
    if (wrong.empty() && results.size() < expected.size()) wrong = "it has " + std::to_string(results.size()) + " results";
    for (std::size_t o = 0; wrong.empty() && o < expected.size(); ++o)
      if (results[o].size() != expected[o].size()) wrong = "result " + std::to_string(o) + " is " + listed(results[o]);
    if (!wrong.empty()) {
      const std::string message = std::string(c->attr(c, "call")->s) + ": its inputs are " + listed(found) +
                                  "; expected those of the capture, " + listed(captured) + " with results " +
                                  listed(expected) + ", or one that runs on meta tensors: " + wrong;
      return c->fail(c, message.c_str());
    }
  }
  for (std::uint32_t o = 0; o < c->output_count; ++o) {
    std::vector<ssp_dim> dims;
    const auto rank = static_cast<std::uint32_t>(ranks->ints[o]);
    for (std::uint32_t axis = 0; axis < rank; ++axis)
      dims.push_back(known ? c->number(c, results[o][axis]) : c->fresh(c, o, axis));
    if (c->has_output(c, o))
      c->set_output(c, o, static_cast<std::int32_t>(types->ints[o]), static_cast<std::int32_t>(rank), dims.data());
  }
  return SSP_OK;
}

ssp_status inferGradient(const ssp_op*, ssp_shape_context* c) {
  const ssp_attr *wanted = c->attr(c, "wanted"), *arriving = c->attr(c, "arriving");
  if (wanted->count != c->output_count) return c->fail(c, "attribute wanted: its number; expected one input per result");
  for (std::uint32_t o = 0; o < c->output_count; ++o) {
    const std::int64_t input = wanted->ints[o] + static_cast<std::int64_t>(arriving->count);
    if (wanted->ints[o] < 0 || input >= static_cast<std::int64_t>(c->input_count))
      return c->fail(c, "attribute wanted: no such input");
    c->set_output_like(c, o, static_cast<std::uint32_t>(input));
  }
  return SSP_OK;
}

}  // namespace stepscope::python
