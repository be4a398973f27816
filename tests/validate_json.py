#!/usr/bin/env python3
"""validate_json.py SCHEMA FILE...: checks JSON files against a JSON Schema (python3-jsonschema).

Prints one line per violation and exits with 1; with 77 if the module is not installed.
"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    validator = jsonschema.Draft7Validator(schema)
    validator.check_schema(schema)
    violations = 0
    for name in sys.argv[2:]:
        for error in validator.iter_errors(json.loads(pathlib.Path(name).read_text())):
            print(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message}")
            violations += 1
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
