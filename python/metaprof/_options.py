"""The options of a step: those of the command line with `_` for `-`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Sequence, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import TypedDict
else:
    from typing import TypedDict

Size = Union[int, str]  #: bytes, or as "24GiB"
_T = TypeVar("_T")
Values = Union[_T, Sequence[_T]]  #: one, or for `fit` and `sweep` a list: a run for each


class StepOptions(TypedDict, total=False):
    """Options of profile, fit, sweep and check. Those that are not given are as on the command line."""

    host_memory: Size  #: memory of this machine that metaprof may use [half of it]
    precision: Values[str]  #: fp32, bf16, fp16, amp-bf16, amp-fp16 ["fp32"]
    optimizer: Values[str]  #: none, sgd, adamw …; an unknown word lists them; of a module an object, too ["adamw"]
    optimizer_impl: Values[str]  #: default, foreach, for-loop, fused ["default"]
    steps: Values[int]  #: training steps in a row [3]
    accumulate: Values[int]  #: micro-batches per step [1]
    clip_norm: Values[float]  #: clip the norm of all gradients to it
    clip_value: Values[float]  #: clip each gradient to it
    zero_grad_to_none: Values[bool]  #: True: free gradients; False: fill them with 0 [True]
    channels_last: bool  #: parameters and inputs in channels_last
    checkpoint: Values[str]  #: modules that backward recomputes: paths with shell wildcards, "layers.*"
    checkpoint_reentrant: bool  #: checkpoint by the reentrant method
    mode: Values[str]  #: train, eval, no-grad, inference ["train"]
    anomaly: bool  #: check every gradient for NaN, as set_detect_anomaly does
    hooks: Values[str]  #: how saved tensors are kept: none, offload, offload-pinned, pack=bf16, pack=fp16 ["none"]
    grad: str  #: compute gradients of these inputs, and of no parameter: "x,y"
    create_graph: bool  #: with grad: add their squares to the loss before backward (a gradient penalty)
    hvp: bool  #: with grad: differentiate again (a product of the Hessian and a vector)
    condition: Values[str]  #: of torch.cond: "true" or "false" [both; the one with the higher peak]
    trips: Values[int]  #: of while_loop: how often it runs its body [1, beside 2]
    execution: Values[str]  #: eager, or graph: compiled ["eager"]
    strict: bool  #: make unsupported operators and assumptions an error
    #: train only adapters beside linear modules: {"r": 16, "targets": ["q_proj", "v_proj"]}, also "alpha",
    #: "dropout", "dtype" ("fp32", "model"), "targets": "all-linear"; or as on the command line
    lora: Union[str, Mapping[str, Union[str, int, float, Sequence[str]]]]
    base_weights: Values[str]  #: weights of linear modules, frozen: nf4, nf4-double, fp4, fp4-double, int8
    kv_cache: Values[int]  #: tokens in a decoder's cache before the call; with mode="inference"
    batch: Values[int]  #: batch size instead of the model's
    sequence: Values[int]  #: length instead of the model's
    set: Mapping[str, Union[str, int, Sequence[int]]]  #: shapes or values of inputs: {"input_ids": (2, 512)}
    input: Mapping[str, Union[str, int, float, bool]]  #: what an archive of torch.jit.save takes: {"x": "f32[8,3,224,224]"}
    device: Values[str]  #: a card, "cpu", or the path of a device's file ["h200"]
    memory: Values[Size]  #: memory of the device, instead of its own
    context: Values[Size]  #: memory outside the allocator; "none" [from reports of such cards]
    margin: str  #: share of the memory to leave free, "5%" ["0%"]
    framework: Values[str]  #: version of PyTorch, "2.6" to "2.15"; else the one that wrote the model
    alloc_conf: str  #: allocator settings, as in PYTORCH_ALLOC_CONF
    env: Mapping[str, str]  #: environment variables of the process: {"CUBLAS_WORKSPACE_CONFIG": …}
    workspaces: Values[str]  #: workspaces of cuDNN's plans: auto, none, or a file of measured ones ["auto"]


class ProfileOptions(StepOptions, total=False):
    lengths: str  #: of a configuration or export: all batches of an epoch, by a file of samples' tokens, or "512:4000,1024:90"
    bucket: int  #: with lengths: sort the samples of this many batches by length
    max_tokens: int  #: with lengths: as many samples in a batch as this many tokens hold
    empty_cache_every: int  #: with lengths: call torch.cuda.empty_cache() after this many steps


class FitOptions(ProfileOptions, total=False):
    find: str  #: "batch" or "sequence" ["batch"]; with lengths "tokens"
    plan: bool  #: each size with the best recomputation plan


class SweepOptions(ProfileOptions, total=False):
    shard: str  #: "3/16": only the third of sixteen parts of the combinations


class CheckOptions(StepOptions, total=False):
    tolerance: Union[str, float]  #: largest error of a peak, "1%" or 0.01


class DiffOptions(TypedDict, total=False):
    top: int  #: figures besides what changed by cause: the totals and N others; -1: all [0]


class RunOptions(TypedDict, total=False):
    """Options of run and capture."""

    host_memory: Size  #: memory of this machine that metaprof may use [half of it]
    device: str  #: a card, or the path of a device's file ["h200"]
    memory: Size  #: memory of the device, instead of its own
    context: Size  #: what the device's context and kernels take of its memory, or "none" [as reported for such cards]
    gpus: int  #: devices of the machine [1]
    world_size: int  #: run one rank of an N-rank job, or some of them
    rank: Union[int, list[int]]  #: the rank to run, or several, which run beside each other [0]
    ranks: str  #: "all-different": the first rank and those that it sends to or receives from, or the last one
    steps: int  #: stop the program after this number of optimizer steps
    detail: int  #: steps whose every memory request is kept [3]
    timeout: float  #: stop the program after this time
    alloc_conf: str  #: allocator settings, as in PYTORCH_ALLOC_CONF
    workspaces: str  #: workspaces of cuDNN's plans: auto or none ["auto"]
    assume: str  #: data-dependent sizes: "even", or FILE:LINE=N
    env: Mapping[str, str]  #: environment variables for the program
    costs: bool  #: FLOPs and expected time of the first step, too: the program is captured for them
    fixes: bool  #: run the program again with each change that may take less memory
    events: bool  #: keep the allocator's history, beside the report's file
    save: str  #: save the program that was run, as a .mp
    tolerance: Union[str, float]  #: of a saved program: largest error of a peak when it is repeated, "1%" or 0.01
    device_clock: str  #: when work of the device is complete: at-once, or late ["at-once"]
    real: bool  #: use this machine's GPU instead of an emulated one
