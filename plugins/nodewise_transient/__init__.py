"""Training on machines that can be taken away: lifetimes, completion, cost, choice of offers, hybrid synchronisation.

Typed, frozen values and pure functions, in seconds, steps and dollars. How fast a cluster trains is never a constant of
this package: it comes in as a table of the alive set, from any throughput model.
"""
