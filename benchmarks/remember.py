"""Features of the rows that were seen last, kept for the next run on the same rows."""

import hashlib


def remember(features_of):
    seen = {}

    def remembered(phi, x):
        key = phi, hashlib.sha1(x.tobytes()).digest()
        if key not in seen:
            for other in [other for other in seen if other[0] != phi]:
                del seen[other]
            seen[key] = features_of(phi, x)
        return seen[key]

    return remembered
