"""Compiled loops over sparse rows that lie on a lattice. `sparse` says what they are for.

Rows and columns are both stored: `starts[i] : starts[i + 1]` are the places of row i (or column j)
in an array of indices and an array of 16-bit values. All sums are sums of whole numbers. Indices
are unsigned: signed ones would be checked for counting from the end, at a third of the speed.
"""

from __future__ import annotations

import numpy as np

from dpscreen._core.arrays import compiled

ONE = np.uint32(1)
INCREASING, DISORDERED, OUTSIDE = 0, 1, 2
"""What can be said of the indices of a matrix."""
LOWEST, TOP, BROKEN = 0, 1, 2
"""Places in the state of a class index."""


@compiled
def order_of(starts, indices, size, n_indices):
    """Say whether indices increase within every row, and whether all lie where they may."""
    found = INCREASING
    if starts[0] != 0:
        return OUTSIDE
    for i in range(starts.size - 1):
        if not starts[i] <= starts[i + 1] <= size:
            return OUTSIDE
        for a in range(starts[i], starts[i + 1]):
            if not 0 <= indices[a] < n_indices:
                return OUTSIDE
            if a > starts[i] and indices[a] <= indices[a - 1]:
                found = DISORDERED
    return found


@compiled
def pack_rows(ends, indices, levels, used, out_indices, out_levels, out_ends):
    """Append rows to the packed ones, without their zeros; return how many cells are used then."""
    place = 0
    for i in range(ends.size):
        while place < ends[i]:
            if levels[place] != 0:
                out_indices[used] = indices[place]
                out_levels[used] = levels[place]
                used += 1
            place += 1
        out_ends[i] = used
    return used


@compiled
def transpose(row_starts, features, values, column_starts, rows, column_values, tile):
    """Fill the columns from the rows; within a column the rows come out in order.

    A tile of columns at a time, so that what is written to stays in the cache: within a row the
    features increase, and each row remembers how far it has come.
    """
    for a in range(features.size):
        column_starts[features[a] + ONE] += ONE
    for j in range(column_starts.size - 1):
        column_starts[j + 1] += column_starts[j]
    places, done = column_starts[:-1].copy(), row_starts[:-1].copy()
    for first in range(0, column_starts.size - 1, tile):
        end = np.uint32(first + tile)
        for i in range(done.size):
            a, last = done[i], row_starts[i + 1]
            while a < last and features[a] < end:
                place = places[features[a]]
                places[features[a]] = place + ONE
                rows[place] = i
                column_values[place] = values[a]
                a += ONE
            done[i] = a


@compiled
def add_sparse_column(fit, rows, values, amount):
    """Add amount·column to the fit of the rows that hold it."""
    for a in range(rows.size):
        fit[rows[a]] += amount * np.int64(values[a])


@compiled
def sparse_column_sums(starts, rows, values, levels, out, first, last):
    """Set out[j] = Σ_i values[i, j]·levels[i] for first ≤ j < last."""
    for j in range(first, last):
        total = np.int64(0)
        for a in range(starts[j], starts[j + 1]):
            total += np.int64(np.int32(values[a]) * np.int32(levels[rows[a]]))
        out[j] = total


@compiled
def sparse_squares(starts, values, out):
    """Set out[j] to the sum of the squared values of row or column j."""
    for j in range(out.size):
        total = np.int64(0)
        for a in range(starts[j], starts[j + 1]):
            total += np.int64(values[a]) * np.int64(values[a])
        out[j] = total


@compiled
def changed_levels(rows, new, levels, changed, changes):
    """Bring the levels of some rows up to date; return how many changed, and list them."""
    count = 0
    for a in range(rows.size):
        i = rows[a]
        change = np.int32(new[a]) - np.int32(levels[i])
        if change != 0:
            levels[i] = new[a]
            changed[count] = i
            changes[count] = change
            count += 1
    return count


@compiled
def update_sums(changed, changes, starts, features, values, sums):
    """Add change·values of every changed row to the sums."""
    for q in range(changed.size):
        i, change = changed[q], np.int64(changes[q])
        for a in range(starts[i], starts[i + ONE]):
            sums[features[a]] += change * np.int64(values[a])


@compiled
def update_sums_and_classes(
    changed, changes, starts, features, values, sums, shift, bucket_bits, counts, totals, state
):
    """Add change·values of every changed row to the sums, and move features to other classes."""
    for q in range(changed.size):
        i, change = changed[q], np.int64(changes[q])
        for a in range(starts[i], starts[i + ONE]):
            feature = features[a]
            before = sums[feature]
            after = before + change * np.int64(values[a])
            sums[feature] = after
            old, new = abs(before) >> shift, abs(after) >> shift
            if old != new:
                move_class(feature >> np.uint32(bucket_bits), old, new, counts, totals, state)
    settle_top(totals, state)


@compiled
def move_class(bucket, old, new, counts, totals, state):
    """Count a feature in another class. A class above those that are kept breaks the index."""
    old -= state[LOWEST]
    new -= state[LOWEST]
    if new >= totals.size:
        state[BROKEN] = 1
        return
    if 0 <= old < totals.size:
        counts[old, bucket] -= 1
        totals[old] -= 1
    if new >= 0:
        counts[new, bucket] += 1
        totals[new] += 1
        state[TOP] = max(state[TOP], new + state[LOWEST])


@compiled
def settle_top(totals, state):
    """Lower the top class to the highest that is not empty; if there is none, the index broke."""
    if state[BROKEN]:
        return
    top = state[TOP] - state[LOWEST]
    while top >= 0 and totals[top] == 0:
        top -= 1
    state[TOP] = top + state[LOWEST]
    if top < 0:
        state[BROKEN] = 1


@compiled
def fill_classes(sums, shift, bucket_bits, counts, totals, state):
    """Count all features anew, in classes from state[LOWEST] on."""
    counts[:] = 0
    totals[:] = 0
    lowest = state[LOWEST]
    for j in range(sums.size):
        place = (abs(sums[j]) >> shift) - lowest
        if place >= 0:
            counts[place, j >> bucket_bits] += 1
            totals[place] += 1


@compiled
def member_by_bucket(counts, bucket_bits, sums, shift, number, rank):
    """Return the rank-th feature of class `number`, whose counts by bucket are given."""
    bucket = 0
    while rank >= counts[bucket]:
        rank -= counts[bucket]
        bucket += 1
    first = bucket << bucket_bits
    for j in range(first, min(first + (1 << bucket_bits), sums.size)):
        if abs(sums[j]) >> shift == number:
            if rank == 0:
                return j
            rank -= 1
    raise ValueError("a bucket has fewer members than were counted")
