# SPDX-License-Identifier: Apache-2.0
"""Complex tensors in a traced forward pass: a Pair of real ones, because exporters and the engine have no complex type.

The mode of meaning.py hands every function here that makes a complex tensor or takes one. Transforms become DFT nodes (natives.py), the rest is real
arithmetic. Complex parameters, buffers and attributes of modules become real ones with a last axis of two, in the file and in the golden: `real_parts`.
"""

import math

import torch

from stepscope_capture import complex_calls, natives, tracing

_REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}
_COMPLEX = {real: kind for kind, real in _REAL.items()}
# What moves elements, or is linear with real factors: done to both parts.
_ALIKE = {
    "reshape", "view", "permute", "transpose", "flatten", "unflatten", "unsqueeze", "squeeze", "expand", "expand_as", "repeat", "roll", "flip", "narrow", "select",
    "index_select", "sum", "mean", "movedim", "moveaxis", "swapaxes", "contiguous", "clone", "detach", "tile", "fft_fftshift", "fft_ifftshift", "__getitem__", "neg",
    "negative", "__neg__", "pad", "cumsum", "t", "mT", "gather", "repeat_interleave", "broadcast_to", "diff", "take_along_dim", "view_as", "reshape_as", "type_as", "diagonal",
    "tril", "triu", "masked_fill", "zeros_like", "requires_grad_", "cpu", "zero_",
}  # fmt: skip
_SEVERAL = {"cat", "concat", "concatenate", "stack", "hstack", "vstack"}
_PARTS = {"chunk", "split", "unbind", "tensor_split"}
_PRODUCTS = {"mul", "multiply", "__mul__", "__rmul__", "mul_", "__imul__", "matmul", "__matmul__", "bmm", "mm", "dot", "outer", "tensordot"}
_MAKERS = {"zeros", "ones", "full", "empty", "new_zeros", "new_ones", "new_empty", "new_full"}
_QUESTIONS = {"size": lambda x: x.re.size, "dim": lambda x: x.re.dim, "numel": lambda x: x.re.numel, "nelement": lambda x: x.re.numel, "stride": lambda x: x.re.stride}


class Pair:
    """Real and imaginary part, tensors or numbers."""

    def __init__(self, re, im):
        self.re, self.im = re, im

    dtype = property(lambda self: _COMPLEX.get(self.re.dtype, torch.complex64))
    shape = property(lambda self: self.re.shape)
    ndim = property(lambda self: self.re.dim())
    device = property(lambda self: self.re.device)
    requires_grad = property(lambda self: self.re.requires_grad or self.im.requires_grad)
    real = property(lambda self: self.re)
    imag = property(lambda self: self.im)
    H = property(lambda self: Pair(self.re.transpose(-2, -1), -self.im.transpose(-2, -1)))
    mH = H
    mT = property(lambda self: Pair(self.re.transpose(-2, -1), self.im.transpose(-2, -1)))
    T = property(lambda self: Pair(self.re.T, self.im.T))
    is_complex = lambda self: True  # noqa: E731
    is_floating_point = lambda self: False  # noqa: E731
    __len__ = lambda self: len(self.re)  # noqa: E731
    __iter__ = lambda self: (Pair(r, i) for r, i in zip(self.re, self.im))  # noqa: E731

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _QUESTIONS:
            return _QUESTIONS[name](self)
        return lambda *args, **kwargs: _required(name, (self, *args), kwargs)

    def __setitem__(self, index, value):
        value = as_pair(value)
        self.re[index], self.im[index] = value.re, value.im

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return _required(getattr(func, "__name__", str(func)), args, kwargs or {})


for _name in ("add", "radd", "iadd", "sub", "rsub", "isub", "mul", "rmul", "imul", "truediv", "rtruediv", "itruediv", "pow", "matmul", "rmatmul", "neg", "getitem", "eq", "ne", "abs"):
    setattr(Pair, f"__{_name}__", lambda self, *args, _name=_name: _required(f"__{_name}__", (self, *args), {}))


def as_pair(value):
    if isinstance(value, Pair):
        return value
    if isinstance(value, complex):
        return Pair(value.real, value.imag)
    if isinstance(value, torch.Tensor) and value.is_complex():  # not of the traced graph: its parts are constants
        if value.requires_grad:
            raise NotImplementedError("complex tensors: the result of an operator that has no real form here")
        with torch._C.DisableTorchFunction():
            parts = torch.view_as_real(value.detach().resolve_conj())
            return Pair(parts[..., 0].clone(), parts[..., 1].clone())
    return Pair(value, torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0.0)


def _is_complex(value):
    return isinstance(value, (Pair, complex)) or isinstance(value, torch.Tensor) and value.is_complex()


