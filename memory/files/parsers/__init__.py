"""Parsers of files. They run in a process of their own (`child.py`), without rights.

The modules here import nothing else of Strata and no Django, so that the process starts fast.
"""
