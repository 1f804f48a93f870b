"""The commands of the lab: the only home of Hydra and OmegaConf."""
