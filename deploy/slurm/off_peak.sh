#!/bin/sh
# Releases held jobs that have opted in, when `hec run --when` is true. For scrontab or cron, by an operator or by who owns the jobs:
#     */5 * * * * /etc/slurm/off_peak.sh --when 'co2<200|22:00-06:00' --carbon-file /var/lib/grid/carbon.csv
# A job opts in when it is submitted: sbatch --hold --comment=off-peak job.sh. All others, and those that an administrator holds, are left
# alone, and what has begun is never held again. Where it is not known whether it is true nothing is released (docs/when.md).
answer=$(hec run --check "$@")
status=$?
case $status in
    0) ;;
    1 | 2) exit 0 ;;
    *) exit "$status" ;;
esac
jobs=$(squeue --noheader --states=PENDING --format='%A %r %k') || exit
for job in $(printf '%s\n' "$jobs" | awk 'NF == 3 && $2 == "JobHeldUser" && $3 == "off-peak" { print $1 }' | sort -u); do
    if scontrol release "$job"; then echo "job $job released: $answer"; else status=1; fi
done
exit "$status"
