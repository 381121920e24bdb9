"""Evaluation of recall on labelled conversations: metrics and unfitted baseline."""
