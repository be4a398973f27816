"""Memory runs out: the allocator's observer."""


class OutOfMemory:
    def __init__(self, recorder, module_path):
        """`module_path()`: of the module that this thread runs."""
        self._recorder, self._module_path = recorder, module_path
        self.count = 0

    def install(self):
        self._recorder.torch._C._cuda_attach_out_of_memory_observer(self._ran_out)

    def _ran_out(self, device, requested, device_total, device_free):
        recorder = self._recorder
        now = recorder.statistics.now(device)
        line, function = recorder.sources.of_stack(recorder.thread)
        row = {
            "device": device, "requested": requested, "device_free": device_free, "line": line, "function": function,
            "phase": recorder.phases.name, "step": recorder.phases.step, "module": self._module_path(),
            "allocated_bytes": now["allocated_bytes"]["current"], "reserved_bytes": now["reserved_bytes"]["current"]}
        self.count += 1
        recorder.output.write("out_of_memory", **row)
        recorder.peaks.ran_out(device)
        recorder.phases.memory_ran_out()
        if recorder.capture:  # before it fails, the allocator gives back what it has cached; the call that failed is not in the program
            recorder.capture.step("empty_cache()")
