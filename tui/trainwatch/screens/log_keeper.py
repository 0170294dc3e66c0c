"""What screens with a log pane do for it: whose logs it shows, and who fulfils what it asks for."""

from __future__ import annotations

from textual import on

from trainwatch.screens import wishes
from trainwatch.screens.run_screen import RunScreen
from trainwatch.widgets.log_pane import LogPane
from trainwatch_launcher.reader.changes import AttemptKey


class LogKeeper(RunScreen):
    """A run screen with a log pane in it."""

    @property
    def log_keys(self) -> tuple[AttemptKey, ...]:
        """The attempts whose logs the pane shows, in the order of their numbers there."""
        raise NotImplementedError

    @on(LogPane.Copied)
    def _copied(self, event: LogPane.Copied) -> None:
        event.stop()
        self.post_message(wishes.Copy(event.text))

    @on(LogPane.NamePlace)
    def _name_place(self, event: LogPane.NamePlace) -> None:
        event.stop()
        key = self.log_keys[event.log]
        path = self.feed.log_path(key) or self.feed.run.attempts[key].directory
        self.post_message(wishes.Copy(f"{path}:{event.line}"))

    @on(LogPane.OpenPlace)
    def _open_place(self, event: LogPane.OpenPlace) -> None:
        event.stop()
        self.post_message(wishes.OpenLog(self.log_keys[event.log], event.offset, event.line, event.editor))

    def action_merged(self) -> None:
        """All ranks' logs, or the marked ones', as one."""
        from trainwatch.screens.merged import open_merged

        open_merged(self.app, self.feed, self.keys_to_merge())

    def keys_to_merge(self) -> tuple[AttemptKey, ...]:
        """The attempts whose logs are to be read as one: of each rank the newest."""
        return tuple(attempt.key for attempt in self.feed.run.current())
