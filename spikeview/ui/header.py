"""The bar at the top: which run, the menus, which optimizer, and the few buttons."""

from __future__ import annotations

from PySide6.QtCore import QRegularExpression, Qt, Signal
from PySide6.QtGui import QRegularExpressionValidator, QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenuBar,
    QPushButton,
    QToolButton,
    QWidget,
)

from spikeview.format import shown as named
from spikeview.ui.fonts import scaled
from spikeview.ui.ranked import RankedRun
from spikeview.ui.session import Session

ROOMY = 1240
SPACING = 10
LEAST, OTHER = 90, 120  # room for the name of the run, and for that of another one


class Header(QFrame):
    """`export_wanted`, `compare_wanted` and `step_given` are for the window, which knows what comes next."""

    export_wanted = Signal()
    compare_wanted = Signal()
    step_given = Signal()

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("header")
        self.setFixedHeight(scaled(44))
        self.menus = QMenuBar(self)
        self.menus.setNativeMenuBar(False)
        self._name = QLabel("spikeview", self)
        self._name.setObjectName("name")
        self._optimizers = QComboBox(self)
        self._optimizers.setAccessibleName("Optimizer")
        self._optimizers.activated.connect(session.choose_view)
        self._ranks = QComboBox(self)
        self._ranks.setAccessibleName("Rank")
        self._ranks.activated.connect(self._choose_rank)
        self._stepper = IncidentStepper(session, self)
        self._step = QLineEdit(self)
        self._step.setPlaceholderText("Jump to step  J")
        self._step.setAccessibleName("Jump to step")
        self._step.setValidator(QRegularExpressionValidator(QRegularExpression(r"\d{0,18}"), self._step))
        self._step.setFixedWidth(scaled(124))
        self._step.returnPressed.connect(self._jump)
        self._step.editingFinished.connect(self._step.clear)
        self._compare = QPushButton("Compare", self)
        self._compare.setToolTip("Lay another run behind this one  C")
        self._compare.clicked.connect(self.compare_wanted)
        self._follow = QPushButton("Follow", self)
        self._follow.setToolTip("Show new rows of a live run as they come  F")
        self._follow.setCheckable(True)
        self._follow.clicked.connect(session.follow.toggle)
        self._export = QPushButton("Export report", self)
        self._export.setObjectName("primary")
        self._export.setToolTip("Write the report of this incident  E")
        self._export.clicked.connect(self.export_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 0, 12, 0)
        row.setSpacing(SPACING)
        for widget in (self._name, self.menus, self._optimizers, self._ranks):
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        for button in (self._stepper, self._step, self._compare, self._follow, self._export):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        for signal in (session.opened, session.grown, session.comparison.changed):
            signal.connect(self._fill)
        for signal in (session.status_changed, session.follow.changed):
            signal.connect(self._enable)
        self._fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room, what stands in the menus too makes way for them."""
        super().resizeEvent(event)
        self._enable()

    def ask_for_step(self) -> None:
        self._step.show()
        self._step.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._enable()

    def _choose_rank(self, index: int) -> None:
        self._session.opener.open_rank(self._ranks.itemData(index))

    def _jump(self) -> None:
        if self._step.text():
            self._session.jump(int(self._step.text()))
        self.step_given.emit()
        self._enable()

    def _fill(self) -> None:
        shown = self._session.shown
        views = () if shown is None else shown.diagnosis.views
        self._optimizers.setVisible(len(views) > 1)
        self._optimizers.clear()
        self._optimizers.addItems([view.optimizer for view in views])
        self._optimizers.setCurrentIndex(self._session.view_index)
        run = None if shown is None else shown.diagnosis.run
        self._ranks.setVisible(isinstance(run, RankedRun))
        self._ranks.clear()
        if isinstance(run, RankedRun):
            for rank in run.ranks.runs:
                self._ranks.addItem(f"rank {rank} of {len(run.ranks)}", rank)
            self._ranks.setCurrentIndex(self._ranks.findData(run.rank))
        other = self._session.comparison.other
        behind = "" if other is None else self._elided(other.diagnosis.run.name, scaled(OTHER))
        self._compare.setText(f"vs {behind}" if behind else "Compare")
        self._enable()

    def _enable(self) -> None:
        usable = self._session.shown is not None
        roomy = self.width() >= scaled(ROOMY)
        asked = self._step.hasFocus()
        self._stepper.setVisible(usable)
        self._export.setVisible(usable and (roomy or not asked))
        for button in (self._compare, self._follow):
            button.setVisible(usable and roomy)
        self._step.setVisible(usable and (roomy or asked))
        following = self._session.follow.on
        self._follow.setChecked(following)
        self._follow.setText("● Following" if following else "Follow")
        self._show_name()

    def _show_name(self) -> None:
        """The name of the run takes what room the others leave."""
        shown = self._session.shown
        others = [self.menus, self._optimizers, self._ranks, self._stepper, self._step]
        others = [each for each in (*others, self._compare, self._follow, self._export) if not each.isHidden()]
        taken = sum(max(each.sizeHint().width(), each.minimumWidth()) + SPACING for each in others) + 3 * SPACING
        name = "spikeview" if shown is None else shown.diagnosis.run.name
        self._name.setText(self._elided(name, max(scaled(LEAST), self.width() - taken)))
        self._name.setToolTip(named(name))

    def _elided(self, name: str, room: int) -> str:
        return self._name.fontMetrics().elidedText(named(name), Qt.TextElideMode.ElideMiddle, room)


class IncidentStepper(QFrame):
    """Which incident of how many, between two arrows."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self.setObjectName("stepper")
        self._back, self._on, self._text = QToolButton(self), QToolButton(self), QLabel(self)
        for button, sign, name, slot in (
            (self._back, "◀", "Previous incident", self._previous),
            (self._on, "▶", "Next incident", self._next),
        ):
            button.setText(sign)
            button.setAccessibleName(name)
            button.setToolTip(f"{name}  {name[0]}")
            button.clicked.connect(slot)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self._back, self._text, self._on):
            row.addWidget(widget)
        for signal in (session.opened, session.grown, session.incident_changed):
            signal.connect(self._fill)

    def _previous(self) -> None:
        self._session.step_incident(-1)

    def _next(self) -> None:
        self._session.step_incident(1)

    def _fill(self) -> None:
        at, many = self._session.incident, len(self._session.incidents)
        waiting = self._session.shown is not None and not self._session.shown.diagnosed and not many
        self._text.setText(
            "Diagnosing …"
            if waiting
            else "No incident"
            if not many
            else f"Incident {'–' if at is None else at + 1} of {many}"
        )
        self._back.setEnabled(at is not None and at > 0)
        self._on.setEnabled(bool(many) and (at is None or at + 1 < many))
