"""JAX as a peer of ./x bench: jax.jit of value and gradient, the cotangent being an argument."""

import platform
import time

import jax
import jax.numpy as jnp
import jaxlib
import numpy

from protocol import Peer


def nll(x, targets):
    log_probs = jax.nn.log_softmax(x, axis=-1)
    return -jnp.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]


def layer_norm(x):
    d = x - x.mean(axis=-1, keepdims=True)
    return d * jax.lax.rsqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)


def rms_norm(x):
    return x * jax.lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)


FUNCTIONS = {"nll": nll, "softmax": lambda x: jax.nn.softmax(x, axis=-1), "layer_norm": layer_norm, "rms_norm": rms_norm}


def value_and_gradient(job):
    """A function that jax has not seen: (x, cotangent, further inputs) to value and gradient with respect to x."""
    function = FUNCTIONS[job]

    def both(x, cotangent, *more):
        value, pull = jax.vjp(lambda x: function(x, *more), x)
        return value, pull(cotangent)[0]

    return both


def arguments(inputs):
    more = [inputs["targets"].astype(numpy.int32)] if "targets" in inputs else []  # jax's own integers
    return [jnp.asarray(a) for a in (inputs["x"], inputs["cotangent"], *more)]


def jit(job, inputs):
    function = jax.jit(value_and_gradient(job))
    values = arguments(inputs)
    return lambda: jax.block_until_ready(function(*values))


def compile(job, inputs):
    values = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments(inputs)]
    jax.clear_caches()
    start = time.perf_counter()
    jax.jit(value_and_gradient(job)).trace(*values).lower().compile()
    return time.perf_counter() - start


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_compilation_cache", False)
    Peer(
        {"Python": platform.python_version(), "JAX": jax.__version__, "jaxlib": jaxlib.__version__},
        {"jit": jit},
        lambda results: [numpy.asarray(a) for a in results],
        compile,
    ).serve()
