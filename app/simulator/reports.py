"""What the server tells about itself: server, model, models and loads.

Owns the JSON of the information routes, shaped as 0.5.23's; secrets stand in clear, as there.
Invariant: the figures are those of the engine at this moment.
"""

from typing import Any

from app.clock import iso
from app.simulator.machine import Machine


def server_info(machine: Machine) -> dict[str, Any]:
    settings = machine.settings
    secrets = {"api_key": settings.api_key, "admin_api_key": settings.admin_api_key}
    flags = [f"--{name.replace('_', '-')} {value}" for name, value in secrets.items() if value]
    command = " ".join(["sglang serve", f"--model-path {settings.model_path}", *flags])
    startup = {"load_weight": 0.1, "kv_cache_allocation": 0.2, "scheduler_e2e": 1.0}
    pool = {
        "weight": 0.004,
        "kvcache": 0.01,
        "startup_available": 20.2,
        "token_capacity": settings.kv_tokens,
        "token_capacity_swa": None,
        "graph": {"prefill": 0.0, "decode": 0.0},
    }
    return {
        "model_path": settings.model_path,
        "tokenizer_path": settings.model_path,
        "skip_tokenizer_init": not settings.send_text,
        "context_length": None,
        "dtype": "float32",
        "kv_cache_dtype": "auto",
        "mem_fraction_static": 0.88,
        "max_running_requests": settings.max_running,
        "max_queued_requests": settings.max_queued,
        "chunked_prefill_size": 8192,
        "max_prefill_tokens": 16384,
        "schedule_policy": "fcfs",
        "schedule_conservativeness": 1.0,
        "page_size": 1,
        "tp_size": settings.tensor_parallel_ranks,
        "pp_size": 1,
        "dp_size": 1,
        "attn_dp_size": 1,
        "random_seed": 1,
        "watchdog_timeout": 300,
        "host": settings.host,
        "port": machine.port,
        **secrets,
        "ssl_keyfile_password": None,
        "served_model_name": settings.model_name,
        "weight_version": settings.weight_version,
        "stream_interval": settings.stream_interval_tokens,
        "incremental_streaming_output": settings.incremental,
        "enable_metrics": settings.enable_metrics,
        "decode_log_interval": 40,
        "speculative_algorithm": None,
        "enable_hierarchical_cache": False,
        "hicache_ratio": 2.0,
        "hicache_size": 0,
        "enable_deterministic_inference": False,
        "launch_command": command,
        "status": "ready",
        "max_total_num_tokens": settings.kv_tokens,
        "max_req_input_len": settings.longest_request_tokens - 5,
        "startup_time": startup | {"tokenizer_e2e": machine.started_at.timestamp() % 1000},
        "kv_events": None,
        "internal_states": [
            secrets
            | {
                "effective_max_running_requests_per_dp": settings.max_running,
                "last_gen_throughput": machine.engine.throughput_tokens_per_s,
                "memory_usage": pool,
            }
        ],
        "version": settings.version,
        "frontend": "python",
        "simulated_time_factor": settings.time_factor,  # nobody is to take it for a real one
    }


def model_info(machine: Machine) -> dict[str, Any]:
    settings = machine.settings
    return {
        "model_path": settings.model_path,
        "served_model_name": settings.model_name,
        "tokenizer_path": settings.model_path,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": settings.weight_version,
        "load_format": "auto",
        "reasoning_parser": None,
        "tool_call_parser": None,
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
    }


def models(machine: Machine) -> dict[str, Any]:
    card = {
        "id": machine.settings.model_name,
        "object": "model",
        "created": int(machine.started_at.timestamp()),
        "owned_by": "sglang",
        "root": machine.settings.model_name,
        "parent": None,
        "max_model_len": machine.settings.context_length,
    }
    return {"object": "list", "data": [card]}


def loads(machine: Machine) -> dict[str, Any]:
    batch, settings, now = machine.engine.batch, machine.settings, machine.clock.now()
    running, waiting = list(batch.running.values()), list(batch.queue)
    waiting_tokens = sum(job.prompt_tokens + job.done for job in waiting)
    used, speed = batch.used_tokens, machine.engine.throughput_tokens_per_s
    rank = {
        "timestamp": now.timestamp(),
        "dp_rank": 0,
        "num_running_reqs": len(running),
        "num_waiting_reqs": len(waiting),
        "num_waiting_uncached_tokens": waiting_tokens,
        "num_used_tokens": used,
        "num_total_tokens": used + waiting_tokens,
        "num_active_tokens": used + waiting_tokens,
        "num_prealloc_ready_tokens": 0,
        "max_total_num_tokens": settings.kv_tokens,
        "max_running_requests": settings.max_running,
        "token_usage": round(used / settings.kv_tokens, 4),
        # as there: it comes from the metrics, and stays 0 without them
        "gen_throughput": round(speed, 2) if settings.enable_metrics else 0.0,
        "cache_hit_rate": 0.0,
        "utilization": 0.0,
        "total_prefill_uncached_tokens": machine.figures.prefill_tokens,
        "memory": {
            "weight_gb": 0.004,
            "kv_cache_gb": 0.01,
            "graph_gb": 0.0,
            "token_capacity": settings.kv_tokens,
        },
        "queues": {
            "waiting": len(waiting),
            "grammar": 0,
            "paused": 0,
            "retracted": sum(job.retractions > 0 for job in waiting),
            "prealloc_ready": 0,
        },
    }
    return {
        "timestamp": iso(now),
        "version": settings.version,
        "accelerator": None,
        "num_accelerators": settings.tensor_parallel_ranks,
        "loads": [rank],
    }
