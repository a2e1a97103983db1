"""Milliseconds of each training step in PyTorch of the small models that step_bench.py --load times. Prints one JSON line.

    python torch_small.py gpt2_lm [--steps 200]
"""
import argparse
import json
import time

import torch


def gpt2_lm():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=384, n_positions=64, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    ids = torch.randint(0, 384, (2, 32))
    return GPT2LMHeadModel(config), lambda model: model(input_ids=ids, labels=ids).loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=["gpt2_lm"])
    parser.add_argument("--steps", type=int, default=200)
    a = parser.parse_args()
    torch.manual_seed(0)
    model, loss = globals()[a.name]()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    times = []
    for _ in range(a.steps + 2):
        start = time.perf_counter()
        loss(model).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"ms": times[2:]}))


main()
