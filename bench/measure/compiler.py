"""Preloaded by the server when a compiled variant runs: what every child would otherwise find out for itself.

The compiler's instruction-set probe and the key of its cache take seconds in each process, and neither runs an
operator nor touches a device.
"""

import contextlib

from torch._inductor import codecache, cpu_vec_isa

with contextlib.suppress(Exception):  # it would end the server without a word; each child will say what it was
    cpu_vec_isa.pick_vec_isa()
    codecache.torch_key()
