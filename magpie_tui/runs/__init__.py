"""A run: a command, a directory, a state, two logs. Launch it, follow it, stop it, list it, come back to it.

State lies in plain files under ``<output-dir>/.magpie-tui/runs/<id>/``; there is no daemon. ``supervisor``,
``status_file`` and ``layout`` are imported by the small process that watches a run and stay cheap.
"""
