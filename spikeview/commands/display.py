"""Whether a window can be shown here: Qt aborts the process where it cannot."""

from __future__ import annotations

import ctypes
import os
import sys


def has_display() -> bool:
    """Whether there is a screen to draw on. Only Linux and its kin can run without one."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("WAYLAND_DISPLAY")) or (bool(os.environ.get("DISPLAY")) and _x_answers())


def _x_answers() -> bool:
    """Whether the X server that DISPLAY names lets this process in, asked as Qt asks it."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:  # Qt says itself which library it lacks
        return True
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    refused = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not refused
