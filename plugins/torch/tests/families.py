# SPDX-License-Identifier: Apache-2.0
"""Small models of many families with random weights: FAMILIES[name]() gives (model, loss_fn, three batches)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

FAMILIES = {}


def family(function):
    FAMILIES[function.__name__] = function
    return function


def token_batches(vocab, batch, length, count=3):
    return [(torch.randint(0, vocab, (batch, length)), torch.randint(0, vocab, (batch, length))) for _ in range(count)]


def image_batches(classes, batch=2, channels=3, size=16, count=3):
    return [(torch.randn(batch, channels, size, size), torch.randint(0, classes, (batch,))) for _ in range(count)]


def token_loss(logits, labels):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class T5Attention(nn.Module):
    def __init__(self, width, heads, bidirectional, relative):
        super().__init__()
        self.heads, self.d, self.bidirectional = heads, width // heads, bidirectional
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.relative = nn.Embedding(8, heads) if relative else None

    def bucket(self, position, buckets=8, max_distance=20):
        result = 0
        if self.bidirectional:
            buckets //= 2
            result = result + (position > 0).to(torch.long) * buckets
            position = torch.abs(position)
        else:
            position = -torch.min(position, torch.zeros_like(position))
        exact = buckets // 2
        large = exact + (torch.log(position.float() / exact) / math.log(max_distance / exact) * (buckets - exact)).to(torch.long)
        large = torch.min(large, torch.full_like(large, buckets - 1))
        return result + torch.where(position < exact, position, large)

    def forward(self, x, memory=None, bias=None, mask=None):
        source = x if memory is None else memory
        b, n, w = x.shape
        m = source.shape[1]
        q = self.q(x).view(b, n, self.heads, self.d).transpose(1, 2)
        k = self.k(source).view(b, m, self.heads, self.d).transpose(1, 2)
        v = self.v(source).view(b, m, self.heads, self.d).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(3, 2))
        if bias is None and self.relative is not None:
            position = torch.arange(m)[None, :] - torch.arange(n)[:, None]
            bias = self.relative(self.bucket(position)).permute(2, 0, 1).unsqueeze(0)
            if mask is not None:
                bias = bias + mask
        if bias is not None:
            scores = scores + bias
        p = F.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o((p @ v).transpose(1, 2).contiguous().view(b, n, w)), bias


class T5(nn.Module):
    def __init__(self, vocab=31, width=16, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.enc = nn.ModuleList([T5Attention(width, heads, True, i == 0) for i in range(2)])
        self.encf = nn.ModuleList([self.feed(width, nn.ReLU()) for _ in range(2)])
        self.dec = nn.ModuleList([T5Attention(width, heads, False, i == 0) for i in range(2)])
        self.cross = nn.ModuleList([T5Attention(width, heads, False, False) for i in range(2)])
        self.decf = nn.ModuleList([self.feed(width, nn.GELU("tanh")) for _ in range(2)])
        self.norms = nn.ModuleList([RMSNorm(width) for _ in range(8)])

    def feed(self, width, activation):
        return nn.Sequential(RMSNorm(width), nn.Linear(width, 32, bias=False), activation, nn.Linear(32, width, bias=False))

    def forward(self, input_ids, attention_mask, labels):
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.embedding(input_ids)
        bias = None
        for i in range(2):
            y, bias = self.enc[i](self.norms[i](x), bias=bias, mask=mask)
            x = x + y
            x = x + self.encf[i](x)
        memory = self.norms[2](x)
        start = labels.new_zeros(labels.shape)
        start[..., 1:] = labels[..., :-1].clone()
        start[..., 0] = 0
        start = start.masked_fill(start == -100, 0)
        y = self.embedding(start)
        n = start.shape[1]
        causal = torch.where(torch.arange(n)[None, :] <= torch.arange(n)[:, None], 0.0, torch.finfo(torch.float32).min)[None, None]
        bias = None
        for i in range(2):
            z, bias = self.dec[i](self.norms[3 + i](y), bias=bias, mask=causal)
            y = y + z
            z, _ = self.cross[i](self.norms[5 + i](y), memory=memory, bias=mask)
            y = y + z
            y = y + self.decf[i](y)
        logits = F.linear(self.norms[7](y) * 16**-0.5, self.embedding.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-100)


@family
def t5():
    batches = []
    for _ in range(3):
        mask = torch.ones(2, 9, dtype=torch.long)
        mask[1, 6:] = 0
        labels = torch.randint(0, 31, (2, 7))
        labels[0, 5:] = -100
        batches.append(({"input_ids": torch.randint(0, 31, (2, 9)), "attention_mask": mask, "labels": labels}, ()))
    return T5(), lambda o: o, batches


class Block(nn.Module):
    def __init__(self, width, heads, kv=None, kind="alibi", rotary=1.0, cap=None):
        super().__init__()
        self.heads, self.kv, self.d, self.kind, self.cap = heads, kv or heads, width // heads, kind, cap
        self.n1, self.n2 = (RMSNorm(width), RMSNorm(width)) if kind == "gemma" else (nn.LayerNorm(width), nn.LayerNorm(width))
        self.q = nn.Linear(width, width)
        self.k, self.v = nn.Linear(width, self.kv * self.d), nn.Linear(width, self.kv * self.d)
        self.o = nn.Linear(width, width)
        self.up, self.gate, self.down = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.rot = int(self.d * rotary)
        self.register_buffer("inv_freq", 1.0 / (100.0 ** (torch.arange(0, self.rot, 2).float() / self.rot)))

    def rotate(self, x, n):
        t = torch.arange(n, dtype=torch.float32)
        angles = torch.outer(t, self.inv_freq)
        angles = torch.cat((angles, angles), -1)
        head, tail = x[..., : self.rot], x[..., self.rot :]
        half = self.rot // 2
        turned = torch.cat((-head[..., half:], head[..., :half]), -1)
        return torch.cat((head * angles.cos() + turned * angles.sin(), tail), -1)

    def forward(self, x):
        b, n, w = x.shape
        h = self.n1(x)
        q = self.q(h).view(b, n, self.heads, self.d).transpose(1, 2)
        k = self.k(h).view(b, n, self.kv, self.d).transpose(1, 2)
        v = self.v(h).view(b, n, self.kv, self.d).transpose(1, 2)
        if self.kind != "alibi":
            q, k = self.rotate(q, n), self.rotate(k, n)
        if self.kv != self.heads:
            r = self.heads // self.kv
            k = k[:, :, None].expand(b, self.kv, r, n, self.d).reshape(b, self.heads, n, self.d)
            v = torch.repeat_interleave(v, r, dim=1)
        s = q @ k.transpose(-1, -2) / math.sqrt(self.d)
        if self.cap:
            s = self.cap * torch.tanh(s / self.cap)
        if self.kind == "alibi":
            slopes = torch.tensor([2.0 ** (-8.0 * (i + 1) / self.heads) for i in range(self.heads)])
            s = s + slopes[:, None, None] * (torch.arange(n)[None, :] - torch.arange(n)[:, None]).float()
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        s = s.masked_fill(~causal, float("-inf"))
        a = self.o((F.softmax(s, -1) @ v).transpose(1, 2).reshape(b, n, w))
        if self.kind == "neox":  # parallel residual
            return x + a + self.down(F.gelu(self.up(self.n2(x))))
        x = x + a
        return x + self.down(F.gelu(self.gate(self.n2(x)), approximate="tanh") * self.up(self.n2(x)))


class Decoder(nn.Module):
    def __init__(self, vocab=29, width=32, final_cap=None, tied=False, scale=False, **block):
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList([Block(width, 4, **block) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.final_cap, self.scale = final_cap, scale
        if tied:
            self.head.weight = self.emb.weight

    def forward(self, input_ids):
        x = self.emb(input_ids)
        if self.scale:
            x = x * torch.tensor(self.emb.embedding_dim**0.5, dtype=x.dtype)
        for block in self.blocks:
            x = block(x)
        y = self.head(self.norm(x))
        return self.final_cap * torch.tanh(y / self.final_cap) if self.final_cap else y


@family
def alibi():
    return Decoder(kind="alibi"), token_loss, token_batches(29, 2, 10)


@family
def neox():
    return Decoder(kind="neox", rotary=0.5), token_loss, token_batches(29, 2, 10)


@family
def gemma():
    return Decoder(kind="gemma", kv=2, cap=5.0, final_cap=3.0, tied=True, scale=True), token_loss, token_batches(29, 2, 10)


class Moe(nn.Module):
    def __init__(self, width=16, experts=4, k=2, vocab=19, dense=True):
        super().__init__()
        self.emb, self.router = nn.Embedding(vocab, width), nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Linear(24, width)) for _ in range(experts)])
        self.out, self.k, self.dense = nn.Linear(width, vocab), k, dense

    def forward(self, input_ids):
        x = self.emb(input_ids)
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(F.softmax(self.router(flat), dim=-1), self.k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = F.one_hot(chosen, len(self.experts)).permute(2, 1, 0)
        y = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            if self.dense:
                w = (mask[i].to(weights.dtype) * weights.transpose(0, 1)).sum(0)
                y = y + expert(flat) * w[:, None]
            else:
                slot, token = torch.where(mask[i])
                y = y.index_add(0, token, expert(flat[token]) * weights[token, slot, None])
        return self.out(x + y.view_as(x))


@family
def moe_sparse():
    return Moe(dense=False), token_loss, token_batches(19, 2, 6)


class UNet(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode
        self.d1, self.d2 = self.block(3, 8), self.block(8, 16)
        self.mid = self.block(16, 16)
        self.up = nn.ConvTranspose2d(16, 16, 2, 2) if mode == "convtranspose" else None
        self.u2, self.u1 = self.block(32, 8), self.block(16, 8)
        self.up1 = nn.ConvTranspose2d(8, 8, 3, 2, padding=1, output_padding=1, bias=False) if mode == "convtranspose" else None
        self.head = nn.Conv2d(8, 4, 1)

    def block(self, a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b) if a > 3 else nn.BatchNorm2d(b), nn.SiLU())

    def grow(self, x, like, layer):
        if layer is not None:
            return layer(x)
        corners = {} if self.mode.startswith("nearest") else {"align_corners": self.mode.endswith("_corners")}
        mode = self.mode.split("_")[0]
        if self.mode.endswith("scale"):
            return F.interpolate(x, scale_factor=2, mode=mode)
        return F.interpolate(x, size=like.shape[-2:], mode=mode, **corners)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.mid(F.avg_pool2d(b, 2))
        c = self.u2(torch.cat([self.grow(c, b, self.up), b], 1))
        c = self.u1(torch.cat([self.grow(c, a, self.up1), a], 1))
        return self.head(c)


def dense_batches(size=16, classes=4):
    return [(torch.randn(2, 3, size, size), torch.randint(0, classes, (2, size, size))) for _ in range(3)]


class Style(nn.Module):
    def __init__(self):
        super().__init__()
        first = [nn.ReflectionPad2d(2), nn.Conv2d(3, 8, 5), nn.InstanceNorm2d(8, affine=True), nn.ReLU()]
        second = [nn.Conv2d(8, 8, 3, 2, 1), nn.InstanceNorm2d(8), nn.ReLU()]
        self.net = nn.Sequential(*first, *second, nn.Upsample(scale_factor=2), nn.ReplicationPad2d(1), nn.Conv2d(8, 3, 3), nn.Tanh())

    def forward(self, x):
        return self.net(x)


@family
def style():
    def loss(y, target):
        def gram(t):
            f = t.flatten(2)
            return torch.einsum("bcn,bdn->bcd", f, f) / f.shape[-1]
        tv = (y[..., 1:] - y[..., :-1]).abs().mean() + (y[..., 1:, :] - y[..., :-1, :]).pow(2).mean()
        return F.mse_loss(gram(y), gram(target)) + 0.1 * tv
    return Style(), loss, [(torch.randn(2, 3, 12, 12), torch.randn(2, 3, 12, 12)) for _ in range(3)]


class GridNet(nn.Module):
    def __init__(self, mode, padding, corners):
        super().__init__()
        self.loc = nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))
        self.features, self.head = nn.Conv2d(2, 4, 3, padding=1), nn.Linear(4 * 64, 3)
        self.kw = dict(mode=mode, padding_mode=padding, align_corners=corners)

    def forward(self, x):
        theta = self.loc(x).view(-1, 2, 3) * 0.3 + torch.tensor([[1.0, 0, 0], [0, 1.0, 0]])
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
        base = torch.stack((xs, ys, torch.ones_like(xs)), -1).view(1, 64, 3)
        grid = (base @ theta.transpose(1, 2)).view(-1, 8, 8, 2)
        return self.head(F.grid_sample(self.features(x), grid, **self.kw).flatten(1))


class BiLstm(nn.Module):
    def __init__(self, kind=nn.LSTM, layers=2, bidirectional=True, batch_first=True):
        super().__init__()
        self.emb = nn.Embedding(21, 12)
        self.rnn = kind(12, 10, layers, bidirectional=bidirectional, batch_first=batch_first)
        self.head = nn.Linear(20 if bidirectional else 10, 7)

    def forward(self, tokens):
        return self.head(self.rnn(self.emb(tokens))[0])


def tag_batches():
    return [(torch.randint(0, 21, (2, 6)), torch.randint(0, 7, (2, 6))) for _ in range(3)]


@family
def bilstm():
    return BiLstm(), token_loss, tag_batches()


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(17, 8)
        self.enc = nn.GRU(8, 8, batch_first=True)
        self.cell = nn.GRUCell(16, 8)
        self.lcell = nn.LSTMCell(8, 8)
        self.att, self.head = nn.Linear(8, 8), nn.Linear(8, 17)

    def forward(self, source, target):
        memory, h = self.enc(self.emb(source))
        h, steps = h[0], []
        c = torch.zeros_like(h)
        g = h
        for t in range(4):
            score = torch.bmm(memory, self.att(h).unsqueeze(2)).squeeze(2)
            context = torch.bmm(F.softmax(score, 1).unsqueeze(1), memory).squeeze(1)
            h = self.cell(torch.cat([self.emb(target[:, t]), context], 1), h)
            g, c = self.lcell(h, (g, c))
            steps.append(self.head(g))
        return torch.stack(steps, 1)


@family
def seq2seq():
    return Seq2Seq(), token_loss, [((torch.randint(0, 17, (2, 5)), torch.randint(0, 17, (2, 4))), torch.randint(0, 17, (2, 4))) for _ in range(3)]


class Wav2Vec(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.norm, self.c2 = nn.Conv1d(1, 8, 10, 5, bias=False), nn.GroupNorm(8, 8), nn.Conv1d(8, 8, 3, 2, bias=False)
        self.proj, self.ln = nn.Linear(8, 16), nn.LayerNorm(8)
        self.pos = nn.utils.parametrizations.weight_norm(nn.Conv1d(16, 16, 4, padding=2, groups=4), dim=2)
        self.enc = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.mask = nn.Parameter(torch.rand(16))
        self.head = nn.Linear(16, 6)

    def forward(self, wave, spans):
        x = F.gelu(self.c2(F.gelu(self.norm(self.c1(wave.unsqueeze(1))))))
        x = self.proj(self.ln(x.transpose(1, 2)))
        x = torch.where(spans.unsqueeze(-1), self.mask, x)
        x = x + F.gelu(self.pos(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        return self.head(self.enc(x))


@family
def wav2vec():
    return Wav2Vec(), token_loss, [((torch.randn(2, 120), torch.rand(2, 11) > 0.6), torch.randint(0, 6, (2, 11))) for _ in range(3)]


class Mel(nn.Module):
    def __init__(self, learned=False):
        super().__init__()
        self.pre = nn.Conv1d(1, 1, 3, padding=1)
        self.mel = nn.Parameter(torch.rand(17, 8))
        self.head = nn.Conv1d(8, 5, 3, padding=1)

    def forward(self, wave):
        x = self.pre(wave.unsqueeze(1)).squeeze(1)
        s = torch.stft(x, 32, 16, 32, torch.hann_window(32), center=False, return_complex=False)
        power = s.pow(2).sum(-1)
        return self.head(torch.log(power.transpose(1, 2) @ self.mel + 1e-3).transpose(1, 2)).mean(-1)


@family
def mel_stft():
    return Mel(), F.cross_entropy, [(torch.randn(2, 160), torch.randint(0, 5, (2,))) for _ in range(3)]


@family
def fnet():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.l, self.head = nn.Embedding(13, 8), nn.Linear(8, 8), nn.Linear(8, 13)
        def forward(self, ids):
            x = self.emb(ids)
            x = x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
            return self.head(F.gelu(self.l(x)))
    return M(), token_loss, token_batches(13, 2, 6)


@family
def conformer():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 4, 3, 2), nn.ReLU())
            self.inp = nn.Linear(4 * 3, 16)
            self.ln = nn.LayerNorm(16)
            self.pw1, self.dw, self.bn, self.pw2 = nn.Conv1d(16, 32, 1), nn.Conv1d(16, 16, 5, padding=2, groups=16), nn.BatchNorm1d(16), nn.Conv1d(16, 16, 1)
            self.q, self.u, self.v, self.p = nn.Linear(16, 48), nn.Parameter(torch.randn(2, 8)), nn.Parameter(torch.randn(2, 8)), nn.Linear(16, 16, bias=False)
            self.head = nn.Linear(16, 6)
        def shift(self, x):  # Transformer-XL relative shift
            b, h, n, m = x.shape
            x = torch.cat([x.new_zeros(b, h, n, 1), x], -1).view(b, h, m + 1, n)
            return x[:, :, 1:].reshape(b, h, n, m)[..., : m // 2 + 1]
        def forward(self, mel):
            x = self.sub(mel.unsqueeze(1))
            b, c, t, f = x.shape
            x = self.inp(x.transpose(1, 2).reshape(b, t, c * f))
            q, k, v = (y.view(b, t, 2, 8) for y in self.q(self.ln(x)).chunk(3, -1))
            pos = torch.arange(t - 1, -t, -1).float()[:, None] * 10 ** (-torch.arange(0, 16, 2).float() / 16)
            p = self.p(torch.stack([pos.sin(), pos.cos()], -1).flatten(1)).view(1, -1, 2, 8)
            ac = (q + self.u).transpose(1, 2) @ k.permute(0, 2, 3, 1)
            bd = self.shift((q + self.v).transpose(1, 2) @ p.permute(0, 2, 3, 1))
            a = F.softmax((ac + bd) / 8**0.5, -1) @ v.transpose(1, 2)
            x = x + a.transpose(1, 2).reshape(b, t, 16)
            h = F.glu(self.pw1(x.transpose(1, 2)), 1)
            x = x + self.pw2(F.silu(self.bn(self.dw(h)))).transpose(1, 2)
            return F.log_softmax(self.head(x).mean(1), -1)
    return M(), F.nll_loss, [(torch.randn(2, 31, 15), torch.randint(0, 6, (2,))) for _ in range(3)]


class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 3)

    def pass_(self, x, edges):
        source, target = edges[0], edges[1]
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, torch.ones(target.shape[0])).clamp(min=1)
        norm = degree[source].rsqrt() * degree[target].rsqrt()
        return torch.zeros_like(x).index_add(0, target, x[source] * norm[:, None])

    def forward(self, x, edges):
        return self.b(self.pass_(F.relu(self.pass_(self.a(x), edges)), edges))


def graph_batches():
    return [((torch.randn(7, 5), torch.randint(0, 7, (2, 16))), torch.randint(0, 3, (7,))) for _ in range(3)]


class Gat(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.s, self.t, self.head = nn.Linear(5, 8), nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.randn(2, 4)), nn.Linear(8, 3)

    def forward(self, x, edges):
        h = self.w(x).view(-1, 2, 4)
        source, target = edges[0], edges[1]
        e = F.leaky_relu((h * self.s).sum(-1)[source] + (h * self.t).sum(-1)[target], 0.2)
        index = target[:, None].expand(-1, 2)
        top = torch.full((x.shape[0], 2), -1e9).scatter_reduce(0, index, e, "amax")
        e = torch.exp(e - top[target])
        total = torch.zeros(x.shape[0], 2).scatter_add(0, index, e)
        a = e / (total[target] + 1e-9)
        out = torch.zeros_like(h).scatter_add(0, target[:, None, None].expand(-1, 2, 4), h[source] * a[..., None])
        return self.head(F.elu(out.flatten(1)))


@family
def gat():
    return Gat(), F.cross_entropy, graph_batches()


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.mu, self.lv = nn.Linear(12, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.d = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 12))

    def forward(self, x, noise):
        h = torch.tanh(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        return self.d(mu + noise * torch.exp(0.5 * lv)), mu, lv


@family
def vae():
    def loss(o, x):
        y, mu, lv = o
        return F.binary_cross_entropy_with_logits(y, x, reduction="sum") / x.shape[0] - 0.5 * torch.mean(1 + lv - mu.pow(2) - lv.exp())
    return Vae(), loss, [((x := torch.rand(4, 12), torch.randn(4, 4)), x) for _ in range(3)]


@family
def vqvae():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.code, self.d = nn.Conv1d(3, 4, 3, padding=1), nn.Embedding(6, 4), nn.Conv1d(4, 3, 3, padding=1)
        def forward(self, x):
            z = self.e(x).transpose(1, 2)
            f = z.reshape(-1, 4)
            dist = f.pow(2).sum(1, keepdim=True) - 2 * f @ self.code.weight.t() + self.code.weight.pow(2).sum(1)
            q = self.code(dist.argmin(1)).view_as(z)
            loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            q = z + (q - z).detach()
            return F.mse_loss(self.d(q.transpose(1, 2)), x) + loss
    return M(), lambda o: o, [(torch.randn(2, 3, 8), ()) for _ in range(3)]


@family
def dlrm():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList([nn.EmbeddingBag(10, 4, mode=m) for m in ("sum", "mean")])
            self.bottom, self.top = nn.Sequential(nn.Linear(5, 4), nn.ReLU()), nn.Linear(7, 1)
        def forward(self, dense, a, b):
            z = torch.stack([self.bottom(dense), self.bags[0](a), self.bags[1](b)], 1)
            inter = torch.bmm(z, z.transpose(1, 2))
            i, j = torch.tril_indices(3, 3, -1)
            return self.top(torch.cat([z[:, 0], inter[:, i, j]], 1))
    inputs = [(torch.randn(4, 5), torch.randint(0, 10, (4, 3)), torch.randint(0, 10, (4, 3))) for _ in range(3)]
    return M(), F.binary_cross_entropy_with_logits, [(row, torch.randint(0, 2, (4, 1)).float()) for row in inputs]


@family
def mamba():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.inp, self.conv = nn.Embedding(13, 8), nn.Linear(8, 32, bias=False), nn.Conv1d(16, 16, 3, groups=16, padding=2)
            self.xp, self.dt, self.out, self.head = nn.Linear(16, 2 + 8, bias=False), nn.Linear(2, 16), nn.Linear(16, 8, bias=False), nn.Linear(8, 13)
            self.alog, self.d = nn.Parameter(torch.log(torch.arange(1, 5).float().repeat(16, 1))), nn.Parameter(torch.ones(16))
        def forward(self, ids):
            u = self.emb(ids)
            n = ids.shape[1]
            x, z = self.inp(u).chunk(2, -1)
            x = F.silu(self.conv(x.transpose(1, 2))[..., :n].transpose(1, 2))
            dt, bb, cc = self.xp(x).split([2, 4, 4], -1)
            dt = F.softplus(self.dt(dt))
            a = -torch.exp(self.alog)
            da = torch.exp(dt.unsqueeze(-1) * a)
            dbx = torch.einsum("bld,bln,bld->bldn", dt, bb, x)
            state, ys = torch.zeros(ids.shape[0], 16, 4), []
            for i in range(n):
                state = da[:, i] * state + dbx[:, i]
                ys.append(torch.einsum("bdn,bn->bd", state, cc[:, i]))
            y = torch.stack(ys, 1) + x * self.d
            return self.head(self.out(y * F.silu(z)))
    return M(), token_loss, token_batches(13, 2, 6)


def mlp(i=6, o=5):
    return nn.Sequential(nn.Linear(i, 12), nn.GELU(), nn.Linear(12, o))


def class_batches(i=6, o=5, b=6):
    return [(torch.randn(b, i), torch.randint(0, o, (b,))) for _ in range(3)]


@family
def loss_soft_targets():
    return mlp(), F.cross_entropy, [(torch.randn(6, 6), torch.rand(6, 5).softmax(-1)) for _ in range(3)]


@family
def loss_clip():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.s = mlp(6, 4), mlp(5, 4), nn.Parameter(torch.tensor(1.5))
        def forward(self, a, b):
            x, y = F.normalize(self.a(a), dim=-1), F.normalize(self.b(b), dim=-1)
            logits = torch.einsum("id,jd->ij", x, y) * self.s.exp()
            t = torch.arange(a.shape[0])
            return (F.cross_entropy(logits, t) + F.cross_entropy(logits.t(), t)) / 2
    return M(), lambda o: o, [((torch.randn(4, 6), torch.randn(4, 5)), ()) for _ in range(3)]


@family
def sorting():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = mlp(6, 8)
        def forward(self, x):
            y = self.n(x)
            s, i = torch.sort(y, dim=-1, descending=True)
            top, j = y.topk(3, dim=0)
            g = torch.gather(y, 1, i[:, :4])
            mx, k = y.max(1)
            ranked = (s * torch.arange(8)).sum() + top.pow(2).sum() + (g.cumsum(1) * 0.3).sum()
            return ranked + (mx * k).sum() + s[:, 2].sum() + y.amin(1).sum()
    return M(), lambda o: o, [(torch.randn(4, 6), ()) for _ in range(3)]


@family
def bn_frozen():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.b1, self.c2, self.b2, self.h = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)
            self.b1.running_mean.normal_(); self.b1.running_var.uniform_(0.5, 2)
        def train(self, mode=True):
            super().train(mode)
            self.b1.eval()
            return self
        def forward(self, x):
            return self.h(F.relu6(self.b2(self.c2(F.hardswish(self.b1(self.c1(x)))))).mean((2, 3)))
    return M(), F.cross_entropy, image_batches(5, 4, size=10)


@torch.jit.script
def _scan(x, w):
    h = torch.zeros_like(x[0])
    out = []
    for i in range(x.shape[0]):
        h = torch.tanh(x[i] + h @ w)
        out.append(h)
    return torch.stack(out)


@family
def loop_list():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.h = nn.Parameter(torch.randn(6, 6) * 0.4), nn.Linear(6, 5)
        def forward(self, x):
            return self.h(_scan(x, self.w))
    return M(), token_loss, [(torch.randn(4, 2, 6), torch.randint(0, 5, (4, 2))) for _ in range(3)]


@family
def unet_bicubic():
    return UNet("bicubic"), F.cross_entropy, dense_batches(18)


@family
def unet_convtranspose():
    return UNet("convtranspose"), F.cross_entropy, dense_batches(16)


@family
def grid_sample():
    return GridNet("bilinear", "border", False), F.cross_entropy, image_batches(3, 2, 2, 8)


class SqueezeExcite(nn.Module):
    """Inverted residual: expand, depthwise, squeeze and excite, project."""

    def __init__(self):
        super().__init__()
        self.stem, self.expand, self.project = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.Conv2d(8, 16, 1, bias=False), nn.Conv2d(16, 8, 1, bias=False)
        self.depthwise = nn.Conv2d(16, 16, 5, padding=2, groups=16, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(c) for c in (8, 16, 16, 8)])
        self.squeeze, self.excite, self.head = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1), nn.Linear(8, 5)

    def forward(self, x):
        x = F.hardswish(self.norms[0](self.stem(x)))
        y = F.hardswish(self.norms[1](self.expand(x)))
        y = F.hardswish(self.norms[2](self.depthwise(y)))
        y = y * F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return self.head((x + self.norms[3](self.project(y))).mean((2, 3)))


@family
def squeeze_excite():
    return SqueezeExcite(), F.cross_entropy, image_batches(5, 4)


class ShiftedWindows(nn.Module):
    """Attention in 4 x 4 windows, rolled by 2, with a table of relative positions and a mask at the seam."""

    def __init__(self):
        super().__init__()
        self.patch, self.qkv, self.out, self.head = nn.Conv2d(3, 8, 2, 2), nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 5)
        self.table = nn.Parameter(torch.randn(49, 2))
        c = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        relative = (c[:, :, None] - c[:, None, :]) + 3
        self.register_buffer("relative_position_index", relative[0] * 7 + relative[1])
        zones = torch.zeros(8, 8)
        for i, rows in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
            for j, columns in enumerate((slice(0, 4), slice(4, 6), slice(6, 8))):
                zones[rows, columns] = 3 * i + j
        zones = zones.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
        self.register_buffer("attn_mask", (zones[:, None] != zones[:, :, None]).float() * -100.0)

    def forward(self, x):
        x = self.patch(x).permute(0, 2, 3, 1)
        b = x.shape[0]
        w = torch.roll(x, (-2, -2), (1, 2)).view(b, 2, 4, 2, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(b * 4, 16, 8)
        q, k, v = self.qkv(w).view(b * 4, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / 2 + self.table[self.relative_position_index.view(-1)].view(16, 16, 2).permute(2, 0, 1)
        scores = (scores.view(b, 4, 2, 16, 16) + self.attn_mask[None, :, None]).view(b * 4, 2, 16, 16)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b * 4, 16, 8))
        y = torch.roll(y.view(b, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(b, 8, 8, 8), (2, 2), (1, 2))
        return self.head((x + y).mean((1, 2)))


@family
def shifted_windows():
    return ShiftedWindows(), F.cross_entropy, image_batches(5)


@family
def far_logits():
    """Losses whose spelled-out forms over- or underflow: PyTorch's gradients are finite, and so must ours be."""

    def loss(x, y):
        t = (y > 0).float()
        weighted = F.binary_cross_entropy_with_logits(x, t, pos_weight=torch.tensor([0.5, 2.0, 3.0, 1.0]))
        signs = -(t * F.logsigmoid(60 * x) + (1 - t) * F.logsigmoid(-60 * x)).mean()
        return weighted + signs + F.binary_cross_entropy_with_logits(80 * x, t) + torch.logaddexp(90 * x, -90 * x).mean() + F.softplus(50 * x).mean()

    return nn.Linear(5, 4), loss, [(torch.randn(6, 5), torch.randn(6, 4)) for _ in range(3)]


