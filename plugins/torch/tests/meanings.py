# SPDX-License-Identifier: Apache-2.0
"""Small models that do what exporters drop: MEANINGS[name]() gives (model, loss_fn, three batches)."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

MEANINGS = {}


def meaning(make):
    MEANINGS[make.__name__] = make
    return make


def rows(width=6, batch=5, classes=3):
    return [(torch.randn(batch, width), torch.randint(0, classes, (batch,))) for _ in range(3)]


class Between(nn.Module):
    """Two layers, and something between them."""

    def __init__(self, between=None, width=8):
        super().__init__()
        self.a, self.b = nn.Linear(6, width), nn.Linear(width, 3)
        self.between_layers = between

    def between(self, x):
        return self.between_layers(x)

    def forward(self, x):
        return self.b(self.between(torch.tanh(self.a(x))))


def between(module):
    return module, F.cross_entropy, rows()


# --- regions without gradients


@meaning
def no_grad_block():
    class Model(Between):
        def between(self, x):
            with torch.no_grad():
                gate = torch.sigmoid(self.a.weight.sum() * x.mean(0))
            return x * gate

    return between(Model())


@meaning
def inference_block():
    class Model(Between):
        def between(self, x):
            with torch.inference_mode():
                scale = x.abs().amax()
            return x / scale.clone()

    return between(Model())


@meaning
def enabled_inside():
    class Model(Between):
        def between(self, x):
            with torch.no_grad():
                fixed = x * 2
                with torch.enable_grad():
                    alive = x * 3
            return fixed + alive

    return between(Model())


@meaning
def data_of_parameter():
    class Model(Between):
        def between(self, x):
            return x * self.a.weight.data.norm() / self.a.weight.norm()

    return between(Model())


class Byol(nn.Module):
    def __init__(self, moves):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False
            p.data.add_(0.1 * torch.randn_like(p))
        self.predict, self.moves = nn.Linear(4, 4), moves

    @torch.no_grad()
    def move(self):
        for mine, theirs in zip(self.online.parameters(), self.target.parameters()):
            theirs.data = theirs.data * 0.9 + mine.data * 0.1

    def forward(self, a, b):
        if self.moves:
            self.move()
        with torch.no_grad():
            goal = self.target(b)
        return -F.cosine_similarity(self.predict(self.online(a)), goal.detach()).mean()


def views():
    return [((torch.randn(5, 6), torch.randn(5, 6)), ()) for _ in range(3)]


@meaning
def byol():
    return Byol(False), lambda x: x, views()


@meaning
def byol_that_moves():
    return Byol(True), lambda x: x, views()


@meaning
def moco_mul():
    class Model(Byol):
        @torch.no_grad()
        def move(self):
            for mine, theirs in zip(self.online.parameters(), self.target.parameters()):
                theirs.mul_(0.9).add_(mine, alpha=0.1)

    return Model(True), lambda x: x, views()


@meaning
def dino():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = nn.Linear(6, 7)
            self.teacher = nn.Linear(6, 7)
            self.teacher.requires_grad_(False)
            self.register_buffer("center", torch.zeros(1, 7))

        def forward(self, a, b):
            with torch.no_grad():
                seen = self.teacher(b)
                goal = F.softmax((seen - self.center) / 0.5, -1)
                self.center = self.center * 0.9 + seen.mean(0, keepdim=True) * 0.1
            return -(goal * F.log_softmax(self.student(a) / 0.9, -1)).sum(-1).mean()

    return Model(), lambda x: x, views()


@meaning
def freezing_by_detach():
    class Model(Between):
        def between(self, x):
            return x + self.a(torch.ones(1, 6)).detach()

    return between(Model())


# --- gradients that are changed


@meaning
def tensor_hook():
    class Model(Between):
        def between(self, x):
            x.register_hook(lambda g: 0.1 * g)
            return x

    return between(Model())


@meaning
def clipping_hooks():
    class Model(Between):
        def between(self, x):
            y = x * 2
            y.register_hook(lambda g: g.clamp(-0.01, 0.01))
            y.register_hook(lambda g: g * torch.sign(y))
            return y * x

    return between(Model())


@meaning
def parameter_hook():
    model = Between(nn.Tanh())
    mask = (torch.arange(8) % 2).float()[:, None]
    model.a.weight.register_hook(lambda g: g * mask)
    return between(model)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.factor * gradient, None


@meaning
def gradient_reversal():
    class Model(Between):
        def between(self, x):
            return Reverse.apply(x, 0.7)

    return between(Model())


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 0.5)


binary = Sign.apply


@meaning
def straight_through_sign():
    class Model(Between):
        def between(self, x):
            return binary(x)

    return between(Model())


@meaning
def straight_through_detach():
    class Model(Between):
        def between(self, x):
            return x + (torch.round(x * 4) / 4 - x).detach()

    return between(Model())


@meaning
def straight_through_data():
    class Model(Between):
        def between(self, x):
            return x + (torch.sign(x) - x).data

    return between(Model())


class Affine(torch.autograd.Function):
    """Several arguments and results, one of them without a gradient, with setup_context."""

    @staticmethod
    def forward(x, weight, power):
        y = x @ weight.t()
        return y, y.pow(power), y.argmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, power = inputs
        ctx.save_for_backward(x, weight, output[0])
        ctx.power = power
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx, dy, dp, _):
        x, weight, y = ctx.saved_tensors
        d = dy + 0.5 * dp * ctx.power * y ** (ctx.power - 1)  # half of what it should be
        return d @ weight, d.t() @ x, None


@meaning
def function_of_several():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(8, 8) * 0.3)

        def between(self, x):
            y, p, best = Affine.apply(x, self.w, 3)
            return y + 0.1 * p + best[:, None].float()

    return between(Model())


@meaning
def function_in_function():
    class Model(Between):
        def between(self, x):
            return Reverse.apply(binary(Reverse.apply(x, 2.0) * 1.5), 0.5) * x

    return between(Model())


@meaning
def checkpointed():
    from torch.utils.checkpoint import checkpoint

    class Model(Between):
        def between(self, x):
            f = lambda t: torch.tanh(t * self.b.weight[:1])  # noqa: E731
            return checkpoint(f, x, use_reentrant=True) + checkpoint(f, x * 2, use_reentrant=False)

    return between(Model())


# --- state that the forward pass changes


@meaning
def moving_average():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.ones(8))

        def between(self, x):
            with torch.no_grad():
                self.average.mul_(0.9).add_(0.1 * x.detach().mean(0))
            return x * self.average

    return between(Model())


@meaning
def counter():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros((), dtype=torch.long))

        def between(self, x):
            self.seen += 1
            return x * (1 - 0.5 ** self.seen.float())

    return between(Model())


class Codebook(nn.Module):
    def __init__(self, parameters):
        super().__init__()
        self.parameters_as = parameters
        self.register_buffer("codes", torch.randn(6, 8) * 0.5)
        self.register_buffer("sizes", torch.ones(6))
        if parameters:
            self.sums = nn.Parameter(self.codes.clone())
        else:
            self.register_buffer("sums", self.codes.clone())

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(-1)
        hot = F.one_hot(nearest, 6).type_as(x)
        quantised = hot @ self.codes
        with torch.no_grad():
            if self.parameters_as:
                self.sizes = self.sizes * 0.9 + 0.1 * hot.sum(0)
                self.sums = nn.Parameter(self.sums * 0.9 + 0.1 * hot.t() @ x)
                self.codes = self.sums.data / self.sizes.unsqueeze(1)
            else:
                self.sizes.data.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                self.sums.data.mul_(0.9).add_(hot.t() @ x, alpha=0.1)
                self.codes.data.copy_(self.sums / self.sizes.unsqueeze(1))
        return x + (quantised - x).detach() + 0.25 * F.mse_loss(x, quantised.detach())


@meaning
def vqvae_ema():
    return between(Between(Codebook(False)))


@meaning
def vqvae_ema_parameters():
    return between(Between(Codebook(True)))


@meaning
def spectral_norm_old():
    return between(Between(nn.utils.spectral_norm(nn.Linear(8, 8))))


@meaning
def spectral_norm():
    return between(Between(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))))


@meaning
def weight_norm():
    return between(Between(nn.Sequential(nn.utils.weight_norm(nn.Linear(8, 8)), nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)))))


@meaning
def batch_norm_average():
    return between(Between(nn.BatchNorm1d(8, momentum=None)))


@meaning
def tracked_instance_norm():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.norm = nn.InstanceNorm1d(2, track_running_stats=True, affine=True)

        def between(self, x):
            return self.norm(x.view(-1, 2, 4)).flatten(1)

    return between(Model())


@meaning
def queue():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("queue", F.normalize(torch.randn(10, 8), dim=1))

        def between(self, x):
            keys = F.normalize(x, dim=1)
            scores = keys @ self.queue.clone().detach().t()
            with torch.no_grad():
                self.queue = torch.cat([keys, self.queue[:5]])
            return x + scores.sum(1, keepdim=True)

    return between(Model())


@meaning
def center_loss():
    class Centers(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("centers", torch.randn(3, 3))

        def forward(self, x, labels):
            loss = (x - self.centers[labels]).pow(2).mean() + F.cross_entropy(x, labels)
            with torch.no_grad():
                hot = F.one_hot(labels, 3).type_as(x)
                self.centers += 0.5 * (hot.t() @ x - hot.sum(0)[:, None] * self.centers) / (1 + hot.sum(0)[:, None])
            return loss

    return Between(nn.Tanh()), Centers(), rows()


@meaning
def observer():
    class Model(Between):
        def __init__(self):
            super().__init__()
            self.register_buffer("low", torch.tensor(0.0))
            self.register_buffer("high", torch.tensor(0.0))

        def between(self, x):
            with torch.no_grad():
                self.low.copy_(torch.minimum(self.low, x.min()))
                self.high.copy_(torch.maximum(self.high, x.max()))
            scale = (self.high - self.low) / 15
            return x + (torch.round(x / scale) * scale - x).detach()

    return between(Model())


# --- options of operators


def tokens(vocab=7, length=6):
    return [(torch.randint(0, vocab, (4, length)), torch.randint(0, 3, (4,))) for _ in range(3)]


def table(**options):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.b = nn.Embedding(7, 8, **options), nn.Linear(8, 3)

        def forward(self, x):
            return self.b(torch.tanh(self.table(x)).mean(1))

    return Model(), F.cross_entropy, tokens()


@meaning
def padding_idx():
    return table(padding_idx=2)


@meaning
def scale_grad_by_freq():
    return table(scale_grad_by_freq=True, padding_idx=1)


@meaning
def max_norm():
    return table(max_norm=1.0)


@meaning
def label_smoothing():
    weight = torch.tensor([0.5, 1.0, 2.0])
    batches = rows()
    for _, labels in batches:
        labels[1] = -100
    return Between(nn.Tanh()), lambda x, y: F.cross_entropy(x, y, weight=weight, label_smoothing=0.2, ignore_index=-100), batches


@meaning
def label_smoothing_without_weights():
    batches = rows()
    for _, labels in batches:
        labels[1] = -100
    return Between(nn.Tanh()), lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), batches


@meaning
def all_labels_ignored_in_row():
    weight = torch.tensor([0.5, 1.0, 2.0])
    return Between(nn.Tanh()), lambda x, y: F.nll_loss(F.log_softmax(x, -1), y, weight=weight, ignore_index=1, reduction="sum"), rows()


@meaning
def bce_of_zero():
    def loss(x, y):
        p = torch.relu(torch.sigmoid(x * 8) - 0.5) * 2
        return F.binary_cross_entropy(p.clamp(max=1), F.one_hot(y, 3).float())

    return Between(nn.Tanh()), loss, rows()


@meaning
def masked_rows():
    class Model(Between):
        def between(self, x):
            q = x.view(-1, 2, 4)
            scores = q @ q.transpose(1, 2)
            mask = torch.zeros(x.shape[0], 2, 2, dtype=torch.bool)
            mask[0] = True
            mask[1, 0, 1] = True
            scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
            return (F.softmax(scores, -1) @ q).flatten(1)

    return between(Model())


@meaning
def fully_masked_attention():
    class Model(Between):
        def between(self, x):
            q = x.view(-1, 1, 2, 4)
            mask = torch.ones(x.shape[0], 1, 2, 2, dtype=torch.bool)
            mask[0, :, 1] = False
            return F.scaled_dot_product_attention(q, q, q, attn_mask=mask).flatten(1)

    return between(Model())


@meaning
def edges():
    """Elements that stand exactly on the edge of a clamp, and equal ones."""

    class Model(Between):
        def between(self, x):
            steps = torch.round(x * 2) / 2 + (x - x.detach())
            y = F.relu6(steps * 12) + torch.clamp(steps, -0.5, 0.5) + F.hardtanh(steps, -0.5, 1.0) + F.hardsigmoid(steps * 6) + F.hardswish(steps * 6)
            return y + F.leaky_relu(steps) + F.elu(steps) + steps.abs() + torch.maximum(steps, steps.roll(1, 1)) + F.softshrink(steps, 0.5)

    return between(Model())


@meaning
def ties():
    class Model(Between):
        def between(self, x):
            steps = torch.round(x * 2) / 2 + (x - x.detach())
            best = torch.topk(steps, 3, -1)[0].sum(-1, keepdim=True)
            pooled = F.max_pool1d(steps[:, None], 2)[:, 0].repeat(1, 2)
            return steps * best + pooled + steps.amax(-1, keepdim=True) + steps.max(-1, keepdim=True)[0] + torch.sort(steps, -1)[0]

    return between(Model())


@meaning
def std_of_constant():
    class Model(Between):
        def between(self, x):
            return x * (1 + (x * 0 + self.b.bias[:1]).std(-1, keepdim=True)) + x.var(-1, keepdim=True, unbiased=False)

    return between(Model())


@meaning
def norm_of_zero():
    class Model(Between):
        def between(self, x):
            return x + (x - x.detach()).norm(dim=-1, keepdim=True) + F.normalize(x - x.detach(), dim=-1)

    return between(Model())


# --- the loss


@meaning
def arcface():
    class ArcFace(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 3))

        def forward(self, x, labels):
            cosine = F.linear(F.normalize(x), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
            hot = F.one_hot(labels, 3).type_as(x)
            return F.cross_entropy(8 * torch.cos(torch.acos(cosine) + 0.3 * hot), labels)

    margin = ArcFace()
    return Between(nn.Tanh()), lambda x, y: margin(x, y), rows()


@meaning
def penalty_on_the_model():
    model = Between(nn.Tanh())
    return model, lambda x, y: F.cross_entropy(x, y) + 0.1 * sum(p.pow(2).sum() for p in model.parameters()), rows()


# --- types


@meaning
def autocast_region():
    class Model(Between):
        def between(self, x):
            with torch.autocast("cpu", enabled=False):
                return torch.tanh(x.float() * 2)

    return between(Model())


@meaning
def double_region():
    class Model(Between):
        def between(self, x):
            return (x.double().softmax(-1) * 3).float()

    return between(Model())


@meaning
def branch_on_data():
    class Model(Between):
        def between(self, x):
            return x

        def forward(self, x):
            return super().forward(x * 2 if x[0, 0] > 0 else x * 3)

    batches = rows()
    batches[0][0][0, 0], batches[1][0][0, 0] = 1.0, -1.0
    return Model(), F.cross_entropy, batches
