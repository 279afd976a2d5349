"""Values on their way from a GPU, on a PyTorch that is made up: what they ask of the device, and when."""

import sys
import types

import pytest

from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "python"))
from hec._hooks import core, values  # noqa: E402


class Event:
    def __init__(self, device):
        self.device = device

    def query(self):
        assert not self.device.capturing, "CUDA ends a capture in which an event is asked for"
        self.device.asked += 1
        return True


class Memory:
    def tolist(self):
        return [[2.5]]


@pytest.fixture
def device(monkeypatch):
    found = types.SimpleNamespace(capturing=False, asked=0, reported=[])
    cuda = types.SimpleNamespace(is_current_stream_capturing=lambda: found.capturing)
    monkeypatch.setattr(core, "torch", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(core, "library", types.SimpleNamespace(value=lambda *value: found.reported.append(value)))
    return found


def test_no_event_is_asked_for_in_a_capture(device):
    """Warm-up steps left a copy on its way, and the optimizer's step is captured more than a flush later."""
    kept = values.Values([b"loss"])
    kept._flight = ([7], Memory(), Event(device))
    device.capturing = True
    kept.flush(10 * values.FLUSH_NS)
    kept.flush(20 * values.FLUSH_NS, force=True)
    assert device.asked == 0 and device.reported == []
    device.capturing = False
    kept.flush(20 * values.FLUSH_NS)  # the capture is over: it comes at once, not a flush later
    assert device.asked == 1 and device.reported == [(b"loss", 2.5, 7)]
