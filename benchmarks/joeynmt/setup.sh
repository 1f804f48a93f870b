#!/bin/bash
# JoeyNMT in an environment of its own, benchmarks/.joeynmt-venv: its pins and ours do not agree.
set -euo pipefail
cd "$(dirname "$0")"

python="${PYTHON:-python3}"
venv=../.joeynmt-venv
stamp="$venv/.setup-done"
if [ "$stamp" -nt requirements.txt ]; then
  touch "$stamp"
  exit 0
fi

echo "setting up benchmarks/.joeynmt-venv (first time, some minutes) ..."
"$python" -m venv --clear "$venv"
if ! "$venv/bin/python" -m pip install --no-input --disable-pip-version-check -r requirements.txt \
    </dev/null >"$venv/setup.log" 2>&1; then
  tail -n 40 "$venv/setup.log" >&2
  echo "setup.sh: pip failed; its whole output is in benchmarks/.joeynmt-venv/setup.log" >&2
  exit 1
fi
touch "$stamp"
