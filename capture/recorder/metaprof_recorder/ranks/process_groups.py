"""One rank of a large job, run alone: `--world-size N --rank R`.

The program's process groups become those of torch's own "fake" backend, whatever backend it asks for: the rendezvous is
answered for the other ranks, and a collective succeeds at once and leaves its result as it was. Buffers that the program and
torch allocate for collectives are there; what a communication library takes for itself is not.
"""
import contextlib
import functools
import os
import sys

from metaprof_recorder.ranks import peers


def alone():
    """Whether one rank runs without the others."""
    return bool(os.environ.get("METAPROF_RECORD_WORLD"))


def represent(torch):
    """Does nothing unless the environment asks for it."""
    if not alone() or not torch.distributed.is_available():
        return
    world, rank = int(os.environ["METAPROF_RECORD_WORLD"]), int(os.environ["RANK"])
    if os.environ.get("METAPROF_RECORD_RANKS"):
        peers.begin(os.environ["METAPROF_RECORD_RANKS"], rank, world)
    from torch.distributed import distributed_c10d
    _reduce_gradients(torch)

    original_init, original_group = distributed_c10d.init_process_group, distributed_c10d.new_group

    @functools.wraps(original_init)
    def init_process_group(*arguments, **options):
        from torch.testing._internal.distributed.fake_pg import FakeStore
        return original_init(backend="fake", store=FakeStore(), rank=rank, world_size=world)

    @functools.wraps(original_group)
    def new_group(ranks=None, timeout=None, backend=None, pg_options=None, *arguments, **options):
        return original_group(ranks, timeout, None, None, *arguments, **options)

    for name in ("torch.distributed", "torch.distributed.distributed_c10d", "torch.distributed.device_mesh"):
        module = sys.modules.get(name)
        for function in (init_process_group, new_group):
            if module is not None and hasattr(module, function.__name__):
                setattr(module, function.__name__, function)


def _reduce_gradients(torch):
    """DistributedDataParallel asks the work of a reduction for its result. That of the fake backend has none, so a hook gives it, unless
    the program has registered one."""
    owner = torch.nn.parallel.DistributedDataParallel
    register, forward = owner.register_comm_hook, owner._pre_forward
    hooked = "_metaprof_hooked"

    @functools.wraps(register)
    def register_comm_hook(self, *arguments, **options):
        self.__dict__[hooked] = True
        return register(self, *arguments, **options)

    def reduce(state, bucket):
        torch.distributed.all_reduce(bucket.buffer(), group=state)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    @functools.wraps(forward)
    def pre_forward(self, *arguments, **options):
        if not self.__dict__.get(hooked):
            self.__dict__[hooked] = True
            torch.distributed._register_comm_hook(self.reducer, self.process_group, reduce)
        return forward(self, *arguments, **options)

    owner.register_comm_hook, owner._pre_forward = register_comm_hook, pre_forward


def wait_for_ranks():
    """Until a communication library has let go of the tensors that it has finished with. Its own thread looks for them ten times a second,
    which no step of a real device is too short for; a step of an emulated one is."""
    torch = sys.modules["torch"]
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return
    for group in list(torch.distributed.distributed_c10d._world.pg_map):
        with contextlib.suppress(AttributeError, RuntimeError):  # the library, or the version, does not say
            group._wait_for_pending_works()
