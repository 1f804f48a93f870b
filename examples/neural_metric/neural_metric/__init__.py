"""COMET and MetricX as metrics of softsearch."""
