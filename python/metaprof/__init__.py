"""What one training step of a neural network costs: memory to the byte, FLOPs, per layer.

    import metaprof
    r = metaprof.profile(model, (x, labels), device="rtx4090", precision="amp-bf16")
    r.fits, r.peak.allocated, r.modules, r.largest(10)

A model is an nn.Module (its steps are captured in this process, on a device that is not there), or the path of a `.pt2`, a
captured program (`.mp`), a Hugging Face `config.json` or its folder, or what a training function under
`@metaprof.capture` did. Options are those of the command line with `_`
for `-`. Bytes are bytes, FLOPs 2 per multiply-add, times seconds. What the program refuses is a `metaprof.Error` with
its message.
"""

# What is used is imported then: importing the package itself takes no time.
_WHERE = {
    "_program": ("Error", "program_path"),
    "_results": ("Captured", "Check", "Diff", "Fit", "Module", "Peak", "Profile", "Report", "Run", "Sweep", "Tensor"),
    "_capture": ("capture",),
    "_phase": ("phase",),
    "_watch": ("Watch", "watch"),
    "_api": ("advise", "assert_fits", "check", "cudagraphs", "diff", "estimate_memory", "export", "fit", "plan", "profile", "rent", "run", "sweep"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name == "__version__":
        from subprocess import check_output

        from ._program import program_path

        # "metaprof 0.3.0 (53149f918a)" is 0.3.0+53149f918a: the commit is a local version label.
        version, *commit = check_output([program_path(), "--version"], text=True).split()[1:]
        return "+".join([version, *(each.strip("()") for each in commit)])
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'metaprof' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module("." + module, __name__), name)


def __dir__():
    return __all__
