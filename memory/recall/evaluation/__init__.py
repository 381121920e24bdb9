"""Evaluation of recall on labelled conversations: measures, the floor, the fit of the weights."""
