# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch's table that are neither exported nor kept so that they agree: {name, or (name, exporter): (what is found, why)}."""

_RANDOM = ("unchecked", "draws random numbers, which are others than PyTorch's: said")
_DRAWS = ("draws", "draws random numbers, which are others than PyTorch's: said")
_SPARSE = ("not exported", "sparse tensors")
_IN_PLACE = ("differs", "the operator itself writes running statistics, and what it writes does not leave the Python host: verify says so")
_LIST = ("not exported", "a list of tensors as result, which the Python host does not hand out")

OTHERWISE = {
    "cholesky_inverse": ("differs", "PyTorch's gradient of a triangular factor has elements beyond the triangle, which nothing reads"),
    "cholesky_solve": ("differs", "likewise"),
    "native_layer_norm": ("differs", "PyTorch's gradient through the second and third result is wrong by finite differences"),
    **dict.fromkeys(("nn.functional.max_unpool2d", "nn.functional.max_unpool3d"), ("differs", "PyTorch's gradient is wrong by finite differences where indices repeat, as the sample's do")),
    "native_batch_norm": _IN_PLACE,
    "_native_batch_norm_legit": _IN_PLACE,
    "_batch_norm_with_update": _IN_PLACE,
    "sparse.sampled_addmm": _SPARSE,
    "sparse.mm.reduce": _SPARSE,
    ("gradient", "torchscript"): _LIST,
    ("split_with_sizes_copy", "torchscript"): _LIST,
    ("hsplit", "torchscript"): _LIST,
    ("vsplit", "torchscript"): _LIST,
    ("dsplit", "torchscript"): _LIST,
    ("_unsafe_masked_index", "torchscript"): ("not exported", "a list of tensors as argument, some of them absent"),
    ("_unsafe_masked_index_put_accumulate", "torchscript"): ("not exported", "likewise"),
    ("corrcoef", "dynamo"): ("not exported", "the exporter: a branch on the data inside of the operator"),
    ("cov", "dynamo"): ("not exported", "likewise"),
    ("masked_select", "dynamo"): ("not exported", "the exporter: an extent that depends on the data"),
    ("tensor_split", "dynamo"): ("not exported", "the exporter: an extent that depends on the data"),
    **{(name, "dynamo"): ("not exported", "likewise") for name in ("linalg.lstsq", "linalg.lstsq.grad_oriented")},
    **{(name, "dynamo"): ("not exported", "the exporter has no check of errors of LAPACK") for name in ("linalg.lu_factor", "linalg.tensorinv", "linalg.tensorsolve")},
    **{(name, "dynamo"): ("refused", "the exporter divides a float by an integer") for name in ("masked.std", "masked.var")},
    ("nn.functional.scaled_dot_product_attention", "dynamo"): ("draws", "the sample seeds torch's generator itself"),
    ("diagonal_scatter", "dynamo"): ("not exported", "the exporter: a write through diagonal()"),
    "nn.functional.adaptive_avg_pool1d": ("refused", "a sample without a batch axis"),
    ("torch.ops.aten._safe_softmax.default", "torchscript"): ("differs", "the sample trains a parameter that holds an infinity, which is not trained here: said"),
    "nn.functional.fractional_max_pool2d": _RANDOM,
    "nn.functional.fractional_max_pool3d": _RANDOM,
    ("nn.functional.rrelu", "torchscript"): _RANDOM,
    ("nn.functional.rrelu", "dynamo"): _DRAWS,
    "svd_lowrank": _RANDOM,
    "normal": _RANDOM,
    "normal.number_mean": _RANDOM,
    "bernoulli": _RANDOM,
    **dict.fromkeys(("linalg.eig", "linalg.eigvals"), ("not exported", "a complex result of an operator that has no real form")),
    **{(f"nn.functional.{name}", "torchscript"): _DRAWS for name in ("alpha_dropout", "dropout2d", "dropout3d")},
    ("nn.functional.feature_alpha_dropout.with_train", "torchscript"): _DRAWS,
    ("unbind_copy", "torchscript"): _LIST,
    ("to_sparse", "torchscript"): _SPARSE,
    ("to_sparse", "dynamo"): _SPARSE,
    **{name: ("not exported", "a real tensor made complex by its method: torch.complex() is taken") for name in ("cfloat", "cdouble", "chalf")},
    ("squeeze.multiple", "torchscript"): ("not exported", "the exporter takes one axis"),
    ("fill", "torchscript"): ("not exported", "an assertion of the exporter"),
    ("norm.nuc", "torchscript"): ("not exported", "the exporter has no nuclear norm"),
    "pca_lowrank": _RANDOM,
    ("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu", "torchscript"): _DRAWS,
    ("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu", "dynamo"): ("refused", "the exporter multiplies matrices of other layouts"),
}
