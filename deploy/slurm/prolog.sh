#!/bin/sh
# Prolog of slurmd (slurm.conf: Prolog=/etc/slurm/prolog.d/*, and PrologFlags=Alloc, so that it runs when the job begins and not at its
# first step): tells the node's agent which GPUs the job was given, a file a GPU, as dcgm-exporter reads them. So a GPU that the job does
# not use is the job's all the same. With HEC_ARRAY_TASKS=1 it asks slurmctld which task of an array the job is, since Slurm does not say
# a prolog: one question a job and node, so not for clusters that start many jobs a second. Never fails: a prolog that does drains the node.
folder=${HEC_JOB_MAP:-/run/hec/jobs}
case ${SLURM_JOB_ID:-}${SLURM_JOB_GPUS:-} in *[!0-9,-]*) exit 0 ;; esac
[ -n "${SLURM_JOB_ID:-}" ] && [ -n "${SLURM_JOB_GPUS:-}" ] || exit 0
task=
if [ -n "${HEC_ARRAY_TASKS:-}" ] && [ -n "${SLURM_JOB_USER:-}" ]; then
    # the number of an array is also that of one of its jobs: asked for it, squeue names them all
    task=$(timeout 5 squeue -h -r -j "$SLURM_JOB_ID" -o '%A %F_%K' | awk -v job="$SLURM_JOB_ID" '$1 == job && $2 ~ /^[0-9]+_[0-9]+$/ { print $2; exit }')
fi
umask 022
mkdir -p "$folder" && exec 9>"$folder/lock" && flock -w 5 9 || exit 0
for part in $(echo "$SLURM_JOB_GPUS" | tr , ' '); do
    gpu=${part%-*}
    while [ "$gpu" -le "${part#*-}" ]; do
        echo "$SLURM_JOB_ID${SLURM_JOB_USER:+ $SLURM_JOB_USER}${task:+ $task}" >>"$folder/$gpu"
        gpu=$((gpu + 1))
    done
done
exit 0
