"""Pure kernels, arrays in and arrays out: sampling, bag sums, simplex solvers, mixture likelihood.

The functions here check nothing; estimators do. Those in `compiled` need numba, which takes a
second to import, so every caller imports them inside the function that uses them.
"""
