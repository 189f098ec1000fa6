"""The templates of a report, and what they may show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spikeview.format import capital, percent, plural, sentence, shown
from spikeview.report.errors import ReportError
from spikeview.report.markdown import code, prose

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_PARAGRAPH = 4000


def template_of(name: str, autoescape: bool) -> Any:
    """A template by its file's name. Raises ReportError where the library that fills it in is missing."""
    try:
        import jinja2
    except ImportError as missing:
        raise not_installed(missing) from missing
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
    )
    environment.filters.update(
        prose=prose, code=code, sentence=sentence, capital=capital, percent=percent, plural=plural
    )
    return environment.get_template(name)


def not_installed(missing: ImportError) -> ReportError:
    """What to do about a library that is missing."""
    return ReportError(
        f'This report needs {missing.name or "a library"}, which is not installed: pip install "spikeview[report]"'
    )


def _visible(value: Any) -> Any:
    """Whatever a template shows of a run acts on nobody's screen, and is not without end."""
    return shown(value, LONGEST_PARAGRAPH) if type(value) is str else value
