"""Prometheus metrics of Strata, served at /metrics.

State in the database is queried at each scrape, so that it is correct for any number of machines.
Events that only a process can observe are counted in that process.
"""
