#!/usr/bin/env bash
# serve.sh DIR PORT [flags...]: the real server of DIR (see setup.sh) on loopback, in the foreground.
# Owns the environment and the flags that make it run on a plain CPU; flags given later win.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$1
port=$2
shift 2

# The shim comes first and alone: nothing of the caller's own path may reach the server.
export PYTHONPATH="$here/shim"
export SGLANG_USE_CPU_ENGINE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1
exec "$dir/venv/bin/python" -m sglang.launch_server \
  --model-path "$dir/tiny-llama" --host 127.0.0.1 --port "$port" \
  --device cpu --dtype float32 --attention-backend torch_native --sampling-backend pytorch \
  --disable-cuda-graph --disable-overlap-schedule --mem-fraction-static 0.1 --max-total-tokens 20000 \
  --enable-metrics --sleep-on-idle --random-seed 1 "$@"
