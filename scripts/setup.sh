#!/usr/bin/env bash
# Install vega-image into .venv of this checkout, on Debian 12 as root. Sourced by the others.
# Needs: nothing. Says what it installs. Safe to run again.
set -euo pipefail

say() { printf '==> %s\n' "$*" >&2; }

apt_missing() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ "${#missing[@]}" -eq 0 ] && return 0
  say "apt-get install ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

venv_with() {
  local extra="$1" python=python3 stamp=.venv/.installed wanted
  command -v /usr/bin/python3 >/dev/null && python=/usr/bin/python3
  wanted="$extra $(sha256sum pyproject.toml | cut -d' ' -f1)"
  [ "$(cat "$stamp" 2>/dev/null || true)" = "$wanted" ] && return 0
  say "installing vega-image$extra into .venv"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".$extra"
  printf '%s' "$wanted" > "$stamp"
}
