#!/bin/sh
# TaskProlog of slurmd (slurm.conf: TaskProlog=/etc/slurm/task_prolog.sh): every step that was given a GPU reports to the node's
# agent, with no change to job scripts (docs/agent-jobs.md has the variables). What it prints becomes the step's environment. Where
# no agent listens, or the job has a profiler of its own there, it prints nothing.
prefix=${HEC_PREFIX:-/usr} socket=${HEC_AGENT_SOCKET:-/run/hec/agent.sock}
[ -S "$socket" ] && [ -n "${CUDA_VISIBLE_DEVICES:-}" ] && [ -z "${CUDA_INJECTION64_PATH:-}" ] || exit 0
cat <<END
export CUDA_INJECTION64_PATH=$prefix/lib/hec/libhectrace.so
export HEC_TRACE_MODE=auto
export HEC_TRACE_SOCKET=$socket
export HEC_SOCKET=$socket
export HEC_LIB=$prefix/lib/libhec.so.0
export HEC_HOOKS=1
export HEC_HOOKS_FOLDER=$prefix/share/hec/python/hooks
export PYTHONPATH=$prefix/share/hec/python/hooks${PYTHONPATH:+:$PYTHONPATH}
END
