"""Invented folders, forms and checks of runs that are not started yet."""

from dataclasses import replace
from pathlib import Path

from app.core.spec_parse import parse_spec
from app.core.states import RunState
from app.core.types import RunId, ServerFacts
from app.core.views import RunView
from app.files.prompt_folders import Found, PromptFile, PromptFolder
from app.intake import ScanReport
from app.preflight import Report
from app.preflight.report import Sampled
from app.submission import Checked, Planned
from app.submission.checking import Lengths
from app.web.gallery.invented import HOSTILE, NOW
from app.web.new_run.asking import Server
from app.web.new_run.checks import Check, Phase, Standing
from app.web.new_run.fields import Asked, Complaints

ROOTS = (Path("/data/prompts"), Path("/scratch/anna"))
OUTPUT_ROOTS = (Path("/data/answers"),)
_NAMES = ("B1_glaive", "B3_tool_calls", "B6_dialogue_with_a_name_that_is_as_long_as_a_name_may_be")


def _file(name: str, n: int, below: str) -> PromptFile:
    path = Path(below) / name / "prompts.jsonl"
    return PromptFile(partition=name, path=path, kind="jsonl", size_bytes=n * 37_000_000)


def _folder(path: str) -> PromptFolder:
    files = tuple(_file(name, n, path) for n, name in enumerate(_NAMES, 1))
    return PromptFolder(path=Path(path), files=files)


FOLDER = _folder("/data/prompts/night")
NO_FOLDERS = Found()
FOLDERS = Found(
    folders=[FOLDER, _folder("/data/prompts/evening"), _folder("/scratch/anna/tries/2024-05-01")]
)
HOSTILE_FOLDER = _folder(f"/data/prompts/{HOSTILE}")
HOSTILE_FOLDERS = Found(
    folders=[
        HOSTILE_FOLDER,
        _folder("/data/prompts/" + "a-name-without-end" * 13),
        _folder("/data/prompts/no utf-8 \udcff\udcfe"),
        PromptFolder(path=Path("/data/prompts/odd"), trouble=f"{HOSTILE} is no prompt file"),
    ],
    troubles=["/mnt/gone cannot be looked into: Permission denied"],
    is_cut=True,
)
SERVERS = (
    Server(url="http://localhost:30000", why="set for this service"),
    Server(url="http://gpu-17.internal:30000", why="used by an earlier run"),
)


def filled(folder: PromptFolder, name: str = "night") -> Asked:
    """Return the form of a folder as it is first shown."""
    names = [each.partition for each in folder.files]
    first = Asked.first(str(folder.path), f"/data/answers/{name}", name, names)
    return Asked({**first.values, "server_urls": (SERVERS[0].url,)})


BADLY_FILLED = Asked(
    {
        **filled(FOLDER).values,
        "short_concurrency": ("many",),
        "temperature": ("hot",),
        "server_urls": (),
        "B1_glaive:token_budget": ("a lot",),
        "B3_tool_calls:max_samples": ("-5",),
    }
)
WRONG = Complaints(
    by_field={
        "short_concurrency": '"many" is not a whole number from 1 on',
        "temperature": '"hot" is not a number from 0 to 100',
        "server_urls": "no server is chosen; tick one at least",
        "B1_glaive:token_budget": '"a lot" is not a number of tokens; write 250000, "800k", "10M"',
        "B3_tool_calls:max_samples": "-5 is not a whole number from 1 on",
    },
    others=("[run].order: no such order",),
)
REFUSED_TEXT = f"""[run]
name = 7
server_urls = ["http://elsewhere.example:30000"]
prompts_dir = "/data/prompts/night"

[class.short]
concurrency = "many"  # {HOSTILE}
"""
REFUSED_WHY = (
    "line 2: [run].name: 7 is not a text",
    "line 3: [run].server_urls: http://elsewhere.example:30000 is none of the servers that"
    " LONGWATCH_SERVER_URLS allows; add it there and start the service again",
    'line 7: [class.short].concurrency: "many" is not a whole number from 1 on',
)
SPEC = parse_spec(
    """
[run]
name = "night"
server_urls = ["http://localhost:30000"]
prompts_dir = "/data/prompts/night"
output_dir = "/data/answers/night"
token_budget = "4G"
[class.short]
concurrency = 150
max_new_tokens = 10240
[class.long]
concurrency = 32
max_new_tokens = 16384
[partition.B1_glaive]
class = "short"
token_budget = "10M"
[partition.B3_tool_calls]
class = "short"
max_samples = 7000
[partition.B6_dialogue_with_a_name_that_is_as_long_as_a_name_may_be]
class = "long"
deadline = "08:00"
""",
    "night.toml",
)


