from .drawing import draw_heatmap as draw_heatmap
