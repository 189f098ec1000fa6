"""Text made safe for Markdown: it shows as itself, in a paragraph and in a table's cell alike."""

from __future__ import annotations

import re

BREAKING = set("`|\\")
WITHIN_CODE = set("&<>|`\\*_~@#[]:")
SPECIAL = re.compile(r"[&<>|`\\*\[\]~]|(?<![^\W_])_|_(?![^\W_])|[@#](?=\w)")
LIST_ITEM = re.compile(r"^([-+#=]|\d+[.)](?= ))")


def prose(text: object) -> str:
    """A sentence with a run's words in it: no markup, no mention, no line break comes through.

    Everything special becomes an entity: renderers disagree about a backslash before a pipe within a table.
    """
    line = " ".join(str(text).split())
    line = SPECIAL.sub(lambda found: _entity(found[0]) if found[0] not in "@#" else f"{found[0]}<!-- -->", line)
    return LIST_ITEM.sub(lambda found: found[0][:-1] + _entity(found[0][-1]), line)


def code(text: object) -> str:
    """A name or value of the run, letter by letter: a code span, or <code> where a span cannot hold it."""
    line = " ".join(str(text).split())
    if not line:
        return ""
    if not set(line) & BREAKING:
        return f"`{line}`"
    return f"<code>{''.join(_entity(letter) if letter in WITHIN_CODE else letter for letter in line)}</code>"


def _entity(letter: str) -> str:
    return f"&#{ord(letter)};"
