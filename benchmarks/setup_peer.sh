#!/bin/bash
# A peer (joeynmt, marianmt, optimum or pymarian) in an environment of its own, benchmarks/.NAME-venv: its pins and ours do not agree.
set -euo pipefail
cd "$(dirname "$0")"

name="${1:?usage: setup_peer.sh joeynmt|marianmt|optimum|pymarian}"
python="${PYTHON:-python3}"
venv=".$name-venv"
stamp="$venv/.setup-done"
if [ "$stamp" -nt "$name/requirements.txt" ]; then
  touch "$stamp"
  exit 0
fi

echo "setting up benchmarks/$venv (first time, some minutes) ..."
"$python" -m venv --clear "$venv"
if ! "$venv/bin/python" -m pip install --no-input --disable-pip-version-check -r "$name/requirements.txt" \
    </dev/null >"$venv/setup.log" 2>&1; then
  tail -n 40 "$venv/setup.log" >&2
  echo "setup_peer.sh: pip failed; its whole output is in benchmarks/$venv/setup.log" >&2
  exit 1
fi
touch "$stamp"
