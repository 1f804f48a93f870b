"""Drawing of the report page, charts, heatmaps and the model card."""
