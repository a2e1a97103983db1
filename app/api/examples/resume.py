# SPDX-License-Identifier: Apache-2.0
"""Trains with a warm-up and a cosine, stops in the middle, and goes on from the checkpoint: the same losses and rates as in one go.

    resume.py MODEL.onnx DATA.npz STATE.safetensors
"""

import sys

import stepscope

STEPS, STOP = 12, 5


def opened(model, data):
    return stepscope.open(model, {"lr-schedule": "cosine", "warmup-steps": 3, "total-steps": STEPS}, data=data, optimizer="adamw", lr=0.02)


def main(model, data, state):
    with opened(model, data) as session:
        whole = [session.step() for _ in range(STEPS)]
    with opened(model, data) as session:
        for _ in range(STOP):
            session.step()
        session.properties.update({"epoch": 1, "best loss": min(r.loss for r in whole[:STOP]), "note": "stopped on purpose"})
        session.save(state)
    with opened(model, data) as session:
        session.build()
        session.load(state, resume=True)
        print(f"goes on at epoch {session.properties['epoch']} ({session.properties['note']}), rate {session.learning_rate:.6f}")
        rest = [session.step() for _ in range(STEPS - STOP)]
        print(f"evaluation: {session.evaluate()}")
    for a, b in zip(whole[STOP:], rest):
        print(f"step {b.step}: loss {b.loss:.6f}, rate {b.learning_rate:.6f}")
        if (a.loss, a.learning_rate) != (b.loss, b.learning_rate):
            sys.exit(f"step {b.step}: {a.loss} at {a.learning_rate} in one go")


if __name__ == "__main__":
    main(*sys.argv[1:])
