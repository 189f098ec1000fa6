"""bf16 with clipping: the loss spikes all the same, the weight does not.

Run it from the repository's root: `python -m sample_runs.bf16_clipped.record --out runs/again --outlier 30000`.
"""

import torch

from sample_runs.stability import main

if __name__ == "__main__":
    main(__file__, torch.bfloat16, max_norm=1.0)
