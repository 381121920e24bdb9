"""Prometheus metrics of a running Strata, served at /metrics.

State that the database holds is queried at scrape time, so that it is right for any number of
machines. Events that only a process sees are counted in that process.
"""
