"""Studies: several runs beside each other: seeds, sweeps, ablations, comparisons."""