def concerns(name, args, kwargs):
    """Whether a function makes a complex tensor or takes one."""
    if name.startswith("fft_") and name not in _ALIKE or name in ("view_as_complex", "complex", "polar") or kwargs.get("dtype") in _REAL or name in ("to", "type") and any(isinstance(a, torch.dtype) and a in _REAL for a in args):
        return name not in ("fft_fftfreq", "fft_rfftfreq")
    if name == "stft" or name in complex_calls.MAKE_COMPLEX:
        return True
    flat = [v for a in (*args, *kwargs.values()) for v in (a if isinstance(a, (list, tuple)) else (a,))]
    return any(_is_complex(v) for v in flat) and name not in ("is_complex", "__get__")


def computed(name, args, kwargs, mode):
    """The function `name` in real arithmetic, else by the Python host; NotImplemented where neither can. `mode`: the one that traces."""
    result = apply(name, args, kwargs, mode.markers.native)
    return complex_calls.hosted(name, args, kwargs, mode, Pair) if result is NotImplemented else result


def _required(name, args, kwargs):
    mode = tracing.current()
    result = apply(name, args, kwargs, None) if mode is None else computed(name, args, kwargs, mode)
    if result is NotImplemented:
        raise NotImplementedError(f"complex tensors: '{name}' has no real form here")
    return result


def _product(name, a, b, *rest):
    operate = getattr(torch, {"__mul__": "mul", "__rmul__": "mul", "mul_": "mul", "__imul__": "mul", "multiply": "mul", "__matmul__": "matmul"}.get(name, name))
    if operate is torch.mul:
        operate = lambda x, y: x * y  # noqa: E731  parts may be numbers
    if not _is_complex(a):
        b = as_pair(b)
        return Pair(operate(a, b.re, *rest), operate(a, b.im, *rest))
    a = as_pair(a)
    if not _is_complex(b):
        return Pair(operate(a.re, b, *rest), operate(a.im, b, *rest))
    b = as_pair(b)
    return Pair(operate(a.re, b.re, *rest) - operate(a.im, b.im, *rest), operate(a.re, b.im, *rest) + operate(a.im, b.re, *rest))


def _quotient(a, b):
    if not _is_complex(b):
        a = as_pair(a)
        return Pair(a.re / b, a.im / b)
    b = as_pair(b)
    size = b.re * b.re + b.im * b.im
    return _product("mul", a, Pair(b.re / size, -b.im / size))


def _power(x, exponent):
    x = as_pair(x)
    if isinstance(exponent, int) and 1 <= exponent <= 8:
        result = x
        for _ in range(exponent - 1):
            result = _product("mul", result, x)
        return result
    return NotImplemented


def _einsum(equation, *operands):
    operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    if len(operands) != 2:
        return NotImplemented
    a, b = operands
    rule = lambda x, y: torch.einsum(equation, x, y)  # noqa: E731
    if _is_complex(a) and _is_complex(b):
        a, b = as_pair(a), as_pair(b)
        return Pair(rule(a.re, b.re) - rule(a.im, b.im), rule(a.re, b.im) + rule(a.im, b.re))
    if _is_complex(a):
        a = as_pair(a)
        return Pair(rule(a.re, b), rule(a.im, b))
    b = as_pair(b)
    return Pair(rule(a, b.re), rule(a, b.im))


def _sized(x, dim, n):
    """x cut to n elements along the axis, or filled with zeros."""
    if n is None or x.shape[dim] == n:
        return x
    if x.shape[dim] > n:
        return x.narrow(dim, 0, n)
    shape = list(x.shape)
    shape[dim] = n - x.shape[dim]
    return torch.cat([x, torch.zeros(shape, dtype=x.dtype)], dim)


