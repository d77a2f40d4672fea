"""The pieces of the paper's section 3: tensors in, tensors out.

Shape legend of the whole project: B batch, S source length, T target length, D model width
(d_model), H heads (h), K head width (d_k; values may have their own, d_v), V vocabulary,
N = batch x beam, P packed rows (the real tokens of a batch, see ``layout.py``).
"""
