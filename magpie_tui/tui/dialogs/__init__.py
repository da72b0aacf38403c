"""Dialogs: ask, choose, show, fill in. Nothing is chosen by accident: the first answer is always the harmless one."""
