"""Evaluation of recall on labelled conversations: metrics, unfitted baseline, fitting weights."""
