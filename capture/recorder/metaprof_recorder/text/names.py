"""How the text of a trace writes dtypes and tensors."""

DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8", "complex32": "c32", "complex64": "c64", "complex128": "c128",
    "float8_e5m2": "f8_e5m2", "float8_e4m3fn": "f8_e4m3fn", "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e4m3fnuz": "f8_e4m3fnuz",
}


def dtype_word(dtype):
    """"f32" of torch.float32 or "torch.float32"; None of what a trace has no word for."""
    return DTYPES.get(str(dtype).removeprefix("torch."))


def tensor_word(tensor):
    """"f32[3,4]", or None."""
    dtype = dtype_word(tensor.dtype)
    return f"{dtype}[{','.join(str(int(size)) for size in tensor.shape)}]" if dtype else None


def encodable(text):
    """The text with escapes where it is not Unicode: Python has names that are not."""
    return text.encode("utf-8", "backslashreplace").decode()


def quoted(text):
    """A word of a trace's text: in quotes where it has blanks and the like."""
    if text and all(character.isprintable() and character not in ' "\\' for character in text):
        return text
    escaped = "".join({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c, c if c.isprintable() else f"\\x{ord(c) & 255:02x}") for c in text)
    return f'"{escaped}"'
