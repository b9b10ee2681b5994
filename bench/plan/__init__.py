"""From a command line to cases: ranges, sweeps, what suits a device."""
