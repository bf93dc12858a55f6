"""What an ONNX graph takes and gives, read from the file without loading it: 1 ms, and no onnxruntime."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Buffer = bytes | mmap.mmap

# Field numbers of onnx.proto3: they are part of the format and never change.
_GRAPH = 7
_INITIALIZER, _INPUT, _OUTPUT = 5, 11, 12
_NAME, _TYPE = 1, 2
_TENSOR = 1
_ELEMENT, _SHAPE = 1, 2
_DIMENSION = 1
_VALUE = 1
_TENSOR_NAME, _TENSOR_LOCATION = 8, 14
_EXTERNAL = 1

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

ELEMENTS = {1: "float32", 6: "int32", 7: "int64", 10: "float16", 11: "float64"}
"""Names of the element types that an encoder may use, by their numbers in the format."""


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output: its name, element type (empty for one of no use here) and axes, None for a free one."""

    name: str
    element: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        axes = ", ".join("?" if axis is None else str(axis) for axis in self.shape)
        return f"{self.name} ({axes})"


@dataclass(frozen=True, slots=True)
class Signature:
    """What goes into a graph and what comes out, in the order of the file."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    external: bool
    """Whether weights lie in another file."""


def read_signature(path: Path) -> Signature:
    """Inputs and outputs of the graph in `path`.

    Raises: OSError; ValueError if it is no ONNX file.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _signature(data)


def _signature(data: Buffer) -> Signature:
    inputs: list[Value] = []
    outputs: list[Value] = []
    weights: set[str] = set()
    external, found = False, False
    for number, start, stop in _messages(data, 0, len(data)):
        if number != _GRAPH:
            continue
        found = True
        for kind, at, end in _messages(data, start, stop):
            if kind == _INPUT:
                inputs.append(_value(data, at, end))
            elif kind == _OUTPUT:
                outputs.append(_value(data, at, end))
            elif kind == _INITIALIZER:
                fields = list(_fields(data, at, end))
                weights |= {_text(data, value) for key, value in fields if key == _TENSOR_NAME}
                external |= any(key == _TENSOR_LOCATION and value == _EXTERNAL for key, value in fields)
    if not found or not outputs:
        raise ValueError("there is no graph in it")
    # Old exporters list the weights among the inputs.
    return Signature(tuple(each for each in inputs if each.name not in weights), tuple(outputs), external)


def _value(data: Buffer, start: int, stop: int) -> Value:
    name, element, shape = "", "", list[int | None]()
    for key, value in _fields(data, start, stop):
        if key == _NAME:
            name = _text(data, value)
        if key != _TYPE or not isinstance(value, tuple):
            continue
        for _, at, end in (message for message in _messages(data, *value) if message[0] == _TENSOR):
            for part, found in _fields(data, at, end):
                if part == _ELEMENT and isinstance(found, int):
                    element = ELEMENTS.get(found, "")
                elif part == _SHAPE and isinstance(found, tuple):
                    shape = [_axis(data, *axis) for number, *axis in _messages(data, *found) if number == _DIMENSION]
    return Value(name, element, tuple(shape))


def _axis(data: Buffer, start: int, stop: int) -> int | None:
    values = [value for key, value in _fields(data, start, stop) if key == _VALUE and isinstance(value, int)]
    # Zero and below stand for "any" in files of some exporters.
    return values[-1] if values and 0 < values[-1] < 2**31 else None


def _messages(data: Buffer, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    for key, value in _fields(data, start, stop):
        if isinstance(value, tuple):
            yield key, *value


def _fields(data: Buffer, start: int, stop: int) -> Iterator[tuple[int, int | tuple[int, int]]]:
    """Number and value of each field of a message: a number, or where the bytes stand."""
    at = start
    while at < stop:
        tag, at = _varint(data, at, stop)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at, stop)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at, stop)
        elif wire in {_FIXED64, _FIXED32}:
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError("its bytes are no ONNX graph")
        if number == 0 or at + length > stop:
            raise ValueError("it is cut off, or no ONNX graph")
        yield number, (at, at + length)
        at += length


def _varint(data: Buffer, at: int, stop: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= stop:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("it is cut off, or no ONNX graph")


def _text(data: Buffer, value: int | tuple[int, int]) -> str:
    if isinstance(value, int):
        raise ValueError("a name in it is a number")  # noqa: TRY004 - the file is wrong, not a type of ours
    return bytes(data[value[0] : value[1]]).decode("utf-8", "replace")
