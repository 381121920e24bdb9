"""Webhooks: deliver events of a project to other programs, at least once each.

An event is stored as a `Delivery` in its own transaction, and workers send it later. The database
is the source of truth: if a broker message is lost or a worker is killed, the delivery is only
delayed.
"""
