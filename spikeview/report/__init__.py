"""The incident report: one plain dict of content, written as HTML, Markdown or JSON."""

from spikeview.report.content import ReportError, content
from spikeview.report.export import write_report

__all__ = ["ReportError", "content", "write_report"]
