"""What an operator asks of a running Strata, as Prometheus reads it at /metrics.

What the database knows is asked of it when somebody looks, so that it is right whatever the number
of machines; what only a process sees, it counts.
"""
