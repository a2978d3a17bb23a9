import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpscreen.paper.experiments import noise_for, rng_for, seed_name


def test_the_name_is_spelt_out_in_alphabetical_order():
    assert seed_name(trial=3, data="housing") == "data=housing, trial=3"


def test_the_order_of_the_names_does_not_matter():
    assert np.array_equal(noise_for(a=1, b="x").words(9), noise_for(b="x", a=1).words(9))
    assert rng_for(a=1, b="x").random() == rng_for(b="x", a=1).random()


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_different_names_give_different_numbers(one, other):
    same = np.array_equal(noise_for(trial=one).words(2), noise_for(trial=other).words(2))
    assert same == (one == other)
