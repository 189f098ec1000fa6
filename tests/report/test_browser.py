"""The page as a browser sees it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from spikeview.report.export import write_report
from spikeview.rules.diagnosis import Diagnosis

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"),
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"needs a browser: none of {', '.join(NAMES)} is installed")


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a page without a screen; its console's messages come on stderr."""
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={profile}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_the_page_renders_without_a_word_on_the_console(
    hostile: Callable[[str], Diagnosis], skips: Diagnosis, tmp_path: Path
) -> None:
    page = write_report(skips, None, tmp_path / "incident.html")
    shown = browse(page, tmp_path / "profile", "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert "Pre-clip norm became Inf at step 2" in shown.stdout
    assert shown.stdout.count("<svg") >= 3

    attack = "<script>console.error('ran')</script><img src=x onerror=\"console.error('ran')\">"
    page = write_report(hostile(attack), None, tmp_path / "hostile.html", note=f"seen: {attack}")
    shown = browse(page, tmp_path / "profile", "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    escaped = "&lt;script&gt;console.error('ran')&lt;/script&gt;"
    for place in (f"</span> seen: {escaped}", f"<title>{escaped.replace('/', '|')}", f'<td class="t n">{escaped}'):
        assert place in shown.stdout


def test_a_console_message_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "loud.html"
    page.write_text("<script>console.error('heard')</script>", "utf-8")
    assert "heard" in browse(page, tmp_path / "profile", "--dump-dom").stderr


def test_the_page_prints(skips: Diagnosis, tmp_path: Path) -> None:
    page = write_report(skips, None, tmp_path / "incident.html")
    printed = tmp_path / "incident.pdf"
    browse(page, tmp_path / "profile", f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    assert printed.read_bytes().startswith(b"%PDF")
