"""Python imports this at its start when `metaprof run` has put this folder on PYTHONPATH.

It attaches the recorder, and then does what would have happened without it: a sitecustomize of the user's own is run.
"""
import importlib.machinery
import importlib.util
import os
import sys


def _run_next_sitecustomize(folder):
    """The first sitecustomize of another folder becomes the module of that name, as if this one were not there."""
    others = [path for path in sys.path if os.path.abspath(path or os.getcwd()) != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _attach():
    folder = os.path.dirname(os.path.abspath(__file__))
    # Within another run the recorder of that one, from another folder, comes next.
    if os.environ.get("METAPROF_RECORD") and "metaprof_recorder.bootstrap" not in sys.modules:
        import metaprof_recorder.bootstrap
        metaprof_recorder.bootstrap.attach()
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.getcwd()) != folder]
    _run_next_sitecustomize(folder)


_attach()
