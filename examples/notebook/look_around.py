# %% [markdown]
# # Results in a notebook
# Each `# %%` begins a cell: open this file in VS Code or PyCharm, or turn it into a notebook with
# `jupytext --to ipynb look_around.py`. It also runs as it is: `python look_around.py [WORKSPACE...]`.
# It needs `pandas`. The objects are those that the command line prints from; each table has `.to_pandas()`.

# %%
import sys
from pathlib import Path

import magpie_tui

here = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()
traces = here.parent / "traces"
workspaces = [Path(name) for name in sys.argv[1:] if Path(name).is_dir()]

# %% [markdown]
# ## A trace: kernels by device time, then operators by what is to be won

# %%
trace = magpie_tui.load_trace(traces / "h200_eager_rank-0.pt.trace.json.gz")
kernels = trace.kernels().to_pandas()
print(kernels[["name", "calls", "self_us", "share_of_busy_pct"]].head(8).to_string(index=False))

# %%
roofline = trace.roofline().to_pandas()
modelled = roofline[roofline["win_us"].notna()].sort_values("win_us", ascending=False)
print(modelled[["name", "shapes", "time_us", "percent", "win_us"]].head(8).to_string(index=False))

# %% [markdown]
# ## How much of the time has a model at all?
# What was not measured is missing (NaN), never 0: say so before a mean is drawn.

# %%
covered = modelled["time_us"].sum() / roofline["time_us"].sum()
print(f"{covered:.0%} of the operators' device time has a performance model")

# %% [markdown]
# ## Workspaces: kernels with ratios, figures of a benchmark, metrics of an experiment

# %%
for path in workspaces:
    workspace = magpie_tui.load_workspace(path)
    print(f"\n{path.name}: {workspace.summary.headline}")
    print(workspace.to_pandas().to_string(index=False))
