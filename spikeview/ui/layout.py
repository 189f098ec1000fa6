"""Which panels are on the screen, in which order and how high, and where that is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from spikeview.ui.panels import PANELS
from spikeview.ui.recent import settings

KEY = "panels"


@dataclass(frozen=True)
class Layout:
    """`order` holds every panel's id, `shown` those on the screen; `heights` in pixels, where a user has set them."""

    order: tuple[str, ...] = tuple(panel.id for panel in PANELS)
    shown: frozenset[str] = frozenset(panel.id for panel in PANELS if panel.shown)
    heights: Mapping[str, int] = field(default_factory=dict)

    @property
    def visible(self) -> tuple[str, ...]:
        return tuple(each for each in self.order if each in self.shown)

    def showing(self, panel_id: str, wanted: bool) -> Layout:
        """With a panel shown or hidden; the heights are shared out anew."""
        changed = self.shown | {panel_id} if wanted else self.shown - {panel_id}
        return replace(self, shown=changed, heights={})

    def moved(self, panel_id: str, by: int) -> Layout:
        """With a panel so many places further down among those that are shown, or as far as it goes."""
        visible = list(self.visible)
        if panel_id not in visible:
            return self
        at = visible.index(panel_id)
        to = min(max(at + by, 0), len(visible) - 1)
        visible.insert(to, visible.pop(at))
        places = iter(visible)
        return replace(self, order=tuple(next(places) if each in self.shown else each for each in self.order))


def remembered() -> Layout:
    """The user's own; panels that came since stand where they do by default."""
    default, kept = Layout(), settings()
    order = [each for each in _texts(kept.value(f"{KEY}/order")) if each in default.order]
    if not order:
        return default
    for at, panel_id in enumerate(default.order):
        if panel_id not in order:
            order.insert(at, panel_id)
    shown = frozenset(_texts(kept.value(f"{KEY}/shown"))) & frozenset(order)
    heights = dict(zip(_texts(kept.value(f"{KEY}/high")), _numbers(kept.value(f"{KEY}/heights")), strict=False))
    return Layout(tuple(order), shown, heights if set(heights) == set(shown) else {})


def remember(layout: Layout) -> None:
    """Keep it for the next window."""
    kept = settings()
    kept.setValue(f"{KEY}/order", list(layout.order))
    kept.setValue(f"{KEY}/shown", list(layout.visible))
    kept.setValue(f"{KEY}/high", list(layout.heights))
    kept.setValue(f"{KEY}/heights", [str(height) for height in layout.heights.values()])


def _texts(stored: object) -> list[str]:
    """Qt gives a list of one back as its only item, and an empty one as nothing."""
    return [str(each) for each in stored] if isinstance(stored, list) else [str(stored)] if stored else []


def _numbers(stored: object) -> list[int]:
    return [int(text) for text in _texts(stored) if text.isdecimal()]
