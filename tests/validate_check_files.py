#!/usr/bin/env python3
"""validate_check_files.py JUNIT SARIF: what `metaprof check` wrote is XML with right counts, and SARIF 2.1.0 with
the members that the standard requires. Prints what the files say; exits with 1 where they are wrong."""

import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree


def check_junit(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == "testsuites", root.tag
    for element in [root, *root.findall("testsuite")]:
        cases = list(element.iter("testcase"))
        failures = [failure for case in cases for failure in case.findall("failure")]
        assert int(element.get("tests")) == len(cases), element.attrib
        assert int(element.get("failures")) == len(failures), element.attrib
    for case in root.iter("testcase"):
        assert case.get("name") and case.get("classname"), case.attrib
        print("case", case.get("name"), *(failure.get("message") for failure in case.findall("failure")))


def check_sarif(path):
    log = json.loads(pathlib.Path(path).read_text())
    assert log["version"] == "2.1.0", log["version"]
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "metaprof"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules), rules
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"], result
        assert result["level"] in ("none", "note", "warning", "error"), result
        for location in result["locations"] + result.get("relatedLocations", []):
            physical = location["physicalLocation"]
            urllib.parse.urlparse(physical["artifactLocation"]["uri"])
            assert " " not in physical["artifactLocation"]["uri"]
            assert physical["region"]["startLine"] >= 1
        first = result["locations"][0]["physicalLocation"]
        print("result", result["ruleId"], f"{first['artifactLocation']['uri']}:{first['region']['startLine']}",
              result["message"]["text"])


check_junit(sys.argv[1])
check_sarif(sys.argv[2])
