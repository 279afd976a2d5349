#!/bin/sh
#SBATCH --gpus=1
# A batch job whose steps tell the node's agent what they do: `hec run --agent --` in front of the command, nothing else.
# Where no agent listens the command runs as without HEC. The agent finds the job's id by itself, by its cgroup.
exec srun hec run --agent -- "$@"
