#!/bin/bash
# A stand-in for the entry command of a real job, one of which runs in each worker:
#   bash train/7B1_test.sh $MASTER_ADDR $MASTER_PORT $WORLD_SIZE $RANK
# What it prints is the same at every run, so that a log can be compared with it byte for byte.
# The tests set: FIELD_STEPS (how long it trains, 0: until it is told to stop), FIELD_EXIT (what the training exits with),
# FIELD_CHECKPOINT (where the training saves when it is told to stop).

MASTER_ADDR=$1
MASTER_PORT=$2
NNODES=$3
NODE_RANK=$4
here=$(dirname "$0")

# A shell that waits for its training when it is told to stop, instead of leaving it alone and losing its exit code.
trap : TERM

echo "worker $NODE_RANK of $NNODES, master $MASTER_ADDR:$MASTER_PORT"
export NCCL_DEBUG=WARN
export CUDA_DEVICE_MAX_CONNECTIONS=1
echo "WARNING: Running pip as the 'root' user can result in broken permissions and conflicting behaviour" >&2
printf '\rCollecting deepspeed  50%%\rCollecting deepspeed 100%%\n'
printf '\033[33mWARNING\033[0m: \033[1mtransformer_engine\033[0m is not installed; falling back\n' >&2
printf '\xe6\x95\xb0\xe6\x8d\xae\xe9\x9b\x86\xef\xbc\x9a 3 \xe4\xb8\xaa\xe5\x88\x86\xe7\x89\x87\xef\xbc\x8c\xe5\x85\xb1 1.2 GB\n'
printf 'a line with bytes that are no text: \xff\xfe\x00 and markup: [bold]not bold[/bold]\n'
echo "=== [Phase] Environment Setup Complete ==="

for shard in 0 1 2; do
    printf '\rLoading checkpoint shards: %d/3' "$((shard + 1))"
done
echo
set -x
echo "=== [Phase] Launching torchrun ==="
set +x
echo "*****************************************" >&2
echo "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default" >&2
echo "*****************************************" >&2
python3 -u "$here/7B1_train.py"
code=$?
[ "$code" -eq 0 ] || exit "$code"

printf '[2025-11-28 12:00:00] [worker-%s] === [Phase] Training Finished, Starting Upload ===\n' "$NODE_RANK"
echo "upload: 1 file, 0 errors"
printf 'a last line without its end'
