"""Webhooks: report events in a project to other programs, at least once each.

An event is stored as a `Delivery` in the transaction of the event; workers send it. The database
is the source of truth: a lost broker message or a killed worker only delays a delivery.
"""
