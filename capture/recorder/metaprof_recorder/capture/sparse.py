"""Sparse tensors in a captured program: those that no call has made are made of their parts, by a call."""
from metaprof_recorder.text.arguments import LAYOUTS


class SparseTensors:
    def __init__(self, capture, torch):
        self._capture, self._strided, self._coordinates = capture, torch.strided, torch.sparse_coo
        self._by_columns = (torch.sparse_csc, torch.sparse_bsc)
        self._compressed = {getattr(torch, name): LAYOUTS.index(name) for name in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")}

    def is_one(self, tensor):
        return tensor.layout is not self._strided and (tensor.layout is self._coordinates or tensor.layout in self._compressed)

    def meet(self, tensor):
        """The number of one that no call has made."""
        capture = self._capture
        with capture.dispatch.off():
            if tensor.layout is self._coordinates:
                parts, coalesced = (tensor._indices(), tensor._values()), tensor.is_coalesced()
            elif tensor.layout in self._by_columns:
                parts = tensor.ccol_indices(), tensor.row_indices(), tensor.values().detach()
            else:
                parts = tensor.crow_indices(), tensor.col_indices(), tensor.values().detach()
        numbers = ", ".join(f"%{capture.values.use(part)}" for part in parts)
        number = capture.values.new(tensor)
        sizes = [int(size) for size in tensor.shape]
        if tensor.layout is self._coordinates:
            capture.add(f"%{number} = aten::_sparse_coo_tensor_unsafe({numbers}, {sizes}, is_coalesced={coalesced})")
        else:
            layout = self._compressed[tensor.layout]
            capture.add(f"%{number} = aten::_sparse_compressed_tensor_unsafe({numbers}, {sizes}, layout={layout})")
        if tensor.requires_grad:
            capture.add(f"step::requires_grad(%{number}, True)")
        return number
