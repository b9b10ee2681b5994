"""What the warm server has loaded before it forks: this project's own code and what it uses of torch.

No operator runs here, and no user's module is imported.
"""

import gc

import torch._dynamo
import torch.profiler

from bench.measure import worker
from variants import registry

__all__ = ["torch", "worker"]

registry.load_own()
gc.freeze()  # else the first collection in each child touches, and so copies, every page of these objects
