"""From a script's text to what is wrong with it."""
from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath

from trainwatch.lint import children, effects, follow
from trainwatch.lint.catalog import Kind
from trainwatch.lint.checks import jobs, shells, status, work
from trainwatch.lint.findings import Finding, Mark, NotFollowed, Report, finding
from trainwatch.lint.source import Source
from trainwatch.lint.strict import Strict
from trainwatch.lint.walk import Walk

SIMPLE = (work.markers, status.steps, status.substitutions, status.subshells, jobs.waits, jobs.traps, work.setup,
          work.directories, work.deletions, work.variables, shells.simple_redirects, shells.bashisms,
          children.called, effects.apply)  # fmt: skip
NODES = (status.pipelines, status.chains, status.tested, work.fed, work.absorbed, shells.redirects, shells.bash_syntax)


def lint(sources: Iterable[Source], files: follow.Files, here: str, ignore: frozenset[str] = frozenset()) -> Report:
    """What is wrong with scripts. `here` is the working directory; `ignore` names rules to leave out."""
    with without_collector():
        return _lint(sources, files, here, ignore)


@contextmanager
def without_collector() -> Iterator[None]:
    """No garbage is collected meanwhile: a tree is many objects and no garbage, and looking at it costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _lint(sources: Iterable[Source], files: follow.Files, here: str, ignore: frozenset[str]) -> Report:
    marks: list[Mark] = []
    notes: list[NotFollowed] = []
    for source in sources:
        try:
            walk = Walk(source, files, places_of(source, here), SIMPLE, NODES)
            walk.run(options_of(source))
            finish(walk, root=True)
        except RecursionError:
            notes.append(NotFollowed(source.file.name, source.place(0)[0], "", "its commands are nested too deeply"))
            continue
        marks += walk.marks
        notes += walk.notes
    kept = [mark for mark in marks if mark.rule not in ignore and not mark.source.is_ignored(mark.rule, mark.offset)]
    found = sorted({(one.file, one.line, one.rule): one for one in reversed([finding(m) for m in kept])}.values())
    return Report(_once_a_file(found), sorted(set(notes)))


ONCE = frozenset(("no-errexit", "no-nounset", "no-phase-marker"))
"""They are about a whole file: the first place is enough."""


def _once_a_file(found: list[Finding]) -> list[Finding]:
    seen: set[tuple[str, str]] = set()
    kept = []
    for one in found:
        if one.rule in ONCE:
            if (one.file, one.rule) in seen:
                continue
            seen.add((one.file, one.rule))
        kept.append(one)
    return kept


def options_of(source: Source) -> Strict:
    """The strict mode that a script starts with."""
    return source.options if source.options is not None else follow.options_of(source.text)


def places_of(source: Source, here: str) -> list[str]:
    """Directories that a script's relative paths may start from."""
    own = str(PurePath(source.path).parent) if source.path else here
    return list(dict.fromkeys([own, here]))


def finish(walk: Walk, root: bool) -> None:
    """What can only be said at the end of a script."""
    if walk.source.script.broken is not None:
        at = walk.source.script.broken
        walk.note(at, "", f"not understood from line {walk.source.place(at)[0]} on")
        walk.marks = [mark for mark in walk.marks if mark.source is not walk.source or mark.offset < at]
        return
    for node, source, step in walk.suppressed.values():
        with walk.in_source(source):
            name = walk.name_of(step)
            walk.mark("errexit-suppressed", node.start, f"{name} may fail there unseen" if name else "")
    goes_on = False
    for node, source, kind, how in walk.unchecked:
        with walk.in_source(source):
            if how == "lost" and kind >= Kind.WORK:
                walk.mark("exit-status-lost", node.start)
            elif not goes_on:
                goes_on = True
                walk.mark("no-errexit", node.start)
    jobs.left_behind(walk, walk.scope.jobs)
    shells.features(walk)
    if walk.source.outer is None or root:
        work.no_nounset(walk)
    if root:
        jobs.first_process(walk)
        work.phases(walk)
