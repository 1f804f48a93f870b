"""Drawing: the report page, charts, heatmaps, the model card."""
