#!/usr/bin/env bash
# Finds the system libraries that Qt needs and this machine lacks, and installs them through apt where it may:
# as root. Otherwise it prints the line to run, and fails only where nothing could be drawn at all.
# usage: system_libs.sh [--tools]      --tools: also the X server and the programs that the tests drive
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -s)" = Linux ] || exit 0

qt=$(.venv/bin/python -c 'import importlib.util as u; print(u.find_spec("PySide6").submodule_search_locations[0])')
needed=("$qt"/Qt{Core,DBus,Gui,OpenGL,OpenGLWidgets,Svg,Test,Widgets}.abi3.so "$qt/Qt/plugins/platforms/libqoffscreen.so")
for_a_screen=$qt/Qt/plugins/platforms/libqxcb.so
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    needed+=("$for_a_screen")
fi

missing_from() { ldd "$@" 2>/dev/null | awk '/=> not found/ { print $1 }' | sort -u; }

# Debian names a library's package after its soname: libxcb-cursor.so.0 is in libxcb-cursor0, libX11.so.6 in libx11-6.
package_of() {
    case "$1" in
        libglib-2.0.so.* | libgthread-2.0.so.*) echo libglib2.0-0 ;;
        *) echo "$1" | sed -E 's/([0-9])\.so\./\1-/; s/\.so\.//; s/_/-/g' | tr '[:upper:]' '[:lower:]' ;;
    esac
}

lacking() {
    for library in $(missing_from "${needed[@]}" "$for_a_screen"); do
        package_of "$library"
    done
    if [ "${1:-}" = --tools ]; then
        for tool in Xvfb xauth xdotool openbox; do
            command -v "$tool" >/dev/null || echo "${tool,,}"
        done
        command -v chromium chromium-browser google-chrome >/dev/null || echo chromium
    fi
}

install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # One by one where all at once fails: a distribution that lacks one of them still gets the others.
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null && return
    for package in "$@"; do
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
            echo "spikeview: could not install $package" >&2
    done
}

mapfile -t packages < <(lacking "$@" | sort -u)
[ ${#packages[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "spikeview: install these (Debian's names) with your package manager: ${packages[*]}" >&2
elif [ "$(id -u)" != 0 ]; then
    echo "spikeview: system packages are missing; run: sudo apt-get install -y ${packages[*]}" >&2
else
    echo "Installing system packages: ${packages[*]}"
    install "${packages[@]}"
fi

mapfile -t still < <(missing_from "${needed[@]}")
if [ ${#still[@]} -gt 0 ]; then
    echo "spikeview: Qt cannot start without ${still[*]}" >&2
    exit 1
fi
