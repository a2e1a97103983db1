"""What an op does, in the same few words for our ops and for PyTorch's, so that two profiles can stand side by side."""

KINDS = ("matmul", "attention", "convolution", "normalisation", "softmax", "elementwise", "dropout", "reduction", "embedding", "loss", "optimizer", "movement", "other")
PHASES = ("forward", "backward", "optimizer")

# PyTorch's operators without "aten::", longest match first. "attention" is a fused kernel: its parts are matmul and softmax on our side.
TORCH = (
    ("attention", ("_scaled_dot_product", "scaled_dot_product")),
    ("matmul", ("addmm", "mm", "bmm", "baddbmm", "matmul", "linear", "mkldnn_linear", "einsum", "_addmm_activation", "mv", "dot")),
    ("convolution", ("conv", "_convolution", "mkldnn_convolution", "thnn_conv", "slow_conv")),
    ("normalisation", ("native_layer_norm", "layer_norm", "native_batch_norm", "batch_norm", "_batch_norm", "native_group_norm", "group_norm", "instance_norm", "rms_norm", "_fused_rms_norm", "rsqrt")),
    ("loss", ("log_softmax", "_log_softmax", "nll_loss", "cross_entropy", "mse_loss", "l1_loss", "binary_cross_entropy")),
    ("softmax", ("softmax", "_softmax", "_safe_softmax")),
    ("dropout", ("dropout", "native_dropout", "bernoulli", "_masked_scale")),
    ("reduction", ("sum", "mean", "max_pool", "avg_pool", "adaptive_avg_pool", "mean_dim", "amax", "amin", "norm", "_adaptive_avg_pool", "mkldnn_max_pool", "cumsum", "argmax", "all", "any")),
    ("embedding", ("embedding", "index_select", "embedding_dense_backward", "gather", "index")),
    ("optimizer", ("_fused_adam", "_foreach", "_fused_sgd")),
    ("movement", ("copy_", "_to_copy", "to", "contiguous", "clone", "cat", "split", "transpose", "permute", "reshape", "view", "_unsafe_view", "expand", "slice", "select", "t", "as_strided", "unsqueeze",
                  "squeeze", "narrow", "_reshape_alias", "fill_", "zero_", "zeros", "zeros_like", "ones_like", "ones", "full", "empty", "empty_like", "empty_strided", "new_empty", "new_zeros",
                  "arange", "select_backward", "slice_backward", "detach", "detach_", "alias", "resize_", "chunk", "stack", "constant_pad_nd", "pad", "unflatten", "flatten", "lift_fresh", "set_",
                  "resolve_conj", "resolve_neg", "result_type", "item", "_local_scalar_dense", "is_nonzero", "expand_as", "view_as", "new_empty_strided", "triu", "tril", "masked_fill_", "masked_fill")),
    ("elementwise", ("gelu", "relu", "tanh", "sigmoid", "silu", "add", "sub", "mul", "div", "pow", "sqrt", "exp", "log", "erf", "neg", "threshold_backward", "where", "clamp", "eq", "ne", "lt", "le", "gt", "ge",
                     "addcmul", "addcdiv", "rsub", "abs", "maximum", "minimum", "bitwise", "logical", "cos", "sin", "reciprocal", "square", "lerp", "isnan", "isinf", "hardtanh")),
)


def kind_of_torch(name):
    """Kind of a PyTorch operator such as "aten::addmm" or "aten::native_layer_norm_backward"; an op of autograd that only calls others is "other"."""
    if "::" not in name:
        return "other"
    op = name.split("::", 1)[1]
    best, kind = 0, "other"
    for candidate, names in TORCH:
        for known in names:
            exact = op == known or op == known + "_"
            starts = len(known) > 3 and op.startswith(known)  # softmax, softmax_backward_data …
            if (exact or starts) and len(known) + exact > best:
                best, kind = len(known) + exact, candidate
    return kind


OURS = {"matmul": "matmul", "convolution": "convolution", "normalization": "normalisation", "loss": "loss", "optimizer": "optimizer", "reduction": "reduction", "random": "dropout",
        "movement": "movement", "elementwise": "elementwise", "activation": "elementwise", "control": "other", "other": "other"}


def kind_of_ours(op, category):
    """Kind of one of our instructions by operator and category (snapshot.Node.category)."""
    base = op[:-4] if op.endswith("Grad") else op
    if base in ("Gather", "ShrunkenGather") and category != "optimizer":
        return "embedding"
    if base in ("Softmax", "MaskedSoftmax", "LogSoftmax"):
        return "softmax"
    return OURS[category]


def phase_of_ours(phase):
    return "backward" if phase == "recompute" else phase


def side_by_side(ours, theirs):
    """Lines of a table: milliseconds per kind and phase, ours beside theirs; both are {phase: {kind: ms}}, and "step": wall time of a step."""

    def cell(x):
        return f"{x:9.2f}" if x else "        –"

    def ratio(a, b):
        return f"{a / b:6.2f}" if a and b else "     –"

    lines = [f"{'ms per step':14}" + "".join(f" {phase + ': ours':>16} {'PyTorch':>9}" for phase in PHASES) + f" {'all: ours':>16} {'PyTorch':>9} {'ratio':>6}"]

    def row(title, pick):
        a, b = [pick(ours, p) for p in PHASES], [pick(theirs, p) for p in PHASES]
        if sum(a) or sum(b):
            lines.append(f"{title:14}" + "".join(f" {cell(x):>16} {cell(y)}" for x, y in zip(a, b)) + f" {cell(sum(a)):>16} {cell(sum(b))} {ratio(sum(a), sum(b))}")
        return sum(a), sum(b)

    for kind in KINDS:
        row(kind, lambda profile, phase, kind=kind: profile.get(phase, {}).get(kind, 0.0))
    all_ours, all_theirs = row("all ops", lambda profile, phase: sum(profile.get(phase, {}).values()))
    blank = " " * (14 + len(PHASES) * 27)
    for title, a, b in (("between ops", max(0.0, ours["step"] - all_ours), max(0.0, theirs["step"] - all_theirs)), ("step", ours["step"], theirs["step"])):
        lines.append(f"{title:14}" + blank[14:] + f" {cell(a):>16} {cell(b)} {ratio(a, b)}")
    return lines
