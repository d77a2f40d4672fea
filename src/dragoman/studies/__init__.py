"""Studies of several runs: seeds, sweeps, ablations, comparisons."""
