// The table of the options: name, default, what it does, choices; and in which group and form they are shown.
#include <map>

#include "engine/build/options.h"
#include "engine/build/registry.h"

namespace stepscope {
namespace {

std::string_view groupOf(std::string_view name) {
  static const std::map<std::string_view, std::string_view> groups{{"data", "Data"},
                                                                   {"pad", "Data"},
                                                                   {"padding", "Data"},
                                                                   {"dim", "Data"},
                                                                   {"seed", "Data"},
                                                                   {"loss", "Loss"},
                                                                   {"loss-fn", "Loss"},
                                                                   {"loss-graph", "Loss"},
                                                                   {"logits", "Loss"},
                                                                   {"labels", "Loss"},
                                                                   {"train", "Parameters"},
                                                                   {"freeze", "Parameters"},
                                                                   {"missing-weights", "Parameters"},
                                                                   {"batch-norm", "Parameters"},
                                                                   {"loop.max_iterations", "Run"},
                                                                   {"loop.max_memory", "Memory"},
                                                                   {"start-step", "Run"},
                                                                   {"start-state", "Run"},
                                                                   {"steps", "Run"},
                                                                   {"threads", "Run"},
                                                                   {"device", "Run"},
                                                                   {"deterministic", "Run"},
                                                                   {"cuda.graphs", "Run"},
                                                                   {"cuda.streams", "Run"},
                                                                   {"streams.partition", "Run"},
                                                                   {"cuda.tf32", "Precision"},
                                                                   {"subnormals", "Precision"},
                                                                   {"kernels", "Run"},
                                                                   {"break-on", "Run"},
                                                                   {"long.ms", "Run"},
                                                                   {"ring.bytes", "Memory"},
                                                                   {"variants.bytes", "Memory"},
                                                                   {"roofline", "Record"},
                                                                   {"cache.dir", "Run"},
                                                                   {"recompute.plan", "Memory"},
                                                                   {"recompute.budget", "Memory"}};
  if (const auto found = groups.find(name); found != groups.end()) return found->second;
  if (name.starts_with("pass.") || name == "attention.patterns") return "Passes";
  if (name.starts_with("checkpoint.") || name == "distributed" || name.starts_with("ranks")) return "Run";
  if (name.starts_with("loss-scale") || name.starts_with("precision") || name == "master-weights") return "Precision";
  if (name.starts_with("memory.")) return "Memory";
  if (name.starts_with("record")) return "Record";
  return "Optimizer";
}

std::string_view kindOf(const OptionInfo& info) {
  if (info.choices.size() == 2 && info.choices[0] == "on") return "switch";
  if (!info.choices.empty()) return "choice";
  static const std::map<std::string_view, std::string_view> kinds{{"memory.limit", "bytes"},
                                                                  {"loop.max_memory", "bytes"},
                                                                  {"recompute.budget", "bytes"},
                                                                  {"ring.bytes", "bytes"},
                                                                  {"variants.bytes", "bytes"},
                                                                  {"record.batch.bytes", "bytes"},
                                                                  {"accumulate", "count"},
                                                                  {"warmup-steps", "count"},
                                                                  {"total-steps", "count"},
                                                                  {"start-step", "count"},
                                                                  {"steps", "count"},
                                                                  {"seed", "count"},
                                                                  {"threads", "count"},
                                                                  {"ranks", "count"},
                                                                  {"cuda.streams", "count"},
                                                                  {"checkpoint.seconds", "number"},
                                                                  {"checkpoint.keep", "count"},
                                                                  {"record.keep", "count"},
                                                                  {"loss-scale", "number"},
                                                                  {"loss-scale.init", "number"},
                                                                  {"ranks.bucket", "bytes"},
                                                                  {"ranks.timeout", "number"},
                                                                  {"long.ms", "count"},
                                                                  {"loop.max_iterations", "count"},
                                                                  {"lr", "number"},
                                                                  {"weight-decay", "number"},
                                                                  {"momentum", "number"},
                                                                  {"eps", "number"},
                                                                  {"clip-grad-norm", "number"},
                                                                  {"padding", "number"},
                                                                  {"loss-scale.growth", "number"},
                                                                  {"loss-scale.backoff", "number"},
                                                                  {"loss-scale.window", "count"},
                                                                  {"record.percent", "number"}};
  const auto found = kinds.find(info.name);
  return found == kinds.end() ? "text" : found->second;
}

}  // namespace

OptionInfo described(OptionInfo info) {
  info.group = groupOf(info.name);
  info.kind = kindOf(info);
  return info;
}

std::vector<OptionInfo> plainOptions() {
  std::vector<OptionInfo> table{
      {"data", "", "batches: .npz, directory of input_*.pb, .safetensors; empty = synthetic data from the seed", {}},
      {"loss", "", "scalar output to minimise; empty = the only scalar float output", {}},
      {"loss-fn", "", "loss to attach to an output", {"cross_entropy", "mse", "l1", "bce_with_logits"}},
      {"loss-graph",
       "",
       "ONNX file of a loss; inputs that are called like a value of the model read it, others are fed",
       {}},
      {"logits", "", "output that the attached loss reads; empty = the only float output", {}},
      {"labels", "labels", "input with the targets of the attached loss; added when the model has none", {}},
      {"train", "", "regular expression: only matching initializers are trained", {}},
      {"freeze", "", "regular expression: matching initializers are not trained", {}},
      {"optimizer", "sgd", "parameter update", {"sgd", "adam", "adamw", "lamb"}},
      {"optimizer-graph",
       "",
       "ONNX file of an update: inputs parameter, gradient, learning_rate, step, weight_decay and state X; outputs "
       "parameter_next and X_next",
       {}},
      {"lr", "0.001", "learning rate", {}},
      {"weight-decay", "", "weight decay; default 0, for adamw 0.01", {}},
      {"momentum", "0", "momentum of sgd", {}},
      {"nesterov", "off", "Nesterov momentum of sgd", {"on", "off"}},
      {"betas", "0.9,0.999", "decay rates of adam, adamw and lamb", {}},
      {"eps", "1e-8", "term added to the denominator of adam, adamw and lamb (lamb: default 1e-6)", {}},
      {"clip-grad-norm", "0", "largest global norm of the gradients; 0 = no clipping", {}},
      {"accumulate", "1", "micro steps per update; each gradient is divided by it", {}},
      {"lr-schedule",
       "constant",
       "factor of the learning rate over updates",
       {"constant", "linear", "cosine", "step", "polynomial"}},
      {"warmup-steps", "0", "updates over which the learning rate rises linearly to its value", {}},
      {"total-steps",
       "0",
       "updates until the schedule ends; 0 = to the end of `stepscope train`, which knows it; else a schedule needs it",
       {}},
      {"group", "", "REGEX:lr=X,weight_decay=Y for matching parameters; the first match counts", {}},
      {"pad", "", "INPUT=ID: padding value of an input", {}},
      {"padding", "0", "fraction of padding in synthetic sequences", {}},
      {"start-step", "0", "number of the first micro step", {}},
      {"start-state",
       "",
       "file of --save that the run begins with: parameters, optimizer state, step number; empty = the model as it is",
       {}},
      {"steps", "1", "micro steps to run", {}},
      {"seed", "0", "seed of random numbers: dropout, synthetic data, missing weights", {}},
      {"threads", "0", "threads of the kernels; 0 = all cores", {}},
      {"distributed",
       "off",
       "processes that train one model together, each with its own entries of the data (`stepscope train`): local = this "
       "program starts `ranks` of them on this machine; mpi = those that mpirun started; nccl = one of the two, each rank "
       "on a GPU of its own, whose collectives NCCL runs",
       {"off", "local", "mpi", "nccl"}},
      {"ranks", "2", "how many processes `distributed` local starts, or nccl without mpirun", {}},
      {"ranks.bucket", "26214400", "bytes of gradients that ranks average at a time", {}},
      {"ranks.check", "off", "compare the parameters of all ranks after every step, bit for bit", {"on", "off"}},
      {"ranks.overlap",
       "on",
       "average a bucket of gradients while the backward phase makes the next ones, on a thread of its own; the same bits; "
       "with ranks.shard=gradients or parameters one more bucket is in memory",
       {"on", "off"}},
      {"ranks.prefetch",
       "on",
       "with ranks.shard=parameters: gather the parameters that come next while those before them compute; the same bits; "
       "one more bucket is in memory",
       {"on", "off"}},
      {"ranks.shard",
       "off",
       "what each rank keeps its part of alone, in place of a copy on all: optimizer = optimizer state (ZeRO 1), gradients "
       "= sums of gradients besides, which then travel in every micro step (ZeRO 2), parameters = parameters besides, which "
       "are gathered where the forward and the backward phase read them (ZeRO 3)",
       {"off", "optimizer", "gradients", "parameters"}},
      {"ranks.timeout", "600", "seconds that a rank may let the others wait before they give up", {}},
      {"deterministic",
       "run",
       "equal bits for an equal number of threads (run, also on), or for any number (threads): sums are cut by size alone, "
       "and what cannot be cut so takes one thread; off: a GPU adds in the order in which threads arrive where that is "
       "faster; "
       "a kernel whose bits differ from run to run is an alert, before the first step and once",
       {"run", "threads", "off"}},
      {"subnormals",
       "keep",
       "float32 below 2^-126: computed with (keep), or zero on every thread (flush), which is faster where many appear",
       {"keep", "flush"}},
      {"device",
       "cpu",
       "where kernels run; cuda, cuda:N: a GPU; auto: cuda where there is one, else cpu; emulated: the CUDA kernels on the "
       "CPU, slow, every access checked (emulated:seed=N,… see kernels/emulated/README.md); mirror: for tests, mirror:OP,… "
       "lacks these ops",
       {"auto", "cpu", "cuda", "emulated", "mirror"}},
      {"cuda.graphs",
       "on",
       "parts of a step that nobody observes are recorded once and put on a GPU as a whole (CUDA graphs), with the same "
       "bits; "
       "the log says which, and why others are not; off = launch by launch",
       {"on", "off"}},
      {"cuda.streams",
       "2",
       "streams of a GPU: 1 = one after the other; 2 = copies beside kernels; 3 to 8 = branches of the graph beside each "
       "other too, which takes more memory",
       {}},
      {"streams.partition",
       "",
       "file, or JSON text, that says on which stream of a GPU nodes run ({\"streams\": 2, \"nodes\": {KEY: 1, …}}; `build "
       "--streams-out FILE` writes what a plan has); waits follow, numbers stay; empty = the plan chooses",
       {}},
      {"cuda.tf32",
       "off",
       "float32 products on a GPU by cuBLASLt read 10 bits of a fraction (TF32), which is faster; other products and "
       "devices read all 23",
       {"on", "off"}},
      {"precision",
       "fp32",
       "type of the computation; bf16, fp16: products in it, weights and optimizer state in float32",
       {"fp32", "bf16", "fp16"}},
      {"precision.force",
       "",
       "REGEX:fp32 (or bf16, fp16): type of nodes whose op, name or module matches; several by blanks; adds up",
       {}},
      {"master-weights",
       "auto",
       "type in which parameters are kept: auto = that of the file; fp32 = float32 also where the file has float16 or "
       "bfloat16; off = the low type of precision, updates round stochastically, optimizer state in float32",
       {"auto", "fp32", "off"}},
      {"loss-scale",
       "auto",
       "factor of the gradients on their way, so that small ones do not vanish in float16; auto = dynamic with fp16, else "
       "off; dynamic, off, or a number that stays",
       {}},
      {"loss-scale.init",
       "auto",
       "first factor of a dynamic loss scale; auto = 65536, or where the first batch overflows with it three "
       "loss-scale.backoff below the largest that fits",
       {}},
      {"loss-scale.growth", "2", "by how much a dynamic loss scale grows", {}},
      {"loss-scale.backoff", "0.5", "by how much a dynamic loss scale shrinks when a gradient overflows", {}},
      {"loss-scale.window", "2000", "updates without overflow before a dynamic loss scale grows", {}},
      {"dim", "", "NAME=N: extent of a symbolic dimension of synthetic data", {}},
      {"missing-weights", "error", "external data that is not there: refuse, or fill from the seed", {"error", "random"}},
      {"batch-norm",
       "frozen",
       "BatchNormalization of an inference file: frozen, as the file says; batch = normalises with the statistics of the "
       "batch and updates the running ones, as in training",
       {"frozen", "batch"}},
      {"loop.max_iterations",
       "128",
       "most iterations of a loop whose number is computed; a step that needs more is an error. Before the first build",
       {}},
      {"loop.max_memory",
       "0",
       "bytes that the iterations of a loop whose number is computed may keep for the gradient and its results; 0 = "
       "memory.limit alone",
       {}},
      {"memory.inplace", "on", "outputs may take over the memory of an input that dies", {"on", "off"}},
      {"memory.reuse", "on", "memory of dead values is given to later ones", {"on", "off"}},
      {"memory.limit", "0", "bytes that the plan may need; 0 = what the machine has", {}},
      {"recompute.budget", "0", "bytes of live activations to stay below by computing forward values again; 0 = off", {}},
      {"recompute.plan",
       "",
       "PATTERN:1:COUNT,…: forward values to compute again, by pattern (`build` lists them); -1 = all",
       {}},
      {"attention.patterns",
       "",
       "file with further forms of attention for pass.fuse_attention; `stepscope options --patterns` prints those that it "
       "knows",
       {}},
      {"cache.dir",
       "auto",
       "folder that keeps what a second start need not find again: what this machine can do (roofline; for a day), the "
       "choice of "
       "recompute.budget; auto = the user's folder for caches, off",
       {}},
      {"variants.bytes",
       "0",
       "bytes that plans for batches of other shapes may keep; above it those that ran longest ago are given back; 0 = a "
       "quarter of what the machine has",
       {}},
      {"ring.bytes", "268435456", "bytes kept for step states to rewind to", {}},
      {"kernels", "fast", "fast kernels, or plain reference loops, which run on the CPU", {"fast", "reference"}},
      {"record", "instructions", "what a step records", {"off", "steps", "instructions"}},
      {"record.rung",
       "activity",
       "how a device tells of recorded steps: activity (records of the driver's profiler), counters (these, and the bytes, "
       "occupancy and tensor cores that hardware counts: every kernel then runs alone, so the step is slower and its times "
       "are not those of others), events (around the work: no waits, no overhead), host (the times of issuing it). What "
       "cannot be had falls to the next of counters, activity, events; the project keeps which it was, and why",
       {"activity", "counters", "events", "host"}},
      {"record.nvtx",
       "off",
       "ranges run, step, phase, module, node in domain stepscope for NVIDIA's tools, of steps at full speed",
       {"on", "off"}},
      {"record.batch",
       "auto",
       "batch and losses of its rows: auto (as often as record.percent allows), off, or every N-th step",
       {}},
      {"record.batch.bytes",
       "16384",
       "contents of each input that are kept with a recorded batch; 0 = statistics alone",
       {}},
      {"record.statistics",
       "auto",
       "statistics of trained parameters, gradients and module outputs: auto (as often as record.percent allows), off, or "
       "every N-th step",
       {}},
      {"record.keep",
       "4096",
       "steps that keep the begin and end of their instructions and the statistics of watched values in the project: the "
       "newest N all, 16 N before them every 16th, those before every 256th; all = every step",
       {}},
      {"record.flight",
       "on",
       "looks in every step at the largest and the non-finite numbers of parameters, gradients and module outputs (aims at "
       "1 % "
       "of it); a NaN or infinity is then traced to its first cause, and a jump of the gradients is an alert",
       {"on", "off"}},
      {"record.percent",
       "0.5",
       "percent of the time of the steps that recording batches and statistics may take where they are auto",
       {}},
      {"break-on",
       "",
       "a step whose loss, gradient norm or watched value is not finite: empty = an alert that names the cause, and the run "
       "goes on; nan, inf or both = the run ends there; off = nothing is looked for",
       {"", "nan,inf", "nan", "inf", "off"}},
      {"roofline",
       "off",
       "measure what this machine can do (0.3 s, once per process) and set every instruction beside it",
       {"on", "off"}},
      {"checkpoint.seconds", "300", "seconds between two checkpoints on the way to --save; 0 = at the end alone", {}},
      {"checkpoint.keep", "2", "checkpoints that stay: FILE, then FILE.1, the one before, and so on", {}},
      {"long.ms", "100", "instructions that run longer in the first step are named: cancelling waits for them", {}},
  };
  for (OptionInfo& info : table) info = described(std::move(info));
  return table;
}

const std::vector<OptionInfo>& optionTable() { return Registry::builtIn()->options(); }

}  // namespace stepscope
