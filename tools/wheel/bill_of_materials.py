#!/usr/bin/python3
"""tools/wheel/bill_of_materials.py PARTS VERSION COMMIT DATE: what a wheel is made of, as CycloneDX 1.5 in JSON on stdout.

PARTS: the parts.json of a folder that sysroot.py made. DATE: of the commit, YYYY-MM-DD. Parts that are in the wheel have the scope `required`.
Libraries that the program looks for on the user's machine are `optional`. The same arguments give the same bytes.
"""

from __future__ import annotations

import json
import sys
import urllib.parse
import uuid
from typing import Any


def component(part: dict[str, str]) -> dict[str, Any]:
    """A package as fetched: its hash is that of the file, the version is the distribution's."""
    version = urllib.parse.quote(part["version"], safe="")
    url = f"pkg:deb/{part['distribution']}/{urllib.parse.quote(part['package'], safe='')}@{version}"
    return {
        "type": "library",
        "bom-ref": url,
        "name": part["name"],
        "version": part["version"],
        "scope": "required" if part["how"] == "linked" else "optional",
        "licenses": [{"expression": part["license"]}],
        "purl": url,
        "hashes": [{"alg": "SHA-256", "content": part["sha256"]}],
    }


def bill(parts: list[dict[str, str]], version: str, commit: str, date: str) -> dict[str, Any]:
    own = f"pkg:pypi/metaprof@{version}"
    components = [component(part) for part in parts]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([own, commit, parts]))}",
        "version": 1,
        "metadata": {
            "timestamp": f"{date}T00:00:00Z",
            "component": {"type": "application", "bom-ref": own, "name": "metaprof", "version": version, "purl": own,
                          "licenses": [{"license": {"id": "Apache-2.0"}}],
                          "properties": [{"name": "commit", "value": commit}]},
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [each["bom-ref"] for each in components]}],
    }


def main() -> None:
    if len(sys.argv) != 5:
        sys.exit(__doc__.splitlines()[0])
    path, version, commit, date = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        json.dump(bill(json.load(file), version, commit, date), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
