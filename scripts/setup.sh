#!/usr/bin/env bash
# Make this clone ready: system packages, a virtual environment in .venv, and this project in it.
#   scripts/setup.sh demo    what the product needs
#   scripts/setup.sh test    that, and what its tests need
# Safe to repeat: what is there is left alone. Downloads are cached outside the clone, by uv or pip.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-demo}
case $what in
  demo) extras=all packages="bubblewrap" optional="" ;;
  test) extras=dev packages="bubblewrap gcc libc6-dev" optional="runsc nodejs fonts-dejavu-core fonts-liberation sqlite3-doc postgresql-doc-15 python3.11-doc dict-foldoc chromium chromium-headless-shell maven default-jdk-headless wordnet-base" ;;
  *) echo "usage: scripts/setup.sh [demo|test]" >&2; exit 2 ;;
esac

say() { echo "[setup] $*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q "ok installed"; }

apt_updated=
apt_install() { # PACKAGE...: install what is missing
  [ -n "$apt_updated" ] || { say "apt-get update"; as_root apt-get update -qq || true; apt_updated=1; }
  say "apt-get install $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

system_packages() {
  command -v apt-get >/dev/null || { say "no apt-get here: install by hand: $packages"; return; }
  local p
  for p in $packages; do
    case $p in
      bubblewrap) command -v bwrap >/dev/null && continue ;;
      gcc | libc6-dev) command -v gcc >/dev/null && continue ;;
    esac
    installed "$p" || apt_install "$p" || { say "could not install $p"; exit 1; }
  done
  for p in $optional; do
    case $p in
      chromium) command -v chromium >/dev/null && continue ;;
      nodejs) [ -x /usr/bin/node ] && continue ;;
      maven) command -v mvn >/dev/null && continue ;;
      default-jdk-headless) command -v java >/dev/null && continue ;;
    esac
    installed "$p" || apt_install "$p" || say "could not install $p; the tests that need it will be skipped"
  done
}

find_python() {
  local p
  for p in python3.11 python3 python3.12 python3.13 python; do
    if command -v "$p" >/dev/null && "$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then
      echo "$p"; return
    fi
  done
  say "Python 3.11 to 3.13 is needed and was not found" >&2
  exit 1
}

make_venv() {
  [ -x .venv/bin/python ] && .venv/bin/python -c '' 2>/dev/null && return
  local python; python=$(find_python)
  say "virtual environment .venv with $("$python" -V)"
  if command -v uv >/dev/null; then uv venv -q --clear --python "$(command -v "$python")" .venv; return; fi
  "$python" -m venv --clear .venv 2>/dev/null && return
  apt_install python3-venv && "$python" -m venv --clear .venv
}

find_uv() { # prints the uv to use, or nothing
  if command -v uv >/dev/null; then command -v uv; return; fi
  [ -x .venv/bin/uv ] || .venv/bin/python -m pip install -q uv >/dev/null 2>&1 || true
  [ -x .venv/bin/uv ] && echo .venv/bin/uv || true
}

install_project() {
  local stamp uv
  stamp=".venv/ready-$extras-$(cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)"
  [ -e "$stamp" ] && { say "ready ($extras)"; return; }
  uv=$(find_uv)
  if [ -n "$uv" ]; then
    say "installing kgsynth[$extras] with uv (a first time downloads about 3 GB, most of it torch)"
    UV_LINK_MODE=${UV_LINK_MODE:-hardlink} "$uv" pip install -q --python .venv/bin/python -c constraints.txt -e ".[$extras]"
  else
    say "installing kgsynth[$extras] with pip (a first time downloads about 3 GB, most of it torch)"
    .venv/bin/python -m ensurepip -q 2>/dev/null || true
    .venv/bin/python -m pip install -q -c constraints.txt -e ".[$extras]"
  fi
  touch "$stamp"
  say "ready ($extras)"
}

install_peers() { # those that read our exports, for their tests: beside .venv, whose libraries they share. $1: uv
  local stamp site python
  stamp=".venv-peers/ready-$(cat tests/peers/*.txt constraints.txt | sha256sum | cut -c1-16)"
  [ -e "$stamp" ] && { say "ready (peers)"; return; }
  say "installing TRL, verl, verifiers, datasets and Harbor into .venv-peers (about 300 MB the first time)"
  "$1" venv -q --clear --python .venv/bin/python .venv-peers || return 1
  site=$(.venv-peers/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "import site; site.addsitedir('$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" > "$site/kgsynth-venv.pth"
  "$1" pip install -q --python .venv-peers/bin/python --no-deps -r tests/peers/peers.txt || return 1
  "$1" pip install -q --python .venv-peers/bin/python --no-deps --target .venv-peers/verl -r tests/peers/verl.txt || return 1
  if python=$(find_python_312); then
    "$1" venv -q --clear --python "$python" .venv-peers/harbor || return 1
    "$1" pip install -q --python .venv-peers/harbor/bin/python -r tests/peers/harbor.txt || return 1
  else
    say "no Python 3.12 or later here for Harbor; the test of its loader will be skipped"
  fi
  touch "$stamp"
  say "ready (peers)"
}

find_python_312() { # also where only pyenv knows of it
  local p
  for p in python3.12 python3.13 "$HOME"/.pyenv/versions/3.1[23]*/bin/python; do
    "$p" -c '' 2>/dev/null && { "$p" -c 'import sys; print(sys.executable)'; return; }
  done
  return 1
}

peers() {
  local uv; uv=$(find_uv)
  if [ -n "$uv" ] && install_peers "$uv"; then return; fi
  say "the environment of the peers could not be made; the tests that need them will be skipped"
}

fetch_view_scripts() { # what draws `kgsynth view`: it tries again itself when it is first used
  .venv/bin/python -m kgsynth.view.libraries >/dev/null || say "the page of kgsynth view cannot be shown before that is put right"
}

system_packages
make_venv
install_project
fetch_view_scripts
[ "$what" = demo ] || peers
