#!/bin/sh
# Epilog of slurmd (slurm.conf: Epilog=/etc/slurm/epilog.d/*): one line in the node's log for each job that used GPUs, with the
# joules that the node's agent counted for it, and an end to what prolog.sh wrote. Never fails: an epilog that does drains the node.
address=${HEC_AGENT:-127.0.0.1:9400} folder=${HEC_JOB_MAP:-/run/hec/jobs}
case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) exit 0 ;; esac

# "JOULES AGE": of the job (none: "-") as they are now, and how old the oldest reading of a counter is, in seconds.
ask() {
    curl -s --max-time 5 "http://$address/metrics/now" | awk -v job="hpc_job=\"$SLURM_JOB_ID\"" \
        -v name="user=\"${SLURM_JOB_USER:-}\"" -v uid="user=\"${SLURM_JOB_UID:-}\"" '
        /^hec_energy_joules_total\{/ && index($0, job) && (!/user="/ || index($0, name) || index($0, uid)) { sum += $NF; found = 1 }
        /^hec_device_energy_age_seconds\{/ && $NF > age { age = $NF }
        END { printf "%s %.0f", found ? sprintf("%.0f", sum) : "-", age + 0.5 }'
}

# The last joules are in the next reading of the counters: some seconds, but not longer than a job may wait for the node.
began=$(date +%s) waited=0
while :; do
    answer=$(ask)
    passed=$(($(date +%s) - began))
    joules=${answer% *} age=${answer#* }
    if [ "$joules" = - ] || [ "$age" -lt $((passed - 1)) ] || [ "$waited" -ge "${HEC_EPILOG_WAIT:-12}" ]; then break; fi
    sleep 1
    waited=$((waited + 1))
done
[ "$joules" = - ] || logger -t hec "job $SLURM_JOB_ID of ${SLURM_JOB_USER:-unknown}: $joules J on this node"
[ -d "$folder" ] && exec 9>"$folder/lock" && flock -w 5 9 && sed -i "/^$SLURM_JOB_ID\( \|\$\)/d" "$folder"/[0-9]*
exit 0
