#!/bin/sh
# Epilog of slurmd (slurm.conf: Epilog=/etc/slurm/epilog.d/*): one line in the node's log for each job that used GPUs, with the
# joules that the node's agent counted for it. Never fails: an epilog that does drains the node.
address=${HEC_AGENT:-127.0.0.1:9400}
[ -n "${SLURM_JOB_ID:-}" ] || exit 0
joules=$(curl -s --max-time 5 "http://$address/metrics" | awk -v job="hpc_job=\"$SLURM_JOB_ID\"" \
    -v name="user=\"${SLURM_JOB_USER:-}\"" -v uid="user=\"${SLURM_JOB_UID:-}\"" '
    /^hec_energy_joules_total\{/ && index($0, job) && (!/user="/ || index($0, name) || index($0, uid)) { sum += $NF; found = 1 }
    END { if (found) printf "%.0f", sum }')
[ -z "$joules" ] || logger -t hec "job $SLURM_JOB_ID of ${SLURM_JOB_USER:-unknown}: $joules J on this node"
exit 0