@family
def forward_sum():
    """The forward algorithm of CTC over a fixed alignment lattice, in the logarithm."""

    def loss(logits, labels):
        p = F.log_softmax(logits, -1)
        start = torch.full((labels.shape[0], 1), -1e4)
        a = torch.cat([p[:, 0].gather(1, labels[:, :1]), start.expand(-1, labels.shape[1] - 1)], 1)
        for t in range(1, p.shape[1]):
            a = torch.logaddexp(a, torch.cat([start, a[:, :-1]], 1)) + p[:, t].gather(1, labels)
        return -a[:, -1].mean()

    model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 6))
    return model, loss, [(torch.randn(3, 7, 5), torch.randint(0, 6, (3, 4))) for _ in range(3)]


class Towers(nn.Module):
    """Image and text towers with a learned temperature; an input is named like the value that the exporter makes of x.t()."""

    def __init__(self):
        super().__init__()
        self.image, self.text, self.logit_scale = nn.Conv2d(3, 8, 4, 4), nn.Embedding(12, 8), nn.Parameter(torch.tensor(2.0))

    def forward(self, i, t):
        a, b = F.normalize(self.image(i).mean((2, 3)), dim=-1), F.normalize(self.text(t).mean(1), dim=-1)
        return self.logit_scale.exp().clamp(max=100) * a @ b.t()