def _transform(make, x, n, dim, norm, inverse, half):
    """One axis. `half`: a real signal on one side and the first half of its coefficients on the other."""
    pair = as_pair(x) if _is_complex(x) else None
    rank = (pair.re if pair else x).dim()
    dim = dim % rank
    signal = torch.stack((pair.re, pair.im), -1) if pair else x.unsqueeze(-1)
    if not signal.is_floating_point():
        signal = signal.to(torch.get_default_dtype())
    if n is None:
        n = 2 * (signal.shape[dim] - 1) if inverse and half else signal.shape[dim]
    if inverse and half and signal.shape[-1] == 1:
        signal = torch.cat((signal, torch.zeros_like(signal)), -1)
    signal = _sized(signal, dim, n // 2 + 1 if inverse and half else n)
    y = natives.dft(make, signal, dim, n, inverse, half)
    scale = {"backward": 1.0, "ortho": math.sqrt(n) if inverse else 1 / math.sqrt(n), "forward": float(n) if inverse else 1.0 / n}[norm or "backward"]
    y = y if scale == 1.0 else y * scale
    return y[..., 0] if inverse and half else Pair(y[..., 0], y[..., 1])


def _fourier(make, name, x, n=None, dim=None, norm=None, *, s=None):
    kind = name.removeprefix("fft_")
    inverse, half = kind.startswith("i"), "rfft" in kind
    if kind.lstrip("i") in ("fft", "rfft"):
        return _transform(make, x, n, -1 if dim is None else dim, norm, inverse, half)
    if "hfft" in kind:  # the other direction, conjugated
        norm = {"forward": "backward", "ortho": "ortho"}.get(norm, "forward")
        if not inverse:
            x = as_pair(x)
            return _fourier(make, kind.replace("hfft", "fft_irfft"), Pair(x.re, -x.im), n, dim, norm, s=s)
        y = _fourier(make, kind.replace("ihfft", "fft_rfft"), x, n, dim, norm, s=s)
        return Pair(y.re, -y.im)
    s = n if s is None else s
    rank = (x.re if isinstance(x, Pair) else x).dim()
    if dim is None:
        dim = (-2, -1) if kind.endswith("2") else range(rank) if s is None else range(-len(s), 0)
    axes = [dim] if isinstance(dim, int) else list(dim)
    sizes = [None] * len(axes) if s is None else [None if e == -1 else e for e in s]
    pairs = list(zip(axes, sizes))
    last = pairs[-1]
    if half and not inverse:  # the real signal first, along the last axis
        x = _transform(make, x, last[1], last[0], norm, False, True)
        pairs = pairs[:-1]
    for axis, size in pairs[:-1] if half and inverse else pairs:
        x = _transform(make, x, size, axis, norm, inverse, False)
    return _transform(make, x, last[1], last[0], norm, True, True) if half and inverse else x


def _stft(make, x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None, align_to_window=None):
    if _is_complex(x) or align_to_window is not None:
        return NotImplemented
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    if window is None:
        window = torch.ones(length, dtype=x.dtype)
    left = (n_fft - length) // 2
    window = torch.nn.functional.pad(window, (left, n_fft - length - left))
    single = x.dim() == 1
    x = x.unsqueeze(0) if single else x
    if center:
        x = torch.nn.functional.pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    starts = torch.arange(0, x.shape[1] - n_fft + 1, hop)
    frames = x[:, (starts.unsqueeze(1) + torch.arange(n_fft)).reshape(-1)].reshape(x.shape[0], len(starts), n_fft) * window
    y = _transform(make, frames, n_fft, -1, "ortho" if normalized else None, False, onesided is not False)
    y = Pair(y.re.transpose(1, 2), y.im.transpose(1, 2))
    y = Pair(y.re.squeeze(0), y.im.squeeze(0)) if single else y
    return torch.stack((y.re, y.im), -1) if return_complex is False else y


def _split_call(name, x, args, kwargs):
    """A function of one complex tensor, done to both of its parts."""
    x = as_pair(x)
    kwargs = {key: value for key, value in kwargs.items() if not (key == "dtype" and value in _REAL)}
    owner = torch.fft if name.startswith("fft_") else torch.nn.functional if name == "pad" else torch if name == "zeros_like" else torch.Tensor
    call = lambda part: getattr(owner, name.removeprefix("fft_"))(part, *args, **kwargs)  # noqa: E731
    return call(x.re), call(x.im)


def apply(name, args, kwargs, make):
    """The function `name` in real arithmetic; NotImplemented where there is none. `make` as in natives.py, None where no transform can occur."""
    if name.startswith("fft_") and name not in _ALIKE:
        kind = name.removeprefix("fft_").lstrip("i")
        return _fourier(make or _make(), name, *args, **kwargs) if kind in ("fft", "rfft", "hfft", "fft2", "rfft2", "hfft2", "fftn", "rfftn", "hfftn") else NotImplemented
    if name == "stft":
        return _stft(make or _make(), *args, **kwargs)
    if name == "view_as_complex":
        return Pair(args[0][..., 0], args[0][..., 1])
    if name == "complex":
        re, im = torch.broadcast_tensors(*args[:2])
        return Pair(re, im)
    if name == "polar":
        return Pair(args[0] * torch.cos(args[1]), args[0] * torch.sin(args[1]))
    if name in _MAKERS:
        own = {**kwargs, "dtype": _REAL[kwargs["dtype"]]} if kwargs.get("dtype") in _REAL else kwargs
        if name in ("full", "new_full") and _is_complex(args[-1]):
            value = as_pair(args[-1])
            fill = lambda part: getattr(torch, name)(*args[:-1], part, **own)  # noqa: E731
            return Pair(fill(value.re), fill(value.im))
        call = (lambda: getattr(torch, name)(*args, **own)) if not name.startswith("new_") else lambda: getattr(torch.Tensor, name)(*args, **own)
        first = call()
        return Pair(first, torch.zeros_like(first))
    x = args[0] if args else None
    if name in ("to", "type", "cfloat") and not _is_complex(x):
        return as_pair(x if x.is_floating_point() else x.to(torch.get_default_dtype()))
    if name in ("to", "type", "cuda", "cpu", "cfloat"):
        x = as_pair(x)
        kind = next((_REAL.get(a, a) for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.dtype)), x.re.dtype)
        return Pair(x.re.to(kind), x.im.to(kind)) if any(isinstance(a, torch.dtype) and a in _REAL for a in (*args[1:], *kwargs.values())) or kind == x.re.dtype else x.re.to(kind)
    if name in _SEVERAL:
        pairs = [as_pair(part) for part in args[0]]
        join = lambda parts: getattr(torch, name)(parts, *args[1:], **kwargs)  # noqa: E731
        return Pair(join([p.re for p in pairs]), join([p.im for p in pairs]))
    if name in _PARTS:
        return [Pair(re, im) for re, im in zip(*_split_call(name, x, args[1:], kwargs))]
    if name in _ALIKE:
        return Pair(*_split_call(name, x, args[1:], kwargs))
    if name == "view_as_real":
        x = as_pair(x)
        return torch.stack((x.re, x.im), -1)
    if name in ("real", "imag"):
        return as_pair(x).re if name == "real" else as_pair(x).im
    if name in ("conj", "conj_physical", "resolve_conj", "resolve_neg", "adjoint"):
        x = as_pair(x)
        return x.mH if name == "adjoint" else Pair(x.re, -x.im) if name.startswith("conj") else x
    if name in ("abs", "absolute", "__abs__"):
        return torch.linalg.vector_norm(apply("view_as_real", (x,), {}, make), 2, -1)
    if name == "angle":
        return torch.atan2(as_pair(x).im, as_pair(x).re)
    if name == "exp":
        size = torch.exp(as_pair(x).re) if isinstance(as_pair(x).re, torch.Tensor) else math.exp(as_pair(x).re)
        return Pair(size * torch.cos(as_pair(x).im), size * torch.sin(as_pair(x).im))
    if name in _PRODUCTS and len(args) >= 2:
        return _product(name, *args)
    if name == "__rmatmul__":
        return _product("matmul", args[1], args[0])
    if name in ("add", "__add__", "__radd__", "add_", "__iadd__") and not kwargs:
        a, b = as_pair(args[0]), as_pair(args[1])
        return Pair(a.re + b.re, a.im + b.im)
    if name in ("sub", "__sub__", "sub_", "__isub__", "subtract") and not kwargs or name == "__rsub__":
        a, b = (as_pair(v) for v in (args[:2] if name != "__rsub__" else args[1::-1]))
        return Pair(a.re - b.re, a.im - b.im)
    if name in ("div", "true_divide", "divide", "__truediv__", "div_", "__itruediv__") and not kwargs:
        return _quotient(args[0], args[1])
    if name == "__rtruediv__":
        return _quotient(args[1], args[0])
    if name in ("reciprocal", "reciprocal_"):
        return _quotient(1.0, args[0])
    if name in ("pow", "__pow__", "square"):
        return _power(x, args[1] if len(args) > 1 else 2)
    if name == "einsum":
        return _einsum(*args)
    if name == "where":
        a, b = as_pair(args[1]), as_pair(args[2])
        return Pair(torch.where(args[0], a.re, b.re), torch.where(args[0], a.im, b.im))
    return NotImplemented


