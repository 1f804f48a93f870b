"""Opens systems (checkpoints, bundles and ensembles of them) for every command that translates."""
