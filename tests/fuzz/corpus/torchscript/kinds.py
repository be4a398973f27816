class M(Module):
  __parameters__ = []
  __buffers__ = []
  n : int
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    _0 = __torch__.pair
    y, z, = torch.chunk(x, 2, 1)
    outs = annotate(List[Tensor], [])
    for i in range(self.n):
      y = torch.mul(torch.add(y, z), torch.div(i, 2))
      if torch.gt(i, 1):
        _1 = torch.append(outs, torch.relu(y))
      else:
        pass
    k = 0
    while torch.lt(k, 2):
      k = torch.add(k, 1)
    d = {"a": y, "b": z}
    if self.training:
      w = torch.cat(outs, 0)
    else:
      w = d["a"]
    p = _0(w, d["b"], )
    if torch.ne(torch.dim(x), 2):
      ops.prim.RaiseException(torch.format("got {}", torch.size(x)), "builtins.ValueError")
    else:
      pass
    return torch.sum(p.first, dtype=ops.prim.dtype(x))
class Pair(NamedTuple):
  first : Tensor
  second : Tensor
def pair(a: Tensor,
    b: Tensor,
    flag: bool=True) -> __torch__.Pair:
  if torch.__isnot__(b, None):
    c = unchecked_cast(Tensor, b)
  else:
    c = a
  return __torch__.Pair(a, torch.slice(c, 0, None, -1))
