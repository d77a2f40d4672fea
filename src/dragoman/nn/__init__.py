"""The layers of the paper's section 3, from tensors to tensors.

Shape legend of the whole project: B batch, S source length, T target length, D model width
(d_model), H heads (h), K width of a head's keys (d_k), Kv width of its values (d_v), V vocabulary,
N = batch x beam, P packed rows (the real tokens of a batch, see ``layout.py``).
"""
