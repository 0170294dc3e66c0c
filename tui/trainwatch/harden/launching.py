"""`COMMAND | tee LOG` becomes a command under the launcher, or, with --bash-only, the best that bash can do."""
from __future__ import annotations

from dataclasses import dataclass

from trainwatch.harden.fixes import is_function
from trainwatch.harden.plan import Plan
from trainwatch.harden.view import View
from trainwatch.lint import syntax
from trainwatch.lint.catalog import CONTROL, Kind
from trainwatch.lint.syntax import Item, Pipeline, Simple, Word

LAUNCHER = "trainwatch-launch"
FINISH = """\
finish() {{   # what trainwatch-launch does, in bash: the log written to its end, the container held, the code given on
    local tee=${{1:?}} code=${{2:?}} tries=0 hold='' traps
    traps=$(trap -p TERM INT)
    trap 'kill $hold 2> /dev/null || true; exit '"$code" TERM INT
    while kill -0 "$tee" 2> /dev/null && [ "$tries" -lt 50 ]; do   # 5 s: a process left behind may hold the pipe
        sleep 0.1
        tries=$((tries + 1))
    done
    if [ "$code" -ne 0 ] && [ "$code" -ne 130 ] && [ "$code" -ne 143 ]; then
        echo "exit code $code: held ${{TRAINWATCH_HOLD:-10000}} s for debugging, GPUs are paid for; kill 1 ends it" >&2
        sleep "${{TRAINWATCH_HOLD:-10000}}" &
        hold=$!
        wait "$hold" || true
    fi
    trap - TERM INT
    eval "$traps"
    [ "$code" -eq 0 ] || exit "$code"
}}
"""


@dataclass(frozen=True)
class Teed:
    """A pipe whose right end is `tee LOG`: the item, its command, and the log."""

    item: Item
    pipeline: Pipeline
    command: Simple
    log: Word
    appends: bool


def launch(plan: Plan) -> None:
    """Replace the pipe of the step that trains; other pipes have pipefail."""
    view, state = plan.view, plan.state
    if "launch" in state.done:
        return
    state.done.add("launch")
    found = _teed(view)
    if found is None or LAUNCHER.encode() in view.text:
        return
    if state.bash_only or _log_is_used(view, found):
        _in_bash(plan, found)
    else:
        _by_launcher(plan, found)


def _teed(view: View) -> Teed | None:
    """The last pipe into tee, among the script's own commands, that holds the most important step."""
    best: Teed | None = None
    for item in view.source.script.body:
        one = _of_item(view, item)
        if one is not None and (best is None or view.walk.kind(one.command) >= view.walk.kind(best.command)):
            best = one
    return best


def _of_item(view: View, item: Item) -> Teed | None:
    node = item.node
    if item.background or not isinstance(node, Pipeline) or len(node.elements) != 2 or node.negated:
        return None
    command, tee = node.elements
    if not isinstance(command, Simple) or not isinstance(tee, Simple) or tee.name != "tee" or tee.redirects:
        return None
    logs = [word for word in tee.words[1:] if not word.known.startswith("-")]
    if len(logs) != 1 or not command.words or is_function(view, command) or command.name in CONTROL | {"time"}:
        return None
    if view.walk.kind(command) < Kind.WORK or any(one.body is not None for one in command.redirects):
        return None
    if any(seen.node is command and seen.context.reads for seen in view.seen):
        return None  # PIPESTATUS is read
    appends = any(word.text in ("-a", "--append", "-ia", "-ai") for word in tee.words[1:])
    return Teed(item, node, command, logs[0], appends)


def _log_is_used(view: View, teed: Teed) -> bool:
    """Whether the script does something else with the log."""
    name = teed.log.known.rpartition("/")[2]
    if not name:
        return True
    return any(
        word is not teed.log and name in word.known
        for node in view.source.nodes
        for word in syntax.words_of(node)
        if not (isinstance(node, Simple) and node.name in ("mkdir", "touch", "rm"))
    )


def _command_text(view: View, teed: Teed) -> str:
    """The command without the `2>&1` that was for the pipe."""
    command, text = teed.command, view.raw(teed.command)
    for redirect in sorted(command.redirects, key=lambda one: -one.start):
        if redirect.operator == ">&" and redirect.descriptor == 2 and redirect.target and redirect.target.text == "1":
            start, end = redirect.start - command.start, redirect.end - command.start
            text = _cut(text, start, end)
    return text.strip()


def _cut(text: str, start: int, end: int) -> str:
    """A text without a range, counted in bytes, and the white space before it."""
    data = text.encode("utf-8", "surrogateescape")
    return (data[:start].rstrip(b" \t\\\n") + data[end:]).decode("utf-8", "surrogateescape")


def _by_launcher(plan: Plan, teed: Teed) -> None:
    view, command = plan.view, teed.command
    text = _command_text(view, teed)
    offset = command.words[0].start - command.start if command.assigns else 0
    data = text.encode("utf-8", "surrogateescape")
    before, after = data[:offset].decode("utf-8", "surrogateescape"), data[offset:].decode("utf-8", "surrogateescape")
    last = view.source.script.body[-1] is teed.item and not view.walk.scope.traps and "status" not in plan.state.done
    line = view.text.rfind(b"\n", 0, teed.pipeline.start) + 1
    last = last and b"time" not in view.text[line : teed.pipeline.start].split()
    start = "exec " if last and not before else "exec env " if last else ""
    place = _directory(teed.log)
    root = f" --root {place}" if place else ""
    why = ("the launcher keeps the exit code, passes signals on and holds a failed container; the log is in "
           f"{place or 'runs'}/RUN instead of {teed.log.raw}")  # fmt: skip
    plan.edits.replace(teed.pipeline.start, teed.pipeline.end, f"{start}{before}{LAUNCHER}{root} -- {after}", why)


def _directory(log: Word) -> str:
    """The directory of a log, as a word for the shell, `` when it has none."""
    raw = log.raw
    quote = raw[:1] if raw[:1] in ("'", '"') and raw[:1] == raw[-1:] else ""
    before, slash, _ = raw.rpartition("/")
    if not slash or before in ("", "."):
        return ""
    whole = before + quote
    return whole if whole.count('"') % 2 == 0 and whole.count("'") % 2 == 0 and "$(" not in whole else ""


def _in_bash(plan: Plan, teed: Teed) -> None:
    view = plan.view
    if view.source.shell == "sh":
        return  # no process substitution there: pipefail has to do
    why = "no pipe: the exit code is the command's own; the log is complete, and a failed container is held"
    status = plan.state.status + ("_TRAIN" if "status" in plan.state.done else "")
    tee = "tee -ia" if teed.appends else "tee -i"
    line = f"{{ {_command_text(view, teed)}; }} > >({tee} {teed.log.raw}) 2>&1 || {status}=$?"
    plan.state.done.add("finish")
    plan.before(teed.item.node.start, f"{status}=0", why)
    plan.edits.replace(teed.pipeline.start, teed.pipeline.end, line, why)
    plan.after(teed.item, f'finish "$!" "${status}"', why)


def define(plan: Plan) -> None:
    """Put in the function that is called behind the command: later than strict mode, which has nothing to do there."""
    view, state = plan.view, plan.state
    if "finish" not in state.done:
        return
    state.done.discard("finish")
    body = view.source.script.body
    first = next((item for item in body if not isinstance(item.node, Simple) or item.node.name != "set"), body[0])
    plan.insert(view.text.rfind(b"\n", 0, first.node.start) + 1, FINISH.format(), "what is called behind the command")
