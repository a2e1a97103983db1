#include "tests/storage/sample_run.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace stepscope::storage::testing {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* op;
  const char* category;
  std::int64_t ns;     // of one execution
  std::int64_t bytes;  // of its output
};

constexpr std::array<Kind, 10> kBlock = {{{"LayerNormalization", "normalization", 31'000, 196'608},
                                          {"MatMul", "matmul", 410'000, 589'824},
                                          {"Transpose", "movement", 9'000, 589'824},
                                          {"MatMul", "matmul", 88'000, 786'432},
                                          {"Softmax", "activation", 57'000, 786'432},
                                          {"MatMul", "matmul", 90'000, 196'608},
                                          {"Add", "elementwise", 12'900, 196'608},
                                          {"LayerNormalization", "normalization", 32'000, 196'608},
                                          {"MatMul", "matmul", 508'000, 786'432},
                                          {"Gelu", "activation", 44'700, 786'432}}};

// A small generator: the same numbers on every machine.
double noise(std::uint64_t seed) {
  seed ^= seed >> 33;
  seed *= 0xff51afd7ed558ccdULL;
  seed ^= seed >> 33;
  seed *= 0xc4ceb9fe1a85ec53ULL;
  seed ^= seed >> 33;
  return static_cast<double>(seed >> 11) / 9007199254740992.0;
}

