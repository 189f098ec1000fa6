"""bf16 holds the outlier, and the unclipped update throws the weight to -7.8e7.

Run it from the repository's root: `python -m sample_runs.bf16_explosion.record --out runs/again --outlier 30000`.
"""

import torch

from sample_runs.stability import main

if __name__ == "__main__":
    main(__file__, torch.bfloat16, max_norm=None)
