"""The demo: distil scikit-learn's digits under a stated budget, score them, and show them."""

import limbeck as lb
from limbeck.data.source import open_source
from limbeck.evaluate import krr
from limbeck.evaluate.task import Task
from limbeck.release.report.render import write

budget = lb.Budget(epsilon=1.0, delta=1e-5)
bundle = lb.Readout(per_class=5).fit(lb.open("digits"), budget)
folder = bundle.save("demo-release", overwrite=True)
report = write(folder)
accuracy = krr.evaluate(Task(bundle, open_source("digits", split="test")))[0].value

print(f"Distilled   scikit-learn's digits into {len(bundle.points)} points by {bundle.method}.")
print(
    f"Privacy     ε = {bundle.epsilon:.4f} at δ = {budget.delta:g}, for adding or removing a row."
)
print(f"Accuracy    {accuracy:.3f} on held-out rows, by kernel ridge regression on the points.")
print(f"Look at     {report} in a browser; {folder}/README.md, {folder}/release.json.")
print(
    "Your data   limbeck schema draft FILE, then limbeck distill FILE --schema ...: docs/data.md."
)
