"""Evaluation of recall on labelled conversations: metrics, an unfitted baseline, and weight
fitting.
"""
