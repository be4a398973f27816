#!/usr/bin/env python3
"""Estimates a model, compares it with a baseline, and comments on the pull request. action.yml runs it, with environment variables:

    METAPROF     the program                      MODEL, OPTIONS  what is profiled
    BASELINE     an earlier report; may be empty  TOLERANCE       how much a figure may grow
    COMMENT      true: comment                    GITHUB_…        as GitHub Actions sets them

The exit status is 1 if the step does not fit or grew by more than the tolerance, and 2 if something could not be read.
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import urllib.request

MARK = "<!-- metaprof -->"  # by which the comment of an earlier run is found


def metaprof(*words):
    run = subprocess.run([os.environ["METAPROF"], *words], stdout=subprocess.PIPE, text=True, check=False)
    return run.returncode, run.stdout


def estimate(report):
    """The worst exit status, and what there is to say as Markdown."""
    model, options = os.environ["MODEL"], shlex.split(os.environ.get("OPTIONS", ""))
    baseline, tolerance = os.environ.get("BASELINE", ""), os.environ.get("TOLERANCE") or "2%"
    status, text = metaprof("profile", model, *options, "--json", report, "--markdown")
    if status == 2 or not baseline:
        return status, text
    _, difference = metaprof("diff", baseline, report, "--markdown")
    checked, said = metaprof("check", model, "--baseline", baseline, "--tolerance", tolerance)  # with the options of the baseline
    finding = f"❌ More than {tolerance} above the baseline:\n\n```\n{said}```\n\n" if checked == 1 else ""
    return max(status, checked), f"{finding}{difference}\n{text}"


def request(method, path, body=None):
    asked = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}", method=method,
        data=json.dumps(body).encode() if body else None,
        headers={"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"})
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


def comment(text):
    """In place of the comment of an earlier run, if there is one."""
    event = json.loads(pathlib.Path(os.environ["GITHUB_EVENT_PATH"]).read_text())
    number = event.get("pull_request", {}).get("number")
    if not number:
        return
    page, earlier = 1, None
    while earlier is None and (comments := request("GET", f"issues/{number}/comments?per_page=100&page={page}")):
        earlier = next((one["id"] for one in comments if one["body"].startswith(MARK)), None)
        page += 1
    body = {"body": f"{MARK}\n{text}"}
    if earlier is None:
        request("POST", f"issues/{number}/comments", body)
    else:
        request("PATCH", f"issues/comments/{earlier}", body)


def main():
    report = "metaprof.json"
    status, text = estimate(report)
    for variable, words in (("GITHUB_STEP_SUMMARY", text), ("GITHUB_OUTPUT", f"report={report}\n")):
        if file := os.environ.get(variable):
            with open(file, "a") as out:
                out.write(words)
    if text and os.environ.get("COMMENT") == "true":
        comment(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
