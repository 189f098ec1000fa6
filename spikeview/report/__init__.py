"""The incident report: one plain dict of content, written as HTML, Markdown or JSON, alone or in a bundle."""
