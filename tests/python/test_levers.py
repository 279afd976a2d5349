"""Levers in PyTorch: what they change, what they say of it, and that they can be taken out again."""

import pytest


@pytest.fixture
def run(observe, torch_python):
    """Runs a program under levers: its only process as the listener found it, and what it printed."""

    def run(code, levers, **environment):
        done = observe.start(torch_python[0], code, HEC_LEVERS=levers, **environment)
        assert done.returncode == 0, done.stderr
        found = observe.listener.found()
        assert len(found) == 1
        assert "hooks_off" not in found[0].facts, found[0].facts
        return found[0], done.stdout

    return run


TF32 = """
    import torch
    print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
    import _hec_levers
    _hec_levers.revert()
    print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
    torch.ones(3, requires_grad=True).sum().backward()
"""


def test_tf32_is_put_in_and_taken_out(run):
    found, printed = run(TF32, "tf32,threads=2")
    assert printed.split() == ["True", "True", "False", "True"]
    assert found.facts["lever.tf32"] == "on: products off before, convolutions on"


def test_a_lever_that_is_not_here_is_nobodys_business(run):
    found, _ = run("import torch\ntorch.ones(1, requires_grad=True).sum().backward()", "numa,no_such,threads=2")
    assert not [key for key in found.facts if key.startswith("lever.")]
