"""The checks on the whole run: what failed in full, the others as counts that open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtWidgets import QGridLayout, QPushButton, QVBoxLayout, QWidget

from spikeview.format import count
from spikeview.rules.finding import CheckResult, Outcome
from spikeview.ui.fonts import scaled
from spikeview.ui.labels import cleared, placed
from spikeview.ui.session import Session
from spikeview.ui.spans import Span, html
from spikeview.ui.themed import ThemedLabel

SIGNS = {
    Outcome.FAILED: Span("✕", "bad", bold=True),
    Outcome.PASSED: Span("✓", "good", bold=True),
    Outcome.CANNOT_TELL: Span("?", "muted", bold=True),
    Outcome.NOT_APPLICABLE: Span("–", "muted"),
}
NAMES = {Outcome.CANNOT_TELL: "cannot tell", Outcome.PASSED: "passed", Outcome.NOT_APPLICABLE: "not applicable"}
FEW = 5


class Checks(QWidget):
    """Failed checks come first; the few that cannot tell are unfolded, of the many of a log only their count."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._checks: Sequence[CheckResult] = ()
        self.setAccessibleName("Checks on the whole run")
        self._grids = {outcome: self._grid() for outcome in Outcome}
        self._folds = {outcome: self._fold(outcome) for outcome in NAMES}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for outcome, grid in self._grids.items():
            if outcome in self._folds:
                column.addWidget(self._folds[outcome])
            column.addLayout(grid)

    def show_checks(self, checks: Sequence[CheckResult]) -> None:
        """What was unfolded by hand stays so."""
        self._checks = checks
        untold = self._folds[Outcome.CANNOT_TELL]
        untold.setChecked(untold.isChecked() or len(self._of(Outcome.CANNOT_TELL)) <= FEW)
        for outcome, grid in self._grids.items():
            cleared(grid)
            if outcome not in self._folds:
                self._fill(outcome)
        for outcome, fold in self._folds.items():
            fold.setVisible(bool(self._of(outcome)))
            self._show(outcome)

    def _show(self, outcome: Outcome) -> None:
        fold = self._folds[outcome]
        many, opens = count(len(self._of(outcome))), "▾" if fold.isChecked() else "▸"
        fold.setText(f"{SIGNS[outcome].text}   {many} {NAMES[outcome]}  {opens}")
        cleared(self._grids[outcome])
        if fold.isChecked():
            self._fill(outcome)

    def _fill(self, outcome: Outcome) -> None:
        session, grid = self._session, self._grids[outcome]
        for row, check in enumerate(self._of(outcome)):
            tells = check.evidence if outcome in (Outcome.FAILED, Outcome.CANNOT_TELL) else ""
            title = Span(check.title, "text" if outcome == Outcome.FAILED else "muted")
            spans = [title, Span(f" · {tells}" if tells else "")]
            sign, text = (ThemedLabel(partial(html, each), session, self) for each in ([SIGNS[outcome]], spans))
            sign.setAccessibleName(outcome.replace("_", " "))
            text.setWordWrap(True)
            text.setToolTip("\n".join(part for part in (check.evidence, check.next and f"next: {check.next}") if part))
            placed(grid, row, sign, text)

    def _of(self, outcome: Outcome) -> list[CheckResult]:
        return [check for check in self._checks if check.outcome == outcome]

    def _grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(9)
        grid.setVerticalSpacing(6)
        grid.setColumnMinimumWidth(0, scaled(11))
        grid.setColumnStretch(1, 1)
        return grid

    def _fold(self, outcome: Outcome) -> QPushButton:
        fold = QPushButton(self)
        fold.setObjectName("line")
        fold.setCheckable(True)
        fold.setAccessibleName(f"Checks: {NAMES[outcome]}")
        fold.setProperty("outcome", outcome.value)
        fold.toggled.connect(self._on_toggled)
        return fold

    def _on_toggled(self) -> None:
        self._show(Outcome(str(self.sender().property("outcome"))))
