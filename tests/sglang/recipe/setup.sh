#!/usr/bin/env bash
# setup.sh DIR: a virtual environment with the real server in DIR/venv and two tiny models beside it.
# Owns the installation only; it never starts a server. DIR exists only when it is whole: the work is
# done in a folder beside it, marked with the file `ready`, and renamed. A second run does nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1
python=${PYTHON:-python3}

if [ -e "$dir/ready" ]; then
  echo "setup: $dir is ready"
  exit 0
fi
mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
if ! flock -n 9; then
  echo "setup: another run is building $dir; waiting for it"
  flock 9
  if [ -e "$dir/ready" ]; then exit 0; fi
fi

rm -rf "$dir".building.*  # what a killed run left: the lock is ours
work=$(mktemp -d "$dir.building.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "setup: building $dir (about 2 GB, some minutes)"
"$python" -m venv "$work/venv"

# --no-deps: the server's own list of requirements asks for CUDA wheels of several GB.
if ! "$work/venv/bin/python" -m pip install --no-deps --progress-bar off -r "$here/requirements-sglang-cpu.txt" \
    2>&1 | tee "$work/setup.log" | grep --line-buffered -E '^(Collecting|Installing|Successfully|ERROR)'; then
  echo "setup: pip failed; the end of what it printed:" >&2
  tail -n 30 "$work/setup.log" >&2
  exit 1
fi
if ! "$work/venv/bin/python" -c 'import torch; print("setup: torch", torch.__version__)'; then
  echo "setup: this torch does not import. It must be a CPU build of the version in" >&2
  echo "  $here/requirements-sglang-cpu.txt" >&2
  echo "On Linux x86-64, set PIP_EXTRA_INDEX_URL to an index that has CPU builds of torch, and run this again." >&2
  exit 1
fi

export PYTHONPATH="$here/shim" OMP_NUM_THREADS=1
"$work/venv/bin/python" "$here/make_tiny_model.py" "$work/tiny-llama" 0
"$work/venv/bin/python" "$here/make_tiny_model.py" "$work/tiny-llama-b" 1
touch "$work/ready"
rm -rf "$dir"
mv -T "$work" "$dir"
echo "setup: $dir is ready"
