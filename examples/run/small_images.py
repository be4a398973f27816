"""Writes a few images of two classes into FOLDER/train and FOLDER/validation, for programs that want a folder of them.

    small_images.py FOLDER
"""
import pathlib
import sys

from PIL import Image

for part in ("train", "validation"):
    for label in ("dark", "light"):
        folder = pathlib.Path(sys.argv[1], part, label)
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(16):
            grey = number + (200 if label == "light" else 0)
            Image.new("RGB", (96, 96), (grey, grey, grey)).save(folder / f"{number}.jpg")
