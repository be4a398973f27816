"""Writes a program into a notebook of one cell.

    as_notebook.py PROGRAM.py NOTEBOOK.ipynb
"""
import pathlib
import sys

import nbformat

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(pathlib.Path(sys.argv[1]).read_text())])
nbformat.write(notebook, sys.argv[2])
