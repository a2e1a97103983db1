# SPDX-License-Identifier: Apache-2.0
"""Functions that behave, and that do not: what test_host.py has the host run. Each takes a [2, 5] tensor."""

import os
import signal
import time

import torch


class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * dy * x  # not the slope on purpose: what the function says counts


class Plain(Base):
    pass


def _counted(function):
    def counting(seed):
        Seeded.times += 1
        return function(seed)

    return counting


class Seeded(torch.autograd.Function):
    """How often all generators are seeded, which takes longer than most functions: the gradient is 1 where no run after the first does."""

    times, seen = 0, []

    @staticmethod
    def forward(ctx, x):
        Seeded.seen.append(Seeded.times)
        return x * 1

    @staticmethod
    def backward(ctx, dy):
        return dy * (1 + Seeded.seen[-1] - Seeded.seen[1])  # after the first run of both nodes


torch.manual_seed = _counted(torch.manual_seed)


class WithNumbers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, name, flags):
        assert name == "twice" and flags == [True, None]
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.factor, None, None, None


class TwoResults(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        index = x.argmax(1)
        ctx.mark_non_differentiable(index)
        return x * 2, index

    @staticmethod
    def backward(ctx, dy, _):
        return 5 * dy


class TwoArguments(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, True)
        return dy * y, dy * x


class NoGradient(Base):
    @staticmethod
    def backward(ctx, dy):
        return None


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, dy):
        return 2 * dy


class NotMaterialized(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x + 1, x + 2

    @staticmethod
    def backward(ctx, a, b):
        return (0 if a is None else a) + (0 if b is None else b)


class Alias(Base):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, dy):
        return dy


class Prints(Plain):
    @staticmethod
    def forward(ctx, x):
        print('{"event":"step","loss":12345}', flush=True)
        return Base.forward(ctx, x)


KEPT = []


class Leaks(Plain):
    @staticmethod
    def forward(ctx, x):
        KEPT.append((ctx, x.clone()))
        ctx.itself = ctx
        return Base.forward(ctx, x)


class WithNumPy(Base):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.numpy() ** 2)


class OtherRank(Base):
    @staticmethod
    def forward(ctx, x):
        return x if x.shape[0] == 7 else x.flatten()


class Raises(Base):
    @staticmethod
    def forward(ctx, x):
        raise ValueError("this cannot be computed")


class RaisesBackward(Base):
    @staticmethod
    def backward(ctx, dy):
        raise KeyError("slope")


class RaisesUnspeakable(Base):
    @staticmethod
    def forward(ctx, x):
        class Strange(Exception):
            def __str__(self):
                return "line one\nline two \x00 \x1b[31m"

        raise Strange


class WrongShape(Base):
    @staticmethod
    def forward(ctx, x):
        return x[:, :4]


class WrongType(Base):
    @staticmethod
    def forward(ctx, x):
        return x.double()


class NoTensor(Base):
    @staticmethod
    def forward(ctx, x):
        return 7


class WrongGradient(Base):
    @staticmethod
    def backward(ctx, dy):
        return dy[:1, :3]


class Slow(Base):
    @staticmethod
    def forward(ctx, x):
        time.sleep(60)


class Killed(Base):
    @staticmethod
    def forward(ctx, x):
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Base):
    @staticmethod
    def forward(ctx, x):
        os._exit(3)


class NoFunction:
    pass
