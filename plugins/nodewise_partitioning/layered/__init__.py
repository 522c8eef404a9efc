"""General layered networks: layers split over machines, replicas, parameter servers and all-reduce, from facts.

A reconstruction from first principles of the setting of F. Yan, O. Ruwase, Y. He and T. Chilimbi, "Performance modeling
and scalability optimization of distributed deep learning systems", KDD 2015: what they model is known from their
abstract, the equations are ours.
"""
