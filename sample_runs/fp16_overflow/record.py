"""fp16 cannot hold the outlier: the loss is Inf and the scaler skips the step.

Run it from the repository's root: `python -m sample_runs.fp16_overflow.record --out runs/again --outlier 30000`.
"""

import torch

from sample_runs.stability import main

if __name__ == "__main__":
    main(__file__, torch.float16, max_norm=None)
