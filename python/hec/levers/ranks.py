"""What the ranks of a job do together, they decide together: a lever acts in all of them or in none. They agree by the store through which
the job met (torch.distributed), never by a collective: the program's own collectives keep their order."""

import sys
import time
from typing import Any, Dict, Set, Tuple

WAIT_S = 120.0  # for the last rank: it may be loading its data
POLL_S = 0.001, 0.05  # at first, and at most. A wait of the store's own cannot be interrupted, and leaves an old TCPStore broken
NO = "no: "

APART = "not all ranks came to where they decide"

_asked: "Dict[Tuple[str, str], int]" = {}
_apart: "Set[Tuple[str, str]]" = set()  # of which some ranks were asked and others not: nobody waits a second time


def distributed() -> Any:
    """torch.distributed, once a group was made; else None."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


def members(group: Any = None) -> "list[int]":
    """The ranks of a group, by their numbers in the whole job."""
    dist = distributed()
    if group is None or group is dist.group.WORLD:
        return list(range(dist.get_world_size()))
    if hasattr(dist, "get_process_group_ranks"):
        return sorted(dist.get_process_group_ranks(group))
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    return sorted(c10d._pg_group_ranks[group])


def agree(what: str, why: str, same: str = "", group: Any = None, wait_s: float = WAIT_S) -> str:
    """The empty string where every rank of the group can, else why one cannot. All of them call it, as often for the same `what`.
    why: empty where this one can; same: what has to be the same in all. Who decides first decides for all: who is later finds that."""
    dist, ranks = distributed(), members(group)
    if len(ranks) == 1:
        return why
    of = ",".join(map(str, ranks))
    if (what, of) in _apart:
        return APART
    _asked[what, of] = turn = _asked.get((what, of), 0) + 1
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    store = dist.PrefixStore("hec/%s/%s/%d" % (what, of, turn), c10d._get_default_store())
    store.set("rank%d" % dist.get_rank(), NO + why if why else "yes " + same)
    store.add("come", 1)
    word = _against(store, ranks, wait_s) or "yes"
    word = store.compare_set("decision", "", word).decode()
    if word == NO + APART:
        _apart.add((what, of))
    return word[len(NO) :] if word.startswith(NO) else ""


def _against(store: Any, ranks: "list[int]", wait_s: float) -> str:
    deadline, pause = time.monotonic() + wait_s, POLL_S[0]
    while store.add("come", 0) < len(ranks):
        if time.monotonic() > deadline:
            return NO + APART
        time.sleep(pause)
        pause = min(2 * pause, POLL_S[1])
    said = {rank: store.get("rank%d" % rank).decode() for rank in ranks}
    for rank, word in said.items():
        if word.startswith(NO):
            return "%s%s (rank %d)" % (NO, word[len(NO) :], rank)
    if len(set(said.values())) > 1:
        return NO + "ranks differ: " + ", ".join("%s in rank %d" % (word[4:], rank) for rank, word in list(said.items())[:4])
    return ""

