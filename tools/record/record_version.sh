#!/bin/bash
# Makes evidence of a version of PyTorch on a machine without a GPU, and says what differs from the estimates.
#
# usage: tools/record/record_version.sh VERSION FOLDER [KNOWN]
#
# Installs torch==VERSION into FOLDER/VERSION.venv (with pip, about 5 GB), exports and runs the programs of
# tools/record/version_programs.py on the emulated device into FOLDER/VERSION, and compares the runs with estimates. An unknown
# version has the rules of the newest, or with KNOWN those of that version.
# Needs the project's build: METAPROF_BUILD, build/release unless given.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=$1 folder=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
export METAPROF=${METAPROF_BUILD:-$root/build/release}/cli/metaprof
[ -e "$METAPROF" ] || { echo "record_version.sh: $METAPROF does not exist; build the project first" >&2; exit 2; }

venv=$folder/$version.venv out=$folder/$version
mkdir -p "$out"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "torch==$version"
"$venv/bin/python" "$root/tools/record/record_version.py" "$out" ${3:+--framework "$3"}
