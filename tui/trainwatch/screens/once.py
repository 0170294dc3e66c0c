"""Screens that are left once: keys come faster than screens go, and what closes one must never close the one below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.screen import ModalScreen, Screen, ScreenResultType

if TYPE_CHECKING:
    _Base = Screen[Any]
else:
    _Base = object  # as the first base of a screen it must not hide the others from Textual, which follows one line


class Once(_Base):
    """A screen that closes itself and no other, and that acts on nothing before its widgets are there."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, the first time; Textual's own takes away whatever is on top by then."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be done with a screen that is still being made."""
        return super().check_action(action, parameters) if self.is_mounted else False


class Dialog(Once, ModalScreen[ScreenResultType]):
    """Something over a screen. Esc closes it; ctrl+c copies what is selected, else it closes it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", show=False),
        Binding("ctrl+c", "copy_or_close", "close", show=False),
    ]

    def action_close(self) -> None:
        """Leave everything as it is."""
        self.dismiss()

    def action_copy_or_close(self) -> None:
        """What ctrl+c means in a terminal."""
        if self.get_selected_text():
            self.action_copy_text()
        else:
            self.action_close()


class Palette(Once, CommandPalette):
    """Textual's palette, with our manners."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "escape", "close", show=False)]
