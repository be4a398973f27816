"""Prints what decides the figures of `metaprof selftest` on this machine, one JSON object: versions, and the first device where there is one."""
import ctypes
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from metaprof_recorder.pytorch.devices import cudnn, properties  # noqa: E402


def driver():
    """The driver's release, "580.82.07"; None where nobody says it."""
    text = ctypes.create_string_buffer(96)
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() == 0 and library.nvmlSystemGetDriverVersion(text, 96) == 0:
            return text.value.decode()
    except (OSError, AttributeError):
        pass
    return None


def cudnn_library(torch):
    """The cuDNN that came with this PyTorch; None where it is the system's."""
    packages = pathlib.Path(torch.__file__).resolve().parents[1]
    files = (packages / folder / "libcudnn.so.9" for folder in ("nvidia/cudnn/lib", "torch/lib"))
    return next((str(file) for file in files if file.exists()), None)


def main():
    found = {"python": sys.version.split()[0]}
    try:
        import torch
        found |= {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn_library": cudnn_library(torch)}
        if torch.cuda.is_available():
            found |= {"cudnn": cudnn(torch), "driver": driver(), "device": properties(torch, 0)}
    except Exception as error:  # noqa: BLE001 - a PyTorch that is broken is none
        found["problem"] = f"{type(error).__name__}: {error}".split("\n")[0]
    print(json.dumps(found))


main()
