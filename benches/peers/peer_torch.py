"""PyTorch as a peer of ./x bench: eager, its fused cross_entropy, and torch.compile; gradients by torch.autograd.grad with the
cotangent as grad_outputs."""

import os
import platform

import torch
from torch.nn import functional

from protocol import Peer


def nll(x, targets):
    log_probs = functional.log_softmax(x, dim=-1)
    return -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def cross_entropy(x, targets):
    losses = functional.cross_entropy(x.flatten(0, -2), targets.flatten(), reduction="none")
    return losses.view(targets.shape)


EAGER = {
    "nll": nll,
    "softmax": lambda x: functional.softmax(x, dim=-1),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:], eps=1e-5),
    "rms_norm": lambda x: functional.rms_norm(x, x.shape[-1:], eps=1e-5),
}


def value_and_gradient(function, inputs):
    x = torch.from_numpy(inputs["x"]).requires_grad_()
    cotangent = torch.from_numpy(inputs["cotangent"])
    more = [torch.from_numpy(inputs["targets"])] if "targets" in inputs else []

    def call():
        value = function(x, *more)
        (gradient,) = torch.autograd.grad(value, x, grad_outputs=cotangent)
        return value, gradient

    return call


def compiled(job, inputs):
    torch.compiler.reset()
    return value_and_gradient(torch.compile(EAGER[job], dynamic=False), inputs)


if __name__ == "__main__":
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    Peer(
        {"Python": platform.python_version(), "PyTorch": torch.__version__},
        {
            "eager": lambda job, inputs: value_and_gradient(EAGER[job], inputs),
            "cross_entropy": lambda job, inputs: value_and_gradient(cross_entropy, inputs),
            "compile": compiled,
        },
        lambda results: [a.detach().numpy() for a in results],
    ).serve()
