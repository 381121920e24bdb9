"""Webhooks: other programs are told what happens in a project, at least once each.

What is to be told is written down in the transaction of what happened; workers deliver it. The
database is the truth: a lost message or a killed worker only makes it later.
"""
