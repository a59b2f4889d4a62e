"""Closed forms of the divergence between a noise law and its shift, and of randomised response.

A mechanism that adds noise to a query of sensitivity ``shift`` has, at distance one, the protection
loss that the output premetric D_Pr assigns to the noise law and its shift. Each law below knows
that loss under every premetric of this package:

| law              | D_Mult         | D_NoR squared                       | trade-off function     |
| ---------------- | -------------- | ----------------------------------- | ---------------------- |
| Laplace          | a = shift/b    | a + e^-a - 1                        | three smooth pieces    |
| discrete Laplace | a = shift/b    | a - (1 - e^-a) / (b sinh(1/b))      | piecewise linear       |
| Gaussian         | infinite       | shift^2 / (2 sigma^2)               | Phi(Phi^-1(1-x) - mu)  |
| discrete Gauss   | infinite       | shift^2 / (2 sigma^2)               | piecewise linear       |
| randomised resp. | ln(high/low)   | (high - low) ln(high/low), or above | three lines            |

Numbers given by the caller are read as they are written (``0.1`` is one tenth). Results are floats
that never understate a protection loss: rational results are the least float not below the value,
all others are raised by at least the error of their evaluation (a relative 1e-12 unless said
otherwise). Type-II errors are lowered alike, since a larger error would claim more protection. What pure DP
implies (``mu_of_pure``, ``rho_squared_of_pure``) is rational, rounded up at forty digits.
"""

from stirred.spec.calculus.closed_form.gaussian import (
    DiscreteGaussian,
    Gaussian,
    gaussian_delta,
    gaussian_epsilon,
)
from stirred.spec.calculus.closed_form.laplace import DiscreteLaplace, Laplace
from stirred.spec.calculus.closed_form.noise_law import NoiseLaw
from stirred.spec.calculus.closed_form.pure import mu_of_pure, rho_squared_of_pure
from stirred.spec.calculus.closed_form.randomised_response import RandomisedResponse

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "NoiseLaw",
    "RandomisedResponse",
    "gaussian_delta",
    "gaussian_epsilon",
    "mu_of_pure",
    "rho_squared_of_pure",
]
