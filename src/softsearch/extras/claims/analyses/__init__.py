"""Analyses of finished runs that the claims of papers need."""