def _make():
    return tracing.current().markers.native


def _property(name):
    def read(self):
        parts = self.__dict__[name] if name in self.__dict__ else self._parameters[name] if name in self._parameters else self._buffers[name]
        return Pair(parts[..., 0], parts[..., 1]) if tracing.current() is not None else torch.view_as_complex(parts)

    def write(self, value):
        parts = torch.view_as_real(value.detach()) if isinstance(value, torch.Tensor) else apply("view_as_real", (value,), {}, None)
        (self._buffers if name in self._buffers else self.__dict__)[name] = parts

    return property(read, write)


def real_parts(module):
    """Makes complex parameters, buffers and attributes of all its modules real ones [..., 2], which their modules see as complex ones. Changes `module`."""
    for layer in module.modules():
        found = [(place, name) for place in (layer._parameters, layer._buffers, layer.__dict__) for name, t in place.items() if isinstance(t, torch.Tensor) and t.is_complex()]
        for place, name in found:
            parts = torch.view_as_real(place[name].detach().clone())
            place[name] = torch.nn.Parameter(parts, place[name].requires_grad) if place is layer._parameters else parts
            layer._non_persistent_buffers_set.discard(name)  # torch.export reads the others through the property, which is complex
        if found:
            layer.__class__ = type(type(layer).__name__, (type(layer),), {name: _property(name) for _, name in found})
    return module