def _planned(file: PromptFile, rejected: tuple[str, ...] = ()) -> Planned:
    n_prompts, limits = 10_264, SPEC.partitions[file.partition]
    scan = ScanReport(
        partition=file.partition,
        n_records=n_prompts,
        n_samples=n_prompts - 40 * len(rejected),
        n_rejected=40 * len(rejected),
        rejected=rejected,
    )
    most = SPEC.classes[limits.class_name].max_new_tokens
    return Planned(
        name=file.partition,
        path=file.path,
        size_bytes=file.size_bytes,
        scan=scan,
        limits=replace(limits, max_new_tokens=most),
        characters=Lengths(n_prompts=n_prompts, total=13_000_000, median=1_104, longest=88_210),
        ids=None,
    )


_LINES = (
    'line 17: "messages" is empty; a prompt has one message at least',
    f'line 212: "id" {HOSTILE} stands in line 4 already',
    f"line 213: this is no JSON ({'x' * 120}…)",
)
_REPORT = Report(
    errors=(),
    warnings=("B3_tool_calls: 120 lines are rejected; their samples are never asked",),
    notices=("http://localhost:30000 answers as SGLang 0.5.23",),
    facts={
        SERVERS[0].url: ServerFacts(
            version="0.5.23",
            model_path="/models/m",
            context_tokens=32_768,
            kv_capacity_tokens=1_400_000,
            max_running=256,
        )
    },
    prompts={each.partition: each.path for each in FOLDER.files},
    partitions=SPEC.partitions,
    sampled={"B1_glaive": Sampled(n_prompts=20, characters=22_000, tokens=5_900)},
)
CHECKED = Checked(
    spec=SPEC,
    report=_REPORT,
    errors=(),
    planned=tuple(
        _planned(each, _LINES if each.partition == "B3_tool_calls" else ()) for each in FOLDER.files
    ),
    free_bytes=900 * 10**9,
)
_ERRORS = (
    "http://localhost:30000 does not answer: connection refused. Start the server, or mend"
    " server_urls",
    "/data/answers/night cannot be written: Read-only file system. Choose another output_dir",
    f"B6_dialogue: {HOSTILE}",
)
FAILED = replace(
    CHECKED,
    report=replace(_REPORT, errors=_ERRORS, facts={}, sampled={}),
    errors=_ERRORS,
    planned=CHECKED.planned[:2],
    free_bytes=10**6,
)
SAME_NAME = RunView(
    id=RunId(6),
    name="night",
    state=RunState.STOPPED,
    state_since=NOW,
    reason="",
    spec_json="{}",
    output_dir="/data/answers/night",
    token_budget=None,
    fingerprint_json="{}",
    gen_id="g1",
    created_at=NOW,
)
_CHECK = Check(id="Zm9vYmFyYmF6", spec=SPEC, asked=filled(FOLDER).values, begun_at_s=0.0)


def _check(**standing: object) -> Check:
    return replace(_CHECK, now=Standing(**standing))  # type: ignore[arg-type]  # fields by name


CHECKS = {
    "at work": _check(said=f"reading the prompts of {_NAMES[1]}, 2 of 3"),
    "passed": _check(phase=Phase.CHECKED, checked=CHECKED),
    "goes on with a run": _check(phase=Phase.CHECKED, checked=CHECKED, same_name=SAME_NAME),
    "failing": _check(phase=Phase.CHECKED, checked=FAILED),
    "start refused": _check(
        phase=Phase.CHECKED,
        checked=CHECKED,
        refused="run 6 uses /data/answers/night already. Stop it, or choose another output_dir",
    ),
    "started": _check(phase=Phase.STARTED, checked=CHECKED, run_id=8),
    "hostile": replace(
        _check(phase=Phase.CHECKED, checked=FAILED, refused=HOSTILE),
        spec=replace(SPEC, name=HOSTILE, prompts_dir=f"/data/prompts/{HOSTILE}"),
    ),
}
