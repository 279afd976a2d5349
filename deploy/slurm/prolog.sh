#!/bin/sh
# Prolog of slurmd (slurm.conf: Prolog=/etc/slurm/prolog.d/*, and PrologFlags=Alloc, so that it runs when the job begins and not at its
# first step): tells the node's agent which GPUs the job was given, a file a GPU, as dcgm-exporter reads them. So a GPU that the job does
# not use is the job's all the same. Never fails: a prolog that does drains the node.
folder=${HEC_JOB_MAP:-/run/hec/jobs}
case ${SLURM_JOB_ID:-}${SLURM_JOB_GPUS:-} in *[!0-9,-]*) exit 0 ;; esac
[ -n "${SLURM_JOB_ID:-}" ] && [ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
umask 022
mkdir -p "$folder" && exec 9>"$folder/lock" && flock -w 5 9 || exit 0
for part in $(echo "$SLURM_JOB_GPUS" | tr , ' '); do
    gpu=${part%-*}
    while [ "$gpu" -le "${part#*-}" ]; do
        echo "$SLURM_JOB_ID${SLURM_JOB_USER:+ $SLURM_JOB_USER}" >>"$folder/$gpu"
        gpu=$((gpu + 1))
    done
done
exit 0