std::string moduleOf(int block, std::size_t part) {
  return fmt::format("transformer.h.{}.{}", block, part < 7 ? "attn" : "mlp");
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "stepscope_test_XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

RunInfo sampleRunInfo() {
  RunInfo info;
  info.modelPath = "/home/somebody/models/gpt_small.onnx";
  info.threads = 2;
  info.optimizer = "adamw";
  info.lossName = "loss";
  info.model.set_file_bytes(27'548'672);
  info.model.set_producer("pytorch 2.4.0");
  (*info.model.mutable_opsets())[""] = 17;
  info.model.set_node_count(412);
  info.model.set_parameter_count(6'885'120);
  auto* input = info.model.add_inputs();
  input->set_name("input_ids");
  input->set_dtype("int64");
  input->add_dims("batch");
  input->add_dims("sequence");
  input->set_role("token ids below 8192");
  auto* parameter = info.model.add_parameters();
  parameter->set_name("wte.weight");
  parameter->set_trained(true);
  info.machine.set_cpu("Example CPU 3.1 GHz");
  info.machine.set_cores(2);
  for (const char* feature : {"avx2", "fma", "avx512f", "avx512_vnni"}) info.machine.add_cpu_features(feature);
  info.machine.set_memory_bytes(std::int64_t{16} << 30);
  info.machine.set_gpu_note("no CUDA device");
  info.machine.set_version("0.1.0");
  info.machine.add_libraries("oneDNN 2.6.3");
  const auto option = [&](const char* name, const char* value, const char* standard, const char* by, const char* effect) {
    snapshot::Option o;
    o.set_name(name);
    o.set_value(value);
    o.set_default_value(standard);
    o.set_set_by(by);
    o.set_effect(effect);
    o.set_doc("what the option does");
    info.options.push_back(o);
  };
  option("steps", "60", "1", "command line", "");
  option("data", "/home/somebody/data/text.npz", "", "command line", "60 entries");
  option("fuse_gelu", "on", "on", "default", "removed 12 nodes, saved 3.2 MiB");
  option("lr", "0.0006", "0.001", "project", "");
  option("inplace", "on", "on", "default", "saved 18.1 MiB");
  return info;
}

snapshot::Graph sampleGraph(const SampleSize& size) {
  snapshot::Graph graph;
  graph.set_phase("optimizer");
  graph.set_name("gpt_small");
  int id = 0;
  const int forwardNodes = size.blocks * static_cast<int>(kBlock.size());
  const auto add = [&](const Kind& kind, int block, std::size_t part, snapshot::Phase phase, int forward) {
    auto* node = graph.add_nodes();
    node->set_id(id++);
    node->set_name(fmt::format("{}/{}_{}", moduleOf(block, part), kind.op, part));
    node->set_op(phase == snapshot::BACKWARD ? std::string(kind.op) + "Grad" : kind.op);
    node->set_category(kind.category);
    node->set_phase(phase);
    node->mutable_provenance()->set_module_path(moduleOf(block, part));
    node->mutable_provenance()->set_forward(forward);
    node->mutable_provenance()->set_imported(forward >= 0 ? forward : node->id());
    node->mutable_provenance()->set_source_file("model.py");
    node->mutable_provenance()->set_source_line(100 + static_cast<int>(part));
    auto* value = graph.add_values();
    value->set_id(node->id());
    value->set_name(node->name() + (phase == snapshot::BACKWARD ? "_grad" : "_output"));
    node->add_outputs(value->id());
    value->set_dtype("float32");
    value->set_rank_known(true);
    for (const char* dim : {"2", "128", "192"}) value->add_dims(dim);
    value->set_bytes(kind.bytes);
  };
  for (int block = 0; block < size.blocks; ++block)
    for (std::size_t part = 0; part < kBlock.size(); ++part) add(kBlock[part], block, part, snapshot::FORWARD, -1);
  for (int i = forwardNodes - 1; i >= 0; --i) {
    const auto part = static_cast<std::size_t>(i) % kBlock.size();
    add(kBlock[part], i / static_cast<int>(kBlock.size()), part, snapshot::BACKWARD, i);
  }
  for (int block = 0; block < size.blocks; ++block)
    add({"AdamW", "optimizer", 74'000, 0}, block, 8, snapshot::OPTIMIZER, -1);
  return graph;
}

snapshot::Plan samplePlan(const SampleSize& size) {
  const snapshot::Graph graph = sampleGraph(size);
  snapshot::Plan plan;
  plan.set_signature("input_ids int64[2, 128]; labels int64[2, 128]");
  plan.set_reason("first batch");
  const int forwardNodes = size.blocks * static_cast<int>(kBlock.size());
  plan.set_first_backward(forwardNodes);
  plan.set_first_optimizer(2 * forwardNodes);
  for (const snapshot::Node& node : graph.nodes()) {
    auto* i = plan.add_instructions();
    const Kind& kind = kBlock[static_cast<std::size_t>(node.provenance().imported()) % kBlock.size()];
    i->set_index(node.id());
    i->set_node(node.id());
    i->set_phase(node.phase());
    i->set_op(node.op());
    i->set_label(fmt::format("{} '{}'", node.op(), node.name()));
    i->set_bytes_read(2 * kind.bytes);
    i->set_bytes_written(kind.bytes);
    i->set_flops(std::string(kind.op) != "MatMul" ? static_cast<double>(kind.bytes) / 4
                 : kind.ns > 200'000              ? 2.0 * 256 * 192 * 768
                                                  : 2.0 * 24 * 128 * 128 * 16);
    i->set_implementation(std::string(kind.op) == "MatMul" ? "onednn brg:avx512_core" : "loop");
    i->set_view(node.op() == "Transpose");
    if (i->view()) continue;
    auto& roof = *i->mutable_roof();  // operands lie in the caches of the cores
    const double compute = i->flops() / kSampleOperations,
                 traffic = 3.0 * static_cast<double>(kind.bytes) / kSampleCoreCaches;
    roof.set_ns(std::max(compute, traffic) * 1e9);
    roof.set_bound_by(compute >= traffic ? "compute" : "core caches");
    roof.add_level_bytes(3 * kind.bytes);
    roof.add_level_bytes(0);
  }
  auto& peak = *plan.mutable_peak();
  peak.set_threads(2);
  peak.set_operations_per_second(kSampleOperations);
  const auto level = [&](const char* name, std::int64_t capacity, double bytesPerSecond) {
    auto* l = peak.add_levels();
    l->set_name(name);
    l->set_capacity(capacity);
    l->set_measured_over(capacity > 0 ? capacity / 2 : std::int64_t{64} << 20);
    l->set_bytes_per_second(bytesPerSecond);
  };
  level("core caches", std::int64_t{4} << 20, kSampleCoreCaches);
  level("memory", 0, 30e9);
  // A stack: what forward stashes, backward frees in the opposite order.
  std::int64_t top = 0;
  std::vector<std::int64_t> offsets;
  const auto buffer = [&](int value, snapshot::BufferClass kind, bool arena, std::int64_t offset, std::int64_t bytes,
                          int first, int last) {
    auto* b = plan.add_buffers();
    b->set_index(plan.buffers_size() - 1);
    b->set_value(value);
    b->set_name(graph.values(value).name());
    b->set_buffer_class(kind);
    b->set_in_arena(arena);
    b->set_offset(offset);
    b->set_bytes(bytes);
    b->set_first(first);
    b->set_last(last);
    b->set_shares(-1);
    b->set_decision(arena ? "reuses 2 dead blocks" : "own memory");
    b->add_refusals("input 0 'x' is read again by instruction 41");
  };
  for (int i = 0; i < forwardNodes; ++i) {
    offsets.push_back(top);
    const std::int64_t bytes = graph.values(i).bytes();
    const bool stash = i % 3 != 2;
    buffer(i, stash ? snapshot::CLASS_STASH : snapshot::CLASS_ACTIVATION, true, top, bytes, i,
           stash ? 2 * forwardNodes - 1 - i : i + 1);
    if (stash) top += bytes;
  }
  for (int i = 0; i < forwardNodes; ++i) {
    const int forward = forwardNodes - 1 - i;
    buffer(forwardNodes + i, i % 5 == 0 ? snapshot::CLASS_GRADIENT : snapshot::CLASS_BACKWARD, true,
           offsets[static_cast<std::size_t>(forward)] + 786'432, graph.values(forward).bytes(), forwardNodes + i,
           i % 5 == 0 ? 2 * forwardNodes + size.blocks - 1 : forwardNodes + i + 1);
  }
  buffer(0, snapshot::CLASS_PARAMETER, false, 0, 27'540'480, 0, 2 * forwardNodes + size.blocks - 1);
  buffer(0, snapshot::CLASS_OPTIMIZER_STATE, false, 0, 55'080'960, 0, 2 * forwardNodes + size.blocks - 1);
  buffer(0, snapshot::CLASS_INPUT_DATA, false, 0, 4'096, 0, forwardNodes);
  for (const snapshot::Buffer& b : plan.buffers())
    if (b.in_arena()) plan.set_arena_bytes(std::max(plan.arena_bytes(), b.offset() + b.bytes()));
  plan.set_lower_bound_bytes(plan.arena_bytes() - plan.arena_bytes() / 25);
  plan.set_persistent_bytes(27'540'480 + 55'080'960 + 4'096);
  plan.set_peak_instruction(forwardNodes);
  const auto owner = [&](const char* name, double share) {
    auto* o = plan.add_peak_owners();
    o->set_owner(name);
    o->set_bytes(static_cast<std::int64_t>(share * static_cast<double>(plan.arena_bytes())));
  };
  owner("stash · transformer.h.0.attn", 0.31);
  owner("stash · transformer.h.1.mlp", 0.27);
  owner("backward", 0.2);
  owner("workspace", 0.02);
  return plan;
}

std::vector<snapshot::PhaseSpan> samplePhases() {
  std::vector<snapshot::PhaseSpan> spans;
  std::int64_t now = 5'000'000'000;
  const auto add = [&](const char* name, int depth, int parent, std::int64_t begin, std::int64_t ns,
                       std::int64_t count) -> snapshot::PhaseSpan& {
    snapshot::PhaseSpan& span = spans.emplace_back();
    span.set_name(name);
    span.set_depth(depth);
    span.set_parent(parent);
    span.set_begin_ns(begin);
    span.set_ns(ns);
    span.set_count(count);
    span.set_peak_bytes(80'000'000 + static_cast<std::int64_t>(spans.size()) * 4'000'000);
    return span;
  };
  struct Phase {
    const char* name;
    std::int64_t ns, count;
  };
  constexpr std::array<Phase, 10> kPhases = {{{"load", 21'400'000, 412},
                                              {"check", 2'900'000, 412},
                                              {"inline", 1'100'000, 0},
                                              {"infer", 7'800'000, 412},
                                              {"attach loss", 240'000, 3},
                                              {"pre-grad passes", 12'300'000, 61},
                                              {"gradient", 6'100'000, 386},
                                              {"optimizer", 2'200'000, 148},
                                              {"plan", 9'400'000, 1284},
                                              {"bind", 18'700'000, 1284}}};
  for (const Phase& phase : kPhases) {
    const int parent = static_cast<int>(spans.size());
    add(phase.name, 0, -1, now, phase.ns, phase.count);
    if (std::string(phase.name) == "load") add("materialise", 1, parent, now + 6'000'000, 15'000'000, 74);
    if (std::string(phase.name) == "pre-grad passes") {
      std::int64_t at = now;
      for (const char* name : {"fold_constants", "fuse_gelu", "fuse_layer_norm", "merge_equal_nodes"}) {
        snapshot::PhaseSpan& span = add(name, 1, parent, at, 2'900'000, 12);
        snapshot::PassReport& pass = *span.mutable_pass();
        pass.set_name(name);
        pass.set_matches(12);
        pass.set_nodes_before(412);
        pass.set_nodes_after(388);
        pass.add_notes("kept 3 shape computations that depend on the batch");
        for (int i = 0; i < 5; ++i) {
          auto* miss = pass.add_near_misses();
          miss->set_node(i);
          miss->set_condition(i < 3 ? "the exponent is not the constant 3" : "the input has another reader");
        }
        at += 2'950'000;
      }
    }
    now += phase.ns + 60'000;
  }
  return spans;
}

namespace {

// What a step that is sampled notes of its numbers.
void addNotes(snapshot::StepRecord& record) {
  const double s = static_cast<double>(record.step());
  auto* input = record.add_inputs();
  input->set_value(1);
  input->set_name("input_ids");
  input->set_dtype("int64");
  for (const int extent : {2, 128}) input->add_dims(extent);
  for (const int begin : {0, 0}) input->add_begin(begin);
  for (const int extent : {1, 128}) input->add_extent(extent);
  std::string data(128 * 8, '\0');
  for (std::size_t i = 0; i < 128; ++i) data[i * 8] = static_cast<char>(i);
  input->set_data(std::move(data));
  input->mutable_statistics()->set_count(256);
  input->mutable_statistics()->set_max(383);
  input->mutable_statistics()->set_zeros(56);
  auto* rows = record.mutable_row_losses();
  rows->set_quantity("cross entropy of 'logits' at 'labels'");
  rows->set_step(record.step());
  for (int row = 0; row < 8; ++row) rows->add_values(row == 5 ? 9.5 : 2 + 0.1 * row);
  for (int row = 0; row < 8; ++row) rows->add_ignored(row == 7);
  int value = 100;
  for (const char* parameter : {"wte.weight", "h.0.mlp.weight"}) {
    for (const char* kind : {"parameter", "gradient"}) {
      auto* r = record.add_statistics();
      r->set_kind(kind);
      r->set_of(parameter);
      r->set_value(value++);
      r->set_name(std::string(parameter) + (kind[0] == 'g' ? ".grad" : ""));
      r->set_node(kind[0] == 'g' ? 40 : -1);
      r->mutable_statistics()->set_count(4096);
      r->mutable_statistics()->set_norm(kind[0] == 'g' ? 0.5 + std::exp(-s / 10) : 12 + 0.01 * s);
      r->mutable_statistics()->set_min(-0.3);
      r->mutable_statistics()->set_max(0.4);
      r->mutable_statistics()->set_nan(record.step() == 20 && kind[0] == 'g' ? 3 : 0);
    }
  }
  auto* output = record.add_statistics();
  output->set_kind("output");
  output->set_of("h.0.mlp");
  output->set_value(value);
  output->set_name("h.0.mlp/Add_output");
  output->set_node(7);
  output->mutable_statistics()->set_count(196'608);
  output->mutable_statistics()->set_norm(30 + s);
  record.set_recording_ns(20'000);
}

}  // namespace

snapshot::StepRecord sampleStep(const snapshot::Plan& plan, std::int64_t step) {
  snapshot::StepRecord record;
  record.set_step(step);
  record.set_has_loss(true);
  const double s = static_cast<double>(step);
  record.set_loss(2.1 + 6.9 * std::exp(-s / 18) + 0.25 * (noise(static_cast<std::uint64_t>(step) + 77) - 0.5));
  record.set_learning_rate(6e-4 * std::min(1.0, (s + 1) / 10));
  record.set_has_gradient_norm(true);
  record.set_gradient_norm(0.6 + 3 * std::exp(-s / 10) + 0.3 * noise(static_cast<std::uint64_t>(step)));
  record.set_updated(true);
  record.set_samples(2);
  record.set_tokens(256);
  std::int64_t now = 5'100'000'000 + step * 30'000'000;
  record.set_begin_ns(now);
  for (const snapshot::Instruction& i : plan.instructions()) {
    const Kind& kind = kBlock[static_cast<std::size_t>(i.index()) % kBlock.size()];
    auto* span = record.add_spans();
    span->set_instruction(i.index());
    span->set_node(i.node());
    span->set_begin_ns(now);
    const double factor = (i.phase() == snapshot::BACKWARD ? 1.7 : 1.0) *
                          (1 + 0.2 * noise(static_cast<std::uint64_t>(i.index() * 1000 + step)));
    now += static_cast<std::int64_t>(static_cast<double>(kind.ns) * factor * (step == 0 ? 3 : 1));
    span->set_end_ns(now);
    now += 400;
  }
  record.set_ns(now - record.begin_ns());
  record.set_planned_bytes(plan.persistent_bytes() + plan.arena_bytes());
  record.set_peak_bytes(record.planned_bytes() + 262'144);
  record.set_batch(fmt::format("entry {} of 60", step));
  record.set_warm_up(step == 0);
  auto* density = record.add_densities();
  density->set_input("input_ids");
  density->set_kind("tokens");
  density->set_valid(200 + step % 7);
  density->set_total(256);
  density->set_rows(2);
  density->set_shortest(90);
  density->set_longest(128);
  density->set_reason("padding where 'attention_mask' is 0");
  density->set_computed(224);
  density->set_decision("78.1 % of the tokens of 'input_ids' count; at most 85 %: they are computed alone");
  if (step % 5 == 0) addNotes(record);
  return record;
}

void recordSample(const std::filesystem::path& path, const SampleSize& size) {
  auto project = Project::create(path);
  if (!project) {
    std::fprintf(stderr, "%s\n", project.error().message.c_str());
    std::abort();
  }
  auto recorder = Recorder::start(std::move(*project)).value();
  recorder->beginRun(sampleRunInfo());
  recorder->phases(samplePhases());
  recorder->graph(sampleGraph(size));
  const snapshot::Plan plan = samplePlan(size);
  recorder->plan(plan);
  for (int step = 0; step < size.steps; ++step) {
    recorder->step(sampleStep(plan, step));
    if (step % 1000 == 999) (void)recorder->flush();  // faster than any training: nothing of it is to be lost
  }
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::WARNING);
  alert.set_code("shared_initializer");
  alert.set_message("parameters 'h.0.ln.bias' and 'h.1.ln.bias' share one initializer; they train as one");
  alert.set_node(-1);
  alert.set_value(-1);
  alert.set_step(-1);
  alert.set_instruction(-1);
  recorder->alert(alert);
  snapshot::TensorStatistics stats;
  stats.set_count(196'608);
  stats.set_min(-0.25);
  stats.set_max(0.5);
  for (int i = 0; i < 64; ++i) stats.add_histogram(i);
  recorder->tensorStats(3, 7, "transformer.h.0.mlp/Gelu_9_output", stats);
  recorder->endRun(RunStatus::kFinished);
  if (auto status = recorder->close(); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    std::abort();
  }
}

}  // namespace stepscope::storage::testing
