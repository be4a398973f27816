#!/bin/bash
# Makes evidence of a version of PyTorch on a machine without a GPU, and says what differs from a known version.
#
# usage: tools/record_version.sh VERSION FOLDER [KNOWN]
#
# Installs torch==VERSION into FOLDER/VERSION.venv (with pip, about 5 GB), exports and records the programs of
# tools/version_programs.py on the emulated device into FOLDER/VERSION, and compares the recordings with estimates by
# the rules of KNOWN, another version, and without it of VERSION itself (an unknown one has the rules of the newest).
# Needs the project's build: METAPROF_BUILD, build/release unless given.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=$1 folder=$2 known=${3:-$1}
root=$(cd "$(dirname "$0")/.." && pwd)
build=${METAPROF_BUILD:-$root/build/release}
emulator=$build/emulator/lib
[ -e "$emulator/libmetaprof-emulator.so" ] || { echo "record_version.sh: $emulator has no emulator; build the project first" >&2; exit 2; }

venv=$folder/$version.venv out=$folder/$version
mkdir -p "$out"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "torch==$version"
LD_PRELOAD=$emulator/libmetaprof-emulator.so LD_LIBRARY_PATH=$emulator "$venv/bin/python" "$root/tools/record_version.py" "$out"

# 0: all is equal; 1: something differs, which is what this program is for.
for export in "$out"/*.pt2; do
  name=$(basename "$export" .pt2)
  "$build/cli/metaprof" check "$export" --against "$out/$name"*.json --framework "$known" --tolerance 0% || [ $? -eq 1 ]
done
