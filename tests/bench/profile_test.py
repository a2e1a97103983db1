#!/usr/bin/env python3
"""Kinds of ops and the table of two profiles, without a model and without PyTorch."""
import unittest

from op_kinds import KINDS, OURS, kind_of_ours, kind_of_torch, side_by_side
from step_bench import between_kernels, between_steps, our_profile


class Kinds(unittest.TestCase):
    def test_operators_of_pytorch(self):
        for name, kind in {"aten::addmm": "matmul", "aten::mm": "matmul", "aten::bmm": "matmul", "aten::mul": "elementwise", "aten::add_": "elementwise",
                           "aten::_softmax_backward_data": "softmax", "aten::_log_softmax": "loss", "aten::nll_loss_backward": "loss", "aten::sum": "reduction",
                           "aten::native_layer_norm_backward": "normalisation", "aten::convolution_backward": "convolution", "aten::mkldnn_convolution": "convolution",
                           "aten::embedding_dense_backward": "embedding", "aten::gelu_backward": "elementwise", "aten::threshold_backward": "elementwise",
                           "aten::_scaled_dot_product_flash_attention_for_cpu_backward": "attention", "aten::_fused_adamw_": "optimizer", "aten::copy_": "movement",
                           "aten::max_pool2d_with_indices": "reduction", "aten::native_batch_norm": "normalisation", "aten::native_dropout": "dropout",
                           "aten::t": "movement", "aten::tanh": "elementwise", "AddmmBackward0": "other", "aten::something_new": "other"}.items():
            self.assertEqual(kind_of_torch(name), kind, name)

    def test_our_ops(self):
        self.assertEqual(kind_of_ours("Product", "matmul"), "matmul")
        self.assertEqual(kind_of_ours("MaskedSoftmax", "activation"), "softmax")
        self.assertEqual(kind_of_ours("SoftmaxGrad", "activation"), "softmax")
        self.assertEqual(kind_of_ours("Gelu", "activation"), "elementwise")
        self.assertEqual(kind_of_ours("GatherGrad", "movement"), "embedding")
        self.assertEqual(kind_of_ours("AdamUpdate", "optimizer"), "optimizer")
        self.assertTrue(set(OURS.values()) <= set(KINDS))


class Profiles(unittest.TestCase):
    def report(self):
        def instruction(position, op, category, phase, ns, n=3, view=False):
            return {"position": position, "op": op, "category": category, "phase": phase, "view": view, "time": {"n": n, "median_ns": ns}}

        return {"timing": {"step": {"median_ns": 10_000_000},
                           "instructions": [instruction(0, "Product", "matmul", "forward", 4_000_000), instruction(1, "Reshape", "movement", "forward", 1_000, view=True),
                                            instruction(2, "Product", "matmul", "backward", 3_000_000), instruction(3, "Gelu", "activation", "recompute", 500_000),
                                            instruction(4, "AdamUpdate", "optimizer", "optimizer", 1_000_000), instruction(5, "Add", "elementwise", "forward", 7, n=0)]},
                "roofline": {"instructions": [{"position": 0, "roof_ns": 2_000_000.0}, {"position": 2, "roof_ns": 1_500_000.0}]}}

    def test_ours_by_phase_and_kind(self):
        profile, roofs = our_profile(self.report())
        self.assertEqual(profile, {"step": 10.0, "forward": {"matmul": 4.0}, "backward": {"matmul": 3.0, "elementwise": 0.5}, "optimizer": {"optimizer": 1.0}})
        self.assertEqual(roofs, {"matmul": [7.0, 3.5]})

    def test_table_adds_up(self):
        profile, _ = our_profile(self.report())
        theirs = {"step": 20.0, "forward": {"matmul": 8.0}, "backward": {"matmul": 6.0, "attention": 1.0}, "optimizer": {"optimizer": 2.0}}
        rows = {line[:14].strip(): line[14:].split() for line in side_by_side(profile, theirs)[1:]}
        self.assertEqual(rows["matmul"], ["4.00", "8.00", "3.00", "6.00", "–", "–", "7.00", "14.00", "0.50"])
        self.assertEqual(rows["attention"], ["–", "–", "–", "1.00", "–", "–", "–", "1.00", "–"])
        self.assertEqual(rows["all ops"][-3:], ["8.50", "17.00", "0.50"])
        self.assertEqual(rows["between ops"], ["1.50", "3.00", "0.50"])
        self.assertEqual(rows["step"], ["10.00", "20.00", "0.50"])
        self.assertNotIn("convolution", rows)

    def test_what_a_step_costs_beside_its_kernels(self):
        def event(ts, dur, instruction):
            return {"ph": "X", "ts": ts, "dur": dur, "args": {"instruction": instruction}}

        phases = [{"ph": "X", "ts": 0.0, "dur": 900.0, "args": {}}, {"ph": "M", "args": {"name": "worker"}}]
        trace = {"traceEvents": phases + [event(10.0, 5.0, 0), event(18.0, 1.0, 1), event(100.0, 5.0, 0), event(112.0, 8.0, 2), event(106.0, 4.0, 1)]}
        self.assertEqual(between_kernels(trace), [3.0, 3.0])
        self.assertEqual(between_steps(trace), [81.0])


if __name__ == "__main__":
    unittest.main()
