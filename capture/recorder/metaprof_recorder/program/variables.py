"""What running functions and objects refer to. No code of the program is called, and nothing is kept."""
import sys

OPTIMIZED = 1  # flag of code: variables are no dictionary (CO_OPTIMIZED)


def variables_of(frame):
    """(name, value) of a running function, or of a module that is being imported."""
    if not frame.f_code.co_flags & OPTIMIZED:
        return [(name, value) for name, value in list(frame.f_locals.items()) if not name.startswith("__")]
    if sys.version_info < (3, 13) and sys.gettrace() is not None:
        return []  # once asked for, Python gives them to the tracer before each line, and keeps what they held meanwhile
    variables = frame.f_locals
    found = list(variables.items())
    # Before Python 3.13 this is a dictionary that the function keeps, and with it what its variables held: unless the program has it, too, it goes.
    if type(variables) is dict and sys.getrefcount(variables) <= 3:
        variables.clear()
    return found


def attributes_of(value):
    """The dictionary of an object's attributes; None: it has none."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except Exception:  # noqa: BLE001 - it has none
        return None
    return found if type(found) is dict else None
