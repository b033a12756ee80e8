#!/bin/bash
# Records small trainings of each framework on real GPUs and compares with what they say themselves
# SPDX-License-Identifier: Apache-2.0
#
# usage: tests/gpu/run_all.sh [CASE...]    EPOCHMETER_BIN: the program; OUT: where the reports go
# Prints a line per case and ends with 1 when one failed. A case whose framework is missing is SKIP.
# SMALL=1 makes the trainings small enough for a CPU.
set -uo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/tests/gpu
binary=${EPOCHMETER_BIN:-$PWD/.gpu/bin/epochmeter}
python=${PYTHON:-python3}
out=${OUT:-$(mktemp -d)}
work=$(mktemp -d)
wanted=("$@")
failed=0
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
export EPOCHMETER_PYTHON_DIR=${EPOCHMETER_PYTHON_DIR:-$PWD/python}

has() { "$python" -c "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))" "$@" 2> /dev/null; }

listed() {
  [ ${#wanted[@]} -eq 0 ] && return 0
  local word
  for word in "${wanted[@]}"; do [[ $1 == "$word"* ]] && return 0; done
  return 1
}

show() { sed 's/^/      /' "$1" | tail -n 15; }

# record NAME EXPECTED_RC COMMAND...: records into $work/NAME; false when the exit code differs.
record() {
  local name=$1 expected=$2 rc
  shift 2
  TRUTH_FILE=$work/$name.truth timeout 120 "$binary" run -o "$work/$name.emr" -- "$@" > "$work/$name.log" 2>&1
  rc=$?
  "$binary" report "$work/$name.emr" > "$out/$name.txt" 2>&1
  "$binary" report "$work/$name.emr" -f json -o "$work/$name.json" > /dev/null 2>&1
  "$binary" export "$work/$name.emr" -f jsonl -o "$work/$name.jsonl" > /dev/null 2>&1
  if [ "$rc" -ne "$expected" ]; then
    echo "FAIL  $name: exit code $rc, not $expected"
    show "$work/$name.log"
    failed=1
    return 1
  fi
  if grep -q '^epochmeter:.*\(failed\|cannot hook\)' "$work/$name.log"; then
    echo "FAIL  $name: $(grep -m1 '^epochmeter:.*\(failed\|cannot hook\)' "$work/$name.log")"
    failed=1
  fi
}

# training NAME MODULES COMMAND...: one case; MODULES are the packages that it needs, by comma.
training() {
  local name=$1 modules=$2
  shift 2
  listed "$name" || return 0
  # shellcheck disable=SC2086
  if ! has ${modules//,/ }; then
    echo "SKIP  $name: needs $modules"
    return 0
  fi
  record "$name" 0 "$@" || return 0
  "$python" "$here/check_truth.py" "$name" "$work/$name.json" "$work/$name.jsonl" "$work/$name.truth*" || failed=1
}

oom() {
  listed torch_oom || return 0
  record torch_oom 1 "$python" "$here/torch_oom.py" || return 0
  if grep -q '"event":"exception".*OutOfMemoryError' "$work/torch_oom.jsonl"; then
    echo "PASS  torch_oom                exception on record: OutOfMemoryError"
  else
    echo "FAIL  torch_oom: no OutOfMemoryError among the events"
    grep '"event":"\(exception\|train_end\)"' "$work/torch_oom.jsonl" | cut -c1-300
    failed=1
  fi
}

gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())' 2> /dev/null || echo 0)
ddp=("$python" -m torch.distributed.run --nproc-per-node 2 --master-port 29511 "$here/ddp_loop.py")
ddp_steps=${SMALL:+6}

# One GPU of several: the others must stay out of the rows.
all_visible=${CUDA_VISIBLE_DEVICES-}
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-$((gpus > 1 ? gpus - 1 : 0))}
training torch_plain_auto torch "$python" "$here/torch_plain.py" auto
training torch_plain_api torch "$python" "$here/torch_plain.py" api
training lightning_auto torch,lightning "$python" "$here/lightning_fit.py" auto
training lightning_callback torch,pytorch_lightning "$python" "$here/lightning_fit.py" callback pytorch_lightning
training hf_auto torch,transformers "$python" "$here/hf_trainer.py" auto
training hf_callback torch,transformers "$python" "$here/hf_trainer.py" callback
training accelerate_auto torch,accelerate "$python" "$here/accelerate_loop.py"
training jax_api jax "$python" "$here/jax_loop.py"
[ "$gpus" -ge 1 ] && oom
if [ -n "$all_visible" ]; then export CUDA_VISIBLE_DEVICES=$all_visible; else unset CUDA_VISIBLE_DEVICES; fi
if [ "$gpus" -ge 2 ] || [ "${SMALL:-}" = 1 ]; then
  training ddp_auto torch "${ddp[@]}" 3 "${ddp_steps:-150}" auto
  training ddp_api torch "${ddp[@]}" 3 "${ddp_steps:-150}" api
else
  echo "SKIP  ddp_auto, ddp_api: need 2 GPUs, there are $gpus"
fi

# All in one file: few files may travel.
tar -C "$work" -czf "$out/gpu-trainings.tar.gz" . 2> /dev/null
cat "$out"/*.txt > "$out/reports.log" 2> /dev/null && rm -f "$out"/*.txt
rm -rf "$work"
exit $failed
