"""Programs of spins and of complex numbers."""

import numpy as np

from cells import anywhere, inner, numbers, update


def ising2d(fields, scalars):
    S, R = fields["S"], fields["R"]
    costly, dear = (np.uint32(scalars.get(*odds)) for odds in
                    (("costly", 736899888), ("dear", 126432033)))
    for left, count in ((True, 13), (False, 17), (True, 5)):
        R[...] ^= R << np.uint32(count) if left else R >> np.uint32(count)
    s, color = anywhere(S, "periodic"), np.indices(S.shape).sum(axis=0) % 2
    for own in (0, 1):
        cost = S * (s(-1, 0) + s(1, 0) + s(0, -1) + s(0, 1))
        flips = (cost <= 0) | (R < np.where(cost <= 2, costly, dear))
        S[...] = np.where((color == own) & flips, -S, S)


def schroedinger2d(fields, scalars):
    P, U, V = fields["P"], fields["U"], fields["V"]
    c, v = numbers(V), inner(V, 1)(0, 0)
    dt = c(scalars.get("dt", "0.1"))

    def energy(part):
        u = inner(part, 1)
        near = u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - c(4) * u(0, 0)
        return v * u(0, 0) - c("0.5") * near

    # The product with 0 + 2i dt, written out.
    zero, double = c(0), c(2) * dt
    real, imaginary = energy(U.real), energy(U.imag)
    turned = zero * real - double * imaginary, zero * imaginary + double * real
    old, past = inner(U, 1)(0, 0).copy(), inner(P, 1)(0, 0).copy()
    update(P, [1, 1], [1, 1], old)
    update(U.real, [1, 1], [1, 1], past.real - turned[0])
    update(U.imag, [1, 1], [1, 1], past.imag - turned[1])


# A program's step, the fields that are read and written, and those that are only read.
QUANTA = {
    "ising2d": (ising2d, ["S", "R"], []),
    "schroedinger2d": (schroedinger2d, ["P", "U"], ["V"]),
}
