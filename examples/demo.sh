#!/bin/sh
# The demo: distil scikit-learn's digits under a stated budget, score them on held-out rows.
set -eu
limbeck distill digits --epsilon 5 --delta 1e-5 --per-class 5 -o demo-release --overwrite
limbeck evaluate demo-release --on digits:test