@family
def towers():
    def loss(x, y):
        return (F.cross_entropy(x, y) + F.cross_entropy(x.t(), y)) / 2

    return Towers(), loss, [((torch.randn(4, 3, 8, 8), torch.randint(0, 12, (4, 5))), torch.arange(4)) for _ in range(3)]


class Capsules(nn.Module):
    """Routing by agreement, three rounds."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 3, 4, 5) * 0.5)

    def forward(self, x):
        votes = torch.einsum("bij,iojk->biok", x.view(-1, 6, 4), self.weight)
        routes = torch.zeros_like(votes[..., 0])
        for turn in range(3):
            v = (routes.softmax(2).unsqueeze(-1) * votes).sum(1)
            n = (v**2).sum(-1, keepdim=True)
            v = n / (1 + n) * v / torch.sqrt(n + 1e-8)
            if turn < 2:
                routes = routes + (votes * v.unsqueeze(1)).sum(-1)
        return (v**2).sum(-1).add(1e-8).sqrt()


@family
def capsules():
    def margin(lengths, y):
        t = F.one_hot(y, 3).float()
        return (t * F.relu(0.9 - lengths) ** 2 + 0.5 * (1 - t) * F.relu(lengths - 0.1) ** 2).sum(1).mean()

    return Capsules(), margin, class_batches(24, 3)


class Sparsemax(nn.Module):
    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(5, 6)

    def forward(self, x):
        z = self.scores(x)
        ordered = torch.sort(z, dim=1, descending=True)[0]
        total, k = ordered.cumsum(1), torch.arange(1, z.shape[1] + 1, dtype=z.dtype)
        count = (1 + k * ordered > total).sum(1, keepdim=True)
        return torch.clamp(z - (total.gather(1, count - 1) - 1) / count.to(z.dtype), min=0)


@family
def sparsemax():
    return Sparsemax(), F.mse_loss, [(torch.randn(6, 5), torch.randn(6, 6)) for _ in range(3)]


class Deformable(nn.Module):
    """Attention over three learned places per pixel."""

    def __init__(self):
        super().__init__()
        self.stem, self.offset, self.weight, self.head = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, 1, 1), nn.Conv2d(6, 3, 1), nn.Linear(6, 4)

    def forward(self, x):
        h = F.relu(self.stem(x))
        base = F.affine_grid(torch.eye(2, 3).unsqueeze(0).expand(h.shape[0], 2, 3), h.shape, align_corners=False)
        offset, weight = torch.tanh(self.offset(h)).permute(0, 2, 3, 1), self.weight(h).softmax(1)
        seen = [F.grid_sample(h, base + 0.3 * offset[..., 2 * i : 2 * i + 2], align_corners=False) for i in range(3)]
        return self.head(sum(weight[:, i : i + 1] * seen[i] for i in range(3)).mean((2, 3)))


@family
def deformable():
    return Deformable(), F.cross_entropy, image_batches(4)


class PaddedTagger(nn.Module):
    """The padding row of an embedding has no gradient through the lookup; tied to the output it still has one from there."""

    def __init__(self):
        super().__init__()
        self.embed, self.positions = nn.Embedding(20, 12, padding_idx=-20), nn.Embedding(7, 12, padding_idx=1)
        self.gru = nn.GRU(12, 12, batch_first=True)

    def forward(self, tokens):
        x = self.gru(self.embed(tokens) + self.positions(torch.arange(tokens.shape[1])))[0]
        return F.linear(x, self.embed.weight)


@family
def padded():
    return PaddedTagger(), token_loss, token_batches(20, 3, 5)


class EdgeSoftmax(nn.Module):
    """Graph attention of two heads: several edges end in one node, so index_add meets repeated indices."""

    def __init__(self):
        super().__init__()
        self.value, self.score, self.out = nn.Linear(6, 16), nn.Linear(16, 2), nn.Linear(16, 3)

    def forward(self, nodes, edges):
        value, (source, target) = self.value(nodes), edges
        weight = F.leaky_relu(self.score(value)[source] + self.score(value)[target], 0.2).exp()
        total = torch.zeros(nodes.shape[0], 2).index_add(0, target, weight)
        share = (weight / total[target])[..., None]
        heads = value.view(-1, 2, 8)
        return self.out(torch.zeros_like(heads).index_add(-3, target, heads[source] * share, alpha=0.5).flatten(1))


@family
def edge_softmax():
    return EdgeSoftmax(), F.cross_entropy, [((torch.randn(7, 6), torch.randint(0, 7, (2, 15))), torch.randint(0, 3, (7,))) for _ in range(3)]


class FakeQuantised(nn.Module):
    """Quantisation-aware training: weights per channel, activations per tensor and in seven bits."""

    def __init__(self):
        super().__init__()
        self.convolution, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, image):
        scale, zero = torch.full((8,), 0.0012), torch.zeros(8, dtype=torch.int32)
        weight = torch.fake_quantize_per_channel_affine(self.convolution.weight, scale, zero, 0, -128, 127)
        x = torch.fake_quantize_per_tensor_affine(image, 0.015, 3, -128, 127)
        x = F.relu(F.conv2d(x, weight, self.convolution.bias, padding=1))
        return self.head(torch.fake_quantize_per_tensor_affine(x, 0.005, 0, 0, 127).mean((2, 3)))


@family
def fake_quantised():
    return FakeQuantised(), F.cross_entropy, image_batches(4, size=6)


class Splat(nn.Module):
    """Points thrown onto a grid and onto a row of bins: index_put adds where several points share a cell."""

    def __init__(self):
        super().__init__()
        self.features, self.grid, self.head = nn.Linear(4, 6), nn.Parameter(torch.randn(3, 3, 6)), nn.Linear(12, 5)

    def forward(self, points, cells):
        features, (row, column) = torch.tanh(self.features(points)), cells
        grid = self.grid.index_put((row, column), features, accumulate=True)
        bins = torch.zeros(3, 6).index_put((row,), features, accumulate=True)
        return self.head(torch.cat([grid.mean(1), bins], 1))


@family
def splat():
    return Splat(), F.cross_entropy, [((torch.randn(9, 4), torch.randint(0, 3, (2, 9))), torch.randint(0, 5, (3,))) for _ in range(3)]


class Aggregations(nn.Module):
    """Message passing by the mean, the largest and the product of what arrives; nodes that nothing reaches keep what they have."""

    def __init__(self):
        super().__init__()
        self.value, self.message, self.out = nn.Linear(6, 8), nn.Linear(16, 8), nn.Linear(40, 3)

    def forward(self, nodes, edges):
        value, (source, target) = torch.tanh(self.value(nodes)), edges
        message = self.message(torch.cat([value[source], value[target]], -1))
        to, start = target[:, None].expand_as(message), torch.zeros_like(value)
        return self.out(torch.cat([
            start.scatter_reduce(0, to, message, "mean", include_self=False),
            torch.scatter_reduce(value, 0, to, message, "mean"),
            value.scatter_reduce(0, to, message, "amax", include_self=False),
            start.scatter_reduce(0, to, 1 + 0.1 * message, "prod", include_self=False),
            value.scatter_reduce(0, to, message, "amin"),
        ], -1))  # fmt: skip


@family
def aggregations():
    def batch():
        return (torch.randn(7, 6), torch.randint(0, 5, (2, 12))), torch.randint(0, 3, (7,))

    return Aggregations(), F.cross_entropy, [batch() for _ in range(3)]


@family
def robust_losses():
    def loss(y, target):
        chance, hit = torch.sigmoid(y), (target > 0).float()
        cross = F.binary_cross_entropy(chance, hit) + F.binary_cross_entropy(chance, hit, torch.tensor([0.5, 1.0, 2.0, 0.1]), reduction="sum") / 24
        smooth = F.smooth_l1_loss(y, target) + F.smooth_l1_loss(y, target, beta=0.3, reduction="none").sum(1).mean()
        return cross + smooth + F.smooth_l1_loss(y, target, beta=0) + F.l1_loss(y, target) + F.huber_loss(y, target, delta=0.7)

    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4)), loss, [(torch.randn(6, 5), torch.randn(6, 4)) for _ in range(3)]


@family
def distances():
    """Every point is as far from itself as can be told: 0, where a root has no slope."""

    def loss(y, labels):
        same, apart = labels[:, None] == labels, torch.cdist(y, y)
        contrast = torch.where(same, apart.pow(2), F.relu(2 - apart).pow(2)).mean() + torch.cdist(y, y.flip(0), p=1).mean()
        return contrast + F.pairwise_distance(y[:3], y[3:], p=1).mean() + nn.PairwiseDistance(keepdim=True)(y[:3], y[3:]).mean() + apart.mean()

    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4)), loss, [(torch.randn(6, 5), torch.randint(0, 3, (6,))) for _ in range(3)]


class AttentionForms(nn.Module):
    """Every form of scaled_dot_product_attention: causal, masked by truth values (one row attends to nothing) and by a learned bias, heads in groups, another scale, keys of another length."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(20, 16), nn.RMSNorm(16)
        self.query, self.pair, self.grouped, self.out = nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(16, 16), nn.Linear(16, 20)
        self.bias = nn.Parameter(0.1 * torch.randn(1, 4, 7, 7))

    def forward(self, tokens, seen):
        attend, heads = F.scaled_dot_product_attention, lambda x, count=4: x.unflatten(2, (count, -1)).transpose(1, 2)
        x = self.embed(tokens)
        q = heads(self.query(self.norm(x)))
        k, v = (heads(part) for part in self.pair(x).chunk(2, 2))
        k2, v2 = (heads(part, 2) for part in self.grouped(x).chunk(2, 2))
        y = attend(q, k, v, is_causal=True) + attend(q, k, v, attn_mask=seen[:, None, :, None] & seen[:, None, None, :])
        y = y + attend(q, k2.repeat_interleave(2, 1), v2.repeat_interleave(2, 1), attn_mask=self.bias * 1, scale=0.3) + attend(q, k[:, :, :4], v[:, :, :4])
        return self.out(F.silu(y.transpose(1, 2).flatten(2)) + x)


@family
def attention_forms():
    seen = torch.ones(2, 7, dtype=torch.bool)
    seen[1, 5:] = False
    return AttentionForms(), token_loss, [((torch.randint(0, 20, (2, 7)), seen), torch.randint(0, 20, (2, 7))) for _ in range(3)]
