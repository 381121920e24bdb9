"""Evaluation of recall on labelled conversations: metrics and an unfitted baseline."""
