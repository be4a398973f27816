"""Whether a text that transformers generates is finished, where it asks the device.

Without data no text ends by itself: it is as long as it may be. The loops of transformers/generation/utils.py have the length so far
and the criteria for stopping among their variables (seen in 4.46.3 and 5.17.0).
"""
FILE = "/transformers/generation/utils.py"
ASKS_WHAT_IS_LEFT = "_beam_search_has_unfinished_sequences"  # where there is such a function, a beam search asks whether there is more to do


def answer_to(frame):
    """True or False for who reads a truth value in this frame; None: it is none of these loops."""
    if not frame.f_code.co_filename.endswith(FILE):
        return None
    asked_by = frame
    while frame is not None and frame.f_code.co_filename.endswith(FILE):
        variables = frame.f_locals
        if "this_peer_finished" in variables and "stopping_criteria" in variables:
            finished = _is_finished(variables)
            asks_what_is_left = frame is asked_by and hasattr(variables.get("self"), ASKS_WHAT_IS_LEFT)
            return None if finished is None else finished != asks_what_is_left
        frame = frame.f_back
    return None


def _is_finished(variables):
    longest = getattr(variables["stopping_criteria"], "max_length", None)
    if longest is None or "input_ids" not in variables:
        return None
    return max(variables["input_ids"].shape[-1], variables.get("cur_len") or 0) >= longest
