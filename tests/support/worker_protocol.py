# SPDX-License-Identifier: Apache-2.0
"""Messages of protobuf as bytes, without its library, and a worker to which scripts speak with them (engine/snapshot/worker.proto)."""

import struct
import subprocess


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(key, value):
    """Of a message: an integer, a text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(key << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(key << 3 | 2) + varint(len(value)) + value


def fields(message):
    """{number: [values]}"""
    found, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            value = number()
        else:
            length = {1: 8, 5: 4}.get(tag & 7) or number()
            value = message[at : at + length]
            at += length
        found.setdefault(tag >> 3, []).append(value)
    return found


class Worker:
    def __init__(self, *command, **streams):
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **streams)
        self.last = 0

    def ask(self, request, body=b""):
        """All answers, the last one last, and what is told beside them: (kind, message) each."""
        self.last += 1
        frame = field(1, self.last) + field(request, body)
        self.process.stdin.write(struct.pack("<I", len(frame)) + frame)
        self.process.stdin.flush()
        answers = []
        while True:
            (length,) = struct.unpack("<I", self.process.stdout.read(4))
            answer = fields(self.process.stdout.read(length))
            kind = next((n for n in answer if n > 2), 0)
            answers.append((kind, answer[kind][0] if kind else b""))
            if answer.get(1) == [self.last] and answer.get(2) == [1]:
                return answers
