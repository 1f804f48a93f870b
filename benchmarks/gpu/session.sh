#!/bin/bash
# What to measure while a GPU is lent: quick checks first, each with a limit, none stops the next. session.sh FOLDER [smoke|measure]
set -u
out=${1:?folder for the tables}; part=${2:-all}; python=${PYTHON:-python3}
mkdir -p "$out"; cd "$(dirname "$0")/../.." || exit 1
export PYTHONPATH=$PWD/src${PYTHONPATH:+:$PYTHONPATH}
step() { # name, seconds, command
  local name=$1 seconds=$2 start=$SECONDS; shift 2
  timeout "$seconds" "$@" > >(tee "$out/$name.txt") 2> "$out/$name.err"
  echo "== $name: exit $?, $((SECONDS - start)) s"; tail -n 3 "$out/$name.err"
}
if [ "$part" != measure ]; then
  step graphs 60 "$python" benchmarks/gpu/check.py --only "float32, graphs" "bf16-mixed, graphs" --runs --models transformer_tiny-encoder.positions=rotary-decoder.positions=rotary-encoder.activation=gelu-decoder.activation=swish transformer_base-encoder.pre_norm=false-decoder.pre_norm=false rnnsearch lstm
  step smoke 45 "$python" benchmarks/gpu/speed.py --models transformer_base --variants plain graphs
fi
if [ "$part" != smoke ]; then
  step speed 75 "$python" benchmarks/gpu/speed.py --variants plain graphs
  step compiled 80 "$python" benchmarks/gpu/speed.py --models transformer_base transformer_big --variants "graphs, compiled"
  step hierarchical 25 "$python" benchmarks/gpu/check.py --models nematus-hierarchical_softmax transformer_tiny-hierarchical_softmax --runs
  step runs 75 "$python" benchmarks/gpu/check.py --models lstm --only float32 --runs "CUDA graphs" FSDP
  step check_compiled 60 "$python" benchmarks/gpu/check.py --models transformer_base-encoder.pre_norm=true-decoder.pre_norm=true --only "float32, compiled" "float32, compiled, graphs" --runs
fi
