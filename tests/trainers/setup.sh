#!/usr/bin/env bash
# setup.sh DIR: a virtual environment in DIR with SpecForge and speculators as they are published.
# Owns the installation only. DIR exists only when it is whole; a second run does nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1

if [ -e "$dir/ready" ]; then exit 0; fi
mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
if [ -e "$dir/ready" ]; then exit 0; fi
echo "setup: building $dir (about 1.5 GB, a minute or two)"
rm -rf "$dir"
"${PYTHON:-python3}" -m venv "$dir"
log="$dir/setup.log"
if ! "$dir/bin/python" -m pip install --no-deps --progress-bar off --disable-pip-version-check \
    -r "$here/requirements.txt" >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "setup: pip failed; the end of what it printed is above" >&2
  exit 1
fi
if ! "$dir/bin/python" -c 'import torch, datasets, transformers, speculators, specforge'; then
  echo "setup: the trainers do not import. torch must be a CPU build of the version in" >&2
  echo "  $here/requirements.txt" >&2
  echo "On Linux x86-64, set PIP_EXTRA_INDEX_URL to an index that has CPU builds of torch, and run this again." >&2
  exit 1
fi
touch "$dir/ready"
