"""Adding partitions to a run that exists, at work or not: its own words hold for all the rest.

Owns which of an added spec counts: its partitions, with the limits that follow for them. What
decides answers must be as the run has it; servers, timeouts and limits of classes stay the run's.
Invariant: what is refused has changed nothing, and nothing of what the run has is touched.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

from app.clock import Clock
from app.core.spec import RunSpec, from_json, to_json
from app.core.states import RunState
from app.core.types import RunId
from app.core.views import RunView
from app.errors import ConflictError, InputError
from app.intake import count_records
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.orders import Order, reopen_run
from app.ledger.settings_of_runs import Growth, grow
from app.preflight import preflight
from app.settings import Settings
from app.submission.identity import Identity, changes_since, identity_now, merged
from app.submission.new_partitions import new_rows, refuse_new, take_in
from app.submission.refusing import changed_prompts, refuse_run
from app.submission.request import Request, on_loop
from app.submission.scanning import complete_scans
from app.threads import in_thread

Say = Callable[[str], None]
# of an added spec, what says where prompts lie, what partitions get, and how answers are made
_ASKED = frozenset(
    {
        "output_dir",
        "prompts_dir",
        "classes",
        "partitions",
        "short_partitions",
        "default_token_budget_tokens",
        "default_max_samples",
        "sampling",
        "chat_template_kwargs",
        "samples_per_prompt",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The run as it is now, and the names of the partitions that it did not have before."""

    run: RunView
    names: tuple[str, ...]


async def add_to_run(  # noqa: PLR0913 - what is added, to what and by whom: each once
    ledger: Ledger,
    settings: Settings,
    run_id: RunId,
    spec: RunSpec,
    *,
    who: str,
    clock: Clock,
    say: Say,
) -> Added:
    """Check the spec's partitions as a submission is checked, and add those that are new.

    InputError, ConflictError or NotFoundError have changed nothing. `say` is called on the
    caller's loop. Whoever calls it lets one submission in at a time.
    """
    run = await in_thread(partial(runs.get_run, ledger, run_id))
    refuse_run(run, spec)
    asked = _asked(run, spec, say)
    report = await preflight(asked, settings, clock, say)
    if report.errors:
        raise InputError("\n".join(report.errors))
    for line in (*report.warnings, *report.notices):
        say(line)
    request = Request(
        ledger=ledger,
        home=settings.home.resolve(),
        report=report,
        accept_changes=False,
        who=who,
        clock=clock,
        say=on_loop(say),
    )
    return await in_thread(partial(_add, request, run_id, asked))


def _asked(run: RunView, spec: RunSpec, say: Say) -> RunSpec:
    """Return the run's own words with what the spec says of partitions and of answers."""
    own = from_json(run.spec_json)
    given, has = asdict(spec), asdict(own)
    differing = [name for name in has if name not in _ASKED | {"name"} and has[name] != given[name]]
    differing += [
        f"concurrency of class {name}"
        for name, one in own.classes.items()
        if name in spec.classes and spec.classes[name].concurrency != one.concurrency
    ]
    if differing:
        say(f"as the run has them, not as the spec says: {', '.join(differing)}")
    return replace(own, **{name: getattr(spec, name) for name in _ASKED})


def _add(request: Request, run_id: RunId, asked: RunSpec) -> Added:
    ledger, now = request.ledger, request.clock.now()
    run = runs.get_run(ledger, run_id)
    refuse_run(run, asked)
    old = runs.partitions_of(ledger, run.id)
    identity = identity_now(asked, request.report, run.fingerprint_json, now)
    _refuse_other_settings(request, run, identity)
    refuse_new(ledger, run, identity.spec, old)
    known = [each.name for each in old]
    names = tuple(name for name in identity.spec.partitions if name not in known)
    for name in names:  # read to the end first: what cannot be read is not added at all
        count_records(name, request.report.prompts[name], identity.spec, request.say)
    same = [name for name in identity.spec.partitions if name in known]
    if same:
        request.say(f"in this run already, and left as they are: {', '.join(same)}")
    order = Order(run_id=run.id, who=request.who, now=now)
    if names:
        rows = new_rows(request, run, identity.spec, known)
        growth = Growth(
            partitions=rows,
            spec_json=to_json(_grown(from_json(run.spec_json), identity.spec, names)),
            fingerprint_json=merged(run.fingerprint_json, identity),
        )
        grow(ledger, run, growth, order)
        take_in(request, run, identity.spec, rows)
    else:  # what an earlier adding left undone when it died
        complete_scans(ledger, run, identity.spec, request.clock, request.say)
        reopen_run(ledger, order)
    run = runs.get_run(ledger, run.id)
    if run.state in (RunState.PAUSED, RunState.STOPPED):
        request.say(f'run "{run.name}" is {run.state} and stays so; resume it to go on')
    return Added(run=run, names=names)


def _refuse_other_settings(request: Request, run: RunView, identity: Identity) -> None:
    changes = changes_since(run.fingerprint_json, identity, frozenset())
    partitions = runs.partitions_of(request.ledger, run.id)
    listed = [*changes.sentences, *changed_prompts(request.ledger, changes, partitions)]
    if listed:
        raise ConflictError(
            f'nothing can be added to run "{run.name}", which was started otherwise:'
            f" {'; '.join(listed)}",
            hint="Let the spec say what the run was started with, or start another run with it",
        )


def _grown(own: RunSpec, asked: RunSpec, names: tuple[str, ...]) -> RunSpec:
    """Return the run's words with the new partitions, and the classes that only they have."""
    new = {name: asked.partitions[name] for name in names}
    classes = {each.class_name: asked.classes[each.class_name] for each in new.values()}
    return replace(own, classes={**classes, **own.classes}, partitions={**own.partitions, **new})
